// The file of a run's probabilities, and how far another run is from it.
#include "measure/base_run.h"

#include "support/fake_clock.h"
#include "support/models.h"

#include <doctest/doctest.h>

#include <fstream>
#include <random>

using namespace redline;
using namespace redline::test;

namespace {

constexpr uint64_t kChunk = 8, kScored = 3;
const std::vector<Token> kText = {1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 6, 8, 1, 3, 5, 7, 9};

// Logits of one position, as far apart as those of models and further.
std::vector<float> logits_of(uint32_t vocab, uint32_t seed, float spread) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> logits(vocab);
    for (float& logit : logits) logit = spread * normal(random);
    return logits;
}

std::vector<std::vector<float>> run_of(uint32_t vocab, uint32_t seed, float spread) {
    std::vector<std::vector<float>> rows;
    for (uint32_t row = 0; row < 2 * kScored; ++row) rows.push_back(logits_of(vocab, seed + row, spread));
    return rows;
}

struct Kept {
    CacheFolder folder;
    std::string path = folder.path / "run.base";

    void write(const std::vector<std::vector<float>>& rows, Token right) const {
        auto writer = must(BaseRunWriter::create(path));
        const auto vocab = uint32_t(rows[0].size());
        must(writer.begin(scored_text(kText, kChunk, kScored, vocab)));
        for (const auto& row : rows) must(writer.add(row, right, LogSoftmax(row)));
        must(writer.commit());
    }
    Divergence compare(const std::vector<std::vector<float>>& rows, Token right) const {
        auto reader = must(BaseRunReader::open(path));
        Divergence divergence;
        for (const auto& row : rows) divergence.add(*must(reader.next()), row, right, LogSoftmax(row));
        must(reader.finish());
        return divergence;
    }
    std::string bytes() const {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void put(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
    std::string refusal() const {
        const auto reader = BaseRunReader::open(path);
        return reader ? "" : reader.error().message;
    }
};

// From the definition, with all in double.
double kl_by_hand(std::span<const float> base, std::span<const float> run) {
    const auto log_sum = [](std::span<const float> logits) {
        double sum = 0.0;
        for (const float logit : logits) sum += std::exp(double(logit));
        return std::log(sum);
    };
    const double of_base = log_sum(base), of_run = log_sum(run);
    double sum = 0.0;
    for (size_t i = 0; i < base.size(); ++i) {
        const double log_p = double(base[i]) - of_base;
        sum += std::exp(log_p) * (log_p - double(run[i]) + of_run);
    }
    return sum;
}

bool says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("base run: a run is less than 5e-8 nats from its file, whatever its logits") {
    for (const float spread : {0.0f, 0.01f, 1.0f, 3.0f, 10.0f, 40.0f}) {
        const Kept kept;
        const auto rows = run_of(5001, 7, spread);
        kept.write(rows, 17);
        const Divergence same = kept.compare(rows, 17);
        CAPTURE(spread);
        CHECK(double(same.sorted_kl().back()) < 5e-8);
        CHECK(same.kl().mean < 5e-8);
        CHECK(same.same_best().mean == 1.0);
        CHECK(std::abs(same.log_ratio().mean) < 1e-5);
        CHECK(std::abs(double(same.sorted_changes().back())) < 1e-7);
    }
}

TEST_CASE("base run: KL divergence is that of the definition") {
    for (const float spread : {0.5f, 2.0f, 6.0f}) {
        const Kept kept;
        const auto base = run_of(3000, 1, spread);
        auto run = base;
        for (auto& row : run) {
            const auto change = logits_of(3000, uint32_t(int32_t(row[0] * 1000.0f)), 0.3f * spread);
            for (size_t i = 0; i < row.size(); ++i) row[i] += change[i];
        }
        kept.write(base, 5);
        const Divergence got = kept.compare(run, 5);
        double sum = 0.0, nll = 0.0, changes = 0.0, squares = 0.0;
        for (size_t row = 0; row < base.size(); ++row) {
            sum += kl_by_hand(base[row], run[row]);
            const double of_base = LogSoftmax(base[row]).negative_log(base[row][5]);
            const double of_run = LogSoftmax(run[row]).negative_log(run[row][5]);
            nll += of_base;
            changes += std::exp(-of_run) - std::exp(-of_base);
            squares += std::pow(std::exp(-of_run) - std::exp(-of_base), 2.0);
        }
        const double count = double(base.size());
        CAPTURE(spread);
        CHECK(got.kl().mean == doctest::Approx(sum / count).epsilon(1e-4));
        CHECK(got.base_perplexity().mean == doctest::Approx(std::exp(nll / count)));
        CHECK(got.change().mean == doctest::Approx(changes / count).epsilon(1e-4));
        CHECK(got.root_mean_square_change().mean ==
              doctest::Approx(std::sqrt(squares / count)).epsilon(1e-4));
    }
}

TEST_CASE("base run: means have the error of their spread, percentiles lie between values") {
    Sums sums;
    for (const double value : {1.0, 2.0, 3.0, 6.0}) sums.add(value);
    CHECK(sums.estimate().mean == 3.0);
    CHECK(sums.estimate().error == doctest::Approx(std::sqrt(3.5 / 3.0)));  // the mean of squares is 12.5
    const std::vector<float> sorted = {0.0f, 1.0f, 2.0f, 3.0f, 10.0f};
    CHECK(percentile(sorted, 50.0) == 2.0);
    CHECK(percentile(sorted, 0.0) == 0.0);
    CHECK(percentile(sorted, 100.0) == 10.0);
    CHECK(percentile(sorted, 90.0) == doctest::Approx(7.2));  // place 3.6
    CHECK(percentile(std::span(sorted).first(1), 99.9) == 0.0);
}

TEST_CASE("base run: a file of another vocabulary, chunk or text is refused by what differs") {
    const Kept kept;
    kept.write(run_of(100, 3, 1.0f), 2);
    const auto reader = must(BaseRunReader::open(kept.path));
    CHECK(reader.check(scored_text(kText, kChunk, kScored, 100)).ok());
    const auto refused = [&](const ScoredText& text) {
        const Status fits = reader.check(text);
        return fits.ok() ? "" : fits.error().message;
    };
    CHECK(says(refused(scored_text(kText, kChunk, kScored, 101)),
               "a vocabulary of 100 tokens, this one has 101"));
    CHECK(says(refused(scored_text(kText, 4, 1, 100)), "chunks of 8 tokens, these have 4: -c 8"));
    CHECK(
        says(refused(scored_text(std::span(kText).first(10), kChunk, kScored, 100)), "2 chunks, this one 1"));
    std::vector<Token> other = kText;
    other[11] = 7;
    CHECK(says(refused(scored_text(other, kChunk, kScored, 100)), "another text"));
    // Tokens behind the last chunk are not scored.
    other = kText;
    other[16] = 3;
    CHECK(reader.check(scored_text(other, kChunk, kScored, 100)).ok());
}

TEST_CASE("base run: a file that was cut, damaged, or is of another kind is an error") {
    const Kept kept;
    const auto rows = run_of(100, 3, 1.0f);
    kept.write(rows, 2);
    const std::string whole = kept.bytes();
    CHECK(whole.size() == base_run_bytes(scored_text(kText, kChunk, kScored, 100)));
    for (const size_t size : {whole.size() - 1, whole.size() - 8, size_t(60), size_t(48)}) {
        kept.put(whole.substr(0, size));
        CHECK(says(kept.refusal(), fmt::format("is not whole: it has {} bytes", size)));
    }
    for (const size_t size : {size_t(47), size_t(3), size_t(0)}) {
        kept.put(whole.substr(0, size));
        CHECK(says(kept.refusal(), "is not a file that redline eval --kl-divergence-base wrote"));
    }
    kept.put(whole + "x");
    CHECK(says(kept.refusal(), "is not whole"));
    kept.put("GGUF" + whole);
    CHECK(says(kept.refusal(), "is not a file that redline"));
    std::string changed = whole;
    changed[6] = '2';
    kept.put(changed);
    CHECK(says(kept.refusal(), "another version of redline"));
    // Sizes so large that their product is a small number.
    changed = whole;
    const uint64_t huge = uint64_t(1) << 63;
    std::memcpy(changed.data() + 32, &huge, sizeof(huge));
    kept.put(changed);
    CHECK(says(kept.refusal(), "is not whole"));
    for (const size_t at : {size_t(48), size_t(57), whole.size() - 9, whole.size() - 1}) {
        changed = whole;
        changed[at] = char(changed[at] ^ 1);
        kept.put(changed);
        auto reader = must(BaseRunReader::open(kept.path));
        for (size_t row = 0; row < rows.size(); ++row) must(reader.next());
        const Status end = reader.finish();
        REQUIRE_FALSE(end.ok());
        CHECK(says(end.error().message, "is damaged"));
    }
}
