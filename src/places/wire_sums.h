// Sums of rows that ranks of a job make: each sends its rows to the others, and all of them add what came in
// one order, so that they go on with the same bits.
#pragma once

#include "mpi/wire.h"
#include "places/reducer.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace redline {

// The rows that have come to this rank.
class WireSums {
public:
    explicit WireSums(Wire& wire) : wire_(wire) {}

    // Called by the wire's listener: true when the message was of a sum.
    bool took(uint32_t from, std::span<const std::byte> message);
    // The job is over: from now on nobody waits for rows.
    void stop();

    // The seconds of a sum of so many floats, the median of some, which all of the ranks make at the same
    // time; `chain` is a number that only they have. 0: they could not.
    double seconds(uint64_t chain, const std::vector<uint32_t>& ranks, uint64_t floats);

private:
    friend class WireReducer;
    // A step of an executable that is divided over ranks.
    using StepOf = std::pair<uint64_t, uint64_t>;  // chain, number
    struct Key {
        StepOf step;
        uint32_t turn = 0, from = 0;
        auto operator<=>(const Key&) const = default;
    };

    void send(uint32_t to, const StepOf& step, uint32_t turn, std::span<const float> rows);
    void send_end(uint32_t to, const StepOf& step);
    // False where the step has ended early, or the job.
    bool wait(const Key& key, std::vector<float>& rows);
    void forget_before(const StepOf& step);

    Wire& wire_;
    std::atomic<uint64_t> came_count_{0};
    std::mutex mutex_;  // guards what follows
    std::condition_variable came_;
    std::map<Key, std::vector<float>> rows_;
    std::set<StepOf> ended_;  // in which a rank failed
    bool stopped_ = false;
};

// Adds the rows of one executable.
class WireReducer : public Reducer {
public:
    // `ranks`: of the job, in the order in which their rows are added; this one is among them.
    WireReducer(WireSums& sums, uint64_t chain, std::vector<uint32_t> ranks)
        : sums_(sums), chain_(chain), ranks_(std::move(ranks)) {}

    // All ranks give a step the same number; numbers rise.
    void begin(uint64_t number);
    void begin() override { begin(step_.second + 1); }
    bool sum(size_t rank, const RankRows& mine, size_t rows, size_t width, std::vector<float>& into) override;
    // The step ends on all ranks.
    void give_up();

private:
    bool sum_all(size_t rank, const RankRows& mine, size_t rows, size_t width, std::vector<float>& into);
    bool sum_parts(size_t rank, std::span<const float> mine, std::vector<float>& into);
    bool receive(size_t rank, size_t floats, std::vector<float>& rows);

    WireSums& sums_;
    uint64_t chain_;
    std::vector<uint32_t> ranks_;
    std::pair<uint64_t, uint64_t> step_ = {chain_, 0};
    uint32_t turn_ = 0;  // of the messages of a step
    bool ended_ = false;
    std::vector<float> packed_;
    std::vector<std::vector<float>> theirs_ = std::vector<std::vector<float>>(ranks_.size());
};

}  // namespace redline
