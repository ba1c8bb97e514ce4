// Several schedulers of one model behind one address: each request goes to one of them.
#pragma once

#include "serve/api/answering.h"

#include <mutex>

namespace redline::serve {

// A request goes to the replica whose caches know most of its prompt, and else to the one with the fewest
// requests: each request more that a replica has counts as much as reading so many tokens.
inline constexpr int64_t kTokensOfRequest = 256;

// A replica that loses its device gets no requests until that is opened again. Those that it had not begun to
// answer go to others.
class Replicas final : public Answering {
public:
    struct Member {
        Answering* answers = nullptr;
        std::shared_ptr<HeldBlocks> held;  // what its caches know
        std::string device;                // in words
    };
    // All members have to outlive it, and to be stopped before it ends.
    explicit Replicas(std::vector<Member> members);

    Submission submit(AnswerRequest request) override;
    // Serving while one of them is.
    Health health() const override;
    // The sum over all of them.
    Statistics statistics() const override;
    std::vector<ReplicaState> replicas() const override;

private:
    struct Run;
    Submission place(const std::shared_ptr<Run>& run);
    std::optional<size_t> choose(const Run& run);
    void leave(const Run& run);
    void ended(const std::shared_ptr<Run>& run, AnswerEnd end);

    const std::vector<Member> members_;
    std::mutex mutex_;                 // guards what follows
    std::vector<int64_t> running_;     // requests of each, waiting ones included
    std::vector<uint64_t> chosen_at_;  // when each was chosen last
    uint64_t choices_ = 0;
};

}  // namespace redline::serve
