// Large biases of keys. The scale of a block of cached keys has to serve the bias and what differs from token
// to token, of which few bits then keep nothing.
#pragma once

#include "arch/weight_list.h"

namespace redline {

// The largest magnitude among the biases that each layer adds to its keys; 0: it has none. Layers that
// predict further tokens are behind the others.
Result<std::vector<float>> largest_key_biases(const Gguf& gguf, const ResolvedWeights& weights);

// Keys with such a bias are cached with 8 bits at least. Qwen2.5-Coder-1.5B has biases of 354, 111, 46 and 43
// in four of its layers, and of 13 and less in 24: with all keys in q4_0 it diverges from f16 by 7.2 nats,
// with these four layers' in q8_0 by 0.016 (tools/bench/2026-11-30-cache-types.md).
constexpr float kLargeKeyBias = 32.0f;

}  // namespace redline
