#include "arch/keys.h"

#include <algorithm>
#include <cmath>

namespace redline {

Result<std::vector<float>> ModelFile::floats(const std::string& name, uint64_t expected) const {
    const GgufTensor* found = gguf.find(name);
    if (!found) return std::vector<float>();
    const Tensor& tensor = found->tensor;
    if (!tensor.format) return error("{}: tensor {} has {}", gguf.path(), name, describe_type(found->type));
    if (tensor.shape.elements() != expected)
        return error("{}: tensor {} has {} elements, {} expected", gguf.path(), name, tensor.shape.elements(),
                     expected);
    std::vector<std::byte> bytes(tensor.bytes());
    RL_TRY(gguf.read(*found, 0, bytes));
    std::vector<float> out(expected);
    tensor.format->decode(bytes.data(), out.data(), expected);
    for (const float value : out)
        if (!std::isfinite(value) || value <= 0.0f)
            return error("{}: tensor {} holds {}, positive numbers expected", gguf.path(), name, value);
    return out;
}

// The length of lists by layer without the layers that predict, which count among so many.
static Result<size_t> shorter_lists(const ModelFile& file, uint32_t layers) {
    const uint64_t predicting = RL_TRY(file.meta().integer(file.key("nextn_predict_layers"), 0));
    return size_t(layers - std::min<uint64_t>(predicting, layers - 1));
}

Result<std::vector<float>> ModelFile::limits(std::string_view rest, uint32_t layers) const {
    const std::string name = key(rest);
    if (!meta().has(name)) return std::vector<float>();
    const std::vector<float>* stored = meta().floats(name);
    const bool shorter = stored && stored->size() == RL_TRY(shorter_lists(*this, layers));
    if (!stored || (stored->size() != layers && !shorter))
        return error("{}: {} is not a list of {} numbers", gguf.path(), name, layers);
    for (const float limit : *stored)
        if (!(limit >= 0.0f && limit < 1e30f))
            return error("{}: {} holds {}, 0 or a limit expected", gguf.path(), name, limit);
    std::vector<float> all = *stored;
    all.resize(layers, all.back());
    return all;
}

Result<std::vector<uint64_t>> ModelFile::integers(std::string_view rest, uint32_t layers,
                                                  std::optional<uint64_t> fallback) const {
    const std::string name = key(rest);
    const MetadataValue* stored = meta().find(name);
    const auto* numbers = stored ? std::get_if<MetadataValue::Integers>(&stored->value) : nullptr;
    const auto* flags = stored ? std::get_if<MetadataValue::Bools>(&stored->value) : nullptr;
    const size_t size = numbers ? numbers->size() : flags ? flags->size() : layers;
    const bool shorter = size == RL_TRY(shorter_lists(*this, layers));
    std::vector<uint64_t> all = RL_TRY(meta().integers(name, shorter ? size : layers, fallback));
    all.resize(layers, all.back());
    return all;
}

bool ModelFile::any_layer_has(std::string_view tensor, uint32_t layers) const {
    for (uint32_t i = 0; i < layers; ++i)
        if (gguf.find(fmt::format("blk.{}.{}", i, tensor))) return true;
    return false;
}

Result<uint32_t> count(const ModelFile& file, std::string_view rest, std::optional<uint64_t> fallback,
                       uint64_t low, uint64_t high) {
    const std::string key = file.key(rest);
    const uint64_t value =
        fallback ? RL_TRY(file.meta().integer(key, *fallback)) : RL_TRY(file.meta().integer(key));
    if (value < low || value > high)
        return error("{}: {} is {}, {} to {} expected", file.gguf.path(), key, value, low, high);
    return uint32_t(value);
}

// A key that may be an array with one entry per layer. The entries have to be equal.
static Result<uint32_t> uniform(const ModelFile& file, std::string_view rest, uint32_t layers,
                                std::optional<uint64_t> fallback, uint64_t low, uint64_t high) {
    const std::string key = file.key(rest);
    const std::vector<uint64_t> values = RL_TRY(file.integers(rest, layers, fallback));
    if (std::any_of(values.begin(), values.end(), [&](uint64_t v) { return v != values[0]; }))
        return error("{}: {} differs between layers, which architecture {} does not allow here",
                     file.gguf.path(), key, file.arch);
    if (values[0] < low || values[0] > high)
        return error("{}: {} is {}, {} to {} expected", file.gguf.path(), key, values[0], low, high);
    return uint32_t(values[0]);
}

// Reads sizes by layer; Config has the largest beside them.
static Status read_sizes(const ModelFile& file, Config& c) {
    const auto read = [&](std::string_view rest, uint64_t fallback, uint32_t& most,
                          std::vector<uint32_t>& by_layer) -> Status {
        const std::string key = file.key(rest);
        for (const uint64_t value : RL_TRY(file.integers(rest, c.layers, fallback))) {
            if (value > 1u << 24)
                return error("{}: {} holds {}, at most {} expected", file.gguf.path(), key, value, 1u << 24);
            by_layer.push_back(uint32_t(value));
            most = std::max(most, uint32_t(value));
        }
        return {};
    };
    RL_TRY(read("feed_forward_length", 0, c.ffn_dim, c.ffn_dims));
    RL_TRY(read("attention.head_count", 0, c.heads.heads, c.heads_of));
    RL_TRY(read("attention.head_count_kv", c.heads.heads, c.heads.kv_heads, c.kv_heads_of));
    for (uint32_t i = 0; i < c.layers; ++i)
        if (c.kv_heads_of[i] > 0 && c.heads_of[i] % c.kv_heads_of[i] != 0)
            return error("{}: {} heads are not a multiple of {} kv heads", file.gguf.path(), c.heads_of[i],
                         c.kv_heads_of[i]);
    return {};
}

// Layers that keep states have no kv heads.
static Status read_kv_heads(const ModelFile& file, Config& c, bool recurrent) {
    constexpr std::string_view kKey = "attention.head_count_kv";
    const std::vector<uint64_t> by_layer = RL_TRY(file.integers(kKey, c.layers, c.heads.heads));
    if (!recurrent || std::find(by_layer.begin(), by_layer.end(), 0u) == by_layer.end()) {
        c.heads.kv_heads = RL_TRY(uniform(file, kKey, c.layers, c.heads.heads, 1, 65536));
        return {};
    }
    const uint64_t most = *std::max_element(by_layer.begin(), by_layer.end());
    for (const uint64_t heads : by_layer) {
        if (heads != 0 && heads != most)
            return error("{}: {} holds {} and {}, which architecture {} does not allow", file.gguf.path(),
                         file.key(kKey), heads, most, file.arch);
        c.recurrent.push_back(heads == 0);
    }
    if (most == 0 || most > 65536)
        return error("{}: {} is {} at most, 1 to 65536 expected", file.gguf.path(), file.key(kKey), most);
    c.heads.kv_heads = uint32_t(most);
    return {};
}

static Result<Config> checked_config(const ModelFile& file, std::optional<float> eps, LayersDiffer differ) {
    const Metadata& meta = file.meta();
    Config c;
    c.arch = file.arch;
    c.layers = RL_TRY(count(file, "block_count", {}, 1, 1024));
    c.dim = RL_TRY(count(file, "embedding_length", {}, 1, 1u << 20));
    c.train_context = RL_TRY(count(file, "context_length", {}, 1, 1u << 30));
    if (differ == LayersDiffer::in_size) {
        RL_TRY(read_sizes(file, c));
    } else {
        c.ffn_dim = RL_TRY(uniform(file, "feed_forward_length", c.layers, 0, 0, 1u << 24));
        c.heads.heads = RL_TRY(uniform(file, "attention.head_count", c.layers, {}, 1, 65536));
        RL_TRY(read_kv_heads(file, c, differ == LayersDiffer::in_kind));
        if (c.heads.heads % c.heads.kv_heads != 0)
            return error("{}: {} heads are not a multiple of {} kv heads", file.gguf.path(), c.heads.heads,
                         c.heads.kv_heads);
    }
    const uint32_t heads = std::max(1u, c.heads.heads);
    c.heads.head_dim = RL_TRY(count(file, "attention.key_length", std::max(1u, c.dim / heads), 1, 4096));
    const uint32_t value_length = RL_TRY(count(file, "attention.value_length", c.heads.head_dim, 1, 4096));
    if (value_length != c.heads.head_dim && !meta.find(file.key("attention.kv_lora_rank")))
        return error("{}: value heads of {} beside key heads of {} are not supported", file.gguf.path(),
                     value_length, c.heads.head_dim);
    const std::string eps_key = file.key("attention.layer_norm_rms_epsilon");
    c.eps = eps ? RL_TRY(meta.real(eps_key, *eps)) : RL_TRY(meta.real(eps_key));
    if (!(c.eps > 0.0f && c.eps < 1.0f))
        return error("{}: {} is {}, between 0 and 1 expected", file.gguf.path(), eps_key, c.eps);
    c.experts = RL_TRY(count(file, "expert_count", 0, 0, 1024));
    if (c.experts > 0) {
        c.experts_used = RL_TRY(count(file, "expert_used_count", {}, 1, c.experts));
        c.expert_ffn_dim = RL_TRY(count(file, "expert_feed_forward_length", c.ffn_dim, 1, 1u << 24));
    } else if (c.ffn_dim == 0 && differ != LayersDiffer::in_size) {
        return error("{}: {} is missing or zero", file.gguf.path(), file.key("feed_forward_length"));
    }
    const GgufTensor* table = file.gguf.find("token_embd.weight");
    if (!table) return error("{}: tensor token_embd.weight is missing", file.gguf.path());
    if (table->tensor.shape.rows > (1u << 24) || table->tensor.shape.count > 1)
        return error("{}: tensor token_embd.weight has an impossible shape", file.gguf.path());
    c.vocab = uint32_t(table->tensor.shape.rows);
    return c;
}

Result<Config> common_config(const ModelFile& file, std::optional<float> eps, LayersDiffer differ) {
    Result<Config> config = checked_config(file, eps, differ);
    // Errors of Metadata name the key, not the file.
    if (!config && config.error().message.find(file.gguf.path()) == std::string::npos)
        return error("{}: {}", file.gguf.path(), config.error().message);
    return config;
}

Status read_window(const ModelFile& file, Config& config) {
    config.window = RL_TRY(file.meta().integer(file.key("attention.sliding_window"), 0));
    if (config.window > config.train_context) config.window = 0;
    return {};
}

Status read_windows(const ModelFile& file, Config& config, uint32_t period, uint64_t window) {
    config.window = RL_TRY(file.meta().integer(file.key("attention.sliding_window"), window));
    if (config.window > config.train_context) config.window = 0;
    const std::string key = file.key("attention.sliding_window_pattern");
    const MetadataValue* stored = file.meta().find(key);
    const bool by_layer = stored && (std::holds_alternative<MetadataValue::Bools>(stored->value) ||
                                     std::holds_alternative<MetadataValue::Integers>(stored->value));
    if (by_layer) {
        const std::vector<uint64_t> flags =
            RL_TRY(file.integers("attention.sliding_window_pattern", config.layers, {}));
        config.windowed.assign(flags.begin(), flags.end());
        return {};
    }
    const uint64_t every = RL_TRY(file.meta().integer(key, period));
    for (uint32_t i = 0; i < config.layers; ++i)
        config.windowed.push_back(every == 0 || i % every < every - 1);
    return {};
}

static Status read_expert_groups(const ModelFile& file, Config& c, bool allowed) {
    const uint32_t groups = RL_TRY(count(file, "expert_group_count", 1, 0, 1024));
    if (groups <= 1) return {};
    if (!allowed)
        return error("{}: {} is {}; architecture {} has no experts in groups", file.gguf.path(),
                     file.key("expert_group_count"), groups, file.arch);
    c.expert_groups = {groups, RL_TRY(count(file, "expert_group_used_count", groups, 1, groups))};
    if (c.experts % groups != 0 || c.experts_used > c.experts / groups * c.expert_groups.used)
        return error("{}: {} of {} experts cannot be chosen from {} of {} groups", file.gguf.path(),
                     c.experts_used, c.experts, c.expert_groups.used, groups);
    return {};
}

// A layer that predicts has experts, or an FFN, wherever it stands.
static void choose_experts(const ModelFile& file, Config& c) {
    if (!c.predicts()) return;
    const bool routes = file.gguf.find(fmt::format("blk.{}.ffn_gate_inp.weight", c.first_layer)) != nullptr;
    c.dense_layers = routes ? 0 : c.layers;
}

Status read_shared_experts(const ModelFile& file, Config& c, uint64_t fallback, bool groups) {
    if (c.experts == 0) return {};
    RL_TRY(read_expert_groups(file, c, groups));
    const uint64_t shared = RL_TRY(count(file, "expert_shared_count", fallback, 0, 1024));
    c.shared_ffn_dim =
        RL_TRY(count(file, "expert_shared_feed_forward_length", shared * c.expert_ffn_dim, 0, 1u << 24));
    c.expert_norm = RL_TRY(file.meta().boolean(file.key("expert_weights_norm"), false));
    c.expert_scale = RL_TRY(factor(file, "expert_weights_scale", 1.0f));
    if (c.expert_scale == 0.0f) c.expert_scale = 1.0f;
    RL_TRY(leave_out_predicting_layers(file, c));
    c.dense_layers = RL_TRY(count(file, "leading_dense_block_count", 0, 0, c.layers));
    choose_experts(file, c);
    return {};
}

Status require_experts(const ModelFile& file, const Config& c) {
    if (c.experts > 0) return {};
    return error("{}: {} is missing or zero", file.gguf.path(), file.key("expert_count"));
}

Status read_gating(const ModelFile& file, Config& c, Gating fallback, Gatings allowed) {
    constexpr uint64_t kSoftmax = 1, kSigmoid = 2;  // as GGUF numbers them
    const std::string key = file.key("expert_gating_func");
    const uint64_t gating =
        RL_TRY(file.meta().integer(key, fallback == Gating::sigmoid ? kSigmoid : kSoftmax));
    const bool both = allowed == Gatings::softmax_or_sigmoid;
    if (gating != kSigmoid && !(both && gating == kSoftmax))
        return error("{}: {} is {}, {}2 (sigmoid) expected", file.gguf.path(), key, gating,
                     both ? "1 (softmax) or " : "");
    c.gating = gating == kSigmoid ? Gating::sigmoid : Gating::softmax;
    return {};
}

// The file counts layers that predict with the others, and both functions may be called after each other.
Status leave_out_predicting_layers(const ModelFile& file, Config& c) {
    if (c.predicts()) return {};
    const uint32_t all = RL_TRY(count(file, "block_count", {}, 1, 1024));
    c.unused_layers = RL_TRY(count(file, "nextn_predict_layers", 0, 0, all - 1));
    c.layers = all - c.unused_layers;
    return {};
}

Status choose_layers(const ModelFile& file, Config& c) {
    RL_TRY(leave_out_predicting_layers(file, c));
    if (!file.prediction || *file.prediction >= c.unused_layers) return {};
    c.first_layer = c.layers + *file.prediction;
    c.layers = c.first_layer + 1;
    c.unused_layers = 0;
    choose_experts(file, c);
    return {};
}

Result<float> factor(const ModelFile& file, std::string_view rest, float fallback) {
    const float value = RL_TRY(file.meta().real(file.key(rest), fallback));
    if (!(std::isfinite(value) && value >= 0.0f))
        return error("{}: {} is {}, a number that is not negative expected", file.gguf.path(), file.key(rest),
                     value);
    return value;
}

}  // namespace redline
