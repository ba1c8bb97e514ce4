// Each op of a plan by itself.
#pragma once

#include "measure/comparison.h"
#include "support/models.h"

#include <bit>

namespace redline::test {

// The values that a step wrote to a slot; the ids that a Route writes first are whole numbers.
inline std::vector<float> written(const TraceStep& traced, size_t slot) {
    const std::span<const float> values = traced.written[slot];
    std::vector<float> all(values.begin(), values.end());
    if (slot == 0 && std::holds_alternative<Route>(traced.step->op))
        for (float& value : all) value = float(std::bit_cast<int32_t>(value));
    return all;
}

// True when an op writes to a column of its slot: copies may leave columns to others.
inline bool writes_to(const Op& op, uint64_t column, const Plan& plan) {
    if (const Product* heads = product_by(By::head, op))
        return column % heads->strides.y < plan.weight(heads->w()).tensor.shape.rows;
    const auto* copy = std::get_if<CopyParts>(&op);
    if (!copy) return true;
    if (column < copy->y_first) return false;
    const uint64_t at = column - copy->y_first;
    return at / copy->y_stride < copy->parts && at % copy->y_stride < copy->width;
}

// A rotation's errors are those of its angle, as large as the larger of the two elements that it turns: of a
// pair that is the size by which a bound is judged. Bounds stay.
inline std::vector<Bounded> sized_by_pairs(std::span<const Bounded> values, const Op& op, const Plan& plan) {
    std::vector<Bounded> all(values.begin(), values.end());
    const auto* turn = std::get_if<Rope>(&op);
    if (!turn) return all;
    const RopeSpec& rope = plan.ropes[turn->rope];
    const size_t pairs = rope.inverse_frequency.size();
    for (size_t begin = turn->first; begin < all.size(); begin += turn->head_dim)
        for (size_t i = 0; i < pairs; ++i) {
            Bounded& a = all[begin + (rope.half_split ? i : 2 * i)];
            Bounded& b = all[begin + (rope.half_split ? i + pairs : 2 * i + 1)];
            a.magnitude = b.magnitude = std::max(a.magnitude, b.magnitude);
        }
    return all;
}

// Holds each op of a step to the reference, which takes what the backend computed as exact before it goes on:
// worst cases that come on top of each other would bound nothing.
inline void check_each_op(Executable& executable, Reference& reference, const Plan& plan,
                          const StepParams& step, std::span<const Precision> precisions) {
    size_t index = 0;
    must(executable.run_traced(step, [&](const TraceStep& traced) {
        const Op& op = traced.step->op;
        reference.run_step(step, index, precisions[index]);
        for (size_t w = 0; w < traced.written.size(); ++w) {
            const Slot slot = access(op).writes[w];
            const std::vector<float> values = written(traced, w);
            std::vector<float> compared;
            std::vector<Bounded> want;
            const std::vector<Bounded> all = sized_by_pairs(reference.slot(slot), op, plan);
            for (size_t i = 0; i < values.size(); ++i) {
                if (!writes_to(op, i % plan.slot(slot).width, plan)) continue;
                compared.push_back(values[i]);
                want.push_back(all[i]);
            }
            const Comparison got = compare(compared, want);
            INFO("step ", index, " ", op_name(op), " of ", step.tokens.size(), " rows: worst at ", got.worst,
                 ": got ", got.got, ", want ", got.want, ", bound ", got.bound, ", ", got.outside, " of ",
                 got.count, " outside; spread ", got.spread, ", farthest ", got.farthest);
            CHECK(got.worst_fraction <= 1.0);
            CHECK(got.loosest_bound <= kLoosestBound);
            CHECK(by_chance(got));
            reference.assign(slot, values);
        }
        ++index;
    }));
    CHECK(index == precisions.size());
}

}  // namespace redline::test
