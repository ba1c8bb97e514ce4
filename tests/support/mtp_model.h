// Copies of the tiny models with MTP heads: further layers like their last one with attention, and random
// weights around them.
#pragma once

#include "support/changed_model.h"

#include <random>

namespace redline::test {

// The value of a key that has one for each of so many layers with those of other layers; empty for other
// keys.
inline std::optional<MetadataValue> value_of_layers(const MetadataValue& value, uint32_t all,
                                                    const std::vector<uint32_t>& layers) {
    MetadataValue chosen = value;
    const auto choose = [&](auto& to, const auto& from) {
        to.clear();
        for (const uint32_t layer : layers) to.push_back(from[layer]);
    };
    if (const auto* whole = std::get_if<MetadataValue::Integers>(&value.value); whole && whole->size() == all)
        choose(std::get<MetadataValue::Integers>(chosen.value), *whole);
    else if (const auto* flags = std::get_if<MetadataValue::Bools>(&value.value);
             flags && flags->size() == all)
        choose(std::get<MetadataValue::Bools>(chosen.value), *flags);
    else if (const auto* reals = std::get_if<MetadataValue::Floats>(&value.value);
             reals && reals->size() == all)
        choose(std::get<MetadataValue::Floats>(chosen.value), *reals);
    else
        return {};
    return chosen;
}

// A part of a head's layer: the tensors of a layer of the model, one of which may have another name there.
struct MtpPart {
    uint32_t layer = 0;
    std::string norm = "attn_norm", named = "attn_norm";
};

// "step35:0" is step35 with a head like its layer 0.
inline std::string tiny_name(const std::string& name) {
    return name.substr(0, name.find(':'));
}

struct MtpSource {
    explicit MtpSource(const std::string& name)
        : model(must(Model::inspect(golden("models/" + tiny_name(name) + ".gguf"), 64))),
          config(model.config()) {
        layers = config.layers;
        all_layers = layers + config.unused_layers;
        layer = layers - 1;
        while (layer > 0 && (config.is_recurrent(layer) || !has(layer, "attn_output"))) --layer;
        if (config.arch == "deepseek4") layer = layers - 1;  // whose attention has another output
        if (const size_t at = name.find(':'); at != std::string::npos)
            layer = uint32_t(std::stoul(name.substr(at + 1)));
        parts = {{layer}};
        if (config.arch.starts_with("nemotron_h")) {
            uint32_t ffn = layers - 1;
            while (!has(ffn, "ffn_up") && !has(ffn, "ffn_up_exps")) --ffn;
            parts.push_back({ffn, "attn_norm", "post_attention_norm"});
        }
    }
    static std::string prefix(uint32_t number) { return fmt::format("blk.{}.", number); }
    std::string key(const char* rest) const { return config.arch + "." + rest; }
    bool has(uint32_t number, const char* tensor) const {
        return model.gguf().find(prefix(number) + tensor + ".weight") != nullptr;
    }
    bool wide() const { return config.hidden_streams > 1; }
    // Copies the tensors of a part, whose names begin with `to` then.
    void copy(const std::vector<TensorData>& all, const MtpPart& part, const std::string& to,
              std::vector<TensorData>& copies) const {
        const std::string from = prefix(part.layer);
        for (const TensorData& one : all) {
            if (!one.tensor.name.starts_with(from)) continue;
            std::string rest = one.tensor.name.substr(from.size());
            if (rest == part.norm + ".weight") rest = part.named + ".weight";
            copies.push_back(one);
            copies.back().tensor.name = to + rest;
        }
    }

    Model model;
    const Config& config;
    uint32_t layers = 0;
    uint32_t all_layers = 0;  // with those of a head that the file has
    uint32_t layer = 0;       // that the head is like
    std::vector<MtpPart> parts = {};
};

// The entries of a file with these of the source's layers, the last of which are so many heads.
inline std::vector<MetadataEntry> entries_of(const MtpSource& source, const std::vector<uint32_t>& layers,
                                             uint32_t heads) {
    std::vector<MetadataEntry> entries = {{source.key("block_count"), metadata_u32(uint32_t(layers.size()))},
                                          {source.key("nextn_predict_layers"), metadata_u32(heads)}};
    for (const auto& [name, value] : source.model.gguf().metadata().entries()) {
        if (!name.starts_with(source.config.arch + ".") || name.find(".ple.") != std::string::npos) continue;
        const auto chosen = value_of_layers(value, source.all_layers, layers);
        if (chosen) entries.emplace_back(name, *chosen);
    }
    return entries;
}

// The head's weights that are not the layer's.
struct MtpEnds {
    uint32_t dim, streams;
    std::string norm_name = "nextn.shared_head_norm";  // Ling's files have another
    std::vector<float> eh_proj, enorm, hnorm, norm;
    // In qwen4exp and deepseek4 the mix of the streams before the output, by its parts.
    struct Mix {
        std::string name;
        std::vector<uint64_t> dims;
        std::vector<float> values;
    };
    std::vector<Mix> mix = {};

    // `apart`: streams have different norms.
    explicit MtpEnds(const MtpSource& source, uint32_t number = 0, bool apart = false)
        : dim(source.config.dim),
          streams(source.config.arch == "qwen4exp" ? source.config.hidden_streams : 1) {
        if (source.config.arch == "bailingmoe2") norm_name = "layer_output_norm";
        std::mt19937 random(5 + number);
        std::normal_distribution<float> normal;
        const float size = 1.0f / std::sqrt(2.0f * float(dim));
        for (uint32_t i = 0; i < 2 * dim * dim; ++i) eh_proj.push_back(size * normal(random));
        for (std::vector<float>* gains : {&enorm, &hnorm, &norm})
            for (uint32_t i = 0; i < dim; ++i) gains->push_back(1.0f + 0.2f * normal(random));
        // Equal streams stay equal, unless their norms are to differ.
        for (uint32_t i = dim; i < streams * dim; ++i)
            hnorm.push_back(apart ? 1.0f + 0.2f * normal(random) : hnorm[i - dim]);
        if (!source.wide()) return;
        for (const char* part : {"norm", "down", "up", "fn", "base", "scale"}) {
            const GgufTensor* whole = source.model.gguf().find(fmt::format("output_hc_{}.weight", part));
            if (!whole) continue;
            Mix one{part, whole->dims, {}};
            const float scale = 1.0f / std::sqrt(float(whole->dims[0]));
            for (uint64_t i = 0; i < whole->tensor.shape.elements(); ++i)
                one.values.push_back(one.name == "norm"    ? 1.0f + 0.2f * normal(random)
                                     : one.name == "scale" ? 0.9f
                                     : one.name == "base"  ? 0.3f * normal(random)
                                                           : scale * normal(random));
            mix.push_back(std::move(one));
        }
    }
    // The tensors, by what stands before "nextn.". `halves`: the product has a matrix for tokens and one for
    // hidden rows.
    void add_to(std::vector<TensorData>& all, const std::string& before, bool wide,
                bool halves = false) const {
        const std::string to = before + "nextn.";
        std::vector<float> tokens, below;
        for (size_t i = 0; i < eh_proj.size(); ++i)
            (i % (2 * dim) < dim ? tokens : below).push_back(eh_proj[i]);
        if (halves) {
            all.push_back(float_tensor(to + "e_proj.weight", {dim, dim}, tokens));
            all.push_back(float_tensor(to + "h_proj.weight", {dim, dim}, below));
        } else {
            all.push_back(float_tensor(to + "eh_proj.weight", {2 * uint64_t(dim), dim}, eh_proj));
        }
        all.push_back(float_tensor(to + "enorm.weight", {dim}, enorm));
        all.push_back(float_tensor(to + "hnorm.weight", {hnorm.size()}, hnorm));
        if (!wide || streams == 1) all.push_back(float_tensor(before + norm_name + ".weight", {dim}, norm));
        for (const Mix& one : mix)
            all.push_back(float_tensor(to + "hc_head_" + one.name + ".weight", one.dims, one.values));
    }
};

// Which copy: heads alone, without the other layers; how many; for nemotron_h two layers for a head; where
// there are streams, with different norms, or in deepseek4 with two matrices; and with lists by layer that
// have the model's layers alone.
struct HeadForm {
    bool alone = false;
    uint32_t heads = 1;
    bool two_layers = false;
    bool apart = false;
    bool short_lists = false;
};

inline void save_with_head(const std::string& name, const std::string& path, const HeadForm& form = {}) {
    const MtpSource source(name);
    const uint32_t further = form.heads * (form.two_layers ? 2 : 1);
    std::vector<uint32_t> layers(source.layers);
    for (uint32_t i = 0; i < source.layers; ++i) layers[i] = i;
    const std::vector<uint32_t> trunk = layers;
    layers.insert(layers.end(), further, source.layer);
    std::vector<MetadataEntry> entries = entries_of(source, layers, further);
    if (form.short_lists) {
        const std::vector<MetadataEntry> numbers(entries.begin(), entries.begin() + 2);
        entries = entries_of(source, trunk, further);
        std::ranges::copy(numbers, entries.begin());
    }
    const auto change = [&](std::vector<TensorData>& all) {
        for (uint32_t i = source.layers; i < source.all_layers; ++i)
            std::erase_if(
                all, [&](const TensorData& one) { return one.tensor.name.starts_with(source.prefix(i)); });
        std::vector<TensorData> added;
        for (uint32_t head = 0; head < form.heads; ++head) {
            uint32_t at = source.layers + head;
            if (form.two_layers) {
                at = source.layers + 2 * head;
                std::vector<TensorData> ends;
                MtpEnds(source, head).add_to(ends, "", false);
                for (size_t i = 0; i < source.parts.size(); ++i)
                    source.copy(all, {source.parts[i].layer}, source.prefix(at + uint32_t(i)), added);
                for (TensorData& one : ends) {
                    const bool last = one.tensor.name == "nextn.shared_head_norm.weight";
                    one.tensor.name = source.prefix(at + last) + one.tensor.name;
                    added.push_back(one);
                }
                continue;
            }
            for (const MtpPart& part : source.parts) source.copy(all, part, source.prefix(at), added);
            MtpEnds(source, head, form.apart)
                .add_to(added, source.prefix(at), source.wide(),
                        form.apart && source.config.arch == "deepseek4");
        }
        if (form.alone)
            std::erase_if(all, [](const TensorData& one) { return one.tensor.name.starts_with("blk."); });
        all.insert(all.end(), added.begin(), added.end());
    };
    save_changed(source.model.gguf(), change, entries, path);
}

// A file with a head, for as long as this lives.
struct HeadFile {
    explicit HeadFile(const std::string& name, bool alone = false) : HeadFile(name, HeadForm{alone}) {}
    HeadFile(const std::string& name, const HeadForm& form)
        : path(temporary(fmt::format("mtp_{}_{}_{}_{}_{}_{}.gguf", name, int(form.alone), form.heads,
                                     int(form.two_layers), int(form.apart), int(form.short_lists)))) {
        save_with_head(name, path, form);
    }
    ~HeadFile() { std::filesystem::remove(path); }
    Model load(Backend& backend, ReadHead head = ReadHead::required) const {
        return must(Model::load(path, backend, {64, {}, head}));
    }
    std::string path;
};

}  // namespace redline::test
