// The inner kernel of the delta rule, by level as those in kernels.h are.
#pragma once

#include "kernels.h"

namespace redline::cpu {

// One token of one head: a state of (keys, values), rewritten, and what comes of it.
struct DeltaToken {
    float* state = nullptr;
    const float* q = nullptr;  // of length 1 / sqrt(keys)
    const float* k = nullptr;  // of length 1
    const float* v = nullptr;
    size_t keys = 0, values = 0;
    float decay = 0.0f, beta = 0.0f;
    float* y = nullptr;
};
using DeltaKernel = void (*)(const DeltaToken& token);

DeltaKernel delta_kernel(Isa isa);

// So many tokens of one head at once: what each changes follows from the state before them and from what
// those before it changed, so that the state is read and rewritten once for all.
constexpr size_t kDeltaChunk = 8;
struct DeltaChunk {
    float* state = nullptr;
    const float* q = nullptr;  // (tokens, keys), as DeltaToken has them
    const float* k = nullptr;
    const float* v = nullptr;
    float* y = nullptr;
    size_t v_stride = 0, y_stride = 0;
    size_t keys = 0, values = 0;
    float decay[kDeltaChunk] = {}, beta[kDeltaChunk] = {};
    float* last_k = nullptr;  // (tokens, keys) of room: keys, by what is left of them behind the last token
};
using DeltaChunkKernel = void (*)(const DeltaChunk& chunk);

DeltaChunkKernel delta_chunk_kernel(Isa isa);

// One token of one head of a state space: a state of (inputs, width), rewritten, and what comes of it.
struct ScanToken {
    float* state = nullptr;
    const float* x = nullptr;
    const float* in = nullptr;
    const float* out = nullptr;
    size_t inputs = 0, width = 0;
    float decay = 0.0f, step = 0.0f, through = 0.0f;
    float* y = nullptr;
};
using ScanKernel = void (*)(const ScanToken& token);

ScanKernel scan_kernel(Isa isa);

// The levels'.
void delta_avx2(const DeltaToken& token);
void delta_avx512(const DeltaToken& token);
void delta_chunk_avx2(const DeltaChunk& chunk);
void delta_chunk_avx512(const DeltaChunk& chunk);
void scan_avx2(const ScanToken& token);
void scan_avx512(const ScanToken& token);

}  // namespace redline::cpu
