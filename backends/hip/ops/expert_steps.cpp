// Mixture of experts: Route picks experts per row, and ScaleByExpert weighs them; products by expert
// run the picked ones.
#include "backends/gpu/shared_expert.h"
#include "grouped_experts.h"

#include <array>

namespace redline::hip {

namespace {

// Formats of chosen experts, and of a shared one beside them, that have kernels of their own.
struct Beside {
    std::string_view chosen, shared;
};
constexpr Beside kBeside[] = {{}, RL_HIP_BESIDE};

bool fits_beside(const Tensor& shared, const Tensor& chosen) {
    const std::string& own = weight_layout(*shared.format)->name;
    const std::string& others = weight_layout(*chosen.format)->name;
    return own == others || std::any_of(std::begin(kBeside), std::end(kBeside), [&](const Beside& pair) {
               return pair.chosen == others && pair.shared == own;
           });
}

class RouteKernel : public HipKernel {
public:
    RouteKernel(const Route& op, const Plan& plan)
        : op_(op), tensor_(plan.weight(op.w).tensor), experts_(uint32_t(tensor_.shape.rows)) {}

    // Logits, and behind them the normed rows of steps of several.
    uint64_t scratch(const Plan& plan) const override {
        return logit_bytes(plan.max_rows) + (op_.norm ? tensor_.shape.cols * 4 * plan.max_rows : 0);
    }

    Status launch(Launcher& launcher, const View& view) const override {
        // The choice must not depend on how many rows are routed together: always in f32.
        if (view.rows == 1 && by_row())
            return launch_row(launcher, view, op_.x, op_.norm, choice_args(view), true);
        const float* x = view.slot(op_.x);
        if (op_.norm) {
            float* const normed = view.scratch_at(logit_bytes(view.rows));
            const uint32_t cols = uint32_t(tensor_.shape.cols);
            RL_TRY(launch_norm(launcher, view, {op_.x, op_.norm, cols, op_.x, {}, Act::silu, op_.x_scale},
                               normed));
            x = normed;
        }
        RL_TRY(launch_floats(launcher, view, op_.w, x, view.scratch_at(0), view.rows));
        return launcher.launch("vector", "route", {view.rows, 1, 1, kThreads}, choice_args(view));
    }

    // Whether one row takes one launch.
    bool by_row() const {
        return !weight_layout(*tensor_.format)->quantized() && tensor_.shape.cols % 32 == 0;
    }
    // Each row as if it were alone, of norm(x); if not `chooses`, only its logits. `shared`: one more row of
    // the weight.
    Status launch_row(Launcher& launcher, const View& view, Slot x, const Norm& norm,
                      const args::RouteArgs& choice, bool chooses, Weight shared = {}) const {
        args::RouteRowArgs args = {};
        args.choice = choice;
        args.choice.apart = experts_ + (shared ? 1 : 0);
        if (shared) args.shared = view.weights[shared].matrix();
        args.w = view.weights[op_.w].matrix();
        args.x = view.slot(x);
        args.gain = view.vector(norm.gain);
        args.eps = norm.eps;
        args.factor = op_.x_scale;
        args.logits = view.scratch_at(0);
        args.counter = chooses ? view.caches.counters() : nullptr;
        args.cols = uint32_t(tensor_.shape.cols);
        const std::string module = view.weights[op_.w].layout->name;
        Launch grid = striding(blocks_for(args.choice.apart, kThreads / launcher.device().report().wave()));
        grid.y = view.rows;
        return launcher.launch(module, "route_row_" + module, grid, args);
    }
    bool can_read(const Tensor& shared) const { return shared.format == tensor_.format; }

    args::RouteArgs choice_args(const View& view) const {
        return {view.step,
                view.scratch_at(0),
                view.vector(op_.bias),
                view.ids(op_.ids),
                view.slot(op_.scales),
                op_.bias && op_.bias_of == BiasOf::logits,
                experts_,
                op_.used,
                uint32_t(op_.gating),
                op_.normalise,
                op_.scale,
                op_.groups.count,
                op_.groups.used,
                op_.groups.by_two,
                view.vector(op_.table),
                nullptr,
                experts_};
    }

private:
    uint64_t logit_bytes(uint64_t rows) const { return aligned(uint64_t(experts_) * 4 * rows); }

    Route op_;
    Tensor tensor_;
    uint32_t experts_;
};

// Dot products in int8 when each block can quantize `activations` by itself.
bool by_dots(const Tensor& tensor, uint64_t activations) {
    return weight_layout(*tensor.format)->quantized() && own_bytes(activations) <= kMostShared;
}

// Launches over (token, place), or over tokens: cut so that none takes long and the grid is not too high.
// `activations`: that a block quantizes, or 0.
Status launch_experts(Launcher& launcher, const View& view, const std::string& module,
                      const std::string& kernel, args::ExpertArgs args, uint32_t places,
                      double flops_per_token, uint64_t activations) {
    const Device& device = launcher.device();
    const uint32_t threads = activations ? device.report().dot_threads() : kThreads;
    Launch grid =
        striding(blocks_for(args.rows, threads / device.report().wave()), threads, own_bytes(activations));
    const uint32_t step =
        slice_of(launcher.flops_per_slice(), flops_per_token, 1, double(kMostHigh / places));
    return in_slices(view.rows, step, [&](uint32_t first, uint32_t tokens) {
        args.first_token = first;
        grid.y = tokens * places;
        return launcher.launch(module, kernel, grid, args, flops_per_token * tokens);
    });
}

args::ExpertArgs expert_args(const View& view, Weight w, Slot x, Slot y, Slot ids, uint32_t used) {
    const Shape& shape = view.plan.weight(w).tensor.shape;
    args::ExpertArgs args = {};
    args.step = view.step;
    args.w = view.weights[w].matrix();
    args.x = view.slot(x);
    args.y = view.slot(y);
    args.ids = view.ids(ids);
    args.rows = uint32_t(shape.rows);
    args.cols = uint32_t(shape.cols);
    args.experts = uint32_t(shape.count);
    args.used = used;
    return args;
}

// Products of each row with the experts that it goes to, as kernels/dot.h has them; `rows`: results.
args::DotArgs chosen_args(const View& view, const args::ExpertArgs& op, const Norm& norm, uint32_t rows) {
    args::DotArgs args = {};
    args.step = view.step;
    args.parts[0] = {op.w, op.y, op.bias, rows};
    args.parts[1] = {op.up, op.y, op.up_bias, rows};
    args.rows = rows;
    args.x = op.x;
    args.prepared = view.taken;
    args.hand = view.left;
    args.gain = view.vector(norm.gain);
    args.eps = norm.eps;
    args.cols = op.cols;
    args.act = op.act;
    const uint64_t units = op.cols / 32;
    args.chosen = {op.ids,  op.scales, op.experts,
                   op.used, op.rows,   uint32_t(((uint64_t(1) << 31) + units - 1) / units)};
    args.apart = {op.cols, rows, 0, 0};
    return args;
}

// `rows` of the step share out the blocks.
Status launch_chosen(Launcher& launcher, const std::string& module, const std::string& kernel,
                     const args::DotArgs& args, uint64_t activations, uint32_t most_blocks, uint32_t rows) {
    const uint32_t shared = own_bytes(activations) + (args.choice.logits ? args::kRouteBytes : 0);
    Launch grid = striding(own_blocks(args.rows, std::max(1u, most_blocks / rows)),
                           launcher.device().report().dot_threads(), shared);
    grid.y = rows;
    return launcher.launch(module, kernel, grid, args);
}

class ExpertLinearKernel : public ChosenExpertsKernel {
public:
    ExpertLinearKernel(const Product& op, const Plan& plan, const Device& device)
        : op_(op), grouped_(op, plan, device.report()), report_(device.report()) {
        const Tensor& tensor = plan.weight(op.w()).tensor;
        // Weighted, a block does all places of a token, which have rows of their own or share one.
        const uint64_t rows = op.experts.scales ? op.x_rows() : 1;
        if (by_dots(tensor, tensor.shape.cols * rows)) activations_ = tensor.shape.cols * rows;
        rows_ = tensor.shape.rows;
    }

    Choices choices(RowClass rows) const override { return named_choices(rows, ""); }
    // Of a block that has it as a part: with a name of their own.
    Choices named_choices(RowClass rows, const std::string& prefix) const {
        if (rows != RowClass::one) return grouped_.choices(rows);
        Choices own = sums_one() ? own_choices(rows_, report_, prefix, {}) : Choices();
        if (own.size() > 1) own.pop_back();  // nothing is copied ahead
        return own;
    }

    bool takes_int8() const override { return sums_one(); }
    bool leaves_int8() const override { return sums_one(); }

    Precision precision(uint64_t rows) const override {
        return grouped_.precision(rows, activations_ > 0, chosen_for(grouped_, rows));
    }

    uint64_t scratch(const Plan& plan) const override {
        return grouped_.scratch(plan, bool(op_.experts.scales));
    }

    Status launch(Launcher& launcher, const View& view) const override {
        const args::ExpertArgs args = args_of(view);
        if (const auto how = chosen_for(grouped_, view.rows); grouped_.takes(view.rows, how.unsorted))
            return launch_grouped(launcher, view, args, how);
        const std::string module = view.weights[op_.w()].layout->name;
        if (view.rows == 1 && sums_one()) return launch_row(launcher, view, 0);
        return launch_experts(launcher, view, module, (activations_ ? "expert_dot_" : "expert_") + module,
                              args, op_.experts.scales ? 1 : op_.experts.used,
                              2.0 * op_.experts.used * double(args.rows) * double(args.cols), activations_);
    }

    // Each row as if it were alone; the rows of int8 that are taken are so many bytes apart.
    Status launch_row(Launcher& launcher, const View& view, uint32_t apart) const {
        const std::string module = view.weights[op_.w()].layout->name;
        args::DotArgs args = row_args(view);
        args.apart.left = apart;
        return launch_chosen(launcher, module, "expert_own_" + module, args, activations_, most_blocks(),
                             view.rows);
    }
    // Of one row: its experts' activations, and how it is launched.
    uint64_t activations() const { return activations_; }
    args::DotArgs row_args(const View& view) const {
        const args::ExpertArgs args = args_of(view);
        return chosen_args(view, args, {}, args.rows);
    }
    uint32_t most_blocks() const {
        return chosen(RowClass::one, "blocks", product_default("blocks", report_).value);
    }

private:
    // Of one row, all places' products are summed as one long row of int8.
    bool sums_one() const { return activations_ && op_.experts.scales && op_.experts.per_expert; }

    args::ExpertArgs args_of(const View& view) const {
        args::ExpertArgs args = expert_args(view, op_.w(), op_.x, op_.y(), op_.experts.ids, op_.experts.used);
        args.per_expert = op_.experts.per_expert;
        args.scales = op_.experts.scales ? view.slot(op_.experts.scales) : nullptr;
        args.bias = view.vector(op_.bias());
        return args;
    }

    Status launch_grouped(Launcher& launcher, const View& view, const args::ExpertArgs& args,
                          const GroupedExperts::Chosen& how) const {
        if (!args.scales) return grouped_.launch(launcher, view, args, args.y, how);
        float* results = grouped_.results(view);
        RL_TRY(grouped_.launch(launcher, view, args, results, how));
        const args::GatherArgs gather = {view.step, results,   args.scales,
                                         args.y,    args.rows, op_.experts.used};
        return launcher.launch("vector", "gather_places",
                               striding(blocks_for(uint64_t(args.rows) * view.rows, kThreads)), gather);
    }

    Product op_;
    GroupedExperts grouped_;
    const DeviceReport& report_;
    uint64_t activations_ = 0;  // that a block quantizes; 0: none
    uint64_t rows_ = 0;
};

class ExpertGatedKernel : public ChosenExpertsKernel {
public:
    ExpertGatedKernel(const Product& op, const Plan& plan, const Device& device)
        : op_(op), grouped_(op, plan, device.report()), report_(device.report()) {
        const Tensor& tensor = plan.weight(op.w()).tensor;
        if (by_dots(tensor, tensor.shape.cols)) activations_ = tensor.shape.cols;
        rows_ = tensor.shape.rows * op.experts.used;
    }

    Choices choices(RowClass rows) const override { return named_choices(rows, ""); }
    // `beside`: rows of a shared expert are in the same launch, of which there is no streamed kernel.
    Choices named_choices(RowClass rows, const std::string& prefix, bool beside = false) const {
        if (rows != RowClass::one) return grouped_.choices(rows);
        return by_row() ? own_choices(rows_, report_, prefix, streamed(beside)) : Choices();
    }

    bool takes_int8() const override { return by_row(); }
    bool leaves_int8() const override { return by_row(); }

    Precision precision(uint64_t rows) const override {
        return grouped_.precision(rows, activations_ > 0, chosen_for(grouped_, rows));
    }

    uint64_t scratch(const Plan& plan) const override { return grouped_.scratch(plan, false); }

    Status launch(Launcher& launcher, const View& view) const override {
        if (view.rows == 1 && by_row()) return launch_row(launcher, view, op_.x, {}, {}, 0);
        const args::ExpertArgs args = args_of(view, op_.x);
        if (const auto how = chosen_for(grouped_, view.rows); grouped_.takes(view.rows, how.unsorted))
            return grouped_.launch(launcher, view, args, args.y, how);
        const std::string module = view.weights[op_.w(0)].layout->name;
        return launch_experts(
            launcher, view, module, (activations_ ? "expert_gated_dot_" : "expert_gated_") + module, args,
            op_.experts.used, 4.0 * op_.experts.used * double(args.rows) * double(args.cols), activations_);
    }

    // Whether one row goes to all its experts in one launch.
    bool by_row() const { return activations_ > 0 && op_.experts.used <= args::kMostUsed; }
    // Whether its blocks have room to choose the experts of a row.
    bool can_choose() const { return by_row() && own_bytes(activations_) + args::kRouteBytes <= kMostShared; }
    // Each row as if it were alone, of norm(x). With the logits of a `choice` the experts are chosen, too,
    // and the launch before is taken to have made nothing but these. The rows that are left as int8 are so
    // many bytes apart.
    Status launch_row(Launcher& launcher, const View& view, Slot x, const Norm& norm,
                      const args::RouteArgs& choice, uint32_t apart) const {
        args::DotArgs args = row_args(view, x, norm, choice);
        args.apart.left = apart;
        const std::string module = view.weights[op_.w(0)].layout->name;
        const std::array<Weight, 2> weights = {op_.w(0), op_.w(1)};
        const OwnLaunch how = {most_blocks(), chosen(RowClass::one, "streamed", streamed(false).value) != 0};
        const auto shape = stream_launch(view, weights, 2, args, activations_, report_, how);
        if (shape && view.rows == 1)
            return launcher.launch(module, "expert_gated_stream_" + module, *shape, args);
        return launch_chosen(launcher, module, "expert_gated_own_" + module, args, activations_, how.blocks,
                             view.rows);
    }
    args::DotArgs row_args(const View& view, Slot x, const Norm& norm, const args::RouteArgs& choice) const {
        const args::ExpertArgs op = args_of(view, x);
        args::DotArgs args = chosen_args(view, op, norm, op.rows * op_.experts.used);
        args.choice = choice;
        return args;
    }
    uint64_t activations() const { return activations_; }
    uint64_t results() const { return rows_; }  // of all experts of a token
    uint32_t most_blocks() const {
        return chosen(RowClass::one, "blocks", product_default("blocks", report_).value);
    }

private:
    Default streamed(bool beside) const {
        return gpu::default_of(gpu::kExpertDefaults, "streamed", class_of(report_),
                               {.results = rows_, .beside = beside});
    }

    args::ExpertArgs args_of(const View& view, Slot x) const {
        args::ExpertArgs args = expert_args(view, op_.w(0), x, op_.y(), op_.experts.ids, op_.experts.used);
        args.up = view.weights[op_.w(1)].matrix();
        args.bias = view.vector(op_.bias(0));
        args.up_bias = view.vector(op_.bias(1));
        args.act = uint32_t(*op_.act);
        return args;
    }

    Product op_;
    GroupedExperts grouped_;
    const DeviceReport& report_;
    uint64_t activations_ = 0;  // that a block quantizes; 0: none
    uint64_t rows_ = 0;         // of all experts of a token
};

class AddExpertBiasKernel : public HipKernel {
public:
    explicit AddExpertBiasKernel(const AddExpertBias& op) : op_(op) {}
    Status launch(Launcher& launcher, const View& view) const override {
        const uint32_t width = view.width(op_.y) / (op_.scales ? 1 : op_.used);
        const uint64_t experts = view.plan.weight(op_.bias).tensor.shape.elements() / width;
        const args::ExpertBiasArgs args = {view.step,
                                           view.vector(op_.bias),
                                           view.slot(op_.y),
                                           view.ids(op_.ids),
                                           op_.scales ? view.slot(op_.scales) : nullptr,
                                           width,
                                           uint32_t(experts),
                                           op_.used};
        return launcher.launch("vector", "add_expert_bias",
                               striding(blocks_for(uint64_t(view.width(op_.y)) * view.rows, kThreads)), args);
    }

private:
    AddExpertBias op_;
};

// Each of some rows is computed as if it were alone: its router and its experts norm it by themselves, so
// that a block takes three launches at most. More rows are normed by a launch before them, and a shared
// expert's steps are launches of their own.
class ExpertBlockKernel : public HipKernel {
public:
    ExpertBlockKernel(const ExpertBlock& op, const Plan& plan, const Device& device)
        : op_(op), route_(op.route, plan), gated_(op.gated, plan, device), linear_(op.linear, plan, device) {
        for (const Op& part : gpu::shared_parts(op)) {
            auto kernel = make_expert_kernel(part, plan, device);
            if (!kernel) kernel = make_product_kernel(part, plan, device);
            if (kernel) shared_.emplace_back(static_cast<HipKernel*>(kernel.release()));
        }
        if (linear_.takes_int8())
            usual_alone_ =
                gpu::rows_alone({.hip = true}, plan.weight(op.route.w).tensor.shape.rows, op.route.used);
    }

    // Of one row: those of its parts, and whether it is computed whole.
    Choices choices(RowClass rows) const override {
        if (rows != RowClass::one) {
            Choices all;
            if (rows == RowClass::some && usual_alone_.value > 1)
                all.push_back(crossover("alone_rows", usual_alone_, {kFewRows, 16, 32, 64}));
            for (Choice& one : gated_.choices(rows)) all.push_back(std::move(one));
            for (Choice& one : linear_.choices(rows))
                if (std::ranges::find(all, one.name, &Choice::name) == all.end())
                    all.push_back(std::move(one));
            return all;
        }
        Choices all = gated_.named_choices(rows, "gated_", bool(op_.shared));
        for (Choice& one : linear_.named_choices(rows, "sum_")) all.push_back(std::move(one));
        all.push_back(choice("fused", GroupedExperts::expert_default("fused"), {0}));
        return all;
    }
    void take(RowClass rows, const Variant& variant) override {
        Kernel::take(rows, variant);
        if (rows != RowClass::one) {
            gated_.take(rows, variant);
            return linear_.take(rows, variant);
        }
        gated_.take(rows, part_of(variant, "gated_"));
        linear_.take(rows, part_of(variant, "sum_"));
    }
    bool wanted() const override {
        return chosen(RowClass::one, "fused", GroupedExperts::expert_default("fused").value) != 0;
    }

    bool possible(const Plan& plan) const {
        return route_.by_row() && gated_.by_row() && (!op_.shared || takes_shared(plan));
    }
    bool takes_int8() const override { return true; }
    bool leaves_int8() const override { return linear_.leaves_int8(); }

    Precision precision(uint64_t rows) const override {
        if (rows <= alone()) rows = 1;
        Precision all = loosest(gated_.precision(rows), linear_.precision(rows));
        for (const auto& kernel : shared_) all = loosest(all, kernel->precision(rows));
        return all;
    }

    // Rows alone have the router's logits there, then what the experts' first products leave for their
    // second.
    uint64_t scratch(const Plan& plan) const override {
        uint64_t most = between(plan) + uint64_t(hidden_bytes(plan)) * std::min(alone(), plan.max_rows);
        for (const auto& kernel : shared_) most = std::max(most, kernel->scratch(plan));
        return std::max({most, route_.scratch(plan), gated_.scratch(plan), linear_.scratch(plan)});
    }

    Status launch(Launcher& launcher, const View& view) const override {
        if (view.rows <= alone()) return launch_row(launcher, view);
        const RmsNorm& norm = op_.norm;
        RL_TRY(launch_norm(launcher, view, norm, view.slot(norm.y)));
        RL_TRY(route_.launch(launcher, view));
        RL_TRY(gated_.launch(launcher, view));
        RL_TRY(linear_.launch(launcher, view));
        for (const auto& kernel : shared_) RL_TRY(kernel->launch(launcher, view));
        return {};
    }

private:
    // Whether one row's launches take the shared expert along.
    bool takes_shared(const Plan& plan) const {
        const SharedExpert& s = op_.shared;
        const auto tensor = [&](Weight w) -> const Tensor& { return plan.weight(w).tensor; };
        const auto fits = [&](Weight own, Weight chosen) { return fits_beside(tensor(own), tensor(chosen)); };
        const bool known = shared_.size() == gpu::shared_parts(op_).size() && fits(s.gate, op_.gated.w()) &&
                           tensor(s.up).format == tensor(s.gate).format && fits(s.down, op_.linear.w()) &&
                           (!s.router || route_.can_read(tensor(s.router)));
        const uint64_t width = tensor(s.down).shape.cols, sum = linear_.activations() + width;
        return known && s.act == *op_.gated.act && linear_.takes_int8() && gated_.results() % kGroup == 0 &&
               width % 32 == 0 && own_bytes(sum) <= kMostShared;
    }

    // Steps of at most so many rows compute each as if it were alone.
    uint32_t alone() const { return chosen(RowClass::some, "alone_rows", usual_alone_.value); }

    // The bytes of the router's logits, of which the shared expert's is the last of each row.
    uint64_t between(const Plan& plan) const {
        return aligned((plan.weight(op_.route.w).tensor.shape.rows + 1) * 4 *
                       std::min(alone(), plan.max_rows));
    }
    // The bytes of a row that is left as int8.
    uint32_t hidden_bytes(const Plan& plan) const {
        return uint32_t((hidden_units(plan) * args::kHandedUnitBytes + 15) / 16 * 16);
    }
    uint64_t hidden_units(const Plan& plan) const {
        const uint32_t shared = op_.shared ? plan.slot(op_.shared.hidden).width : 0;
        return (plan.slot(op_.gated.y()).width + shared) / 32;
    }

    // The experts are chosen by the launch of their first products.
    Status launch_row(Launcher& launcher, const View& view) const {
        View first = view, second = view;
        first.left = {};
        second.taken = nullptr;
        if (linear_.takes_int8()) {
            std::byte* hidden = view.scratch + between(view.plan);
            first.left = {hidden, nullptr, uint32_t(hidden_units(view.plan))};
            second.taken = hidden;
        }
        const bool late = gated_.can_choose();
        const uint32_t apart = hidden_bytes(view.plan);
        args::RouteArgs choice = route_.choice_args(view);
        if (op_.shared.router) {
            choice.shared_scale = view.slot(op_.shared.scale);
            ++choice.apart;
        }
        RL_TRY(
            route_.launch_row(launcher, view, op_.norm.x, op_.norm.norm, choice, !late, op_.shared.router));
        if (!late) choice = {};
        if (op_.shared) return launch_shared(launcher, first, second, choice);
        RL_TRY(gated_.launch_row(launcher, first, op_.norm.x, op_.norm.norm, choice, apart));
        return linear_.takes_int8() ? linear_.launch_row(launcher, second, apart)
                                    : linear_.launch(launcher, second);
    }

    // Both products of each row with the chosen experts and the shared one.
    Status launch_shared(Launcher& launcher, const View& first, const View& second,
                         const args::RouteArgs& choice) const {
        const SharedExpert& s = op_.shared;
        args::DotArgs gated = gated_.row_args(first, op_.norm.x, op_.norm.norm, choice);
        const uint32_t width = first.width(s.hidden);
        gated.shared = {first.weights[s.gate].matrix(), first.weights[s.up].matrix(), first.slot(s.hidden),
                        nullptr, 0};
        gated.second = gated.rows;
        gated.rows += width;
        gated.apart.shared_y = width;
        gated.apart.left = hidden_bytes(first.plan);
        RL_TRY(launch_beside(launcher, first, "shared_gated_own_", op_.gated.w(), s.gate, gated,
                             gated_.activations(), gated_.most_blocks()));
        args::DotArgs sum = linear_.row_args(second);
        sum.apart.left = hidden_bytes(second.plan);
        sum.shared = {second.weights[s.down].matrix(),
                      {},
                      nullptr,
                      s.router ? second.slot(s.scale) : nullptr,
                      width / 32};
        return launch_beside(launcher, second, "shared_own_", op_.linear.w(), s.down, sum,
                             linear_.activations() + width, linear_.most_blocks());
    }
    static Status launch_beside(Launcher& launcher, const View& view, const std::string& kernel, Weight w,
                                Weight shared, const args::DotArgs& args, uint64_t activations,
                                uint32_t most_blocks) {
        const std::string module = view.weights[w].layout->name, other = view.weights[shared].layout->name;
        return launch_chosen(launcher, module, kernel + module + (other == module ? "" : "_" + other), args,
                             activations, most_blocks, view.rows);
    }

    ExpertBlock op_;
    Default usual_alone_ = {.value = 1};
    RouteKernel route_;
    ExpertGatedKernel gated_;
    ExpertLinearKernel linear_;
    std::vector<std::unique_ptr<HipKernel>> shared_;  // of the steps of a shared expert
};

Status launch_factors(Launcher& launcher, const View& view, const ScaleByExpert& op) {
    const uint32_t used = view.width(op.scales);
    const args::ExpertFactorArgs args = {view.step,
                                         view.vector(op.factor),
                                         view.ids(op.ids),
                                         view.slot(op.scales),
                                         uint32_t(view.plan.weight(op.factor).tensor.shape.elements()),
                                         used};
    return launcher.launch("vector", "scale_by_expert",
                           striding(blocks_for(uint64_t(used) * view.rows, kThreads)), args);
}

bool has_kernel(const Route& op, const Plan& plan) {
    const uint64_t experts = plan.weight(op.w).tensor.shape.rows;
    return experts <= args::kMostExperts && op.used <= args::kMostUsed &&
           op.groups.count <= args::kMostGroups && has_layout(plan, op.w);
}
bool has_kernel(const Product& op, const Plan& plan) {
    if (!op.act) return !op.function && has_layout(plan, op.w());
    return has_layout(plan, op.w(0), op.w(1)) && bool(op.bias(0)) == bool(op.bias(1));
}

}  // namespace

std::unique_ptr<Kernel> make_expert_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const auto* o = std::get_if<Route>(&op))
        return has_kernel(*o, plan) ? std::make_unique<RouteKernel>(*o, plan) : nullptr;
    if (const auto* o = std::get_if<ScaleByExpert>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_factors(l, v, o); });
    if (const auto* o = std::get_if<AddExpertBias>(&op)) return std::make_unique<AddExpertBiasKernel>(*o);
    if (const Product* o = product_by(By::expert, op)) {
        if (!has_kernel(*o, plan)) return nullptr;
        if (o->act) return std::make_unique<ExpertGatedKernel>(*o, plan, device);
        return std::make_unique<ExpertLinearKernel>(*o, plan, device);
    }
    if (const auto* o = std::get_if<ExpertBlock>(&op)) {
        if (!has_kernel(o->route, plan) || !has_kernel(o->gated, plan) || !has_kernel(o->linear, plan))
            return nullptr;
        auto block = std::make_unique<ExpertBlockKernel>(*o, plan, device);
        return block->possible(plan) ? std::move(block) : nullptr;
    }
    return nullptr;
}

}  // namespace redline::hip
