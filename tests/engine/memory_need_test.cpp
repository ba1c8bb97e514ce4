// The memory that a model takes, told before it is loaded.
#include "engine/engine.h"
#include "support/models.h"

#include <atomic>
#include <thread>

using namespace redline;
using namespace redline::test;

TEST_CASE("memory need: it is the same while other threads allocate and free memory of the device") {
    const std::string path = golden("models/llama3.gguf");
    const std::unique_ptr<Backend> device = test::cpu(1), other = test::cpu(1);
    const Model model = must(Model::inspect(path, 64));
    const Plan plan = must(model.plan(1, 1, {64, 16}));
    EngineOptions options{64, 16};
    const MemoryNeed want = must(memory_need(model, *device, options));
    std::atomic<bool> over = false;
    std::thread busy([&] {
        while (!over) must(other->make_caches(plan.caches));
    });
    for (int i = 0; i < 300; ++i) {
        const MemoryNeed need = must(memory_need(model, *device, options));
        CHECK(need.scratch == want.scratch);
        CHECK(need.cache == want.cache);
    }
    over = true;
    busy.join();
}
