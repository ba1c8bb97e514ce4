#include "cli/perplexity.h"

#include "engine/output_check.h"

#include <algorithm>
#include <cmath>

namespace redline::cli {

double Perplexity::value() const {
    return std::exp(nll / double(scored));
}

double Perplexity::uncertainty() const {
    const double mean = nll / double(scored);
    const double variance = nll_squares / double(scored) - mean * mean;
    return variance > 0.0 && scored > 1 ? std::sqrt(variance / double(scored - 1)) * value() : 0.0;
}

static Status score_chunk(Session& session, std::span<const Token> chunk, Perplexity& total,
                          const std::atomic<bool>* cancel, const PositionScored& position) {
    const size_t vocab = session.model().config().vocab;
    const size_t first = chunk.size() / 2;
    // It is scored and never read, so that nothing else checks it.
    if (chunk.back() < 0 || size_t(chunk.back()) >= vocab)
        return error("token id {} is outside the model's vocabulary of {}", chunk.back(), vocab);
    session.rewind(0);
    RL_TRY(session.feed(chunk.first(first), cancel));
    OutputWatch watch(session.model().tokenizer().end_of_generation());
    Status sound;
    const auto score = [&](size_t row, std::span<const float> logits) {
        for (; sound && !logits.empty(); logits = logits.subspan(vocab), ++row) {
            const Status seen = watch.see(chunk[first + row], logits.first(vocab), session.device());
            if (!seen) sound = error("after token {}: {}", first + row + 1, seen.error().message);
            if (!seen) return;
            const Token right = chunk[first + row + 1];
            const LogSoftmax softmax(logits.first(vocab));
            const double nll = softmax.negative_log(logits[size_t(right)]);
            total.nll += nll;
            total.nll_squares += nll * nll;
            total.scored++;
            if (position) sound = position(logits.first(vocab), right, softmax);
        }
    };
    // The last token predicts nothing of this chunk.
    RL_TRY(session.feed_all(chunk.subspan(first, size_t(scored_of_chunk(chunk.size()))), score, cancel));
    return sound;
}

Status check_chunks(std::span<const Token> tokens, uint64_t chunk) {
    if (chunk < kLeastChunk)
        return error("chunks of {} tokens are too short to score; {} are the least", chunk, kLeastChunk);
    if (tokens.size() < 2 * chunk)
        return error(
            "the text has {} tokens; two chunks of {} are the least that is scored: take a longer text or a "
            "smaller context",
            tokens.size(), chunk);
    return {};
}

Result<Perplexity> measure_perplexity(Session& session, std::span<const Token> tokens, uint64_t chunk,
                                      const ChunkDone& done, const std::atomic<bool>* cancel,
                                      const PositionScored& position) {
    const Tokenizer& tokenizer = session.model().tokenizer();
    Perplexity total;
    for (uint64_t i = 0; i < tokens.size() / chunk; ++i) {
        const auto part = tokens.subspan(size_t(i * chunk), size_t(chunk));
        std::vector<Token> chunk_tokens(part.begin(), part.end());
        if (tokenizer.adds_bos()) chunk_tokens[0] = tokenizer.bos();
        const Status scored = score_chunk(session, chunk_tokens, total, cancel, position);
        if (cancel && cancel->load()) {
            total.cancelled = true;
            return total;
        }
        if (!scored) return error("chunk {}: {}", i + 1, scored.error().message);
        total.running.push_back(total.value());
        if (!done(i + 1, total.value())) return total;
    }
    return total;
}

}  // namespace redline::cli
