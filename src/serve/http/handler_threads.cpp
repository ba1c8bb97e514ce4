#include "serve/http/handler_threads.h"

#include <utility>

namespace redline::serve {

HandlerThreads::HandlerThreads(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
}

HandlerThreads::~HandlerThreads() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        waiting_.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void HandlerThreads::run(std::function<void()> work) {
    {
        const std::lock_guard lock(mutex_);
        if (ending_) return;
        waiting_.push_back(std::move(work));
    }
    changed_.notify_one();
}

void HandlerThreads::loop() {
    while (true) {
        std::function<void()> work;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
            if (ending_) return;
            work = std::move(waiting_.front());
            waiting_.pop_front();
        }
        work();
    }
}

}  // namespace redline::serve
