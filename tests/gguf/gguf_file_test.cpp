// The GGUF reader on files: windows, split models, pieces, real vocabularies.
#include "gguf/check.h"
#include "gguf/facts.h"
#include "gguf/split.h"
#include "places/model.h"
#include "quantize/recipe.h"
#include "tests/support/chain_model.h"
#include "tests/support/gguf_cases.h"
#include "tests/support/material.h"
#include "tests/support/models.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <random>

namespace redline {

using namespace test;

namespace {

// A folder that is removed with what is in it.
struct Folder {
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "redline-gguf-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()));
        path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string operator/(const std::string& name) const { return (path / name).string(); }
};

std::string refusal_to_open(const std::string& path) {
    const auto gguf = Gguf::open(path);
    return gguf ? "" : gguf.error().message;
}

// Part `index` of `count`, with one tensor in it.
GgufBuilder part(uint16_t index, uint16_t count, int32_t tensors) {
    GgufBuilder builder;
    if (index == 0) builder.add("general.architecture", std::string("llama"));
    builder.add("split.no", index).add("split.count", count).add("split.tensors.count", tensors);
    builder.tensor_f32(fmt::format("blk.{}.weight", index), {4}, std::vector<float>(4, float(index)));
    return builder;
}

std::string part_name(int number, int count) {
    return fmt::format("m-{:05}-of-{:05}.gguf", number, count);
}

}  // namespace

TEST_CASE("gguf: a file on disk gives the bytes of its tensors") {
    const Folder folder;
    GgufBuilder builder = small_model();
    builder.tensors[1].data[5] = std::byte{99};
    builder.save(folder / "m.gguf");
    const auto gguf = Gguf::open(folder / "m.gguf");
    REQUIRE(gguf.ok());
    const Gguf& model = gguf.value();
    CHECK(model.file_count() == 1);
    CHECK(model.file_bytes() == builder.bytes().size());
    Bytes got(builder.tensors[1].data.size());
    REQUIRE(model.read(model.tensors()[1], 0, got).ok());
    CHECK(got == builder.tensors[1].data);
    got.resize(10);
    REQUIRE(model.read(model.tensors()[1], 5, got).ok());
    CHECK(got[0] == std::byte{99});
    CHECK(refusal_to_open(folder / "none.gguf") != "");
    CHECK(contains(refusal_to_open(folder.path.string()), "folder"));
    GgufBuilder::save_bytes(folder / "empty.gguf", {});
    CHECK(contains(refusal_to_open(folder / "empty.gguf"), "is empty"));
}

TEST_CASE("gguf: a file that shrank after it was opened is an error when a tensor is read") {
    const Folder folder;
    small_model().save(folder / "m.gguf");
    const auto gguf = Gguf::open(folder / "m.gguf");
    REQUIRE(gguf.ok());
    std::filesystem::resize_file(folder / "m.gguf", 100);
    Bytes out(gguf.value().tensors()[1].bytes);
    CHECK_FALSE(gguf.value().read(gguf.value().tensors()[1], 0, out).ok());
}

TEST_CASE("gguf: headers larger than the read window are the same from a file as from memory") {
    std::mt19937 random(7);
    std::vector<std::string> texts;
    for (int i = 0; i < 60000; ++i) texts.emplace_back(random() % 100, char('a' + i % 26));
    texts[30000] = std::string(5 << 20, 'x');  // larger than the window by itself
    std::vector<float> numbers(700000);
    for (float& number : numbers) number = float(random());
    GgufBuilder builder = small_model();
    builder.add("texts", texts).add("numbers", numbers).add("last", uint32_t(7));
    const Folder folder;
    builder.save(folder / "m.gguf");
    const auto gguf = Gguf::open(folder / "m.gguf");
    REQUIRE(gguf.ok());
    const Metadata& m = gguf.value().metadata();
    CHECK(*m.strings("texts") == texts);
    CHECK(*m.floats("numbers") == numbers);
    CHECK(m.integer("last").value() == 7);
    const Bytes bytes = builder.bytes();
    const auto parsed = parse(bytes);
    REQUIRE(parsed.ok());
    CHECK(*parsed.value().metadata().strings("texts") == texts);
    for (size_t i = 0; i < 3; ++i)
        CHECK(parsed.value().tensors()[i].offset == gguf.value().tensors()[i].offset);
    // Cut within the long header, at places in and between windows.
    for (const size_t length :
         {size_t(1) << 20, (size_t(1) << 20) + 1, size_t(3) << 20, bytes.size() - 500}) {
        std::filesystem::resize_file(folder / "m.gguf", length);
        CHECK(contains(refusal_to_open(folder / "m.gguf"), "m.gguf"));
    }
}

TEST_CASE("gguf: a huge sparse file cannot make the reader allocate what it claims") {
    const Folder folder;
    Bytes array;
    test::append(array, uint32_t(0));
    test::append(array, uint64_t(1) << 30);  // bytes, which a vector of 64-bit numbers would hold in 8 GiB
    GgufBuilder builder;
    builder.add_raw("list", 9, array);
    builder.save(folder / "m.gguf");
    std::filesystem::resize_file(folder / "m.gguf", uint64_t(1) << 36);
    CHECK(contains(refusal_to_open(folder / "m.gguf"), "key list claims an array"));
    GgufBuilder counts;
    counts.claimed_keys = uint64_t(1) << 31;
    counts.save(folder / "m.gguf");
    std::filesystem::resize_file(folder / "m.gguf", uint64_t(1) << 36);
    CHECK(contains(refusal_to_open(folder / "m.gguf"), "metadata keys"));
}

TEST_CASE("gguf: the parts of a split model open as one") {
    const Folder folder;
    for (uint16_t i = 0; i < 3; ++i) part(i, 3, 3).save(folder / part_name(i + 1, 3));
    const auto gguf = Gguf::open(folder / part_name(1, 3));
    REQUIRE(gguf.ok());
    const Gguf& model = gguf.value();
    CHECK(model.file_count() == 3);
    REQUIRE(model.tensors().size() == 3);
    CHECK(model.metadata().text("general.architecture").value() == "llama");
    CHECK(model.file_bytes() == model.file(0).size() + model.file(1).size() + model.file(2).size());
    for (uint32_t i = 0; i < 3; ++i) {
        const GgufTensor* tensor = model.find(fmt::format("blk.{}.weight", i));
        REQUIRE(tensor);
        CHECK(tensor->file == i);
        float value[4] = {};
        REQUIRE(model.read(*tensor, 0, std::as_writable_bytes(std::span(value))).ok());
        CHECK(value[3] == float(i));
    }
}

TEST_CASE("gguf: a split model of one part is a plain file under any name") {
    const Folder folder;
    part(0, 1, 1).save(folder / "renamed.gguf");
    CHECK(refusal_to_open(folder / "renamed.gguf") == "");
}

TEST_CASE("gguf: a broken set of parts is refused with what is wrong") {
    const Folder folder;
    const std::string first = folder / part_name(1, 3);
    const auto write = [&](const std::function<GgufBuilder(uint16_t)>& make) {
        for (uint16_t i = 0; i < 3; ++i) make(i).save(folder / part_name(i + 1, 3));
        return refusal_to_open(first);
    };
    const auto good = [](uint16_t i) { return part(i, 3, 3); };
    CHECK(write(good) == "");
    SUBCASE("a missing part") {
        std::filesystem::remove(folder / part_name(3, 3));
        CHECK(contains(refusal_to_open(first), "part 3 of 3 of the model is needed too"));
        CHECK(contains(refusal_to_open(first), part_name(3, 3)));
    }
    SUBCASE("another part than the first") {
        const std::string sentence = refusal_to_open(folder / part_name(2, 3));
        CHECK(contains(sentence, "is part 2 of 3 of a split model: open the first part"));
        CHECK(contains(sentence, first));
    }
    SUBCASE("a first part under another name") {
        std::filesystem::rename(first, folder / "m.gguf");
        CHECK(contains(refusal_to_open(folder / "m.gguf"), "-00001-of-00003.gguf"));
    }
    SUBCASE("numbers that do not match the names") {
        CHECK(
            contains(write([](uint16_t i) { return part(i == 1 ? 2 : i, 3, 3); }), "should be part 2 of 3"));
        CHECK(contains(write([](uint16_t i) { return part(i, i == 2 ? 4 : 3, 3); }), "part 3 of 4"));
        CHECK(contains(write([](uint16_t i) { return i == 1 ? small_model() : part(i, 3, 3); }),
                       "part 1 of 1"));
        CHECK(contains(write([](uint16_t) { return part(3, 3, 3); }), "split.no 3 does not fit"));
    }
    SUBCASE("a total that does not match") {
        CHECK(contains(write([](uint16_t i) { return part(i, 3, 4); }),
                       "hold 3 tensors, split.tensors.count says 4"));
        CHECK(contains(write([](uint16_t i) { return part(i, 3, -1); }), "split.tensors.count"));
    }
    SUBCASE("the same tensor in two parts") {
        const auto same = [](uint16_t i) {
            GgufBuilder builder = part(i, 3, 3);
            builder.tensors[0].name = "same";
            return builder;
        };
        CHECK(contains(write(same), "tensor same occurs twice, in parts 1 and 2"));
    }
    SUBCASE("a part that is cut short, or no GGUF at all") {
        std::filesystem::resize_file(folder / part_name(2, 3), 100);
        CHECK(contains(refusal_to_open(first), part_name(2, 3)));
        GgufBuilder::save_bytes(folder / part_name(2, 3), text_bytes("<html>"));
        CHECK(contains(refusal_to_open(first), "web page"));
    }
    SUBCASE("counts of another kind or size") {
        GgufBuilder builder = small_model();
        builder.add("split.no", uint16_t(0)).add("split.count", uint32_t(65536));
        builder.save(first);
        CHECK(contains(refusal_to_open(first), "above 65535"));
        builder = small_model();
        builder.add("split.count", std::string("3"));
        builder.save(first);
        CHECK(contains(refusal_to_open(first), "key split.count is a text"));
    }
}

TEST_CASE("gguf: one file of a split model is checked alone, and says which part it is") {
    const Folder folder;
    part(1, 3, 3).save(folder / "m.gguf");
    const Result<SplitPart> second = check_gguf_file(folder / "m.gguf");
    REQUIRE(second.ok());
    CHECK(second.value().index == 1);
    CHECK(second.value().count == 3);
    small_model().save(folder / "whole.gguf");
    CHECK(check_gguf_file(folder / "whole.gguf").value().count == 1);
    std::filesystem::resize_file(folder / "m.gguf", std::filesystem::file_size(folder / "m.gguf") - 40);
    CHECK(!check_gguf_file(folder / "m.gguf").ok());
    const std::string page = "<!DOCTYPE html><html>", start("GGUF\3\0\0\0", 8);
    CHECK(!check_gguf_start(std::as_bytes(std::span(page)), "page").ok());
    CHECK(check_gguf_start(std::as_bytes(std::span(start)), "model").ok());
}

TEST_CASE("gguf: names of parts are read in any case of letters, and nothing else is one") {
    const std::optional<SplitName> name = split_name("a/m-00002-of-00010.GGUF");
    REQUIRE(name.has_value());
    CHECK(name->prefix == "a/m");
    CHECK(name->index == 1);
    CHECK(name->count == 10);
    for (const char* other : {"m.gguf", "m-00000-of-00002.gguf", "m-00003-of-00002.gguf", "-of-.gguf",
                              "m-0000x-of-00002.gguf", "m-00001-of-00002.bin", "m_00001-of-00002.gguf"})
        CHECK_MESSAGE(!split_name(other), other);
}

TEST_CASE("gguf: a file is called by the mix that it states, unless its tensors contradict that") {
    // Rows of 256 and of 64: the latter get the substitute of a format with larger blocks.
    const auto type_of = [](uint32_t stated, std::vector<std::pair<uint32_t, uint64_t>> matrices) {
        GgufBuilder b;
        b.add("general.architecture", std::string("llama")).add("general.file_type", stated);
        for (const auto& [type, cols] : matrices) {
            const TypeSize size = *find_type(type);
            b.tensor(fmt::format("blk.{}.weight", b.tensors.size()), {cols, 8}, type,
                     Bytes(cols * 8 / size.block * size.block_bytes));
        }
        const Bytes bytes = b.bytes();
        const Gguf gguf = Gguf::parse(bytes, bytes.size(), "m").value();
        return file_type(gguf) + "|" + file_type_contradiction(gguf);
    };
    constexpr uint32_t kF16 = 1, kQ5_0 = 6, kQ8_0 = 8, kQ4K = 12, kQ6K = 14, kIq2Xs = 17, kIq2S = 22;
    for (const uint32_t type : {kIq2Xs, kIq2S}) CHECK(type_of(28, {{type, 256}}) == "IQ2_S|");
    CHECK(type_of(15, {{kQ4K, 256}, {kQ6K, 256}, {kQ8_0, 256}, {kQ8_0, 256}}) == "Q4_K_M|");
    CHECK(type_of(15, {{kQ5_0, 64}, {kQ8_0, 64}}) == "Q4_K_M|");
    CHECK(type_of(17, {{kQ4K, 256}}) == "Q4_K|no matrix has Q5_K");
    CHECK(type_of(1, {{kF16, 256}, {kQ4K, 256}, {kQ4K, 256}, {kQ4K, 256}}) ==
          "F16|the matrices have 7.4 bits per weight, F16 has 16.0");
    CHECK(type_of(9999, {{kQ8_0, 256}}) == "Q8_0|");
    CHECK(type_of(4, {{kQ8_0, 256}}) == "Q8_0|");
    CHECK(type_of(15, {}) == "Q4_K_M|");
}

TEST_CASE("gguf: the names of mixes are those under which quantize writes them") {
    for (const Recipe& recipe : recipes()) {
        GgufBuilder b;
        b.add("general.architecture", std::string("llama")).add("general.file_type", recipe.file_type);
        const Bytes bytes = b.bytes();
        CHECK(stated_file_type(Gguf::parse(bytes, bytes.size(), "m").value()) == recipe.name);
    }
}

TEST_CASE("gguf: trailing ones in the shapes of tensors change nothing") {
    const Folder folder;
    for (const uint64_t experts : {0, 4}) {
        ChainModel chain;
        chain.experts = experts;
        GgufBuilder builder = chain.build();
        builder.save(folder / "plain.gguf");
        for (size_t i = 0; i < builder.tensors.size(); ++i)
            while (builder.tensors[i].dims.size() < 3 + i % 2) builder.tensors[i].dims.push_back(1);
        builder.save(folder / "ones.gguf");
        const Model plain = must(Model::inspect(folder / "plain.gguf", 64));
        const Model ones = must(Model::inspect(folder / "ones.gguf", 64));
        REQUIRE(ones.file_weights().size() == plain.file_weights().size());
        for (size_t i = 0; i < plain.file_weights().size(); ++i)
            CHECK(ones.file_weights()[i].tensor.shape == plain.file_weights()[i].tensor.shape);
    }
}

TEST_CASE("gguf: pieces of a file that was cut by bytes are explained") {
    const Folder folder;
    Bytes bytes = small_model().bytes();
    GgufBuilder::save_bytes(folder / "m.gguf.part1of2", std::span(bytes).first(bytes.size() / 2));
    GgufBuilder::save_bytes(folder / "m.gguf.part2of2", std::span(bytes).subspan(bytes.size() / 2));
    GgufBuilder::save_bytes(folder / "m.gguf-split-b", std::span(bytes).subspan(bytes.size() / 2));
    for (const char* name : {"m.gguf.part1of2", "m.gguf.part2of2", "m.gguf-split-b"})
        CHECK(contains(refusal_to_open(folder / name), "join all pieces"));
    // The name proves nothing when the file is whole.
    GgufBuilder::save_bytes(folder / "m.gguf.part1of1", bytes);
    CHECK(refusal_to_open(folder / "m.gguf.part1of1") == "");
}

TEST_CASE("gguf: real vocabularies and a real model parse, in tens of milliseconds") {
    RL_NEED_MATERIAL(vocab, "vocab");
    RL_NEED_MATERIAL(stories, "models/stories260K.gguf");
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(vocab)) {
        if (entry.path().extension() != ".gguf") continue;
        CAPTURE(entry.path().string());
        const auto start = std::chrono::steady_clock::now();
        const auto gguf = Gguf::open(entry.path().string());
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        REQUIRE(gguf.ok());
        ++files;
        CHECK(gguf.value().metadata().strings("tokenizer.ggml.tokens")->size() > 10000);
        CHECK(seconds.count() < 1.0);  // 2 to 31 ms where the machine has nothing else to do
    }
    CHECK(files >= 6);
    const auto model = Gguf::open(stories);
    REQUIRE(model.ok());
    REQUIRE(model.value().find("token_embd.weight"));
    CHECK(model.value().find("token_embd.weight")->tensor.shape == Shape{1, 512, 64});
    CHECK(model.value().metadata().integer("llama.block_count").value() == 5);
}

}  // namespace redline
