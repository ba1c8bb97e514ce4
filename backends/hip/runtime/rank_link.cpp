#include "rank_link.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace redline::hip {

namespace {

constexpr uint64_t kTroubleBytes = 256;
// Some seconds on any device: a rank may be behind by the slice of a long prompt.
constexpr uint32_t kSpins = 1u << 23;
constexpr uint64_t kBlockElements = 1024;

}  // namespace

Result<std::shared_ptr<HipRankLink>> HipRankLink::create(const Runtime& runtime,
                                                         std::vector<std::pair<Device*, Memory*>> ranks,
                                                         uint64_t floats) {
    std::shared_ptr<HipRankLink> link(new HipRankLink);
    for (const auto& [device, memory] : ranks) link->ranks_.push_back({device, memory});
    link->floats_ = (floats + 63) / 64 * 64;
    RL_TRY(link->allocate(runtime));
    RL_TRY(link->prove());
    return link;
}

HipRankLink::~HipRankLink() {
    for (const Rank& rank : ranks_)
        if (rank.device->use()) static_cast<void>(rank.device->synchronize("ending a link").ok());
    if (host_ && ranks_[0].device->use()) ranks_[0].device->call().release_host(host_);
}

// Rows in a device's memory that others write are seen by its kernels where these do not cache them: on
// NVIDIA's cards.
bool HipRankLink::reach_each_other(const Runtime& runtime) const {
    const Functions& call = runtime.call;
    if (!call.can_access_peer || !call.enable_peer) return false;
    for (const Rank& one : ranks_) {
        if (!one.device->report().target.starts_with("sm_") && one.device->report().target != "gfxhost")
            return false;
        for (const Rank& other : ranks_) {
            int can = 0;
            if (&one == &other) continue;
            if (call.can_access_peer(&can, one.device->report().index, other.device->report().index) !=
                    kSuccess ||
                can == 0)
                return false;
        }
    }
    constexpr Code kAlreadyEnabled = 704;
    for (const Rank& one : ranks_)
        for (const Rank& other : ranks_) {
            if (&one == &other || !one.device->use()) continue;
            const Code code = call.enable_peer(other.device->report().index, 0);
            if (code != kSuccess) call.last_error();
            if (code != kSuccess && code != kAlreadyEnabled) return false;
        }
    return true;
}

Status HipRankLink::allocate(const Runtime& runtime) {
    constexpr unsigned kPortableMapped = 1 | 2, kCoherent = 0x40000000;
    peers_ = reach_each_other(runtime);
    const uint64_t count = ranks_.size(), bytes = count * slot_floats() * sizeof(float);
    for (Rank& rank : ranks_) {
        RL_TRY(rank.device->use());
        rank.turns = RL_TRY(rank.memory->allocate(args::kMostRankBlocks * 4, Use::scratch, "counts of sums"));
        if (peers_)
            rank.exchange = RL_TRY(rank.memory->allocate(bytes, Use::scratch, "sums over the devices"));
    }
    Device& first = *ranks_[0].device;
    RL_TRY(first.use());
    host_bytes_ = kTroubleBytes + (peers_ ? 0 : bytes);
    return first.checked(
        first.call().allocate_host(&host_, host_bytes_, kPortableMapped | (runtime.cuda ? 0 : kCoherent)),
        "allocating memory for sums over the devices");
}

// Where the rows of one rank come to for another; those in the host's memory are for all.
float* HipRankLink::slot(size_t reader, size_t writer) const {
    std::byte* const base =
        peers_ ? ranks_[reader].exchange.data() : static_cast<std::byte*>(host_) + kTroubleBytes;
    return reinterpret_cast<float*>(base) + writer * slot_floats();
}

// Turns begin anew, which they must together.
Status HipRankLink::clear() {
    for (const Rank& rank : ranks_) {
        RL_TRY(rank.device->use());
        RL_TRY(rank.device->synchronize("ending a step"));
    }
    std::memset(host_, 0, host_bytes_);
    const std::vector<std::byte> zeros(flag_floats() * sizeof(float));
    for (size_t reader = 0; reader < ranks_.size(); ++reader) {
        Device& device = *ranks_[reader].device;
        RL_TRY(device.use());
        const auto zero = [&](void* to, uint64_t bytes) {
            return device.checked(device.call().copy_in(to, zeros.data(), bytes, device.stream()),
                                  "clearing flags");
        };
        RL_TRY(zero(ranks_[reader].turns.data(), args::kMostRankBlocks * 4));
        for (size_t writer = 0; writer < ranks_.size() && peers_; ++writer)
            RL_TRY(zero(slot(reader, writer) + 2 * floats_, zeros.size()));
        RL_TRY(device.synchronize("clearing flags"));
    }
    dirty_ = false;
    return {};
}

Status HipRankLink::begin() {
    ready_ = 0;
    return dirty_ ? clear() : Status();
}

void HipRankLink::meet() {
    ++ready_;
    while (ready_ < ranks_.size() && std::atomic_ref(*trouble()).load() == 0) std::this_thread::yield();
}

void HipRankLink::give_up() {
    dirty_ = true;
    std::atomic_ref(*trouble()).store(1);
}

Status HipRankLink::waited() {
    if (std::atomic_ref(*trouble()).load() == 0) return {};
    dirty_ = true;
    return error("a device waited too long for the rows of another, and the step was given up");
}

std::string HipRankLink::text() const {
    return peers_ ? "the devices' memory" : "pinned memory of the host";
}

Status HipRankLink::launch(Launcher& launcher, size_t rank, const args::Step* step, float* y, uint32_t width,
                           uint64_t most) const {
    args::RankSumArgs sum{};
    sum.step = step;
    sum.y = y;
    sum.width = width;
    sum.rank = uint32_t(rank);
    sum.ranks = uint32_t(ranks_.size());
    sum.spins = kSpins;
    sum.half = floats_;
    sum.turns = reinterpret_cast<uint32_t*>(ranks_[rank].turns.data());
    sum.trouble = trouble();
    const auto flags_of = [&](float* rows) { return reinterpret_cast<uint32_t*>(rows + 2 * floats_); };
    for (size_t other = 0; other < ranks_.size(); ++other) {
        sum.from[other] = slot(rank, other);
        sum.seen[other] = flags_of(slot(rank, other));
        if (other == rank || (!peers_ && sum.targets > 0)) continue;
        sum.to[sum.targets] = slot(other, rank);
        sum.flags[sum.targets++] = flags_of(slot(other, rank));
    }
    const uint64_t blocks = (most + kBlockElements - 1) / kBlockElements;
    return launcher.launch("ranks", "rank_sum",
                           {uint32_t(std::clamp<uint64_t>(blocks, 1, args::kMostRankBlocks)), 1, 1, 256},
                           sum);
}

// Integers, whose sums are exact, other ones in each round.
Status HipRankLink::prove(size_t rank) {
    constexpr uint32_t kRounds = 8, kElements = 3001;
    Device& device = *ranks_[rank].device;
    const auto value = [](uint32_t round, size_t of, uint32_t i) {
        return float((i * 31 + round * 7 + uint32_t(of) * 13) % 1009);
    };
    const uint32_t elements = uint32_t(std::min<uint64_t>(kElements, floats_));
    RL_TRY(device.use());
    const Buffer rows = RL_TRY(ranks_[rank].memory->allocate(elements * 4, Use::scratch, "a trial of sums")),
                 steps = RL_TRY(
                     ranks_[rank].memory->allocate(sizeof(args::Step), Use::scratch, "a trial of sums"));
    args::Step step{};
    step.rows = step.outputs = 1;
    std::vector<float> numbers(elements);
    const auto copy = [&](void* to, const void* from, uint64_t bytes) {
        return device.checked(device.call().copy_in(to, from, bytes, device.stream()), "a trial of sums");
    };
    RL_TRY(copy(steps.data(), &step, sizeof(step)));
    for (uint32_t round = 0; round < kRounds; ++round) {
        for (uint32_t i = 0; i < elements; ++i) numbers[i] = value(round, rank, i);
        RL_TRY(copy(rows.data(), numbers.data(), elements * 4));
        Launcher launcher(device, Launcher::Mode::run);
        RL_TRY(launch(launcher, rank, reinterpret_cast<const args::Step*>(steps.data()),
                      reinterpret_cast<float*>(rows.data()), elements, elements));
        RL_TRY(
            device.checked(device.call().copy_out(numbers.data(), rows.data(), elements * 4, device.stream()),
                           "a trial of sums"));
        RL_TRY(device.synchronize("a trial of sums"));
        for (uint32_t i = 0; i < elements; ++i) {
            float want = 0.0f;
            for (size_t of = 0; of < ranks_.size(); ++of) want += value(round, of, i);
            if (numbers[i] != want && std::atomic_ref(*trouble()).load() == 0)
                return error("{} added rows of the others wrongly through {}: {} in place of {}",
                             device.report().name, text(), numbers[i], want);
        }
    }
    // Many in a row, as a step has them.
    constexpr uint32_t kTimed = 64;
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < kTimed; ++i) {
        Launcher launcher(device, Launcher::Mode::run);
        RL_TRY(launch(launcher, rank, reinterpret_cast<const args::Step*>(steps.data()),
                      reinterpret_cast<float*>(rows.data()), elements, elements));
    }
    RL_TRY(device.synchronize("a trial of sums"));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (rank == 0) sum_seconds_ = took.count() / kTimed;
    return {};
}

Status HipRankLink::prove() {
    RL_TRY(clear());
    // Kernels are loaded before any device waits for another.
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        RL_TRY(ranks_[rank].device->use());
        RL_TRY(ranks_[rank].device->kernel("ranks", "rank_sum"));
    }
    std::vector<Status> found(ranks_.size());
    {
        std::vector<std::jthread> threads;
        for (size_t rank = 0; rank < ranks_.size(); ++rank)
            threads.emplace_back([&, rank] {
                found[rank] = prove(rank);
                if (!found[rank]) give_up();
            });
    }
    for (const Status& one : found) RL_TRY(Status(one));
    return waited();
}

}  // namespace redline::hip
