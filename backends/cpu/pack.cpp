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

// Scales stand before codes.
constexpr PanelLayout kLayouts[] = {
    {0, 4, 1, {{0, 4, 4}}},                                                    // F32
    {1, 2, 1, {{0, 2, 2}}},                                                    // F16
    {30, 2, 1, {{0, 2, 2}}},                                                   // BF16
    {2, 18, 2, {{0, 2, 2}, {2, 16, 4}}},                                       // Q4_0: d, codes
    {3, 20, 3, {{0, 2, 2}, {2, 2, 2}, {4, 16, 4}}},                            // Q4_1: d, m, codes
    {6, 22, 3, {{0, 2, 2}, {2, 4, 4, Regroup::bits}, {6, 16, 4}}},             // Q5_0: d, fifth bits, codes
    {7, 24, 4, {{0, 2, 2}, {2, 2, 2}, {4, 4, 4, Regroup::bits}, {8, 16, 4}}},  // Q5_1
    {8, 34, 2, {{0, 2, 2}, {2, 32, 4}}},                                       // Q8_0
    {10, 84, 4, {{80, 2, 2}, {82, 2, 2}, {0, 16, 1}, {16, 64, 4}}},            // Q2_K: d, dmin, scales, codes
    {11, 110, 4, {{108, 2, 2}, {96, 12, 1}, {0, 32, 4}, {32, 64, 4}}},         // Q3_K: d, scales, high, codes
    {12, 144, 4, {{0, 2, 2}, {2, 2, 2}, {4, 12, 1}, {16, 128, 4}}},            // Q4_K
    {13, 176, 5, {{0, 2, 2}, {2, 2, 2}, {4, 12, 1}, {16, 32, 4}, {48, 128, 4}}},  // Q5_K
    {14, 210, 3, {{208, 2, 2}, {192, 16, 1}, {0, 192, 4, Regroup::q6}}},          // Q6_K
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

constexpr size_t kRegroupBytes = 192;  // the largest regrouped field

// Bit e of a row's 32 belongs to column e. Column 4v + i wants it in bit v of byte i, so that one shift
// brings the bits of four neighbouring columns into four neighbouring bytes.
void regroup_bits(const std::byte* in, std::byte* out) {
    uint32_t word, spread = 0;
    std::memcpy(&word, in, 4);
    for (uint32_t e = 0; e < 32; ++e) spread |= ((word >> e) & 1u) << (8 * (e % 4) + e / 4);
    std::memcpy(out, &spread, 4);
}

void ungroup_bits(const std::byte* in, std::byte* out) {
    uint32_t word = 0, spread;
    std::memcpy(&spread, in, 4);
    for (uint32_t e = 0; e < 32; ++e) word |= ((spread >> (8 * (e % 4) + e / 4)) & 1u) << e;
    std::memcpy(out, &word, 4);
}

// Q6_K keeps nibbles and upper pairs apart. Here, for each 128 columns, three runs of 32 bytes hold the first
// three codes of columns l, l + 32, l + 64, l + 96 in bits 2..7, and the fourth code in pairs in their bits
// 0..1: one mask each unpacks three of four codes.
void regroup_q6(const std::byte* in, std::byte* out) {
    const auto* low = reinterpret_cast<const uint8_t*>(in);
    const auto* high = low + 128;
    auto* to = reinterpret_cast<uint8_t*>(out);
    for (int n = 0; n < 2; ++n, low += 64, high += 32, to += 96)
        for (int l = 0; l < 32; ++l) {
            const unsigned a = low[l], b = low[l + 32], h = high[l];
            const unsigned fourth = (b >> 4) | (h >> 6) << 4;
            to[l] = uint8_t(((a & 15) << 2) | ((h & 3) << 6) | (fourth & 3));
            to[l + 32] = uint8_t(((b & 15) << 2) | ((h >> 2 & 3) << 6) | (fourth >> 2 & 3));
            to[l + 64] = uint8_t(((a >> 4) << 2) | ((h >> 4 & 3) << 6) | (fourth >> 4));
        }
}

void ungroup_q6(const std::byte* in, std::byte* out) {
    const auto* from = reinterpret_cast<const uint8_t*>(in);
    auto* low = reinterpret_cast<uint8_t*>(out);
    auto* high = low + 128;
    for (int n = 0; n < 2; ++n, low += 64, high += 32, from += 96)
        for (int l = 0; l < 32; ++l) {
            const unsigned a = from[l], b = from[l + 32], c = from[l + 64];
            const unsigned fourth = (a & 3) | (b & 3) << 2 | (c & 3) << 4;
            low[l] = uint8_t((a >> 2 & 15) | (c >> 2 & 15) << 4);
            low[l + 32] = uint8_t((b >> 2 & 15) | (fourth & 15) << 4);
            high[l] = uint8_t((a >> 6) | (b >> 6) << 2 | (c >> 6) << 4 | (fourth >> 4) << 6);
        }
}

template <size_t kLane>
void interleave(const std::byte* rows, size_t row_bytes, size_t count, size_t elements, std::byte* out) {
    for (size_t e = 0; e < elements; ++e)
        for (size_t r = 0; r < count; ++r)
            std::memcpy(out + (e * kPanelRows + r) * kLane, rows + r * row_bytes + e * kLane, kLane);
}

// One field of `count` neighbouring rows into a panel block.
void pack_field(const PanelField& field, const std::byte* rows, size_t row_bytes, size_t count,
                std::byte* out) {
    alignas(64) std::byte regrouped[kPanelRows][kRegroupBytes];
    if (field.regroup != Regroup::none) {
        const auto regroup = field.regroup == Regroup::bits ? regroup_bits : regroup_q6;
        for (size_t r = 0; r < count; ++r) regroup(rows + r * row_bytes, regrouped[r]);
        rows = regrouped[0];
        row_bytes = kRegroupBytes;
    }
    if (field.lane == 4)
        interleave<4>(rows, row_bytes, count, field.bytes / 4u, out);
    else if (field.lane == 2)
        interleave<2>(rows, row_bytes, count, field.bytes / 2u, out);
    else
        interleave<1>(rows, row_bytes, count, field.bytes, out);
}

// The file block of one row of a panel block.
void unpack_block(const std::byte* panel_block, std::span<const PanelField> fields, size_t row,
                  std::byte* block) {
    for (const PanelField& field : fields) {
        std::byte grouped[kRegroupBytes];
        std::byte* out = field.regroup == Regroup::none ? block + field.offset : grouped;
        for (size_t at = 0; at < field.bytes; at += field.lane)
            std::memcpy(out + at, panel_block + at * kPanelRows + row * field.lane, field.lane);
        if (field.regroup == Regroup::bits) ungroup_bits(grouped, block + field.offset);
        if (field.regroup == Regroup::q6) ungroup_q6(grouped, block + field.offset);
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
    for (size_t at = 0; at < row_bytes; at += format.block_bytes)
        for (const PanelField& field : fields) {
            pack_field(field, file_rows + at + field.offset, row_bytes, rows, panel);
            panel += field.bytes * kPanelRows;
        }
}

void unpack_row(const PackedMatrix& matrix, uint64_t row, float* out) {
    const Format& format = *matrix.format;
    const auto fields = panel_fields(format.gguf_id);
    const std::byte* panel = matrix.data + row / kPanelRows * matrix.panel_bytes();
    const size_t r = row % kPanelRows;
    // Decoded in strides of a few blocks: one call per element would cost most for the float formats.
    constexpr size_t kStrideBytes = 512;
    alignas(64) std::byte blocks[kStrideBytes];
    const size_t per_stride = kStrideBytes / format.block_bytes;
    const size_t total = matrix.cols / format.block;
    for (size_t done = 0; done < total;) {
        const size_t count = std::min(per_stride, total - done);
        for (size_t i = 0; i < count; ++i, panel += kPanelRows * format.block_bytes)
            unpack_block(panel, fields, r, blocks + i * format.block_bytes);
        format.decode(blocks, out + done * format.block, count * format.block);
        done += count;
    }
}

}  // namespace redline::cpu
