// Laguna: attention gated by softplus, experts, and another rope in layers with a window. Without a pattern
// in the file the first of four layers sees everything.
#include "arch/gated_decoder.h"

namespace redline::archs {

static Status read(const ModelFile& file, Config& c) {
    if (!file.meta().find(file.key("attention.sliding_window_pattern")))
        for (uint32_t i = 0; i < c.layers; ++i) c.windowed[i] = i % 4 != 0;
    c.local_rope = RL_TRY(local_rope(file, c));
    return {};
}

static constexpr GatedKind kKind = {.name = "laguna", .gate = GateOf::softplus, .read = read};

extern const Arch laguna = gated_decoder_arch<kKind>();

}  // namespace redline::archs
