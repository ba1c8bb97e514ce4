// The tables that the files of this folder define, each compiled for its level.
#pragma once

#include "each.h"

namespace redline::cpu {

extern const AttentionKernels kAttentionAvx2;
extern const AttentionKernels kAttentionAvx512;
extern const AttentionKernels kAttentionAmx;
extern const VectorKernels kVectorAvx2;
extern const VectorKernels kVectorAvx512;
extern const EachLoop* const kEachAvx2;
extern const EachLoop* const kEachAvx512;

}  // namespace redline::cpu
