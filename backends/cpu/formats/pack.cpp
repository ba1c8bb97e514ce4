// Repacking of weight rows into panels, and back.
#include "backends/cpu/kernels/linear.h"
#include "repack.h"

#include "base/result.h"

#include <algorithm>
#include <cstring>

namespace redline::cpu {

namespace {

struct PanelLayout {
    uint32_t gguf_id;
    uint32_t block_bytes;  // of a block as it is packed, which is the file's or a repacked one
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
    {40, 36, 2, {{0, 4, 1, Regroup::unsigned_scales}, {4, 32, 4}}},               // NVFP4
    {35, 66, 2, {{64, 2, 2}, {0, 64, 4}}},                                        // TQ2_0
    {41, 18, 2, {{0, 2, 2}, {2, 16, 4, Regroup::spread_bits}}},                   // Q1_0
    {42, 18, 2, {{0, 2, 2}, {2, 16, 4, Regroup::pairs}}},                         // Q2_0
    // Repacked. Halfs, and then nibbles of scales, before codes.
    {19, 58, 3, {{0, 2, 2}, {2, 4, 4}, {6, 52, 4}}},               // IQ1_S
    {29, 66, 4, {{0, 2, 2}, {2, 8, 4}, {10, 4, 4}, {14, 52, 4}}},  // IQ1_M: directions after scales
    {16, 94, 3, {{0, 2, 2}, {2, 4, 4}, {6, 88, 4}}},               // IQ2_XXS
    {17, 98, 3, {{0, 2, 2}, {2, 8, 4}, {10, 88, 4}}},              // IQ2_XS
    {22, 98, 3, {{0, 2, 2}, {2, 8, 4}, {10, 88, 4}}},              // IQ2_S
    {18, 134, 3, {{0, 2, 2}, {2, 4, 4}, {6, 128, 4}}},             // IQ3_XXS
    {21, 134, 3, {{0, 2, 2}, {2, 4, 4}, {6, 128, 4}}},             // IQ3_S
    {34, 66, 2, {{64, 2, 2}, {0, 64, 4}}},                         // TQ1_0: as TQ2_0
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
void regroup_bits(const std::byte* in, std::byte* out, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4) {
        uint32_t word, spread = 0;
        std::memcpy(&word, in + at, 4);
        for (uint32_t e = 0; e < 32; ++e) spread |= ((word >> e) & 1u) << (8 * (e % 4) + e / 4);
        std::memcpy(out + at, &spread, 4);
    }
}

void ungroup_bits(const std::byte* in, std::byte* out, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4) {
        uint32_t word = 0, spread;
        std::memcpy(&spread, in + at, 4);
        for (uint32_t e = 0; e < 32; ++e) word |= ((spread >> (8 * (e % 4) + e / 4)) & 1u) << e;
        std::memcpy(out + at, &word, 4);
    }
}

// Bit e of a row's 128 belongs to column e. Columns 32g + 16h + 4i + c want theirs in bit 2g + h of byte
// 4i + c: so the 32 columns that share a scale of activations lie in two places of their bytes, where they
// can stay.
uint32_t spread_bit(uint32_t e) {
    const uint32_t byte = e % 16, bit = e / 32 * 2 + e % 32 / 16;
    return byte * 8 + bit;
}

void regroup_spread_bits(const std::byte* in, std::byte* out, size_t) {
    std::memset(out, 0, 16);
    for (uint32_t e = 0; e < 128; ++e) {
        const uint32_t to = spread_bit(e);
        out[to / 8] |= ((in[e / 8] >> (e % 8)) & std::byte(1)) << (to % 8);
    }
}

void ungroup_spread_bits(const std::byte* in, std::byte* out, size_t) {
    std::memset(out, 0, 16);
    for (uint32_t e = 0; e < 128; ++e) {
        const uint32_t from = spread_bit(e);
        out[e / 8] |= ((in[from / 8] >> (from % 8)) & std::byte(1)) << (e % 8);
    }
}

// Two bits each of 16 columns, four to a byte: column 4v + i belongs in bits 2v, 2v + 1 of byte i. To do it
// twice undoes it.
void regroup_pairs(const std::byte* in, std::byte* out, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4, in += 4, out += 4)
        for (uint32_t i = 0; i < 4; ++i) {
            uint32_t byte = 0;
            for (uint32_t v = 0; v < 4; ++v) byte |= ((uint32_t(in[v]) >> (2 * i)) & 3) << (2 * v);
            out[i] = std::byte(byte);
        }
}

// Q6_K keeps nibbles and upper pairs apart. Here, for each 128 columns, three runs of 32 bytes hold the first
// three codes of columns l, l + 32, l + 64, l + 96 in bits 2..7, and the fourth code in pairs in their bits
// 0..1: one mask each unpacks three of four codes.
void regroup_q6(const std::byte* in, std::byte* out, size_t) {
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

void ungroup_q6(const std::byte* in, std::byte* out, size_t) {
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

// E4M3 without a sign: 0x7F stands for nothing, and the top bit is not looked at. Here 0x7F is a number.
void regroup_scales(const std::byte* in, std::byte* out, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
        out[i] = in[i] == std::byte(0x7F) ? std::byte(0) : in[i] & std::byte(0x7F);
}

void ungroup_scales(const std::byte* in, std::byte* out, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out[i] = in[i] == std::byte(0x7F) ? std::byte(0xFF) : in[i];
}

struct Regrouping {
    void (*group)(const std::byte* in, std::byte* out, size_t bytes);
    void (*ungroup)(const std::byte* in, std::byte* out, size_t bytes);
};
Regrouping regrouping(Regroup regroup) {
    switch (regroup) {
        case Regroup::none:
            return {nullptr, nullptr};
        case Regroup::bits:
            return {regroup_bits, ungroup_bits};
        case Regroup::spread_bits:
            return {regroup_spread_bits, ungroup_spread_bits};
        case Regroup::pairs:
            return {regroup_pairs, regroup_pairs};
        case Regroup::q6:
            return {regroup_q6, ungroup_q6};
        case Regroup::unsigned_scales:
            return {regroup_scales, ungroup_scales};
    }
    return {nullptr, nullptr};
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
    if (const auto group = regrouping(field.regroup).group) {
        for (size_t r = 0; r < count; ++r) group(rows + r * row_bytes, regrouped[r], field.bytes);
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

// The block of one row of a panel block: the file's, or a repacked one.
void unpack_block(const std::byte* panel_block, std::span<const PanelField> fields, size_t row,
                  std::byte* block) {
    for (const PanelField& field : fields) {
        std::byte grouped[kRegroupBytes];
        const auto ungroup = regrouping(field.regroup).ungroup;
        std::byte* out = ungroup ? grouped : block + field.offset;
        for (size_t at = 0; at < field.bytes; at += field.lane)
            std::memcpy(out + at, panel_block + at * kPanelRows + row * field.lane, field.lane);
        if (ungroup) ungroup(grouped, block + field.offset, field.bytes);
        panel_block += field.bytes * kPanelRows;
    }
}

const PanelLayout* find_layout(uint32_t gguf_id) {
    for (const PanelLayout& layout : kLayouts)
        if (layout.gguf_id == gguf_id) return &layout;
    return nullptr;
}

void unpack_repacked(const Repacking& repacking, std::span<const PanelField> fields, const std::byte* panel,
                     size_t r, size_t blocks, size_t block, float* out) {
    alignas(64) std::byte packed[kMostRepackedBytes];
    for (size_t i = 0; i < blocks; ++i, panel += kPanelRows * repacking.bytes, out += block) {
        unpack_block(panel, fields, r, packed);
        repacking.decode(packed, out);
    }
}

}  // namespace

std::span<const PanelField> panel_fields(uint32_t gguf_id) {
    const PanelLayout* layout = find_layout(gguf_id);
    return layout ? std::span<const PanelField>(layout->fields, layout->count)
                  : std::span<const PanelField>();
}

size_t packed_block_bytes(const Format& format) {
    const Repacking* repacking = find_repacking(format.gguf_id);
    return repacking ? repacking->bytes : format.block_bytes;
}

void pack_panel(const Format& format, const std::byte* file_rows, size_t rows, size_t cols,
                std::byte* panel) {
    RL_CHECK(rows >= 1 && rows <= kPanelRows, "a panel of {} rows", rows);
    const size_t row_bytes = format.row_bytes(cols);
    const auto fields = panel_fields(format.gguf_id);
    const Repacking* repacking = find_repacking(format.gguf_id);
    const size_t block_bytes = packed_block_bytes(format);
    if (rows < kPanelRows) std::memset(panel, 0, kPanelRows * (cols / format.block * block_bytes));
    alignas(64) std::byte repacked[kPanelRows][kMostRepackedBytes];
    for (size_t at = 0; at < row_bytes; at += format.block_bytes) {
        const std::byte* blocks = file_rows + at;
        size_t stride = row_bytes;
        if (repacking) {
            for (size_t r = 0; r < rows; ++r) repacking->pack(blocks + r * row_bytes, repacked[r]);
            blocks = repacked[0];
            stride = kMostRepackedBytes;
        }
        for (const PanelField& field : fields) {
            pack_field(field, blocks + field.offset, stride, rows, panel);
            panel += field.bytes * kPanelRows;
        }
    }
}

void unpack_row(const PackedMatrix& matrix, uint64_t row, float* out) {
    const Format& format = *matrix.format;
    const auto fields = panel_fields(format.gguf_id);
    const std::byte* panel = matrix.data + row / kPanelRows * matrix.panel_bytes();
    const size_t r = row % kPanelRows;
    const size_t total = matrix.cols / format.block;
    if (const Repacking* repacking = find_repacking(format.gguf_id))
        return unpack_repacked(*repacking, fields, panel, r, total, format.block, out);
    // Decoded in strides of a few blocks: one call per element would cost most for the float formats.
    constexpr size_t kStrideBytes = 512;
    alignas(64) std::byte blocks[kStrideBytes];
    const size_t per_stride = kStrideBytes / format.block_bytes;
    for (size_t done = 0; done < total;) {
        const size_t count = std::min(per_stride, total - done);
        for (size_t i = 0; i < count; ++i, panel += kPanelRows * format.block_bytes)
            unpack_block(panel, fields, r, blocks + i * format.block_bytes);
        format.decode(blocks, out + done * format.block, count * format.block);
        done += count;
    }
}

}  // namespace redline::cpu
