#include "executable.h"

#include <chrono>

namespace redline::hip {

HipExecutable::HipExecutable(BoundPlan bound, const HipWeights& weights, const HipCaches& caches,
                             Device& device, Record mode)
    : bound_(std::move(bound)),
      weights_(weights),
      caches_(caches),
      device_(device),
      mode_(mode),
      handed_(bound_.plan) {}

Workspace::~Workspace() {
    device.call().set_device(device.report().index);
    for (const Event event : sent)
        if (event) device.call().event_destroy(event);
}

Result<std::vector<std::unique_ptr<Executable>>> HipExecutable::create_group(PlanGroup plans,
                                                                             const HipWeights& weights,
                                                                             const HipCaches& caches,
                                                                             Device& device, Memory& memory,
                                                                             Record mode) {
    Group made = RL_TRY(make(std::move(plans), weights, caches, device, memory, mode));
    for (const auto& one : made) RL_TRY(one->load_kernels());
    return std::vector<std::unique_ptr<Executable>>(std::make_move_iterator(made.begin()),
                                                    std::make_move_iterator(made.end()));
}

// The kernels of the longest steps, so that what cannot be loaded shows before the first.
Status HipExecutable::load_kernels() const {
    const Plan& plan = bound_.plan;
    Launcher loader(device_, Launcher::Mode::load);
    const StepLayout inputs(plan, plan.max_rows, StepKind::alone);
    return launch_all(loader, view_of(plan.max_rows, inputs, 0), most_best() > 0);
}

Result<std::unique_ptr<Executable>> HipExecutable::create_rank(BoundPlan plan, std::vector<RankSum> sums,
                                                               std::shared_ptr<HipRankLink> link, size_t rank,
                                                               const HipWeights& weights,
                                                               const HipCaches& caches, Device& device,
                                                               Memory& memory, Record mode) {
    PlanGroup alone;
    alone.push_back(std::move(plan));
    Group made = RL_TRY(make(std::move(alone), weights, caches, device, memory, mode));
    HipExecutable& one = *made[0];
    one.sums_ = std::move(sums);
    one.link_ = std::move(link);
    one.rank_ = rank;
    RL_TRY(one.load_kernels());
    return std::unique_ptr<Executable>(std::move(made[0]));
}

Status HipExecutable::measure(PlanGroup plans, const HipWeights& weights, const HipCaches& caches,
                              Device& device, Memory& counting) {
    RL_TRY(make(std::move(plans), weights, caches, device, counting, Record::direct));
    return {};
}

Result<HipExecutable::Group> HipExecutable::make(PlanGroup plans, const HipWeights& weights,
                                                 const HipCaches& caches, Device& device, Memory& memory,
                                                 Record mode) {
    RL_TRY(device.use());
    Group made;
    for (BoundPlan& plan : plans) {
        made.emplace_back(new HipExecutable(std::move(plan), weights, caches, device, mode));
        HipExecutable& one = *made.back();
        one.memory_ = &memory;
        if (memory.guarded()) one.arena_gaps_ = guard_arena(one.bound_.plan);
        if (memory.guarded()) RL_TRY(share({&made.back(), 1}, device, memory));
    }
    if (!memory.guarded()) RL_TRY(share(made, device, memory));
    return made;
}

// Gives all of them one workspace.
Status HipExecutable::share(std::span<const std::unique_ptr<HipExecutable>> group, Device& device,
                            Memory& memory) {
    constexpr unsigned kNoTiming = 2;
    gpu::StepBytes bytes;
    for (const auto& one : group) {
        const Plan& plan = one->bound_.plan;
        const uint64_t picked = best_bytes(plan) + best_between_bytes(plan);
        bytes.add<HipKernel>(one->bound_, one->most_best() > 0 ? picked : 0);
    }
    const auto own = std::make_shared<Workspace>(device);
    own->arena = RL_TRY(memory.allocate(bytes.arena, Use::scratch, "activations"));
    own->scratch = RL_TRY(memory.allocate(bytes.scratch, Use::scratch, "scratch"));
    own->step = RL_TRY(memory.allocate(bytes.inputs, Use::scratch, "step inputs"));
    for (Buffer& buffer : own->inputs)
        buffer = RL_TRY(memory.allocate(bytes.inputs, Use::pinned, "step inputs"));
    own->output = RL_TRY(memory.allocate(bytes.results, Use::pinned, "results"));
    for (Event& event : own->sent)
        RL_TRY(device.checked(device.call().event_create(&event, kNoTiming), "making an event"));
    for (const auto& one : group) {
        if (memory.guarded()) RL_TRY(memory.set_gaps(own->arena, one->arena_gaps_));
        one->workspace_ = own;
    }
    return {};
}

HipExecutable::~HipExecutable() {
    const Functions& call = device_.call();
    call.set_device(device_.report().index);
    // Else it was only sized, or not even that.
    if (workspace_ && workspace_->arena.data()) call.stream_synchronize(device_.stream());
    drop_graphs();
}

void HipExecutable::drop_graphs() {
    for (const auto& [what, exec] : graphs_) device_.call().graph_exec_destroy(exec);
    graphs_.clear();
}

// Recorded steps come in a few classes of rows. Steps of more rows are launched for as many tiles as they
// have.
uint32_t HipExecutable::row_class(uint32_t rows) const {
    // Products on matrix units take as long for 8 rows as for 2; by dot products, 2, 4 and 8 sum alike.
    if (bound_.plan.alike(rows)) rows = device_.report().matrix_units() ? kFewAlike : std::max(rows, 2u);
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
    View view{{bound_.plan, weights_, caches_, rows, std::min(rows, bound_.plan.max_outputs)}};
    view.arena = workspace_->arena.data();
    view.scratch = workspace_->scratch.data();
    view.input = reinterpret_cast<const float*>(workspace_->step.data() + inputs.input);
    view.lookups = reinterpret_cast<const float*>(workspace_->step.data() + inputs.lookups);
    view.step = reinterpret_cast<const args::Step*>(workspace_->step.data());
    for (const uint64_t offset : inputs.ropes)
        view.ropes.push_back(reinterpret_cast<const float*>(workspace_->step.data() + offset));
    view.kind = of_several(inputs.kind) ? StepKind::several : inputs.kind;
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

// The rows of a step of few that the kernel takes and leaves as halfs, where both kernels of a pair do.
void HipExecutable::hand_few(View& view, size_t index) const {
    const Step& step = bound_.plan.steps[index];
    const auto place = [&](Slot slot) {
        std::byte* const at = workspace_->arena.data() + bound_.plan.slot(slot).offset;
        const uint64_t halfs = uint64_t(view.width(slot)) * args::kMostHanded * 2;
        return std::pair(reinterpret_cast<uint16_t*>(at), reinterpret_cast<args::Reach*>(at + halfs));
    };
    const uint32_t taken = handed_.parts<HipKernel>(bound_, step.takes, view);
    const bool leaves = handed_.parts<HipKernel>(bound_, step.leaves, view) > 0;
    if (taken > 0) {
        const Norm& norm = bound_.plan.slot(step.takes).norm;
        const auto [halfs, reaches] = place(step.takes);
        view.halfs_taken = halfs;
        view.few_taken = {reaches, taken, nullptr, view.vector(norm.gain), norm.eps};
    }
    if (leaves) {
        const auto [halfs, reaches] = place(step.leaves);
        view.few_left = {halfs, reaches, view.vector(bound_.plan.slot(step.leaves).norm.gain), 0};
    }
}

args::HandOver HipExecutable::hand_of(const View& view, Slot slot) const {
    const SlotInfo& left = bound_.plan.slot(slot);
    return {workspace_->arena.data() + left.offset, view.vector(left.norm.gain), left.width / 32};
}

Status HipExecutable::launch_one(Launcher& launcher, const View& view, size_t index) const {
    const auto& kernel = static_cast<const HipKernel&>(*bound_.kernels[index]);
    View seen = view;
    const Step& step = bound_.plan.steps[index];
    if (view.rows > 1) {
        if (step.takes || step.leaves) hand_few(seen, index);
        return kernel.launch(launcher, seen);
    }
    if (step.takes && bound_.plan.slot(step.takes).handed_one)
        seen.taken = workspace_->arena.data() + bound_.plan.slot(step.takes).offset;
    if (step.leaves && bound_.plan.slot(step.leaves).handed_one) seen.left = hand_of(view, step.leaves);
    return kernel.launch(launcher, seen);
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
                rows.hand = hand_of(view, sum.leaves[i]);
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
    const Functions& call = device_.call();
    Launcher loader(device_, Launcher::Mode::load), launcher(device_, Launcher::Mode::capture);
    RL_TRY(launch_all(loader, view, best));
    RL_TRY(device_.checked(call.begin_capture(device_.stream(), kThreadLocal), "beginning a graph"));
    const Status launched = launch_all(launcher, view, best);
    Graph captured = nullptr;
    const Status ended = device_.checked(call.end_capture(device_.stream(), &captured), "ending a graph");
    if (!launched || !ended) {
        if (captured) call.graph_destroy(captured);
        return launched ? ended.error() : launched.error();
    }
    GraphExec exec = nullptr;
    const Status made = device_.checked(call.graph_instantiate(&exec, captured, 0), "making a graph");
    call.graph_destroy(captured);
    RL_TRY(made);
    return graphs_[what] = exec;
}

// The ring's slot is written only when the copy that last read it is over.
Status HipExecutable::send_inputs(const StepParams& params, const StepLayout& inputs) {
    const uint64_t slot = workspace_->turn % gpu::kRing;
    const Functions& call = device_.call();
    if (workspace_->turn++ >= gpu::kRing)
        RL_TRY(device_.checked(call.event_synchronize(workspace_->sent[slot]),
                               "waiting for the last step's inputs"));
    inputs.write(bound_.plan, params, workspace_->inputs[slot].data());
    RL_TRY(device_.checked(call.copy_in(workspace_->step.data(), workspace_->inputs[slot].data(),
                                        inputs.bytes, device_.stream()),
                           "sending a step's inputs"));
    return device_.checked(call.event_record(workspace_->sent[slot], device_.stream()),
                           "sending a step's inputs");
}

Status HipExecutable::read_output(const StepParams& params) {
    const Plan& plan = bound_.plan;
    const bool best = params.best > 0;
    const std::byte* const from =
        best ? workspace_->scratch.data() : workspace_->arena.data() + plan.slot(plan.output).offset;
    const uint64_t bytes = best ? params.outputs.size() * kMostBest * sizeof(Scored)
                                : uint64_t(results_.outputs()) * plan.slot(plan.output).width * 4;
    RL_TRY(device_.checked(device_.call().copy_out(workspace_->output.data(), from, bytes, device_.stream()),
                           "reading the results"));
    if (plan.hidden)
        RL_TRY(device_.checked(
            device_.call().copy_out(workspace_->output.data() + gpu::hidden_at(plan),
                                    workspace_->arena.data() + plan.slot(plan.hidden).offset,
                                    uint64_t(results_.rows()) * plan.slot(plan.hidden).width * 4,
                                    device_.stream()),
            "reading the hidden rows"));
    RL_TRY(device_.synchronize("running a step"));
    results_.read_best(params, workspace_->output.data());
    return memory_->check_guards();
}

Status HipExecutable::run(const StepParams& params) {
    results_.begin(bound_.plan, params, most_best());
    RL_TRY(device_.use());
    if (params.cancel && params.cancel->load(std::memory_order_relaxed)) return error("interrupted");
    const uint32_t rows = row_class(uint32_t(params.tokens.size()));
    const StepLayout inputs(bound_.plan, rows, kind_of(bound_.plan, params));
    const View view = view_of(rows, inputs, params.kv_len());
    if (mode_ == Record::replay && rows <= kReplayedRows) {
        const GraphExec exec = RL_TRY(graph(view, params.best > 0));
        if (link_) link_->meet();
        RL_TRY(send_inputs(params, inputs));
        RL_TRY(device_.checked(device_.call().graph_launch(exec, device_.stream()), "running a step"));
        return read_output(params);
    }
    if (link_) {
        Launcher loader(device_, Launcher::Mode::load);
        RL_TRY(launch_all(loader, view, params.best > 0));
        link_->meet();
    }
    Launcher launcher(device_, Launcher::Mode::run, params.cancel);
    RL_TRY(send_inputs(params, inputs));
    RL_TRY(launch_all(launcher, view, params.best > 0));
    return read_output(params);
}

Status HipExecutable::traced_step(const StepParams& params, const View& view, size_t index,
                                  const Buffer& mirror, const TraceSink& sink) {
    const Plan& plan = bound_.plan;
    Launcher launcher(device_, Launcher::Mode::run, params.cancel);
    const auto begin = std::chrono::steady_clock::now();
    if (link_) RL_TRY(launch_sums(launcher, view, index));
    RL_TRY(launch_one(launcher, view, index));
    RL_TRY(device_.synchronize("running a step"));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const Op& op = plan.steps[index].op;
    const StepShape shape{params.tokens.size(), params.outputs.size(), params.kv_len()};
    TraceStep traced{&plan.steps[index], took.count(), cost(op, plan, shape), {}};
    std::byte* to = mirror.data();
    for (const Slot s : access(op).writes) {
        const uint64_t elements = rows_of(plan, s, shape) * view.width(s);
        RL_TRY(device_.checked(device_.call().copy_out(to, workspace_->arena.data() + plan.slot(s).offset,
                                                       elements * 4, device_.stream()),
                               "reading traced activations"));
        traced.written.push_back({reinterpret_cast<const float*>(to), size_t(elements)});
        to += elements * 4;
    }
    RL_TRY(device_.synchronize("reading traced activations"));
    sink(traced);
    return {};
}

Status HipExecutable::run_traced(const StepParams& params, const TraceSink& sink) {
    results_.begin(bound_.plan, params, most_best());
    RL_TRY(device_.use());
    const uint32_t rows = row_class(uint32_t(params.tokens.size()));
    const StepLayout inputs(bound_.plan, rows, kind_of(bound_.plan, params));
    const View view = view_of(rows, inputs, params.kv_len());
    const StepShape shape{params.tokens.size(), params.outputs.size(), params.kv_len()};
    const Buffer mirror =
        RL_TRY(memory_->allocate(most_written_bytes(bound_.plan, shape), Use::pinned, "traced activations"));
    RL_TRY(send_inputs(params, inputs));
    for (size_t i = 0; i < bound_.kernels.size(); ++i) RL_TRY(traced_step(params, view, i, mirror, sink));
    return read_output(params);
}

}  // namespace redline::hip
