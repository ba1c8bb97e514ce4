#include "engine/sequence.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace redline {

uint64_t first_seen(const CacheInfo& cache, uint64_t position) {
    return cache.window > 0 && position + 1 > cache.window ? position + 1 - cache.window : 0;
}

bool rewinds_anywhere(std::span<const CacheInfo> caches, uint64_t context) {
    return std::all_of(caches.begin(), caches.end(), [context](const CacheInfo& cache) {
        return !cache.is_state() && (cache.window == 0 || cache.sequence_rows >= context);
    });
}

CachePool::CachePool(std::span<const CacheInfo> caches, const CacheSizing& sizing, uint32_t snapshots)
    : caches_(caches.begin(), caches.end()), sizing_(sizing), snapshots_(snapshots) {
    for (const CacheInfo& cache : caches)
        if (cache.is_state()) state_users_.resize(cache.capacity);
    if (sizing.pages == 0) return;
    for (const CacheInfo& cache : caches) {
        if (cache.is_state()) continue;
        const auto same = [&](const Pages& pages) { return pages.first == cache.first_page; };
        if (std::any_of(pages_.begin(), pages_.end(), same)) continue;
        const uint64_t count = cache.tokens() / kPageRows;
        Pages pages{cache.first_page, cache.pages(), cache.sequence_rows < sizing.context, {}, {}};
        pages.users.resize(count);
        pages.free.resize(count);
        std::iota(pages.free.rbegin(), pages.free.rend(), 0u);
        pages_.push_back(std::move(pages));
    }
}

void CachePool::drop(Pages& pages, uint32_t& entry) {
    const uint32_t page = std::exchange(entry, kNoPage);
    if (page != kNoPage && --pages.users[page] == 0) pages.free.push_back(page);
}

// A row is always free: there are those of snapshots and current states for all sequences, and those that a
// step writes.
uint32_t CachePool::take_state() {
    if (state_users_.empty()) return kNoState;
    const auto free = std::find(state_users_.begin(), state_users_.end(), 0u);
    RL_CHECK(free != state_users_.end(), "all {} states are in use", state_users_.size());
    ++*free;
    return uint32_t(free - state_users_.begin());
}

void CachePool::drop_state(uint32_t& row) {
    const uint32_t dropped = std::exchange(row, kNoState);
    if (dropped != kNoState) --state_users_[dropped];
}

void CachePool::end_round() {
    for (uint32_t& row : drafts_) drop_state(row);
    drafts_.clear();
    ++round_;
}

Sequence::Sequence(std::shared_ptr<CachePool> pool) : pool_(std::move(pool)) {
    ++pool_->open_;
    if (!pool_->pages_.empty()) pages_.resize(page_entries(pool_->caches_), CachePool::kNoPage);
}

Result<Sequence> Sequence::open(std::shared_ptr<CachePool> pool) {
    if (pool->open_ >= pool->sizing_.sequences)
        return error("all {} sequences that the caches are made for are open", pool->sizing_.sequences);
    return Sequence(std::move(pool));
}

Sequence::~Sequence() {
    if (!pool_) return;
    drop_pages(0);
    drop_states();
    --pool_->open_;
}

Sequence& Sequence::operator=(Sequence&& other) {
    std::swap(pool_, other.pool_);
    std::swap(tokens_, other.tokens_);
    std::swap(pages_, other.pages_);
    std::swap(written_, other.written_);
    std::swap(oldest_, other.oldest_);
    std::swap(opened_, other.opened_);
    std::swap(snapshots_, other.snapshots_);
    std::swap(state_, other.state_);
    std::swap(drafts_, other.drafts_);
    std::swap(first_draft_, other.first_draft_);
    std::swap(round_, other.round_);
    std::swap(heads_, other.heads_);
    std::swap(head_width_, other.head_width_);
    return *this;
}

// The row of the last token that is left may have another token beside it from now on.
void Sequence::Head::keep_before(uint64_t token, uint64_t width) {
    const uint64_t rows = token > first ? token - first : 0;
    if (hidden.size() > rows * width) hidden.resize(rows * width);
    read = std::min(read, token > 0 ? token - 1 : 0);
    begin = std::min(begin, read);
    ahead.clear();
}

// A row of a further head is beside a token further on, and comes of the row that the head before it read.
void Sequence::keep_before(std::vector<Head>& heads, size_t which, uint64_t token, uint64_t width) {
    heads[which].keep_before(token - std::min<uint64_t>(token, which), width);
    if (which + 1 == heads.size()) return;
    Head& next = heads[which + 1];
    const uint64_t rows = heads[which].read - std::min(heads[which].read, next.first);
    if (next.hidden.size() > rows * width) next.hidden.resize(rows * width);
}

void Sequence::keep_before(std::vector<Head>& heads, uint64_t token, uint64_t width) {
    for (size_t which = 0; which < heads.size(); ++which) keep_before(heads, which, token, width);
}

void Sequence::keep_head_before(size_t which, uint64_t token) {
    keep_before(heads_, which, token, head_width_);
}

void Sequence::keep_heads_before(uint64_t token) {
    keep_before(heads_, token, head_width_);
}

void Sequence::take_snapshot(bool read) {
    if (state_ == CachePool::kNoState || pool_->snapshots_ == 0) return;
    if (!snapshots_.empty() && snapshots_.back().position == position()) {
        if (read || !snapshots_.back().read) return;
        pool_->drop_state(snapshots_.back().state);
        snapshots_.pop_back();
        return;
    }
    if (snapshots_.size() == pool_->snapshots_) {
        pool_->drop_state(snapshots_.front().state);
        snapshots_.erase(snapshots_.begin());
    }
    ++pool_->state_users_[state_];
    snapshots_.push_back({position(), state_, read});
}

void Sequence::drop_states() {
    pool_->drop_state(state_);
    for (Snapshot& snapshot : snapshots_) pool_->drop_state(snapshot.state);
    snapshots_.clear();
    drafts_.clear();
}

uint32_t Sequence::draft_state(uint64_t count) const {
    const bool kept =
        round_ == pool_->round_ && count >= first_draft_ && count - first_draft_ < drafts_.size();
    return kept ? drafts_[count - first_draft_] : CachePool::kNoState;
}

// Rings keep all pages: earlier tokens have rows in any of them.
void Sequence::drop_pages(uint64_t from_token) {
    for (CachePool::Pages& pages : pool_->pages_) {
        if (pages.ring && from_token > 0) continue;
        const uint64_t kept = (from_token + kPageRows - 1) / kPageRows;
        for (uint64_t i = pages.entries; i > kept; --i) pool_->drop(pages, pages_[pages.first + i - 1]);
    }
}

uint64_t Sequence::pages_wanted(const CachePool::Pages& pages, uint64_t count) const {
    const auto [first, last] = pages.written(position(), count);
    uint64_t wanted = 0;
    for (uint64_t page = first; page <= last; ++page) {
        const uint32_t held = pages_[pages.first + page % pages.entries];
        wanted += held == CachePool::kNoPage || pages.users[held] > 1 ? 1 : 0;
    }
    return wanted;
}

bool Sequence::holds_all_before(uint64_t position) const {
    return std::all_of(pool_->caches_.begin(), pool_->caches_.end(), [&](const CacheInfo& cache) {
        return cache.window == 0 || first_seen(cache, position) >= first_held(cache);
    });
}

uint64_t Sequence::first_held(const CacheInfo& cache) const {
    if (cache.window == 0) return 0;
    return std::max(oldest_, written_ > cache.sequence_rows ? written_ - cache.sequence_rows : 0);
}

uint64_t Sequence::rewound(uint64_t count) const {
    if (count >= tokens_.size()) return tokens_.size();
    if (has_states() && draft_state(count) == CachePool::kNoState) {
        const auto later = [count](const Snapshot& snapshot) { return snapshot.position > count; };
        const auto latest = std::find_if_not(snapshots_.rbegin(), snapshots_.rend(), later);
        count = latest == snapshots_.rend() ? 0 : latest->position;
    }
    return holds_all_before(count) ? count : 0;
}

uint64_t Sequence::rewind(uint64_t count) {
    if (count < tokens_.size()) {
        tokens_.resize(rewound(count));
        keep_heads_before(tokens_.size());
        while (!snapshots_.empty() && snapshots_.back().position > count) {
            pool_->drop_state(snapshots_.back().state);
            snapshots_.pop_back();
        }
        if (has_states()) pool_->drop_state(state_);
        if (has_states() && !tokens_.empty()) {
            state_ = draft_state(tokens_.size());
            if (state_ == CachePool::kNoState) state_ = snapshots_.back().state;
            ++pool_->state_users_[state_];
        }
    }
    if (tokens_.empty()) {
        written_ = oldest_ = 0;
        drop_states();
    }
    drop_pages(tokens_.size());
    return tokens_.size();
}

Result<Sequence> Sequence::fork() const {
    Sequence made = RL_TRY(open(pool_));
    made.tokens_ = tokens_;
    made.written_ = written_;
    made.oldest_ = oldest_;
    made.opened_ = opened_;
    made.pages_ = pages_;
    made.snapshots_ = snapshots_;
    made.state_ = state_;
    made.drafts_ = drafts_;
    made.first_draft_ = first_draft_;
    made.round_ = round_;
    made.heads_ = heads_;
    made.head_width_ = head_width_;
    if (made.state_ != CachePool::kNoState) ++pool_->state_users_[state_];
    for (const Snapshot& snapshot : snapshots_) ++pool_->state_users_[snapshot.state];
    for (CachePool::Pages& pages : pool_->pages_)
        for (const uint32_t page : std::span(pages_).subspan(pages.first, pages.entries))
            if (page != CachePool::kNoPage) ++pages.users[page];
    return made;
}

PageChanges::~PageChanges() {
    for (size_t i = made_.size(); i > 0; --i) {
        const Change& change = made_[i - 1];
        uint32_t& entry = change.sequence->pages_[change.entry];
        pool_.drop(*change.pages, entry);
        entry = change.before;
        if (entry != CachePool::kNoPage) ++change.pages->users[entry];
    }
}

Status PageChanges::give_entry(CachePool::Pages& pages, Sequence& sequence, uint32_t index) {
    uint32_t& entry = sequence.pages_[index];
    if (entry != CachePool::kNoPage && pages.users[entry] == 1) return {};
    if (pages.free.empty())
        return error("all {} pages of {} tokens that sequences share are in use", pages.users.size(),
                     kPageRows);
    made_.push_back({&pages, &sequence, index, entry});
    pool_.drop(pages, entry);
    entry = pages.free.back();
    pages.free.pop_back();
    ++pages.users[entry];
    return {};
}

Status PageChanges::give(Sequence& sequence, uint64_t position, uint64_t count) {
    for (CachePool::Pages& pages : pool_.pages_) {
        const auto [first, last] = pages.written(position, count);
        for (uint64_t page = first; page <= last; ++page)
            RL_TRY(give_entry(pages, sequence, pages.first + uint32_t(page % pages.entries)));
    }
    return {};
}

Status PageChanges::copy_shared(const std::function<Status(Cache, uint32_t, uint32_t)>& copy) const {
    for (const Change& change : made_) {
        if (change.before == CachePool::kNoPage) continue;
        for (size_t i = 0; i < pool_.caches_.size(); ++i)
            if (!pool_.caches_[i].is_state() && pool_.caches_[i].first_page == change.pages->first)
                RL_TRY(copy({int32_t(i)}, change.before, change.sequence->pages_[change.entry]));
    }
    return {};
}

// A sequence without a state may name any row to read: at position 0 states are zeros.
void StateChanges::add(Sequence& sequence, uint64_t tokens, uint32_t drafts) {
    if (!sequence.has_states()) return;
    if (sequences_.empty()) pool_.end_round();
    const uint32_t to = pool_.take_state();
    const size_t kept = kept_ + tokens <= 1 + uint64_t(drafts) ? tokens - 1 : 0;
    kept_ += kept;
    sequences_.push_back(&sequence);
    rows_.push_back({sequence.state_ == CachePool::kNoState ? to : sequence.state_, to});
    drafts_.push_back({step_rows_, kept});
    if (kept > 0) behind_.resize(step_rows_, CachePool::kNoState);
    for (size_t i = 0; i < kept; ++i) behind_.push_back(pool_.take_state());
    step_rows_ += tokens;
    if (!behind_.empty()) behind_.resize(step_rows_, CachePool::kNoState);
}

void StateChanges::keep() {
    for (size_t i = 0; i < sequences_.size(); ++i) {
        Sequence& sequence = *sequences_[i];
        const auto kept =
            std::span(behind_).subspan(drafts_[i].second > 0 ? drafts_[i].first : 0, drafts_[i].second);
        pool_.drop_state(sequence.state_);
        sequence.state_ = rows_[i].to;
        sequence.drafts_.assign(kept.begin(), kept.end());
        sequence.first_draft_ = sequence.position() - kept.size();
        sequence.round_ = pool_.round_;
        pool_.drafts_.insert(pool_.drafts_.end(), kept.begin(), kept.end());
    }
    sequences_.clear();
    behind_.clear();
}

StateChanges::~StateChanges() {
    for (size_t i = 0; i < sequences_.size(); ++i) pool_.drop_state(rows_[i].to);
    for (uint32_t& row : behind_) pool_.drop_state(row);
}

}  // namespace redline
