#include "gguf/metadata.h"
#include "tests/support/gguf_cases.h"

#include <doctest/doctest.h>

namespace redline {

using namespace test;

TEST_CASE("metadata: every value type is read, and integers of any width serve where they fit") {
    GgufBuilder builder;
    builder.add("u8", uint8_t(200))
        .add("i8", int8_t(-7))
        .add("u16", uint16_t(60000))
        .add("i16", int16_t(-300));
    builder.add("u32", uint32_t(4000000000))
        .add("i32", int32_t(-5))
        .add("u64", kHuge)
        .add("i64", int64_t(1) << 40);
    builder.add("f32", 1.5f)
        .add("f64", 2.5)
        .add("yes", true)
        .add("no", false)
        .add("text", std::string("héllo"));
    builder.add("nan", std::numeric_limits<float>::quiet_NaN())
        .add("wide", 1e300)
        .add("empty", std::string());
    const auto gguf = parse(builder.bytes());
    REQUIRE(gguf.ok());
    const Metadata& m = gguf.value().metadata();
    CHECK(m.size() == 16);
    CHECK(m.entries()[2].first == "u16");
    CHECK(m.integer("u8").value() == 200);
    CHECK(m.integer("u16").value() == 60000);
    CHECK(m.integer("u32").value() == 4000000000);
    CHECK(m.integer("u64").value() == kHuge);
    CHECK(m.integer("i64").value() == uint64_t(1) << 40);
    CHECK(m.real("f32").value() == 1.5f);
    CHECK(m.real("f64").value() == 2.5f);
    CHECK(m.real("i8").value() == -7.0f);
    CHECK(m.real("u64").value() == 0x1p64f);
    CHECK(m.boolean("yes", false).value() == true);
    CHECK(m.boolean("no", true).value() == false);
    CHECK(m.text("text").value() == "héllo");
    CHECK(m.text("empty").value() == "");
    CHECK(m.integer("i32").error().message == "key i32 is -5, a number that is not negative is expected");
    CHECK(m.integer("f32").error().message == "key f32 is a real number, an integer is expected");
    CHECK(m.integer("yes").error().message == "key yes is a boolean, an integer is expected");
    CHECK(m.integer("gone").error().message == "key gone is missing");
    CHECK(contains(m.real("nan").error().message, "finite"));
    CHECK(contains(m.real("wide").error().message, "finite"));
    CHECK_FALSE(m.real("text").ok());
    CHECK_FALSE(m.boolean("u8", true).ok());
    CHECK_FALSE(m.text("u8").ok());
    // The default is for an absent key only.
    CHECK(m.integer("gone", 9).value() == 9);
    CHECK(m.real("gone", 9.0f).value() == 9.0f);
    CHECK(m.boolean("gone", true).value());
    CHECK(m.text("gone", "x").value() == "x");
    CHECK_FALSE(m.integer("i32", 9).ok());
    CHECK_FALSE(m.text("i32", "x").ok());
}

TEST_CASE("metadata: arrays keep their kind, and per-layer numbers accept a scalar") {
    GgufBuilder builder;
    builder.add("u8", std::vector<uint8_t>{1, 255}).add("i32", std::vector<int32_t>{-1, 2});
    builder.add("u64", std::vector<uint64_t>{1, uint64_t(1) << 62}).add("f64", std::vector<double>{0.5});
    builder.add("f32", std::vector<float>{0.5f, -1.0f}).add("texts", std::vector<std::string>{"a", "", "c"});
    builder.add("scalar", uint16_t(8)).add("nothing", std::vector<float>{});
    Bytes flags;
    test::append(flags, uint32_t(7));
    test::append(flags, uint64_t(3));
    for (const bool flag : {true, false, true}) test::append(flags, flag);
    builder.add_raw("flags", 9, flags);
    const auto gguf = parse(builder.bytes());
    REQUIRE(gguf.ok());
    const Metadata& m = gguf.value().metadata();
    REQUIRE(m.strings("texts"));
    CHECK(*m.strings("texts") == std::vector<std::string>{"a", "", "c"});
    CHECK(m.strings("i32") == nullptr);
    CHECK(m.strings("gone") == nullptr);
    CHECK(*m.integers("i32") == std::vector<int64_t>{-1, 2});
    CHECK(*m.integers("u8") == std::vector<int64_t>{1, 255});
    CHECK(m.integers("f32") == nullptr);
    CHECK(*m.floats("f32") == std::vector<float>{0.5f, -1.0f});
    CHECK(*m.floats("f64") == std::vector<float>{0.5f});
    CHECK(m.floats("nothing")->empty());
    CHECK(m.find("texts")->element_type == 8);
    using Counts = std::vector<uint64_t>;
    CHECK(m.integers("u64", 2, std::nullopt).value() == Counts{1, uint64_t(1) << 62});
    CHECK(m.integers("scalar", 3, std::nullopt).value() == Counts{8, 8, 8});
    CHECK(m.integers("flags", 3, std::nullopt).value() == Counts{1, 0, 1});
    CHECK(m.integers("gone", 2, 4).value() == Counts{4, 4});
    CHECK_FALSE(m.integers("gone", 2, std::nullopt).ok());
    CHECK(m.integers("u64", 3, 4).error().message == "key u64 has 2 entries, 3 are expected");
    CHECK_FALSE(m.integers("i32", 2, std::nullopt).ok());
    CHECK_FALSE(m.integers("f32", 2, std::nullopt).ok());
    CHECK_FALSE(m.integers("texts", 3, std::nullopt).ok());
    CHECK(m.integer("u8").error().message == "key u8 is an array of integers, an integer is expected");
    builder = GgufBuilder();
    builder.add("large", std::vector<uint64_t>{1, kHuge});
    CHECK_REFUSED(builder, "key large");
}

}  // namespace redline
