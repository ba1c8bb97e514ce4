#include "launcher.h"

namespace redline::hip {

Launcher::~Launcher() {
    for (const Event event : events_)
        if (event) device_.call().event_destroy(event);
}

Status Launcher::launch_any(const std::string& module, const std::string& kernel, const Launch& shape,
                            std::span<const std::byte> args, double flops) {
    Launch own = shape;
    if (own.strides) own.x = std::min(own.x, device_.most_blocks);
    // The runtime counts threads along x in 32 bits.
    if (uint64_t(own.x) * own.threads > UINT32_MAX || own.y > kMostHigh || own.z > kMostHigh)
        return error("{} needs {} x {} x {} blocks; {} takes at most {} x {} x {}. A smaller batch would fit",
                     kernel, own.x, own.y, own.z, device_.report().name, UINT32_MAX / own.threads, kMostHigh,
                     kMostHigh);
    const Function function = RL_TRY(device_.kernel(module, kernel));
    if (mode_ == Mode::load) return {};
    own.early = mode_ == Mode::capture && device_.report().copies_ahead();
    RL_TRY(device_.launch(function, own, args));
    ahead_ += flops;
    if (mode_ == Mode::capture || ahead_ < flops_per_launch(device_.report())) return {};
    ahead_ = 0.0;
    return pace();
}

// Waits for the event before this one: the device has one slice to do while the host launches the next.
Status Launcher::pace() {
    constexpr unsigned kNoTiming = 2;
    if (cancel_ && cancel_->load(std::memory_order_relaxed)) {
        RL_TRY(device_.synchronize("running a step"));
        return error("interrupted");
    }
    Event& event = events_[recorded_ % 2];
    if (!event) RL_TRY(device_.checked(device_.call().event_create(&event, kNoTiming), "making an event"));
    RL_TRY(device_.checked(device_.call().event_record(event, device_.stream()), "running a step"));
    if (recorded_++ == 0) return {};
    return device_.checked(device_.call().event_synchronize(events_[recorded_ % 2]), "running a step");
}

}  // namespace redline::hip
