#include "threads.h"

#include "base/control_group.h"
#include "base/os/processor.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <new>
#include <string>

namespace redline::cpu {

namespace {

// A pause takes 10 to 70 ns, so this is some 10 to 100 us of spinning before a thread gives up its slice:
// longer than a barrier's usual wait, short enough where more threads run than there are cores.
constexpr int kSpins = 1500;
// Then it gives its slice away for so long before it sleeps: the next run is near where a GPU computes the
// rest of a layer, or a token is chosen, and waking a team takes longer than either.
constexpr std::chrono::milliseconds kLinger(1);

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

// Of generation_: its low bits are the threads of the run.
constexpr uint32_t kRun = 2 * Team::kMostThreads;
uint32_t threads_of(uint32_t generation) {
    return generation % kRun;
}

}  // namespace

Team::Team(uint32_t count)
    : count_(std::clamp(count, 1u, kMostThreads)), active_(count_), fewest_(count_), awake_(count_) {
    try {
        for (uint32_t i = 1; i < count_; ++i) threads_.emplace_back([this, i] { serve(i); });
    } catch (...) {  // the system refused one: end those that run, and let the caller tell
        stop();
        throw;
    }
}

Team::~Team() {
    stop();
}

void Team::stop() {
    stopping_.store(true, std::memory_order_relaxed);
    wake(count_);
    for (std::thread& thread : threads_) thread.join();
}

// Begins a run of so many threads. notify_all() first looks whether a thread waits, and the standard library
// may do so before a store of weaker order is seen: the thread would then sleep on.
void Team::wake(uint32_t threads) {
    if (awake_.load(std::memory_order_relaxed) != threads) {
        awake_.store(threads, std::memory_order_seq_cst);
        awake_.notify_all();
    }
    const uint32_t before = generation_.load(std::memory_order_relaxed);
    generation_.store(before - threads_of(before) + kRun + threads, std::memory_order_seq_cst);
    generation_.notify_all();
}

// An exception that left a thread would end the program.
void Team::work_as(uint32_t index) {
    const uint64_t begin = timed_ ? os::thread_nanoseconds() : 0;
    try {
        (*work_)(Worker{this, index, active_});
    } catch (const std::bad_alloc&) {
        broken_.store(true, std::memory_order_relaxed);
    }
    if (timed_) cpu_nanoseconds_.fetch_add(os::thread_nanoseconds() - begin, std::memory_order_relaxed);
}

Status Team::run_on(uint32_t threads, const std::function<void(const Worker&)>& work) {
    active_ = std::clamp(threads, 1u, count_);
    work_ = &work;
    busy_.store(active_ - 1, std::memory_order_relaxed);
    wake(active_);
    work_as(0);
    for (int spins = 0; busy_.load(std::memory_order_acquire) != 0; ++spins) {
        relax();
        if (spins > kSpins) std::this_thread::yield();
    }
    if (!broken_.exchange(false, std::memory_order_relaxed)) return {};
    arrived_.store(0, std::memory_order_relaxed);
    return error("not enough memory for the work of {} thread{}", active_, active_ == 1 ? "" : "s");
}

Status Team::run_sized(TeamSize& size, const std::function<double()>& done,
                       const std::function<void(const Worker&)>& work) {
    if (count_ == 1) return run(work);
    cpu_nanoseconds_.store(0, std::memory_order_relaxed);
    timed_ = true;
    const auto begin = std::chrono::steady_clock::now();
    size.rested(std::chrono::duration<double>(begin - last_end_).count());
    const Status ended = run_on(size.threads(), work);
    last_end_ = std::chrono::steady_clock::now();
    timed_ = false;
    if (!ended) return ended;
    size.ran({std::chrono::duration<double>(last_end_ - begin).count(),
              1e-9 * double(cpu_nanoseconds_.load(std::memory_order_relaxed)), done()});
    fewest_ = std::min(fewest_, size.settled());
    return {};
}

void Team::serve(uint32_t index) {
    uint32_t seen = 0;
    for (;;) {
        uint32_t now = generation_.load(std::memory_order_acquire);
        for (int spins = 0; now == seen && spins < kSpins; ++spins) {
            relax();
            now = generation_.load(std::memory_order_acquire);
        }
        for (const auto end = std::chrono::steady_clock::now() + kLinger;
             now == seen && std::chrono::steady_clock::now() < end;) {
            std::this_thread::yield();
            now = generation_.load(std::memory_order_acquire);
        }
        if (now == seen) {
            generation_.wait(seen, std::memory_order_acquire);
            continue;
        }
        seen = now;
        if (stopping_.load(std::memory_order_relaxed)) return;
        if (index < threads_of(now)) {
            work_as(index);
            busy_.fetch_sub(1, std::memory_order_release);
        }
        for (uint32_t awake = awake_.load(std::memory_order_relaxed); awake <= index;
             awake = awake_.load(std::memory_order_relaxed))
            awake_.wait(awake, std::memory_order_relaxed);
    }
}

void Team::barrier(uint32_t threads) {
    const uint32_t phase = phase_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
        arrived_.store(0, std::memory_order_relaxed);
        phase_.store(phase + 1, std::memory_order_release);
        return;
    }
    for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins) {
        // One that ran out of memory will not come.
        if (broken_.load(std::memory_order_relaxed)) throw std::bad_alloc();
        relax();
        if (spins > kSpins) std::this_thread::yield();
    }
}

uint32_t default_threads() {
    const size_t cores = os::usable_cores().size();
    return cores == 0 ? usable_cpus() : std::min(uint32_t(cores), quota_cpus());
}

const char* cpu_model_name() {
    static const std::string name = [] {
        std::ifstream in("/proc/cpuinfo");
        std::string line;
        while (std::getline(in, line))
            if (line.rfind("model name", 0) == 0) {
                const size_t colon = line.find(": ");
                if (colon != std::string::npos) return line.substr(colon + 2);
            }
        return std::string("CPU");
    }();
    return name.c_str();
}

}  // namespace redline::cpu
