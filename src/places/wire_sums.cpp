#include "places/wire_sums.h"

#include "places/remote_messages.h"
#include "places/timing.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

namespace redline {

namespace {

using Clock = std::chrono::steady_clock;

// Ranks are mostly behind each other by less: a thread that sleeps takes tens of microseconds to wake up.
constexpr std::chrono::microseconds kSpin{60};
// Rows from this size on go in parts: each rank adds one part and sends the sums. Two messages follow each
// other then, of 2 / ranks of the bytes. At 10 GB/s and 15 us for a message that is even at 100 KB for four
// ranks; TCP has less of both.
constexpr size_t kLeastInParts = size_t(64) << 10;

// The part of all elements that a rank adds.
std::pair<size_t, size_t> part_of(size_t rank, size_t ranks, size_t elements) {
    return {elements * rank / ranks, elements * (rank + 1) / ranks};
}

}  // namespace

bool WireSums::took(uint32_t from, std::span<const std::byte> message) {
    Unpacker in(message);
    const auto kind = in.next<RemoteKind>();
    if (kind != RemoteKind::sum && kind != RemoteKind::no_sum) return false;
    Key key{{}, 0, from};
    in.get(key.step.first, key.step.second);
    std::vector<float> rows;
    if (kind == RemoteKind::sum) in.get(key.turn, rows);
    if (!in.status()) return true;
    {
        const std::lock_guard lock(mutex_);
        if (kind == RemoteKind::sum)
            rows_[key] = std::move(rows);
        else
            ended_.insert(key.step);
        ++came_count_;
    }
    came_.notify_all();
    return true;
}

void WireSums::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        ++came_count_;
    }
    came_.notify_all();
}

void WireSums::send(uint32_t to, const StepOf& step, uint32_t turn, std::span<const float> rows) {
    wire_.send(to, Packer().add(RemoteKind::sum, step.first, step.second, turn, rows).take());
}

void WireSums::send_end(uint32_t to, const StepOf& step) {
    wire_.send(to, Packer().add(RemoteKind::no_sum, step.first, step.second).take());
}

bool WireSums::wait(const Key& key, std::vector<float>& rows) {
    const auto begin = Clock::now();
    std::unique_lock lock(mutex_);
    const auto there = [&] { return stopped_ || ended_.contains(key.step) || rows_.contains(key); };
    while (!there() && Clock::now() - begin < kSpin) {
        const uint64_t count = came_count_;
        lock.unlock();
        while (came_count_ == count && Clock::now() - begin < kSpin) std::this_thread::yield();
        lock.lock();
    }
    came_.wait(lock, there);
    const auto found = rows_.find(key);
    if (stopped_ || ended_.contains(key.step) || found == rows_.end()) return false;
    rows = std::move(found->second);
    rows_.erase(found);
    return true;
}

// Steps that were given up may have left rows.
void WireSums::forget_before(const StepOf& step) {
    const std::lock_guard lock(mutex_);
    rows_.erase(rows_.lower_bound(Key{{step.first, 0}}), rows_.lower_bound(Key{step}));
    ended_.erase(ended_.lower_bound({step.first, 0}), ended_.lower_bound(step));
}

double WireSums::seconds(uint64_t chain, const std::vector<uint32_t>& ranks, uint64_t floats) {
    constexpr int kTries = 41;
    // A rank computes between two sums, and does not look for messages.
    constexpr std::chrono::microseconds kApart{300};
    const auto mine = size_t(std::ranges::find(ranks, wire_.rank()) - ranks.begin());
    WireReducer reducer(*this, chain, ranks);
    reducer.begin();
    const std::vector<float> rows(floats, 1.0f);
    std::vector<float> sums;
    std::vector<double> all;
    for (int i = 0; i < kTries; ++i) {
        const auto from = Clock::now() + kApart;
        while (Clock::now() < from) continue;
        if (!reducer.sum(mine, {rows.data(), rows.size()}, 1, rows.size(), sums)) return 0.0;
        all.push_back(std::chrono::duration<double>(Clock::now() - from).count());
    }
    return median(std::move(all));
}

void WireReducer::begin(uint64_t number) {
    step_ = {chain_, number};
    turn_ = 0;
    ended_ = false;
    sums_.forget_before(step_);
}

void WireReducer::give_up() {
    if (std::exchange(ended_, true)) return;
    for (const uint32_t rank : ranks_)
        if (rank != sums_.wire_.rank()) sums_.send_end(rank, step_);
}

bool WireReducer::receive(size_t rank, size_t floats, std::vector<float>& rows) {
    return sums_.wait({step_, turn_, ranks_[rank]}, rows) && rows.size() == floats;
}

bool WireReducer::sum(size_t rank, const RankRows& mine, size_t rows, size_t width,
                      std::vector<float>& into) {
    const Expecting expecting(sums_.wire_);
    // An exception that left this would leave the other ranks waiting.
    const auto add = [&] {
        try {
            into.resize(rows * width);
            return sum_all(rank, mine, rows, width, into);
        } catch (const std::bad_alloc&) {
            return false;
        }
    };
    const bool added = !ended_ && mine.first && add();
    if (!added) give_up();
    return added;
}

bool WireReducer::sum_all(size_t rank, const RankRows& mine, size_t rows, size_t width,
                          std::vector<float>& into) {
    std::span<const float> packed(mine.first, rows * width);
    if (rows > 1 && mine.stride != width) {
        packed_.resize(rows * width);
        for (size_t row = 0; row < rows; ++row)
            std::copy_n(mine.first + row * mine.stride, width, &packed_[row * width]);
        packed = packed_;
    }
    if (ranks_.size() > 2 && packed.size_bytes() >= kLeastInParts) return sum_parts(rank, packed, into);
    for (size_t to = 0; to < ranks_.size(); ++to)
        if (to != rank) sums_.send(ranks_[to], step_, turn_, packed);
    std::vector<RankRows> all(ranks_.size(), {packed.data(), packed.size()});
    for (size_t from = 0; from < ranks_.size(); ++from) {
        if (from == rank) continue;
        if (!receive(from, packed.size(), theirs_[from])) return false;
        all[from].first = theirs_[from].data();
    }
    add_rows(all, packed.size(), 0, packed.size(), into);
    ++turn_;
    return true;
}

bool WireReducer::sum_parts(size_t rank, std::span<const float> mine, std::vector<float>& into) {
    const size_t ranks = ranks_.size();
    const auto part = [&](size_t which, auto all) {
        const auto [first, last] = part_of(which, ranks, mine.size());
        return std::span(all).subspan(first, last - first);
    };
    for (size_t to = 0; to < ranks; ++to)
        if (to != rank) sums_.send(ranks_[to], step_, turn_, part(to, mine));
    const std::span<float> sums = part(rank, std::span(into));
    std::vector<RankRows> all(ranks, {part(rank, mine).data(), sums.size()});
    for (size_t from = 0; from < ranks; ++from) {
        if (from == rank) continue;
        if (!receive(from, sums.size(), theirs_[from])) return false;
        all[from].first = theirs_[from].data();
    }
    add_rows(all, sums.size(), 0, sums.size(), sums);
    ++turn_;
    for (size_t to = 0; to < ranks; ++to)
        if (to != rank) sums_.send(ranks_[to], step_, turn_, sums);
    for (size_t from = 0; from < ranks; ++from) {
        if (from == rank) continue;
        const std::span<float> theirs = part(from, std::span(into));
        if (!receive(from, theirs.size(), theirs_[from])) return false;
        std::ranges::copy(theirs_[from], theirs.begin());
    }
    ++turn_;
    return true;
}

}  // namespace redline
