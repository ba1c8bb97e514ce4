#include "measure/batch_agreement.h"

#include <algorithm>

namespace redline {

LongPrompt long_prompt(const Model& model, std::span<const CheckText> texts) {
    constexpr size_t kLongest = 2048;
    constexpr uint32_t kBatches[] = {64, 512, kLongest};
    LongPrompt prompt;
    const size_t room = size_t(std::min<uint64_t>(model.config().train_context, kLongest + LongPrompt::kEnd));
    if (texts.empty() || room < kBatches[0] + LongPrompt::kEnd) return prompt;
    const size_t body = (room - LongPrompt::kEnd) / kBatches[0] * kBatches[0];
    for (const uint32_t batch : kBatches)
        if (batch <= body) prompt.batches.push_back(batch);
    // A prompt shorter than the largest batch is also read in one step.
    if (prompt.batches.back() < body && body < kLongest) prompt.batches.push_back(uint32_t(body));
    for (size_t i = 0; prompt.tokens.size() < body + LongPrompt::kEnd; ++i) {
        const std::vector<Token>& text = texts[i % texts.size()].tokens;
        prompt.tokens.insert(prompt.tokens.end(), text.begin(), text.end());
    }
    prompt.tokens.resize(body + LongPrompt::kEnd);
    return prompt;
}

SessionOptions long_session(const LongPrompt& prompt, uint32_t batch, SessionOptions options) {
    options.context = prompt.tokens.size();
    options.batch = batch;
    options.outputs = LongPrompt::kEnd;
    return options;
}

Result<LongRead> read_long(const Model& model, const LongPrompt& prompt, const SessionOptions& options,
                           Deadline deadline, const Progress& progress, const std::atomic<bool>* cancel) {
    Session session = RL_TRY(Session::create(model, options));
    const size_t width = model.config().vocab, usable = model.usable_vocab();
    const std::span<const Token> tokens = prompt.tokens;
    LongRead out;
    const auto keep = [&](size_t position, std::span<const float> logits) {
        out.positions.push_back(position);
        out.logits.emplace_back(logits.begin(), logits.begin() + ptrdiff_t(usable));
    };
    const auto is_over = [&] { return std::chrono::steady_clock::now() >= deadline; };
    while (out.read < prompt.body() && !is_over()) {
        const size_t step = std::min<size_t>(options.batch, prompt.body() - out.read);
        RL_TRY(session.feed(tokens.subspan(out.read, step), cancel));
        out.read += step;
        if (progress) progress(out.read, tokens.size());
        keep(out.read - 1, session.logits());
    }
    if (out.read < prompt.body() || is_over()) return out;
    RL_TRY(session.feed_all(
        tokens.subspan(out.read),
        [&](size_t first, std::span<const float> rows) {
            for (size_t i = 0; i * width < rows.size(); ++i)
                keep(out.read + first + i, rows.subspan(i * width, width));
        },
        cancel));
    out.read = tokens.size();
    return out;
}

Agreement compare_reads(const LongRead& reference, const LongRead& other, double bound, bool has_experts) {
    std::vector<float> want, got;
    std::vector<size_t> positions;
    size_t vocab = 1;
    for (size_t i = 0, j = 0; i < reference.positions.size() && j < other.positions.size();) {
        if (reference.positions[i] != other.positions[j]) {
            ++(reference.positions[i] < other.positions[j] ? i : j);
            continue;
        }
        positions.push_back(reference.positions[i]);
        vocab = reference.logits[i].size();
        want.insert(want.end(), reference.logits[i].begin(), reference.logits[i].end());
        got.insert(got.end(), other.logits[j].begin(), other.logits[j].end());
        ++i;
        ++j;
    }
    Agreement out = compare_logits({&want, 1}, {&got, 1}, vocab, bound, has_experts);
    if (!positions.empty()) out.worst_token = positions[out.worst_token];
    return out;
}

std::vector<size_t> odd_reads(size_t count, const std::function<bool(size_t, size_t)>& agree) {
    std::vector<size_t> parts(count, 0);  // for each read, the number of others that it disagrees with
    for (size_t a = 0; a < count; ++a)
        for (size_t b = a + 1; b < count; ++b)
            if (!agree(a, b)) {
                ++parts[a];
                ++parts[b];
            }
    const size_t most = count == 0 ? 0 : *std::ranges::max_element(parts);
    std::vector<size_t> odd;
    for (size_t i = 0; i < count && most > 0; ++i)
        if (parts[i] == most) odd.push_back(i);
    return odd;
}

}  // namespace redline
