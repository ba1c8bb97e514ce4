// Small choices that ops and kernels name alike.
#pragma once

#include <cstdint>
#include <string_view>

namespace redline {

enum class Act : uint8_t { silu, gelu_tanh };

// How keys and values are stored.
enum class CacheType : uint8_t { f16, q8_0, f32 };
std::string_view cache_type_name(CacheType type);

}  // namespace redline
