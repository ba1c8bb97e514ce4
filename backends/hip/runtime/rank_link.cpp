#include "rank_link.h"

#include <algorithm>
#include <cstring>

namespace redline::hip {

namespace {

constexpr uint64_t kTroubleBytes = 256;
// Some seconds on any device: a rank may be behind by the slice of a long prompt.
constexpr uint32_t kSpins = 1u << 23;
constexpr uint64_t kBlockElements = 1024;
static_assert(args::kMostShort == kMostHandedSum);
static_assert(args::kMostShort <= args::kMostRankBlocks * args::kShortBlock);

uint64_t whole_lines(uint64_t floats) {
    return (floats + 63) / 64 * 64;
}

}  // namespace

Result<std::shared_ptr<HipRankLink>> HipRankLink::create(const Runtime& runtime, const Members& ranks,
                                                         uint64_t floats, std::optional<SumWay> way) {
    std::shared_ptr<HipRankLink> link(new HipRankLink(runtime));
    for (const auto& [device, memory] : ranks) link->ranks_.push_back({device, memory});
    link->floats_ = whole_lines(floats);
    RL_TRY(link->allocate(way));
    if (way == SumWay::library) RL_TRY(link->open_library());
    RL_TRY(link->prove());
    if (!way) link->choose_library();
    return link;
}

uint64_t HipRankLink::bytes(size_t ranks, uint64_t floats) {
    return ranks * slot_floats(whole_lines(floats)) * sizeof(float) + args::kMostRankBlocks * 4;
}

HipRankLink::~HipRankLink() {
    for (const Rank& rank : ranks_)
        if (rank.device->use()) static_cast<void>(rank.device->synchronize("ending a link").ok());
    if (host_ && ranks_[0].device->use()) ranks_[0].device->call().release_host(host_);
}

bool HipRankLink::writes_to_peers(const DeviceReport& report) {
    return report.target.starts_with("sm_") || report.target == "gfxhost";
}

bool HipRankLink::reach_each_other() const {
    const Functions& call = runtime_.call;
    if (!call.can_access_peer || !call.enable_peer) return false;
    for (const Rank& one : ranks_) {
        if (!writes_to_peers(one.device->report())) return false;
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

Status HipRankLink::allocate(std::optional<SumWay> way) {
    constexpr unsigned kPortableMapped = 1 | 2, kCoherent = 0x40000000;
    peers_ = way != SumWay::host_memory && reach_each_other();
    if (way == SumWay::peer_memory && !peers_) return error("the devices do not reach each other's memory");
    const uint64_t count = ranks_.size(), bytes = count * slot_floats(floats_) * sizeof(float);
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
        first.call().allocate_host(&host_, host_bytes_, kPortableMapped | (runtime_.cuda ? 0 : kCoherent)),
        "allocating memory for sums over the devices");
}

// Where the rows of one rank come to for another; those in the host's memory are for all.
float* HipRankLink::slot(size_t reader, size_t writer) const {
    std::byte* const base =
        peers_ ? ranks_[reader].exchange.data() : static_cast<std::byte*>(host_) + kTroubleBytes;
    return reinterpret_cast<float*>(base) + writer * slot_floats(floats_);
}

// Turns begin anew, which they must together.
Status HipRankLink::clear() {
    for (const Rank& rank : ranks_) {
        RL_TRY(rank.device->use());
        RL_TRY(rank.device->synchronize("ending a step"));
    }
    std::memset(host_, 0, host_bytes_);
    const std::vector<std::byte> zeros((slot_floats(floats_) - 2 * floats_) * sizeof(float));
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
    if (dirty_) RL_TRY(clear());
    if (library_ && library_->aborted()) RL_TRY(restart_library());
    if (library_) library_->watch(true);
    return {};
}

void HipRankLink::meet() {
    ++ready_;
    while (ready_ < ranks_.size() && std::atomic_ref(*trouble()).load() == 0) std::this_thread::yield();
}

void HipRankLink::give_up() {
    dirty_ = true;
    std::atomic_ref(*trouble()).store(1);
    if (library_) library_->abort("a device failed");
}

Status HipRankLink::waited() {
    if (library_) library_->watch(false);
    if (library_ && library_->aborted()) {
        dirty_ = true;
        return error("{} was given up within a step: {}", library_->text(), library_->why_aborted());
    }
    if (std::atomic_ref(*trouble()).load() == 0) return {};
    dirty_ = true;
    return error("a device waited too long for the rows of another, and the step was given up");
}

std::string HipRankLink::text() const {
    const std::string way = peers_ ? "the devices' memory" : "pinned memory of the host";
    if (!library_) return way;
    return library_from_ == 0 ? library_->text()
                              : fmt::format("{}, from {} on {}", way,
                                            format_bytes(library_from_ * sizeof(float)), library_->text());
}

Status HipRankLink::launch(Launcher& launcher, size_t rank, const args::Step* step, const Rows& rows) const {
    if (adds_in_library(rows))
        return launcher.only_loads() ? Status() : library_->add(rank, rows.x, rows.y, rows.most);
    const bool is_short = rows.most <= args::kMostShort;
    RL_CHECK(is_short || !rows.hand.row, "a sum of {} elements is left in int8", rows.most);
    args::RankSumArgs sum{};
    sum.step = step;
    sum.x = rows.x;
    sum.y = rows.y;
    sum.width = rows.width;
    sum.of_outputs = rows.of_outputs;
    sum.rank = uint32_t(rank);
    sum.ranks = uint32_t(ranks_.size());
    sum.spins = kSpins;
    sum.half = is_short ? args::kMostShort : floats_;
    sum.turns = reinterpret_cast<uint32_t*>(ranks_[rank].turns.data());
    sum.trouble = trouble();
    sum.hand = rows.hand;
    const auto flags_of = [&](float* slot) { return reinterpret_cast<uint32_t*>(slot + 2 * floats_); };
    const auto rows_of = [&](float* slot) { return is_short ? slot + 2 * floats_ + flag_floats() : slot; };
    for (size_t other = 0; other < ranks_.size(); ++other) {
        sum.from[other] = rows_of(slot(rank, other));
        sum.seen[other] = flags_of(slot(rank, other));
        if (other == rank || (!peers_ && sum.targets > 0)) continue;
        sum.to[sum.targets] = rows_of(slot(other, rank));
        sum.flags[sum.targets++] = flags_of(slot(other, rank));
    }
    const uint64_t each = is_short ? args::kShortBlock : kBlockElements;
    const auto blocks =
        uint32_t(std::clamp<uint64_t>((rows.most + each - 1) / each, 1, args::kMostRankBlocks));
    return launcher.launch("ranks", is_short ? "rank_sum_short" : "rank_sum", {blocks, 1, 1, 256}, sum);
}

}  // namespace redline::hip
