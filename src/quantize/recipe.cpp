#include "quantize/recipe.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>

namespace redline {

namespace {

constexpr Rule kQ2K[] = {{Part::values, Where::grouped, "Q4_K"},
                         {Part::values, Where::everywhere, "Q3_K"},
                         {Part::down, Where::everywhere, "Q3_K"},
                         {Part::attention_output, Where::everywhere, "Q3_K"}};
constexpr Rule kQ3KM[] = {{Part::values, Where::first_two, "Q5_K"},
                          {Part::values, Where::everywhere, "Q4_K"},
                          {Part::down, Where::first_sixteenth, "Q5_K"},
                          {Part::down, Where::everywhere, "Q4_K"},
                          {Part::attention_output, Where::everywhere, "Q4_K"}};
constexpr Rule kQ3KL[] = {{Part::values, Where::everywhere, "Q5_K"},
                          {Part::down, Where::everywhere, "Q5_K"},
                          {Part::attention_output, Where::everywhere, "Q5_K"}};
constexpr Rule kQ4KS[] = {{Part::values, Where::first_four, "Q5_K"},
                          {Part::down, Where::first_eighth, "Q5_K"}};
constexpr Rule kMedium[] = {{Part::values, Where::more_bits, "Q6_K"}, {Part::down, Where::more_bits, "Q6_K"}};
constexpr Rule kIq4[] = {{Part::values, Where::grouped, "Q5_K"},
                         {Part::down, Where::first_eighth_unmeasured, "Q5_K"}};
// Weighted errors may be too much for a format without minima in the first layers.
constexpr Rule kQ40[] = {{Part::down, Where::first_eighth_measured, "Q4_1"}};
constexpr Rule kQ50[] = {{Part::down, Where::first_eighth_measured, "Q5_1"}};

constexpr Recipe kRecipes[] = {
    {"Q2_K", "about 3 bits", 10, "Q2_K", kQ2K},
    {"Q3_K_S", "3.5 bits", 11, "Q3_K"},
    {"Q3_K_M", "about 3.9 bits", 12, "Q3_K", kQ3KM},
    {"Q3_K_L", "about 4.3 bits", 13, "Q3_K", kQ3KL},
    {"IQ4_XS", "4.3 bits on uneven levels", 30, "IQ4_XS", kIq4},
    {"IQ4_NL", "4.5 bits on uneven levels, in blocks of 32", 25, "IQ4_NL", kIq4},
    {"Q4_0", "4.5 bits in blocks of 32", 2, "Q4_0", kQ40},
    {"Q4_K_S", "about 4.6 bits", 14, "Q4_K", kQ4KS},
    {"Q4_K_M", "about 4.8 bits, the usual choice", 15, "Q4_K", kMedium},
    {"Q4_1", "5 bits in blocks of 32", 3, "Q4_1"},
    {"MXFP4_MOE", "experts in MXFP4, 4.25 bits; all else in Q8_0", 38, "Q8_0"},
    {"Q5_0", "5.5 bits in blocks of 32", 8, "Q5_0", kQ50},
    {"Q5_K_S", "5.5 bits", 16, "Q5_K"},
    {"Q5_K_M", "about 5.7 bits", 17, "Q5_K", kMedium},
    {"Q5_1", "6 bits in blocks of 32", 9, "Q5_1"},
    {"Q6_K", "6.6 bits", 18, "Q6_K"},
    {"Q8_0", "8.5 bits, hardly any loss", 7, "Q8_0"},
    {"F16", "halves", 1, "F16"},
    {"BF16", "bfloat16", 32, "BF16"},
    {"F32", "floats", 0, "F32"},
};

constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}, {"MXFP4", "MXFP4_MOE"}};

bool same_letters(std::string_view a, std::string_view b) {
    const auto same = [](char x, char y) { return std::toupper(uint8_t(x)) == std::toupper(uint8_t(y)); };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

// N of "blk.N."; UINT64_MAX, past all layers, when there is none.
uint64_t layer_of(std::string_view name) {
    uint64_t layer = UINT64_MAX;
    if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
    return layer;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

// True for matrices of weights. Tensors are left out that are small while their errors matter much: gains,
// routers, embeddings of positions (inside blocks, too), and convolutions, whose rows are a few taps. The
// names, except "_ape", are those that llama.cpp leaves out, including those of architectures that only it
// runs.
bool is_quantized(const GgufTensor& tensor) {
    const std::string& name = tensor.tensor.name;
    if (tensor.dims.size() < 2 || tensor.tensor.shape.rows * tensor.tensor.shape.count < 2) return false;
    constexpr std::string_view kKept[] = {"_norm.weight",
                                          "ffn_gate_inp.weight",
                                          "conv1d.weight",
                                          "shortconv.conv.weight",
                                          "altup",
                                          "laurel",
                                          "per_layer_model_proj",
                                          "ffn_gate_tid2eid.weight",
                                          "position_embd",
                                          "_ape.weight",
                                          "token_types.weight",
                                          "attn_rel_b.weight",
                                          "time_mix_first.weight",
                                          "time_mix_w0.weight",
                                          "time_mix_w1.weight",
                                          "time_mix_w2.weight",
                                          "time_mix_v0.weight",
                                          "time_mix_v1.weight",
                                          "time_mix_v2.weight",
                                          "time_mix_a0.weight",
                                          "time_mix_a1.weight",
                                          "time_mix_a2.weight",
                                          "time_mix_g1.weight",
                                          "time_mix_g2.weight",
                                          "time_mix_lerp_fused.weight",
                                          "time_mix_decay_w1.weight",
                                          "time_mix_decay_w2.weight"};
    return name.ends_with(".weight") &&
           std::none_of(std::begin(kKept), std::end(kKept), [&](auto part) { return contains(name, part); });
}

Part part_of(const std::string& name, bool tied) {
    if (name == "output.weight" || (tied && name == "token_embd.weight")) return Part::output;
    if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return Part::embedding;
    if (contains(name, "attn_v.") || contains(name, "attn_qkv.") || contains(name, "attn_kv_b."))
        return Part::values;
    if (contains(name, "attn_q.")) return Part::queries;
    if (contains(name, "attn_k.")) return Part::keys;
    if (contains(name, "attn_output.")) return Part::attention_output;
    return contains(name, "ffn_down") ? Part::down : Part::other;
}

bool divides(const GgufTensor& tensor, std::string_view format) {
    return tensor.tensor.shape.cols % find_format(format)->block == 0;
}

std::string_view fitting(const GgufTensor& tensor, std::string_view wanted) {
    constexpr std::pair<std::string_view, std::string_view> kSubstitutes[] = {
        {"Q2_K", "Q4_0"}, {"Q3_K", "Q4_0"}, {"IQ4_XS", "IQ4_NL"},
        {"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}};
    if (divides(tensor, wanted)) return wanted;
    for (const auto& [format, substitute] : kSubstitutes)
        if (format == wanted && divides(tensor, substitute)) return substitute;
    return "F16";
}

// The position of a matrix among those that a rule counts.
struct Place {
    uint64_t index = 0, count = 0;
};

// A recipe applied to a model.
class Mix {
public:
    Mix(const Recipe& recipe, const MixOptions& options) : recipe_(recipe), options_(options) {}

    Status read(const Gguf& source) {
        const Metadata& metadata = source.metadata();
        arch_ = RL_TRY(metadata.text("general.architecture"));
        layers_ = RL_TRY(metadata.integer(arch_ + ".block_count", 0));
        experts_ = RL_TRY(metadata.integer(arch_ + ".expert_count", 0));
        const uint64_t heads = RL_TRY(first_of(metadata, arch_ + ".attention.head_count", 0));
        const uint64_t kv_heads = RL_TRY(first_of(metadata, arch_ + ".attention.head_count_kv", heads));
        sharing_ = kv_heads > 0 ? heads / kv_heads : 0;
        tied_ = !source.find("output.weight");
        for (const GgufTensor& tensor : source.tensors())
            if (is_quantized(tensor)) ordered_[part_of(tensor.tensor.name, tied_)].push_back(&tensor);
        for (auto& [part, tensors] : ordered_)
            std::stable_sort(tensors.begin(), tensors.end(), [](const auto* a, const auto* b) {
                return layer_of(a->tensor.name) < layer_of(b->tensor.name);
            });
        return {};
    }

    std::string_view format_for(const GgufTensor& tensor) const {
        if (!is_quantized(tensor)) return {};
        const bool floats = recipe_.base == "F32" || recipe_.base == "F16" || recipe_.base == "BF16";
        if (floats) return recipe_.base;
        return fitting(tensor, wanted(tensor));
    }

private:
    // An integer of the metadata, or the first of an array with one for each layer.
    static Result<uint64_t> first_of(const Metadata& metadata, const std::string& key, uint64_t fallback) {
        const std::vector<int64_t>* all = metadata.integers(key);
        if (all && !all->empty()) return uint64_t(std::max<int64_t>((*all)[0], 0));
        return metadata.integer(key, fallback);
    }

    std::string_view wanted(const GgufTensor& tensor) const {
        const Part part = part_of(tensor.tensor.name, tied_);
        if (recipe_.name == "MXFP4_MOE")
            return tensor.dims.size() > 2 && tensor.dims[2] > 1 && part != Part::output ? "MXFP4" : "Q8_0";
        if (options_.pure || recipe_.base == "Q8_0") return recipe_.base;
        if (part == Part::output)
            return arch_ == "falcon" || !divides(tensor, recipe_.base) ? "Q8_0" : "Q6_K";
        const Place place = place_of(tensor, part);
        if (arch_ == "falcon" && part != Part::values) return of_falcon(part, place);
        // Mixtures of eight experts share their attention, so that more bits are cheap there.
        if (experts_ == 8 && (part == Part::values || part == Part::keys)) return "Q8_0";
        if (experts_ == 8 && part == Part::attention_output) return few_bits() ? "Q5_K" : recipe_.base;
        std::string_view format = recipe_.base;
        for (const Rule& rule : recipe_.rules)
            if (rule.part == part && holds(rule.where, place)) {
                format = rule.format;
                break;
            }
        const bool shared_by_eight = layers_ == 80 && sharing_ > 1 && (arch_ == "llama" || arch_ == "qwen2");
        const bool few = format == "Q3_K" || format == "Q4_K";
        return part == Part::values && shared_by_eight && few ? "Q5_K" : format;
    }

    bool few_bits() const {
        constexpr std::string_view kFew[] = {"Q2_K",   "Q3_K_S", "Q3_K_M", "IQ4_XS",
                                             "IQ4_NL", "Q4_K_S", "Q4_K_M"};
        return std::find(std::begin(kFew), std::end(kFew), recipe_.name) != std::end(kFew);
    }

    std::string_view of_falcon(Part part, Place place) const {
        const bool more = holds(Where::more_bits, place), first = holds(Where::first_sixteenth, place);
        if (part == Part::attention_output) return recipe_.name == "Q3_K_L" ? "Q4_K" : recipe_.base;
        if (part != Part::down) return recipe_.base;
        if (recipe_.name == "Q3_K_M") return first ? "Q5_K" : more ? "Q4_K" : "Q3_K";
        if (recipe_.name == "Q3_K_L") return "Q4_K";
        if (recipe_.name == "Q4_K_M") return first ? "Q6_K" : more ? "Q5_K" : "Q4_K";
        if (recipe_.name == "Q4_K_S") return "Q4_K";
        for (const Rule& rule : recipe_.rules)
            if (rule.part == part && holds(rule.where, place)) return rule.format;
        return recipe_.base;
    }

    // Value and down matrices are counted one by one, since not every layer may have one; with experts, whose
    // layers have several down matrices, the layer counts.
    Place place_of(const GgufTensor& tensor, Part part) const {
        const auto found = ordered_.find(part);
        if (found == ordered_.end()) return {};
        const auto& all = found->second;
        const uint64_t index = uint64_t(std::find(all.begin(), all.end(), &tensor) - all.begin());
        if (part != Part::down) return {index, all.size()};
        return {experts_ > 1 ? layer_of(tensor.tensor.name) : index, layers_};
    }

    bool holds(Where where, Place place) const {
        const auto [i, n] = place;
        switch (where) {
            case Where::everywhere:
                return true;
            case Where::more_bits:
                return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
            case Where::first_two:
                return i < 2;
            case Where::first_four:
                return i < 4;
            case Where::first_eighth:
                return i < n / 8;
            case Where::first_sixteenth:
                return i < n / 16;
            case Where::grouped:
                return sharing_ >= 4;
            case Where::first_eighth_measured:
                return options_.measured && i < n / 8;
            case Where::first_eighth_unmeasured:
                return !options_.measured && i < n / 8;
        }
        return false;
    }

    const Recipe& recipe_;
    const MixOptions& options_;
    std::string arch_;
    uint64_t layers_ = 0, experts_ = 0;
    uint64_t sharing_ = 0;                                    // heads that share keys and values
    bool tied_ = false;                                       // the embedding is also the output matrix
    std::map<Part, std::vector<const GgufTensor*>> ordered_;  // by layer
};

}  // namespace

std::span<const Recipe> recipes() {
    return kRecipes;
}

const Recipe* find_recipe(std::string_view name) {
    for (const auto& [other, meant] : kOtherNames)
        if (same_letters(name, other)) name = meant;
    for (const Recipe& recipe : kRecipes)
        if (same_letters(name, recipe.name)) return &recipe;
    return nullptr;
}

Result<std::vector<std::string_view>> choose_formats(const Recipe& recipe, const Gguf& source,
                                                     const MixOptions& options) {
    Mix mix(recipe, options);
    RL_TRY(mix.read(source));
    std::vector<std::string_view> formats;
    for (const GgufTensor& tensor : source.tensors()) formats.push_back(mix.format_for(tensor));
    return formats;
}

}  // namespace redline
