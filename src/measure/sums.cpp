#include "measure/sums.h"

#include "places/ranked_step.h"
#include "places/timing.h"

#include <cmath>
#include <cstring>
#include <numeric>

namespace redline {

namespace {

constexpr uint32_t kSums = 8;  // of a step of the host's
constexpr const char* kHost = "the host";

// The rows of a rank, as the table of an embedding.
class RowSource : public ByteSource {
public:
    RowSource(uint64_t floats, size_t rank) : rows_(floats) {
        uint32_t state = uint32_t(rank + 1) * 2654435761u;
        for (float& value : rows_) {
            state = state * 1664525u + 1013904223u;
            value = std::ldexp(float(int32_t(state)) * 0x1p-31f, int(state >> 8 & 7));
        }
    }
    Status read(size_t, uint64_t offset, std::span<std::byte> out) override {
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(rows_.data()) + offset, out.size());
        return {};
    }
    std::span<const float> rows() const { return rows_; }

private:
    std::vector<float> rows_;
};

// Rows that are looked up, and `sums` steps that change nothing.
Result<Plan> plan_of(uint32_t rows, uint32_t width, uint32_t sums) {
    std::vector<WeightInfo> weights = {{{"rows", find_format("F32"), {1, rows, width}}, WeightRole::matrix}};
    PlanBuilder builder(weights, {rows, rows, CacheType::f16}, rows, 1);
    const Slot x = builder.embed({0}), last = builder.slot(width, true);
    for (uint32_t i = 0; i < sums; ++i) builder.append(each::scale(x, 1.0f));
    builder.append(SelectRows{x, last});
    builder.output(last);
    return std::move(builder).finish();
}

// Steps with as many sums, which the host makes.
class HostStep {
public:
    static Result<HostStep> make(std::span<Backend* const> ranks, uint32_t rows, uint32_t width,
                                 uint32_t sums) {
        HostStep made(rows);
        const Plan whole = RL_TRY(plan_of(rows, width, sums));
        std::vector<size_t> cuts(sums);
        std::iota(cuts.begin(), cuts.end(), size_t(1));
        const std::vector<PlanPart> parts = RL_TRY(cut(whole, cuts, std::vector<size_t>(sums + 1)));
        std::vector<RankedStep::Rank> all;
        for (size_t rank = 0; rank < ranks.size(); ++rank)
            all.push_back(RL_TRY(made.recorded(*ranks[rank], rank, whole, parts)));
        made.step_ = std::make_unique<RankedStep>(std::move(all), RL_TRY(RankTeam::start(ranks.size())));
        return made;
    }

    Result<double> seconds() {
        const SequenceStep step(tokens_, 0, 1);
        return seconds_of([&] { return step_->run(step); });
    }
    // How many outputs are not the sums of the last row, added up over and over.
    uint64_t wrong(uint32_t width, uint32_t sums) const {
        std::vector<std::vector<float>> rows;
        for (const auto& source : sources_) {
            const std::span<const float> last = source->rows().last(width);
            rows.emplace_back(last.begin(), last.end());
        }
        std::vector<float> sum(width);
        for (uint32_t i = 0; i < sums; ++i) {
            sum = rows[0];
            for (size_t rank = 1; rank < rows.size(); ++rank)
                for (size_t e = 0; e < width; ++e) sum[e] += rows[rank][e];
            for (std::vector<float>& row : rows) row = sum;
        }
        uint64_t count = 0;
        for (size_t e = 0; e < width; ++e) count += std::memcmp(&step_->output()[e], &sum[e], 4) != 0;
        return count;
    }

private:
    explicit HostStep(uint32_t rows) : tokens_(rows) { std::iota(tokens_.begin(), tokens_.end(), 0); }

    Result<RankedStep::Rank> recorded(Backend& backend, size_t rank, const Plan& whole,
                                      const std::vector<PlanPart>& parts) {
        PlanGroup group;
        for (const PlanPart& part : parts) group.push_back(RL_TRY(lower(part.plan, backend)));
        const SlotInfo& x = whole.slots[0];
        sources_.push_back(std::make_unique<RowSource>(uint64_t(tokens_.size()) * x.width, rank));
        weights_.push_back(RL_TRY(backend.load(parts[0].plan.weights, *sources_.back(), {})));
        caches_.push_back(RL_TRY(backend.make_caches({})));
        auto executables =
            RL_TRY(backend.record_group(std::move(group), *weights_.back(), *caches_.back(), Record::replay));
        RankedStep::Rank made{{}, {0, x.width}};
        for (size_t i = 0; i < parts.size(); ++i) {
            const auto crossings = [&](const std::vector<Slot>& slots) {
                std::vector<RankedStep::Crossing> all;
                for (const Slot slot : slots) all.push_back({slot, x.width});
                return all;
            };
            made.parts.push_back(
                {std::move(executables[i]), crossings(parts[i].takes), crossings(parts[i].leaves), {}});
            if (i + 1 < parts.size()) made.parts.back().sums = made.parts.back().leaves;
        }
        return made;
    }

    std::vector<Token> tokens_;
    std::vector<std::unique_ptr<RowSource>> sources_;
    std::vector<std::unique_ptr<WeightStore>> weights_;
    std::vector<std::unique_ptr<CacheStore>> caches_;
    std::unique_ptr<RankedStep> step_;
};

}  // namespace

SumMeter SumMeter::create(std::vector<Backend*> ranks) {
    SumMeter meter;
    meter.ranks_ = std::move(ranks);
    auto* const links = dynamic_cast<LinksRanks*>(meter.ranks_.front());
    for (const SumWay way : kSumWays) {
        Way made{std::string(sum_way_name(way)), {}, {}};
        if (!links || !links->may_link(meter.ranks_)) {
            made.problem = "these devices do not add rows by themselves";
        } else if (auto link = links->link(meter.ranks_, 4096, way); !link) {
            made.problem = link.error().message;
        } else {
            made.text = link.value()->text();
        }
        meter.ways_.push_back(std::move(made));
    }
    meter.ways_.push_back({kHost, {}, {}});
    return meter;
}

Result<SumTime> SumMeter::time(size_t way, uint64_t floats, uint32_t repeats) {
    if (way == std::size(kSumWays)) return time_host(floats, repeats);
    const auto link = RL_TRY(dynamic_cast<LinksRanks&>(*ranks_.front()).link(ranks_, floats, kSumWays[way]));
    const SumTrialResult got = RL_TRY(link->try_sums({floats, repeats}));
    return SumTime{got.seconds, got.compared, got.wrong};
}

// By how much a step with sums takes longer than one without.
Result<SumTime> SumMeter::time_host(uint64_t floats, uint32_t repeats) const {
    constexpr uint64_t kRow = 8192;
    constexpr uint32_t kMostRepeats = 2000;  // it takes much longer than the others
    const auto rows = uint32_t(floats % kRow == 0 ? floats / kRow : 1), width = uint32_t(floats / rows);
    HostStep with = RL_TRY(HostStep::make(ranks_, rows, width, kSums)),
             without = RL_TRY(HostStep::make(ranks_, rows, width, 0));
    RL_TRY(with.seconds());  // the first run includes initialization
    RL_TRY(without.seconds());
    SumTime time;
    std::vector<double> all, others;
    for (uint32_t i = 0; i < std::min(repeats, kMostRepeats); i += kSums) {
        all.push_back(RL_TRY(with.seconds()));
        time.wrong += with.wrong(width, kSums);
        others.push_back(RL_TRY(without.seconds()));
    }
    time.compared = all.size() * kSums;
    time.seconds = std::max(0.0, median(std::move(all)) - median(std::move(others))) / kSums;
    return time;
}

}  // namespace redline
