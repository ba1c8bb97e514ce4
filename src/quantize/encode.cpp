// The table of encoders.
#include "quantize/encode.h"

#include "base/result.h"

#include <algorithm>
#include <array>

namespace redline {

namespace {

constexpr size_t kMostBlock = 256;  // elements

template <EncodeBlock* encode_block>
Encoder make_encoder(std::string_view name) {
    static const Format* const format = find_format(name);
    RL_CHECK(format && format->block <= kMostBlock, "no format {}", name);
    return {format, [](const float* values, const float* weights, std::byte* blocks, size_t count) {
                static const std::array<float, kMostBlock> alike = [] {
                    std::array<float, kMostBlock> ones;
                    ones.fill(1.0f);
                    return ones;
                }();
                for (size_t i = 0; i < count; i += format->block, blocks += format->block_bytes)
                    encode_block(values + i, weights ? weights + i : alike.data(), blocks);
            }};
}

}  // namespace

const Encoder* find_encoder(std::string_view format) {
    static const std::array encoders = {
        make_encoder<encode_q8_0>("Q8_0"),    make_encoder<encode_q4_0>("Q4_0"),
        make_encoder<encode_q5_0>("Q5_0"),    make_encoder<encode_q4_1>("Q4_1"),
        make_encoder<encode_q5_1>("Q5_1"),    make_encoder<encode_iq4_nl>("IQ4_NL"),
        make_encoder<encode_mxfp4>("MXFP4"),  make_encoder<encode_q2_k>("Q2_K"),
        make_encoder<encode_q3_k>("Q3_K"),    make_encoder<encode_q4_k>("Q4_K"),
        make_encoder<encode_q5_k>("Q5_K"),    make_encoder<encode_q6_k>("Q6_K"),
        make_encoder<encode_iq4_xs>("IQ4_XS")};
    const auto found = std::find_if(encoders.begin(), encoders.end(),
                                    [&](const Encoder& each) { return each.format->name == format; });
    return found != encoders.end() ? &*found : nullptr;
}

}  // namespace redline
