// Numbers that files have beside their matrices.
#include "support/backends.h"
#include "support/changed_model.h"
#include "support/share.h"
#include "support/text_support.h"

#include <unistd.h>

using namespace redline;
using namespace redline::test;

namespace {

std::string changed_path() {
    return std::filesystem::temp_directory_path() / fmt::format("redline_changed_{}.gguf", ::getpid());
}

bool is_matrix(const TensorData& t) {
    const std::string& name = t.tensor.name;
    if (!name.ends_with(".weight") || t.tensor.dims.size() < 2 || t.tensor.type != 0) return false;
    return name.find("conv1d") == name.npos && name.find("ssm_norm") == name.npos;
}

std::string with_suffix(const std::string& name, const char* suffix) {
    return name.substr(0, name.size() - 6) + suffix;
}

// Divides each matrix by numbers that stand beside it; powers of two, so that nothing is rounded.
void add_scales(std::vector<TensorData>& tensors) {
    std::vector<TensorData> scales;
    for (size_t i = 0; i < tensors.size(); ++i) {
        TensorData& t = tensors[i];
        const std::string name = with_suffix(t.tensor.name, "scale");
        const auto named = [&](const TensorData& other) { return other.tensor.name == name; };
        if (!is_matrix(t) || std::any_of(tensors.begin(), tensors.end(), named)) continue;
        const bool experts = t.tensor.name.find("_exps") != std::string::npos;
        std::vector<float> values = t.floats(), numbers;
        const size_t count = experts ? t.tensor.dims.back() : 1, each = values.size() / count;
        for (size_t n = 0; n < count; ++n) numbers.push_back(std::exp2(float((i + n) % 4) - 2.0f));
        for (size_t v = 0; v < values.size(); ++v) values[v] /= numbers[v / each];
        std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
        scales.push_back(float_tensor(name, {count}, numbers));
        scales.push_back(float_tensor(with_suffix(t.tensor.name, "input_scale"), {1}, std::array{3.0f}));
    }
    REQUIRE(scales.size() > 8);
    std::move(scales.begin(), scales.end(), std::back_inserter(tensors));
}

std::string error_of(const std::function<void(std::vector<TensorData>&)>& change) {
    const std::string path = changed_path();
    save_changed(must(Gguf::open(golden("models/llama3.gguf"))), change, {}, path);
    const Result<Model> model = Model::inspect(path);
    std::filesystem::remove(path);
    REQUIRE(!model.ok());
    return model.error().message;
}

}  // namespace

TEST_CASE("weight scales: products with scaled matrices and experts are those of the model without scales") {
    const std::string path = changed_path();
    const std::vector<Token> tokens = golden_tokens();
    const Share share = share_of_models();
    size_t index = 0;
    for (const std::string name :
         {"llama3", "phi4-mini-short", "qwen3moe", "gpt-oss", "deepseek2-v3", "llama4", "gemma4-moe",
          "nemotron-h-moe", "qwen35moe", "step35", "granite-swa-moe"}) {
        if (!share.takes(index++, name)) continue;
        save_changed(must(Gguf::open(golden("models/" + name + ".gguf"))), add_scales, {}, path);
        const Matrix want = read_npy(golden("models/" + name + ".npy"));
        for (const auto& backend : all_test_backends()) {
            if (!runs_on(*backend, name)) continue;
            const Model model = must(Model::load(path, *backend, {64, {}}));
            SessionOptions options{64, 16, 16};
            options.cache = CacheType::f32;
            INFO(name, " on ", backend->device().detail);
            CHECK(relative_error(all_logits(model, tokens, options), want.values) <
                  golden_bound(*backend, name));
        }
    }
    std::filesystem::remove(path);
}

TEST_CASE("weight scales: they are applied once in a model whose layers are on two devices, fused or not") {
    const std::string path = changed_path();
    const std::vector<Token> tokens = golden_tokens();
    const std::unique_ptr<Backend> first = test::cpu(1), second = test::cpu(1);
    for (const std::string name : {"llama3", "qwen3moe", "gpt-oss", "qwen35moe"})
        for (const bool fuse : {true, false}) {
            INFO(name, " fused ", fuse);
            save_changed(must(Gguf::open(golden("models/" + name + ".gguf"))), add_scales, {}, path);
            SessionOptions options{64, 16, 16};
            options.cache = CacheType::f32;
            options.fuse = fuse;
            const Model whole = must(Model::load(path, *first, {64, {}}));
            const std::vector<float> want = all_logits(whole, tokens, options);
            const Model parts = must(Model::inspect(path, 64));
            const Plan plan = divided(must(parts.plan(1, 1, {64, 16, CacheType::f32})));
            size_t behind_first = 1;
            while (plan.steps[behind_first].layer == 0) ++behind_first;
            options.placements = {{first.get(), 0, behind_first},
                                  {second.get(), behind_first, plan.steps.size()}};
            CHECK(all_logits(parts, tokens, options) == want);
        }
    std::filesystem::remove(path);
}

TEST_CASE("weight scales: a scale of several numbers, of zero or of none is an error that names it") {
    const auto scaled = [](std::vector<float> numbers) {
        return error_of([numbers](std::vector<TensorData>& all) {
            all.push_back(float_tensor("blk.0.attn_q.scale", {numbers.size()}, numbers));
        });
    };
    CHECK(mentions(scaled({1.0f, 2.0f}), "blk.0.attn_q.scale has 2 numbers, 1"));
    CHECK(mentions(scaled({0.0f}), "blk.0.attn_q.scale holds 0"));
    CHECK(mentions(scaled({INFINITY}), "blk.0.attn_q.scale holds inf"));
    CHECK(mentions(error_of([](std::vector<TensorData>& all) {
                       all.push_back(float_tensor("blk.0.attn_x.scale", {1}, std::array{2.0f}));
                   }),
                   "blk.0.attn_x.scale is not part"));
    CHECK(mentions(error_of([](std::vector<TensorData>& all) {
                       all.push_back(float_tensor("blk.0.attn_x.input_scale", {1}, std::array{2.0f}));
                   }),
                   "blk.0.attn_x.input_scale is not part"));
}
