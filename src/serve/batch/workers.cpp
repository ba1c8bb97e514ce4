#include "serve/batch/workers.h"

namespace redline::serve {

Workers::Workers(uint32_t threads) {
    for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
}

Workers::~Workers() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void Workers::take_part(const std::function<void(size_t)>& work, size_t count) {
    for (size_t i; (i = next_.fetch_add(1)) < count;) work(i);
}

void Workers::serve() {
    std::unique_lock lock(mutex_);
    for (uint64_t seen = 0;;) {
        wake_.wait(lock, [&] { return stop_ || round_ != seen; });
        if (stop_) return;
        seen = round_;
        const std::function<void(size_t)>* work = work_;
        const size_t count = count_;
        lock.unlock();
        take_part(*work, count);
        lock.lock();
        if (--busy_ == 0) done_.notify_one();
    }
}

void Workers::each(size_t count, const std::function<void(size_t)>& work) {
    next_ = 0;
    if (threads_.empty() || count < 2) return take_part(work, count);
    {
        const std::lock_guard lock(mutex_);
        work_ = &work;
        count_ = count;
        busy_ = threads_.size();
        ++round_;
    }
    wake_.notify_all();
    take_part(work, count);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
}

}  // namespace redline::serve
