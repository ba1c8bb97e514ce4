// A mutex that is fair: threads get it in the order in which they asked.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace redline {

// To be locked by std::lock_guard. With a plain mutex a thread that unlocks and locks in a loop, as one does
// that reads a long prompt, would keep the others waiting.
class Turns {
public:
    void lock() {
        std::unique_lock guard(mutex_);
        const uint64_t mine = next_++;
        turned_.wait(guard, [&] { return mine == now_; });
    }
    void unlock() {
        {
            const std::lock_guard guard(mutex_);
            ++now_;
        }
        turned_.notify_all();
    }

private:
    std::mutex mutex_;  // guards the numbers
    std::condition_variable turned_;
    uint64_t next_ = 0, now_ = 0;
};

}  // namespace redline
