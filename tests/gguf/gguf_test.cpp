// The GGUF reader on images in memory: what it accepts, and every class of damage and of hostile claims.
#include "tests/support/gguf_cases.h"
#include "tests/support/material.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <random>

namespace redline {

using namespace test;

namespace {

template <typename T>
void put(Bytes& bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
}

GgufBuilder one_tensor(std::vector<uint64_t> dims, uint32_t type, size_t bytes = 64) {
    GgufBuilder builder;
    builder.tensor("t", std::move(dims), type, Bytes(bytes));
    return builder;
}

}  // namespace

TEST_CASE("gguf: metadata and directory of a small model are as written") {
    for (const uint32_t version : {2u, 3u}) {
        GgufBuilder builder = small_model();
        builder.version = version;
        const Bytes bytes = builder.bytes();
        const auto gguf = parse(bytes);
        REQUIRE(gguf.ok());
        const Gguf& model = gguf.value();
        CHECK(model.version() == version);
        CHECK(model.alignment() == 32);
        CHECK(model.path() == "model.gguf");
        CHECK(model.metadata().text("general.architecture").value() == "llama");
        REQUIRE(model.tensors().size() == 3);
        const GgufTensor& up = model.tensors()[1];
        CHECK(model.find("up.weight") == &up);
        CHECK(model.find("down.weight") == nullptr);
        CHECK(up.tensor.shape == Shape{3, 2, 64});
        CHECK(up.tensor.format->name == "Q8_0");
        CHECK(up.type == 8);
        CHECK(up.dims == std::vector<uint64_t>{64, 2, 3});
        CHECK(up.bytes == 2 * 34 * 6);
        CHECK(up.offset % 32 == 0);
        CHECK(bytes[up.offset] == std::byte{7});
        CHECK(bytes[up.offset + up.bytes - 1] == std::byte{7});
        CHECK(model.tensors()[0].tensor.shape == Shape{1, 1, 3});
    }
}

TEST_CASE("gguf: a file without tensors may end right after its metadata") {
    GgufBuilder builder;
    builder.add("tokenizer.ggml.model", std::string("gpt2"));
    CHECK(refusal(builder) == "");
    CHECK(refusal(GgufBuilder()) == "");
    // Bytes past the end of the file as claimed are not its header.
    const Bytes bytes = builder.bytes();
    CHECK_FALSE(Gguf::parse(bytes, bytes.size() - 1, "model.gguf").ok());
}

TEST_CASE("gguf: the last tensor needs no padding") {
    GgufBuilder builder = small_model();
    builder.pad_last = false;
    CHECK(refusal(builder) == "");
}

TEST_CASE("gguf: a valid file cut at any byte is refused, or complete but for its padding") {
    GgufBuilder builder = small_model();
    builder.add("list", std::vector<std::string>{"a", "bc"}).add("numbers", std::vector<int32_t>{1, 2, 3});
    const Bytes whole = builder.bytes();
    builder.pad_last = false;
    const size_t needed = builder.bytes().size();
    REQUIRE(needed < whole.size());
    size_t wrong = 0;
    for (size_t length = 0; length <= whole.size(); ++length) {
        // A separate vector for each length: sanitizers then see any read past the end.
        const Bytes cut(whole.begin(), whole.begin() + std::ptrdiff_t(length));
        wrong += parse(cut).ok() != (length >= needed);
        // The same, when only the header is at hand and the file is claimed to be longer.
        const bool header_is_there = length >= builder.header().size();
        wrong += Gguf::parse(cut, whole.size(), "model.gguf").ok() != header_is_there;
        // And a file that is claimed to be shorter than the bytes at hand.
        wrong += Gguf::parse(whole, length, "model.gguf").ok() != (length >= needed);
    }
    CHECK(wrong == 0);
}

TEST_CASE("gguf: a valid file with any one byte changed is parsed or refused, never more") {
    const Bytes whole = small_model().bytes();
    std::mt19937 random(1);
    size_t refused = 0;
    for (size_t at = 0; at < whole.size(); ++at)
        for (const uint8_t flip : {uint8_t(0xFF), uint8_t(0x80), uint8_t(random() | 1)}) {
            Bytes changed = whole;
            changed[at] ^= std::byte{flip};
            refused += !parse(changed).ok();
        }
    CHECK(refused > 100);
}

TEST_CASE("gguf: versions other than 2 and 3, and big-endian files, are refused by name") {
    GgufBuilder builder = small_model();
    for (const auto& [version, part] : std::initializer_list<std::pair<uint32_t, const char*>>{
             {0, "version 0"},
             {1, "convert the model again"},
             {4, "version 4"},
             {0x03000000, "big-endian"},
             {0x02000000, "big-endian"},
             {kHuge & 0xFFFFFFFF, "version 4294967295"}}) {
        builder.version = version;
        CHECK_REFUSED(builder, part);
    }
}

TEST_CASE("gguf: files that are not GGUF are named for what they are") {
    const auto refused = [](std::string_view text) { return refusal(text_bytes(text)); };
    using std::string_view_literals::operator""sv;
    CHECK(contains(refused(""), "is empty"));
    CHECK(contains(refused("G"), "only 1 bytes"));
    CHECK(contains(refused("GGU"), "only 3 bytes"));
    CHECK(contains(refused("GGUF"), "remain"));
    CHECK(contains(refused("PK\x03\x04 and more"), "PyTorch"));
    CHECK(contains(refused("\x80\x02}q"), "pickle"));
    CHECK(contains(refused("\x02\0\0\0\0\0\0\0{}"sv), "safetensors"));
    CHECK(contains(refused("tjgg\x03\0\0\0"sv), "before GGUF"));
    CHECK(contains(refused("lmgg"), "before GGUF"));
    CHECK(contains(refused("algg"), "LoRA"));
    CHECK(contains(refused("<!DOCTYPE html><html>"), "web page"));
    CHECK(contains(refused("\n <HTML>"), "web page"));
    CHECK(contains(refused("version https://git-lfs.github.com/spec/v1\noid sha256:0"), "git lfs pull"));
    CHECK(contains(refused("{\"error\":\"not found\"}"), "JSON"));
    CHECK(contains(refused("Entry not found"), "download"));
    CHECK(contains(refused("\x1F\x8B\x08"), "unpack"));
    CHECK(contains(refused(std::string(100, '\0')), "zeros"));
    CHECK(contains(refused("anything else"), "is not a GGUF file"));
}

TEST_CASE(
    "gguf: counts beyond the file are refused, not allocated (CVE-2024-21836, CVE-2024-23605: n_tensors, "
    "n_kv)") {
    for (const uint64_t count :
         {uint64_t(1000), uint64_t(1) << 32, uint64_t(1) << 60, uint64_t(1) << 63, kHuge}) {
        GgufBuilder builder = small_model();
        builder.claimed_keys = count;
        CHECK_REFUSED(builder, "metadata keys");
        builder = small_model();
        builder.claimed_tensors = count;
        CHECK_REFUSED(builder, "tensors");
    }
    GgufBuilder builder = small_model();
    builder.claimed_tensors = kHuge;
    CHECK_REFUSED(builder, "claims -1 tensors");
    // One more than there are: then the bytes of the next part are read as an entry, or run out.
    builder = small_model();
    builder.claimed_tensors = 4;
    CHECK(refusal(builder) != "");
    builder = small_model();
    builder.claimed_keys = 2;
    CHECK(refusal(builder) != "");
}

TEST_CASE("gguf: a string longer than the file is an error, not an allocation (CVE-2024-23496: length + 1)") {
    for (const uint64_t length : {uint64_t(100000), uint64_t(1) << 40, kHuge - 1, kHuge}) {
        Bytes bytes = small_model().bytes();
        put(bytes, 24, length);  // of the first key
        CHECK_REFUSED(bytes, "claims a string");
        bytes = small_model().bytes();
        put(bytes, 24 + 8 + 20 + 4, length);  // of its value
        CHECK_REFUSED(bytes, "key general.architecture claims a string");
    }
    // The name of a tensor: the directory begins where the keys end.
    GgufBuilder builder = small_model();
    Bytes bytes = builder.bytes();
    builder.tensors.clear();
    put(bytes, builder.header().size(), kHuge);
    CHECK_REFUSED(bytes, "tensor 1 of 3 claims a string");
}

TEST_CASE("gguf: an array longer than the file is an error, not an allocation (CVE-2024-21825)") {
    for (uint32_t type = 0; type <= 12; ++type) {
        if (type == 9) continue;
        CAPTURE(type);
        for (const uint64_t count : {uint64_t(4), uint64_t(1) << 61, uint64_t(1) << 63, kHuge}) {
            Bytes array;
            test::append(array, type);
            test::append(array, count);
            array.resize(array.size() + 3);
            GgufBuilder builder;
            builder.add_raw("list", 9, array);
            CHECK_REFUSED(builder, "key list claims an array");
        }
    }
}

TEST_CASE("gguf: strings in an array are each checked against what remains") {
    Bytes array;
    test::append(array, uint32_t(8));
    test::append(array, uint64_t(2));
    test::append_string(array, "fine");
    test::append(array, kHuge - 7);
    GgufBuilder builder;
    builder.add_raw("list", 9, array);
    CHECK_REFUSED(builder, "key list claims a string");
}

TEST_CASE("gguf: keys are not empty, not too long, printable and unique") {
    GgufBuilder builder;
    builder.add("", uint32_t(1));
    CHECK_REFUSED(builder, "empty name");
    builder = GgufBuilder();
    builder.add(std::string("a\0b", 3), uint32_t(1));
    CHECK_REFUSED(builder, "byte 0x00");
    builder = GgufBuilder();
    builder.add("a\x1b[2J", uint32_t(1));
    CHECK_REFUSED(builder, "byte 0x1b");
    builder = GgufBuilder();
    builder.add(std::string(65536, 'k'), uint32_t(1));
    CHECK_REFUSED(builder, "65536");
    builder = GgufBuilder();
    builder.add(std::string(65535, 'k'), uint32_t(1));
    CHECK(refusal(builder) == "");
    builder = GgufBuilder();
    builder.add("general.alignment", uint32_t(32)).add("general.alignment", uint32_t(8));
    CHECK_REFUSED(builder, "key general.alignment occurs twice");
}

TEST_CASE("gguf: unknown value types, nested arrays and odd booleans are refused") {
    for (const uint32_t type : {13u, 14u, 255u, 0x80000000u, 0xFFFFFFFFu}) {
        CAPTURE(type);
        GgufBuilder builder;
        builder.add_raw("odd", type, Bytes(16));
        CHECK_REFUSED(builder, "unknown value type");
        Bytes array;
        test::append(array, type);
        test::append(array, uint64_t(1));
        array.resize(array.size() + 16);
        builder = GgufBuilder();
        builder.add_raw("odd", 9, array);
        CHECK_REFUSED(builder, "unknown value type");
    }
    Bytes nested;
    test::append(nested, uint32_t(9));
    test::append(nested, uint64_t(1));
    nested.resize(nested.size() + 16);
    GgufBuilder builder;
    builder.add_raw("odd", 9, nested);
    CHECK_REFUSED(builder, "array of arrays");
    builder = GgufBuilder();
    builder.add_raw("flag", 7, Bytes(1, std::byte{2}));
    CHECK_REFUSED(builder, "key flag has a boolean stored as 2");
    Bytes flags;
    test::append(flags, uint32_t(7));
    test::append(flags, uint64_t(2));
    flags.push_back(std::byte{1});
    flags.push_back(std::byte{0xFF});
    builder = GgufBuilder();
    builder.add_raw("flag", 9, flags);
    CHECK_REFUSED(builder, "255");
}

TEST_CASE(
    "gguf: the alignment is one unsigned 32-bit power of two (assertion on its type in other readers)") {
    for (const uint32_t alignment : {1u, 8u, 32u, 64u, 4096u, 1u << 20}) {
        CAPTURE(alignment);
        GgufBuilder builder = small_model();
        builder.alignment = alignment;
        builder.add("general.alignment", alignment);
        const auto gguf = parse(builder.bytes());
        REQUIRE(gguf.ok());
        CHECK(gguf.value().alignment() == alignment);
    }
    for (const uint32_t alignment : {0u, 3u, 24u, 33u, 1u << 21, 0x80000000u, 0xFFFFFFFFu}) {
        GgufBuilder builder = small_model();
        builder.add("general.alignment", alignment);
        CHECK_REFUSED(builder, "power of two");
    }
    CHECK_REFUSED(small_model().add("general.alignment", uint64_t(32)), "unsigned 32-bit");
    CHECK_REFUSED(small_model().add("general.alignment", int32_t(32)), "unsigned 32-bit");
    CHECK_REFUSED(small_model().add("general.alignment", std::string("32")), "unsigned 32-bit");
    CHECK_REFUSED(small_model().add("general.alignment", 32.0f), "unsigned 32-bit");
}

TEST_CASE("gguf: tensor names are not empty, at most 63 bytes, printable and unique") {
    GgufBuilder builder;
    builder.tensor("", {4}, 0, Bytes(16));
    CHECK_REFUSED(builder, "empty name");
    builder = GgufBuilder();
    builder.tensor(std::string(64, 'n'), {4}, 0, Bytes(16));
    CHECK_REFUSED(builder, "the most accepted here is 63");
    builder = GgufBuilder();
    builder.tensor(std::string(63, 'n'), {4}, 0, Bytes(16));
    CHECK(refusal(builder) == "");
    builder = GgufBuilder();
    builder.tensor(std::string("a\0", 2), {4}, 0, Bytes(16));
    CHECK_REFUSED(builder, "byte 0x00");
    builder = GgufBuilder();
    builder.tensor("a", {4}, 0, Bytes(16)).tensor("a", {4}, 0, Bytes(16));
    CHECK_REFUSED(builder, "tensor a occurs twice");
}

TEST_CASE("gguf: tensors have one to four dimensions of at least one (division by zero in other readers)") {
    CHECK_REFUSED(one_tensor({}, 0), "0 dimensions");
    CHECK_REFUSED(one_tensor({1, 1, 1, 1, 1}, 0), "5 dimensions");
    CHECK_REFUSED(one_tensor({0}, 0), "size 0 in dimension 0");
    CHECK_REFUSED(one_tensor({4, 0}, 0), "size 0 in dimension 1");
    CHECK_REFUSED(one_tensor({4, 1, 1, 0}, 0), "size 0 in dimension 3");
    CHECK_REFUSED(one_tensor({4, uint64_t(1) << 63}, 0), "size -9223372036854775808 in dimension 1");
    CHECK_REFUSED(one_tensor({kHuge}, 0), "size -1 in dimension 0");
    const auto gguf = parse(one_tensor({2, 3, 4, 5}, 0, 480).bytes());
    REQUIRE(gguf.ok());
    CHECK(gguf.value().tensors()[0].tensor.shape == Shape{20, 3, 2});
}

TEST_CASE("gguf: the number of elements may not wrap (CVE-2024-21802: dimensions; INT64_MAX times 2)") {
    constexpr uint64_t kMax = uint64_t(std::numeric_limits<int64_t>::max());
    for (const auto& dims :
         std::initializer_list<std::vector<uint64_t>>{{kMax, 2},
                                                      {uint64_t(1) << 32, uint64_t(1) << 32},
                                                      {uint64_t(1) << 32, uint64_t(1) << 31},
                                                      {1 << 16, 1 << 16, 1 << 16, 1 << 16},
                                                      {uint64_t(1) << 62, 1, 1, 2},
                                                      {3, kMax / 2}})
        CHECK_REFUSED(one_tensor(dims, 24), "more than 2^63 elements");
}

TEST_CASE("gguf: elements times bytes may not wrap (GHSA-96jg-mvhq-q7q7)") {
    // Four times 2^62 elements is 0 in 64 bits, and just above is a small number.
    CHECK_REFUSED(one_tensor({uint64_t(1) << 62}, 0), "more than 2^64 bytes");
    CHECK_REFUSED(one_tensor({(uint64_t(1) << 62) + 8}, 0), "more than 2^64 bytes");
    CHECK_REFUSED(one_tensor({uint64_t(1) << 31, uint64_t(1) << 31}, 28), "more than 2^64 bytes");
    CHECK_REFUSED(one_tensor({uint64_t(1) << 20, 1 << 20, 1 << 21}, 27), "more than 2^64 bytes");
    // Below the limit, the file is what refuses it.
    CHECK_REFUSED(one_tensor({uint64_t(1) << 61}, 0), "but the file has");
}

TEST_CASE(
    "gguf: sums of sizes and paddings cannot wrap (CVE-2025-53630, CVE-2026-27940, padding of SIZE_MAX - "
    "3)") {
    // Sizes that add up to 2^64 and a little, as the overflowing accumulations needed.
    GgufBuilder builder;
    for (int i = 0; i < 5; ++i) builder.tensor(fmt::format("t{}", i), {uint64_t(1) << 60}, 0, Bytes(32));
    CHECK_REFUSED(builder, "but the file has");
    const Bytes bytes = builder.bytes();
    CHECK_FALSE(Gguf::parse(bytes, kHuge, "model.gguf").ok());
    // The padding of a size just below 2^64 would be 0.
    builder = one_tensor({kHuge / 4 / 4 * 2 - 3, 2}, 0);
    CHECK_FALSE(Gguf::parse(builder.bytes(), kHuge, "model.gguf").ok());
}

TEST_CASE(
    "gguf: a tensor beyond the end of the file is refused (CVE-2026-7482, heap read in another runner)") {
    for (const uint64_t offset : {uint64_t(32), uint64_t(4096), uint64_t(1) << 40, kHuge - 31, kHuge - 63}) {
        GgufBuilder builder = one_tensor({8}, 0, 32);
        builder.tensors[0].offset = offset;
        CHECK_REFUSED(builder, "0 is expected");
    }
    CHECK_REFUSED(one_tensor({9}, 0, 32), "takes 36 bytes at offset 0");
    Bytes bytes = small_model().bytes();
    bytes.resize(bytes.size() - 32);
    CHECK_REFUSED(bytes, "tensor half.weight");
}

TEST_CASE("gguf: tensors lie one behind the other in the order of the directory, as llama.cpp demands") {
    for (const uint64_t offset : {0u, 1u, 16u, 33u, 64u}) {
        GgufBuilder builder = small_model();
        builder.tensors[1].offset = offset;
        CHECK_REFUSED(builder,
                      fmt::format("tensor up.weight is at offset {} of the data, 32 is expected", offset));
    }
    GgufBuilder swapped;
    swapped.tensor_f32("a", {8}, std::vector<float>(8)).tensor_f32("b", {8}, std::vector<float>(8));
    swapped.tensors[0].offset = 32;
    swapped.tensors[1].offset = 0;
    CHECK_REFUSED(swapped, "tensor a is at offset 32");
    // Another type of the same block: Q3_K in place of Q6_K leaves a gap, and all values would be wrong.
    GgufBuilder other;
    other.tensor("a", {256}, 11, Bytes(210)).tensor_f32("b", {8}, std::vector<float>(8));
    CHECK_REFUSED(other, "tensor b is at offset 224 of the data, 128 is expected");
}

TEST_CASE("gguf: rows that are not whole blocks are refused") {
    CHECK_REFUSED(one_tensor({31}, 8), "rows of 31 elements, not a multiple of the 32 in a block of Q8_0");
    CHECK_REFUSED(one_tensor({128, 2}, 12, 144), "not a multiple of the 256 in a block of Q4_K");
    CHECK_REFUSED(one_tensor({255}, 16), "IQ2_XXS");
}

TEST_CASE("gguf: unknown and removed types are refused by name before any table is looked at") {
    CHECK_REFUSED(one_tensor({32}, 4), "the removed type Q4_2 (4)");
    CHECK_REFUSED(one_tensor({32}, 31), "use a Q4_0 file");
    CHECK_REFUSED(one_tensor({32}, 38), "use an IQ4_NL file");
    CHECK_REFUSED(one_tensor({32}, 43), "the unknown type 43");
    CHECK_REFUSED(one_tensor({32}, 96), "the unknown type 96");
    CHECK_REFUSED(one_tensor({32}, 97), "ik_llama.cpp");
    CHECK_REFUSED(one_tensor({32}, 202), "the ik_llama.cpp type 202");
    for (const uint32_t type : {0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu})
        CHECK(refusal(one_tensor({32}, type)) != "");
}

TEST_CASE("gguf: a tensor of a known type without a decoder is listed, with its size checked") {
    constexpr uint32_t kI32 = 26;
    const auto gguf = parse(one_tensor({512, 3}, kI32, 6144).bytes());
    REQUIRE(gguf.ok());
    CHECK(gguf.value().tensors()[0].tensor.format == nullptr);
    CHECK(gguf.value().tensors()[0].bytes == 6144);
    CHECK_REFUSED(one_tensor({512, 3}, kI32, 4096), "takes 6144 bytes");
}

TEST_CASE("gguf: no field set to an extreme value yields a tensor outside the file") {
    // Eight bytes anywhere, so every field of a valid file.
    const Bytes whole = small_model().bytes();
    for (size_t at = 0; at + 8 <= whole.size(); ++at)
        for (const uint64_t value :
             {uint64_t(0), uint64_t(1) << 31, uint64_t(1) << 32, uint64_t(1) << 63, kHuge}) {
            Bytes changed = whole;
            put(changed, at, value);
            const auto gguf = parse(changed);
            if (!gguf) continue;
            for (const GgufTensor& tensor : gguf.value().tensors()) {
                CHECK(tensor.offset <= changed.size());
                CHECK(tensor.bytes <= changed.size() - tensor.offset);
            }
        }
}

TEST_CASE("gguf: the corpus of the fuzzer is parsed or refused, never more") {
    size_t files = 0, parsed = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(test::source_file("tests/fuzz/corpus/gguf"))) {
        CAPTURE(entry.path().string());
        const auto text = read_text_file(entry.path().string());
        REQUIRE(text.ok());
        const Bytes bytes = text_bytes(text.value());
        ++files;
        for (const uint64_t file_size : {uint64_t(bytes.size()), uint64_t(1) << 62}) {
            const auto gguf = Gguf::parse(bytes, file_size, "model.gguf");
            parsed += gguf.ok();
            if (gguf) continue;
            CHECK(contains(gguf.error().message, "model.gguf"));
        }
    }
    CHECK(files >= 20);
    CHECK(parsed >= 20);
}

}  // namespace redline
