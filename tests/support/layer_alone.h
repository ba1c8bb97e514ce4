// The layer of an MTP head as a model for itself, which knows what the head has to guess.
#pragma once

#include "gguf/value_types.h"
#include "support/mtp_model.h"

namespace redline::test {

// `centered`: the mean is taken away first.
inline std::vector<float> normed(std::span<const float> x, std::span<const float> gain, float eps,
                                 bool centered = false) {
    double squares = 0.0, sum = 0.0;
    for (const float v : x) sum += v;
    const double mean = centered ? sum / double(x.size()) : 0.0;
    for (const float v : x) squares += (double(v) - mean) * (double(v) - mean);
    const double factor = 1.0 / std::sqrt(squares / double(x.size()) + double(eps));
    std::vector<float> y;
    for (size_t i = 0; i < x.size(); ++i) y.push_back(float((double(x[i]) - mean) * factor * gain[i]));
    return y;
}

inline std::vector<float> decoded(const Gguf& gguf, const std::string& name) {
    const GgufTensor* found = gguf.find(name);
    REQUIRE(found);
    std::vector<std::byte> bytes(found->tensor.bytes());
    must(gguf.read(*found, 0, bytes));
    std::vector<float> values(found->tensor.shape.elements());
    found->tensor.format->decode(bytes.data(), values.data(), values.size());
    return values;
}

// The residual behind the last layer, and the logits.
struct Read {
    std::vector<float> residual, logits;
};
inline Read read_one(Session& session, Token token) {
    Read out;
    must(session.feed_traced({&token, 1}, [&](const TraceStep& step) {
        if (std::holds_alternative<SelectRows>(step.step->op)) out.residual = copy(step.written[0]);
    }));
    out.logits = copy(session.logits());
    return out;
}

inline Token largest(std::span<const float> logits) {
    return Token(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// A head's layer as a model for itself: token i has row i as its embedding.
class LayerAlone {
public:
    LayerAlone(const std::string& name, Backend& backend, uint32_t number = 0, bool apart = false)
        : source_(name), ends_(source_, number, apart), backend_(backend) {
        const Gguf& gguf = source_.model.gguf();
        embeddings_ = decoded(gguf, "token_embd.weight");
        if (gguf.find("output_norm.weight")) norm_ = decoded(gguf, "output_norm.weight");
    }
    uint32_t dim() const { return source_.config.dim; }
    uint32_t streams() const { return source_.config.hidden_streams; }

    // The hidden row that the model itself leaves beside a residual.
    std::vector<float> left(const std::vector<float>& residual) const {
        return hidden_as_it_is() ? residual : norm_of(residual, norm_);
    }
    // The product of eh_proj with the norms of a token's embedding and of a hidden row, or of one stream of
    // it.
    std::vector<float> row_of(std::span<const float> hidden, Token token, size_t stream = 0) const {
        const size_t dim = source_.config.dim;
        const auto embedding = std::span(embeddings_).subspan(size_t(token) * dim, dim);
        std::vector<float> scaled(embedding.begin(), embedding.end());
        for (float& v : scaled) v *= source_.config.embedding_scale;
        std::vector<float> both = norm_of(scaled, ends_.enorm);
        const size_t first = ends_.streams > 1 ? stream * dim : 0;
        const std::vector<float> below = norm_of(hidden, std::span(ends_.hnorm).subspan(first, dim));
        both.insert(both.end(), below.begin(), below.end());
        std::vector<float> row;
        for (size_t r = 0; r < dim; ++r) {
            double sum = 0.0;
            for (size_t i = 0; i < 2 * dim; ++i) sum += double(ends_.eh_proj[r * 2 * dim + i]) * both[i];
            row.push_back(float(sum));
        }
        return row;
    }
    // Adds the row of a hidden row and a token; returns the logits, and the hidden row.
    std::pair<std::vector<float>, std::vector<float>> add(std::span<const float> hidden, Token token) {
        for (const float v : row_of(hidden, token)) rows_.push_back(v / source_.config.embedding_scale);
        return read();
    }

private:
    bool hidden_as_it_is() const { return source_.config.arch == "step35" || source_.wide(); }
    // Cohere's files without an eps of root mean squares have layer norms.
    std::vector<float> norm_of(std::span<const float> x, std::span<const float> gain) const {
        const bool layer_norms =
            source_.config.arch == "cohere2moe" &&
            !source_.model.gguf().metadata().has(source_.key("attention.layer_norm_rms_epsilon"));
        return normed(x, gain, source_.config.eps, layer_norms);
    }

    std::pair<std::vector<float>, std::vector<float>> read() {
        const std::string path = temporary("mtp_layer.gguf");
        save(path);
        const Model model = must(Model::load(path, backend_, {64, {}}));
        Session session = must(Session::create(model, {64, 16, 1, CacheType::f32}));
        Read last;
        for (size_t i = 0; i < rows_.size() / source_.config.dim; ++i) last = read_one(session, Token(i));
        std::filesystem::remove(path);
        return {last.logits, hidden_as_it_is() ? last.residual : norm_of(last.residual, ends_.norm)};
    }

    // A layer that predicts sees everything in cohere2moe and qwen4exp, and is windowed in exaone4.
    std::vector<MetadataEntry> entries() const {
        std::vector<uint32_t> layers;
        for (const MtpPart& part : source_.parts) layers.push_back(part.layer);
        std::vector<MetadataEntry> all = entries_of(source_, layers, 0);
        const auto set = [&](const char* rest, MetadataValue value) {
            std::erase_if(all, [&](const MetadataEntry& e) { return e.first == source_.key(rest); });
            all.emplace_back(source_.key(rest), std::move(value));
        };
        const auto flags = [](bool flag) {
            MetadataValue value;
            value.value = MetadataValue::Bools{flag};
            value.gguf_type = gguf_type::kArray, value.element_type = gguf_type::kBool;
            return value;
        };
        set("full_attention_interval", metadata_u32(1));
        set("hash_layer_count", metadata_u32(0));
        if (source_.config.arch == "qwen4exp") {
            MetadataValue none;
            none.value = MetadataValue::Integers{};
            none.gguf_type = gguf_type::kArray, none.element_type = gguf_type::kU32;
            set("ple.layers", none);
            none.value = MetadataValue::Integers{0};
            set("attention.compress_ratios", none);
        }
        set("leading_dense_block_count",
            metadata_u32(source_.config.has_experts(source_.parts.back().layer) ? 0 : 1));
        if (source_.config.arch == "cohere2moe") set("attention.sliding_window", metadata_u32(1u << 24));
        const bool windows = source_.config.window > 0 || source_.config.arch == "cohere2moe";
        if ((source_.config.arch == "exaone4" && windows) || source_.config.arch == "cohere2moe")
            set("attention.sliding_window_pattern", flags(true));
        return all;
    }

    void save(const std::string& path) const {
        const uint64_t dim = source_.config.dim, vocab = source_.config.vocab;
        std::vector<float> table = rows_;
        table.resize(vocab * dim);
        const auto change = [&](std::vector<TensorData>& all) {
            const bool tied = std::none_of(all.begin(), all.end(), [](const TensorData& one) {
                return one.tensor.name == "output.weight";
            });
            std::vector<TensorData> kept;
            for (TensorData& one : all) {
                const std::string name = one.tensor.name;
                if (name == "token_embd.weight" && tied) {
                    kept.push_back(one);
                    kept.back().tensor.name = "output.weight";
                }
                if (name == "token_embd.weight") one = float_tensor(name, {dim, vocab}, table);
                if (name == "output_norm.weight") one = float_tensor(name, {dim}, ends_.norm);
                for (const MtpEnds::Mix& mix : ends_.mix)
                    if (name == "output_hc_" + mix.name + ".weight")
                        one = float_tensor(name, mix.dims, mix.values);
                if (!name.starts_with("blk.")) kept.push_back(one);
            }
            for (size_t i = 0; i < source_.parts.size(); ++i)
                source_.copy(all, {source_.parts[i].layer}, source_.prefix(uint32_t(i)), kept);
            std::erase_if(kept, [](const TensorData& one) {
                return one.tensor.name.find(".indexer.") != std::string::npos ||
                       one.tensor.name.find("per_layer_token_embd") == 0;
            });
            all = std::move(kept);
        };
        save_changed(source_.model.gguf(), change, entries(), path);
    }

    MtpSource source_;
    MtpEnds ends_;
    Backend& backend_;
    std::vector<float> embeddings_, norm_, rows_;
};

}  // namespace redline::test
