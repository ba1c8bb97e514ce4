#include "grouped_experts.h"

namespace redline::hip {

// Rows of narrow tiles, as kernels/tile.h has it.
static constexpr uint32_t kNarrowRows = 128;

Status GroupedExperts::launch(Launcher& launcher, const View& view, const args::ExpertArgs& op, float* y,
                              Chosen how) const {
    const Parts at = parts(view.rows);
    const auto words = [&](uint64_t offset) { return reinterpret_cast<uint32_t*>(view.scratch_at(offset)); };
    const args::Groups groups = {reinterpret_cast<int32_t*>(words(at.list)), words(at.begin),
                                 words(at.counts)};
    RL_TRY(launcher.launch("vector", "group_places", {op.experts, 1, 1, kThreads},
                           args::GroupArgs{view.step, op.ids, groups, op.experts, used_}));
    const uint32_t per_token = per_expert_ ? used_ : 1;
    const uint32_t x_rows = view.rows * per_token;
    // Rows in int8 have their numbers behind them, where the second half of halfs would be.
    const uint64_t scales = how.int8 ? at.halves + aligned(uint64_t(x_rows) * op.cols) : at.scales;
    const args::PrepareArgs prepare = {
        view.step, op.x, nullptr, view.scratch_at(at.halves), view.scratch_at(scales), op.cols,
        per_token, 0,    0.0f};
    RL_TRY(launcher.launch("vector", how.int8 ? "prepare_bytes" : "prepare_halves", {x_rows, 1, 1, kThreads},
                           prepare));
    args::ExpertTileArgs args = {};
    args.step = view.step;
    args.w = op.w;
    args.up = op.up;
    args.groups = groups;
    args.halves = reinterpret_cast<const uint16_t*>(prepare.to);
    args.row_scales = prepare.row_scales;
    args.y = y;
    args.bias = op.bias;
    args.up_bias = op.up_bias;
    args.rows = op.rows;
    args.cols = op.cols;
    args.used = used_;
    args.per_expert = per_expert_;
    args.act = op.act;
    return launch_slices(launcher, view, args, how);
}

Status GroupedExperts::launch_slices(Launcher& launcher, const View& view, args::ExpertTileArgs args,
                                     Chosen how) const {
    const DeviceReport& report = launcher.device().report();
    const std::string module = weight_layout(*tensor_.format)->name;
    const uint32_t experts = uint32_t(tensor_.shape.count);
    const uint32_t tile = gpu::tile_places(how.tile_tokens, narrow_, places(view.rows), experts);
    const bool narrow = tile == gpu::kNarrowPlaces;
    const uint32_t tile_rows = args.up.data ? 64 : narrow ? kNarrowRows : report.expert_rows();
    const uint64_t mean = (places(view.rows) + experts - 1) / experts;
    const uint32_t across = uint32_t(std::min<uint64_t>((how.spread * mean + tile - 1) / tile, 64));
    const double per_row = (args.up.data ? 4.0 : 2.0) * double(places(view.rows)) * double(args.cols);
    const uint32_t step = slice_of(launcher.flops_per_slice(), per_row, tile_rows, 1e4);
    const uint32_t shared = how.int8 ? 0 : report.tile_shared(args.up.data ? 2 * tile_rows : tile_rows, tile);
    const std::string kernel = fmt::format("{}_{}{}_{}", args.up.data ? "expert_gated" : "expert",
                                           how.int8 ? "bytes" : "matrix", narrow ? "_32" : "", module);
    return in_slices(args.rows, step, [&](uint32_t first, uint32_t rows) {
        args.first_row = first;
        return launcher.launch(module, kernel,
                               {across, (rows + tile_rows - 1) / tile_rows, experts, kTileThreads, shared},
                               args, per_row * rows);
    });
}

}  // namespace redline::hip
