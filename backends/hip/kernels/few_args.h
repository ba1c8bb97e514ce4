// How blocks of kernels/few.h are shaped, for the kernels and for those who launch them.
#pragma once

#include "args.h"

namespace redline::hip::args {

// Tiles of 16 rows that a block of kernels/few.h has, of a gated product of both matrices in turn: the more
// tokens, the more of them, since each reads all activations.
constexpr uint32_t few_row_tiles(uint32_t tokens, bool gated) {
    return gated ? (tokens < 32 ? 2 : tokens == 32 ? 4 : 8) : tokens < 32 ? 1 : 2;
}
// Its threads, of which blocks of kernels/dot.h have `usual`. Where few tokens leave registers for it, two
// blocks share a multiprocessor: one of the next launch reads weights while the last of this one end. Three,
// whose rings are shorter, are slower: Llama 3.1 8B Q4_K_M on an H200, 2 rows, 2.54 ms in place of 2.39.
constexpr uint32_t few_threads(uint32_t tokens, uint32_t usual) {
    return usual == 512 && tokens != 32 ? 256 : usual;
}
constexpr uint32_t few_dense(uint32_t tokens, uint32_t usual) {
    return usual == 512 && tokens < 32 ? 2 : 1;
}
// Tiles of rows of one of its waves.
constexpr uint32_t few_own(uint32_t tokens, bool gated, uint32_t waves, uint32_t usual_waves) {
    const uint32_t tiles = few_row_tiles(tokens, gated) / (waves < usual_waves && tokens > 16 ? 2 : 1);
    return few_row_tiles(tokens, gated) / (tiles < waves ? tiles : waves);
}
// Bytes of shared memory that its waves put their sums into.
constexpr uint32_t few_sum_bytes(uint32_t tokens, bool gated, uint32_t waves, uint32_t usual_waves) {
    return waves * few_own(tokens, gated, waves, usual_waves) * (tokens < 16 ? 1 : tokens / 16) * 1024;
}
// How its waves copy tiles ahead: each has a ring of stages, which hold eight units of each row of `each`
// tiles.
struct FewShape {
    uint32_t stages;
    uint32_t stage_bytes;
    constexpr uint32_t bytes() const { return stages * stage_bytes; }
};
// Copies are of four bytes at least, but for two, which come another way.
constexpr bool few_copies(const Planes& planes) {
    for (const uint32_t bytes : planes.bytes)
        if (bytes % 4 != 0 && bytes != 2) return false;
    return true;
}
constexpr FewShape few_shape(const Planes& planes, uint32_t each, uint32_t tokens) {
    // Of a wave: as many as run at a time shall fit a multiprocessor.
    const uint32_t room = each * (tokens < 32 ? 11 << 10 : 9 << 10);
    const uint32_t stage = 16 * planes.all() * each, fit = room / stage;
    return {fit < 2 ? 2 : fit > 4 ? 4 : fit, stage};
}

// The kernels of kernels/few.h have these.
struct FewArgs : TileArgs {
    LeftHalfs left;    // of one matrix, or of a gated product
    TakenHalfs taken;  // TileArgs::row_scales is null then
};

}  // namespace redline::hip::args
