// The share of a test's cases and models that runs, where several builds, devices or drivers divide them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace redline::test {

// Cases whose names have one of these words are taken this much more often.
constexpr size_t kChangedFactor = 3;

struct Share {
    size_t first = 0, every = 1;
    std::vector<std::string> changed = {};  // words in lower case
    std::string only = {};                  // taken are those whose names have it; empty: all

    // `name`: of the case or the model.
    bool takes(size_t index, std::string_view name = {}) const {
        if (!only.empty() && name.find(only) == std::string_view::npos) return false;
        if (index % every == first) return true;
        const size_t often = std::max<size_t>(1, every / kChangedFactor);
        return index % often == first % often && has_changed(name);
    }

private:
    bool has_changed(std::string_view name) const {
        std::string lower(name);
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char letter) { return char(std::tolower(letter)); });
        return std::any_of(changed.begin(), changed.end(),
                           [&](const std::string& word) { return lower.find(word) != std::string::npos; });
    }
};

// The share that an environment variable names: 4:1 is the second of every four. RL_TEST_CHANGED has the
// words, with commas between.
inline Share share_by(const char* variable) {
    Share share;
    const char* const given = std::getenv(variable);
    if (given && std::sscanf(given, "%zu:%zu", &share.every, &share.first) < 1) FAIL(variable, ": ", given);
    share.every = std::max<size_t>(1, share.every);
    share.first %= share.every;
    if (const char* const words = std::getenv("RL_TEST_CHANGED")) {
        std::istringstream in(words);
        for (std::string word; std::getline(in, word, ',');)
            if (!word.empty()) share.changed.push_back(word);
    }
    if (const char* const only = std::getenv("RL_TEST_ONLY")) share.only = only;
    return share;
}

inline Share share_of_cases() {
    return share_by("RL_TEST_EVERY");
}
// The share of the tiny models.
inline Share share_of_models() {
    return share_by("RL_TEST_MODELS");
}

}  // namespace redline::test
