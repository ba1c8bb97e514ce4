// A sequence of tokens, and where an engine's caches hold their keys and values.
#pragma once

#include "base/result.h"
#include "plan/step_params.h"
#include "text/tokens/vocabulary.h"

#include <functional>
#include <memory>

namespace redline {

// The first token that one at `position` looks back at in a cache.
uint64_t first_seen(const CacheInfo& cache, uint64_t position);

// What the sequences of an engine share: what its caches are, their pages, and the rows of caches of states.
// A page with several users is not written to. A step reads a sequence's states from one row and writes them
// to another, so that the row before stays whole when the step fails, or as a snapshot.
class CachePool {
public:
    static constexpr uint32_t kNoPage = UINT32_MAX;
    static constexpr uint32_t kNoState = UINT32_MAX;
    static constexpr uint32_t kSnapshots = 2;  // of a sequence
    // Of a sequence: its states, those that a step writes, and snapshots.
    static constexpr uint32_t kStatesOfSequence = 2 + kSnapshots;

    CachePool(std::span<const CacheInfo> caches, const CacheSizing& sizing);

    std::span<const CacheInfo> caches() const { return caches_; }

private:
    friend class Sequence;
    friend class PageChanges;
    friend class StateChanges;
    friend class Engine;

    // Of all caches that need the same rows.
    struct Pages {
        uint32_t first = 0;           // in a sequence's list
        uint32_t entries = 0;         // there
        bool ring = false;            // tokens begin again at the first
        std::vector<uint32_t> users;  // by page
        std::vector<uint32_t> free;   // the last is taken first
    };
    void drop(Pages& pages, uint32_t& entry);
    uint32_t take_state();  // none where there are no states
    void drop_state(uint32_t& row);

    std::vector<CacheInfo> caches_;
    CacheSizing sizing_;
    std::vector<Pages> pages_;           // none: there is one sequence, which has the caches to itself
    std::vector<uint32_t> state_users_;  // by row
    uint32_t open_ = 0;                  // sequences
};

// It may outlive its engine.
class Sequence {
public:
    Sequence(Sequence&& other) = default;
    Sequence& operator=(Sequence&& other);
    ~Sequence();

    const std::vector<Token>& tokens() const { return tokens_; }
    uint64_t position() const { return tokens_.size(); }

    // Forgets all but the first `count` tokens, or more: returns how many are left. Where a cache keeps
    // states, that are as many as the latest snapshot in reach has read; where one that keeps a window only
    // has lost what the next token would look back at, none.
    uint64_t rewind(uint64_t count);

    // Another sequence of the same tokens. Both have the same pages until one of them writes to a page, which
    // is copied then.
    Result<Sequence> fork() const;

private:
    friend class Engine;
    friend class CacheFile;
    friend class PageChanges;
    friend class StateChanges;

    static Result<Sequence> open(std::shared_ptr<CachePool> pool);
    explicit Sequence(std::shared_ptr<CachePool> pool);
    void drop_pages(uint64_t from_token);
    // Whether a next token at this position would find all that it looks back at.
    bool holds_all_before(uint64_t position) const;
    uint64_t first_held(const CacheInfo& cache) const;
    bool has_states() const { return !pool_->state_users_.empty(); }
    // Keeps the states as they are now, in place of the oldest snapshot when there are as many as may be.
    // `read`: a prompt was read up to here. When more of it follows, that snapshot makes room.
    void take_snapshot(bool read);
    void drop_states();

    std::shared_ptr<CachePool> pool_;
    std::vector<Token> tokens_;
    std::vector<uint32_t> pages_;  // as CacheInfo::first_page counts them
    uint64_t written_ = 0;         // tokens that steps may have written since the caches were empty, at most
    uint64_t oldest_ = 0;          // before it a restored cache with a window has nothing
    uint64_t opened_ = 0;          // which opening of the engine's caches holds them
    struct Snapshot {
        uint64_t position;
        uint32_t state;
        bool read;  // a prompt ends there, or a part of it
    };
    std::vector<Snapshot> snapshots_;       // oldest first
    uint32_t state_ = CachePool::kNoState;  // the row of its states; none before the first token
};

// Pages that sequences are given to write to, taken back unless keep() is called.
class PageChanges {
public:
    explicit PageChanges(CachePool& pool) : pool_(pool) {}
    PageChanges(const PageChanges&) = delete;
    ~PageChanges();

    // For tokens [position, position + count) of a sequence.
    Status give(Sequence& sequence, uint64_t position, uint64_t count);
    // Pages whose content others go on using: copy(cache, page, to page), for each cache.
    Status copy_shared(const std::function<Status(Cache, uint32_t from, uint32_t to)>& copy) const;
    void keep() { made_.clear(); }

private:
    struct Change {
        CachePool::Pages* pages;
        Sequence* sequence;
        uint32_t entry;
        uint32_t before;
    };
    Status give_entry(CachePool::Pages& pages, Sequence& sequence, uint32_t entry);

    CachePool& pool_;
    std::vector<Change> made_;
};

// The rows of states that a step of some sequences reads and writes. The written ones are theirs once keep()
// is called, and given up otherwise.
class StateChanges {
public:
    explicit StateChanges(CachePool& pool) : pool_(pool) {}
    StateChanges(const StateChanges&) = delete;
    ~StateChanges();

    void add(Sequence& sequence);
    // Empty where there are no states.
    std::span<const StateRows> rows() const { return rows_; }
    void keep();

private:
    CachePool& pool_;
    std::vector<Sequence*> sequences_;
    std::vector<StateRows> rows_;
};

}  // namespace redline
