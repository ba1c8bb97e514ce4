// Step 3.5 and 3.7: gated attention and experts. Layers without a window have rope on half as much of a head,
// by frequencies that the file may divide.
#include "arch/gated_decoder.h"

namespace redline::archs {

static Status read(const ModelFile& file, Config& c) {
    const std::string type = RL_TRY(file.meta().text(file.key("rope.scaling.type"), "none"));
    if (type != "none")
        return error("{}: {} is {}, none expected", file.gguf.path(), file.key("rope.scaling.type"), type);
    const size_t pairs = c.rope.inverse_frequency.size();
    const std::vector<float> factors = RL_TRY(file.floats("rope_freqs.weight", pairs));
    c.hidden_before_norm = true;
    c.local_rope = RL_TRY(local_rope(file, c));
    c.rope.inverse_frequency.resize(pairs / 2);
    c.rope = RL_TRY(local_rope(file, c, "rope.freq_base"));
    for (size_t i = 0; i < factors.size() && i < c.rope.inverse_frequency.size(); ++i)
        c.rope.inverse_frequency[i] /= double(factors[i]);
    return {};
}

static constexpr GatedKind kKind = {.name = "step35", .read = read};

extern const Arch step = gated_decoder_arch<kKind>();

}  // namespace redline::archs
