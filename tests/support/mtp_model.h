// Copies of the tiny models with an MTP head: a further layer like their last one with attention, and random
// weights around it.
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

struct MtpSource {
    explicit MtpSource(const std::string& name)
        : model(must(Model::inspect(golden("models/" + name + ".gguf"), 64))), config(model.config()) {
        layers = config.layers;
        all_layers = layers + config.unused_layers;
        layer = layers - 1;
        while (layer > 0 && config.is_recurrent(layer)) --layer;
    }
    std::string prefix(uint32_t number) const { return fmt::format("blk.{}.", number); }
    std::string key(const char* rest) const { return config.arch + "." + rest; }

    Model model;
    const Config& config;
    uint32_t layers = 0;
    uint32_t all_layers = 0;  // with those of a head that the file has
    uint32_t layer = 0;       // that the head is like
};

// The entries of a file with these of the source's layers.
inline std::vector<MetadataEntry> entries_of(const MtpSource& source, const std::vector<uint32_t>& layers) {
    const uint32_t heads = layers.size() > source.layers ? 1 : 0;
    std::vector<MetadataEntry> entries = {{source.key("block_count"), metadata_u32(uint32_t(layers.size()))},
                                          {source.key("nextn_predict_layers"), metadata_u32(heads)}};
    for (const auto& [name, value] : source.model.gguf().metadata().entries()) {
        if (!name.starts_with(source.config.arch + ".")) continue;
        const auto chosen = value_of_layers(value, source.all_layers, layers);
        if (chosen) entries.emplace_back(name, *chosen);
    }
    return entries;
}

// The head's weights that are not the layer's, by the names behind "nextn.".
struct MtpEnds {
    std::vector<float> eh_proj, enorm, hnorm, norm;

    explicit MtpEnds(uint32_t dim) {
        std::mt19937 random(5);
        std::normal_distribution<float> normal;
        const float size = 1.0f / std::sqrt(2.0f * float(dim));
        for (uint32_t i = 0; i < 2 * dim * dim; ++i) eh_proj.push_back(size * normal(random));
        for (std::vector<float>* gains : {&enorm, &hnorm, &norm})
            for (uint32_t i = 0; i < dim; ++i) gains->push_back(1.0f + 0.2f * normal(random));
    }
};

// `alone`: without the other layers.
inline void save_with_head(const std::string& name, const std::string& path, bool alone = false) {
    const MtpSource source(name);
    const uint64_t dim = source.config.dim;
    const MtpEnds ends{uint32_t(dim)};
    std::vector<uint32_t> layers(source.layers);
    for (uint32_t i = 0; i < source.layers; ++i) layers[i] = i;
    layers.push_back(source.layer);
    const std::vector<MetadataEntry> entries = entries_of(source, layers);
    const auto change = [&](std::vector<TensorData>& all) {
        for (uint32_t i = source.layers; i < source.all_layers; ++i)
            std::erase_if(
                all, [&](const TensorData& one) { return one.tensor.name.starts_with(source.prefix(i)); });
        std::vector<TensorData> head;
        const std::string from = source.prefix(source.layer), to = source.prefix(source.layers);
        for (const TensorData& one : all) {
            if (!one.tensor.name.starts_with(from)) continue;
            head.push_back(one);
            head.back().tensor.name = to + one.tensor.name.substr(from.size());
        }
        if (alone)
            std::erase_if(all, [](const TensorData& one) { return one.tensor.name.starts_with("blk."); });
        all.insert(all.end(), head.begin(), head.end());
        all.push_back(float_tensor(to + "nextn.eh_proj.weight", {2 * dim, dim}, ends.eh_proj));
        all.push_back(float_tensor(to + "nextn.enorm.weight", {dim}, ends.enorm));
        all.push_back(float_tensor(to + "nextn.hnorm.weight", {dim}, ends.hnorm));
        all.push_back(float_tensor(to + "nextn.shared_head_norm.weight", {dim}, ends.norm));
    };
    save_changed(source.model.gguf(), change, entries, path);
}

// A file with a head, for as long as this lives.
struct HeadFile {
    explicit HeadFile(const std::string& name, bool alone = false)
        : path(temporary(fmt::format("mtp_{}_{}.gguf", name, int(alone)))) {
        save_with_head(name, path, alone);
    }
    ~HeadFile() { std::filesystem::remove(path); }
    Model load(Backend& backend, ReadHead head = ReadHead::required) const {
        return must(Model::load(path, backend, {64, {}, head}));
    }
    std::string path;
};

}  // namespace redline::test
