// Measures the cost of passing from one place to another within a step.
#include "measure/rates.h"
#include "places/pipeline.h"
#include "places/timing.h"

namespace redline {

namespace {

constexpr uint32_t kPairs = 8;     // parts on the CPU, each followed by one on the device
constexpr uint32_t kProducts = 4;  // products per part: together about as long as a layer's experts
constexpr uint64_t kWidth = 2048;
constexpr uint32_t kAll = 2 * kPairs * kProducts;

// A chain of products, each with a separate matrix.
Result<Plan> chain_of_products(const Format& format) {
    std::vector<WeightInfo> weights = {{{"input", find_format("F32"), {1, 1, kWidth}}, WeightRole::matrix}};
    for (uint32_t i = 0; i < kAll; ++i)
        weights.push_back({{fmt::format("matrix{}", i), &format, {1, kWidth, kWidth}}, WeightRole::matrix});
    PlanBuilder builder(weights, {1, 1, CacheType::f16}, 1, 1);
    Slot x = builder.embed({0});
    for (uint32_t i = 0; i < kAll; ++i) x = builder.linear(x, {int32_t(i + 1)});
    const Slot last = builder.slot(uint32_t(kWidth), true);
    builder.append(SelectRows{x, last});
    builder.output(last);
    return std::move(builder).finish();
}

// The chain of products, alternately on the CPU and the device.
class Chain {
public:
    static Result<Chain> make(Backend& cpu, Backend& device, const Format& format) {
        const Plan whole = RL_TRY(chain_of_products(format));
        std::vector<size_t> cuts, places = {0};
        for (uint32_t i = 1; i < 2 * kPairs; ++i) {
            cuts.push_back(1 + i * kProducts);  // behind the embedding
            places.push_back(i % 2);
        }
        const std::vector<PlanPart> parts = RL_TRY(cut(whole, cuts, places));
        Chain chain;
        std::vector<std::unique_ptr<Executable>> by_place[2] = {
            RL_TRY(chain.recorded(cpu, parts, 0)),
            RL_TRY(chain.recorded(device, parts, 1)),
        };
        std::vector<Pipeline::Part> all;
        for (size_t i = 0; i < parts.size(); ++i) {
            const auto crossings = [&](const std::vector<Slot>& slots) {
                std::vector<Pipeline::Crossing> made;
                for (const Slot slot : slots) made.push_back({slot, whole.slot(slot).width});
                return made;
            };
            all.push_back(
                {std::move(by_place[i % 2][i / 2]), crossings(parts[i].takes), crossings(parts[i].leaves)});
            chain.alone_[i % 2].push_back(all.back().executable);
        }
        chain.pipeline_ = std::make_unique<Pipeline>(std::move(all));
        return chain;
    }

    Result<double> seconds() {
        const StepParams step = step_;
        return seconds_of([&] { return pipeline_->run(step); });
    }
    // The seconds of one place's parts, without the others between them.
    Result<double> seconds_alone(size_t place) {
        const StepParams first = step_;
        StepParams further = first;
        further.input = input_;
        return seconds_of([&]() -> Status {
            for (const auto& executable : alone_[place])
                RL_TRY(executable->run(executable == alone_[0].front() ? first : further));
            return {};
        });
    }

private:
    Chain() : step_(std::span(&kToken, 1), 0, 1) {}

    Result<std::vector<std::unique_ptr<Executable>>> recorded(Backend& backend,
                                                              const std::vector<PlanPart>& parts,
                                                              size_t place) {
        PlanGroup group;
        for (size_t i = place; i < parts.size(); i += 2)
            group.push_back(RL_TRY(lower(parts[i].plan, backend)));
        ZeroSource zeros;
        weights_[place] = RL_TRY(backend.load(parts[place].plan.weights, zeros, {}));
        caches_[place] = RL_TRY(backend.make_caches({}));
        return backend.record_group(std::move(group), *weights_[place], *caches_[place], Record::replay);
    }

    static constexpr int32_t kToken = 0;
    SequenceStep step_;
    std::vector<float> input_ = std::vector<float>(kWidth);
    std::unique_ptr<WeightStore> weights_[2];
    std::unique_ptr<CacheStore> caches_[2];
    std::vector<std::shared_ptr<Executable>> alone_[2];
    std::unique_ptr<Pipeline> pipeline_;
};

Result<double> measure_crossing(Backend& cpu, Backend& device, const Format& format) {
    Chain chain = RL_TRY(Chain::make(cpu, device, format));
    RL_TRY(chain.seconds());  // the first run includes initialization
    // Alternating, so that other load of the machine affects all three alike; with enough rounds to outlast
    // threads that a driver may start in the background, which delay the slowest thread of each product.
    constexpr size_t kRounds = 20, kMostRounds = 100;
    constexpr double kEnoughSeconds = 0.3;
    std::vector<double> cpu_alone, device_alone, together;
    double total = 0.0;
    while (together.size() < kRounds || (together.size() < kMostRounds && total < kEnoughSeconds)) {
        cpu_alone.push_back(RL_TRY(chain.seconds_alone(0)));
        device_alone.push_back(RL_TRY(chain.seconds_alone(1)));
        together.push_back(RL_TRY(chain.seconds()));
        total += cpu_alone.back() + device_alone.back() + together.back();
    }
    const double more =
        median(std::move(together)) - median(std::move(cpu_alone)) - median(std::move(device_alone));
    return std::max(0.0, more) / (2 * kPairs);
}

}  // namespace

std::optional<double> crossing_seconds(Backend& cpu, Backend& device, const Format& format) {
    const Result<double> seconds = measure_crossing(cpu, device, format);
    return seconds ? std::optional(seconds.value()) : std::nullopt;
}

}  // namespace redline
