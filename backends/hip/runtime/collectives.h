// NCCL or RCCL, which add rows over devices, too: one C interface, found at run time. Each device has a
// communicator, and a thread of its rank calls it.
#pragma once

#include "device.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace redline::hip {

using Communicator = struct CommunicatorHandle*;

class Collectives {
public:
    // Over these devices, in their order. `path`: of the library; empty: by its usual names. An error says
    // what is absent, or went wrong. It may take a second or two.
    static Result<std::shared_ptr<Collectives>> open(const Runtime& runtime, std::span<Device* const> ranks,
                                                     const std::string& path);
    // The file that would be opened; empty where there is none of its usual names.
    static std::string find(const Runtime& runtime);
    ~Collectives();
    Collectives(const Collectives&) = delete;
    Collectives& operator=(const Collectives&) = delete;

    // Puts the sum of all ranks' x on the device's stream, or in its graph. All ranks do so for the same
    // sums.
    Status add(size_t rank, const float* x, float* y, uint64_t floats) const;
    // While a step is in flight its errors are asked for, and it is given up at the first one, or when it
    // takes longer than any should.
    void watch(bool in_flight);
    // Ends what is in flight, on all ranks; nothing can be added any more. From any thread.
    void abort(const std::string& why);
    bool aborted() const { return aborted_; }
    std::string why_aborted() const;
    // "NCCL 2.27.3 (libnccl.so.2)"
    const std::string& text() const { return text_; }

private:
    struct Calls;
    Collectives() = default;
    Status start(std::span<Device* const> ranks);
    // An error that was found meanwhile, by the library itself.
    Status problem() const;
    void watch_steps();
    Status checked(int code, std::string_view doing) const;

    std::shared_ptr<const Calls> call_;
    std::vector<Device*> devices_;
    std::vector<Communicator> communicators_;
    std::string text_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::string why_;
    bool in_flight_ = false, ends_ = false;
    std::atomic<bool> aborted_{false};
    std::thread watcher_;
};

}  // namespace redline::hip
