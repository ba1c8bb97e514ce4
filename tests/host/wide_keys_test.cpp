// A model whose keys do not survive a cache of few bits keeps more of them, and it is said.
#include "host/wide_keys.h"

#include "support/fake_clock.h"
#include "support/large_bias.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

TEST_CASE("caches: layers with large biases of keys are counted where keys have few bits") {
    const CacheFolder folder;
    std::filesystem::create_directories(folder.path);
    const std::string path = folder.path / "large.gguf";
    CHECK(wide_keys_note(must(Model::inspect(golden("models/qwen2.gguf"))), CacheType::q4_0) == "");
    CHECK(wide_keys_note(must(Model::inspect(golden("models/qwen3.gguf"))), CacheType::q4_0) == "");
    save_large_bias(path, -354.0f);
    const Model model = must(Model::inspect(path));
    for (const CacheType few : {CacheType::q5_1, CacheType::q4_0, CacheType::iq4_nl})
        CHECK(wide_keys_note(model, {few, CacheType::q4_0}) ==
              "1 of 2 layers adds so much to its keys that " + std::string(cache_type_name(few)) +
                  " keeps too little of them: there they are cached as q8_0; -ctk q8_0 -ctv q4_0 loses less "
                  "in all layers");
    for (const CacheType more : {CacheType::q8_0, CacheType::bf16, CacheType::f16, CacheType::f32})
        CHECK(wide_keys_note(model, {more, CacheType::q4_0}) == "");
}

TEST_CASE("caches: keys of a layer with large biases have 8 bits, those of other layers what was asked for") {
    const CacheFolder folder;
    std::filesystem::create_directories(folder.path);
    const std::string path = folder.path / "large.gguf";
    save_large_bias(path, 40.0f);
    const Model model = must(Model::inspect(path));
    const auto types = [&](CacheTypes given) {
        std::vector<CacheTypes> all;
        for (const CacheInfo& cache : must(model.plan(1, 1, {.context = 64, .types = given})).caches)
            all.push_back(cache.types);
        return all;
    };
    const CacheTypes few = {CacheType::q4_0, CacheType::q5_1}, mended = {CacheType::q8_0, CacheType::q5_1};
    CHECK(types(few) == std::vector{few, mended});
    for (const CacheTypes more : {CacheTypes(CacheType::q8_0), CacheTypes(CacheType::f16),
                                  CacheTypes(CacheType::bf16, CacheType::q4_0)})
        CHECK(types(more) == std::vector{more, more});
    save_large_bias(path, 20.0f);
    const Model small = must(Model::inspect(path));
    for (const CacheInfo& cache : must(small.plan(1, 1, {.context = 64, .types = few})).caches)
        CHECK(cache.types == few);
}
