// The indexer, which chooses the blocks of tokens that attention sees: its shape, for the models that have
// one.
#pragma once

#include "arch/arch.h"

namespace redline::archs {

struct IndexShape {
    uint32_t heads = 0;
    uint32_t head_dim = 0;
    uint32_t tokens = 0;           // that are chosen
    std::vector<uint32_t> ratios;  // by layer: tokens of a block; 0: attention sees everything
};

inline Status read_index_heads(const ModelFile& file, const Config& c, IndexShape& index) {
    index.heads = RL_TRY(count(file, "attention.indexer.head_count", {}, 1, 1024));
    index.head_dim = RL_TRY(count(file, "attention.indexer.key_length", {}, 1, 4096));
    index.tokens = RL_TRY(count(file, "attention.indexer.top_k", {}, 1, 1u << 24));
    const size_t rotated = 2 * c.rope.inverse_frequency.size();
    if (rotated > index.head_dim)
        return error("{}: rope turns {} dimensions, the indexer's heads have {}", file.gguf.path(), rotated,
                     index.head_dim);
    return {};
}

}  // namespace redline::archs
