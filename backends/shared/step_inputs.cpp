#include "backends/shared/step_inputs.h"

#include "backends/shared/products.h"

#include <algorithm>
#include <cstring>

namespace redline {

uint32_t StepLayout::most_segments(const Plan& plan, uint32_t rows, StepKind kind) {
    return of_several(kind) ? std::min(rows, plan.sizing.sequences) : 1;
}

uint32_t StepLayout::most_lone(const Plan& plan, uint32_t rows) {
    return uint32_t(std::min<uint64_t>(rows, uint64_t(plan.sizing.sequences) * kLoneRows));
}

uint32_t StepLayout::most_tiles(const Plan& plan, uint32_t rows) {
    return (rows + most_segments(plan, rows, StepKind::mixed) * (kTileRows - 1)) / kTileRows;
}

StepLayout::StepLayout(const Plan& plan, uint32_t rows, StepKind step_kind) : kind(step_kind) {
    bytes = aligned(sizeof(StepHeader) + uint64_t(rows) * sizeof(int32_t));
    const uint64_t segments = most_segments(plan, rows, kind);
    if (kind != StepKind::alone) {
        output_rows = bytes;
        places = output_rows + aligned(uint64_t(rows) * sizeof(uint32_t));
        pages = places + aligned(uint64_t(rows) * sizeof(StepPlace));
        bytes = pages + aligned(segments * page_entries(plan.caches) * sizeof(uint32_t));
    }
    if (kind == StepKind::mixed) {
        tiles = bytes;
        bytes += aligned(most_tiles(plan, rows) * sizeof(StepTile));
    }
    if (std::any_of(plan.caches.begin(), plan.caches.end(),
                    [](const CacheInfo& c) { return c.is_state(); })) {
        states = bytes;
        bytes += aligned(segments * sizeof(StepState));
        row_states = bytes;
        bytes += aligned(uint64_t(rows) * sizeof(uint32_t));
    }
    for (const RopeSpec& rope : plan.ropes) {
        ropes.push_back(bytes);
        bytes += aligned(rows * rope.table_floats() * sizeof(float));
    }
    input = bytes;
    bytes += aligned(plan.input_floats(rows) * sizeof(float));
    lookups = bytes;
    bytes += aligned(plan.lookup_floats(rows) * sizeof(float));
}

void StepLayout::write_places(const Plan& plan, const StepParams& params, std::byte* to) const {
    const uint32_t entries = page_entries(plan.caches);
    auto* place = reinterpret_cast<StepPlace*>(to + places);
    auto* list = reinterpret_cast<uint32_t*>(to + pages);
    uint32_t begin = 0;
    for (const Segment& segment : segments_of(params.rows)) {
        const std::span<const uint32_t> own = params.pages_of(segment.first);
        std::copy_n(own.begin(), std::min<size_t>(own.size(), entries), list + begin);
        for (uint32_t row = segment.first; row < segment.first + segment.rows; ++row)
            *place++ = {params.rows[row].position, begin};
        begin += entries;
    }
    std::ranges::copy(std::as_bytes(params.outputs), to + output_rows);
}

static_assert(kNoStates == kZeroState);

void StepLayout::write_states(const StepParams& params, std::byte* to) const {
    auto* state = reinterpret_cast<StepState*>(to + states);
    for (const Segment& segment : segments_of(params.rows)) {
        const StateRows at = params.states_of(segment.first);
        const bool begins = params.rows[segment.first].position == 0;
        *state++ = {segment.first, segment.rows, begins ? kZeroState : at.from, at.to};
    }
    std::ranges::copy(std::as_bytes(params.row_states), to + row_states);
}

void StepLayout::write_tiles(const StepParams& params, StepHeader& header, std::byte* to) const {
    auto* const tile = reinterpret_cast<StepTile*>(to + tiles);
    for (const Segment& segment : segments_of(params.rows)) {
        const bool lone = segment.rows <= kLoneRows && header.tile_count == 0;
        if (lone) header.lone_rows = segment.first + segment.rows;
        for (uint32_t row = 0; !lone && row < segment.rows; row += kTileRows)
            tile[header.tile_count++] = {segment.first + row,
                                         segment.first + std::min(row + kTileRows, segment.rows)};
    }
}

void StepLayout::write(const Plan& plan, const StepParams& params, std::byte* to) const {
    StepHeader header = {};
    header.rows = uint32_t(params.tokens.size());
    header.position = params.rows[0].position;
    header.first_output = params.outputs[0];
    header.outputs = uint32_t(params.outputs.size());
    header.best_among = params.best_among;
    header.output_rows = of_several(kind) ? uint32_t(output_rows / 4) : 0;
    header.places = uint32_t(places / 4);
    header.pages = uint32_t(pages / 4);
    header.segments = uint32_t(segments_of(params.rows).size());
    header.states = uint32_t(states / 4);
    header.row_states = params.row_states.empty() ? 0 : uint32_t(row_states / 4);
    header.tiles = uint32_t(tiles / 4);
    if (tiles > 0) write_tiles(params, header, to);
    std::memcpy(to, &header, sizeof(header));
    if (states > 0) write_states(params, to);
    if (kind != StepKind::alone) write_places(plan, params, to);
    std::memcpy(to + sizeof(header), params.tokens.data(), params.tokens.size_bytes());
    if (!params.input.empty()) std::memcpy(to + input, params.input.data(), params.input.size_bytes());
    if (plan.lookup) std::memcpy(to + lookups, params.lookups.data(), params.lookups.size_bytes());
    for (size_t r = 0; r < plan.ropes.size(); ++r) {
        auto* table = reinterpret_cast<float*>(to + ropes[r]);
        for (const Row& row : params.rows) {
            plan.ropes[r].fill_table(row.position, table);
            table += plan.ropes[r].table_floats();
        }
    }
}

}  // namespace redline
