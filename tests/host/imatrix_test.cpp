// Importance matrices: measuring one, its files, and what the quantizer makes of it.
#include "devices/device_choice.h"
#include "gguf/writer.h"
#include "json/json.h"
#include "measure/input_squares.h"
#include "quantize/quantize.h"
#include "support/models.h"
#include "support/program.h"

#include <cmath>

using namespace redline;
using namespace redline::test;

namespace {

std::vector<InputSquares> measured(const Model& model, std::span<const Token> tokens, uint32_t batch,
                                   bool with_output = false) {
    InputMeter meter = must(InputMeter::create(model, CacheType::f32, tokens.size(), batch, with_output));
    must(meter.read(tokens, nullptr));
    return meter.sums();
}

const InputSquares& of(const std::vector<InputSquares>& sums, const std::string& tensor) {
    const auto found = std::find_if(sums.begin(), sums.end(), [&](auto& s) { return s.tensor == tensor; });
    REQUIRE(found != sums.end());
    return *found;
}

Model tiny(const std::string& name, Backend& backend) {
    return must(Model::load(golden("models/" + name + ".gguf"), backend, {64, {}}));
}

std::vector<float> values_of(const Gguf& file, const GgufTensor& tensor) {
    std::vector<std::byte> bytes(tensor.bytes);
    must(file.read(tensor, 0, bytes));
    std::vector<float> out(tensor.tensor.shape.elements());
    tensor.tensor.format->decode(bytes.data(), out.data(), out.size());
    return out;
}

TensorImportance importance_of(std::vector<float> squares, std::vector<float> counts) {
    return {std::move(squares), std::move(counts)};
}

std::string refusal(const std::string& bytes) {
    write_file(file("broken"), bytes);
    const auto read = read_importance(file("broken"));
    REQUIRE(!read.ok());
    return read.error().message;
}

std::string numbers(std::initializer_list<uint32_t> all) {
    return {reinterpret_cast<const char*>(all.begin()), all.size() * 4};
}

// One matrix of 64 columns, and experts.
GgufBuilder small_model() {
    GgufBuilder b;
    b.add("general.architecture", std::string("llama")).add("llama.block_count", uint32_t(1));
    std::vector<float> values(64 * 8 * 2);
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(std::sin(double(i * i)));
    b.tensor_f32("blk.0.attn_q.weight", {64, 16}, values);
    b.tensor_f32("blk.0.ffn_up_exps.weight", {64, 8, 2}, values);
    return b;
}

}  // namespace

TEST_CASE("imatrix: the inputs of the first matrices are the normed embeddings, column by column") {
    for (const auto& backend : session_test_backends()) {
        CAPTURE(backend->device().name);
        const Model model = tiny("llama3", *backend);
        const std::vector<Token> tokens = golden_tokens();
        const std::vector<InputSquares> sums = measured(model, tokens, 64);
        const auto tensor = [&](const char* name) {
            return values_of(model.gguf(), *model.gguf().find(name));
        };
        const std::vector<float> table = tensor("token_embd.weight"), gain = tensor("blk.0.attn_norm.weight");
        const size_t dim = gain.size();
        std::vector<double> want(dim);
        for (const Token token : tokens) {
            const float* row = table.data() + size_t(token) * dim;
            double squares = 0.0;
            for (size_t i = 0; i < dim; ++i) squares += double(row[i]) * double(row[i]);
            for (size_t i = 0; i < dim; ++i)
                want[i] += std::pow(double(row[i]) * double(gain[i]), 2) / (squares / double(dim) + 1e-5);
        }
        for (const char* name : {"attn_q", "attn_k", "attn_v"}) {
            const InputSquares& measured = of(sums, fmt::format("blk.0.{}.weight", name));
            REQUIRE(measured.squares.size() == dim);
            CHECK(measured.counts == std::vector<uint64_t>{tokens.size()});
            for (size_t i = 0; i < dim; ++i)
                CHECK(measured.squares[i] == doctest::Approx(want[i]).epsilon(1e-4));
        }
        CHECK(std::none_of(sums.begin(), sums.end(), [](auto& s) { return s.tensor == "output.weight"; }));
        const InputSquares output = of(measured(model, tokens, 64, true), "output.weight");
        CHECK(output.counts == std::vector<uint64_t>{1});  // of the last token alone there are logits
    }
}

TEST_CASE(
    "imatrix: every matrix that is quantized is measured, experts by their tokens, in pieces of any size") {
    const std::unique_ptr<Backend> backend = must(open_backend("cpu", {.threads = 2}));
    for (const std::string& name : tiny_models()) {
        CAPTURE(name);
        if (!runs_on(*backend, name)) continue;
        const Model model = tiny(name, *backend);
        const std::vector<Token> tokens = golden_tokens();
        const std::vector<InputSquares> whole = measured(model, tokens, 64),
                                        parts = measured(model, tokens, 6);
        for (size_t i = 0; i < whole.size(); ++i) {
            const InputSquares &a = whole[i], &b = parts[i];
            CAPTURE(a.tensor);
            uint64_t inputs = 0;
            for (const uint64_t count : a.counts) inputs += count;
            CHECK(inputs >= tokens.size());
            CHECK(inputs % tokens.size() == 0);
            uint64_t others = 0;
            for (const uint64_t count : b.counts) others += count;
            CHECK(others == inputs);
        }
        const auto formats = must(choose_formats(*find_recipe("Q8_0"), model.gguf(), {}));
        std::set<std::string> have;
        for (const InputSquares& sums : whole) have.insert(sums.tensor);
        std::set<std::string> used;
        for (const ResolvedWeights::Source& source : model.weight_sources())
            if (!source.transposed) used.insert(model.gguf().tensors()[source.tensor].tensor.name);
        for (size_t i = 0; i < formats.size(); ++i) {
            const std::string& tensor = model.gguf().tensors()[i].tensor.name;
            if (formats[i].empty() || !tensor.starts_with("blk.") || !used.contains(tensor)) continue;
            CHECK_MESSAGE(have.contains(tensor), tensor);
        }
    }
}

TEST_CASE("imatrix: a file is read as it was written, and the older form as well") {
    Importance importance;
    importance.datasets = {"a text", "another"};
    importance.chunks = 3;
    importance.chunk_tokens = 512;
    importance.tensors["blk.0.attn_q.weight"] = importance_of({1.0f, 2.0f, 0.5f}, {512.0f});
    importance.tensors["blk.0.ffn_up_exps.weight"] = importance_of({1.0f, 2.0f, 3.0f, 4.0f}, {5.0f, 0.0f});
    must(write_importance(file("written.gguf"), importance));
    const Importance read = must(read_importance(file("written.gguf")));
    CHECK(read.datasets == importance.datasets);
    CHECK(read.chunks == 3);
    CHECK(read.chunk_tokens == 512);
    REQUIRE(read.tensors.size() == 2);
    for (const auto& [name, tensor] : importance.tensors) {
        CHECK(read.tensors.at(name).squares == tensor.squares);
        CHECK(read.tensors.at(name).counts == tensor.counts);
    }
    const float values[] = {2.0f, 6.0f};
    write_file(file("old.dat"), numbers({1, 3}) + "a.b" + numbers({2, 2}) +
                                    std::string(reinterpret_cast<const char*>(values), 8) + numbers({1, 0}));
    const Importance old = must(read_importance(file("old.dat")));
    CHECK(old.tensors.at("a.b").squares == std::vector<float>{2.0f, 6.0f});
    CHECK(old.tensors.at("a.b").counts == std::vector<float>{2.0f});
}

TEST_CASE("imatrix: files that are none are refused in a sentence") {
    CHECK(!read_importance(file("nowhere")).ok());
    for (const std::string& bytes :
         {std::string(), std::string("GG"), numbers({0}), numbers({1, 3}) + "ab", numbers({1, 0xFFFFFFFF}),
          numbers({2, 1}) + "a" + numbers({1, 0x40000000}),
          numbers({1, 1}) + "a" + numbers({1, 1, 0x7FC00000}),
          numbers({2, 1}) + "a" + numbers({1, 1, 0, 1}) + "a" + numbers({1, 1, 0})})
        CHECK(has(refusal(bytes), "neither GGUF nor an importance matrix"));
    const auto gguf = [](const std::string& name, std::vector<uint64_t> dims, std::vector<float> values) {
        GgufBuilder b;
        b.tensor_f32("a.weight" + name, std::move(dims), values);
        b.save(file("broken.gguf"));
        return read_file(file("broken.gguf"));
    };
    CHECK(has(refusal(gguf(".values", {2}, {1, 2})), "no importance matrix"));
    CHECK(has(refusal(gguf(".in_sum2", {2}, {1, 2})), "without a.weight.counts"));
    GgufBuilder b;
    b.tensor_f32("a.in_sum2", {3}, {1, 2, 3}).tensor_f32("a.counts", {1, 2}, {1, 1});
    b.save(file("odd.gguf"));
    CHECK(has(refusal(read_file(file("odd.gguf"))), "3 values for 2 matrices"));
    GgufBuilder negative;
    negative.tensor_f32("a.in_sum2", {2}, {1, -1}).tensor_f32("a.counts", {1}, {1});
    negative.save(file("negative.gguf"));
    CHECK(has(refusal(read_file(file("negative.gguf"))), "not a sum of squares: -1"));
}

TEST_CASE("imatrix: weights have a mean of 1, and a matrix without data counts all columns alike") {
    const Tensor tensor{"a", find_format("F32"), {2, 3, 4}};
    Importance importance;
    CHECK(must(column_weights(importance, tensor)).unmeasured == 2);
    importance.tensors["a"] = importance_of({2e-20f, 6e-20f, 0, 0, 7, 7, 7, 7}, {9, 0});
    const ColumnWeights got = must(column_weights(importance, tensor));
    CHECK(got.unmeasured == 1);
    CHECK(got.weights[0] == doctest::Approx(1.0));
    CHECK(got.weights[1] == doctest::Approx(3.0));
    CHECK(got.weights[2] == 1e-4f);  // never seen on this text
    for (size_t i = 4; i < 8; ++i) CHECK(got.weights[i] == 1.0f);
    importance.tensors["a"] = importance_of({0, 0, 0, 0, 0, 0, 0, 0}, {9});
    CHECK(must(column_weights(importance, tensor)).weights.empty());
    importance.tensors["a"] = importance_of({1, 2, 3, 4}, {9});
    const auto wrong = column_weights(importance, tensor);
    REQUIRE(!wrong.ok());
    CHECK(has(wrong.error().message, "another model"));
}

TEST_CASE("imatrix: quantize weighs errors by it, expert by expert, and says what has no data") {
    small_model().save(file("in.gguf"));
    const Gguf source = must(Gguf::open(file("in.gguf")));
    Importance importance;
    std::vector<float> first(64, 1.0f), second(64, 1.0f);
    for (size_t i = 0; i < 64; i += 3) first[i] = 100.0f;
    for (size_t i = 1; i < 64; i += 3) second[i] = 100.0f;
    std::vector<float> both = first;
    both.insert(both.end(), second.begin(), second.end());
    importance.tensors["blk.0.ffn_up_exps.weight"] = importance_of(both, {1, 1});
    const auto error_of = [&](const std::string& path, size_t phase) {
        const Gguf made = must(Gguf::open(path));
        const GgufTensor& tensor = *made.find("blk.0.ffn_up_exps.weight");
        const std::vector<float> before = values_of(source, *source.find(tensor.tensor.name)),
                                 after = values_of(made, tensor);
        double sum = 0.0;  // of the columns that count, in the expert in which they do
        for (size_t i = 0; i < before.size(); ++i)
            if (i % 64 % 3 == phase && i / (64 * 8) == phase)
                sum += std::pow(double(after[i]) - double(before[i]), 2);
        return sum;
    };
    for (const char* type : {"Q4_0", "Q5_1", "IQ4_NL", "Q8_0"}) {
        CAPTURE(type);
        must(quantize(source, file("plain.gguf"), *find_recipe(type), {.threads = 3}));
        const QuantizeReport report = must(quantize(source, file("weighed.gguf"), *find_recipe(type),
                                                    {.threads = 3, .importance = &importance}));
        for (const size_t phase : {0, 1})
            CHECK(error_of(file("weighed.gguf"), phase) < error_of(file("plain.gguf"), phase));
        CHECK(report.tensors[0].unmeasured == 1);
        CHECK(report.tensors[0].matrices == 1);
        CHECK(report.tensors[1].unmeasured == 0);
        CHECK(report.tensors[1].matrices == 2);
    }
    importance.tensors.clear();
    importance.tensors["blk.9.attn_q.weight"] = importance_of(first, {1});
    const auto other = quantize(source, file("no.gguf"), *find_recipe("Q4_0"), {.importance = &importance});
    REQUIRE(!other.ok());
    CHECK(has(other.error().message, "data for none of the tensors"));
    importance.tensors["blk.0.attn_q.weight"] = importance_of({1.0f}, {1});
    CHECK(!quantize(source, file("no.gguf"), *find_recipe("Q4_0"), {.importance = &importance}).ok());
    CHECK(!std::filesystem::exists(file("no.gguf")));
}

TEST_CASE("imatrix: the command measures, writes, and quantize takes what it wrote") {
    const std::string model = mixture_model(), made = file("made.gguf");
    std::string text;
    for (int i = 0; i < 40; ++i) text += "abcdefghij";
    write_file(file("text.txt"), text);
    const std::vector<std::string> words = {"imatrix", "--device", "cpu",           "-m",
                                            model,     "-f",       file("text.txt")};
    const auto with = [&](std::vector<std::string> more) {
        std::vector<std::string> all = words;
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const Outcome got = redline_(with({"-o", made, "-c", "32", "--json"}));
    CHECK_MESSAGE(got.code == 0, got.err);
    CHECK(has(got.err, "tensors over"));
    CHECK(has(got.err, "matrices of experts had no token"));
    const Json report = parse_json(got.out);
    CHECK(report["chunk_tokens"] == 32);
    CHECK(report["chunks"] == must(read_importance(made)).chunks);
    check_refused(with({"-o", made, "-c", "32"}), 1, {"exists", "--overwrite"});
    CHECK(redline_(with({"-o", made, "-c", "32", "--chunks", "1", "--overwrite", "-q"})).err.empty());
    CHECK(must(read_importance(made)).chunks == 1);
    write_file(file("few.txt"), "abc");
    check_refused(
        {"imatrix", "--device", "cpu", "-m", model, "-f", file("few.txt"), "-o", file("x.gguf"), "-c", "32"},
        1, {"less than one chunk of 32"});
    check_refused(with({"-o", file("no/folder.gguf"), "-c", "32"}), 1, {"no/folder.gguf"});
    check_refused(with({"-o", "/tmp", "-c", "32"}), 1, {"/tmp is a folder"});
    check_refused({"imatrix", "-m", model}, 2, {"-f FILE"});
    check_refused({"imatrix", "-f", file("text.txt")}, 2, {"-m FILE"});
    const Outcome small =
        redline_({"quantize", "--imatrix", made, model, file("small.gguf"), "Q4_0", "--json"});
    CHECK_MESSAGE(small.code == 0, small.err);
    CHECK(has(small.err, "the importance matrix has no data for"));
    CHECK(parse_json(small.out)["imatrix"] == made);
    check_refused({"quantize", "--imatrix", model, model, file("other.gguf"), "Q4_0"}, 1,
                  {"no importance matrix"});
    CHECK(!std::filesystem::exists(file("other.gguf")));
}

TEST_CASE("imatrix: interrupted, it leaves no file") {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += "abcdefghij ";
    write_file(file("long.txt"), text);
    const std::filesystem::path folder = file("interrupted");
    std::filesystem::create_directory(folder);
    Launch what =
        command({"imatrix", "--device", "cpu", "-m", source_file("models/demo/redline-demo-q8_0.gguf"), "-f",
                 file("long.txt"), "-c", "32", "-o", (folder / "made.gguf").string()});
    const auto start = std::chrono::steady_clock::now();
    what.interrupt_when = [&](const std::string&) {
        return std::chrono::steady_clock::now() - start > std::chrono::seconds(2);
    };
    const Outcome got = launch(what);
    CHECK_MESSAGE(got.code == 130, got.err);
    CHECK(std::filesystem::is_empty(folder));
}
