#include "arch/ngrams.h"

#include "formats/format.h"

#include <algorithm>

namespace redline {

// Missing predecessors count as ends of texts.
std::vector<uint64_t> NgramTable::rows_of(std::span<const Token> text, size_t index) const {
    std::vector<uint64_t> rows;
    uint64_t mixed = 0;
    bool ended = false;
    for (size_t back = 0; back < multipliers.size(); ++back) {
        const bool missing = back > index;
        if (back > 0 && (missing || text[index - back] == end)) ended = true;
        mixed ^= uint64_t(ended ? end : text[index - back]) * multipliers[back];
        if (back == 0) continue;
        for (size_t head = (back - 1) * heads; head < back * heads; ++head)
            rows.push_back(mixed % sizes[head] + first[head]);
    }
    return rows;
}

Status NgramTable::look_up(const Gguf& gguf, std::span<const Token> text, size_t begin,
                           std::span<float> out) const {
    const GgufTensor* found = gguf.find(tensor);
    RL_CHECK(found && found->tensor.format, "the table {} is gone", tensor);
    const uint64_t bytes = found->tensor.row_bytes();
    std::vector<uint64_t> rows;
    for (size_t i = begin; i < text.size(); ++i)
        for (const uint64_t row : rows_of(text, i)) rows.push_back(row);
    RL_CHECK(out.size() == rows.size() * width, "{} floats for {} rows of {}", out.size(), rows.size(),
             width);
    // A disk reads many rows at a time where it knows of them.
    for (const uint64_t row : rows) gguf.file(found->file).will_read(found->offset + row * bytes, bytes);
    std::vector<std::byte> stored(bytes);
    for (size_t i = 0; i < rows.size(); ++i) {
        RL_TRY(gguf.read(*found, rows[i] * bytes, stored));
        found->tensor.format->decode(stored.data(), out.data() + i * width, width);
    }
    return {};
}

}  // namespace redline
