// Threads that run tasks in the order given; without threads the caller runs them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace redline {

class WorkThreads {
public:
    explicit WorkThreads(size_t count) {
        try {
            for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {  // the system refused one: the others do its work
        }
    }
    // Tasks that have not begun are dropped.
    ~WorkThreads() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
            waiting_.clear();
        }
        changed_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    WorkThreads(const WorkThreads&) = delete;
    WorkThreads& operator=(const WorkThreads&) = delete;

    void give(std::function<void()> task) {
        if (threads_.empty()) return run(task);
        {
            const std::lock_guard lock(mutex_);
            waiting_.push_back(std::move(task));
            ++open_;
        }
        changed_.notify_one();
    }
    // Waits for all tasks. False: memory did not suffice for one.
    bool finish() {
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return open_ == 0; });
        return !full_.load();
    }

private:
    void run(const std::function<void()>& task) {
        try {
            task();
        } catch (const std::bad_alloc&) {  // an exception that left the thread would end the program
            full_ = true;
        }
    }
    void work() {
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            std::function<void()> task = std::move(waiting_.front());
            waiting_.pop_front();
            lock.unlock();
            run(task);
            task = nullptr;
            lock.lock();
            if (--open_ == 0) done_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_, done_;
    std::deque<std::function<void()>> waiting_;
    size_t open_ = 0;
    bool ends_ = false;
    std::atomic<bool> full_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace redline
