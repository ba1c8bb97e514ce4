// Mirostat (Basu et al. 2021, arXiv:2007.14966): keeps the surprise of the chosen tokens near tau bits by
// moving a bound mu. Version 1 turns mu into a top-k by estimating the Zipf exponent; version 2 cuts tokens
// above mu bits.
#pragma once

#include "sample/candidates.h"

#include <cstddef>

namespace redline {

struct Mirostat {
    int version;  // 1, 2
    double tau;   // bits
    double eta;   // learning rate
    double mu = 2 * tau;

    // Truncates and draws; the list must not be empty.
    Candidates::Drawn choose(Candidates& candidates, size_t vocabulary, double u) const;
    // Once the drawn token is taken.
    void learn(double probability);
};

}  // namespace redline
