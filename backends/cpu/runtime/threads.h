// A team of threads that runs one function at a time on all of them, with a barrier and claimed work inside.
// Between runs the threads spin for about a millisecond, since the next run is usually near, and then sleep.
#pragma once

#include "base/result.h"
#include "team_size.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace redline::cpu {

class Team;

// A thread's place in the team during a run.
struct Worker {
    Team* team = nullptr;
    uint32_t index = 0;
    uint32_t count = 1;

    // Returns when every worker has come here; what they wrote before is visible after.
    void barrier() const;
    // This worker's even share of [0, items).
    struct Range {
        uint64_t begin, end;
    };
    Range share(uint64_t items) const { return {items * index / count, items * (index + 1) / count}; }
};

class Team {
public:
    explicit Team(uint32_t count);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    static constexpr uint32_t kMostThreads = 1024;

    uint32_t size() const { return count_; }
    // Calls work(worker) once on every thread, the calling one included, and returns when all are done. An
    // error when memory ran out on one of them: then those that wait at a barrier, or come to one, end there.
    Status run(const std::function<void(const Worker&)>& work) { return run_on(count_, work); }
    // The same on this many threads, while the others sleep.
    Status run_on(uint32_t threads, const std::function<void(const Worker&)>& work);
    // The same on as many as `size` says, which is then told how long that took, and how much was done().
    Status run_sized(TeamSize& size, const std::function<double()>& done,
                     const std::function<void(const Worker&)>& work);
    // The fewest threads that have proved best in sized runs.
    uint32_t fewest() const { return fewest_; }

private:
    friend struct Worker;
    void serve(uint32_t index);
    void work_as(uint32_t index);
    void stop();
    void wake(uint32_t threads);
    void barrier(uint32_t threads);

    const uint32_t count_;
    uint32_t active_;  // threads of the latest run
    uint32_t fewest_;  // see fewest()
    const std::function<void(const Worker&)>* work_ = nullptr;
    std::vector<std::thread> threads_;
    // The count of runs and the threads of the latest one, in one number: a thread that comes late then knows
    // whether it takes part in the run that it sees.
    alignas(64) std::atomic<uint32_t> generation_{0};
    alignas(64) std::atomic<uint32_t> awake_;  // threads of the latest run; the others sleep on it
    alignas(64) std::atomic<uint32_t> busy_{0};
    alignas(64) std::atomic<uint32_t> arrived_{0};
    alignas(64) std::atomic<uint32_t> phase_{0};
    bool timed_ = false;
    std::chrono::steady_clock::time_point last_end_;  // of a timed run
    std::atomic<uint64_t> cpu_nanoseconds_{0};        // of all threads in a timed run
    std::atomic<bool> stopping_{false};
    std::atomic<bool> broken_{false};  // memory ran out in this run
};

inline void Worker::barrier() const {
    if (count > 1) team->barrier(count);
}

// Threads worth using by default: one per physical core that this process may run on, or fewer by the quota
// of its control groups.
uint32_t default_threads();
// "AMD Ryzen 7 7840U", from the machine; never empty.
const char* cpu_model_name();

}  // namespace redline::cpu
