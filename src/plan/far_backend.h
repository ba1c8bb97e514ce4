// A backend of another process: what it does in another way than those of this one. That process matches
// plans to its kernels, and reads weights from its copy of the model's file.
#pragma once

#include "plan/backend.h"
#include "plan/passes/shard.h"

namespace redline {

class FarBackend {
public:
    virtual ~FarBackend() = default;
    // lower() of this backend. The steps that come back are those of the other process.
    virtual Result<BoundPlan> lower_there(const Plan& plan, bool fuse) = 0;
    // Places parts of some of the model's weights, which `infos` describes as they are in the file. Loading
    // goes on when it returns: making caches waits for it.
    virtual Result<std::unique_ptr<WeightStore>> load_there(std::span<const WeightSlice> slices,
                                                            std::span<const WeightInfo> infos) = 0;
};

// An executable that can leave its output to the next one, where both are in other processes.
class FarExecutable {
public:
    virtual ~FarExecutable() = default;
    // From now on the output goes to `next` as its input without the host, and run() does not wait for it;
    // false where that cannot be.
    virtual bool pass_to(Executable& next) = 0;
    virtual bool passes_on() const = 0;
    // Before each run(): the number of the step, which rises. Processes know a step by it.
    virtual void number_step(uint64_t number) = 0;
};

// Caches that can copy rows without sending them here.
class FarCaches {
public:
    virtual ~FarCaches() = default;
    // Copies rows [from, from + count) of a cache to [to, ...); false: it is not far, and the caller is to
    // read and write.
    virtual Result<bool> copy(Cache cache, uint64_t from, uint64_t to, uint64_t count) = 0;
};

}  // namespace redline
