// Products of a step's entries (token, place) with the weights of their experts on matrix units: entries are
// sorted by expert, and tiles of one expert's entries computed as in a dense product.
#pragma once

#include "steps.h"

namespace redline::vulkan {

class ExpertProduct {
public:
    // `w`: the shape and format of the weights to come.
    ExpertProduct(const Product& op, const Tensor& w)
        : x_(op.x),
          ids_(op.experts.ids),
          used_(op.experts.used),
          per_expert_(op.experts.per_expert),
          shape_(w.shape),
          format_(w.format) {}

    // Room of a tile for entries; 0: as their number has it.
    uint32_t room = 0;
    bool int8 = false;  // Path::int8_matrices
    static constexpr std::string_view kTiled = "expert_coop";
    static Choices choices() {
        Default usual = gpu::default_of(gpu::kExpertDefaults, "tile_tokens", {});
        usual.value = 0;
        return {gpu::by_shape("tile_tokens", usual, {32, 64, 128})};
    }

    // Of scratch, from offset 0, for at most so many rows.
    uint64_t scratch(uint64_t rows) const { return layout(rows).bytes; }
    // Records the sorting and the activations; afterwards the products can be recorded.
    Status prepare(Recorder& recorder, const View& view);
    // y[entry][r - first_row] = w[expert][r] . x for rows first_row .. end_row - 1 of the experts.
    Status record(Recorder& recorder, const View& view, Weight w, Binding y, uint32_t first_row,
                  uint32_t end_row) const;

private:
    struct Layout {  // offsets
        uint64_t order, halves, scales, bytes;
    };
    Layout layout(uint64_t rows) const;
    uint64_t x_rows(uint64_t rows) const { return per_expert_ ? rows * used_ : rows; }
    uint64_t most_tiles(uint64_t rows, uint64_t tile_entries) const;
    Tiles expert_tiles(const Device& device, uint32_t most_entries) const;
    Status record_groups(Recorder& recorder, const View& view) const;
    Status record_part(Recorder& recorder, const View& view, const PlacedWeight& w, const WeightPart& part,
                       Binding y, uint32_t first_row, uint32_t end_row) const;

    Slot x_;
    Slot ids_;
    uint32_t used_;
    bool per_expert_;
    Shape shape_;
    const Format* format_;
    Path path_ = Path::matrices;
    uint32_t tile_entries_ = 0;
    Binding tiles_, order_, halves_, scales_;
};

}  // namespace redline::vulkan
