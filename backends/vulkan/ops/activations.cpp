// How products get their activations, and which way a product goes.
#include "steps.h"

#include <algorithm>

namespace redline::vulkan {

bool fits_shared(const Device& device, const WeightLayout& layout, uint64_t cols, uint64_t more) {
    // Codes and scale of 32 activations are 48 bytes; a code book has twice its size at most; some is left to
    // sums.
    return cols / 32 * 48 + 2 * layout.book.size_bytes() + 2048 + more <=
           device.report().limits.maxComputeSharedMemorySize;
}

Path path_of(const Device& device, const Format& format, uint64_t cols, uint64_t rows) {
    const WeightLayout& layout = *weight_layout(format);
    if (rows > kFewRows) {
        if (device.use_bfloat16() && cols % 32 == 0 && format.name == "BF16") return Path::bfloats;
        const bool matrices = device.use_matrix() && matrix_shape(device.report()) && cols % 32 == 0 &&
                              format.name != "F32" &&
                              Pipelines::exists(fmt::format("linear_coop.{}", layout.name));
        return matrices ? Path::matrices : Path::tiles;
    }
    if (!layout.quantized()) return Path::floats_own;
    if (!device.use_dot()) return Path::floats;
    return rows == 1 && fits_shared(device, layout, cols) ? Path::dot_own : Path::dot_prepared;
}

Path product_path(const Device& device, const Format& format, uint64_t cols, uint64_t rows,
                  const Fragments* fragments, const Ways& ways) {
    if (FewProducts::wanted(device, format, cols, rows, fragments, ways)) return Path::few;
    return wide_path(device, format, cols, rows, ways);
}

Path wide_path(const Device& device, const Format& format, uint64_t cols, uint64_t rows, const Ways& ways) {
    const Path path = path_of(device, format, cols, rows);
    if (path == Path::matrices && format.name == "F16") return Path::halves;
    if (path == Path::tiles && rows <= ways.dot_rows && weight_layout(format)->quantized() &&
        device.use_dot())
        return Path::dot_prepared;
    const bool unpacked =
        path == Path::matrices && rows > kFewTileRows && ways.unpack && weight_layout(format)->quantized();
    return unpacked ? Path::unpacked : path;
}

static uint64_t tile_rows(uint64_t rows) {
    constexpr uint64_t kLeastTile = 16;
    const uint64_t tile = rows > kFewRows ? kMostTileTokens : rows > 1 ? kLeastTile : 1;
    return (rows + tile - 1) / tile * tile;
}

// 16 bits each, of whole tiles; the 48 bytes per 32 elements of dot kernels are less, and so are codes for
// matrices in int8 with the scales behind them. Behind a group of units that is not whole lie zeros for the
// tokens of a small tile.
uint64_t Gpu::prepared_bytes(const Plan& plan, Slot x) {
    constexpr uint64_t kBehind = 7 * kMostFew * 64;
    const uint64_t width = plan.slot(x).width, rows = gpu::most_rows(plan, x);
    return aligned(width * 2 * tile_rows(rows) + (rows > 1 ? kBehind : 0) + 256);
}

uint64_t Gpu::code_bytes(const Plan& plan, Slot x, uint64_t) {
    return aligned(uint64_t(plan.slot(x).width) * tile_rows(gpu::most_rows(plan, x)));
}

// Rows of so many elements are read by twice as many invocations. On an H100 the products of 4096 x 14336
// with their activations take 0.99 of the time for it.
constexpr uint32_t kWideRow = 4096;

Status record_halves(Recorder& recorder, const View& view, Path path, const args::HalvesArgs& args, Binding x,
                     Binding halves, Binding scales, Binding gain, uint64_t rows,
                     const Fragments* fragments) {
    uint32_t threads = args.width < kWideRow ? kThreads : 2 * kThreads;
    std::vector<uint32_t> constants = {threads, path == Path::bfloats, in_order(path)};
    if (fragments) {
        // So few rows that nothing hides how long a row takes: it is read at once.
        constexpr uint32_t kMostHeld = 8;
        threads = own_threads(recorder.device());
        const uint32_t held = (args.width / 4 + threads - 1) / threads;
        constants = {threads,
                     0,
                     0,
                     fragments->owners,
                     fragment_tokens(*fragments, rows),
                     held <= kMostHeld ? held : 0};
    }
    return recorder.dispatch({"prepare_halves", 5, 1, constants}, {x, halves, scales, gain, view.step}, args,
                             striding(rows));
}

Status record_codes(Recorder& recorder, const View& view, const args::HalvesArgs& args, Binding x,
                    Binding codes, Binding scales, Binding gain, uint64_t rows) {
    const uint32_t threads =
        std::min(own_threads(recorder.device()), args.width < kWideRow ? kThreads : 2 * kThreads);
    return recorder.dispatch({"prepare_codes", 5, 1, {threads}}, {x, codes, scales, gain, view.step}, args,
                             striding(rows));
}

Status Gpu::prepare(Recorder& recorder, const View& view, Path path, const Activations& x,
                    const Fragments* fragments) {
    const uint32_t width = view.width(x.slot()), rows = view.rows_of(x.slot()),
                   kind = rows_kind(view.plan, x.slot()), normed = x.norm() ? 1 : 0;
    const Binding gain = view.vector(x.norm().gain, view.step);
    if (path == Path::dot_prepared) {
        // An invocation has 16 elements at a time.
        const uint32_t threads = width < kWideRow ? kThreads : own_threads(recorder.device());
        return recorder.dispatch({"quantize", 4, 1, {threads}}, {x.raw(), x.prepared(), gain, view.step},
                                 args::QuantizeArgs{width, kind, normed, x.norm().eps}, {rows});
    }
    const args::HalvesArgs push = {width, 1, kind, normed, x.norm().eps};
    if (path == Path::int8_matrices)
        return record_codes(recorder, view, push, x.raw(), x.prepared(), x.scales(), gain, rows);
    return record_halves(recorder, view, path, push, x.raw(), x.prepared(), x.scales(), gain, rows,
                         path == Path::few ? fragments : nullptr);
}

}  // namespace redline::vulkan
