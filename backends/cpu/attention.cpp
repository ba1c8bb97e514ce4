// Attention: the portable level, the choice of a level, and what does not depend on one (sizes, raw cache
// bytes).
#include "simd/vec_portable.h"

#include "simd/attention_amx.h"
#include "simd/attention_flash.h"
#include "simd/kv_store.h"
#include "simd/levels.h"

#include <cstring>

namespace redline::cpu {

namespace {

constexpr AttentionKernels kAttentionPortable{kv_store, attend, combine, float_activations};

// The stored bytes of one token's keys or values, one by one, in the order of kv_export: visit(byte in the
// cache).
template <typename Visit>
void visit_token(const KvHead& head, uint64_t position, bool values, Visit visit) {
    const KvLayout layout(head);
    const auto bytes = [visit](void* p, size_t count) {
        for (size_t i = 0; i < count; ++i) visit(static_cast<std::byte*>(p)[i]);
    };
    if (head.format == CacheType::f32) {
        for (uint64_t i = 0; i < layout.dims; ++i)
            bytes(values ? layout.float_values() + layout.value_index(position, i)
                         : layout.float_keys() + layout.key_index(position, i),
                  sizeof(float));
        return;
    }
    if (head.format == CacheType::f16) {
        for (uint64_t i = 0; i < layout.dims; ++i)
            bytes(values ? layout.half_values() + layout.value_index(position, i)
                         : layout.half_keys() + layout.key_index(position, i),
                  sizeof(uint16_t));
        return;
    }
    for (uint64_t group = 0; group < layout.groups; ++group) {
        bytes((values ? layout.value_scales() : layout.key_scales()) + layout.scale_index(position, group),
              sizeof(uint16_t));
        for (uint64_t i = group * kGroup; i < (group + 1) * kGroup; ++i)
            bytes(values ? layout.int8_values() + layout.value_index(position, i)
                         : layout.int8_keys() + layout.key_index(position, i),
                  sizeof(int8_t));
    }
}

}  // namespace

size_t kv_token_bytes(CacheType format, uint32_t head_dim) {
    if (format == CacheType::q8_0) return 2 * (size_t{head_dim} / kGroup * (kGroup + 2));
    return 2 * size_t{head_dim} * (format == CacheType::f32 ? sizeof(float) : sizeof(uint16_t));
}

uint64_t kv_head_bytes(CacheType format, uint32_t head_dim, uint64_t capacity) {
    return padded_tokens(capacity) * kv_token_bytes(format, head_dim);
}

void kv_export(const KvHead& head, uint64_t position, std::byte* out) {
    for (const bool values : {false, true})
        visit_token(head, position, values, [&out](std::byte& stored) { *out++ = stored; });
}

void kv_import(const KvHead& head, uint64_t position, const std::byte* in) {
    for (const bool values : {false, true})
        visit_token(head, position, values, [&in](std::byte& stored) { stored = *in++; });
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
#if defined(__x86_64__)
    if (isa >= Isa::amx) return kAttentionAmx;
    if (isa == Isa::avx512) return kAttentionAvx512;
    if (isa == Isa::avx2) return kAttentionAvx2;
#else
    (void)isa;
#endif
    return kAttentionPortable;
}

}  // namespace redline::cpu
