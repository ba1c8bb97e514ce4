// Sums over linked devices of numbers that are known: before the first use of a link, and to time it.
#include "rank_link.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>

namespace redline::hip {

namespace {

constexpr size_t kSets = 3;  // of numbers, in turn: halves of memory that were not written anew show
constexpr uint32_t kInGraph = 32;

struct Numbers {
    std::vector<std::vector<float>> rows;  // by rank
    std::vector<float> sums;               // in the order of the ranks
    std::vector<float> most;               // by how much such in another order may differ
};

// Numbers of both signs and of many sizes, so that a sum in another order differs.
Numbers made_up(size_t ranks, uint64_t floats, uint32_t seed) {
    Numbers made;
    uint32_t state = seed * 2654435761u + 1;
    for (size_t rank = 0; rank < ranks; ++rank) {
        std::vector<float>& row = made.rows.emplace_back(floats);
        for (float& value : row) {
            state = state * 1664525u + 1013904223u;
            value = std::ldexp(float(int32_t(state)) * 0x1p-31f, int(state >> 8 & 7));
        }
        if (rank == 0) made.sums = row;
        for (uint64_t i = 0; i < floats && rank > 0; ++i) made.sums[i] += row[i];
    }
    made.most.resize(floats);
    for (const std::vector<float>& row : made.rows)
        for (uint64_t i = 0; i < floats; ++i) made.most[i] += std::fabs(row[i]) * float(ranks) * 0x1p-23f;
    return made;
}

Status copy_in(Device& device, const Buffer& to, const void* from, uint64_t bytes) {
    RL_TRY(device.checked(device.call().copy_in(to.data(), from, bytes, device.stream()), "a trial of sums"));
    return device.synchronize("a trial of sums");
}
Status copy_out(Device& device, void* to, const Buffer& from, uint64_t bytes) {
    RL_TRY(
        device.checked(device.call().copy_out(to, from.data(), bytes, device.stream()), "a trial of sums"));
    return device.synchronize("a trial of sums");
}
Result<Buffer> buffer_of(Memory& memory, uint64_t bytes) {
    return memory.allocate(bytes, Use::scratch, "a trial of sums");
}
float* floats_of(const Buffer& buffer) {
    return reinterpret_cast<float*>(buffer.data());
}

// The inputs of a step of one row.
Result<Buffer> step_of_one(Device& device, Memory& memory) {
    Buffer made = RL_TRY(buffer_of(memory, sizeof(args::Step)));
    args::Step step{};
    step.rows = step.outputs = 1;
    RL_TRY(copy_in(device, made, &step, sizeof(step)));
    return made;
}
const args::Step* step_in(const Buffer& buffer) {
    return reinterpret_cast<const args::Step*>(buffer.data());
}

}  // namespace

// A rank's memory on its device for a trial, and its graphs.
struct HipRankLink::Trial {
    Trial(Device& opened, Memory& its) : device(opened), memory(its) {}
    ~Trial() {
        for (const GraphExec graph : graphs)
            if (graph && device.use()) device.call().graph_exec_destroy(graph);
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    Device& device;
    Memory& memory;
    Buffer step, rows[kSets], wanted[kSets], most[kSets], sum, wrong;
    GraphExec graphs[2] = {};  // sums alone, and sums that are compared
};

// The first error is the cause: the others fail since they were given up, or the library was before, which
// knows why.
Status HipRankLink::in_threads(const std::function<Status(size_t rank)>& work) {
    std::mutex mutex;
    Status cause;
    bool aborted_before = false;
    {
        std::vector<std::jthread> threads;
        for (size_t rank = 0; rank < ranks_.size(); ++rank)
            threads.emplace_back([&, rank] {
                Status done = ranks_[rank].device->use();
                if (done) done = work(rank);
                if (done) return;
                const std::lock_guard lock(mutex);
                if (cause) {
                    aborted_before = library_ && library_->aborted();
                    cause = std::move(done);
                }
                give_up();
            });
    }
    if (aborted_before) RL_TRY(waited());
    RL_TRY(std::move(cause));
    return waited();
}

Status HipRankLink::prove() {
    RL_TRY(clear());
    // Kernels are loaded before any device waits for another.
    for (const Rank& rank : ranks_) {
        RL_TRY(rank.device->use());
        for (const char* kernel : {"rank_sum", "rank_sum_short", "rank_check"})
            RL_TRY(rank.device->kernel("ranks", kernel));
    }
    RL_TRY(in_threads([&](size_t rank) { return prove(rank); }));
    constexpr uint64_t kFew = 8192, kMany = args::kMostShort + 1001;
    sum_seconds_ = RL_TRY(try_some(std::min(kFew, floats_), 4 * kInGraph));
    if (floats_ >= kMany) RL_TRY(try_some(kMany, 1));
    return {};
}

Result<double> HipRankLink::try_some(uint64_t floats, uint32_t repeats) {
    const SumTrialResult got = RL_TRY(try_sums({floats, repeats}));
    if (got.wrong > 0)
        return error("the devices added rows wrongly through {}: {} elements of {} sums", text(), got.wrong,
                     got.compared);
    return got.seconds;
}

// A sum that is left for a product: its int8 codes, and its squares.
Status HipRankLink::prove(size_t rank) {
    Device& device = *ranks_[rank].device;
    Memory& memory = *ranks_[rank].memory;
    const uint64_t floats = std::min<uint64_t>(floats_ / 32 * 32, 4096);
    if (floats == 0) return {};
    const Numbers numbers = made_up(ranks_.size(), floats, 7);
    const std::vector<float> gains(floats, 0.75f);
    const Buffer rows = RL_TRY(buffer_of(memory, floats * 4)), gain = RL_TRY(buffer_of(memory, floats * 4)),
                 left = RL_TRY(buffer_of(memory, floats / 32 * args::kHandedUnitBytes)),
                 step = RL_TRY(step_of_one(device, memory));
    RL_TRY(copy_in(device, rows, numbers.rows[rank].data(), floats * 4));
    RL_TRY(copy_in(device, gain, gains.data(), floats * 4));
    Launcher launcher(device, Launcher::Mode::run);
    RL_TRY(launch(launcher, rank, step_in(step),
                  {floats_of(rows), floats_of(rows), uint32_t(floats), false, floats,
                   args::HandOver{left.data(), floats_of(gain), uint32_t(floats / 32)}}));
    RL_TRY(device.synchronize("a trial of sums"));
    std::vector<float> sums(floats);
    RL_TRY(copy_out(device, sums.data(), rows, floats * 4));
    if (std::atomic_ref(*trouble()).load() != 0) return {};
    if (std::memcmp(sums.data(), numbers.sums.data(), floats * 4) != 0)
        return error("{} added rows of the others wrongly through {}", device.report().name, text());
    return prove_left(rank, left, sums);
}

Status HipRankLink::prove_left(size_t rank, const Buffer& left, std::span<const float> sums) {
    const size_t units = sums.size() / 32;
    std::vector<std::byte> bytes(units * args::kHandedUnitBytes);
    RL_TRY(copy_out(*ranks_[rank].device, bytes.data(), left, bytes.size()));
    const auto* codes = reinterpret_cast<const int8_t*>(bytes.data());
    const auto* scales = reinterpret_cast<const float*>(bytes.data() + units * 32);
    const auto* squares = scales + units * 4;
    for (size_t half = 0; half < 2 * units; ++half) {
        const size_t unit = half / 2, side = half % 2;
        const float scale = scales[unit * 4 + side];
        float of_squares = 0.0f;
        bool right = true;
        for (size_t i = 0; i < 16; ++i) {
            const float sum = sums[half * 16 + i], code = float(codes[(side * units + unit) * 16 + i]);
            of_squares += sum * sum;
            right = right && std::fabs(code * scale - sum * 0.75f) <= 0.51f * scale;
        }
        if (!right || !(std::fabs(squares[half] - of_squares) <= 1e-5f * of_squares))
            return error("{} left a sum wrongly for a product: its elements from {} on",
                         ranks_[rank].device->report().name, half * 16);
    }
    return {};
}

// The graphs have sums of the sets in turn.
Status HipRankLink::prepare(Trial& trial, size_t rank, uint64_t floats) const {
    Device& device = trial.device;
    const Functions& call = device.call();
    for (const bool compares : {false, true}) {
        Launcher loader(device, Launcher::Mode::load), capturing(device, Launcher::Mode::capture);
        const auto all = [&](Launcher& launcher) -> Status {
            for (uint32_t i = 0; i < kInGraph; ++i) {
                const size_t set = i % kSets;
                const Rows rows{floats_of(trial.rows[set]), floats_of(trial.sum), uint32_t(floats), false,
                                floats};
                RL_TRY(launch(launcher, rank, step_in(trial.step), rows));
                const args::RankCheckArgs check{floats_of(trial.sum), floats_of(trial.wanted[set]),
                                                adds_in_library(rows) ? floats_of(trial.most[set]) : nullptr,
                                                floats, reinterpret_cast<uint32_t*>(trial.wrong.data())};
                if (compares)
                    RL_TRY(launcher.launch(
                        "ranks", "rank_check",
                        {uint32_t(std::min<uint64_t>((floats + 255) / 256, 1024)), 1, 1, 256}, check));
            }
            return {};
        };
        RL_TRY(all(loader));
        constexpr int kThreadLocal = 1;
        Graph captured = nullptr;
        RL_TRY(device.checked(call.begin_capture(device.stream(), kThreadLocal), "a trial of sums"));
        const Status launched = all(capturing);
        Status made = device.checked(call.end_capture(device.stream(), &captured), "a trial of sums");
        if (made && launched)
            made = device.checked(call.graph_instantiate(&trial.graphs[compares], captured, 0),
                                  "a trial of sums");
        if (captured) call.graph_destroy(captured);
        RL_TRY(Status(launched));
        RL_TRY(Status(made));
    }
    return {};
}

Result<SumTrialResult> HipRankLink::try_sums(const SumTrial& wanted) {
    const uint64_t floats = wanted.floats;
    if (floats == 0 || floats > floats_)
        return error("a trial of {} floats over a link of {}", floats, floats_);
    std::vector<std::unique_ptr<Trial>> trials;
    for (const Rank& rank : ranks_) {
        RL_TRY(rank.device->use());
        Trial& trial = *trials.emplace_back(std::make_unique<Trial>(*rank.device, *rank.memory));
        trial.step = RL_TRY(step_of_one(*rank.device, *rank.memory));
        trial.sum = RL_TRY(buffer_of(*rank.memory, floats * 4));
        trial.wrong = RL_TRY(buffer_of(*rank.memory, 4));
        const uint32_t none = 0;
        RL_TRY(copy_in(*rank.device, trial.wrong, &none, 4));
    }
    for (size_t set = 0; set < kSets; ++set) {
        const Numbers numbers = made_up(ranks_.size(), floats, uint32_t(set));
        for (size_t rank = 0; rank < ranks_.size(); ++rank) {
            Trial& trial = *trials[rank];
            RL_TRY(trial.device.use());
            trial.rows[set] = RL_TRY(buffer_of(trial.memory, floats * 4));
            trial.wanted[set] = RL_TRY(buffer_of(trial.memory, floats * 4));
            RL_TRY(copy_in(trial.device, trial.rows[set], numbers.rows[rank].data(), floats * 4));
            RL_TRY(copy_in(trial.device, trial.wanted[set], numbers.sums.data(), floats * 4));
            if (!library_) continue;
            trial.most[set] = RL_TRY(buffer_of(trial.memory, floats * 4));
            RL_TRY(copy_in(trial.device, trial.most[set], numbers.most.data(), floats * 4));
        }
    }
    // Each in its thread: a library's ranks may wait for each other when its first sum is captured.
    RL_TRY(begin());
    RL_TRY(in_threads([&](size_t rank) { return prepare(*trials[rank], rank, floats); }));
    return run(trials, wanted.repeats);
}

// So many launches of one of the graphs on all ranks; the seconds that they take the first one.
Result<double> HipRankLink::launch_graphs(std::span<const std::unique_ptr<Trial>> trials, bool compares,
                                          uint32_t launches) {
    double seconds = 0.0;
    const auto launch_some = [&](const Trial& trial, uint32_t count) -> Status {
        Device& device = trial.device;
        for (uint32_t i = 0; i < count; ++i)
            RL_TRY(device.checked(device.call().graph_launch(trial.graphs[compares], device.stream()),
                                  "a trial of sums"));
        return device.synchronize("a trial of sums");
    };
    const auto work = [&](size_t rank) -> Status {
        meet();
        if (!compares) RL_TRY(launch_some(*trials[rank], 1));
        const auto begin = std::chrono::steady_clock::now();
        RL_TRY(launch_some(*trials[rank], launches));
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (rank == 0) seconds = took.count();
        return {};
    };
    RL_TRY(begin());
    RL_TRY(in_threads(work));
    return seconds;
}

Result<SumTrialResult> HipRankLink::run(std::span<const std::unique_ptr<Trial>> trials, uint32_t repeats) {
    const uint32_t launches = std::max(1u, (repeats + kInGraph - 1) / kInGraph);
    SumTrialResult result;
    result.seconds = RL_TRY(launch_graphs(trials, false, launches)) / (double(launches) * kInGraph);
    RL_TRY(launch_graphs(trials, true, launches));
    for (const std::unique_ptr<Trial>& trial : trials) {
        uint32_t wrong = 0;
        RL_TRY(trial->device.use());
        RL_TRY(copy_out(trial->device, &wrong, trial->wrong, 4));
        result.compared += uint64_t(launches) * kInGraph;
        result.wrong += wrong;
    }
    return result;
}

}  // namespace redline::hip
