#include "engine/engine.h"

#include "engine/engine_plans.h"
#include "engine/step_rows.h"
#include "plan/far_backend.h"

#include <algorithm>

namespace redline {

namespace {

// A sequence with more new tokens than this gets a separate step, whose attention reads keys once for many
// rows.
constexpr uint64_t kTogether = 8;

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const Model& model, const EngineOptions& options) {
    std::unique_ptr<Engine> engine(new Engine);
    engine->model_ = &model;
    engine->options_ = RL_TRY(checked(options));
    const Plan plan = RL_TRY(plan_of(model, engine->options_, 1));
    engine->looks_up_ = bool(plan.lookup);
    engine->head_ = head_of(model, engine->options_);
    engine->text_caches_ = plan.caches.size();
    if (engine->head_) {
        engine->text_caches_ = RL_TRY(model.plan(1, 1, sizing(engine->options_))).caches.size();
        engine->head_count_ = head_count(*engine->head_, engine->options_);
        engine->head_steps_.resize(engine->head_count_);
    }
    engine->pool_ = std::make_shared<CachePool>(plan.caches, plan.sizing, engine->options_.snapshots);
    const std::lock_guard turn(model.turns());
    RL_TRY(engine->load());
    return engine;
}

Status Engine::load() {
    if (options_.is_shared()) {
        RL_TRY(load_parts());
    } else {
        Backend& backend = model_->backend();
        memory_ = RL_TRY(memory_need(*model_, backend, options_));
        // The budget was measured before the weights were loaded, so they count.
        RL_TRY(check_fits(memory_, *model_, backend.device(), options_.context));
    }
    caches_ = RL_TRY(make_caches());
    return {};
}

Status Engine::load_parts() {
    const std::vector<MemoryNeed> needs = RL_TRY(memory_needs(*model_, options_));
    std::vector<Backend*> backends = backends_of(options_.placements);
    for (const RankPlace& rank : options_.ranks) backends.push_back(rank.backend);
    for (size_t i = 0; i < needs.size(); ++i) {
        RL_TRY(check_fits(needs[i], *model_, backends[i]->device(), options_.context));
        memory_.weights += needs[i].weights;
        memory_.cache += needs[i].cache;
        memory_.scratch += needs[i].scratch;
        memory_.staging += needs[i].staging;
    }
    if (!options_.ranks.empty()) {
        ranks_ = RL_TRY(Ranks::load(*model_, sizing(options_), options_.ranks, options_.progress));
        if (!ranks_->link_problem().empty() && options_.ranks_note)
            options_.ranks_note(ranks_->link_problem());
        return {};
    }
    places_ = RL_TRY(Places::load(*model_, sizing(options_), options_.placements, options_.progress,
                                  heads_beside(*model_, options_)));
    stream_watch_ = std::make_shared<StreamWatch>(options_.stream_rows, options_.stream_expected);
    return {};
}

Result<std::unique_ptr<CacheStore>> Engine::make_caches() {
    if (ranks_) return ranks_->make_caches();
    return places_ ? places_->make_caches() : model_->backend().make_caches(pool_->caches());
}

const DeviceInfo& Engine::device() const {
    if (ranks_) return options_.ranks.front().backend->device();
    return places_ ? options_.placements.back().backend->device() : model_->backend().device();
}

bool Engine::lost() const {
    if (ranks_) return ranks_->lost();
    return places_ ? places_->lost() : model_->backend().lost();
}

Result<Executable*> Engine::executable(uint32_t rows) {
    const bool single = rows == 1 && has_single(options_);
    std::unique_ptr<Executable>& slot = single ? single_ : many_;
    if (slot) return slot.get();
    if (ranks_) {
        const uint32_t most = single ? 1 : options_.batch, outputs = std::min(most, options_.outputs);
        slot = RL_TRY(ranks_->record(most, outputs, options_.record, options_.fuse));
        return slot.get();
    }
    if (places_) {
        const uint32_t most = single ? 1 : options_.batch, outputs = std::min(most, options_.outputs);
        if (!single && options_.stream_rows > 0) {
            slot = RL_TRY(
                places_->record_streamed(most, outputs, options_.record, stream_watch_, options_.fuse));
            return slot.get();
        }
        auto pipeline = RL_TRY(places_->record(most, outputs, options_.record, options_.fuse));
        if (!single) pipeline_ = pipeline.get();
        slot = std::move(pipeline);
        return slot.get();
    }
    const Plan plan = RL_TRY(plan_of(*model_, options_, single ? 1 : options_.batch));
    BoundPlan bound = RL_TRY(lower(plan, model_->backend(), options_.fuse));
    slot = RL_TRY(model_->backend().record(std::move(bound), model_->weights(), *caches_, options_.record));
    return slot.get();
}

bool Engine::mixes() {
    Result<Executable*> many = executable(options_.batch);
    return many && options_.pages > 0 && many.value()->mixes();
}

Result<Executable*> Engine::head_executable(size_t which, uint32_t rows) {
    std::unique_ptr<Executable>& slot = rows == 1 ? head_steps_[which].single : head_steps_[which].many;
    if (slot) return slot.get();
    const uint32_t most = rows == 1 ? 1 : options_.batch;
    if (places_) {
        slot = RL_TRY(places_->record_head(which, most, options_.record, options_.fuse));
        return slot.get();
    }
    const Plan plan = RL_TRY(head_plan_of(*model_, options_, which, most));
    BoundPlan bound = RL_TRY(lower(plan, model_->backend(), options_.fuse));
    slot = RL_TRY(model_->backend().record(std::move(bound), head_->weights(), *caches_, options_.record));
    return slot.get();
}

Result<Sequence> Engine::open_sequence() {
    Sequence sequence = RL_TRY(Sequence::open(pool_));
    sequence.opened_ = opened_;
    sequence.heads_.resize(head_count_);
    sequence.head_width_ = head_ ? head_width() : 0;
    return sequence;
}

void Engine::close() {
    const std::lock_guard turn(model_->turns());
    release();
}

void Engine::release() {
    single_.reset();
    pipeline_ = nullptr;
    many_.reset();
    for (HeadSteps& steps : head_steps_) steps = {};
    caches_.reset();
    output_ = {};
    best_ = {};
    if (places_) places_->let_go();
    if (ranks_) ranks_->let_go();
}

Status Engine::reopen(std::span<const RankPlace> ranks, const Progress& progress) {
    const std::lock_guard turn(model_->turns());
    release();
    options_.ranks.assign(ranks.begin(), ranks.end());
    RL_TRY(ranks_->reload(ranks, progress));
    return open_caches();
}

Status Engine::reopen(std::span<const Placement> placements, const Progress& progress) {
    const std::lock_guard turn(model_->turns());
    release();
    options_.placements.assign(placements.begin(), placements.end());
    RL_TRY(places_->reload(placements, progress));
    return open_caches();
}

Status Engine::reopen() {
    const std::lock_guard turn(model_->turns());
    release();
    return open_caches();
}

Status Engine::open_caches() {
    caches_ = RL_TRY(make_caches());
    ++opened_;
    return {};
}

Status Engine::check_open() const {
    if (caches_) return {};
    return error("the session lost its device");
}

Status Engine::check(std::span<const Feed> feeds) const {
    for (const Feed& feed : feeds) {
        const uint64_t position = feed.sequence->position(), left = options_.context - position;
        RL_CHECK(feed.sequence->pool_ == pool_, "a sequence of another engine is fed");
        for (const Feed* other = feeds.data(); other != &feed; ++other)
            RL_CHECK(other->sequence != feed.sequence, "a sequence is fed twice at once");
        if (feed.tokens.empty()) return error("no tokens to read");
        if (feed.tokens.size() > left)
            return error("{} tokens do not fit: the context of {} has {} left", feed.tokens.size(),
                         options_.context, left);
        for (const Token token : feed.tokens)
            if (token < 0 || uint32_t(token) >= model_->config().vocab)
                return error("token id {} is outside the model's vocabulary of {}", token,
                             model_->config().vocab);
    }
    return {};
}

Status Engine::copy_page(Cache cache, uint32_t from, uint32_t to) {
    const CacheInfo& info = pool_->caches()[size_t(cache.index)];
    const uint64_t page = kPageRows / info.ratio;
    if (auto* const far = dynamic_cast<FarCaches*>(caches_.get()))
        if (RL_TRY(far->copy(cache, from * page, to * page, page))) return {};
    std::vector<std::byte> rows(page * info.row_bytes() * info.kv_heads);
    RL_TRY(caches_->read(cache, from * page, page, rows));
    return caches_->write(cache, to * page, page, rows);
}

// Rings have pages for all sequences. Null: there are no others.
const CachePool::Pages* Engine::scarcest() const {
    const CachePool::Pages* least = nullptr;
    for (const CachePool::Pages& pages : pool_->pages_)
        if (!pages.ring && (!least || pages.free.size() < least->free.size())) least = &pages;
    return least;
}

Engine::PageCount Engine::pages() const {
    const CachePool::Pages* least = scarcest();
    return least ? PageCount{least->users.size(), least->free.size()} : PageCount();
}

uint64_t Engine::pages_of(std::span<const Sequence* const> sequences) const {
    const CachePool::Pages* pages = scarcest();
    if (!pages) return 0;
    std::vector<bool> counted(pages->users.size());
    for (const Sequence* sequence : sequences)
        for (const uint32_t page : std::span(sequence->pages_).subspan(pages->first, pages->entries))
            if (page != CachePool::kNoPage) counted[page] = true;
    return uint64_t(std::count(counted.begin(), counted.end(), true));
}

bool Engine::has_pages(std::span<const Feed> feeds) const {
    return std::all_of(pool_->pages_.begin(), pool_->pages_.end(), [&](const CachePool::Pages& pages) {
        uint64_t wanted = 0;
        for (const Feed& feed : feeds) wanted += feed.sequence->pages_wanted(pages, feed.tokens.size());
        return wanted <= pages.free.size();
    });
}

Status Engine::give_pages(std::span<const Feed> feeds) {
    PageChanges changes(*pool_);
    for (const Feed& feed : feeds)
        RL_TRY(changes.give(*feed.sequence, feed.sequence->position(), feed.tokens.size()));
    RL_TRY(changes.copy_shared(
        [this](Cache cache, uint32_t from, uint32_t to) { return copy_page(cache, from, to); }));
    changes.keep();
    return {};
}

// Refills caches that were lost by reading the sequence's tokens again, into new pages.
Status Engine::read_again(Sequence& sequence, const std::atomic<bool>* cancel) {
    const std::vector<Token> all = sequence.tokens();
    sequence.rewind(0);
    sequence.opened_ = opened_;
    const auto read = [&]() -> Status {
        for (std::span<const Token> rest = all; !rest.empty();) {
            const Feed chunk{&sequence, rest.first(std::min<size_t>(rest.size(), options_.batch))};
            RL_TRY(run({&chunk, 1}, {.cancel = cancel}));
            rest = rest.subspan(chunk.tokens.size());
        }
        return {};
    }();
    if (!read) {  // the next step reads all of them again
        sequence.rewind(0);
        sequence.tokens_ = all;
        sequence.opened_ = 0;
    }
    return read;
}

// Tokens that the feeds' sequences have read.
static uint64_t positions(std::span<const Feed> feeds) {
    uint64_t tokens = 0;
    for (const Feed& feed : feeds) tokens += feed.sequence->position();
    return tokens;
}

Status Engine::step(std::span<const Feed> feeds, const Wanted& wanted) {
    RL_TRY(check(feeds));
    const Status done = try_step(feeds, wanted);
    if (done || !rescue_) return done;
    if (caches_ && !lost()) return done;
    RL_TRY(rescue_(*this, positions(feeds), done.error()));
    return try_step(feeds, wanted);
}

Status Engine::try_step(std::span<const Feed> feeds, const Wanted& wanted) {
    const std::lock_guard turn(model_->turns());
    RL_TRY(check_open());
    for (const Feed& feed : feeds)
        if (feed.sequence->opened_ != opened_) RL_TRY(read_again(*feed.sequence, wanted.cancel));
    return run(feeds, wanted);
}

Status Engine::look_up(std::span<const Feed> feeds, std::vector<float>& out) const {
    for (const Feed& feed : feeds) {
        // The tokens before the feed that its first table rows depend on.
        const std::vector<Token>& read = feed.sequence->tokens_;
        const size_t before = std::min(read.size(), model_->lookup_reach());
        std::vector<Token> text(read.end() - ptrdiff_t(before), read.end());
        text.insert(text.end(), feed.tokens.begin(), feed.tokens.end());
        const std::vector<float> rows = RL_TRY(model_->lookups(text, before));
        out.insert(out.end(), rows.begin(), rows.end());
    }
    return {};
}

// The best logits are requested only where the executable can pick them.
Status Engine::run(std::span<const Feed> feeds, const Wanted& wanted) {
    RL_TRY(give_pages(feeds));
    StepRows rows;
    for (const Feed& feed : feeds)
        rows.add(*feed.sequence, feed.sequence->pages_, feed.tokens,
                 feed.outputs > 0 ? feed.outputs : wanted.outputs);
    if (looks_up_) RL_TRY(look_up(feeds, rows.lookups));
    Executable* target = RL_TRY(executable(uint32_t(rows.tokens.size())));
    StepParams params{rows.tokens, rows.rows, rows.outputs};
    if (options_.pages > 0) params.pages = rows.pages;  // empty lists where all caches hold states
    params.cancel = wanted.cancel;
    params.lookups = rows.lookups;
    StateChanges states(*pool_);
    for (const Feed& feed : feeds) states.add(*feed.sequence, feed.tokens.size(), options_.drafts);
    params.states = states.rows();
    params.row_states = states.behind();
    if (!wanted.trace && wanted.best <= target->most_best()) params.best = wanted.best;
    if (params.best > 0) params.best_among = uint32_t(model_->usable_vocab());
    for (const Feed& feed : feeds) {
        Sequence& sequence = *feed.sequence;
        sequence.written_ = std::max(sequence.written_, sequence.position() + feed.tokens.size());
    }
    RL_TRY(wanted.trace ? target->run_traced(params, *wanted.trace) : target->run(params));
    for (const Feed& feed : feeds) {
        std::vector<Token>& tokens = feed.sequence->tokens_;
        tokens.insert(tokens.end(), feed.tokens.begin(), feed.tokens.end());
    }
    states.keep();
    if (head_) RL_TRY(keep_hidden(feeds, target->hidden(), wanted.cancel));
    output_ = target->output();
    best_ = target->best();
    return {};
}

// Reads a feed in chunks of the batch size. A step finds the loss of a device once more, and is rescued.
Status Engine::feed_alone(const Feed& feed, const std::atomic<bool>* cancel) {
    const uint64_t end = feed.sequence->position() + feed.tokens.size();
    const Status flown = feed_in_flight(feed, cancel);
    if (!flown && (!rescue_ || !lost())) return flown;
    for (auto rest = feed.tokens.last(end - feed.sequence->position()); !rest.empty();) {
        const Feed chunk{feed.sequence, rest.first(std::min<size_t>(rest.size(), options_.batch))};
        RL_TRY(step({&chunk, 1}, {.cancel = cancel}));
        rest = rest.subspan(chunk.tokens.size());
    }
    return {};
}

Status Engine::feed(std::span<const Feed> feeds, const LogitsSink& sink, const std::atomic<bool>* cancel) {
    RL_TRY(check(feeds));
    if (const Status open = check_open(); !open && rescue_)
        RL_TRY(rescue_(*this, positions(feeds), open.error()));
    {
        const std::lock_guard turn(model_->turns());
        RL_TRY(check_open());
        RL_TRY(give_pages(feeds));
    }
    // A conversation is rewound to where a turn begins, or to the end of a prompt, so both get snapshots.
    const auto take_snapshots = [&](bool read) {
        for (const Feed& feed : feeds)
            if (feed.tokens.size() > 1) feed.sequence->take_snapshot(read);
    };
    take_snapshots(false);
    const size_t vocab = model_->config().vocab;
    std::vector<Feed> group;
    std::vector<size_t> indices;
    uint64_t rows = 0;
    const auto read_group = [&]() -> Status {
        if (group.empty()) return {};
        RL_TRY(step(group, {.cancel = cancel}));
        for (size_t i = 0; i < indices.size(); ++i) sink(indices[i], output_.subspan(i * vocab, vocab));
        group.clear();
        indices.clear();
        rows = 0;
        return {};
    };
    for (size_t i = 0; i < feeds.size(); ++i) {
        const uint64_t tokens = feeds[i].tokens.size();
        if (feeds.size() == 1 || tokens > std::min<uint64_t>(kTogether, options_.batch)) {
            RL_TRY(feed_alone(feeds[i], cancel));
            sink(i, output_.last(vocab));
            continue;
        }
        if (rows + tokens > options_.batch) RL_TRY(read_group());
        group.push_back(feeds[i]);
        indices.push_back(i);
        rows += tokens;
    }
    RL_TRY(read_group());
    take_snapshots(true);
    return {};
}

}  // namespace redline
