// Attention: the portable level, the choice of a level, and what does not depend on one (sizes, raw cache
// bytes).
#include "codes_portable.h"

#include "attention_amx.h"
#include "attention_flash.h"
#include "kv_store.h"
#include "levels.h"

#include <cstring>

namespace redline::cpu {

namespace {

constexpr AttentionKernels kAttentionPortable{kv_store, attend, combine, merge, float_activations};

// Elements of rows [first, first + count) between a part of a cache and a plain (count, width) array, to
// which kToPlain copies them. `blocked`: the part has its rows in blocks of 16, [block][element][row of the
// block].
template <bool kToPlain, typename Element>
void copy_rows(bool blocked, Element* part, uint64_t first, uint64_t count, uint64_t width,
               std::byte*& plain) {
    for (uint64_t row = first; row < first + count; ++row, plain += width * sizeof(Element)) {
        const uint64_t in_block = row % kKeyBlock;
        Element* from = part + (blocked ? (row - in_block) * width + in_block : row * width);
        const uint64_t step = blocked ? kKeyBlock : 1;
        for (uint64_t i = 0; i < width; ++i) {
            if constexpr (kToPlain)
                std::memcpy(plain + i * sizeof(Element), from + i * step, sizeof(Element));
            else
                std::memcpy(from + i * step, plain + i * sizeof(Element), sizeof(Element));
        }
    }
}

template <bool kToPlain>
void copy_head(const KvHead& head, uint64_t first, uint64_t count, std::byte* plain) {
    const KvLayout layout(head);
    const auto side = [&](bool blocked, const CacheCode& code, std::byte* codes, std::byte* highs,
                          uint16_t* scales) {
        const uint64_t dims = layout.dims;
        if (code.bits == 32)
            copy_rows<kToPlain>(blocked, reinterpret_cast<float*>(codes), first, count, dims, plain);
        else if (code.bits == 16)
            copy_rows<kToPlain>(blocked, reinterpret_cast<uint16_t*>(codes), first, count, dims, plain);
        else
            copy_rows<kToPlain>(blocked, codes, first, count, dims * code.bits / 8, plain);
        if (code.highs) copy_rows<kToPlain>(blocked, highs, first, count, dims / 8, plain);
        if (code.scales > 0)
            copy_rows<kToPlain>(true, scales, first, count, layout.groups * code.scales, plain);
    };
    side(true, layout.key_code, layout.key_codes(), layout.key_highs(), layout.key_scales());
    if (layout.rank == 0)
        side(false, layout.value_code, layout.value_codes(), layout.value_highs(), layout.value_scales());
}

}  // namespace

uint64_t kv_head_bytes(CacheTypes format, uint32_t head_dim, uint64_t capacity, uint32_t rank) {
    return padded_tokens(capacity) *
           CacheInfo{.kv_heads = 1, .head_dim = head_dim, .types = format, .rank = rank}.row_bytes();
}

void kv_export(const KvHead& head, uint64_t first, uint64_t count, std::byte* out) {
    copy_head<true>(head, first, count, out);
}

void kv_import(const KvHead& head, uint64_t first, uint64_t count, const std::byte* in) {
    copy_head<false>(head, first, count, const_cast<std::byte*>(in));
}

size_t attend_scratch_bytes(uint32_t rows, uint32_t group, uint32_t head_dim) {
    if (rows == 0 || group == 0) return 0;
    const size_t queries = size_t{block_rows(rows, group, head_dim)} * group;
    // For any level: they are chosen at run time.
    const size_t floats = tiles_suit(queries, head_dim) ? TileMemory::floats(queries, head_dim)
                                                        : Scratch::floats(queries, head_dim);
    return floats * sizeof(float) + 64;  // for alignment
}

const AttentionKernels& attention_kernels(Isa isa) {
    if constexpr (RL_CPU_AMX)
        if (isa >= Isa::amx) return kAttentionAmx;
    if constexpr (RL_CPU_AVX512)
        if (isa == Isa::avx512) return kAttentionAvx512;
    if constexpr (RL_CPU_AVX2)
        if (isa == Isa::avx2) return kAttentionAvx2;
    (void)isa;
    return kAttentionPortable;
}

}  // namespace redline::cpu
