// Mixtures of experts, many rows at a time.
#pragma once

#include "steps.h"

namespace redline::hip {

// Products of many rows with experts, on matrix units: places are brought into the order of their experts, so
// that each expert's matrix is read once.
class GroupedExperts {
public:
    // `places_of_x`: x has a row per place, not per token.
    GroupedExperts(const Tensor& w, uint32_t used, bool places_of_x)
        : tensor_(w),
          used_(used),
          per_expert_(places_of_x),
          possible_(w.shape.cols % 32 == 0 && w.format->name != "F32") {}

    bool takes(uint64_t rows) const {
        return possible_ && gpu::sorts_experts(rows, used_, tensor_.shape.count, gpu::kHipPlaces);
    }
    // The groups, x as halfs or in int8, and results per place where `weighted`.
    uint64_t scratch(const Plan& plan, bool weighted) const {
        if (!possible_) return 0;
        const Parts at = parts(plan.max_rows);
        return at.results + (weighted ? places(plan.max_rows) * tensor_.shape.rows * 4 : 0);
    }
    // `dots`: what it does not take is multiplied in int8.
    Precision precision(uint64_t rows, bool dots, bool int8) const {
        const Path path = takes(rows) ? Path::matrices : dots ? Path::dot_own : Path::floats;
        return precision_of(in_bytes(path, int8), *tensor_.format);
    }
    // Where weighted results per place go.
    float* results(const View& view) const { return view.scratch_at(parts(view.rows).results); }

    // So many times as many tiles as an expert has on average are launched: blocks go on where there are
    // more.
    static constexpr uint32_t kSpread = 4;
    Choices choices(RowClass rows) const {
        if (!possible_ || (rows != RowClass::some && rows != RowClass::many)) return {};
        Choices all = {choice("spread", kSpread, {1, 2})};
        if (has_byte_kernels(*tensor_.format)) all.push_back(choice("int8", 0, {1}));
        return all;
    }
    // The values of these choices.
    struct Chosen {
        uint32_t spread;
        bool int8;
    };

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
    uint32_t used_;
    bool per_expert_;
    bool possible_;
};

}  // namespace redline::hip
