// Which of a test's cases run, where several builds, devices or drivers share them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace redline::test {

struct Share {
    size_t first = 0, every = 1;
    bool takes(size_t index) const { return index % every == first; }
};

// RL_TEST_EVERY=4:1 takes the second of every four cases.
inline Share share_of_cases() {
    Share share;
    const char* const given = std::getenv("RL_TEST_EVERY");
    if (given && std::sscanf(given, "%zu:%zu", &share.every, &share.first) < 1)
        FAIL("RL_TEST_EVERY: ", given);
    share.every = std::max<size_t>(1, share.every);
    share.first %= share.every;
    return share;
}

}  // namespace redline::test
