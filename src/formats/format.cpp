#include "formats/format.h"

#include <fmt/format.h>

namespace redline {

namespace {

struct KnownType {
    uint32_t gguf_id;
    TypeSize size;  // block 0: removed from GGUF
};

// The types without a header here, so that their tensors can be listed, sized and refused by name. A type
// with a header gets its sizes from there.
constexpr KnownType kWithoutDecoder[] = {
    {4, {"Q4_2", 0, 0}},        {5, {"Q4_3", 0, 0}},        {9, {"Q8_1", 32, 36}},
    {15, {"Q8_K", 256, 292}},   {24, {"I8", 1, 1}},         {25, {"I16", 1, 2}},
    {26, {"I32", 1, 4}},        {27, {"I64", 1, 8}},        {31, {"Q4_0_4_4", 0, 0}},
    {32, {"Q4_0_4_8", 0, 0}},   {33, {"Q4_0_8_8", 0, 0}},   {36, {"IQ4_NL_4_4", 0, 0}},
    {37, {"IQ4_NL_4_8", 0, 0}}, {38, {"IQ4_NL_8_8", 0, 0}},
};

const KnownType* without_decoder(uint32_t gguf_id) {
    for (const KnownType& type : kWithoutDecoder)
        if (type.gguf_id == gguf_id) return &type;
    return nullptr;
}

}  // namespace

const Format* find_format(uint32_t gguf_id) {
    for (const Format* format : all_formats())
        if (format->gguf_id == gguf_id) return format;
    return nullptr;
}

const Format* find_format(std::string_view name) {
    for (const Format* format : all_formats())
        if (format->name == name) return format;
    return nullptr;
}

std::optional<TypeSize> find_type(uint32_t gguf_id) {
    if (const Format* format = find_format(gguf_id))
        return TypeSize{format->name, format->block, format->block_bytes};
    const KnownType* type = without_decoder(gguf_id);
    if (!type || type->size.block == 0) return std::nullopt;
    return type->size;
}

std::string describe_type(uint32_t gguf_id) {
    if (const auto size = find_type(gguf_id)) return fmt::format("{} (type {})", size->name, gguf_id);
    if (const KnownType* removed = without_decoder(gguf_id))
        return fmt::format("the removed type {} ({})", removed->size.name, gguf_id);
    if (gguf_id >= kFirstIkType) return fmt::format("the ik_llama.cpp type {}", gguf_id);
    return fmt::format("the unknown type {}", gguf_id);
}

}  // namespace redline
