// The rows of the feeds of a step, with their pages and outputs.
#pragma once

#include "engine/sequence.h"

namespace redline {

struct StepRows {
    std::vector<Token> tokens;
    std::vector<Row> rows;
    std::vector<uint32_t> outputs;
    std::vector<std::span<const uint32_t>> pages;
    std::vector<float> lookups;

    // The last `wanted` of the sequence's next tokens have an output.
    void add(const Sequence& sequence, std::span<const uint32_t> list, std::span<const Token> next,
             uint32_t wanted) {
        for (size_t i = 0; i < next.size(); ++i) {
            if (i + wanted >= next.size()) outputs.push_back(uint32_t(rows.size()));
            rows.push_back({uint32_t(pages.size()), uint32_t(sequence.position() + i)});
        }
        tokens.insert(tokens.end(), next.begin(), next.end());
        pages.push_back(list);
    }
};

}  // namespace redline
