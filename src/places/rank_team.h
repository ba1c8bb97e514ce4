// A thread for each rank: they compute their parts of a step at the same time.
#pragma once

#include "base/result.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace redline {

class RankTeam {
public:
    // An error where the system has no more threads.
    static Result<std::shared_ptr<RankTeam>> start(size_t ranks);
    ~RankTeam();
    RankTeam(const RankTeam&) = delete;
    RankTeam& operator=(const RankTeam&) = delete;

    // Calls `work` with the number of each rank, of the first in the caller's thread, and returns when all of
    // them are done. One caller at a time.
    void run(const std::function<void(size_t)>& work);

private:
    RankTeam() = default;
    void serve(size_t rank);

    std::vector<std::thread> threads_;
    std::mutex mutex_;  // guards changes of what follows
    std::condition_variable wake_, done_;
    const std::function<void(size_t)>* work_ = nullptr;
    std::atomic<uint64_t> round_{0};
    std::atomic<size_t> working_{0};
    std::atomic<bool> stopping_{false};
};

}  // namespace redline
