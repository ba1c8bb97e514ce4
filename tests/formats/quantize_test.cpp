// The encoders against the decoders and known errors, and the writing of whole files.
#include "quantize/quantize.h"

#include "gguf/writer.h"
#include "quantize/encode.h"
#include "support/gguf_builder.h"
#include "support/material.h"
#include "support/models.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <sstream>

namespace redline {

using namespace test;

namespace {

std::vector<const Encoder*> encoders() {
    std::vector<const Encoder*> found;
    for (const Format* format : all_formats())
        if (const Encoder* encoder = find_encoder(format->name)) found.push_back(encoder);
    return found;
}

std::vector<float> decoded(const Encoder& encoder, const std::vector<float>& values,
                           const std::vector<float>& weights = {}) {
    std::vector<std::byte> blocks(encoder.format->row_bytes(values.size()));
    encoder.encode(values.data(), weights.empty() ? nullptr : weights.data(), blocks.data(), values.size());
    std::vector<float> out(values.size());
    encoder.format->decode(blocks.data(), out.data(), out.size());
    return out;
}

double rmse(const std::vector<float>& a, const std::vector<float>& b,
            const std::vector<float>& weights = {}) {
    double sum = 0.0, all = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double difference = double(a[i]) - double(b[i]);
        const double weight = weights.empty() ? 1.0 : double(weights[i]);
        sum += weight * difference * difference;
        all += weight;
    }
    return std::sqrt(sum / all);
}

std::vector<float> normal(size_t count, uint32_t seed, float size = 1.0f) {
    std::mt19937 random(seed);
    std::normal_distribution<float> distribution(0.0f, size);
    std::vector<float> out(count);
    for (float& value : out) value = distribution(random);
    return out;
}

struct Folder {
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "redline_quantize_XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string operator/(const std::string& name) const { return path / name; }
    size_t files() const {
        return size_t(
            std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator()));
    }
};

Bytes halves(const std::vector<float>& values) {
    Bytes out;
    for (const float value : values) append(out, float_to_half(value));
    return out;
}

// A model of eight layers with one matrix of each kind that matters, and a key of each type.
GgufBuilder small_model() {
    GgufBuilder b;
    b.add("general.architecture", std::string("llama")).add("general.file_type", uint32_t(1));
    b.add("llama.block_count", uint32_t(8))
        .add("llama.expert_count", uint32_t(4))
        .add("a.bool", true)
        .add("a.u8", uint8_t(200))
        .add("a.i8", int8_t(-3));
    b.add("a.u16", uint16_t(60000)).add("a.i16", int16_t(-300)).add("a.i32", int32_t(-70000));
    b.add("a.u64", UINT64_MAX).add("a.i64", INT64_MIN).add("a.f32", 0.1f).add("a.f64", 1e-300);
    b.add("a.texts", std::vector<std::string>{"", "\xE2\x82\xAC", "x"})
        .add("a.floats", std::vector<float>{1.5f, -2.0f});
    b.add("a.ints", std::vector<int32_t>{-1, 2}).add("a.bytes", std::vector<uint8_t>{0, 255});
    b.tensor("token_embd.weight", {256, 6}, 1, halves(normal(256 * 6, 1)));
    b.tensor_f32("output_norm.weight", {256}, normal(256, 2));
    for (int layer = 0; layer < 8; ++layer) {
        const std::string at = "blk." + std::to_string(layer) + ".";
        b.tensor_f32(at + "attn_v.weight", {256, 3}, normal(256 * 3, 10u + uint32_t(layer)));
        b.tensor_f32(at + "ffn_up.weight", {256, 3}, normal(256 * 3, 30u + uint32_t(layer)));
    }
    b.tensor_f32("blk.0.attn_q.weight", {96, 3}, normal(96 * 3, 50));
    b.tensor_f32("blk.0.attn_k.weight", {40, 3}, normal(40 * 3, 51));
    b.tensor_f32("blk.0.ffn_gate_inp.weight", {256, 4}, normal(256 * 4, 52));
    b.tensor_f32("blk.1.ssm_conv1d.weight", {4, 64}, normal(256, 54));
    b.tensor_f32("blk.2.shortconv.conv.weight", {3, 96}, normal(288, 55));
    b.tensor_f32("blk.2.shortconv.in_proj.weight", {256, 3}, normal(768, 56));
    b.tensor_f32("blk.2.ffn_down_exps.weight", {256, 3, 4}, normal(256 * 12, 53));
    return b;
}

std::vector<float> values_of(const Gguf& file, const std::string& name) {
    const GgufTensor* tensor = file.find(name);
    REQUIRE(tensor);
    std::vector<std::byte> bytes(tensor->bytes);
    must(file.read(*tensor, 0, bytes));
    std::vector<float> out(tensor->tensor.shape.elements());
    const uint64_t cols = tensor->tensor.shape.cols;
    for (uint64_t at = 0; at < out.size(); at += cols)
        tensor->tensor.format->decode(bytes.data() + at / cols * tensor->tensor.row_bytes(), &out[at], cols);
    return out;
}

std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

std::string refusal(const GgufBuilder& model, const std::string& type = "Q4_K_M") {
    const Folder folder;
    model.save(folder / "in.gguf");
    const Gguf source = must(Gguf::open(folder / "in.gguf"));
    const auto result = quantize(source, folder / "out.gguf", *find_recipe(type), {});
    CHECK(folder.files() == 1);
    REQUIRE(!result.ok());
    return result.error().message;
}

}  // namespace

TEST_CASE("encoders: normal values lose no more than with llama.cpp") {
    // Root-mean-square errors of llama-quantize 0.7 --pure on 512 Ki values of the standard normal
    // distribution; then those weighted by importances of the columns, e^n with n of that distribution, and
    // with an importance matrix of them.
    const std::map<std::string_view, std::array<double, 2>> peer = {
        {"Q8_0", {0.005333, 0.005325}},   {"Q6_K", {0.017700, 0.016052}},  {"Q5_K", {0.036055, 0.032552}},
        {"Q5_1", {0.037766, 0.030513}},   {"Q5_0", {0.042514, 0.038010}},  {"Q4_K", {0.071205, 0.063942}},
        {"Q4_1", {0.078085, 0.062959}},   {"Q4_0", {0.085742, 0.076772}},  {"IQ4_NL", {0.075944, 0.069753}},
        {"IQ4_XS", {0.076530, 0.070514}}, {"MXFP4", {0.114937, 0.115283}}, {"Q3_K", {0.150567, 0.133238}},
        {"Q2_K", {0.296239, 0.234556}}};
    const std::vector<float> values = normal(1 << 18, 7);
    std::vector<float> weights = normal(1 << 11, 8);
    double sum = 0.0;
    for (float& weight : weights) sum += double(weight = std::exp(weight));
    for (float& weight : weights) weight *= float(double(weights.size()) / sum);
    for (size_t rows = values.size() / weights.size(), i = 1; i < rows; ++i)
        weights.insert(weights.end(), weights.begin(), weights.begin() + (1 << 11));
    for (const Encoder* encoder : encoders()) {
        CAPTURE(encoder->format->name);
        REQUIRE(peer.contains(encoder->format->name));
        const auto [error, weighted] = peer.at(encoder->format->name);
        const std::vector<float> plain = decoded(*encoder, values);
        const double without_weights = rmse(values, plain);
        CHECK(without_weights <= 1.01 * error);
        CHECK(without_weights >= 0.8 * error);  // less than possible would be a mistake of this test
        const double by_weight = rmse(values, decoded(*encoder, values, weights), weights);
        CHECK(by_weight <= 1.01 * weighted);
        CHECK(by_weight < rmse(values, plain, weights));
    }
}

TEST_CASE("encoders: what counts nothing has no say, and all that count alike is no weight") {
    const std::vector<float> values = normal(256, 11);
    std::vector<float> wild = values, some(256, 1.0f);
    for (size_t i = 0; i < values.size(); i += 5) {
        wild[i] *= 2.0f;
        some[i] = 0.0f;
    }
    for (const Encoder* encoder : encoders()) {
        CAPTURE(encoder->format->name);
        CHECK(decoded(*encoder, values, std::vector<float>(256, 1.0f)) == decoded(*encoder, values));
        CHECK(rmse(wild, decoded(*encoder, wild, some), some) < rmse(wild, decoded(*encoder, wild), some));
        // Nothing that counts: any block will do that decodes.
        for (const float value : decoded(*encoder, values, std::vector<float>(256, 0.0f)))
            CHECK(std::isfinite(value));
    }
}

TEST_CASE("encoders: a block is never worse than what the largest value alone would give") {
    const std::map<std::string_view, int> steps = {{"Q8_0", 127}, {"Q6_K", 31}, {"Q5_K", 15}, {"Q5_1", 15},
                                                   {"Q5_0", 15},  {"MXFP4", 2}, {"Q3_K", 3},  {"Q2_K", 1}};
    for (const Encoder* encoder : encoders()) {
        const std::string_view name = encoder->format->name;
        CAPTURE(name);
        const int smallest = steps.contains(name) ? steps.at(name) : 7;
        for (uint32_t seed = 0; seed < 50; ++seed) {
            const std::vector<float> values =
                normal(256, 100 + seed, std::pow(10.0f, float(seed % 6) - 3.0f));
            float most = 0.0f;
            for (const float value : values) most = std::max(most, std::fabs(value));
            // Rounding to whole steps of the largest value errs by half a step at most.
            CHECK(rmse(values, decoded(*encoder, values)) <= 0.5 * double(most) / smallest);
        }
    }
}

TEST_CASE("encoders: odd blocks decode to finite values near them") {
    std::vector<std::vector<float>> odd(8, std::vector<float>(256, 0.0f));
    odd[1].assign(256, 1.0f);
    odd[2].assign(256, -3.5f);
    odd[3][77] = -1000.0f;
    for (int i = 0; i < 256; ++i) odd[4][i] = i % 2 ? 1e-30f : -1e-30f;
    for (int i = 0; i < 256; ++i) odd[5][i] = float(i);
    for (int i = 0; i < 256; ++i) odd[6][i] = -100.0f - float(i % 7);
    for (int i = 0; i < 256; ++i) odd[7][i] = i == 3 ? 1.0f : 1e-8f;
    for (const Encoder* encoder : encoders())
        for (size_t k = 0; k < odd.size(); ++k) {
            CAPTURE(encoder->format->name);
            CAPTURE(k);
            const std::vector<float> got = decoded(*encoder, odd[k]);
            float most = 0.0f;
            for (const float value : odd[k]) most = std::max(most, std::fabs(value));
            for (const float value : got) CHECK(std::isfinite(value));
            // Below 1e-7 a half-precision scale has no digits left; a power of two may have all values
            // between two levels, of which 3 and 4 are the furthest apart.
            const double share = encoder->format->name == "MXFP4" ? 0.5 / 3.5 : 0.08;
            CHECK(rmse(odd[k], got) <= std::max(share * double(most), 1e-7));
        }
}

TEST_CASE("recipes: each tensor gets the format that llama-quantize gives it") {
    std::ifstream in(golden("quantize/mixes.txt"));
    REQUIRE(in.good());
    std::vector<std::string> mixes;
    std::string model, arch;
    uint32_t layers = 0, kv_heads = 0, experts = 0;
    std::vector<std::vector<std::string>> rows;  // of the model: the tensor, its dimensions and formats
    const auto check_model = [&] {
        if (rows.empty()) return;
        CAPTURE(model);
        GgufBuilder b;
        b.add("general.architecture", arch).add(arch + ".block_count", layers);
        b.add(arch + ".attention.head_count", uint32_t(8));
        b.add(arch + ".attention.head_count_kv", kv_heads).add(arch + ".expert_count", experts);
        for (const auto& row : rows) {
            std::vector<uint64_t> dims;
            uint64_t elements = 1;
            std::istringstream numbers(row[1]);
            for (std::string number; std::getline(numbers, number, 'x');) dims.push_back(std::stoul(number));
            for (const uint64_t dim : dims) elements *= dim;
            b.tensor_f32(row[0] + ".weight", dims, std::vector<float>(elements));
        }
        const Bytes bytes = b.bytes();
        const Gguf file = must(Gguf::parse(bytes, bytes.size(), model));
        for (size_t mix = 0; mix < mixes.size(); ++mix) {
            CAPTURE(mixes[mix]);
            const bool measured = mixes[mix].ends_with('+');
            const Recipe* recipe = find_recipe(mixes[mix].substr(0, mixes[mix].size() - measured));
            REQUIRE(recipe);
            const auto formats = must(choose_formats(*recipe, file, {.measured = measured}));
            for (size_t i = 0; i < rows.size(); ++i) {
                CAPTURE(rows[i][0]);
                CHECK((formats[i].empty() ? "F32" : formats[i]) == rows[i][2 + mix]);
            }
        }
        rows.clear();
    };
    size_t models = 0;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string first;
        words >> first;
        if (first == "#") continue;
        if (first == "mixes") {
            for (std::string mix; words >> mix;) mixes.push_back(mix);
        } else if (first == "model") {
            check_model();
            words >> model >> arch >> layers >> kv_heads >> experts;
            ++models;
        } else {
            rows.push_back({first});
            for (std::string word; words >> word;) rows.back().push_back(word);
            REQUIRE(rows.back().size() == mixes.size() + 2);
        }
    }
    check_model();
    CHECK(models >= 18);
}

TEST_CASE("recipes: all but floats have encoders, and llama.cpp's other names are known") {
    for (const Recipe& recipe : recipes()) {
        CAPTURE(recipe.name);
        REQUIRE(find_format(recipe.base));
        CHECK((find_encoder(recipe.base) || recipe.base.ends_with("F16") || recipe.base == "F32"));
        for (const Rule& rule : recipe.rules) CHECK(find_encoder(rule.format));
    }
    CHECK(find_recipe("q4_k") == find_recipe("Q4_K_M"));
    CHECK(find_recipe("Q5_K")->name == "Q5_K_M");
    CHECK(find_recipe("mxfp4")->name == "MXFP4_MOE");
    CHECK(!find_recipe("Q4_K_X"));
    CHECK(!find_recipe(""));
}

TEST_CASE("quantize: the mix, the metadata, and what is left alone") {
    const Folder folder;
    small_model().save(folder / "in.gguf");
    const Gguf source = must(Gguf::open(folder / "in.gguf"));
    const QuantizeReport report =
        must(quantize(source, folder / "out.gguf", *find_recipe("q4_k_m"), {.threads = 3}));
    const Gguf made = must(Gguf::open(folder / "out.gguf"));
    CHECK(made.file_bytes() == report.file_bytes);
    CHECK(must(made.metadata().integer("general.file_type")) == 15);
    CHECK(must(made.metadata().integer("general.quantization_version")) == 2);
    for (const auto& [key, value] : source.metadata().entries()) {
        CAPTURE(key);
        if (key == "general.file_type") continue;
        const MetadataValue* kept = made.metadata().find(key);
        REQUIRE(kept);
        CHECK(kept->value == value.value);
        CHECK(kept->gguf_type == value.gguf_type);
        CHECK(kept->element_type == value.element_type);
    }
    const auto format = [&](const std::string& name) { return made.find(name)->tensor.format->name; };
    CHECK(format("token_embd.weight") == "Q6_K");  // it is the output as well
    CHECK(format("output_norm.weight") == "F32");
    CHECK(format("blk.0.ffn_gate_inp.weight") == "F32");
    CHECK(format("blk.1.ssm_conv1d.weight") == "F32");
    CHECK(format("blk.2.shortconv.conv.weight") == "F32");
    CHECK(format("blk.2.shortconv.in_proj.weight") == "Q4_K");
    CHECK(format("blk.0.attn_q.weight") == "Q5_0");  // rows of 96
    CHECK(format("blk.0.attn_k.weight") == "F16");   // rows of 40
    CHECK(format("blk.2.ffn_down_exps.weight") == "Q4_K");
    for (int layer = 0; layer < 8; ++layer) {
        const bool more = layer == 0 || layer == 3 || layer == 6 || layer == 7;
        CHECK(format(fmt::format("blk.{}.attn_v.weight", layer)) == (more ? "Q6_K" : "Q4_K"));
        CHECK(format(fmt::format("blk.{}.ffn_up.weight", layer)) == "Q4_K");
    }
    for (const QuantizedTensor& tensor : report.tensors) {
        CAPTURE(tensor.name);
        const double error = rmse(values_of(source, tensor.name), values_of(made, tensor.name));
        CHECK(error == doctest::Approx(tensor.rmse));
        CHECK((tensor.from == tensor.to) == (error == 0.0));
    }
    must(quantize(source, folder / "one.gguf", *find_recipe("Q4_K_M"), {.threads = 1}));
    CHECK(content(folder / "one.gguf") == content(folder / "out.gguf"));
}

TEST_CASE("quantize: every type writes a file, floats are what they were, and --pure is of one format") {
    const Folder folder;
    small_model().save(folder / "in.gguf");
    const Gguf source = must(Gguf::open(folder / "in.gguf"));
    for (const Recipe& recipe : recipes()) {
        CAPTURE(recipe.name);
        for (const bool pure : {false, true}) {
            must(quantize(source, folder / "out.gguf", recipe, {.threads = 2, .pure = pure}));
            const Gguf made = must(Gguf::open(folder / "out.gguf"));
            CHECK(must(made.metadata().integer("general.file_type")) == recipe.file_type);
            const GgufTensor* experts = made.find("blk.2.ffn_down_exps.weight");
            if (pure && recipe.name != "MXFP4_MOE") CHECK(experts->tensor.format->name == recipe.base);
            if (recipe.name == "MXFP4_MOE") CHECK(experts->tensor.format->name == "MXFP4");
        }
    }
    for (const char* floats : {"F32", "F16", "BF16"}) {
        CAPTURE(floats);
        must(quantize(source, folder / "out.gguf", *find_recipe(floats), {}));
        const Gguf made = must(Gguf::open(folder / "out.gguf"));
        // For the embedding, which is in halves, and for a matrix of floats.
        for (const char* name : {"token_embd.weight", "blk.0.attn_q.weight"}) {
            const std::vector<float> before = values_of(source, name), after = values_of(made, name);
            const float unit = std::string_view(floats) == "F32"   ? 0.0f
                               : std::string_view(floats) == "F16" ? 0x1p-11f
                                                                   : 0x1p-8f;
            for (size_t i = 0; i < before.size(); ++i)
                CHECK(std::fabs(after[i] - before[i]) <= unit * std::fabs(before[i]) + unit * 0x1p-14f);
        }
    }
    // To floats a quantized file needs no permission: nothing is rounded a second time.
    must(quantize(source, folder / "small.gguf", *find_recipe("Q8_0"), {}));
    const Gguf small = must(Gguf::open(folder / "small.gguf"));
    must(quantize(small, folder / "floats.gguf", *find_recipe("F32"), {}));
    const Gguf floats = must(Gguf::open(folder / "floats.gguf"));
    for (const GgufTensor& tensor : small.tensors())
        CHECK(values_of(small, tensor.tensor.name) == values_of(floats, tensor.tensor.name));
}

TEST_CASE("quantize: sources that it refuses, and no file stays behind") {
    GgufBuilder twice = small_model();
    twice.tensor("blk.1.attn_q.weight", {32, 2}, 2, Bytes(36));  // Q4_0
    CHECK(refusal(twice).find("--allow-requantize") != std::string::npos);
    GgufBuilder strange = small_model();
    strange.tensor("blk.1.attn_q.weight", {256, 2}, 16, Bytes(132));  // IQ2_XXS
    CHECK(refusal(strange).find("IQ2_XXS") != std::string::npos);
    GgufBuilder broken = small_model();
    std::vector<float> values = normal(512, 3);
    values[300] = NAN;
    broken.tensor_f32("blk.1.attn_q.weight", {256, 2}, values);
    CHECK(refusal(broken).find("row 1 that is not finite") != std::string::npos);
    values[300] = 3e38f;
    GgufBuilder large = small_model();
    large.tensor_f32("blk.1.attn_q.weight", {256, 2}, values);
    CHECK(refusal(large, "Q8_0").find("too large for Q8_0") != std::string::npos);
    GgufBuilder nameless = small_model();
    nameless.keys.erase(nameless.keys.begin());
    CHECK(refusal(nameless).find("general.architecture") != std::string::npos);
}

TEST_CASE("quantize: never in place, cancelled without a trace, again only when told") {
    const Folder folder;
    small_model().save(folder / "in.gguf");
    const Gguf source = must(Gguf::open(folder / "in.gguf"));
    const Recipe& recipe = *find_recipe("Q8_0");
    std::filesystem::create_symlink(folder / "in.gguf", folder / "link.gguf");
    for (const char* name : {"in.gguf", "link.gguf"}) {
        const auto result = quantize(source, folder / name, recipe, {});
        REQUIRE(!result.ok());
        CHECK(result.error().message.find("the source itself") != std::string::npos);
    }
    const std::atomic<bool> cancel = true;
    CHECK(must(quantize(source, folder / "out.gguf", recipe, {.cancel = &cancel})).cancelled);
    CHECK(folder.files() == 2);
    must(quantize(source, folder / "out.gguf", recipe, {}));
    const Gguf first = must(Gguf::open(folder / "out.gguf"));
    // Already in the format asked for: copied, which is no second quantization.
    must(quantize(first, folder / "same.gguf", recipe, {}));
    CHECK(content(folder / "same.gguf") == content(folder / "out.gguf"));
    CHECK(!quantize(first, folder / "less.gguf", *find_recipe("Q4_0"), {}).ok());
    must(quantize(first, folder / "less.gguf", *find_recipe("Q4_0"), {.allow_requantize = true}));
    CHECK(!quantize(source, folder / "no/such/folder.gguf", recipe, {}).ok());
    CHECK(!quantize(source, folder.path.string(), recipe, {}).ok());
    CHECK(!quantize(source, "/dev/null", recipe, {}).ok());
}

}  // namespace redline
