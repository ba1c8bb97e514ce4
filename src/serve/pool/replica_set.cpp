#include "serve/pool/replica_set.h"

#include "base/control_group.h"
#include "base/os/processor.h"
#include "devices/device_choice.h"
#include "memory/budget.h"

#include <algorithm>
#include <map>

namespace redline::serve {

namespace {

// Notes of a replica say which one it is.
class ReplicaNotes final : public Notes {
public:
    ReplicaNotes(Notes& inner, std::string prefix) : inner_(inner), prefix_(std::move(prefix)) {}
    void take(NoteKind kind, std::string_view text) override {
        inner_.take(kind, prefix_ + std::string(text));
    }
    bool shows(NoteKind kind) const override { return inner_.shows(kind); }
    void progress(std::string_view work, uint64_t done, uint64_t total) override {
        inner_.progress(work, done, total);
    }
    void finished(std::string_view work) override { inner_.finished(work); }

private:
    Notes& inner_;
    const std::string prefix_;
};

// Threads that start from here on run on these processors, until this ends.
class Binding {
public:
    explicit Binding(const std::vector<uint32_t>& processors) {
        if (processors.empty()) return;
        before_ = os::usable_processors();
        os::bind_thread(processors);
    }
    ~Binding() {
        if (!before_.empty()) os::bind_thread(before_);
    }
    Binding(const Binding&) = delete;

private:
    std::vector<uint32_t> before_;
};

struct Share {
    std::vector<uint32_t> processors = {};  // empty: all
    uint32_t threads = 0;                   // of the CPU; 0: by the processors
};

// Number i of so many even shares of the cores, and of the quota of CPU time.
Share share_of(size_t i, size_t count) {
    const std::vector<std::vector<uint32_t>> cores = os::usable_cores();
    Share share;
    if (cores.size() < count) {
        share.threads = 1;
        return share;
    }
    const size_t begin = cores.size() * i / count, end = cores.size() * (i + 1) / count;
    for (size_t core = begin; core < end; ++core)
        share.processors.insert(share.processors.end(), cores[core].begin(), cores[core].end());
    const uint32_t quota = quota_cpus();
    if (quota < cores.size())
        share.threads = std::max(1u, std::min(uint32_t(end - begin), quota / uint32_t(count)));
    return share;
}

// "0-3,8"
std::string ranges_of(std::vector<uint32_t> numbers) {
    std::ranges::sort(numbers);
    std::string text;
    for (size_t i = 0; i < numbers.size();) {
        size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
        if (last > i) text += fmt::format("-{}", numbers[last]);
        i = last + 1;
    }
    return text;
}

uint64_t file_weight_bytes(const Model& model) {
    uint64_t bytes = 0;
    for (const WeightInfo& weight : model.file_weights()) bytes += weight.tensor.bytes();
    return bytes;
}

// The memory that each of several replicas on one device may plan with. 0: what is there.
Result<uint64_t> memory_share(const LoadedModel& first, const HostOptions& host, const std::string& device,
                              size_t count) {
    if (count == 1) return host.memory;
    if (device == "cpu") {
        // The weights are there once.
        const uint64_t all = host.memory > 0 ? host.memory : host_budget(host_memory()).bytes;
        const uint64_t weights = file_weight_bytes(*first.model);
        return all > weights ? (all - weights) / count + weights : host.memory;
    }
    uint64_t all = host.memory;
    if (all == 0) {
        LoadedModel probe;
        probe.device.choice = RL_TRY(choose_device(device));
        RL_TRY(open_for(probe, host));
        all = probe.device.backend->device().memory.bytes;
    }
    return all / count;
}

}  // namespace

Result<std::vector<std::string>> replica_devices(const std::string& asked, uint32_t count) {
    std::vector<std::string> devices;
    for (size_t at = 0; !asked.empty() && at <= asked.size();) {
        const size_t end = std::min(asked.find(',', at), asked.size());
        const std::string name = asked.substr(at, end - at);
        if (name.empty() || name == "auto")
            return error("--device {}: each replica's device has a name there, with commas between", asked);
        devices.push_back(RL_TRY(device_name(name)));
        at = end + 1;
    }
    if (devices.size() == 1) devices.resize(count, devices.front());
    if (devices.size() == count) return devices;
    if (!devices.empty())
        return error(
            "--replicas {} and the {} devices of --device {} do not fit: name as many, or one for all", count,
            devices.size(), asked);
    const DeviceChoice best = RL_TRY(choose_device(""));
    for (const UsableDevice& each : usable_devices())
        if (each.choice.backend == best.backend && each.choice.backend != "cpu")
            devices.push_back(each.listing.id);
    if (devices.empty()) return std::vector<std::string>(count, "cpu");
    if (devices.size() < count)
        return error(
            "--replicas {}: {} has {} device{} here; --device {} has several replicas share one, --device cpu "
            "takes the CPU",
            count, best.backend, devices.size(), devices.size() == 1 ? "" : "s", devices.front());
    devices.resize(count);
    return devices;
}

Result<uint64_t> replica_context(LoadedModel& first, const HostOptions& host,
                                 const std::vector<std::string>& devices) {
    HostOptions share = host;
    const auto count = size_t(std::ranges::count(devices, devices.front()));
    share.memory = RL_TRY(memory_share(first, host, devices.front(), count));
    const uint64_t context = RL_TRY(choose_context(first, share));
    first.device.backend.reset();  // it is opened again with this replica's threads
    return context;
}

struct ReplicaSet::Replica {
    Replica(Notes& inner, size_t number) : notes(inner, fmt::format("replica {}: ", number)) {}

    ReplicaNotes notes;
    HostOptions host;
    LoadedModel twin;               // unused by the first
    LoadedModel* loaded = nullptr;  // the one that was inspected, or the twin
    std::shared_ptr<HeldBlocks> held;
    std::unique_ptr<Scheduler> scheduler;
    std::optional<ScheduledAnswering> answering;
};

ReplicaSet::ReplicaSet() = default;

Result<std::unique_ptr<ReplicaSet>> ReplicaSet::open(LoadedModel& first, const Wishes& wishes) {
    std::unique_ptr<ReplicaSet> set(new ReplicaSet);
    std::map<std::string, size_t> counts;
    for (const std::string& device : wishes.devices) ++counts[device];
    std::map<std::string, uint64_t> memory;
    for (const auto& [device, count] : counts)
        memory[device] = RL_TRY(memory_share(first, wishes.host, device, count));
    if (const size_t cores = os::usable_cores().size(), cpus = counts["cpu"]; cores > 0 && cpus > cores)
        wishes.host.notes->note(
            fmt::format("{} replicas share {} core{} of the CPU: fewer would answer faster", cpus, cores,
                        cores == 1 ? "" : "s"));
    std::vector<Replicas::Member> members;
    size_t on_cpu = 0;
    for (size_t i = 0; i < wishes.devices.size(); ++i) {
        const std::string& device = wishes.devices[i];
        Replica& replica = *set->all_.emplace_back(std::make_unique<Replica>(*wishes.host.notes, i));
        replica.host = wishes.host;
        replica.host.notes = &replica.notes;
        replica.host.device = device;
        replica.host.memory = memory[device];
        Share share;
        if (device == "cpu" && counts[device] > 1) share = share_of(on_cpu++, counts[device]);
        if (replica.host.threads == 0) replica.host.threads = share.threads;
        const Binding binding(share.processors);
        replica.loaded = i == 0 ? &first : &replica.twin;
        if (i > 0) {
            replica.twin.device.choice = RL_TRY(choose_device(device));
            replica.twin.cache = first.cache;
            replica.twin.model = std::make_unique<Model>(first.model->twin());
        }
        if (wishes.tell)
            replica.held =
                std::make_shared<HeldBlocks>([tell = wishes.tell, i](std::vector<HeldBlocks::Change> all) {
                    tell(std::move(all), uint32_t(i));
                });
        else
            replica.held = std::make_shared<HeldBlocks>();
        SchedulerOptions options = wishes.scheduler;
        options.held = replica.held;
        Result<std::unique_ptr<Scheduler>> made = Scheduler::create(*replica.loaded, replica.host, options);
        if (!made) return error("replica {} on {}: {}", i, device, made.error().message);
        replica.scheduler = std::move(made).value();
        replica.answering.emplace(*replica.scheduler);
        const DeviceInfo& opened = replica.scheduler->device();
        std::string where = fmt::format("{} ({}, {})", device, opened.name, opened.detail);
        if (!share.processors.empty()) where += fmt::format(" on processors {}", ranges_of(share.processors));
        replica.notes.inform(where);
        members.push_back({&*replica.answering, replica.held, where});
    }
    set->replicas_ = std::make_unique<Replicas>(std::move(members));
    return set;
}

ReplicaSet::~ReplicaSet() {
    drain(std::chrono::milliseconds(0));
}

void ReplicaSet::drain(std::chrono::milliseconds longest) {
    std::vector<std::thread> waiting;
    for (const auto& replica : all_)
        if (replica->scheduler)
            waiting.emplace_back(
                [scheduler = replica->scheduler.get(), longest] { scheduler->drain(longest); });
    for (std::thread& thread : waiting) thread.join();
}

}  // namespace redline::serve
