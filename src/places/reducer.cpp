#include "places/reducer.h"

#include <algorithm>
#include <new>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace redline {

namespace {

// Some tens of microseconds: a rank is mostly behind the others by less.
constexpr int kSpins = 1000;

void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

// Where threads wait until all of them have come.
class Meeting {
public:
    explicit Meeting(uint32_t threads) : threads_(threads) {}

    void meet() {
        const uint32_t round = round_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.fetch_add(1, std::memory_order_release);
            round_.notify_all();
            return;
        }
        for (int i = 0; i < kSpins && round_.load(std::memory_order_acquire) == round; ++i) pause();
        round_.wait(round, std::memory_order_acquire);
    }

private:
    uint32_t threads_;
    std::atomic<uint32_t> arrived_{0}, round_{0};
};

class HostReducer : public Reducer {
public:
    explicit HostReducer(size_t ranks) : meeting_(uint32_t(ranks)), all_(ranks) {}

    void begin() override { failed_ = false; }

    bool sum(size_t rank, const RankRows& mine, size_t rows, size_t width,
             std::vector<float>& into) override {
        all_[rank] = mine;
        if (!mine.first || (rank == 0 && !has_room(into, rows * width)))
            failed_.store(true, std::memory_order_relaxed);
        meeting_.meet();
        // No rank can fail before all of them have seen this.
        if (failed_.load(std::memory_order_relaxed)) return false;
        const size_t elements = rows * width, ranks = all_.size();
        add_rows(all_, width, elements * rank / ranks, elements * (rank + 1) / ranks, into);
        meeting_.meet();
        return true;
    }

private:
    // An exception that left a rank's thread would leave the others waiting.
    static bool has_room(std::vector<float>& into, size_t size) {
        try {
            into.resize(size);
        } catch (const std::bad_alloc&) {
            return false;
        }
        return true;
    }

    Meeting meeting_;
    std::vector<RankRows> all_;
    std::atomic<bool> failed_{false};
};

}  // namespace

void add_rows(std::span<const RankRows> ranks, size_t width, size_t first, size_t last,
              std::span<float> into) {
    while (first < last) {
        const size_t row = first / width, at = first % width, count = std::min(width - at, last - first);
        float* const sums = into.data() + first;
        std::copy_n(ranks[0].first + row * ranks[0].stride + at, count, sums);
        for (const RankRows& rank : ranks.subspan(1)) {
            const float* const more = rank.first + row * rank.stride + at;
            for (size_t i = 0; i < count; ++i) sums[i] += more[i];
        }
        first += count;
    }
}

std::unique_ptr<Reducer> host_reducer(size_t ranks) {
    return std::make_unique<HostReducer>(ranks);
}

}  // namespace redline
