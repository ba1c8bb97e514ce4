// Shared parts of the tests of the GGUF reader: parsing to an error sentence, and small images to start from.
#pragma once

#include "gguf/gguf.h"
#include "tests/support/gguf_builder.h"

#include <doctest/doctest.h>

#include <limits>

namespace redline::test {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

inline Result<Gguf> parse(const Bytes& bytes) {
    return Gguf::parse(bytes, bytes.size(), "model.gguf");
}

// The error sentence, or "" when the bytes parse.
inline std::string refusal(const Bytes& bytes) {
    const auto gguf = parse(bytes);
    return gguf ? "" : gguf.error().message;
}
inline std::string refusal(const GgufBuilder& builder) {
    return refusal(builder.bytes());
}

inline bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

inline Bytes text_bytes(std::string_view text) {
    const auto view = std::as_bytes(std::span(text));
    return Bytes(view.begin(), view.end());
}

// A small model with one key and tensors of three types.
inline GgufBuilder small_model() {
    GgufBuilder builder;
    builder.add("general.architecture", std::string("llama"));
    builder.tensor_f32("norm.weight", {3}, {1.0f, 2.0f, 3.0f});
    builder.tensor("up.weight", {64, 2, 3}, 8, Bytes(2 * 34 * 6, std::byte{7}));
    builder.tensor("half.weight", {5, 2}, 1, Bytes(20, std::byte{1}));
    return builder;
}

}  // namespace redline::test

// The image (a builder or bytes) is refused with a sentence that has `part` and names the file.
#define CHECK_REFUSED(image, part)                                  \
    do {                                                            \
        const std::string sentence = redline::test::refusal(image); \
        CAPTURE(sentence);                                          \
        CHECK(redline::test::contains(sentence, part));             \
        CHECK(redline::test::contains(sentence, "model.gguf"));     \
    } while (false)
