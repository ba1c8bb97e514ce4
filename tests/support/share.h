// Which of a test's cases and models run, where several builds, devices or drivers share them.
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

// As an environment variable says: 4:1 takes the second of every four.
inline Share share_by(const char* variable) {
    Share share;
    const char* const given = std::getenv(variable);
    if (given && std::sscanf(given, "%zu:%zu", &share.every, &share.first) < 1) FAIL(variable, ": ", given);
    share.every = std::max<size_t>(1, share.every);
    share.first %= share.every;
    return share;
}

inline Share share_of_cases() {
    return share_by("RL_TEST_EVERY");
}
// Of the tiny models.
inline Share share_of_models() {
    return share_by("RL_TEST_MODELS");
}

}  // namespace redline::test
