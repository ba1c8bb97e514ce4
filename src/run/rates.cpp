#include "run/rates.h"

#include "cases/op_case.h"

#include <algorithm>
#include <chrono>

namespace redline {

namespace {

constexpr uint64_t kColumns = 2048, kRows = 2048;
constexpr uint32_t kTokens = 256;
constexpr uint64_t kUploadBytes = uint64_t(32) << 20;
constexpr int kTries = 3;

// Of the fastest of some tries.
Result<double> fastest_seconds(const std::function<Status()>& work) {
    double best = 0.0;
    for (int i = 0; i < kTries; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        RL_TRY(work());
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (best == 0.0 || took.count() < best) best = took.count();
    }
    return best;
}

struct Zeros : ByteSource {
    Status read(size_t, uint64_t, std::span<std::byte> out) override {
        std::ranges::fill(out, std::byte(0));
        return {};
    }
};

Result<double> measure_upload(Backend& device, const Format& format) {
    const uint64_t row_bytes = kColumns / format.block * format.block_bytes;
    const WeightInfo info{{"matrix", &format, {1, kUploadBytes / row_bytes, kColumns}}, WeightRole::matrix};
    Zeros zeros;
    const auto store = RL_TRY(device.load({&info, 1}, zeros, {}));
    const uint32_t first = 0;
    const double seconds = RL_TRY(fastest_seconds([&] {
        return device.refill(*store, {&first, 1}, {&info, 1}, zeros);
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
    const double seconds = RL_TRY(fastest_seconds([&] { return executable->run(step); }));
    return seconds > 0.0 ? 2.0 * double(kTokens) * double(kRows) * double(kColumns) / seconds : 0.0;
}

}  // namespace

double upload_rate(Backend& device, const Format& format) {
    const Result<double> rate = measure_upload(device, format);
    return rate ? rate.value() : 0.0;
}

double product_rate(Backend& backend, const Format& format) {
    const Result<double> rate = measure_product(backend, format);
    return rate ? rate.value() : 0.0;
}

}  // namespace redline
