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

namespace {

uint64_t most_rows(const Plan& plan, Slot x) {
    return plan.slot(x).of_outputs ? plan.max_outputs : plan.max_rows;
}
// Halfs, for kernels/few.h of whole tiles and groups of units; rows in int8, with their numbers, are less.
uint64_t prepared_bytes(const Plan& plan, Slot x) {
    constexpr uint64_t kTogether = 128;  // columns that a wave reads together at most
    const uint64_t width = (plan.slot(x).width + kTogether - 1) / kTogether * kTogether,
                   rows = most_rows(plan, x);
    return aligned(width * 2 *
                   std::max<uint64_t>(rows, std::clamp<uint64_t>(std::bit_ceil(rows), 16, kMostFew)));
}

}  // namespace

uint64_t Activations::scratch(const Plan& plan, Slot x) {
    return aligned(plan.slot_bytes(x)) + prepared_bytes(plan, x) + aligned(most_rows(plan, x) * 4);
}

Status Activations::prepare(Launcher& launcher, const View& view, std::span<const Path> paths) {
    const auto wanted = [&](Path path) { return std::find(paths.begin(), paths.end(), path) != paths.end(); };
    const uint32_t width = view.width(x_), rows = view.rows_of(x_);
    raw_ = floats_ = view.slot(x_);
    if (norm_ && (wanted(Path::floats) || wanted(Path::tiles))) {
        RL_TRY(launch_norm(launcher, view, RmsNorm{x_, norm_, width}, view.scratch_at(0)));
        floats_ = view.scratch_at(0);
    }
    if (view.halfs_taken) {
        prepared_ = view.halfs_taken;
        taken_ = view.few_taken;
        taken_.x = raw_;
        return {};
    }
    const uint64_t at = aligned(view.plan.slot_bytes(x_));
    prepared_ = view.scratch_at(at);
    row_scales_ = view.scratch_at(at + prepared_bytes(view.plan, x_));
    if (wanted(Path::int8_matrices)) row_scales_ = view.scratch_at(at + aligned(uint64_t(rows) * width));
    const args::PrepareArgs args = {
        view.step, raw_, view.vector(norm_.gain), prepared_, row_scales_,
        width,     1,    view.of_outputs(x_),     norm_.eps, few_tokens(rows, launcher.device().report())};
    // Both forms take the same place: products of one set of activations differ in format, not in rows.
    RL_CHECK(wanted(Path::dot_prepared) + wanted(Path::matrices) + wanted(Path::few) +
                     wanted(Path::int8_matrices) <=
                 1,
             "activations are wanted in two forms");
    if (wanted(Path::dot_prepared))
        RL_TRY(launcher.launch("vector", "prepare_dots", {rows, 1, 1, kThreads}, args));
    if (wanted(Path::matrices))
        RL_TRY(launcher.launch("vector", "prepare_halves", {rows, 1, 1, kThreads}, args));
    if (wanted(Path::int8_matrices))
        RL_TRY(launcher.launch("vector", "prepare_bytes", {rows, 1, 1, kThreads}, args));
    if (wanted(Path::few))
        RL_TRY(launcher.launch("vector", "prepare_few",
                               {rows, 1, 1, launcher.device().report().dot_threads()}, args));
    return {};
}

}  // namespace redline::hip
