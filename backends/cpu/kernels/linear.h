// Inside the CPU matrix kernels: how a panel and a prepared activation row lie in memory, and the tables of
// the instruction-set levels. What callers need is in kernels.h.
#pragma once

#include "kernels.h"

#include <span>

namespace redline::cpu {

// A panel is a sequence of panel blocks: 16 file blocks, one of each row, over the same columns; of some
// formats these are repacked first (repack.h). Inside, each field of a block is interleaved over the 16 rows
// in elements of `lane` bytes: (elements, 16 rows, lane bytes). So 64 bytes of codes hold 4 file bytes of
// each row, which is the operand of a four-way byte dot product (and of a matrix tile), and 16 scales of one
// kind are neighbours. Where a format's codes would cost the kernels too many shifts, their bits are
// regrouped within the row first.
enum class Regroup : uint8_t { none, bits, spread_bits, pairs, q6, unsigned_scales };
struct PanelField {
    uint16_t offset;  // in the block
    uint16_t bytes;
    uint8_t lane;  // 1, 2 or 4
    Regroup regroup = Regroup::none;
};

// The fields in panel order. Empty for a format that the CPU has no kernels for.
std::span<const PanelField> panel_fields(uint32_t gguf_id);

// 32 activations as the int8 kernels read them: one cache line. x[i] is about scale * q[i].
struct Int8Block {
    int8_t q[32];
    float scale;       // NaN when one of the 32 was not finite, so that it reaches every result
    float sum;         // scale * sum of q, for formats with a minimum per 32 columns
    int32_t neg32;     // -128 * sum of q: takes the bias off codes that are stored as 128 + value
    int32_t neg16[2];  // the same for each half
    float sum16[2];    // scale * sum of each half
    int32_t unused;
};
static_assert(sizeof(Int8Block) == 64);

// Whether a core gets more of the memory's bandwidth when it reads several places in turn than one after the
// other: on Intel's Sapphire Rapids a single stream reads 9 of 19 GB/s, on AMD's Zen 5 four streams 0.8 of
// what one reads that fetches kLoneAhead bytes ahead (2026-11-22).
bool reads_side_by_side();
void set_reads_side_by_side(bool value);  // for tests: to see on one machine what both kinds do
constexpr size_t kLoneAhead = 16384;

// Whether the CPU permutes the bytes of a vector by others. The first ones with AVX-512 do not, and take code
// books as AVX2 does.
bool has_byte_permutes();

// Memory of this thread's for the duration of a call, at a multiple of 64. Not thread_local arrays: those of
// all kernels together would take up the stacks of all threads.
std::byte* kernel_scratch(size_t bytes);

// The kernels of one level, or null when the level has none of its own for this format and number of rows.
const LinearKernel* linear_kernel_portable(uint32_t gguf_id);  // of every format that has panel fields
const LinearKernel* linear_kernel_avx2(uint32_t gguf_id);
const LinearKernel* linear_kernel_avx512(uint32_t gguf_id);
const LinearKernel* linear_kernel_amx(uint32_t gguf_id, size_t x_rows);

}  // namespace redline::cpu
