// When NCCL or RCCL makes the sums of a link.
#include "rank_link.h"

namespace redline::hip {

Status HipRankLink::open_library() {
    std::vector<Device*> devices;
    for (const Rank& rank : ranks_) devices.push_back(rank.device);
    library_ = RL_TRY(Collectives::open(runtime_, devices, library_path_ == "none" ? "" : library_path_));
    ++generation_;
    return warm_up_library();
}

// It connects the devices when a sum of a kind is made for the first time, which no graph may capture: sums
// of all sizes before any is.
Status HipRankLink::warm_up_library() {
    std::vector<Buffer> rows;
    for (const Rank& rank : ranks_) {
        RL_TRY(rank.device->use());
        rows.push_back(RL_TRY(rank.memory->allocate(floats_ * 4, Use::scratch, "a trial of sums")));
    }
    const auto sums_of = [&](size_t rank) -> Status {
        float* const at = reinterpret_cast<float*>(rows[rank].data());
        for (uint64_t floats = 64; floats <= floats_; floats *= 2)
            RL_TRY(library_->add(rank, at, at, floats));
        return ranks_[rank].device->synchronize("a trial of sums");
    };
    ready_ = 0;
    if (dirty_) RL_TRY(clear());
    library_->watch(true);
    return in_threads(sums_of);
}

// With more than two devices the library's order of adding is another than that of the ranks, and what is
// faster differs from run to run: texts stay the same unless it is asked for by name.
void HipRankLink::choose_library() {
    if (library_path_ == "none") return;
    const bool asked = !library_path_.empty();
    if (!asked && (peers_ || ranks_.size() > 2 || Collectives::find(runtime_).empty())) return;
    const auto choose = [&]() -> Status {
        RL_TRY(open_library());
        library_from_ = RL_TRY(faster_from());
        return {};
    };
    const Status chosen = choose();
    if (!chosen) problem_ = chosen.error().message;
    if (chosen && library_from_ <= floats_) return;
    library_.reset();
    ++generation_;
    library_from_ = 0;
    dirty_ = true;
}

// The floats from which on it is faster than the kernels, by a tenth at least.
Result<uint64_t> HipRankLink::faster_from() {
    constexpr uint64_t kLeast = 1 << 14, kMostTried = 1 << 22;
    constexpr uint32_t kRepeats = 64;
    uint64_t from = UINT64_MAX;
    for (uint64_t floats = std::min(floats_, kMostTried); floats >= std::min(floats_, kLeast); floats /= 4) {
        double seconds[2] = {};
        for (const bool library : {false, true}) {
            library_from_ = library ? 0 : UINT64_MAX;
            seconds[library] = RL_TRY(try_some(floats, kRepeats));
        }
        if (seconds[1] > 0.9 * seconds[0]) break;
        from = floats;
    }
    return from;
}

// After it was given up in a step, whose error is known. Without it the kernels add from then on.
Status HipRankLink::restart_library() {
    const std::string name = library_->text();
    library_.reset();
    ++generation_;
    const Status opened = open_library();
    if (opened) return {};
    problem_ = opened.error().message;
    library_.reset();
    ++generation_;
    return error("{} cannot be started again: {}. The devices add rows by themselves from here on", name,
                 problem_);
}

}  // namespace redline::hip
