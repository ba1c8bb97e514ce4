// Rows of a cache as CacheStore::read() gives them, as floats, and what they should be.
#pragma once

#include "base/half.h"
#include "formats/format.h"
#include "plan/types.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace redline::test {

inline std::vector<float> stored_vector(CacheType format, uint32_t dims, const std::byte* raw) {
    std::vector<float> out(dims);
    if (format == CacheType::f32) {
        std::memcpy(out.data(), raw, dims * sizeof(float));
        return out;
    }
    if (format == CacheType::f16) {
        for (uint32_t i = 0; i < dims; ++i) {
            uint16_t half;
            std::memcpy(&half, raw + 2 * i, 2);
            out[i] = half_to_float(half);
        }
        return out;
    }
    if (format == CacheType::bf16) {
        for (uint32_t i = 0; i < dims; ++i) {
            uint16_t bits;
            std::memcpy(&bits, raw + 2 * i, 2);
            out[i] = bfloat_to_float(bits);
        }
        return out;
    }
    std::string name(cache_type_name(format));
    for (char& letter : name) letter = char(std::toupper(letter));
    const CacheCode code = cache_code(format);
    const size_t codes = kCacheBlock * code.bits / 8, highs = code.highs ? 4 : 0, scales = 2 * code.scales;
    // A block of a file: its scales, high bits, codes.
    for (uint32_t block = 0; block < dims / kCacheBlock; ++block) {
        alignas(4) std::byte whole[64];
        const std::byte* const plane = raw + dims * code.bits / 8;
        std::memcpy(whole, plane + dims / kCacheBlock * highs + block * scales, scales);
        std::memcpy(whole + scales, plane + block * highs, highs);
        std::memcpy(whole + scales + highs, raw + block * codes, codes);
        find_format(name)->decode(whole, out.data() + size_t{block} * kCacheBlock, kCacheBlock);
    }
    return out;
}

// By the definition of each type: the scale is rounded to a half, then each element goes to the nearest
// level.
inline std::vector<float> nearest_levels(CacheType type, const float* x) {
    float largest = 0.0f, low = x[0], high = x[0];
    for (uint32_t i = 0; i < kCacheBlock; ++i) {
        if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
        low = std::min(low, x[i]);
        high = std::max(high, x[i]);
    }
    const auto half = [](double v) { return double(half_to_float(float_to_half(float(v)))); };
    const bool has_low = cache_code(type).scales == 2;
    const int most = cache_code(type).highs ? 31 : 15, middle = (most + 1) / 2;
    std::vector<double> levels;
    if (type == CacheType::iq4_nl) {
        constexpr int kLevels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
        for (const int level : kLevels) levels.push_back(half(double(largest) / -127) * level);
    } else {
        const double scale = half(has_low ? (double(high) - double(low)) / most : double(largest) / -middle);
        for (int code = 0; code <= most; ++code)
            levels.push_back(has_low ? half(double(low)) + scale * code : scale * (code - middle));
    }
    std::vector<float> out;
    for (uint32_t i = 0; i < kCacheBlock; ++i)
        out.push_back(float(*std::ranges::min_element(
            levels, {}, [&](double level) { return std::abs(level - double(x[i])); })));
    return out;
}

}  // namespace redline::test
