// Keys and names of single architectures, by their tiny models.
#include "support/backends.h"
#include "support/changed_model.h"
#include "support/text_support.h"

#include <unistd.h>
#include <limits>

using namespace redline;
using namespace redline::test;

TEST_CASE("model: the page of architectures names each of them, and its file") {
    const std::string page = must(read_text_file(source_file("models/README.md")));
    for (const Arch* arch : all_archs())
        for (const std::string& name : arch->names)
            CHECK_MESSAGE(page.find("`" + name + "`") != std::string::npos, name, " is missing");
    for (const auto& file : std::filesystem::directory_iterator(source_file("models"))) {
        const std::string name = file.path().filename().string();
        if (file.path().extension() == ".cpp")
            CHECK_MESSAGE(page.find("`" + name + "`") != std::string::npos, name, " is missing");
    }
}

TEST_CASE("model: architectures that Ollama's files name differently give the same logits") {
    const std::string path =
        std::filesystem::temp_directory_path() / fmt::format("redline_renamed_{}.gguf", ::getpid());
    struct Renamed {
        std::string file, arch, other;
    };
    for (const auto& [file, arch, other] :
         {Renamed{"olmo3", "olmo2", "olmo3"}, {"qwen2vl", "qwen2vl", "qwen25vl"}}) {
        CAPTURE(file);
        const auto key = [&](std::string name) {
            if (name == "general.architecture") return std::string();
            return name.starts_with(arch + ".") ? other + name.substr(arch.size()) : name;
        };
        const std::string original = golden("models/" + file + ".gguf");
        save_renamed(
            must(Gguf::open(original)), key, [](std::string name) { return name; },
            {{"general.architecture", {other, 8}}}, path);
        const auto backend = test::cpu(1);
        const auto logits = [&](const std::string& from) {
            return all_logits(must(Model::load(from, *backend, {64, {}})), golden_tokens(), {64, 64, 64});
        };
        CHECK(logits(path) == logits(original));
    }
    std::filesystem::remove(path);
}

// The error of a tiny model without a key, or with another value for it.
static std::string error_with(const std::string& name, const std::string& key,
                              std::optional<MetadataValue> value = {}) {
    const std::string path =
        std::filesystem::temp_directory_path() / fmt::format("redline_key_{}.gguf", ::getpid());
    std::vector<MetadataEntry> entries;
    if (value) entries.emplace_back(key, *value);
    save_renamed(
        must(Gguf::open(golden("models/" + name + ".gguf"))),
        [&](std::string other) { return other == key ? std::string() : other; },
        [](std::string tensor) { return tensor; }, std::move(entries), path);
    const Result<Model> model = Model::inspect(path);
    std::filesystem::remove(path);
    REQUIRE(!model.ok());
    CHECK(mentions(model.error().message, key));
    return model.error().message;
}

TEST_CASE("model: impossible keys of single architectures are errors that name the key") {
    const auto flags = [](size_t count) { return MetadataValue{MetadataValue::Bools(count, true), 9, 7}; };
    const auto real = [](double value) { return MetadataValue{value, 6}; };
    CHECK(mentions(error_with("granite-swa", "granite_swa.attention.sliding_window_pattern"), "missing"));
    CHECK(mentions(error_with("granite-swa", "granite_swa.attention.rope_pattern", flags(3)), "3"));
    CHECK(mentions(error_with("exaone4", "exaone4.attention.sliding_window_pattern", flags(4)), "4"));
    CHECK(mentions(error_with("minicpm", "minicpm.residual_scale", real(-1.0)), "-1"));
    CHECK(mentions(error_with("olmo3", "olmo2.rope.freq_base_swa", real(0.5)), "0.5"));
    CHECK(mentions(error_with("arcee", "arcee.feed_forward_length"), "missing"));
    const auto reals = [](std::vector<float> values) {
        return MetadataValue{MetadataValue::Floats(std::move(values)), 9, 6};
    };
    CHECK(mentions(error_with("apertus", "xielu.alpha_p"), "3 numbers"));
    CHECK(mentions(error_with("apertus", "xielu.beta", reals({0.5f})), "3 numbers"));
    CHECK(mentions(error_with("apertus", "xielu.eps", reals({0.0f, 0.5f, 0.0f})), "0.5"));
    CHECK(mentions(error_with("gemma3n", "gemma3n.activation_sparsity_scale", reals({1.0f})), "5 expected"));
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(mentions(error_with("gemma3n", "gemma3n.activation_sparsity_scale", reals({1, 1, nan, 1, 1})),
                   "nan"));
    CHECK(mentions(error_with("gemma3n", "gemma3n.altup.active_idx", metadata_u32(1)), "first stream"));
    CHECK(mentions(error_with("gemma3n", "gemma3n.attention.shared_kv_layers", metadata_u32(5)), "5"));
    CHECK(mentions(error_with("gemma3n", "gemma3n.altup.num_inputs", metadata_u32(0)), "0"));
    CHECK(mentions(error_with("cohere2", "cohere2.attention.layer_norm_epsilon", real(-1.0)), "-1"));
}

TEST_CASE("model: a context longer than the embeddings of positions is an error") {
    const auto backend = test::cpu(1);
    const Model model = must(Model::load(golden("models/gpt2.gguf"), *backend, {}));
    CHECK(Session::create(model, {256}).ok());
    const auto longer = Session::create(model, {257});
    REQUIRE(!longer.ok());
    CHECK(mentions(longer.error().message, "embeddings of 256 positions"));
}

static std::string changed_path() {
    return std::filesystem::temp_directory_path() / fmt::format("redline_changed_{}.gguf", ::getpid());
}

static std::vector<float> logits_of(const std::string& path) {
    const auto backend = test::cpu(1);
    return all_logits(must(Model::load(path, *backend, {64, {}})), golden_tokens(), {64, 64, 64});
}

TEST_CASE("model: of a larger embedding those rows are read that have an input for the layers") {
    const std::string path = changed_path(), original = golden("models/gemma3n.gguf");
    const auto enlarge = [](std::vector<TensorData>& all) {
        for (TensorData& t : all) {
            if (t.tensor.name != "token_embd.weight") continue;
            std::vector<float> values = t.floats();
            values.resize(values.size() + 3 * t.tensor.dims[0], NAN);
            t = float_tensor(t.tensor.name, {t.tensor.dims[0], t.tensor.dims[1] + 3}, values);
        }
    };
    save_changed(must(Gguf::open(original)), enlarge, {}, path);
    CHECK(logits_of(path) == logits_of(original));
    std::filesystem::remove(path);
}

TEST_CASE("model: rope.scaling.alpha raises the rope's base, rope.scaling.yarn_attn_factor changes nothing") {
    const auto rope_with = [](const std::string& name, const std::vector<MetadataEntry>& entries) {
        const std::string path = changed_path();
        const auto same = [](std::vector<TensorData>&) {};
        save_changed(must(Gguf::open(golden("models/" + name + ".gguf"))), same, entries, path);
        const RopeSpec rope = must(Model::inspect(path)).config().rope;
        std::filesystem::remove(path);
        return rope;
    };
    const auto real = [](double value) { return MetadataValue{value, 6}; };
    const RopeSpec plain = rope_with("hunyuan-dense", {}),
                   scaled = rope_with("hunyuan-dense", {{"hunyuan-dense.rope.scaling.alpha", real(50.0)}});
    REQUIRE(plain.inverse_frequency.size() == scaled.inverse_frequency.size());
    CHECK(scaled.inverse_frequency.front() == plain.inverse_frequency.front());
    CHECK(scaled.inverse_frequency.back() * 50.0 ==
          doctest::Approx(plain.inverse_frequency.back()).epsilon(1e-6));
    CHECK(mentions(error_with("hunyuan-dense", "hunyuan-dense.rope.scaling.alpha", real(1e-30)), "base"));

    const RopeSpec yarn = rope_with("gpt-oss", {}),
                   other = rope_with("gpt-oss", {{"gpt-oss.rope.scaling.yarn_attn_factor", real(3.0)}}),
                   twice = rope_with("gpt-oss", {{"gpt-oss.rope.scaling.attn_factor", real(2.0)}});
    CHECK(other.magnitude == yarn.magnitude);
    CHECK(yarn.magnitude == doctest::Approx(1.0 + 0.1 * std::log(32.0)).epsilon(1e-6));
    CHECK(twice.magnitude == doctest::Approx(2.0 * yarn.magnitude).epsilon(1e-12));
}

// Splits a tensor's rows, or those of each of its matrices, into separate tensors.
static void divide(std::vector<TensorData>& all, uint32_t layer, const std::string& name,
                   std::initializer_list<std::pair<const char*, uint64_t>> parts) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const TensorData& t) { return t.tensor.name == prefix + name; });
    REQUIRE(found != all.end());
    const TensorData whole = *found;
    all.erase(found);
    const std::vector<float> values = whole.floats();
    const std::vector<uint64_t>& dims = whole.tensor.dims;
    const uint64_t count = dims.size() > 2 ? dims[2] : 1;
    uint64_t first = 0;
    for (const auto& [part, rows] : parts) {
        std::vector<float> mine;
        for (uint64_t n = 0; n < count; ++n) {
            const auto from = values.begin() + std::ptrdiff_t((n * dims[1] + first) * dims[0]);
            mine.insert(mine.end(), from, from + std::ptrdiff_t(rows * dims[0]));
        }
        std::vector<uint64_t> shape = dims;
        shape[1] = rows;
        all.push_back(float_tensor(prefix + part, shape, mine));
        first += rows;
    }
}

TEST_CASE("model: tensors that most files of an architecture have in one may be divided") {
    const std::string path = changed_path();
    const std::string phi = golden("models/phi4-mini-short.gguf");
    const Config c = must(Model::inspect(phi, 64)).config();
    const auto divide_attention = [&](std::vector<TensorData>& all) {
        for (uint32_t i = 0; i < c.layers; ++i)
            divide(
                all, i, "attn_qkv.weight",
                {{"attn_q.weight", c.q_dim()}, {"attn_k.weight", c.kv_dim()}, {"attn_v.weight", c.kv_dim()}});
    };
    save_changed(must(Gguf::open(phi)), divide_attention, {}, path);
    CHECK(logits_of(path) == logits_of(phi));
    const std::string granite = golden("models/granite-swa-moe.gguf");
    const Config g = must(Model::inspect(granite, 64)).config();
    const auto divide_experts = [&](std::vector<TensorData>& all) {
        for (uint32_t i = 0; i < g.layers; ++i)
            divide(all, i, "ffn_gate_up_exps.weight",
                   {{"ffn_gate_exps.weight", g.expert_ffn_dim}, {"ffn_up_exps.weight", g.expert_ffn_dim}});
    };
    save_changed(must(Gguf::open(granite)), divide_experts, {}, path);
    CHECK(logits_of(path) == logits_of(granite));
    std::filesystem::remove(path);
}
