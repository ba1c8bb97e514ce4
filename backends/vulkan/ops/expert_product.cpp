#include "expert_product.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

// Tiles have room for so many entries of one expert at least.
constexpr uint32_t kFewestEntries = 32;

uint32_t entries_of_tile(uint64_t entries, uint64_t experts) {
    const gpu::Work work = {.tokens = uint32_t(entries / experts)};
    return gpu::default_of(gpu::kExpertDefaults, "tile_tokens", {}, work).value;
}

}  // namespace

// As shaders/expert_group.comp counts them: every expert may end in a tile that is not full.
uint64_t ExpertProduct::most_tiles(uint64_t rows, uint64_t tile_entries) const {
    return rows * used_ / tile_entries + shape_.count;
}

ExpertProduct::Layout ExpertProduct::layout(uint64_t rows) const {
    Layout l = {};
    l.order = aligned(most_tiles(rows, kFewestEntries) * 16);
    l.halves = l.order + aligned(rows * used_ * 4);
    l.scales = l.halves + aligned(x_rows(rows) * shape_.cols * 2);
    l.bytes = l.scales + aligned(x_rows(rows) * 4);
    return l;
}

Status ExpertProduct::record_groups(Recorder& recorder, const View& view) const {
    const uint32_t experts = uint32_t(shape_.count);
    const uint32_t threads = std::min(256u, 32 * recorder.device().subgroup());
    // A work-group looks at all entries, twice; experts are cut so that no dispatch alone fills a submission.
    const double each = 16.0 * double(view.rows) * used_;
    return in_slices(recorder, experts, each, 1, [&](uint32_t first, uint32_t count) {
        const args::GroupArgs push = {experts, used_, first, uint32_t(most_tiles(view.rows, tile_entries_))};
        return recorder.dispatch({"expert_group", 4, 1, {threads, tile_entries_}},
                                 {view.slot(ids_), tiles_, order_, view.step}, push, {count}, each * count);
    });
}

Tiles ExpertProduct::expert_tiles(const Device& device, uint32_t most_entries) const {
    return coop_tiles(device, path_, kTiled, *weight_layout(*format_), most_entries);
}

Status ExpertProduct::prepare(Recorder& recorder, const View& view) {
    const Layout l = layout(view.rows);
    const uint64_t rows = x_rows(view.rows);
    path_ = int8 ? Path::int8_matrices : path_of(recorder.device(), *format_, shape_.cols, view.rows);
    // The cut that the device's shared memory allows has no more room than was asked for.
    const uint32_t entries = room > 0 ? room : entries_of_tile(uint64_t(view.rows) * used_, shape_.count);
    tile_entries_ = expert_tiles(recorder.device(), entries).tokens;
    tiles_ = view.scratch_at(0, l.order);
    order_ = view.scratch_at(l.order, l.halves - l.order);
    halves_ = view.scratch_at(l.halves, l.scales - l.halves);
    scales_ = view.scratch_at(l.scales, l.bytes - l.scales);
    if (int8) {
        // Codes are half as many bytes; scales, eight bytes for each 32 of them, stand behind.
        halves_.bytes = aligned(rows * shape_.cols);
        scales_ = view.scratch_at(l.halves + halves_.bytes, rows * shape_.cols / 4);
    }
    recorder.claim_scratch();
    RL_TRY(record_groups(recorder, view));
    const args::HalvesArgs push = {uint32_t(shape_.cols), per_expert_ ? used_ : 1, RL_ROWS_ALL, 0, 0.0f};
    const Binding x = view.slot(x_);
    RL_TRY(int8 ? record_codes(recorder, view, push, x, halves_, scales_, view.step, rows)
                : record_halves(recorder, view, path_, push, x, halves_, scales_, view.step, rows));
    recorder.barrier();
    return {};
}

// Tiles are cut so that no dispatch alone fills a submission.
Status ExpertProduct::record_part(Recorder& recorder, const View& view, const PlacedWeight& w,
                                  const WeightPart& part, Binding y, uint32_t first_row,
                                  uint32_t end_row) const {
    const Tiles tiles = expert_tiles(recorder.device(), tile_entries_);
    const double per_entry = 2.0 * double(end_row - first_row) * double(w.cols);
    args::ExpertCoopArgs push = {};
    push.rows = uint32_t(shape_.rows);
    push.cols = uint32_t(w.cols);
    push.units = w.units(part);
    push.used = used_;
    push.first_flat = uint32_t(part.first);
    push.flat_rows = uint32_t(part.rows);
    push.per_expert = per_expert_;
    push.first_row = first_row;
    push.end_row = end_row;
    push.stride = end_row - first_row;
    const uint32_t step = slice_of(recorder.flops_per_slice() / per_entry, tiles.tokens);
    return in_slices(
        uint32_t(most_tiles(view.rows, tiles.tokens)), step, [&](uint32_t first, uint32_t count) {
            push.first_tile = first;
            const uint64_t entries = std::min(uint64_t(count) * tiles.tokens, uint64_t(view.rows) * used_);
            return recorder.dispatch({tiles.shader, 6, 1, tiles.constants},
                                     {part.buffer, halves_, y, tiles_, order_, scales_}, push,
                                     {(end_row - first_row + tiles.rows - 1) / tiles.rows, count},
                                     per_entry * double(entries));
        });
}

Status ExpertProduct::record(Recorder& recorder, const View& view, Weight w, Binding y, uint32_t first_row,
                             uint32_t end_row) const {
    const PlacedWeight& placed = view.weight(w);
    for (const WeightPart& part : placed.parts)
        RL_TRY(record_part(recorder, view, placed, part, y, first_row, end_row));
    return {};
}

}  // namespace redline::vulkan
