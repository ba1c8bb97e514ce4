#include "keep_busy.h"

#include <cstring>

namespace redline::vulkan {

KeepBusy::~KeepBusy() {
    if (recording_) device_.settle();
}

bool KeepBusy::possible(const DeviceReport& report) {
    return report.shader_clock && Pipelines::exists("keep_awake");
}

PipelineSpec KeepBusy::pipeline(const Device& device) {
    return {"keep_awake", 1, 1, {device.subgroup()}};
}

Status KeepBusy::make() {
    ticks_ = RL_TRY(memory_.allocate(8, Use::upload, "work that does nothing"));
    std::memset(ticks_.mapped(), 0, 8);
    Recorder recorder(device_, pipelines_);
    RL_TRY(recorder.dispatch(pipeline(device_), {ticks_}, 0u, {1}));
    recording_ = RL_TRY(std::move(recorder).finish());
    return {};
}

// What was submitted before read its own ticks when it began.
Status KeepBusy::submit(double seconds) {
    if (!recording_) RL_TRY(make());
    const auto ticks = uint32_t(seconds * 1e9 / double(device_.report().limits.timestampPeriod));
    std::memcpy(ticks_.mapped(), &ticks, 4);
    RL_TRY(ticks_.flush());
    return device_.submit(recording_->segments, VK_NULL_HANDLE);
}

}  // namespace redline::vulkan
