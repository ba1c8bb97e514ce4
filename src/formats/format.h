// A tensor format: its blocks, and how to decode them. There is one header per format in this folder; the
// build generates the table of formats from the folder, so adding a format is adding a file.
#pragma once

#include "base/half.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace redline {

struct Format {
    std::string_view name;  // the common name: "Q4_K"
    uint32_t gguf_id;
    uint32_t block;  // elements per block; a block never straddles rows
    uint32_t block_bytes;
    // Decodes `count` elements (a multiple of `block`) starting at a block boundary; `blocks` is aligned to 4
    // bytes, or is a later row of such a buffer.
    void (*decode)(const std::byte* blocks, float* out, size_t count);
    // Sets the scale of a block, rounded to its precision, and its minimum where it has one: for made-up
    // weights.
    void (*set_scales)(std::byte* block, float scale, float minimum);

    // Bytes of one row of `cols` elements; cols must be a multiple of `block`.
    uint64_t row_bytes(uint64_t cols) const { return cols / block * block_bytes; }
};

// The size of a tensor type, whether or not this program can decode it.
struct TypeSize {
    std::string_view name;
    uint32_t block;  // elements per block
    uint32_t block_bytes;
};
// Empty for ids that GGUF has removed and for unknown ones.
std::optional<TypeSize> find_type(uint32_t gguf_id);

// The first id of the range in which ik_llama.cpp keeps its additional types.
constexpr uint32_t kFirstIkType = 97;

// Null when this program cannot decode that id or name.
const Format* find_format(uint32_t gguf_id);
const Format* find_format(std::string_view name);
std::span<const Format* const> all_formats();
// For messages: "IQ2_XXS (type 16)", "the removed type Q4_2 (4)", "the ik_llama.cpp type 137", "the unknown
// type 50".
std::string describe_type(uint32_t gguf_id);

// A format header defines `struct NAME` (its file stem) in redline::formats with: name, gguf_id, block,
// Block, and decode(block, i) giving element i. Halves in a Block that are called `scale` and `minimum` are
// its scales; a format with another kind of scale defines set_scale(block, scale). This builds the descriptor
// from it.
template <typename F>
constexpr Format describe_format() {
    return Format{F::name,
                  F::gguf_id,
                  F::block,
                  sizeof(typename F::Block),
                  [](const std::byte* blocks, float* out, size_t count) {
                      const auto* block = reinterpret_cast<const typename F::Block*>(blocks);
                      for (size_t i = 0; i < count; i += F::block, ++block)
                          for (uint32_t j = 0; j < F::block; ++j) out[i + j] = F::decode(*block, j);
                  },
                  [](std::byte* bytes, [[maybe_unused]] float scale, [[maybe_unused]] float minimum) {
                      typename F::Block block;
                      std::memcpy(&block, bytes, sizeof(block));
                      if constexpr (requires { F::set_scale(block, scale); }) F::set_scale(block, scale);
                      if constexpr (requires { block.scale; }) block.scale = float_to_half(scale);
                      if constexpr (requires { block.minimum; }) block.minimum = float_to_half(minimum);
                      std::memcpy(bytes, &block, sizeof(block));
                  }};
}

}  // namespace redline
