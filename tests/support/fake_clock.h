// A clock by which a tuner's times follow a rule of the test's, on whatever device it runs.
#pragma once

#include "measure/tune.h"
#include "support/backends.h"
#include "support/models.h"

#include <filesystem>

namespace redline::test {

inline Backends gpu_backends() {
    Backends out;
    for (const std::string& name : backend_names())
        if (name != "cpu")
            if (auto backend = open_wanted(name)) out.push_back(std::move(backend));
    return out;
}

inline SessionOptions tune_options(uint32_t batch = 160) {
    SessionOptions options;
    options.context = 512;
    options.batch = batch;
    return options;
}

// The factor by which a value makes a kernel faster, by an arbitrary rule.
inline double factor_of(const std::string& name, uint32_t value) {
    return 1.0 / (1.0 + 0.05 * double((value + name.size()) % 7));
}

// A device on which steps take what a rule says, and none is run to be timed.
class RuleClock : public TuneClock {
public:
    using Rule = std::function<double(const TimedStep&)>;
    explicit RuleClock(Rule rule) : rule_(std::move(rule)) {}
    double now() override { return now_; }
    Result<double> time(const TimedStep& what, const std::function<Status()>&) override {
        const double seconds = rule_(what);
        now_ += seconds;
        return seconds;
    }

private:
    Rule rule_;
    double now_ = 0.0;
};

// Values make kernels faster by factor_of().
class FakeClock : public RuleClock {
public:
    explicit FakeClock(double strength = 1.0, double step = 1e-3)
        : RuleClock([=](const TimedStep& what) {
              double seconds = step;
              for (const auto& [name, value] : what.variant)
                  seconds *= 1.0 - strength * (1.0 - factor_of(name, value));
              return seconds;
          }) {}
};

inline Tuning tuned(const Model& model, Backend& backend, FakeClock& clock, TuneOptions how = {}) {
    how.copy_bytes = 1 << 20;
    return must(
        tune(model, backend, tune_options(), clock, how, [](const TunedKernel&) { return Status(); }));
}

struct CacheFolder {
    std::filesystem::path path;
    CacheFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "redline_tune_XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~CacheFolder() { std::filesystem::remove_all(path); }
};

}  // namespace redline::test
