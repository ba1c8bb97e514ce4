// Repacking of weight rows into panels, and back.
#include "linear.h"

#include "base/result.h"

#include <cstring>

namespace redline::cpu {

namespace {

struct PanelLayout {
    uint32_t gguf_id;
    uint32_t block_bytes;  // of the file, to hold the fields against
    uint8_t count;
    PanelField fields[5];
};

// Scales stand before codes where the file has them first; the order follows the file but for Q2_K and Q3_K.
constexpr PanelLayout kLayouts[] = {
    {0, 4, 1, {{0, 4, 4}}},                                             // F32
    {1, 2, 1, {{0, 2, 2}}},                                             // F16
    {30, 2, 1, {{0, 2, 2}}},                                            // BF16
    {2, 18, 2, {{0, 2, 2}, {2, 16, 4}}},                                // Q4_0: d, codes
    {3, 20, 3, {{0, 2, 2}, {2, 2, 2}, {4, 16, 4}}},                     // Q4_1: d, m, codes
    {6, 22, 3, {{0, 2, 2}, {2, 4, 4, true}, {6, 16, 4}}},               // Q5_0: d, fifth bits, codes
    {7, 24, 4, {{0, 2, 2}, {2, 2, 2}, {4, 4, 4, true}, {8, 16, 4}}},    // Q5_1
    {8, 34, 2, {{0, 2, 2}, {2, 32, 4}}},                                // Q8_0
    {10, 84, 4, {{80, 2, 2}, {82, 2, 2}, {0, 16, 1}, {16, 64, 4}}},     // Q2_K: d, dmin, scales, codes
    {11, 110, 4, {{108, 2, 2}, {96, 12, 1}, {0, 32, 4}, {32, 64, 4}}},  // Q3_K: d, scales, high, codes
    {12, 144, 4, {{0, 2, 2}, {2, 2, 2}, {4, 12, 1}, {16, 128, 4}}},     // Q4_K
    {13, 176, 5, {{0, 2, 2}, {2, 2, 2}, {4, 12, 1}, {16, 32, 4}, {48, 128, 4}}},  // Q5_K
    {14, 210, 4, {{0, 128, 4}, {128, 64, 4}, {192, 16, 1}, {208, 2, 2}}},         // Q6_K
    {20, 18, 2, {{0, 2, 2}, {2, 16, 4}}},                                         // IQ4_NL
    {23, 136, 4, {{0, 2, 2}, {2, 2, 1}, {4, 4, 1}, {8, 128, 4}}},                 // IQ4_XS
    {39, 17, 2, {{0, 1, 1}, {1, 16, 4}}},                                         // MXFP4
};

constexpr bool fields_cover_blocks() {
    for (const PanelLayout& layout : kLayouts) {
        uint32_t bytes = 0;
        for (int i = 0; i < layout.count; ++i) bytes += layout.fields[i].bytes;
        if (bytes != layout.block_bytes) return false;
    }
    return true;
}
static_assert(fields_cover_blocks());

// Bit e of a row's 32 belongs to column e. Column 4v + i wants it in bit v of byte i, so that one shift
// brings the bits of four neighbouring columns into four neighbouring bytes.
uint32_t spread_bits(uint32_t word) {
    uint32_t out = 0;
    for (uint32_t e = 0; e < 32; ++e) out |= ((word >> e) & 1u) << (8 * (e % 4) + e / 4);
    return out;
}

uint32_t gather_bits(uint32_t word) {
    uint32_t out = 0;
    for (uint32_t e = 0; e < 32; ++e) out |= ((word >> (8 * (e % 4) + e / 4)) & 1u) << e;
    return out;
}

template <size_t kLane>
void interleave(const std::byte* rows, size_t row_bytes, size_t count, size_t elements, std::byte* out) {
    for (size_t e = 0; e < elements; ++e)
        for (size_t r = 0; r < count; ++r)
            std::memcpy(out + (e * kPanelRows + r) * kLane, rows + r * row_bytes + e * kLane, kLane);
}

void interleave_bits(const std::byte* rows, size_t row_bytes, size_t count, std::byte* out) {
    for (size_t r = 0; r < count; ++r) {
        uint32_t word;
        std::memcpy(&word, rows + r * row_bytes, 4);
        word = spread_bits(word);
        std::memcpy(out + r * 4, &word, 4);
    }
}

// The inverse of interleave for one row of a panel block.
void take_row(const std::byte* panel_block, std::span<const PanelField> fields, size_t row,
              std::byte* block) {
    for (const PanelField& field : fields) {
        std::byte* out = block + field.offset;
        for (size_t at = 0; at < field.bytes; at += field.lane)
            std::memcpy(out + at, panel_block + at * kPanelRows + row * field.lane, field.lane);
        if (field.bits) {
            uint32_t word;
            std::memcpy(&word, out, 4);
            word = gather_bits(word);
            std::memcpy(out, &word, 4);
        }
        panel_block += field.bytes * kPanelRows;
    }
}

}  // namespace

std::span<const PanelField> panel_fields(uint32_t gguf_id) {
    for (const PanelLayout& layout : kLayouts)
        if (layout.gguf_id == gguf_id) return {layout.fields, layout.count};
    return {};
}

void pack_panel(const Format& format, const std::byte* file_rows, size_t rows, size_t cols,
                std::byte* panel) {
    RL_CHECK(rows >= 1 && rows <= kPanelRows, "a panel of {} rows", rows);
    const size_t row_bytes = format.row_bytes(cols);
    const auto fields = panel_fields(format.gguf_id);
    if (rows < kPanelRows) std::memset(panel, 0, kPanelRows * row_bytes);
    if (fields.empty()) {
        std::memcpy(panel, file_rows, rows * row_bytes);
        return;
    }
    for (size_t at = 0; at < row_bytes; at += format.block_bytes)
        for (const PanelField& field : fields) {
            const std::byte* from = file_rows + at + field.offset;
            if (field.bits)
                interleave_bits(from, row_bytes, rows, panel);
            else if (field.lane == 4)
                interleave<4>(from, row_bytes, rows, field.bytes / 4u, panel);
            else if (field.lane == 2)
                interleave<2>(from, row_bytes, rows, field.bytes / 2u, panel);
            else
                interleave<1>(from, row_bytes, rows, field.bytes, panel);
            panel += field.bytes * kPanelRows;
        }
}

void unpack_row(const PackedMatrix& matrix, uint64_t row, float* out) {
    const Format& format = *matrix.format;
    const auto fields = panel_fields(format.gguf_id);
    const std::byte* panel = matrix.data + row / kPanelRows * matrix.panel_bytes();
    const size_t r = row % kPanelRows;
    if (fields.empty()) {
        format.decode(panel + r * format.row_bytes(matrix.cols), out, matrix.cols);
        return;
    }
    // Decoded in strides of a few blocks: one call per element would cost most for the float formats.
    constexpr size_t kStrideBytes = 512;
    alignas(64) std::byte blocks[kStrideBytes];
    const size_t per_stride = kStrideBytes / format.block_bytes;
    const size_t total = matrix.cols / format.block;
    for (size_t done = 0; done < total;) {
        const size_t count = std::min(per_stride, total - done);
        for (size_t i = 0; i < count; ++i, panel += kPanelRows * format.block_bytes)
            take_row(panel, fields, r, blocks + i * format.block_bytes);
        format.decode(blocks, out + done * format.block, count * format.block);
        done += count;
    }
}

}  // namespace redline::cpu
