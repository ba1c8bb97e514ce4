// How products get their activations, and which way a product goes.
#include "steps.h"

namespace redline::hip {

Path path_of(const Format& format, uint64_t cols, uint64_t rows, const DeviceReport& report,
             const Crossovers& up_to) {
    const WeightLayout& layout = *weight_layout(format);
    const bool whole = cols % 32 == 0 && format.name != "F32", few = whole && report.matrix_units();
    if (few && rows > up_to.vector_rows && rows <= up_to.few_rows) return Path::few;
    if (rows > (whole && !few ? up_to.vector_rows : kFewRows)) return whole ? Path::matrices : Path::tiles;
    if (!layout.quantized()) return rows == 1 && cols % 32 == 0 ? Path::floats_own : Path::floats;
    return rows == 1 && own_bytes(cols) <= kMostShared ? Path::dot_own : Path::dot_prepared;
}

bool has_byte_kernels(const Format& format) {
    constexpr std::string_view kFormats[] = {RL_HIP_BYTES};  // written by the build
    const WeightLayout* layout = weight_layout(format);
    return layout && std::ranges::find(kFormats, layout->name) != std::end(kFormats);
}

// Halfs, for kernels/few.h of whole tiles and groups of units; rows in int8, with their numbers, are less.
uint64_t Gpu::prepared_bytes(const Plan& plan, Slot x) {
    constexpr uint64_t kTogether = 128;  // columns that a wave reads together at most
    const uint64_t width = (plan.slot(x).width + kTogether - 1) / kTogether * kTogether,
                   rows = gpu::most_rows(plan, x);
    return aligned(width * 2 *
                   std::max<uint64_t>(rows, std::clamp<uint64_t>(std::bit_ceil(rows), 16, kMostFew)));
}

Status Gpu::prepare(Launcher& launcher, const View& view, Path path, const Activations& x) {
    const DeviceReport& report = launcher.device().report();
    const uint32_t rows = view.rows_of(x.slot());
    const args::PrepareArgs args = {view.step,
                                    x.raw(),
                                    view.vector(x.norm().gain),
                                    x.prepared(),
                                    x.scales(),
                                    view.width(x.slot()),
                                    1,
                                    view.of_outputs(x.slot()),
                                    x.norm().eps,
                                    few_tokens(rows, report)};
    const char* kernel = path == Path::dot_prepared    ? "prepare_dots"
                         : path == Path::int8_matrices ? "prepare_bytes"
                         : path == Path::few           ? "prepare_few"
                                                       : "prepare_halves";
    const uint32_t threads = path == Path::few ? report.dot_threads() : kThreads;
    return launcher.launch("vector", kernel, {rows, 1, 1, threads}, args);
}

}  // namespace redline::hip
