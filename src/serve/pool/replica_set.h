// Replicas of a model as a program hosts them: for each a device, an engine and a scheduler, all in one
// process. CPU replicas share their weights, and each has processors for itself.
#pragma once

#include "serve/api/replicas.h"
#include "serve/api/scheduled_answering.h"

namespace redline::serve {

// The device of each of so many replicas: those that `asked` lists ("hip:0,hip:1"; one of them: for all),
// else a GPU for each, else the CPU.
Result<std::vector<std::string>> replica_devices(const std::string& asked, uint32_t count);

// The tokens of context that a replica on the first of these devices has, as choose_context() does it. The
// model is inspected and not placed.
Result<uint64_t> replica_context(LoadedModel& first, const HostOptions& host,
                                 const std::vector<std::string>& devices);

class ReplicaSet {
public:
    struct Wishes {
        std::vector<std::string> devices;
        // The names of devices are those of the replicas; options say what each of them gets.
        HostOptions host;
        SchedulerOptions scheduler;
        // Is told of what the caches of a replica hold; may be missing.
        std::function<void(std::vector<HeldBlocks::Change>, uint32_t replica)> tell = {};
    };
    // The first one's model is inspected and not placed; it and the sink of notes outlive the set.
    static Result<std::unique_ptr<ReplicaSet>> open(LoadedModel& first, const Wishes& wishes);
    ~ReplicaSet();
    ReplicaSet(const ReplicaSet&) = delete;

    Replicas& answers() { return *replicas_; }
    // Lets the answers of all end, for so long.
    void drain(std::chrono::milliseconds longest);

private:
    struct Replica;
    ReplicaSet();
    std::vector<std::unique_ptr<Replica>> all_;
    std::unique_ptr<Replicas> replicas_;
};

}  // namespace redline::serve
