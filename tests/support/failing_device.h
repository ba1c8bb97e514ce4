// A device of which one call fails, for tests of what is left behind.
#pragma once

#include "plan/backend.h"

#include <limits>

namespace redline::test {

// Counts calls, of which one fails.
struct Calls {
    int64_t left = INT64_MAX;

    Status next() {
        if (left-- != 0) return {};
        return error("injected");
    }
    bool failed() const { return left < 0; }
};

class FailingExecutable : public Executable {
public:
    FailingExecutable(std::unique_ptr<Executable> inner, Calls& calls)
        : inner_(std::move(inner)), calls_(calls) {}
    Status run(const StepParams& params) override {
        RL_TRY(calls_.next());
        return inner_->run(params);
    }
    Status run_traced(const StepParams& params, const TraceSink& sink) override {
        return inner_->run_traced(params, sink);
    }
    std::span<const float> output() const override { return inner_->output(); }

private:
    std::unique_ptr<Executable> inner_;
    Calls& calls_;
};

// A device of which one call fails.
class FailingDevice : public Backend {
public:
    FailingDevice(Backend& inner, Calls& calls) : inner_(inner), calls_(calls) {}
    const DeviceInfo& device() const override { return inner_.device(); }
    bool has_kernels(const Format& format) const override { return inner_.has_kernels(format); }
    Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo> caches) override {
        RL_TRY(calls_.next());
        return inner_.make_caches(caches);
    }
    Result<MemoryNeed> measure(std::span<const WeightInfo> weights, std::span<const CacheInfo> caches,
                               std::vector<PlanGroup> groups) override {
        RL_TRY(calls_.next());
        return inner_.measure(weights, caches, std::move(groups));
    }
    uint64_t allocated() const override { return inner_.allocated(); }
    Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup plans, WeightStore& weights,
                                                                  CacheStore& cache, Record mode) override {
        RL_TRY(calls_.next());
        auto made = RL_TRY(inner_.record_group(std::move(plans), weights, cache, mode));
        for (auto& executable : made)
            executable = std::make_unique<FailingExecutable>(std::move(executable), calls_);
        return made;
    }
    double measure_read_bandwidth() override { return 0.0; }

private:
    std::unique_ptr<Kernel> make_kernel(const Op& op, const Plan& plan) override {
        return inner_.kernel_for(op, plan);
    }
    Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo> weights, ByteSource& source,
                                                     const Progress& progress) override {
        RL_TRY(calls_.next());
        return inner_.load(weights, source, progress);
    }

    Backend& inner_;
    Calls& calls_;
};

}  // namespace redline::test
