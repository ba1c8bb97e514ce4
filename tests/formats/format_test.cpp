#include "formats/format.h"
#include "base/file.h"
#include "formats/tensor.h"
#include "tests/support/material.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

namespace redline {

namespace {

// The types of GGUF: elements and bytes per block; 0 for those that were removed.
struct TypeRow {
    uint32_t id;
    const char* name;
    uint32_t block, bytes;
};
constexpr TypeRow kTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {4, "Q4_2", 0, 0},        {5, "Q4_3", 0, 0},        {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},         {25, "I16", 1, 2},        {26, "I32", 1, 4},        {27, "I64", 1, 8},
    {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {31, "Q4_0_4_4", 0, 0},
    {32, "Q4_0_4_8", 0, 0},   {33, "Q4_0_8_8", 0, 0},   {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},
    {36, "IQ4_NL_4_4", 0, 0}, {37, "IQ4_NL_4_8", 0, 0}, {38, "IQ4_NL_8_8", 0, 0}, {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
};

// Byte i is 73 i + 41 + 7 id; then the scale is the half 0x2E66 and the minimum 0x2A3C. The values were
// computed by an independent script and agree with gguf-py: elements 0 to 3, n / 2 + 1 and n - 1.
struct Vector {
    const char* name;
    float first[4], middle, last;
};
constexpr Vector kVectors[] = {
    {"Q4_0", {0.0999755859f, -0.599853516f, 0.299926758f, -0.399902344f}, -0.699829102f, -0.699829102f},
    {"Q4_1", {0.248657227f, 1.1484375f, 0.448608398f, 1.34838867f}, 1.04846191f, 1.04846191f},
    {"Q5_0", {0.899780273f, -1.3996582f, 1.09973145f, -1.19970703f}, 0.49987793f, 0.49987793f},
    {"Q5_1", {0.248657227f, 2.74804688f, 2.04821777f, 2.94799805f}, 1.44836426f, 1.44836426f},
    {"Q8_0", {-1.29968262f, 5.99853516f, -12.2969971f, -4.9987793f}, -5.19873047f, -5.39868164f},
    {"Q2_K", {4.20666504f, -0.292236328f, 1.20739746f, 2.70703125f}, -0.535766602f, 1.26379395f},
    {"Q3_K", {-1.19970703f, 1.79956055f, -2.39941406f, 0.599853516f}, -0.899780273f, -5.79858398f},
    {"Q4_K", {42.6459961f, 19.5516357f, 49.2443848f, 26.1500244f}, 21.5742188f, 5.85498047f},
    {"Q5_K", {15.4116211f, 115.387207f, 23.409668f, 123.385254f}, 89.7088623f, 92.4338379f},
    {"Q6_K", {202.450562f, -209.94873f, -22.4945068f, 44.9890137f}, 305.125488f, 219.946289f},
    {"IQ4_NL", {-0.999755859f, -12.6968994f, 1.29968262f, -8.29797363f}, 1.29968262f, 0.0999755859f},
    {"IQ4_XS", {149.363525f, -68.3833008f, 88.1784668f, -124.169678f}, -60.7851562f, -58.7856445f},
    {"MXFP4", {0.09375f, -0.125f, 0.1875f, -0.25f}, -0.125f, -0.125f},
    {"IQ2_XXS", {-0.49987793f, -0.49987793f, -1.56211853f, -2.68684387f}, -0.899780273f, -2.68684387f},
    {"IQ2_XS", {-0.49987793f, 0.49987793f, -0.49987793f, -2.68684387f}, 6.98579407f, 8.06053162f},
    {"IQ3_XXS", {-3.29919434f, 14.2965088f, 17.0458374f, -1.09973145f}, 31.8922119f, 1.09973145f},
    {"IQ1_S", {-0.562362671f, 0.437393188f, -0.562362671f, 0.437393188f}, 1.31217957f, -0.0624847412f},
    {"IQ3_S", {6.49841309f, -9.09777832f, -11.6971436f, 1.29968262f}, -1.69958496f, -18.8953857f},
    {"IQ2_S", {-14.5089569f, 8.43544006f, -2.69934082f, 2.69934082f}, 0.937271118f, 8.43544006f},
    {"IQ1_M", {1.01225281f, -0.787307739f, 0.112472534f, -0.787307739f}, 0.0874786377f, 0.337417603f},
    {"TQ1_0", {-0.0999755859f, 0.0f, 0.0f, 0.0999755859f}, 0.0f, -0.0999755859f},
    {"TQ2_0", {0.0999755859f, 0.199951172f, -0.0999755859f, 0.0f}, 0.199951172f, -0.0999755859f},
    {"NVFP4", {6.75f, -9.0f, 13.5f, 0.0f}, -44.0f, 0.140625f},
    {"Q1_0", {-0.0999755859f, 0.0999755859f, -0.0999755859f, 0.0999755859f}, 0.0999755859f, -0.0999755859f},
    {"Q2_0", {0.0f, -0.0999755859f, 0.0999755859f, 0.199951172f}, 0.0999755859f, -0.0999755859f},
};

struct Golden {
    uint32_t blocks = 0, block = 0, block_bytes = 0;
    std::vector<std::byte> raw;
    std::vector<uint32_t> decoded;  // bits
};

// Empty when the file is not there or not of the size that its head says.
Golden read_golden(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    uint32_t head[3] = {};
    file.read(reinterpret_cast<char*>(head), sizeof(head));
    if (!file) return {};
    Golden golden{head[0], head[1], head[2], {}, {}};
    golden.raw.resize(size_t(golden.blocks) * golden.block_bytes);
    golden.decoded.resize(size_t(golden.blocks) * golden.block);
    file.read(reinterpret_cast<char*>(golden.raw.data()), std::streamsize(golden.raw.size()));
    file.read(reinterpret_cast<char*>(golden.decoded.data()), std::streamsize(golden.decoded.size() * 4));
    if (!file || file.peek() != std::char_traits<char>::eof()) return {};
    return golden;
}

bool is_nan(uint32_t bits) {
    return (bits & 0x7FFFFFFF) > 0x7F800000;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
    return out;
}

}  // namespace

TEST_CASE("formats: decoded blocks equal gguf-py bit for bit, adversarial scales included") {
    for (const Format* format : all_formats()) {
        CAPTURE(format->name);
        const Golden golden = read_golden(test::golden("formats/" + lower(format->name) + ".bin"));
        REQUIRE(golden.blocks > 0);
        REQUIRE(golden.block == format->block);
        REQUIRE(golden.block_bytes == format->block_bytes);
        std::vector<float> got(golden.decoded.size());
        format->decode(golden.raw.data(), got.data(), got.size());
        size_t wrong = 0, first = 0;
        for (size_t i = got.size(); i-- > 0;) {
            const uint32_t bits = float_to_bits(got[i]);
            if (bits == golden.decoded[i] || (is_nan(bits) && is_nan(golden.decoded[i]))) continue;
            ++wrong;
            first = i;
        }
        CAPTURE(first);
        CAPTURE(got[first]);
        CAPTURE(bits_to_float(golden.decoded[first]));
        CHECK(wrong == 0);
    }
}

TEST_CASE("formats: the goldens are varied: they hold many values, zero, infinities and NaN") {
    for (const Format* format : all_formats()) {
        CAPTURE(format->name);
        const Golden golden = read_golden(test::golden("formats/" + lower(format->name) + ".bin"));
        const std::set<uint32_t> values(golden.decoded.begin(), golden.decoded.end());
        CHECK(values.size() > 40);
        CHECK(values.count(0) == 1);
        if (format->name == "MXFP4" || format->name == "NVFP4") continue;  // their scales are always finite
        CHECK(values.count(0x7F800000) + values.count(0xFF800000) > 0);
        CHECK(std::any_of(values.begin(), values.end(), is_nan));
    }
}

TEST_CASE("formats: every golden file belongs to a format") {
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(test::golden("formats"))) {
        ++files;
        CAPTURE(entry.path().string());
        const auto belongs = [&](const Format* f) { return lower(f->name) == entry.path().stem().string(); };
        CHECK(std::any_of(all_formats().begin(), all_formats().end(), belongs));
    }
    CHECK(files == all_formats().size());
}

TEST_CASE("formats: the documented vectors decode to the documented values") {
    for (const Vector& vector : kVectors) {
        CAPTURE(vector.name);
        const Format* format = find_format(std::string_view(vector.name));
        REQUIRE(format);
        std::vector<std::byte> block(format->block_bytes);
        for (uint32_t i = 0; i < block.size(); ++i) block[i] = std::byte(73 * i + 41 + 7 * format->gguf_id);
        if (format->name == "MXFP4")
            block[0] = std::byte{0x7B};
        else if (format->name != "NVFP4")
            format->set_scales(block.data(), half_to_float(0x2E66), half_to_float(0x2A3C));
        std::vector<float> out(format->block);
        format->decode(block.data(), out.data(), out.size());
        for (size_t i = 0; i < 4; ++i) CHECK(out[i] == vector.first[i]);
        CHECK(out[out.size() / 2 + 1] == vector.middle);
        CHECK(out.back() == vector.last);
    }
}

TEST_CASE("formats: the size of every GGUF type is known, the removed types have none") {
    for (const TypeRow& row : kTypes) {
        CAPTURE(row.name);
        const auto size = find_type(row.id);
        CHECK(size.has_value() == (row.block != 0));
        if (!size) continue;
        CHECK(size->name == row.name);
        CHECK(size->block == row.block);
        CHECK(size->block_bytes == row.bytes);
    }
    for (uint32_t id = std::size(kTypes); id < 138; ++id)
        CHECK(find_type(id).has_value() == (find_format(id) != nullptr));
    for (const uint32_t id : {96u, 97u, 137u, 4096u, 0xFFFFFFFFu}) CHECK_FALSE(find_type(id));
}

TEST_CASE("formats: ids and names lead to the format and to nothing else") {
    for (const Format* format : all_formats()) {
        CHECK(find_format(format->gguf_id) == format);
        CHECK(find_format(format->name) == format);
    }
    CHECK_FALSE(find_format("q4_k"));
    CHECK_FALSE(find_format(""));
    CHECK_FALSE(find_format(9u));
    CHECK_FALSE(find_format(15u));
    CHECK_FALSE(find_format(4u));
    CHECK_FALSE(find_format(0xFFFFFFFFu));
}

TEST_CASE("formats: the page of formats names each of them among those that are read") {
    const std::string page = std::move(read_text_file(test::source_file("src/formats/README.md"))).value();
    std::set<std::string> words;
    std::string word;
    for (const char c : page.substr(0, page.find("`redline quantize` writes")))
        if (std::isalnum(uint8_t(c)) || c == '_')
            word += c;
        else
            words.insert(std::exchange(word, {}));
    for (const Format* format : all_formats())
        CHECK_MESSAGE(words.contains(std::string(format->name)), format->name, " is missing");
}

TEST_CASE("formats: messages name a type whatever it is") {
    CHECK(describe_type(12) == "Q4_K (type 12)");
    CHECK(describe_type(16) == "IQ2_XXS (type 16)");
    CHECK(describe_type(4) == "the removed type Q4_2 (4)");
    CHECK(describe_type(33) == "the removed type Q4_0_8_8 (33)");
    CHECK(describe_type(50) == "the unknown type 50");
    CHECK(describe_type(137) == "the ik_llama.cpp type 137");
    CHECK(describe_type(0xFFFFFFFFu) == "the ik_llama.cpp type 4294967295");
}

TEST_CASE("formats: sizes of rows and tensors are computed in 64 bits") {
    const Format* q4_k = find_format(12u);
    REQUIRE(q4_k);
    CHECK(q4_k->row_bytes(256) == 144);
    CHECK(q4_k->row_bytes(uint64_t(1) << 40) == (uint64_t(1) << 32) * 144);
    const Tensor experts{"blk.0.ffn_up_exps.weight", q4_k, Shape{128, 16384, 8192}};
    CHECK(experts.bytes() == uint64_t(128) * 16384 * 32 * 144);
    CHECK(experts.shape.elements() == uint64_t(128) * 16384 * 8192);
}

TEST_CASE("formats: many blocks decode as each block does alone") {
    for (const Format* format : all_formats()) {
        CAPTURE(format->name);
        const Golden golden = read_golden(test::golden("formats/" + lower(format->name) + ".bin"));
        std::vector<float> alone(format->block);
        size_t wrong = 0;
        for (uint32_t b = 0; b < golden.blocks; ++b) {
            // A separate copy, at the end of its allocation: sanitizers see a decoder that reads past its
            // block.
            const auto start = golden.raw.begin() + std::ptrdiff_t(b) * golden.block_bytes;
            const std::vector<std::byte> block(start, start + golden.block_bytes);
            format->decode(block.data(), alone.data(), alone.size());
            for (uint32_t i = 0; i < format->block; ++i) {
                const uint32_t want = golden.decoded[size_t(b) * format->block + i];
                wrong += float_to_bits(alone[i]) != want && !is_nan(want);
            }
        }
        CHECK(wrong == 0);
    }
}

}  // namespace redline
