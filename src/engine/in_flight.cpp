// A long prompt over several places: its chunks are steps in flight, so that each place works on another one.
#include "engine/engine.h"
#include "engine/step_rows.h"

#include <algorithm>
#include <utility>

namespace redline {

// A step that was begun. Its sequence has its tokens already, and the states behind them.
struct Engine::Begun {
    explicit Begun(CachePool& pool) : states(pool) {}

    Sequence* sequence = nullptr;
    uint64_t tokens = 0;
    uint32_t state = CachePool::kNoState;  // before the step; held until it is finished
    std::vector<uint32_t> pages = {};      // the sequence's list may change meanwhile
    StepRows rows = {};
    StateChanges states;
};

Engine::~Engine() {
    close();
}

// Chunks of the same size as without flights, so that results are the same.
Result<bool> Engine::flies(const Feed& feed) {
    if (!places_ || feed.tokens.size() <= options_.batch || options_.batch < 2) return false;
    const std::lock_guard turn(model_->turns());
    if (!caches_ || feed.sequence->opened_ != opened_) return false;
    RL_TRY(executable(options_.batch));
    return pipeline_ && pipeline_->places() > 1;
}

Status Engine::begin(const Feed& chunk, const Wanted& wanted) {
    Sequence& sequence = *chunk.sequence;
    auto begun = std::make_unique<Begun>(*pool_);
    begun->sequence = &sequence;
    begun->tokens = chunk.tokens.size();
    begun->pages = sequence.pages_;
    StepRows& rows = begun->rows;
    rows.add(sequence, begun->pages, chunk.tokens, wanted.outputs);
    if (looks_up_) RL_TRY(look_up({&chunk, 1}, rows.lookups));
    begun->states.add(sequence, chunk.tokens.size(), 0);
    StepParams params{rows.tokens, rows.rows, rows.outputs};
    if (options_.pages > 0) params.pages = rows.pages;
    params.cancel = wanted.cancel;
    params.lookups = rows.lookups;
    params.states = begun->states.rows();
    RL_TRY(pipeline_->begin(params));
    begun->state = sequence.state_;
    if (begun->state != CachePool::kNoState) ++pool_->state_users_[begun->state];
    sequence.written_ = std::max(sequence.written_, sequence.position() + chunk.tokens.size());
    sequence.tokens_.insert(sequence.tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    begun->states.keep();
    begun_.push_back(std::move(begun));
    return {};
}

Status Engine::finish() {
    const Status done = pipeline_->finish();
    if (!done) {
        take_back_begun();
        return done;
    }
    pool_->drop_state(begun_.front()->state);
    begun_.pop_front();
    output_ = pipeline_->output();
    best_ = pipeline_->best();
    return {};
}

void Engine::take_back_begun() {
    for (; !begun_.empty(); begun_.pop_back()) {
        Sequence& sequence = *begun_.back()->sequence;
        sequence.tokens_.resize(sequence.tokens_.size() - begun_.back()->tokens);
        if (!sequence.has_states()) continue;
        pool_->drop_state(sequence.state_);
        sequence.state_ = std::exchange(begun_.back()->state, CachePool::kNoState);
    }
}

namespace {

// Chunks that fly before a head reads what they have left, for which none may be in flight.
constexpr size_t kBeforeHead = 8;

}  // namespace

// A last token alone is left to step(), which has other kernels for it; and all of them, where none fly.
Status Engine::feed_in_flight(const Feed& feed, const std::atomic<bool>* cancel) {
    if (!RL_TRY(flies(feed))) return {};
    const std::lock_guard turn(model_->turns());
    std::span<const Token> rest = feed.tokens;
    std::vector<float> hidden;  // rows of the tokens before the rest that no head has read
    Status status;
    const auto goes_on = [&] {
        const uint64_t unread = head_ ? hidden.size() / head_width() : 0;
        return status && rest.size() > 1 &&
               unread + begun_.size() * options_.batch < kBeforeHead * options_.batch;
    };
    while (goes_on() || !begun_.empty()) {
        while (goes_on() && begun_.size() < pipeline_->places()) {
            const Feed chunk{feed.sequence, rest.first(std::min<size_t>(rest.size(), options_.batch))};
            status = begin(chunk, {.cancel = cancel});
            if (status) rest = rest.subspan(chunk.tokens.size());
        }
        if (begun_.empty()) continue;
        RL_TRY(finish());
        if (!head_) continue;
        hidden.insert(hidden.end(), pipeline_->hidden().begin(), pipeline_->hidden().end());
        if (!begun_.empty()) continue;
        const size_t count = hidden.size() / head_width();
        const Feed read{feed.sequence, feed.tokens.first(feed.tokens.size() - rest.size()).last(count)};
        RL_TRY(keep_hidden({&read, 1}, hidden, cancel));
        hidden.clear();
    }
    return status;
}

}  // namespace redline
