// Plain reading, to know what the memory gives: in the order that suits the machine, see
// reads_side_by_side().
#include "linear.h"

namespace redline::cpu {

template <size_t kStreams>
static uint64_t read_streams(const uint64_t* words, size_t count) {
    constexpr size_t kLineWords = 8;
    constexpr size_t kAhead = (kStreams > 1 ? 2048 : kLoneAhead) / sizeof(uint64_t);
    const size_t part = count / kStreams / kLineWords * kLineWords;
    uint64_t sums[kLineWords] = {};
    for (size_t i = 0; i < part; i += kLineWords)
        for (size_t s = 0; s < kStreams; ++s) {
            const uint64_t* line = words + s * part + i;
            __builtin_prefetch(line + kAhead);
            for (size_t j = 0; j < kLineWords; ++j) sums[j] += line[j];
        }
    uint64_t sum = 0;
    for (size_t i = kStreams * part; i < count; ++i) sum += words[i];
    for (const uint64_t each : sums) sum += each;
    return sum;
}

uint64_t read_words(const uint64_t* words, size_t count) {
    return reads_side_by_side() ? read_streams<4>(words, count) : read_streams<1>(words, count);
}

}  // namespace redline::cpu
