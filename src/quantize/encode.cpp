#include "quantize/encode.h"

#include "base/result.h"
#include "formats/q4_0.h"
#include "formats/q8_0.h"
#include "quantize/search.h"

#include <array>

namespace redline {

namespace {

using namespace quantize;

template <void (*encode_block)(const float*, std::byte*)>
Encoder make_encoder(std::string_view name) {
    static const Format* const format = find_format(name);
    RL_CHECK(format, "no format {}", name);
    return {format, [](const float* values, std::byte* blocks, size_t count) {
                for (size_t i = 0; i < count; i += format->block, blocks += format->block_bytes)
                    encode_block(values + i, blocks);
            }};
}

}  // namespace

const Encoder* find_encoder(std::string_view format) {
    static const std::array<Encoder, 4> encoders = {
        make_encoder<encode_q8_0>("Q8_0"), make_encoder<encode_q4_0>("Q4_0"),
        make_encoder<encode_q4_k>("Q4_K"), make_encoder<encode_q6_k>("Q6_K")};
    for (const Encoder& encoder : encoders)
        if (encoder.format->name == format) return &encoder;
    return nullptr;
}

// The largest value becomes 127 steps. A search gains nothing measurable at eight bits.
void encode_q8_0(const float* values, std::byte* block) {
    auto& out = *reinterpret_cast<formats::q8_0::Block*>(block);
    const float scale = std::fabs(extreme(values, 32)) / 127.0f;
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    out.scale = float_to_half(scale);
    for (int i = 0; i < 32; ++i) out.q[i] = int8_t(level(values[i] * inverse, -127, 127));
}

void encode_q4_0(const float* values, std::byte* block) {
    auto& out = *reinterpret_cast<formats::q4_0::Block*>(block);
    out.scale = float_to_half(fit_scale(values, 32, -8, 7));
    const float scale = half_to_float(out.scale);
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    for (int i = 0; i < 16; ++i) {
        const int low = level(values[i] * inverse, -8, 7) + 8;
        const int high = level(values[i + 16] * inverse, -8, 7) + 8;
        out.q[i] = uint8_t(low | high << 4);
    }
}

}  // namespace redline
