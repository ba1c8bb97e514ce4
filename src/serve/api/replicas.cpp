#include "serve/api/replicas.h"

#include <algorithm>

namespace redline::serve {

// A request on its way: it may be placed again.
struct Replicas::Run {
    AnswerRequest request;
    std::vector<uint64_t> blocks;
    std::vector<bool> tried;
    size_t at = 0;                    // the replica that has it
    std::atomic<bool> begun = false;  // something was sent
};

Replicas::Replicas(std::vector<Member> members)
    : members_(std::move(members)), running_(members_.size()), chosen_at_(members_.size()) {}

Submission Replicas::submit(AnswerRequest request) {
    const auto run = std::make_shared<Run>();
    if (!request.ticket) request.ticket = std::make_shared<AnswerTicket>();
    if (request.cache_prompt) run->blocks = HeldBlocks::hashes(request.prompt);
    run->request = std::move(request);
    run->tried.resize(members_.size());
    return place(run);
}

// The best replica of those that serve and were not tried; its count then has the request.
std::optional<size_t> Replicas::choose(const Run& run) {
    std::vector<int64_t> known(members_.size());
    std::vector<bool> usable(members_.size());
    for (size_t i = 0; i < members_.size(); ++i) {
        usable[i] = !run.tried[i] && members_[i].answers->health() == Health::serving;
        if (usable[i]) known[i] = int64_t(members_[i].held->longest(run.blocks) * HeldBlocks::kTokens);
    }
    const std::lock_guard lock(mutex_);
    std::optional<size_t> best;
    const auto better = [&](size_t i, size_t than) {
        const int64_t gain = known[i] - known[than] - kTokensOfRequest * (running_[i] - running_[than]);
        if (gain != 0) return gain > 0;
        return chosen_at_[i] < chosen_at_[than];
    };
    for (size_t i = 0; i < members_.size(); ++i)
        if (usable[i] && (!best || better(i, *best))) best = i;
    if (best) {
        ++running_[*best];
        chosen_at_[*best] = ++choices_;
    }
    return best;
}

void Replicas::leave(const Run& run) {
    members_[run.at].held->forget(run.blocks);
    const std::lock_guard lock(mutex_);
    --running_[run.at];
}

Submission Replicas::place(const std::shared_ptr<Run>& run) {
    Submission refused;
    refused.refusal = health() == Health::draining ? Refusal::draining : Refusal::device_lost;
    refused.message = refused.refusal == Refusal::draining
                          ? "the server is about to stop"
                          : "no replica has its device; those that were lost are being opened again";
    refused.retry_seconds = 5;
    while (const std::optional<size_t> chosen = choose(*run)) {
        run->at = *chosen;
        run->tried[*chosen] = true;
        members_[*chosen].held->expect(run->blocks);
        AnswerRequest request = run->request;
        request.sink.piece = [run](AnswerPiece piece) {
            run->begun = true;
            run->request.sink.piece(std::move(piece));
        };
        request.sink.end = [this, run](AnswerEnd end) { ended(run, std::move(end)); };
        Submission placed = members_[*chosen].answers->submit(std::move(request));
        if (placed.ticket) return placed;
        leave(*run);
        refused = std::move(placed);
        // A request that is wrong is wrong everywhere.
        if (refused.refusal == Refusal::invalid || refused.refusal == Refusal::prompt_too_long) break;
    }
    return refused;
}

// On the thread of a scheduler. One that has lost its device before it sent anything is no loss.
void Replicas::ended(const std::shared_ptr<Run>& run, AnswerEnd end) {
    leave(*run);
    const bool again =
        end.device_lost && !run->begun && end.cost.generated_tokens == 0 && !run->request.ticket->cancelled();
    if (again && place(run).ticket) return;
    run->request.sink.end(std::move(end));
}

Health Replicas::health() const {
    Health best = Health::stopped;
    for (const Member& member : members_) {
        const Health health = member.answers->health();
        if (health == Health::serving) return health;
        if (best == Health::stopped || health == Health::device_lost) best = health;
    }
    return best;
}

Statistics Replicas::statistics() const {
    Statistics all = members_.front().answers->statistics();
    for (size_t i = 1; i < members_.size(); ++i) all.add(members_[i].answers->statistics());
    return all;
}

std::vector<ReplicaState> Replicas::replicas() const {
    std::vector<ReplicaState> all;
    for (const Member& member : members_)
        all.push_back({member.device, member.answers->health(), member.answers->statistics()});
    return all;
}

}  // namespace redline::serve
