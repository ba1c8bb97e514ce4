// A file of the probabilities that a run gave to the tokens of a text, and how far those of another run are
// from them.
//
// The file is a Header, a row for each scored position in order, and a Hash64 of all that is before it;
// numbers are as in the memory of the machines that redline runs on, little-endian. A row is -ln of the
// probability of the token that came (float), the likeliest token (uint32), and for each token of the
// vocabulary how far its logit is below the largest, in 16 bits: code c stands for (c / 65535)^2 * 32. Near
// the largest the steps are fine: a token of e^-1 of its probability is rounded by 9e-5 of its logarithm at
// most, one of e^-16 by 4e-4. Those below e^-32 of it count as that. Probabilities are made to add up to 1
// when they are read, so that roundings count by their squares alone: a run is less than 5e-8 nats from its
// file. (Half of a squared rounding of d nats is 3.7e-9 * d at most, and their mean is at most the logarithm
// of the vocabulary, 12.5.)
#pragma once

#include "base/file.h"
#include "base/hash.h"
#include "measure/log_softmax.h"

#include <vector>

namespace redline {

// All that has to be alike in two runs that are compared.
struct ScoredText {
    uint64_t hash = 0;  // of the tokens of its chunks
    uint64_t chunk = 0, chunks = 0;
    uint64_t scored = 0;  // positions in all
    uint32_t vocab = 0;
    uint32_t unused = 0;
};
ScoredText scored_text(std::span<const Token> tokens, uint64_t chunk, uint64_t scored_of_chunk,
                       uint32_t vocab);
uint64_t base_run_bytes(const ScoredText& text);

// Row by row, whole or not at all.
class BaseRunWriter {
public:
    static Result<BaseRunWriter> create(const std::string& path);
    Status begin(const ScoredText& text);
    Status add(std::span<const float> logits, Token right, const LogSoftmax& softmax);
    Status commit();

private:
    explicit BaseRunWriter(AtomicWriter file) : file_(std::move(file)) {}
    Status write(std::span<const std::byte> bytes);

    AtomicWriter file_;
    Hash64 hash_;
    std::vector<std::byte> row_;
};

class BaseRunReader {
public:
    // Refuses what is no such file, or is not whole.
    static Result<BaseRunReader> open(const std::string& path);
    // An error when the file is of another vocabulary, chunks of another size, or another text.
    Status check(const ScoredText& text) const;

    struct Row {
        float right_nll = 0.0f;  // -ln of the probability of the token that came
        Token best = 0;
        std::vector<uint16_t> codes;  // of each token of the vocabulary
    };
    // The next position's row, which stays as it is until the next call.
    Result<const Row*> next();
    // Behind the last row: an error when the file's bytes are not those that were written.
    Status finish();

private:
    explicit BaseRunReader(File file) : file_(std::move(file)) {}

    File file_;
    ScoredText text_;
    Hash64 hash_;
    uint64_t at_ = 0;
    std::vector<std::byte> bytes_;
    Row row_;
};

// The mean of values, and its standard error.
struct Estimate {
    double mean = 0.0, error = 0.0;
};

// Sums over positions. A value and its square each.
class Sums {
public:
    void add(double value) {
        count_++;
        sum_ += value;
        squares_ += value * value;
    }
    uint64_t count() const { return count_; }
    double mean() const { return sum_ / double(count_); }
    double mean_square() const { return squares_ / double(count_); }
    Estimate estimate() const;

private:
    uint64_t count_ = 0;
    double sum_ = 0.0, squares_ = 0.0;
};

// KL divergence of the base's probabilities from the run's, and the change of the probability of the token
// that came, position by position.
class Divergence {
public:
    void add(const BaseRunReader::Row& base, std::span<const float> logits, Token right,
             const LogSoftmax& softmax);

    Estimate kl() const { return kl_sums_.estimate(); }          // nats
    Estimate change() const { return change_sums_.estimate(); }  // of a probability
    Estimate root_mean_square_change() const;
    Estimate same_best() const;  // the share of positions whose likeliest token is the base's
    Estimate base_perplexity() const;
    Estimate log_ratio() const { return ratios_.estimate(); }  // ln of perplexity by the base's
    // In ascending order.
    std::vector<float> sorted_kl() const;
    std::vector<float> sorted_changes() const;

private:
    Sums kl_sums_, change_sums_, change_squares_, base_nll_, ratios_;
    uint64_t same_best_ = 0;
    std::vector<float> kl_, changes_;
};

// The value below which `percent` of the sorted values lie, between two of them by a straight line.
double percentile(std::span<const float> sorted, double percent);

}  // namespace redline
