// The speed that is expected of a model by the bandwidth of its device, and the limit below which a slow run
// is explained.
#include "host/expected_speed.h"
#include "devices/device_choice.h"
#include "host/tensor_split.h"
#include "json/json.h"
#include "measure/op_alone.h"
#include "measure/rate_limits.h"
#include "places/pipeline.h"
#include "plan/backend_parts.h"
#include "support/models.h"
#include "support/program.h"

#include <doctest/doctest.h>

#include <thread>

using namespace redline;
using namespace redline::test;

namespace {

// A device that says of itself what a test wants, and computes nothing.
class Claims : public Backend {
public:
    Claims(DeviceInfo info, double bytes_per_second) : info_(std::move(info)), rate_(bytes_per_second) {}

    const DeviceInfo& device() const override { return info_; }
    double measure_read_bandwidth() override { return rate_; }
    bool has_kernels(const Format&) const override { return false; }
    Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo>) override {
        return error("no caches");
    }
    Result<MemoryNeed> measure(std::span<const WeightInfo>, std::span<const CacheInfo>,
                               std::vector<PlanGroup>) override {
        return MemoryNeed{};
    }
    uint64_t allocated() const override { return 0; }
    Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup, WeightStore&, CacheStore&,
                                                                  Record) override {
        return error("no steps");
    }

private:
    std::unique_ptr<Kernel> make_kernel(const Op&, const Plan&) override { return nullptr; }
    Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo>, ByteSource&,
                                                     const Progress&) override {
        return error("no weights");
    }

    DeviceInfo info_;
    double rate_;
};

DeviceInfo card(const std::string& name) {
    DeviceInfo info;
    info.name = name;
    return info;
}

// Numbers of this name in a file of the cache become another one.
void change_numbers(const std::filesystem::path& path, const std::string& name, double value) {
    Json file = parse_json(read_file(path));
    size_t changed = 0;
    for (Json& kept : file["devices"])
        if (kept.contains(name)) {
            kept[name] = value;
            ++changed;
        }
    REQUIRE(changed > 0);
    write_file(path, file.dump());
}

}  // namespace

static LoadedModel chain_on(Backend& backend, double bandwidth) {
    LoadedModel loaded;
    loaded.device.choice.backend = "cpu";
    loaded.model = std::make_unique<Model>(must(Model::load(chain_model(), backend, {64, {}})));
    loaded.split.placements = {
        Placement{&backend, 0, must(loaded.model->plan(1, 1, {64, 1, loaded.cache})).steps.size()}};
    loaded.device.bandwidth = bandwidth;
    return loaded;
}

TEST_CASE("expected speed: the bandwidth over the bytes of a token, and unknown without one") {
    const auto backend = must(open_backend("cpu", {.threads = 1}));
    const LoadedModel loaded = chain_on(*backend, 1e9);
    const Cost one = step_cost(must(loaded.model->plan(1, 1, {64, 1, loaded.cache})), {1, 1, 10});
    const double bytes = double(one.weight_bytes + one.cache_bytes);
    CHECK(most_tokens_per_second(loaded, 64, 10) == doctest::Approx(1e9 / bytes));
    CHECK(most_tokens_per_second(chain_on(*backend, 0.0), 64, 10) == 0.0);
}

TEST_CASE("expected speed: with a pace, each run and step takes its time beside what is read") {
    const auto backend = must(open_backend("cpu", {.threads = 1}));
    LoadedModel loaded = chain_on(*backend, 1e9);
    CHECK(expected_tokens_per_second(loaded, 64, 10) == 0.0);
    loaded.device.pace = {1e9, 1e-3, 20e-3, 0.5, {}, 0.0};  // it has no experts
    const Plan plan = must(loaded.model->plan(1, 1, {64, 1, loaded.cache}));
    const Cost one = step_cost(plan, {1, 1, 10});
    const auto steps = double(must(lower(plan, *backend)).plan.steps.size());
    const double seconds = 20e-3 + steps * 1e-3 + double(one.weight_bytes + one.cache_bytes) / 1e9;
    CHECK(expected_tokens_per_second(loaded, 64, 10) == doctest::Approx(1.0 / seconds));
    // An op of which more is known takes that in place of a step's time.
    const Plan lowered = must(lower(plan, *backend)).plan;
    const auto attention = std::ranges::find_if(
        lowered.steps, [](const Step& step) { return has_history(step.op) && stands_alone(step.op); });
    REQUIRE(attention != lowered.steps.end());
    const std::string key = kernel_key(attention->op, lowered);
    const auto same = std::ranges::count_if(
        lowered.steps, [&](const Step& step) { return kernel_key(step.op, lowered) == key; });
    loaded.device.pace.op_seconds = {{key, 5e-3}};
    CHECK(1.0 / expected_tokens_per_second(loaded, 64, 10) == doctest::Approx(seconds + double(same) * 4e-3));
    loaded.device.pace.op_seconds.clear();
    Generation made;
    made.steps = 20;
    made.context_sum = 200;
    made.decode_seconds = 20 * 5 * seconds;
    CHECK(has(explain_slow(loaded, 64, made), "tok/s are 20 % of the"));
    made.decode_seconds = 20 * 3 * seconds;
    CHECK(explain_slow(loaded, 64, made).empty());
}

TEST_CASE("expected speed: each going on at the other place takes its time, that to the next token, too") {
    const auto backend = must(open_backend("cpu", {.threads = 1})),
               other = must(open_backend("cpu", {.threads = 1}));
    const Model model = must(Model::load(chain_model(), *backend, {64, {}}));
    const EngineOptions options{.context = 64};
    const PaceOf pace = [](const Backend&) { return DecodePace{1e9, 1e-3, 20e-3, 0.0, {}, 0.0}; };
    const auto seconds = [&](std::span<const Placement> placements, double each) {
        const CrossingOf crossing = [each](const Backend&, const Backend&) { return each; };
        return 1.0 / must(expected_tokens_per_second(model, options, placements, pace, crossing, 10));
    };
    for (const uint32_t layers : {0u, 1u, model.config().layers}) {
        const Split split = must(split_model(model, options, {backend.get(), {other.get()}}, {layers}));
        const double crossings = split.placements.size() == 1 ? 0.0 : 2.0;
        CHECK(seconds(split.placements, 7e-3) ==
              doctest::Approx(seconds(split.placements, 0.0) + crossings * 7e-3));
    }
}

TEST_CASE("expected speed: layers that devices divide take the experts' time, too, as whole ones do") {
    const auto backend = must(open_backend("cpu", {.threads = 1}));
    LoadedModel loaded;
    loaded.device.bandwidth = 1e9;
    loaded.model =
        std::make_unique<Model>(must(Model::load(golden("models/qwen3moe.gguf"), *backend, {64, {}})));
    loaded.split.ranks = {{backend.get(), 1.0}, {backend.get(), 1.0}};
    loaded.speed.sum_seconds = 1e-4;
    const auto seconds = [&](double expert_seconds) {
        loaded.device.pace = {1e9, 1e-3, 20e-3, expert_seconds, {}, 0.0};
        return 1.0 / tensor_speed(loaded, 64, 10).expected;
    };
    const double layers = loaded.model->config().layers;
    CHECK(seconds(5e-3) == doctest::Approx(seconds(0.0) + layers * 5e-3));
}

TEST_CASE("expected speed: what a crossing takes is measured once for two devices, and kept") {
    const auto cpu = must(open_backend("cpu", {.threads = 1})),
               other = must(open_backend("cpu", {.threads = 2}));
    const TemporaryFolder folder;
    const Model model = must(Model::load(chain_model(), *cpu, {64, {}}));
    CHECK(!find_crossing(*cpu, *other, model, "", false));
    const auto first = find_crossing(*cpu, *other, model, folder.path, false);
    REQUIRE(first);
    CHECK(*first < 1.0);
    CHECK(find_crossing(*cpu, *other, model, folder.path, false) == first);
    // Kept, and not measured again unless that is asked for.
    change_numbers(folder.path / "pace.json", "crossing_seconds", 0.75);
    CHECK(find_crossing(*cpu, *other, model, folder.path, false) == 0.75);
    const auto anew = find_crossing(*cpu, *other, model, folder.path, true);
    REQUIRE(anew);
    CHECK(*anew < 0.75);
    // The cost of waiting is stored beside it.
    const DecodePace pace{1e9, 0.0, 0.0, 0.0, {}, 0.0};
    const double waited = find_first(*other, model, CacheType::f16, pace, folder.path, false);
    CHECK(waited > 0.0);
    CHECK(find_first(*other, model, CacheType::f16, pace, folder.path, false) == waited);
    CHECK(find_crossing(*cpu, *other, model, folder.path, false) == anew);
    // A pace of the same device is another record.
    CHECK(known_pace(*other, model, CacheType::f16, folder.path).bytes_per_second > 0.0);
    CHECK(find_crossing(*cpu, *other, model, folder.path, false) == anew);
}

TEST_CASE("expected speed: a layer of experts has the formats and sizes of its matrices") {
    const Format *const gate = find_format("Q4_K"), *const down = find_format("Q5_0");
    const auto matrix = [](const char* name, const Format* format, Shape shape) {
        return WeightInfo{{name, format, shape}, WeightRole::matrix};
    };
    // Rows of down are no multiple of the other format's blocks.
    const std::vector<WeightInfo> all = {
        matrix("blk.0.attn_q.weight", gate, {1, 512, 512}),
        matrix("blk.1.ffn_down_exps.weight", down, {64, 512, 640}),
        matrix("blk.1.ffn_gate_exps.weight", gate, {64, 640, 512}),
        matrix("blk.1.ffn_up_exps.weight", gate, {64, 640, 512}),
    };
    const auto layer = expert_layer(all, 4);
    REQUIRE(layer);
    CHECK(layer->format == gate);
    CHECK(layer->down == down);
    CHECK(layer->count == 64);
    CHECK(layer->hidden == 640);
    CHECK(layer->dim == 512);
    CHECK(!expert_layer(all, 0));
    CHECK(!expert_layer(std::span(all).first(1), 4));
    const auto backend = must(open_backend("cpu", {.threads = 2}));
    CHECK(decode_pace(*backend, *gate, layer).bytes_per_second > 0.0);
}

TEST_CASE("expected speed: a pace is measured once for a format and layers of experts, and kept") {
    const auto backend = must(open_backend("cpu", {.threads = 2}));
    const TemporaryFolder folder;
    const Model dense = must(Model::load(chain_model(), *backend, {64, {}}));
    const Model mixture = must(Model::load(golden("models/qwen3moe.gguf"), *backend, {64, {}}));
    CHECK(known_pace(*backend, dense, CacheType::f16, "").bytes_per_second == 0.0);
    for (const Model* model : {&dense, &mixture}) {
        const DecodePace first = known_pace(*backend, *model, CacheType::f16, folder.path);
        CHECK(first.bytes_per_second > 1e6);
        CHECK(first.bytes_per_second < rate_limits(backend->device()).bytes_per_second);
        // Either may be none on a machine so busy that a long step was no slower than a short one.
        CHECK(first.run_seconds + first.step_seconds > 1e-8);
        CHECK(first.run_seconds + first.step_seconds < 1.0);
        CHECK(first.expert_seconds < 1.0);
        // No time is held to another one: a machine may be busy in between. Half the pace is half the speed.
        const auto expected = [&](double factor) {
            DecodePace pace = first;
            pace.bytes_per_second *= factor;
            for (double* seconds :
                 {&pace.run_seconds, &pace.step_seconds, &pace.expert_seconds, &pace.first_seconds})
                *seconds /= factor;
            for (auto& [key, seconds] : pace.op_seconds) seconds /= factor;
            const EngineOptions options{.context = 64};
            const Plan plan = divided(must(model->plan(1, 1, {64, 1, CacheType::f16})));
            const Placement whole{backend.get(), 0, plan.steps.size()};
            const PaceOf pace_of = [&](const Backend&) { return pace; };
            const CrossingOf none = [](const Backend&, const Backend&) { return 0.0; };
            return must(expected_tokens_per_second(*model, options, {&whole, 1}, pace_of, none, 10));
        };
        CHECK(expected(1.0) > 0.0);
        CHECK(expected(0.5) == doctest::Approx(expected(1.0) / 2));
        const DecodePace again = known_pace(*backend, *model, CacheType::f16, folder.path);
        CHECK(again.bytes_per_second == first.bytes_per_second);
        CHECK(again.expert_seconds == first.expert_seconds);
        CHECK(!first.op_seconds.empty());
        CHECK(again.op_seconds == first.op_seconds);
    }
    CHECK(known_pace(*backend, dense, CacheType::f16, folder.path).expert_seconds == 0.0);
}

TEST_CASE(
    "expected speed: what ops with a history and first launches take is measured of every architecture") {
    const auto backend = must(open_backend("cpu", {.threads = 1}));
    size_t models = 0;
    for (const auto& file : std::filesystem::directory_iterator(golden("models"))) {
        if (file.path().extension() != ".gguf") continue;
        const Result<Model> model = Model::inspect(file.path().string(), 64);
        if (!model) continue;  // a draft alone, or a part of a split file
        CAPTURE(file.path().string());
        const CacheSizing sizing{64, 1, CacheType::f16};
        const Placement whole{backend.get(), 0, divided(must(model.value().plan(1, 1, sizing))).steps.size()};
        const Plan plan = must(Places::lowered_plans(model.value(), sizing, {&whole, 1}, true)).at(0);
        const DecodePace pace{1e9, 0.0, 0.0, 0.0, {}, 0.0};
        if (models % 16 == 0) CHECK(must(first_seconds(*backend, plan, pace)) > 0.0);  // half a second each
        for (const Step& step : plan.steps)
            if (has_history(step.op) && stands_alone(step.op))
                CHECK(must(history_seconds(*backend, step.op, plan, pace)) > 0.0);
        ++models;
    }
    CHECK(models > 20);
}

TEST_CASE(
    "expected speed: a run below a quarter of it is explained, one above, a short one or an unknown one is "
    "not") {
    const auto backend = must(open_backend("cpu", {.threads = 1}));
    const LoadedModel loaded = chain_on(*backend, 1e9);
    const double most = most_tokens_per_second(loaded, 64, 10);
    Generation made;
    made.steps = 20;
    made.context_sum = 200;
    made.decode_seconds = 20 / (0.2 * most);
    CHECK(has(explain_slow(loaded, 64, made), "tok/s are 20 % of the"));
    CHECK(explain_slow(chain_on(*backend, 0.0), 64, made).empty());
    Generation brief = made;
    brief.steps = 15;
    CHECK(explain_slow(loaded, 64, brief).empty());
    made.decode_seconds = 20 / (0.3 * most);
    CHECK(explain_slow(loaded, 64, made).empty());
}

TEST_CASE("expected speed: what the machine suffers from is named as the cause, or what may be") {
    Machine machine;
    CHECK(has(likely_causes(machine),
              "other programs, low clocks or swapping may slow it down; redline doctor"));
    machine.waits_for_core = 49;
    machine.waits_for_memory = 9;
    CHECK(has(likely_causes(machine), "redline doctor"));
    machine.waits_for_core = 80;
    machine.swap_used = uint64_t(3) << 30;
    CHECK(has(likely_causes(machine), "in 80 % of the last 10 seconds a program waited for a core"));
    CHECK(
        has(likely_causes(machine), "(end other programs that compute, or give redline fewer threads (-t))"));
    CHECK(has(likely_causes(machine), "3.00 GiB of swap are in use"));
    CHECK(!has(likely_causes(machine), "redline doctor"));
}

TEST_CASE("expected speed: a bandwidth is measured once and kept, and a damaged file is written anew") {
    const auto backend = must(open_backend("cpu", {.threads = 1}));
    const TemporaryFolder folder;
    const std::filesystem::path cache = folder.path / "not" / "there yet";
    CHECK(known_bandwidth(*backend, "") == 0.0);
    const double first = known_bandwidth(*backend, cache);
    CHECK(first > 0.0);
    const auto again = must(open_backend("cpu", {.threads = 1}));
    CHECK(known_bandwidth(*again, cache) == first);
    write_file(cache / "bandwidth.json", "{ nonsense");
    CHECK(known_bandwidth(*again, cache) > 0.0);
    CHECK(read_file(cache / "bandwidth.json").find("nonsense") == std::string::npos);
    CHECK(measured_bandwidth(*again, cache) == known_bandwidth(*again, cache));
}

TEST_CASE("expected speed: what two programs measure at a time is kept of both") {
    const TemporaryFolder folder;
    constexpr int kWriters = 2, kEach = 40;
    const auto device = [](int writer, int i) {
        return Claims(card(fmt::format("card {} of {}", i, writer)), 1e9 * (1 + i));
    };
    {
        std::vector<std::jthread> writers;
        for (int w = 0; w < kWriters; ++w)
            writers.emplace_back([&, w] {
                for (int i = 0; i < kEach; ++i) {
                    Claims one = device(w, i);
                    measured_bandwidth(one, folder.path);
                }
            });
    }
    int kept = 0;
    for (int w = 0; w < kWriters; ++w)
        for (int i = 0; i < kEach; ++i) {
            Claims unmeasured(card(fmt::format("card {} of {}", i, w)), 0.0);
            kept += known_bandwidth(unmeasured, folder.path) == 1e9 * (1 + i);
        }
    CHECK(kept == kWriters * kEach);
}

TEST_CASE("expected speed: a rate that no device of a class has is none, and says why") {
    const TemporaryFolder folder;
    DeviceInfo apu = card("APU"), with_hbm = card("AMD Instinct MI300A"), processor = card("CPU"),
               driver = card("llvmpipe");
    apu.unified = with_hbm.unified = processor.unified = true;
    with_hbm.detail = "HIP 7.1; gfx942 as gfx942; waves of 64";
    processor.threads = 16;
    driver.on_cpu = true;
    struct Case {
        DeviceInfo info;
        double possible, impossible;
    };
    // Halo products, MI300A, MI355X, two sockets of Xeon Max.
    const Case cases[] = {{apu, 2.56e11, 4e12},
                          {with_hbm, 5.3e12, 4.3e13},
                          {card("card"), 8e12, 4.3e13},
                          {processor, 3.3e12, 1e15},
                          {driver, 5e10, 1e15}};
    for (const Case& c : cases) {
        INFO(c.info.name);
        CHECK(explain_rate(c.info, c.possible) == "");
        const std::string why = explain_rate(c.info, c.impossible);
        CHECK(has(why, c.info.name + " seems to read "));
        CHECK(has(why, "no speed is predicted"));
        Claims right(c.info, c.possible);
        CHECK(known_bandwidth(right, folder.path) == c.possible);
        // One that was kept by a program which believed it is measured again.
        change_numbers(folder.path / "bandwidth.json", "bytes_per_second", c.impossible);
        CHECK(known_bandwidth(right, folder.path) == c.possible);
        DeviceInfo another = c.info;
        another.name += ", a stand-in";
        Claims wrong(another, c.impossible);
        CHECK(measured_bandwidth(wrong, folder.path) == 0.0);
        CHECK(known_bandwidth(wrong, folder.path) == 0.0);
        CHECK(!has(read_file(folder.path / "bandwidth.json"), "a stand-in"));
    }
    CHECK(has(explain_rate(card("card"), 4.3e13), "its driver may compute nothing"));
    CHECK(has(explain_rate(card("card"), 0.0), "how fast card reads could not be measured"));
}

TEST_CASE("expected speed: a kept pace beyond the device's class is measured again") {
    const auto backend = must(open_backend("cpu", {.threads = 1}));
    const TemporaryFolder folder;
    const Model model = must(Model::load(chain_model(), *backend, {64, {}}));
    const double first = known_pace(*backend, model, CacheType::f16, folder.path).bytes_per_second;
    CHECK(first > 0.0);
    change_numbers(folder.path / "pace.json", "bytes_per_second", 4.3e13);
    const double again = known_pace(*backend, model, CacheType::f16, folder.path).bytes_per_second;
    CHECK(again > 0.0);
    CHECK(again < 1e13);
}

TEST_CASE("expected speed: files of programs that knew ops by other keys are set aside") {
    const auto backend = must(open_backend("cpu", {.threads = 1}));
    const TemporaryFolder folder;
    const Model model = must(Model::load(chain_model(), *backend, {64, {}}));
    const std::string before = backend->device().name + "; " + backend->device().detail;
    write_file(folder.path / "bandwidth.json", Json({{before, 12345.0}}).dump());
    write_file(folder.path / "pace.json", "{\"version\": 1, \"devices\": {\"old\": {\"step_seconds\": 3}}}");
    CHECK(known_bandwidth(*backend, folder.path) > 12345.0);
    CHECK(known_pace(*backend, model, CacheType::f16, folder.path).bytes_per_second > 0.0);
    CHECK(!has(read_file(folder.path / "pace.json"), "\"old\""));
    CHECK(has(read_file(folder.path / "pace.json"), "\"version\": 2"));
}

namespace {

// A CPU of eight threads, some of which were left out.
class SharedCpu : public Backend, public SharesProcessors {
public:
    explicit SharedCpu(uint32_t fewest) : fewest_(fewest) { info_.threads = 8; }
    const DeviceInfo& device() const override { return info_; }
    bool has_kernels(const Format&) const override { return false; }
    Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo>) override {
        return error("no caches");
    }
    Result<MemoryNeed> measure(std::span<const WeightInfo>, std::span<const CacheInfo>,
                               std::vector<PlanGroup>) override {
        return MemoryNeed{};
    }
    uint64_t allocated() const override { return 0; }
    Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup, WeightStore&, CacheStore&,
                                                                  Record) override {
        return error("no steps");
    }
    double measure_read_bandwidth() override { return 0.0; }
    uint32_t fewest_threads() const override { return fewest_; }

private:
    std::unique_ptr<Kernel> make_kernel(const Op&, const Plan&) override { return nullptr; }
    Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo>, ByteSource&,
                                                     const Progress&) override {
        return error("no weights");
    }

    DeviceInfo info_;
    uint32_t fewest_;
};

}  // namespace

TEST_CASE("expected speed: threads that were left out for other programs are told, of either device") {
    LoadedModel loaded;
    CHECK(explain_shared_cpu(loaded).empty());
    loaded.device.backend = std::make_unique<SharedCpu>(0);
    CHECK(explain_shared_cpu(loaded).empty());
    loaded.split.cpu.backend = std::make_unique<SharedCpu>(5);
    CHECK(has(explain_shared_cpu(loaded), "other programs use the CPU: at times 5 of 8 threads computed"));
}
