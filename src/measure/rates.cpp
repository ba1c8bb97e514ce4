#include "measure/rates.h"

#include "measure/op_alone.h"
#include "measure/op_case.h"
#include "measure/rate_limits.h"
#include "places/timing.h"

#include <chrono>
#include <map>
#include <set>

namespace redline {

namespace {

constexpr uint64_t kColumns = 2048, kRows = 2048;
constexpr uint32_t kTokens = 256;
constexpr uint64_t kUploadBytes = uint64_t(32) << 20;

// A byte source in memory, like a file in the system's page cache, from which content is copied.
class Copies : public ByteSource {
public:
    explicit Copies(uint64_t bytes) : all_(bytes) {}
    Status read(size_t, uint64_t offset, std::span<std::byte> out) override {
        RL_CHECK(offset + out.size() <= all_.size(), "more is read than there is");
        std::copy_n(all_.begin() + ptrdiff_t(offset), out.size(), out.begin());
        return {};
    }

private:
    std::vector<std::byte> all_;
};

Result<double> measure_upload(Backend& device, const Format& format) {
    const uint64_t row_bytes = kColumns / format.block * format.block_bytes;
    const WeightInfo info{{"matrix", &format, {1, kUploadBytes / row_bytes, kColumns}}, WeightRole::matrix};
    Copies source(info.tensor.bytes());
    const auto store = RL_TRY(device.load({&info, 1}, source, {}));
    const uint32_t first = 0;
    const double seconds = RL_TRY(median_seconds([&] {
        return device.refill(*store, {&first, 1}, {&info, 1}, source);
    }));
    return seconds > 0.0 ? double(info.tensor.bytes()) / seconds : 0.0;
}

Result<double> measure_product(Backend& backend, const Format& format) {
    Fixture fixture(1, 2);
    const Weight table = fixture.input(kColumns), matrix = fixture.matrix(format, kRows, kColumns);
    PlanBuilder builder(fixture.weights(), {kTokens, kTokens, CacheType::f16}, kTokens, 1);
    const Slot y = builder.linear(builder.embed(table), matrix), last = builder.slot(kRows, true);
    builder.append(SelectRows{y, last});
    builder.output(last);
    const Plan plan = RL_TRY(std::move(builder).finish());
    BoundPlan bound = RL_TRY(lower(plan, backend));
    const auto weights = RL_TRY(backend.load(fixture.weights(), fixture, {}));
    const auto caches = RL_TRY(backend.make_caches({}));
    const auto executable = RL_TRY(backend.record(std::move(bound), *weights, *caches, Record::direct));
    std::vector<int32_t> tokens(kTokens);
    for (uint32_t i = 0; i < kTokens; ++i) tokens[i] = int32_t(i % 2);
    const SequenceStep step(tokens, 0, 1);
    const double seconds = RL_TRY(median_seconds([&] { return executable->run(step); }));
    return seconds > 0.0 ? 2.0 * double(kTokens) * double(kRows) * double(kColumns) / seconds : 0.0;
}

struct Timed {
    double seconds = 0.0;
    uint64_t bytes = 0;  // of the declared weights
    size_t steps = 0;    // in the lowered plan
};

// Zeros, but the first bytes of each tensor are floats of one, as many as were asked for.
class OnesFirst : public ByteSource {
public:
    void add(uint64_t bytes) { ones_.push_back(bytes); }
    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        constexpr float kOne = 1.0f;
        std::ranges::fill(out, std::byte(0));
        for (uint64_t at = 0; at + 4 <= out.size() && offset + at < ones_[tensor]; at += 4)
            std::memcpy(&out[at], &kOne, 4);
        return {};
    }

private:
    std::vector<uint64_t> ones_;
};

// Times a step of one token, whose ops read these weights; their content does not matter.
class Trial {
public:
    Weight matrix(const Format& format, uint64_t rows, uint64_t cols, uint64_t count = 1) {
        const std::string name = fmt::format("matrix{}", weights_.size());
        const Tensor tensor{name, &format, {count, rows, cols}};
        timed_.bytes += tensor.bytes();
        return add({tensor, WeightRole::matrix}, 0);
    }
    // A router that chooses the first `used` of the experts, whose columns are ones.
    Weight router(uint64_t experts, uint64_t used, uint64_t cols) {
        const std::string name = fmt::format("router{}", weights_.size());
        const Tensor tensor{name, find_format("F32"), {1, experts, cols}};
        timed_.bytes += tensor.bytes();
        return add({tensor, WeightRole::matrix}, used * cols * 4);
    }
    Weight ones(uint64_t size) {
        const std::string name = fmt::format("vector{}", weights_.size());
        return add({{name, find_format("F32"), {1, 1, size}}, WeightRole::vector}, size * 4);
    }

    // `build` turns a row of `cols` columns into one of `width`.
    Result<Timed> run(Backend& backend, uint64_t cols, const std::function<Slot(PlanBuilder&, Slot)>& build,
                      uint64_t width) {
        const Weight table = add({{"input", find_format("F32"), {1, 1, cols}}, WeightRole::matrix}, cols * 4);
        PlanBuilder builder(weights_, {1, 1, CacheType::f16}, 1, 1);
        const Slot y = build(builder, builder.embed(table)), last = builder.slot(uint32_t(width), true);
        builder.append(SelectRows{y, last});
        builder.output(last);
        const Plan plan = RL_TRY(std::move(builder).finish());
        BoundPlan bound = RL_TRY(lower(plan, backend));
        timed_.steps = bound.plan.steps.size();
        const auto stored = RL_TRY(backend.load(weights_, content_, {}));
        const auto caches = RL_TRY(backend.make_caches({}));
        const auto executable = RL_TRY(backend.record(std::move(bound), *stored, *caches, Record::replay));
        const int32_t token = 0;
        const SequenceStep step({&token, 1}, 0, 1);
        RL_TRY(executable->run(step));
        timed_.seconds = RL_TRY(median_seconds([&] { return executable->run(step); }));
        return timed_;
    }

private:
    Weight add(WeightInfo info, uint64_t ones) {
        weights_.push_back(std::move(info));
        content_.add(ones);
        return {int32_t(weights_.size() - 1)};
    }

    std::vector<WeightInfo> weights_;
    OnesFirst content_;
    Timed timed_;
};

// A chain of products, each with a separate matrix, alternately of (rows, cols) and (cols, rows).
Result<Timed> timed_products(Backend& backend, const Format& format, uint64_t rows, uint64_t cols,
                             uint32_t products) {
    Trial trial;
    std::vector<Weight> matrices;
    for (uint32_t i = 0; i < products; ++i)
        matrices.push_back(i % 2 == 0 ? trial.matrix(format, rows, cols) : trial.matrix(format, cols, rows));
    const auto build = [&](PlanBuilder& builder, Slot x) {
        for (const Weight matrix : matrices) x = builder.linear(x, matrix);
        return x;
    };
    return trial.run(backend, cols, build, products % 2 == 1 ? rows : cols);
}

// The router has all experts of a layer, but only the used ones have matrices.
Result<Timed> timed_experts(Backend& backend, const ExpertLayer& layer, uint32_t layers) {
    struct Layer {
        Weight norm, router, gate, up, down;
    };
    Trial trial;
    std::vector<Layer> all;
    for (uint32_t i = 0; i < layers; ++i)
        all.push_back({trial.ones(layer.dim), trial.router(layer.count, layer.used, layer.dim),
                       trial.matrix(*layer.format, layer.hidden, layer.dim, layer.used),
                       trial.matrix(*layer.format, layer.hidden, layer.dim, layer.used),
                       trial.matrix(*layer.down, layer.dim, layer.hidden, layer.used)});
    const auto build = [&](PlanBuilder& builder, Slot x) {
        for (const Layer& weights : all)
            builder.expert_block(x, {weights.norm, 1e-5f}, {weights.router, layer.used},
                                 {weights.gate, weights.up, weights.down});
        return x;
    };
    return trial.run(backend, layer.dim, build, layer.dim);
}

// Bytes of the weights of a trial: more than caches hold, which is hundreds of MB in server processors, and
// no large part of the free memory.
uint64_t trial_bytes(const Backend& backend) {
    constexpr uint64_t kLeast = uint64_t(64) << 20, kOnCpu = uint64_t(1) << 30, kOnGpu = kOnCpu / 2;
    const DeviceInfo& device = backend.device();
    const uint64_t all = device.memory.bytes, free = all - std::min(all, backend.allocated());
    return std::clamp(free / 4, kLeast, device.threads > 0 ? kOnCpu : kOnGpu);
}

Result<DecodePace> measure_pace(Backend& backend, const Format& format) {
    constexpr uint64_t kNarrow = 4096, kWide = 16384, kTiny = 256;
    constexpr uint32_t kMany = 100;
    const uint64_t matrix = kNarrow * kWide / format.block * format.block_bytes;
    const Timed one = RL_TRY(timed_products(backend, format, kTiny, kTiny, 1));
    const Timed many = RL_TRY(timed_products(backend, format, kTiny, kTiny, kMany));
    const Timed large =
        RL_TRY(timed_products(backend, format, kWide, kNarrow, uint32_t(trial_bytes(backend) / matrix + 1)));
    DecodePace pace;
    if (many.steps > one.steps)
        pace.step_seconds = std::max(0.0, many.seconds - one.seconds) / double(many.steps - one.steps);
    pace.run_seconds = std::max(0.0, one.seconds - double(one.steps) * pace.step_seconds);
    const double reading = large.seconds - pace.run_seconds - double(large.steps) * pace.step_seconds;
    if (reading > 0.0) pace.bytes_per_second = double(large.bytes) / reading;
    return pace;
}

Result<double> measure_experts(Backend& backend, const ExpertLayer& layer, const DecodePace& pace) {
    const uint64_t bytes =
        3 * layer.used * layer.hidden * layer.dim / layer.format->block * layer.format->block_bytes;
    const auto layers = uint32_t(std::clamp<uint64_t>(trial_bytes(backend) / bytes + 1, 2, 64));
    const Timed timed = RL_TRY(timed_experts(backend, layer, layers));
    const double other = pace.run_seconds + double(timed.steps) * pace.step_seconds +
                         double(timed.bytes) / pace.bytes_per_second;
    return std::max(0.0, timed.seconds - other) / layers;
}

}  // namespace

double upload_rate(Backend& device, const Format& format) {
    const Result<double> rate = measure_upload(device, format);
    return rate && rate.value() <= rate_limits(device.device()).upload_bytes_per_second ? rate.value() : 0.0;
}

double product_rate(Backend& backend, const Format& format) {
    const Result<double> rate = measure_product(backend, format);
    return rate && rate.value() <= rate_limits(backend.device()).operations_per_second ? rate.value() : 0.0;
}

std::optional<ExpertLayer> expert_layer(std::span<const WeightInfo> weights, uint32_t used) {
    ExpertLayer layer;
    for (const WeightInfo& weight : weights) {
        const Shape& shape = weight.tensor.shape;
        if (weight.role != WeightRole::matrix || shape.count <= 1 || used == 0 ||
            weight.tensor.name.find("exps") == std::string::npos)
            continue;
        const bool is_down = weight.tensor.name.find("down") != std::string::npos;
        const Format*& format = is_down ? layer.down : layer.format;
        if (!layer.format && !layer.down)
            layer = {nullptr,
                     nullptr,
                     uint32_t(shape.count),
                     used,
                     is_down ? shape.cols : shape.rows,
                     is_down ? shape.rows : shape.cols};
        if (!format) format = weight.tensor.format;
    }
    if (!layer.format || !layer.down) return {};
    return layer;
}

DecodePace decode_pace(Backend& backend, const Format& format, const std::optional<ExpertLayer>& experts) {
    const Result<DecodePace> measured = measure_pace(backend, format);
    DecodePace pace = measured ? measured.value() : DecodePace{};
    if (!experts || pace.bytes_per_second <= 0.0) return pace;
    const Result<double> seconds = measure_experts(backend, *experts, pace);
    if (!seconds) return {};
    pace.expert_seconds = seconds.value();
    return pace;
}

// Seconds of a step of one token; `run` receives the lowered plan. With a pause each step begins so long
// after the one before, and the first half is ignored: a device that has little to do lowers its clocks
// within some tenths of a second.
static Result<double> timed_ops(Backend& backend, OpAlone ops, std::chrono::duration<double> pause,
                                Plan& run) {
    constexpr uint64_t kPosition = 128;
    BoundPlan bound = RL_TRY(lower(ops.plan, backend));
    run = bound.plan;
    const auto weights = RL_TRY(backend.load(ops.fixture.weights(), ops.fixture, {}));
    const auto caches = RL_TRY(backend.make_caches(ops.plan.caches));
    const auto executable = RL_TRY(backend.record(std::move(bound), *weights, *caches, Record::replay));
    const int32_t token = 0;
    const SequenceStep step({&token, 1}, std::min(kPosition, ops.plan.sizing.context - 1), 1);
    StepParams params = step;
    const std::vector<float> lookups(ops.plan.lookup_floats(1), 1.0f);
    params.lookups = lookups;
    RL_TRY(executable->run(params));
    if (pause.count() == 0.0) return median_seconds([&] { return executable->run(params); });
    constexpr std::chrono::milliseconds kLong(500);
    using Clock = std::chrono::steady_clock;
    std::vector<double> all;
    for (const auto begin = Clock::now(); Clock::now() - begin < kLong || all.size() < 4;) {
        for (const auto start = Clock::now(); Clock::now() - start < pause;) continue;
        all.push_back(RL_TRY(seconds_of([&] { return executable->run(params); })));
    }
    return median({all.begin() + ptrdiff_t(all.size() / 2), all.end()});
}

Result<double> history_seconds(Backend& backend, const Op& op, const Plan& plan, const DecodePace& pace) {
    constexpr uint32_t kTimes = 16, kSeed = 1;
    Plan run;
    OpAlone chain = RL_TRY(op_repeated(op, plan, kSeed, {}, kTimes, 1));
    const double all = RL_TRY(timed_ops(backend, std::move(chain), {}, run));
    const size_t others = run.steps.size() - std::min<size_t>(run.steps.size(), kTimes);
    return std::max(0.0, all - pace.run_seconds - double(others) * pace.step_seconds) / kTimes;
}

double steps_seconds(const Plan& lowered, const DecodePace& pace) {
    double sum = 0.0;
    for (const Step& step : lowered.steps) {
        const auto known = pace.op_seconds.find(kernel_key(step.op, lowered));
        sum += known != pace.op_seconds.end() ? known->second : pace.step_seconds;
    }
    return sum;
}

size_t kernels_of(const Plan& lowered) {
    std::set<std::string> keys;
    for (const Step& step : lowered.steps) keys.insert(kernel_key(step.op, lowered));
    return keys.size();
}

static bool of_experts(const Op& op) {
    return std::holds_alternative<ExpertBlock>(op) || product_by(By::expert, op);
}

Result<double> first_seconds(Backend& backend, const Plan& plan, const DecodePace& pace) {
    constexpr uint32_t kSeed = 1;
    constexpr std::chrono::microseconds kPause(300);  // about a layer's experts on the CPU
    std::vector<Op> ops;
    std::set<std::string> keys;
    for (const Step& step : plan.steps)
        if (stands_alone(step.op) && !of_experts(step.op) &&
            !plan.slot(access(step.op).writes[0]).of_outputs && keys.insert(kernel_key(step.op, plan)).second)
            ops.push_back(step.op);
    if (ops.empty()) return 0.0;
    OpAlone together = RL_TRY(ops_together(ops, plan, kSeed));
    Plan run;
    const double all = RL_TRY(timed_ops(backend, std::move(together), kPause, run));
    return std::max(0.0, all - pace.run_seconds - steps_seconds(run, pace)) / double(kernels_of(run));
}

std::map<std::string, double> history_seconds(Backend& backend, const Plan& plan, const DecodePace& pace,
                                              std::map<std::string, double> known) {
    for (const Step& step : plan.steps) {
        std::string key = kernel_key(step.op, plan);
        if (!has_history(step.op) || !stands_alone(step.op) || known.contains(key)) continue;
        if (const Result<double> seconds = history_seconds(backend, step.op, plan, pace))
            known.emplace(std::move(key), seconds.value());
    }
    return known;
}

const Format* main_format(std::span<const WeightInfo> weights) {
    std::map<const Format*, uint64_t> bytes;
    for (const WeightInfo& weight : weights)
        if (weight.role == WeightRole::matrix) bytes[weight.tensor.format] += weight.tensor.bytes();
    const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
    return most == bytes.end() ? nullptr : most->first;
}

}  // namespace redline
