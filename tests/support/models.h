// The tiny models of tests/golden/models, and what several tests do with them.
#pragma once

#include "devices/device_choice.h"
#include "engine/session.h"
#include "gguf/writer.h"
#include "measure/comparison.h"
#include "plan/stored_weights.h"
#include "support/material.h"
#include "support/must.h"
#include "support/npy.h"
#include "support/share.h"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>

namespace redline::test {

// Their names in order, of the share that is wanted.
inline std::vector<std::string> tiny_models() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(golden("models")))
        if (entry.path().extension() == ".gguf") names.push_back(entry.path().stem().string());
    REQUIRE(names.size() >= 6);
    std::sort(names.begin(), names.end());
    const Share share = share_of_models();
    size_t index = 0;
    std::erase_if(names, [&](const std::string& name) { return !share.takes(index++, name); });
    return names;
}

inline std::vector<Token> golden_tokens() {
    std::ifstream in(golden("models/tokens.txt"));
    std::vector<Token> tokens;
    for (Token token; in >> token;) tokens.push_back(token);
    REQUIRE(!tokens.empty());
    return tokens;
}

using Renaming = std::function<std::string(std::string)>;  // empty: left out

// A copy of a file with other names of its keys and tensors, and further keys.
inline void save_renamed(const Gguf& gguf, const Renaming& key, const Renaming& tensor,
                         std::vector<MetadataEntry> entries, const std::string& path) {
    for (const auto& [name, value] : gguf.metadata().entries())
        if (const std::string other = key(name); !other.empty()) entries.emplace_back(other, value);
    std::vector<NewTensor> tensors;
    for (const GgufTensor& t : gguf.tensors())
        tensors.push_back({tensor(t.tensor.name), t.dims, t.type, t.bytes});
    std::ofstream out(path, std::ios::binary);
    const auto write = [&](std::span<const std::byte> bytes) {
        out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    };
    write(gguf_header(entries, tensors, 32));
    for (const GgufTensor& t : gguf.tensors()) {
        std::vector<std::byte> data(t.bytes + gguf_padding(t.bytes, 32));
        REQUIRE(gguf.read(t, 0, std::span(data).first(t.bytes)).ok());
        write(data);
    }
}

// A path of this process in the folder of temporary files.
inline std::string temporary(const std::string& name) {
    return std::filesystem::temp_directory_path() / fmt::format("redline_test_{}_{}", ::getpid(), name);
}

inline Model tiny(Backend& backend, const std::string& name) {
    return must(Model::load(golden("models/" + name + ".gguf"), backend, {64, {}}));
}

inline std::vector<float> copy(std::span<const float> values) {
    return {values.begin(), values.end()};
}

// A copy of a file with one more number in its metadata.
inline void save_with_key(const Gguf& gguf, const std::string& key, uint32_t value, const std::string& path) {
    const auto same = [](std::string name) { return name; };
    save_renamed(gguf, same, same, {{key, metadata_u32(value)}}, path);
}

// False where the backend has no kernels for an op of a model; any other error fails.
inline bool runs_on(Backend& backend, const std::string& name) {
    const Model model = must(Model::inspect(golden("models/" + name + ".gguf"), 64));
    const Result<BoundPlan> bound = lower(must(model.plan(1, 1, {64})), backend);
    if (bound) return true;
    REQUIRE(bound.error().message.find(" has no kernel for ") != std::string::npos);
    return false;
}

// The tiny models that a backend runs.
inline std::vector<std::string> tiny_models(Backend& backend) {
    std::vector<std::string> names = tiny_models();
    std::erase_if(names, [&](const std::string& name) { return !runs_on(backend, name); });
    return names;
}

inline std::unique_ptr<Backend> cpu(uint32_t threads = 2, const std::string& level = "") {
    return must(open_backend("cpu", {threads, level}));
}

// Logits of all tokens, fed `batch` at a time.
inline std::vector<float> all_logits(const Model& model, const std::vector<Token>& tokens,
                                     SessionOptions options) {
    Session session = must(Session::create(model, options));
    std::vector<float> out;
    must(session.feed_all(tokens, [&](size_t, std::span<const float> rows) {
        out.insert(out.end(), rows.begin(), rows.end());
    }));
    return out;
}

// The weights as floats, rounded to halves where the backend decodes them to F16.
inline std::vector<std::vector<float>> decoded_weights(const Model& model, const Backend& backend) {
    WeightList list(model.config());
    model.arch().weights(model.config(), list);
    const ResolvedWeights resolved = must(resolve_weights(model.gguf(), list));
    const std::vector<WeightInfo> stored = stored_weights(resolved.weights, backend);
    std::vector<std::vector<float>> weights;
    for (size_t i = 0; i < stored.size(); ++i) {
        const Tensor& tensor = resolved.weights[i].tensor;
        const ResolvedWeights::Source& source = resolved.sources[i];
        std::vector<std::byte> bytes(tensor.bytes());
        must(read_weight(model.gguf(), resolved.weights[i], source, 0, bytes));
        std::vector<float> all(tensor.shape.elements());
        tensor.format->decode(bytes.data(), all.data(), all.size());
        if (stored[i].tensor.format != tensor.format)
            for (float& value : all) value = half_to_float(float_to_half(value));
        weights.push_back(std::move(all));
    }
    return weights;
}

// Largest difference relative to the spread of the wanted values.
inline double relative_error(std::span<const float> got, std::span<const float> want) {
    REQUIRE(got.size() == want.size());
    double sum = 0.0, squares = 0.0, worst = 0.0;
    for (const float w : want) {
        sum += w;
        squares += double(w) * w;
    }
    const double mean = sum / double(want.size());
    const double spread = std::sqrt(squares / double(want.size()) - mean * mean);
    for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(double(got[i]) - want[i]));
    return worst / spread;
}

// By how much logits may differ from those of other chunks, or of another correct implementation: twice as
// far as results of the reference do when it rounds at random what the kernels of `bound` round, since three
// samples are half as far apart as many would be, or more.
inline double compute_chunk_bound(const Model& model, const BoundPlan& bound, const StepParams& step) {
    const std::vector<std::vector<float>> weights = decoded_weights(model, model.backend());
    const auto logits = [&](Reference& reference) {
        reference.run(step, precisions(bound, step));
        std::vector<float> values;
        for (const Bounded& logit : reference.output()) values.push_back(float(logit.value));
        return values;
    };
    Reference reference(bound.plan, weights);
    logits(reference);
    double most = 0.0;
    std::vector<std::vector<float>> runs;
    for (const uint32_t seed : {1u, 2u, 3u}) {
        Reference other(bound.plan, weights);
        other.round_at_random(seed, reference);
        runs.push_back(logits(other));
        for (const std::vector<float>& run : runs) most = std::max(most, relative_error(run, runs.back()));
    }
    CHECK(2 * most <= kLoosestBound);
    return 2 * most;
}

// Computed once for all cases of a test and all backends that round alike: the reference takes long.
inline double chunk_bound(const Model& model, const SessionOptions& options,
                          const std::vector<Token>& tokens) {
    const BoundPlan bound = must(lower(
        must(model.plan(options.batch, options.outputs, {options.context, options.batch, options.cache})),
        model.backend()));
    const SequenceStep rows(tokens, 0, std::min(options.outputs, uint32_t(tokens.size())));
    StepParams step = rows;
    const std::vector<float> lookups = must(model.lookups(tokens, 0));
    step.lookups = lookups;
    const std::vector<Precision> all = precisions(bound, step);
    std::vector<Precision> of_core_ops;
    for (const size_t from : expand(bound.plan).from) of_core_ops.push_back(all[from]);
    static std::map<std::pair<std::string, std::vector<Precision>>, double> known;
    const size_t decoded = decoded_formats(model.file_weights(), model.backend()).size();
    const std::string key =
        fmt::format("{} {} {} {} {} {} {}", must(model.fingerprint()), decoded, options.context,
                    options.batch, options.outputs, cache_types_name(options.cache), fmt::join(tokens, " "));
    const auto [at, added] = known.try_emplace({key, std::move(of_core_ops)});
    if (added) at->second = compute_chunk_bound(model, bound, step);
    return at->second;
}

// By how much a backend's logits may differ from those of transformers, with a cache of floats.
inline double golden_bound(Backend& backend, const std::string& name) {
    const Model model = must(Model::load(golden("models/" + name + ".gguf"), backend, {64, {}}));
    return chunk_bound(model, {64, 64, 64, CacheType::f32}, golden_tokens());
}

}  // namespace redline::test
