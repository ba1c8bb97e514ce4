// Threads that share a loop with the thread that calls, and sleep between loops.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace redline::serve {

class Workers {
public:
    explicit Workers(uint32_t threads);  // beside the calling one
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // Calls work(i) for each i below count, in any order and thread; returns when all are done.
    void each(size_t count, const std::function<void(size_t)>& work);

private:
    void serve();
    void take_part(const std::function<void(size_t)>& work, size_t count);

    std::mutex mutex_;  // guards what is not atomic
    std::condition_variable wake_, done_;
    const std::function<void(size_t)>* work_ = nullptr;
    size_t count_ = 0;
    uint64_t round_ = 0;
    size_t busy_ = 0;  // threads that have not finished the round
    bool stop_ = false;
    std::atomic<size_t> next_ = 0;
    std::vector<std::thread> threads_;
};

}  // namespace redline::serve
