#include "weights.h"

namespace redline::hip {

Result<PlacedWeight> Loading::place(Device&, Memory& memory, const WeightInfo& weight) {
    const Tensor& tensor = weight.tensor;
    const bool vector = weight.role == WeightRole::vector;
    PlacedWeight placed;
    placed.elements = tensor.shape.elements();
    placed.layout = vector ? nullptr : weight_layout(*tensor.format);
    if (!vector && !placed.layout) return error("{} has no HIP kernels", tensor.format->name);
    placed.buffer = RL_TRY(memory.allocate(vector ? placed.elements * 4 : tensor.bytes(), Use::weights,
                                           "tensor " + tensor.name));
    return placed;
}

Status Loading::Upload::prepare() {
    constexpr unsigned kNonBlocking = 1, kNoTiming = 2;
    const Functions& call = device_.call();
    RL_TRY(device_.checked(call.stream_create(&stream_, kNonBlocking), "making a stream"));
    for (const size_t i : {0, 1}) {
        buffers_[i] = RL_TRY(memory_.allocate(kStagingBytes, Use::pinned, "staging"));
        RL_TRY(device_.checked(call.event_create(&events_[i], kNoTiming), "making an event"));
    }
    return {};
}

Loading::Upload::~Upload() {
    const Functions& call = device_.call();
    call.set_device(device_.report().index);
    for (const size_t i : {0, 1}) {
        if (busy[i]) call.event_synchronize(events_[i]);
        if (events_[i]) call.event_destroy(events_[i]);
    }
    if (stream_) call.stream_destroy(stream_);
}

Status Loading::Upload::wait(size_t i) {
    return device_.checked(device_.call().event_synchronize(events_[i]), "copying weights to the device");
}

Status Loading::Upload::send(size_t i, std::span<const CopyRegion> regions, const PlacedWeight& to,
                             uint32_t) {
    for (const CopyRegion& region : regions)
        RL_TRY(device_.checked(device_.call().copy_in(to.buffer.data() + region.to, data(i) + region.from,
                                                      region.bytes, stream_),
                               "copying weights to the device"));
    return device_.checked(device_.call().event_record(events_[i], stream_), "copying weights to the device");
}

}  // namespace redline::hip
