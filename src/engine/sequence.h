// A sequence of tokens, and the places of its keys and values in an engine's caches.
#pragma once

#include "base/result.h"
#include "plan/step_params.h"
#include "text/tokens/vocabulary.h"

#include <functional>
#include <memory>

namespace redline {

// The first token that a token at `position` attends to in a cache.
uint64_t first_seen(const CacheInfo& cache, uint64_t position);

// True when sequences of so many tokens can be rewound to any position: there are neither states nor windows
// that forget.
bool rewinds_anywhere(std::span<const CacheInfo> caches, uint64_t context);

// The caches' layout, pages and rows of states that the sequences of an engine share. A page with several
// users is never written to. A step reads a sequence's states from one row and writes them to another, so
// that the old row is still valid when the step fails, or as a snapshot.
class CachePool {
public:
    static constexpr uint32_t kNoPage = UINT32_MAX;
    static constexpr uint32_t kNoState = UINT32_MAX;

    // `snapshots`: of the states of a sequence, at most.
    CachePool(std::span<const CacheInfo> caches, const CacheSizing& sizing, uint32_t snapshots);

    std::span<const CacheInfo> caches() const { return caches_; }
    bool has_states() const { return !state_users_.empty(); }

private:
    friend class Sequence;
    friend class PageChanges;
    friend class StateChanges;
    friend class Engine;

    // The pages of all caches that need the same rows.
    struct Pages {
        uint32_t first = 0;           // index in a sequence's list
        uint32_t entries = 0;         // number of entries there
        bool ring = false;            // positions wrap around to the first page
        std::vector<uint32_t> users;  // number of users, by page
        std::vector<uint32_t> free;   // a stack of free pages

        // The first and the last of the pages that `count` tokens from a position on are written to; rings
        // have page % entries.
        std::pair<uint64_t, uint64_t> written(uint64_t position, uint64_t count) const {
            const uint64_t begin = position / kPageRows, end = (position + count - 1) / kPageRows;
            return {begin, std::min(end, begin + entries - 1)};
        }
    };
    void drop(Pages& pages, uint32_t& entry);
    uint32_t take_state();  // kNoState where there are no states
    void drop_state(uint32_t& row);
    // Gives up the states behind the drafts of the last step.
    void end_round();

    std::vector<CacheInfo> caches_;
    CacheSizing sizing_;
    uint32_t snapshots_;
    std::vector<Pages> pages_;           // empty: there is one sequence, which has the caches to itself
    std::vector<uint32_t> state_users_;  // number of users, by row
    std::vector<uint32_t> drafts_;       // rows of the states behind the drafts of the last step
    uint64_t round_ = 0;                 // how often such states were given up
    uint32_t open_ = 0;                  // number of open sequences
};

// Sequences may outlive their engine.
class Sequence {
public:
    // The knowledge that an MTP head has of a sequence: see head.cpp.
    struct Head {
        std::vector<float> hidden;  // rows of tokens [first, ...)
        uint64_t first = 0;
        uint64_t begin = 0, read = 0;  // its caches have the rows of tokens [begin, read)
        // Tokens that these rows are beside, and that the sequence did not have yet, from its position on.
        std::vector<Token> ahead = {};

        uint64_t end(uint64_t width) const { return first + hidden.size() / width; }
        void keep_before(uint64_t token, uint64_t width);
    };

    Sequence(Sequence&& other) = default;
    Sequence& operator=(Sequence&& other);
    ~Sequence();

    const std::vector<Token>& tokens() const { return tokens_; }
    uint64_t position() const { return tokens_.size(); }

    // Forgets all but the first `count` tokens, or more: returns how many are left. With states, that is the
    // position of the latest snapshot up to `count`, unless the last step of the engine read the token behind
    // it as a draft (EngineOptions::drafts); where a windowed cache has overwritten rows that the next token
    // would attend to, it is 0.
    uint64_t rewind(uint64_t count);
    // The result of rewind(), which it leaves undone.
    uint64_t rewound(uint64_t count) const;

    // Another sequence of the same tokens. Both share their pages until one of them writes to a page, which
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
    // How many pages `count` more tokens take from the pool: new ones, and copies of shared ones.
    uint64_t pages_wanted(const CachePool::Pages& pages, uint64_t count) const;
    // True when a next token at this position would find all rows that it attends to.
    bool holds_all_before(uint64_t position) const;
    uint64_t first_held(const CacheInfo& cache) const;
    bool has_states() const { return pool_->has_states(); }
    // Keeps the current states as a snapshot, replacing the oldest when there are as many as may be. `read`:
    // a prompt was read up to here; the snapshot is replaced when more of it follows.
    void take_snapshot(bool read);
    void drop_states();
    // The states behind the first `count` tokens, where the last step has kept them; else kNoState.
    uint32_t draft_state(uint64_t count) const;

    // Forgets of one of the heads, or of all, what depends on tokens from this one on.
    void keep_head_before(size_t which, uint64_t token);
    void keep_heads_before(uint64_t token);
    static void keep_before(std::vector<Head>& heads, size_t which, uint64_t token, uint64_t width);
    static void keep_before(std::vector<Head>& heads, uint64_t token, uint64_t width);

    std::shared_ptr<CachePool> pool_;
    std::vector<Token> tokens_;
    std::vector<uint32_t> pages_;  // in the order of CacheInfo::first_page
    uint64_t written_ =
        0;                 // an upper bound on the tokens that steps have written since the caches were empty
    uint64_t oldest_ = 0;  // a restored windowed cache holds nothing before this token
    uint64_t opened_ = 0;  // the Engine::opened_ at which the caches were filled
    struct Snapshot {
        uint64_t position;
        uint32_t state;
        bool read;  // it is at the end of a prompt, or of a part of it
    };
    std::vector<Snapshot> snapshots_;       // oldest first
    std::vector<uint32_t> drafts_;          // states behind tokens [first_draft_, ...), in round_ of the pool
    uint64_t first_draft_ = 0, round_ = 0;  // counted as position() is
    uint32_t state_ = CachePool::kNoState;  // its row of states; kNoState before the first token
    std::vector<Head> heads_;
    uint64_t head_width_ = 0;  // of their hidden rows
};

// Pages that sequences got for writing; they are taken back unless keep() is called.
class PageChanges {
public:
    explicit PageChanges(CachePool& pool) : pool_(pool) {}
    PageChanges(const PageChanges&) = delete;
    ~PageChanges();

    // Gives pages for tokens [position, position + count) of a sequence.
    Status give(Sequence& sequence, uint64_t position, uint64_t count);
    // Copies the pages whose old content other sequences still use: copy(cache, page, to page), for each
    // cache.
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

// The rows of states that a step of some sequences reads and writes. After keep() the sequences have the
// written rows; without it they are freed.
class StateChanges {
public:
    explicit StateChanges(CachePool& pool) : pool_(pool) {}
    StateChanges(const StateChanges&) = delete;
    ~StateChanges();

    // The sequence reads so many tokens. The states behind each but the last are kept, as long as those of
    // all sequences are at most `drafts`.
    void add(Sequence& sequence, uint64_t tokens, uint32_t drafts);
    // Empty where there are no states.
    std::span<const StateRows> rows() const { return rows_; }
    // StepParams::row_states.
    std::span<const uint32_t> behind() const { return behind_; }
    void keep();

private:
    CachePool& pool_;
    std::vector<Sequence*> sequences_;
    std::vector<StateRows> rows_;
    std::vector<uint32_t> behind_;                   // by row of the step; empty where no sequence has drafts
    std::vector<std::pair<size_t, size_t>> drafts_;  // by sequence: its first row in behind_, and how many
    size_t step_rows_ = 0;
    size_t kept_ = 0;  // states behind drafts
};

}  // namespace redline
