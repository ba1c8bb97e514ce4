// Threads for the work of requests that takes longer than the network may wait: JSON, templates, tokens,
// grammars.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace redline::serve {

class HandlerThreads {
public:
    explicit HandlerThreads(unsigned threads);
    // Finishes what is running; what waits is dropped.
    ~HandlerThreads();
    HandlerThreads(const HandlerThreads&) = delete;
    HandlerThreads& operator=(const HandlerThreads&) = delete;

    void run(std::function<void()> work);

private:
    void loop();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> waiting_;
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace redline::serve
