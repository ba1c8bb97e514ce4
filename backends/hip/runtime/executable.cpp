#include "executable.h"

#include <chrono>

namespace redline::hip {

Workspace::~Workspace() {
    device.call().set_device(device.report().index);
    for (const Event event : sent)
        if (event) device.call().event_destroy(event);
}

Status Workspace::allocate(Memory& memory, const gpu::StepBytes& bytes) {
    constexpr unsigned kNoTiming = 2;
    step = RL_TRY(memory.allocate(bytes.inputs, Use::scratch, "step inputs"));
    for (Buffer& buffer : inputs) buffer = RL_TRY(memory.allocate(bytes.inputs, Use::pinned, "step inputs"));
    output = RL_TRY(memory.allocate(bytes.results, Use::pinned, "results"));
    for (Event& event : sent)
        RL_TRY(device.checked(device.call().event_create(&event, kNoTiming), "making an event"));
    return {};
}

Result<std::vector<std::unique_ptr<Executable>>> HipExecutable::create_group(PlanGroup plans,
                                                                             const Resources& with,
                                                                             Record mode) {
    Group made = RL_TRY(make(std::move(plans), with, mode));
    for (const auto& one : made) RL_TRY(one->load_kernels());
    return given_out(std::move(made));
}

// The kernels of the longest steps, so that what cannot be loaded shows before the first.
Status HipExecutable::load_kernels() const {
    const Plan& plan = bound_.plan;
    Launcher loader(with_.device, Launcher::Mode::load);
    const StepLayout inputs(plan, plan.max_rows, StepKind::alone);
    return launch_all(loader, view_of(plan.max_rows, inputs, 0), most_best() > 0);
}

Result<std::unique_ptr<Executable>> HipExecutable::create_rank(BoundPlan plan, std::vector<RankSum> sums,
                                                               std::shared_ptr<HipRankLink> link, size_t rank,
                                                               const Resources& with, Record mode) {
    PlanGroup alone;
    alone.push_back(std::move(plan));
    Group made = RL_TRY(make(std::move(alone), with, mode));
    HipExecutable& one = *made[0];
    one.sums_ = std::move(sums);
    one.link_ = std::move(link);
    one.rank_ = rank;
    RL_TRY(one.load_kernels());
    return std::unique_ptr<Executable>(std::move(made[0]));
}

HipExecutable::~HipExecutable() {
    call().set_device(with_.device.report().index);
    // Else it was only sized, or not even that.
    if (workspace_ && workspace_->arena.data()) call().stream_synchronize(with_.device.stream());
    drop_graphs();
}

void HipExecutable::drop_graphs() {
    for (const auto& [what, exec] : graphs_) call().graph_exec_destroy(exec);
    graphs_.clear();
}

// Recorded steps come in a few classes of rows. Steps of more rows are launched for as many tiles as they
// have.
uint32_t HipExecutable::row_class(uint32_t rows) const {
    // Products on matrix units take as long for 8 rows as for 2; by dot products, 2, 4 and 8 sum alike.
    if (bound_.plan.alike(rows)) rows = with_.device.report().matrix_units() ? kFewAlike : std::max(rows, 2u);
    const uint32_t most = rows <= kReplayedRows ? std::bit_ceil(rows) : (rows + 63) / 64 * 64;
    return std::min(most, bound_.plan.max_rows);
}

// Recorded steps of a row come in a few classes of depth, too: attention to many keys is launched in another
// way. The fewest keys of the class.
static uint64_t depth_class(uint32_t rows, uint64_t keys) {
    if (rows > 1) return 0;
    for (const uint64_t least : {65536, 16384, 4096})
        if (keys >= least) return least;
    return 0;
}

View HipExecutable::view_of(uint32_t rows, const StepLayout& inputs, uint64_t keys) const {
    View view = view_of_all(rows, inputs.kind);
    view.arena = workspace_->arena.data();
    view.scratch = workspace_->scratch.data();
    view.input = reinterpret_cast<const float*>(workspace_->step.data() + inputs.input);
    view.lookups = reinterpret_cast<const float*>(workspace_->step.data() + inputs.lookups);
    view.step = reinterpret_cast<const args::Step*>(workspace_->step.data());
    for (const uint64_t offset : inputs.ropes)
        view.ropes.push_back(reinterpret_cast<const float*>(workspace_->step.data() + offset));
    view.least_keys = depth_class(rows, keys);
    if (inputs.tiles > 0)
        view.tiles = reinterpret_cast<const args::RowTile*>(workspace_->step.data() + inputs.tiles);
    if (inputs.states > 0)
        view.states = reinterpret_cast<const args::SegmentState*>(workspace_->step.data() + inputs.states);
    if (inputs.kind == StepKind::alone) return view;
    view.places = reinterpret_cast<const args::Place*>(workspace_->step.data() + inputs.places);
    view.pages = reinterpret_cast<const uint32_t*>(workspace_->step.data() + inputs.pages);
    return view;
}

Status HipExecutable::launch_one(Launcher& launcher, const View& view, size_t index) const {
    return kernel(index).launch(launcher, view_of(view, index));
}

Status HipExecutable::launch_all(Launcher& launcher, const View& view, bool best) const {
    for (size_t i = 0; i < bound_.kernels.size(); ++i) {
        if (link_) RL_TRY(launch_sums(launcher, view, i));
        RL_TRY(launch_one(launcher, view, i));
    }
    return best ? launch_best(launcher, view) : Status();
}

Status HipExecutable::launch_sums(Launcher& launcher, const View& view, size_t index) const {
    for (const RankSum& sum : sums_)
        for (size_t i = 0; sum.before == index && i < sum.slots.size(); ++i) {
            const Slot slot = sum.slots[i];
            HipRankLink::Rows rows{view.slot(slot), view.slot(slot), view.width(slot),
                                   view.of_outputs(slot) != 0,
                                   uint64_t(view.rows_of(slot)) * view.width(slot)};
            if (view.rows == 1 && i < sum.leaves.size() && sum.leaves[i])
                rows.hand = view.handed_row(sum.leaves[i]);
            RL_TRY(link_->launch(launcher, rank_, view.step, rows));
        }
    return {};
}

// The graph of classes and a kind, captured on first use and never changed: what varies is in the step's
// inputs.
Result<GraphExec> HipExecutable::graph(const View& view, bool best) {
    if (link_ && std::exchange(link_generation_, link_->generation()) != link_->generation()) drop_graphs();
    const std::tuple what(view.rows, view.tiles ? StepKind::mixed : view.kind, view.least_keys, best);
    if (const auto found = graphs_.find(what); found != graphs_.end()) return found->second;
    constexpr int kThreadLocal = 1;  // other threads may call the runtime meanwhile
    Launcher loader(with_.device, Launcher::Mode::load), launcher(with_.device, Launcher::Mode::capture);
    RL_TRY(launch_all(loader, view, best));
    RL_TRY(checked(call().begin_capture(with_.device.stream(), kThreadLocal), "beginning a graph"));
    const Status launched = launch_all(launcher, view, best);
    Graph captured = nullptr;
    const Status ended = checked(call().end_capture(with_.device.stream(), &captured), "ending a graph");
    if (!launched || !ended) {
        if (captured) call().graph_destroy(captured);
        return launched ? ended.error() : launched.error();
    }
    GraphExec exec = nullptr;
    const Status made = checked(call().graph_instantiate(&exec, captured, 0), "making a graph");
    call().graph_destroy(captured);
    RL_TRY(made);
    return graphs_[what] = exec;
}

// The ring's slot is written only when the copy that last read it is over.
Status HipExecutable::send_inputs(const StepParams& params, const StepLayout& inputs) {
    const uint64_t slot = workspace_->turn % gpu::kRing;
    if (workspace_->turn++ >= gpu::kRing)
        RL_TRY(
            checked(call().event_synchronize(workspace_->sent[slot]), "waiting for the last step's inputs"));
    inputs.write(bound_.plan, params, workspace_->inputs[slot].data());
    RL_TRY(checked(call().copy_in(workspace_->step.data(), workspace_->inputs[slot].data(), inputs.bytes,
                                  with_.device.stream()),
                   "sending a step's inputs"));
    return checked(call().event_record(workspace_->sent[slot], with_.device.stream()),
                   "sending a step's inputs");
}

Status HipExecutable::read_output(const StepParams& params) {
    const Plan& plan = bound_.plan;
    const bool best = params.best > 0;
    const std::byte* const from =
        best ? workspace_->scratch.data() : workspace_->arena.data() + plan.slot(plan.output).offset;
    const uint64_t bytes = best ? params.outputs.size() * kMostBest * sizeof(Scored)
                                : uint64_t(results_.outputs()) * plan.slot(plan.output).width * 4;
    RL_TRY(checked(call().copy_out(workspace_->output.data(), from, bytes, with_.device.stream()),
                   "reading the results"));
    if (plan.hidden)
        RL_TRY(checked(call().copy_out(workspace_->output.data() + gpu::hidden_at(plan),
                                       workspace_->arena.data() + plan.slot(plan.hidden).offset,
                                       uint64_t(results_.rows()) * plan.slot(plan.hidden).width * 4,
                                       with_.device.stream()),
                       "reading the hidden rows"));
    RL_TRY(with_.device.synchronize("running a step"));
    results_.read_best(params, workspace_->output.data());
    return with_.memory.check_guards();
}

Status HipExecutable::run(const StepParams& params) {
    results_.begin(bound_.plan, params, most_best());
    RL_TRY(with_.device.use());
    if (params.cancel && params.cancel->load(std::memory_order_relaxed)) return error("interrupted");
    const uint32_t rows = row_class(uint32_t(params.tokens.size()));
    const StepLayout inputs(bound_.plan, rows, kind_of(bound_.plan, params));
    const View view = view_of(rows, inputs, params.kv_len());
    if (mode_ == Record::replay && rows <= kReplayedRows) {
        const GraphExec exec = RL_TRY(graph(view, params.best > 0));
        if (link_) link_->meet();
        RL_TRY(send_inputs(params, inputs));
        RL_TRY(checked(call().graph_launch(exec, with_.device.stream()), "running a step"));
        return read_output(params);
    }
    if (link_) {
        Launcher loader(with_.device, Launcher::Mode::load);
        RL_TRY(launch_all(loader, view, params.best > 0));
        link_->meet();
    }
    Launcher launcher(with_.device, Launcher::Mode::run, params.cancel);
    RL_TRY(send_inputs(params, inputs));
    RL_TRY(launch_all(launcher, view, params.best > 0));
    return read_output(params);
}

Result<View> HipExecutable::begin_trace(const StepParams& params) {
    const uint32_t rows = row_class(uint32_t(params.tokens.size()));
    const StepLayout inputs(bound_.plan, rows, kind_of(bound_.plan, params));
    RL_TRY(send_inputs(params, inputs));
    return view_of(rows, inputs, params.kv_len());
}

Result<double> HipExecutable::trace(const View& view, size_t index) {
    Launcher launcher(with_.device, Launcher::Mode::run);
    const auto begin = std::chrono::steady_clock::now();
    if (link_) RL_TRY(launch_sums(launcher, view, index));
    RL_TRY(launch_one(launcher, view, index));
    RL_TRY(with_.device.synchronize("running a step"));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return took.count();
}

Status HipExecutable::read_back(Slot slot, uint64_t bytes, const Buffer& mirror, uint64_t to) {
    RL_TRY(
        checked(call().copy_out(mirror.data() + to, workspace_->arena.data() + bound_.plan.slot(slot).offset,
                                bytes, with_.device.stream()),
                "reading traced activations"));
    return with_.device.synchronize("reading traced activations");
}

}  // namespace redline::hip
