// What the files of kernels share: launch shapes, and launches that several ops need.
#pragma once

#include "backends/gpu/activations.h"
#include "backends/gpu/key_splits.h"
#include "backends/gpu/paths.h"
#include "backends/gpu/plain_ops.h"
#include "backends/gpu/slices.h"
#include "backends/hip/runtime/executable.h"

#include <algorithm>
#include <bit>

namespace redline::hip {

using gpu::in_slices, gpu::slice_of;
using gpu::kFewRows, gpu::kMostFew, gpu::Path, gpu::precision_of;

// Tiles of a slice, of kernels whose grids have them along y, beside what else is there.
constexpr double kMostHighTiles = 1000;

// Threads of a block, of kernels that have no reason for another number: as kernels/wave.h has it.
constexpr uint32_t kThreads = 128;
constexpr uint32_t kTileThreads = 256;  // of those in kernels/tile.h, and of linear_tile

inline uint32_t blocks_for(uint64_t work, uint64_t per_block) {
    return uint32_t(std::clamp<uint64_t>((work + per_block - 1) / per_block, 1, UINT32_MAX));
}
inline Launch striding(uint32_t blocks, uint32_t threads = kThreads, uint32_t shared = 0) {
    return {.x = blocks, .threads = threads, .shared = shared, .strides = true};
}

// As kernels/dot.h has it: results of a block at a time, where there is one row.
constexpr uint32_t kGroup = 16;
inline uint32_t own_blocks(uint64_t rows, uint32_t most) {
    return std::min(blocks_for(rows, kGroup), most);
}
// How products of one row are launched. Values of choices, of kernels that compute `rows` results.
struct OwnLaunch {
    uint32_t blocks;  // at most
    bool streamed;    // by kernels that copy weights ahead, where they can
};
// `streamed`: the default of the choice of that name.
Choices own_choices(uint64_t rows, const DeviceReport& report, const std::string& prefix,
                    const Default& streamed);

// Blocks for `rows` rows of a matrix of which a wave owns `per_wave` at a time.
inline uint32_t row_blocks(uint64_t rows, uint32_t per_wave, const Device& device) {
    return blocks_for(rows, uint64_t(per_wave) * (kThreads / device.report().wave()));
}

// Wraps a function launch(launcher, view) as a kernel.
template <typename Write>
class SimpleKernel : public HipKernel {
public:
    explicit SimpleKernel(Write write) : write_(std::move(write)) {}
    Status launch(Launcher& launcher, const View& view) const override { return write_(launcher, view); }

private:
    Write write_;
};

template <typename Write>
std::unique_ptr<Kernel> simple(Write write) {
    return std::make_unique<SimpleKernel<Write>>(std::move(write));
}

// The op, into `y` in place of its own.
Status launch_norm(Launcher& launcher, const View& view, const RmsNorm& op, float* y);

// For backends/gpu.
struct Gpu {
    using Encoder = Launcher;
    using View = hip::View;
    using Operand = float*;
    static std::unique_ptr<Kernel> simple(auto encode) { return hip::simple(std::move(encode)); }
    static bool takes_few(const View& view) { return view.halfs_taken; }
    static uint64_t prepared_bytes(const Plan& plan, Slot x);
    static uint64_t code_bytes(const Plan& plan, Slot x, uint64_t rows) {
        return aligned(rows * plan.slot(x).width);
    }
    static constexpr auto norm = launch_norm;
    static Status prepare(Launcher& launcher, const View& view, Path path, const gpu::Activations<Gpu>& x);
};
using Activations = gpu::Activations<Gpu>;

template <class Args>
struct Plain : gpu::PlainView<View> {
    Launcher& launcher;

    float* slot(Slot s, Slot = {}) const { return s ? view.slot(s) : nullptr; }
    const float* vector(Weight w) const { return view.vector(w); }
    float* state(Cache c) const { return view.state(c); }
    const args::SegmentState* states() const { return view.states; }
    const args::Place* places() const { return view.places; }
    const float* null() const { return nullptr; }

    Status send(const gpu::PlainDispatch& d, const auto&... all) const {
        const auto known = []<typename T>(const T&) {
            return std::bool_constant<!std::same_as<T, gpu::Flag>>();
        };
        const Args args = std::apply(
            [&](auto... each) {
                return Args{view.step, each...};
            },
            gpu::chosen_of(known, all...));
        return launcher.launch(d.module, std::string(d.kernel),
                               striding(blocks_for(d.work, d.by_groups ? 1 : kThreads)), args);
    }
};
template <class Args, class O>
Status plain(Launcher& launcher, const View& view, const O& op) {
    return gpu::encode(Plain<Args>{{view}, launcher}, op);
}

// y = the row of y, x (or the vector that rows have in common), z and the values.
Status launch_each(Launcher& launcher, const View& view, EachRow row, const float* x, const float* z, Slot y,
                   const std::array<float, kMostEachValues>& values = {});

// Of kernels that come once for each type that keys and values can have alike, and once for all types.
std::string cache_module(const View& view, Cache cache);
std::string cache_kernel(std::string_view stem, const View& view, Cache cache);

inline gpu::DeviceClass class_of(const DeviceReport& report) {
    return {.hip = true,
            .wave = report.wave(),
            .matrix_units = report.matrix_units(),
            .overlaps = report.copies_ahead(),
            .units = report.multiprocessors,
            .dot_threads = report.dot_threads(),
            .held_twice = report.target.starts_with("gfx11"),
            .one_wide = report.target.starts_with("sm_")};
}
inline Default product_default(std::string_view choice, const DeviceReport& report) {
    return gpu::default_of(gpu::kProductDefaults, choice, class_of(report));
}
inline Default attention_default(std::string_view choice, const DeviceReport& report,
                                 const gpu::Work& work = {}) {
    return gpu::default_of(gpu::kAttentionDefaults, choice, class_of(report), work);
}
// Blocks of attention for each multiprocessor.
inline Default usual_per_unit() {
    return gpu::default_of(gpu::kAttentionDefaults, "per_unit", {.hip = true});
}
// Up to how many rows products go by vector, and by Path::few.
struct Crossovers {
    uint32_t vector_rows, few_rows;
};
inline Default usual_vector_rows(const DeviceReport& report) {
    return product_default("vector_rows", report);
}
inline Default usual_few_rows(const DeviceReport& report) {
    return product_default("few_rows", report);
}
inline Crossovers usual_crossovers(const DeviceReport& report) {
    return {usual_vector_rows(report).value, usual_few_rows(report).value};
}
// `rows` of x; `cols` of the weight.
Path path_of(const Format& format, uint64_t cols, uint64_t rows, const DeviceReport& report,
             const Crossovers& up_to);
inline Path path_of(const Format& format, uint64_t cols, uint64_t rows, const DeviceReport& report) {
    return path_of(format, cols, rows, report, usual_crossovers(report));
}
// True for formats that kernels/byte_tile.h multiplies: those whose scales are of 32 elements.
bool has_byte_kernels(const Format& format);
// The path of rows that go by tiles of halfs, if a kernel's choice "int8" is to compute in int8.
inline Path in_bytes(Path path, bool int8) {
    return int8 && path == Path::matrices ? Path::int8_matrices : path;
}
// Tokens of a tile of kernels/few.h for so many rows.
inline uint32_t few_tokens(uint64_t rows, const DeviceReport& report) {
    return uint32_t(std::clamp<uint64_t>(std::bit_ceil(rows), report.fewest_tokens(), kMostFew));
}
// Shared memory for this many activations in int8; kMostShared at most.
inline uint32_t own_bytes(uint64_t activations) {
    return uint32_t(activations / 32 * args::kDotUnitBytes);
}
constexpr uint64_t kMostShared = 46 << 10;  // some of 48 KiB is left to sums

// One row by kernels that copy weights ahead, if the device does and all rows begin at whole copies.
// `matrices`: that a result is of; `own`: activations in int8 that a block has.
std::optional<Launch> stream_launch(const View& view, std::span<const Weight> weights, uint32_t matrices,
                                    const args::DotArgs& args, uint64_t own, const DeviceReport& report,
                                    const OwnLaunch& how);

// A product of rows with a weight in f32, whatever their number: y = w * x.
Status launch_floats(Launcher& launcher, const View& view, Weight w, const float* x, float* y, uint32_t rows);

}  // namespace redline::hip
