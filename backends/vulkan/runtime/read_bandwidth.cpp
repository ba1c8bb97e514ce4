#include "read_bandwidth.h"

#include "args.h"
#include "recorder.h"
#include "stopwatch.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

constexpr std::string_view kMeasuring = "measuring bandwidth";
// Written, or read first, in one submission: a tenth of a second at 160 MB/s.
constexpr uint64_t kPiece = uint64_t(16) << 20;
// What is measured goes on for so long, or for so many passes.
constexpr double kWarmSeconds = 0.3;
constexpr int kMostPasses = 1000;

// Memory that was never written may not be there yet.
Status write_all(Device& device, const Buffer& buffer, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += kPiece)
        RL_TRY(device.run_once(
            [&](VkCommandBuffer commands) {
                vkCmdFillBuffer(commands, buffer.handle(), at, std::min(kPiece, bytes - at), 0);
            },
            kMeasuring));
    return {};
}

// Reads of the first `bytes`, one after the other.
Result<Recording> record_reads(Device& device, Pipelines& pipelines, const Buffer& from, const Buffer& to,
                               uint64_t bytes, int reads) {
    Recorder recorder(device, pipelines);
    const args::ElementArgs push = {uint32_t(bytes / 16), 0};
    for (int i = 0; i < reads; ++i) {
        RL_TRY(recorder.dispatch({"read_words", 2, 1, {256}}, {from, to}, push, striding(4096)));
        recorder.barrier();
    }
    return std::move(recorder).finish();
}

}  // namespace

Result<double> read_bandwidth(Device& device, Memory& memory, Pipelines& pipelines, uint64_t most) {
    const uint64_t bytes = most / 16 * 16;
    if (bytes < kPiece) return error("{} bytes are too few to measure bandwidth", bytes);
    const Buffer from = RL_TRY(memory.allocate(bytes, Use::scratch, "the bandwidth measurement"));
    const Buffer to = RL_TRY(memory.allocate(16, Use::scratch, "the bandwidth measurement"));
    RL_TRY(write_all(device, from, bytes));
    const std::unique_ptr<Stopwatch> clock = RL_TRY(Stopwatch::create(device));
    const auto read = [&](uint64_t size, int reads) -> Result<double> {
        const Recording recording = RL_TRY(record_reads(device, pipelines, from, to, size, reads));
        const double seconds = RL_TRY(clock->run(recording.segments));
        if (seconds <= 0.0) return error("the device's clock stands still, or it does not compute");
        device.pace().note(seconds);
        return seconds;
    };
    // As much as a submission has time for: the more, the less of it stays in caches.
    uint64_t size = kPiece;
    double seconds = RL_TRY(read(size, 1));
    while (size < bytes && 2.0 * seconds < kSubmissionSeconds) {
        size = std::min(bytes, 2 * size);
        seconds = RL_TRY(read(size, 1));
    }
    const int reads = int(std::clamp(kSubmissionSeconds / std::max(seconds, 1e-6), 1.0, 4.0));
    // An idle device raises its clocks only after a while of work.
    double best = 0.0, spent = 0.0;
    for (int pass = 0; pass < 3 || (spent < kWarmSeconds && pass < kMostPasses); ++pass) {
        seconds = RL_TRY(read(size, reads));
        best = std::max(best, double(reads) * double(size) / seconds);
        spent += seconds;
    }
    return best;
}

}  // namespace redline::vulkan
