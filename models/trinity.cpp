// Trinity (afmoe): gated attention and experts; rope in layers with a window only, norms behind both blocks,
// and embeddings times the root of their width.
#include "arch/gated_decoder.h"

#include <cmath>

namespace redline::archs {

static Status read(const ModelFile&, Config& c) {
    give_rope_to_windows_only(c);
    c.embedding_scale = std::sqrt(float(c.dim));
    return {};
}

static constexpr GatedKind kKind = {.name = "afmoe", .norms_behind = true, .read = read};

extern const Arch trinity = gated_decoder_arch<kKind>();

}  // namespace redline::archs
