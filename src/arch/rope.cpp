#include "arch/keys.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace redline {

namespace {

struct Yarn {
    double factor, extrapolation, beta_fast, beta_slow, original_context;
};

// The share of interpolation of pair i (arXiv 2309.00071, section 3.2).
double yarn_ramp(const Yarn& y, double base, uint32_t dims, uint32_t i, bool rounded) {
    const auto correction = [&](double beta) {
        return dims * std::log(y.original_context / (beta * 2.0 * std::numbers::pi)) / (2.0 * std::log(base));
    };
    const double first = correction(y.beta_fast), last = correction(y.beta_slow);
    const double low = std::max(0.0, rounded ? std::floor(first) : first);
    const double high = std::min(dims - 1.0, rounded ? std::ceil(last) : last);
    return 1.0 - std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
}

// The base that the key has, raised by "rope.scaling.alpha": the slowest pair rotates so many times slower,
// the fastest as before.
Result<double> rope_base(const ModelFile& file, std::string_view key, uint32_t dims) {
    const double base = RL_TRY(file.meta().real(file.key(key), 10000.0f));
    if (!(std::isfinite(base) && base > 1.0))
        return error("{}: {} is {}, more than 1 expected", file.gguf.path(), file.key(key), base);
    const double alpha = RL_TRY(factor(file, "rope.scaling.alpha", 0.0f));
    if (alpha == 0.0) return base;
    const double scaled = dims > 2 ? base * std::pow(alpha, double(dims) / (dims - 2)) : base;
    if (!(std::isfinite(scaled) && scaled > 1.0))
        return error("{}: {} is {}, which makes the base of the rope {}", file.gguf.path(),
                     file.key("rope.scaling.alpha"), alpha, scaled);
    return scaled;
}

}  // namespace

Result<RopeSpec> common_rope(const ModelFile& file, const Config& config, bool half_split,
                             std::span<const float> factors, bool rounded, std::string_view base_key) {
    const Metadata& meta = file.meta();
    const uint32_t dims =
        RL_TRY(count(file, "rope.dimension_count", config.heads.head_dim, 2, config.heads.head_dim));
    if (dims % 2 != 0) return error("{}: rope.dimension_count {} is odd", file.gguf.path(), dims);
    const double base = RL_TRY(rope_base(file, base_key, dims));
    // Ollama's files of gpt-oss leave the type out.
    const char* fallback = file.arch == "gptoss" ? "yarn" : "linear";
    std::string type = RL_TRY(meta.text(file.key("rope.scaling.type"), fallback));
    double factor = RL_TRY(meta.real(file.key("rope.scaling.factor"), 0.0f));
    if (factor == 0.0) factor = RL_TRY(meta.real(file.key("rope.scale_linear"), 0.0f));
    if (factor == 0.0) factor = 1.0;
    if (!(std::isfinite(factor) && factor > 0.0))
        return error("{}: rope scaling factor {} must be positive", file.gguf.path(), factor);
    const double attention_factor = RL_TRY(meta.real(file.key("rope.scaling.attn_factor"), 1.0f));
    if (type != "none" && type != "linear" && type != "yarn" && type != "longrope")
        return error("{}: rope scaling type {} is not known; none, linear, yarn and longrope are",
                     file.gguf.path(), type);

    RopeSpec rope{half_split, {}, attention_factor};
    Yarn yarn{factor, 1.0, 32.0, 1.0, 0.0};
    if (type == "yarn") {
        yarn.beta_fast = RL_TRY(meta.real(file.key("rope.scaling.yarn_beta_fast"), 32.0f));
        yarn.beta_slow = RL_TRY(meta.real(file.key("rope.scaling.yarn_beta_slow"), 1.0f));
        const uint64_t original =
            RL_TRY(meta.integer(file.key("rope.scaling.original_context_length"), config.train_context));
        yarn.original_context = double(original);
        // A model that was trained with a smaller growth, or with none, has its multiple of the logarithm.
        const double less = RL_TRY(meta.real(file.key("rope.scaling.yarn_log_multiplier"), 0.0f));
        rope.magnitude *= (1.0 + 0.1 * std::log(factor)) / (1.0 + 0.1 * less * std::log(factor));
    }
    for (uint32_t i = 0; i < dims / 2; ++i) {
        const double plain = std::pow(base, -2.0 * i / dims) / (factors.empty() ? 1.0 : double(factors[i]));
        double frequency = plain;
        if (type == "linear") frequency = plain / factor;
        if (type == "yarn") {
            const double share = yarn_ramp(yarn, base, dims, i, rounded) * yarn.extrapolation;
            frequency = plain / factor * (1.0 - share) + plain * share;
        }
        rope.inverse_frequency.push_back(frequency);
    }
    return rope;
}

Result<std::vector<float>> rope_factors(const ModelFile& file, const Config& config) {
    return file.floats("rope_freqs.weight", config.heads.head_dim / 2);
}

Result<std::vector<float>> longrope_factors(const ModelFile& file, const Config& config) {
    const uint64_t pairs =
        RL_TRY(file.meta().integer(file.key("rope.dimension_count"), config.heads.head_dim)) / 2;
    const uint64_t original =
        RL_TRY(file.meta().integer(file.key("rope.scaling.original_context_length"), config.train_context));
    const bool is_long = file.context > original;
    return file.floats(is_long ? "rope_factors_long.weight" : "rope_factors_short.weight", pairs);
}

Result<RopeSpec> local_rope(const ModelFile& file, const Config& config, std::string_view key, float base) {
    const double stored = RL_TRY(file.meta().real(file.key(key), base));
    if (!(stored > 1.0))
        return error("{}: {} is {}, more than 1 expected", file.gguf.path(), file.key(key), stored);
    RopeSpec rope{config.rope.half_split, {}, 1.0};
    const uint32_t all = uint32_t(2 * config.rope.inverse_frequency.size());
    const uint32_t dims = RL_TRY(count(file, "rope.dimension_count_swa", all, 2, config.heads.head_dim));
    if (dims % 2 != 0) return error("{}: rope.dimension_count_swa {} is odd", file.gguf.path(), dims);
    const uint32_t pairs = dims / 2;
    for (uint32_t i = 0; i < pairs; ++i)
        rope.inverse_frequency.push_back(std::pow(stored, -double(i) / double(pairs)));
    return rope;
}

}  // namespace redline
