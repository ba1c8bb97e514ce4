#include "places/rank_team.h"

#include <chrono>
#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace redline {

namespace {

// A text's next token begins some tens of microseconds behind the last one, in which a thread that slept
// would wake up.
template <typename There>
void spin_until(There there) {
    constexpr std::chrono::microseconds kLongest{150};
    const auto begin = std::chrono::steady_clock::now();
    while (!there() && std::chrono::steady_clock::now() - begin < kLongest)
        for (int i = 0; i < 16 && !there(); ++i) {
#if defined(__x86_64__)
            _mm_pause();
#endif
        }
}

}  // namespace

Result<std::shared_ptr<RankTeam>> RankTeam::start(size_t ranks) {
    std::shared_ptr<RankTeam> team(new RankTeam);
    try {
        for (size_t rank = 1; rank < ranks; ++rank)
            team->threads_.emplace_back([all = team.get(), rank] { all->serve(rank); });
    } catch (const std::system_error& problem) {
        return error("no thread for each of {} devices: {}", ranks, problem.what());
    }
    return team;
}

RankTeam::~RankTeam() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void RankTeam::serve(size_t rank) {
    uint64_t seen = 0;
    while (true) {
        const std::function<void(size_t)>* work = nullptr;
        spin_until([&] { return stopping_ || round_ != seen; });
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
            if (stopping_) return;
            seen = round_;
            work = work_;
        }
        (*work)(rank);
        const std::lock_guard lock(mutex_);
        if (--working_ == 0) done_.notify_all();
    }
}

void RankTeam::run(const std::function<void(size_t)>& work) {
    {
        const std::lock_guard lock(mutex_);
        work_ = &work;
        working_ = threads_.size();
        ++round_;
    }
    wake_.notify_all();
    work(0);
    spin_until([&] { return working_ == 0; });
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return working_ == 0; });
}

}  // namespace redline
