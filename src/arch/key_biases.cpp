#include "arch/key_biases.h"

#include <algorithm>
#include <cmath>

namespace redline {

static Result<float> largest_element(const Gguf& gguf, const WeightInfo& info,
                                     const ResolvedWeights::Source& source) {
    std::vector<std::byte> bytes(info.tensor.bytes());
    RL_TRY(read_weight(gguf, info, source, 0, bytes));
    std::vector<float> values(info.tensor.shape.cols);
    info.tensor.format->decode(bytes.data(), values.data(), values.size());
    float largest = 0.0f;
    for (const float value : values)
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    return largest;
}

Result<std::vector<float>> largest_key_biases(const Gguf& gguf, const ResolvedWeights& weights) {
    std::vector<float> all;
    const auto add = [&](const WeightSet& set) -> Status {
        const std::span<const LayerWeights> layers = set.layers();
        all.resize(std::max(all.size(), layers.size()));
        for (size_t i = 0; i < layers.size(); ++i)
            if (const Weight bias = layers[i].find("attn_k.bias"))
                all[i] = RL_TRY(largest_element(gguf, weights.weights[size_t(bias.index)],
                                                weights.sources[size_t(bias.index)]));
        return {};
    };
    RL_TRY(add(weights.set));
    for (const WeightSet& head : weights.predictions) RL_TRY(add(head));
    return all;
}

}  // namespace redline
