// Muse Glimmer: gated attention without experts; rope on neighbouring pairs, and in layers with a window
// only; norms behind both blocks and of the embedding.
#include "arch/gated_decoder.h"

namespace redline::archs {

static Status read(const ModelFile& file, Config& c) {
    give_rope_to_windows_only(c);
    c.logit_scale = RL_TRY(factor(file, "logit_scale", 1.0f));
    c.logit_softcap = RL_TRY(factor(file, "final_logit_softcapping", 0.0f));
    return {};
}

static constexpr GatedKind kKind = {.name = "muse-glimmer",
                                    .half_split = false,
                                    .experts = false,
                                    .norms_behind = true,
                                    .eps_behind = 1e-8f,  // no key has it
                                    .normed_embedding = true,
                                    .read = read};

extern const Arch muse = gated_decoder_arch<kKind>();

}  // namespace redline::archs
