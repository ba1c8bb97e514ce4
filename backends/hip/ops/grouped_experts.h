// Mixtures of experts, many rows at a time.
#pragma once

#include "steps.h"

namespace redline::hip {

// Products of many rows with experts, on matrix units: places are brought into the order of their experts, so
// that each expert's matrix is read once.
class GroupedExperts {
public:
    // The values of its choices.
    struct Chosen {
        uint32_t unsorted, spread, tile_tokens;
        bool int8;
    };

    GroupedExperts(const Product& op, const Plan& plan, const DeviceReport& report)
        : tensor_(plan.weight(op.w()).tensor),
          narrow_(gpu::default_of(gpu::kExpertDefaults, "tile_tokens", class_of(report))),
          used_(op.experts.used),
          per_expert_(op.experts.per_expert),
          possible_(tensor_.shape.cols % 32 == 0 && tensor_.format->name != "F32") {}

    // `unsorted`: the most rows whose places are not sorted.
    bool takes(uint64_t rows, uint32_t unsorted) const { return possible_ && rows > unsorted; }
    // The groups, x as halfs or in int8, and results per place where `weighted`.
    uint64_t scratch(const Plan& plan, bool weighted) const {
        if (!possible_) return 0;
        const Parts at = parts(plan.max_rows);
        return at.results + (weighted ? places(plan.max_rows) * tensor_.shape.rows * 4 : 0);
    }
    // `dots`: what it does not take is multiplied in int8.
    Precision precision(uint64_t rows, bool dots, const Chosen& how) const {
        const Path path = takes(rows, how.unsorted) ? Path::matrices : dots ? Path::dot_own : Path::floats;
        return precision_of(in_bytes(path, how.int8), *tensor_.format);
    }
    // Where weighted results per place go.
    float* results(const View& view) const { return view.scratch_at(parts(view.rows).results); }

    // So many times as many tiles as an expert has on average are launched: blocks go on where there are
    // more.
    Choices choices(RowClass rows) const {
        if (!possible_ || (rows != RowClass::some && rows != RowClass::many)) return {};
        Default by_places = narrow_;
        by_places.value = 0;
        Choices all = {choice("tile_tokens", by_places, {gpu::kNarrowPlaces, gpu::kWidePlaces}),
                       choice("spread", expert_default("spread"), {1, 2})};
        if (rows == RowClass::some)
            all.insert(all.begin(), crossover("unsorted_rows", some_unsorted(), {kFewRows, 16, 32, 64}));
        if (has_byte_kernels(*tensor_.format)) all.push_back(choice("int8", expert_default("int8"), {1}));
        return all;
    }
    static Default expert_default(std::string_view choice) {
        return gpu::default_of(gpu::kExpertDefaults, choice, {.hip = true});
    }
    Default some_unsorted() const {
        return gpu::some_unsorted_rows({.hip = true}, tensor_.shape.count, used_);
    }
    Default unsorted() const { return gpu::unsorted_rows({.hip = true}, tensor_.shape.count, used_); }

    // y: (places, rows of one expert).
    Status launch(Launcher& launcher, const View& view, const args::ExpertArgs& op, float* y,
                  Chosen how) const;

private:
    struct Parts {
        uint64_t list = 0, begin, counts, halves, scales, results;
    };

    uint64_t places(uint64_t rows) const { return rows * used_; }

    Parts parts(uint64_t rows) const {
        const uint64_t x_rows = per_expert_ ? places(rows) : rows;
        Parts at;
        at.begin = aligned(places(rows) * 4);
        at.counts = at.begin + aligned(tensor_.shape.count * 4);
        at.halves = at.counts + aligned(tensor_.shape.count * 4);
        at.scales = at.halves + aligned(x_rows * tensor_.shape.cols * 2);
        at.results = at.scales + aligned(x_rows * 4);
        return at;
    }

    // Over ranges of rows, so that no launch takes long.
    Status launch_slices(Launcher& launcher, const View& view, args::ExpertTileArgs args, Chosen how) const;

    Tensor tensor_;
    Default narrow_;  // of "tile_tokens"
    uint32_t used_;
    bool per_expert_;
    bool possible_;
};

// Kernels whose places are sorted in steps of many rows.
class ChosenExpertsKernel : public HipKernel {
protected:
    GroupedExperts::Chosen chosen_for(const GroupedExperts& grouped, uint64_t rows) const {
        const RowClass size = row_class_of(rows);
        const uint32_t unsorted = size == RowClass::some
                                      ? chosen(size, "unsorted_rows", grouped.some_unsorted().value)
                                      : grouped.unsorted().value;
        return {unsorted, chosen(size, "spread", grouped.expert_default("spread").value),
                chosen(size, "tile_tokens", 0),
                chosen(size, "int8", grouped.expert_default("int8").value) != 0};
    }
};

}  // namespace redline::hip
