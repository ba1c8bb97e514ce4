#include "executable.h"

#include "args.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace redline::vulkan {

namespace {

constexpr uint32_t kBestShared = RL_BEST_SLICE * 4 + 2048;  // bytes that best.comp shares, at most

}  // namespace

bool Running::picks_best(const Device& device) {
    return device.report().limits.maxComputeSharedMemorySize >= kBestShared;
}

Workspace::~Workspace() {
    for (const VkFence fence : fences)
        if (fence) vkDestroyFence(device.handle(), fence, nullptr);
}

Status Workspace::allocate(Memory& memory, const gpu::StepBytes& bytes) {
    step = RL_TRY(memory.allocate(bytes.inputs, Use::step, "step inputs"));
    const bool mapped = memory.counts_only() ? memory.maps_steps() : step.mapped() != nullptr;
    if (!mapped)
        for (Buffer& buffer : inputs)
            buffer = RL_TRY(memory.allocate(bytes.inputs, Use::upload, "step inputs"));
    output = RL_TRY(memory.allocate(bytes.results, Use::readback, "results"));
    for (VkFence& fence : fences) fence = RL_TRY(device.make_fence());
    return {};
}

Result<std::vector<std::unique_ptr<Executable>>> VulkanExecutable::create_group(PlanGroup plans,
                                                                                const Resources& with,
                                                                                Record mode) {
    Group made = RL_TRY(make(std::move(plans), with, mode));
    // The largest class now, and the best of single rows, so that what cannot be recorded shows before the
    // first step.
    WantedPipelines wanted;
    for (const auto& one : made) {
        RL_TRY(one->add_wanted(one->bound_.plan.max_rows, false, StepKind::alone, wanted));
        if (one->picks_at_once()) RL_TRY(one->add_wanted(1, true, StepKind::alone, wanted));
    }
    RL_TRY(with.pipelines.make(wanted.specs()));
    for (const auto& one : made) {
        RL_TRY(one->recorded(one->bound_.plan.max_rows, false, StepKind::alone));
        if (one->picks_at_once()) RL_TRY(one->recorded(1, true, StepKind::alone));
    }
    return given_out(std::move(made));
}

VulkanExecutable::~VulkanExecutable() {
    if (busy_) busy_->when.forget(part_);
}

// Kernels differ by how many rows there are, and work-groups without a row cost time: so a few classes.
uint32_t VulkanExecutable::row_class(uint32_t rows) const {
    if (bound_.plan.alike(rows)) rows = std::max(rows, 2u);  // products of 2, 4 and 8 rows sum alike
    for (const uint32_t most : kRowClasses)
        if (rows <= most) return std::min(most, bound_.plan.max_rows);
    return bound_.plan.max_rows;
}

View VulkanExecutable::view_of(uint32_t rows, const StepLayout& inputs) const {
    View view = view_of_all(rows, inputs.kind);
    view.arena = workspace_->arena;
    view.scratch = workspace_->scratch;
    view.step = {workspace_->step.handle(), 0, inputs.input};
    view.input = {workspace_->step.handle(), inputs.input, inputs.bytes - inputs.input};
    view.lookups = {workspace_->step.handle(), inputs.lookups, inputs.bytes - inputs.lookups};
    for (const uint64_t offset : inputs.ropes) view.rope_offsets.push_back(uint32_t(offset / 4));
    view.mixed = inputs.kind == StepKind::mixed;
    return view;
}

Result<Recording> VulkanExecutable::record_copies(const StepLayout& inputs) {
    Recording recording(with_.device);
    if (workspace_->step.mapped()) return recording;
    for (const Buffer& from : workspace_->inputs) {
        VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = with_.device.pool();
        allocate.commandBufferCount = 1;
        VkCommandBuffer commands = VK_NULL_HANDLE;
        RL_TRY(checked(vkAllocateCommandBuffers(with_.device.handle(), &allocate, &commands),
                       "making a command buffer"));
        recording.segments.push_back(commands);
        VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        RL_TRY(checked(vkBeginCommandBuffer(commands, &begin), "beginning a command buffer"));
        // The step before may still read what this overwrites.
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                             0, 0, nullptr, 0, nullptr, 0, nullptr);
        const VkBufferCopy region = {0, 0, inputs.bytes};
        vkCmdCopyBuffer(commands, from.handle(), workspace_->step.handle(), 1, &region);
        RL_TRY(checked(vkEndCommandBuffer(commands), "ending a command buffer"));
    }
    return recording;
}

Result<Recording> VulkanExecutable::record_steps(const View& view, double dispatch_seconds, bool best) {
    Recorder recorder(with_.device, with_.pipelines, dispatch_seconds);
    RL_TRY(record_steps(recorder, view, best));
    return std::move(recorder).finish();
}

Status VulkanExecutable::record_steps(Recorder& recorder, const View& view, bool best) {
    for (size_t i = 0; i < bound_.kernels.size(); ++i) {
        recorder.begin_step(bound_.plan.steps[i].barrier);
        RL_TRY(kernel(i).record(recorder, view_of(view, i)));
    }
    return record_results(recorder, view, best);
}

Status VulkanExecutable::record_results(Recorder& recorder, const View& view, bool best) const {
    recorder.begin_step(true);
    if (bound_.plan.hidden) RL_TRY(record_hidden(recorder, view));
    return best ? record_best(recorder, view) : record_output(recorder, view);
}

Status VulkanExecutable::record_hidden(Recorder& recorder, const View& view) const {
    const Slot slot = bound_.plan.hidden;
    const uint64_t elements = uint64_t(view.width(slot)) * view.rows;
    const Binding to(workspace_->output.handle(), gpu::hidden_at(bound_.plan), bound_.plan.slot_bytes(slot));
    return recorder.dispatch({"copy_rows", 3, 1, {256}}, {view.slot(slot), to, view.step},
                             args::ElementArgs{view.width(slot), RL_ROWS_ALL},
                             striding((elements + 255) / 256));
}

Status VulkanExecutable::add_wanted(uint32_t rows, bool best, StepKind kind, WantedPipelines& wanted) {
    const uint32_t most = row_class(rows);
    Recorder recorder(with_.device, with_.pipelines, wanted);
    return record_steps(recorder, view_of(most, StepLayout(bound_.plan, most, kind)), best);
}

Status VulkanExecutable::prepare(std::span<Executable* const> executables, std::span<const uint32_t> rows,
                                 Pipelines& pipelines) {
    WantedPipelines wanted;
    for (Executable* const executable : executables) {
        auto& own = static_cast<VulkanExecutable&>(*executable);
        const bool paged = own.bound_.plan.sizing.pages > 0;
        for (const uint32_t count : rows) {
            if (count > own.bound_.plan.max_rows) continue;
            RL_TRY(own.add_wanted(count, false, paged ? StepKind::paged : StepKind::alone, wanted));
            if (!paged) continue;
            RL_TRY(own.add_wanted(count, false, StepKind::several, wanted));
            if (own.mixes() && count > kLoneRows)
                RL_TRY(own.add_wanted(count, false, StepKind::mixed, wanted));
        }
    }
    return pipelines.make(wanted.specs());
}

Status VulkanExecutable::record_output(Recorder& recorder, const View& view) const {
    const Slot slot = bound_.plan.output;
    const args::ElementArgs push = {view.width(slot), RL_ROWS_OUTPUTS};
    const uint64_t elements = uint64_t(view.width(slot)) * view.outputs;
    return recorder.dispatch({"copy_rows", 3, 1, {256}}, {view.slot(slot), workspace_->output, view.step},
                             push, striding((elements + 255) / 256));
}

Status VulkanExecutable::record_best(Recorder& recorder, const View& view) const {
    static_assert(RL_BEST_SLICE == kBestSlice);
    const uint32_t picked = best_between(bound_.plan);
    const Binding between = view.scratch_at(0, best_between_bytes(bound_.plan));
    RL_TRY(recorder.dispatch({"best", 3, 1, {256}}, {view.slot(bound_.plan.output), between, view.step},
                             args::BestArgs{kMostBest, 0, view.width(bound_.plan.output)},
                             {best_slices(bound_.plan), view.outputs}));
    recorder.barrier();
    return recorder.dispatch({"best", 3, 1, {256}}, {between, workspace_->output, view.step},
                             args::BestArgs{kMostBest, 1, picked}, {1, view.outputs});
}

Result<VulkanExecutable::Recorded*> VulkanExecutable::recorded(uint32_t rows, bool best, StepKind kind) {
    const uint32_t most = row_class(rows);
    const std::tuple key(most, kind, best);
    Meter meter;
    if (const auto found = recorded_.find(key); found != recorded_.end()) {
        if (mode_ == Record::replay) return &found->second;
        meter = found->second.meter;
        recorded_.erase(found);
    }
    const StepLayout inputs(bound_.plan, most, kind);
    Recording copies = RL_TRY(record_copies(inputs));
    Recording steps = RL_TRY(record_steps(view_of(most, inputs), meter.dispatch_seconds(), best));
    Recorded made{inputs, std::move(copies), std::move(steps), meter.dispatch_seconds(), meter};
    return &recorded_.emplace(key, std::move(made)).first->second;
}

// Records the steps again when the device turned out to be so slow that one command buffer is too long, or so
// fast that there are needlessly many.
Status VulkanExecutable::fit_to_pace(Recorded& commands, uint32_t rows, bool best) {
    const double wanted = commands.meter.dispatch_seconds();
    const std::vector<double>& seconds = commands.steps.seconds;
    const double longest = *std::max_element(seconds.begin(), seconds.end());
    const bool slow =
        wanted < commands.dispatch_seconds / 2 && longest > wanted && !commands.meter.fits(longest);
    const bool fast = wanted > commands.dispatch_seconds * 4 && seconds.size() > 4;
    if (!slow && !fast) return {};
    commands.steps = RL_TRY(record_steps(view_of(row_class(rows), commands.inputs), wanted, best));
    commands.dispatch_seconds = wanted;
    return {};
}

// As many command buffers at once as should take no longer than a submission may, one submission ahead of the
// device: a step can be cancelled between them, and none keeps the device from others for long.
Status VulkanExecutable::submit_all(std::span<const VkCommandBuffer> copy, Recorded& commands,
                                    const std::atomic<bool>* cancel, double busy_seconds) {
    using Clock = std::chrono::steady_clock;
    struct Flight {
        double assumed = 0.0;
        Clock::time_point begin;
    };
    Flight flights[gpu::kRing];
    size_t sent = 0, done = 0;
    Clock::time_point end;  // of the last submission that is done
    Meter& meter = commands.meter;
    const auto land = [&]() -> Status {
        const Flight& flight = flights[done % gpu::kRing];
        const Status waited = with_.device.wait(workspace_->fences[done++ % gpu::kRing], "running a step");
        landed_ = waited ? landed_ + 1 : submitted_;  // after a failure nothing is in flight
        RL_TRY(waited);
        const Clock::time_point now = Clock::now();
        const std::chrono::duration<double> took = now - std::max(flight.begin, end);
        end = now;
        meter.measured(flight.assumed, took.count());
        with_.device.pace().note(took.count());
        return {};
    };
    const std::vector<VkCommandBuffer>& segments = commands.steps.segments;
    const std::vector<double>& seconds = commands.steps.seconds;
    std::vector<VkCommandBuffer> group(copy.begin(), copy.end());
    for (size_t next = 0; next < segments.size();) {
        if (sent - done == gpu::kRing || (sent > done && !meter.known())) RL_TRY(land());
        if (cancel && cancel->load(std::memory_order_relaxed)) {
            while (done < sent) RL_TRY(land());
            return error("interrupted");
        }
        const size_t count = meter.fitting(std::span(seconds).subspan(next));
        const double assumed = std::accumulate(&seconds[next], &seconds[next] + count, 0.0);
        group.insert(group.end(), &segments[next], &segments[next] + count);
        next += count;
        flights[sent % gpu::kRing] = {assumed, Clock::now()};
        const Status submitted = with_.device.submit(group, workspace_->fences[sent++ % gpu::kRing]);
        ++submitted_;
        if (!submitted) landed_ = submitted_;
        RL_TRY(submitted);
        group.clear();
    }
    // Handed over while the device computes.
    if (busy_seconds > 0.0) RL_TRY(busy_->submit(busy_seconds));
    while (done < sent) RL_TRY(land());
    return {};
}

// A submission makes what the host wrote before it visible to the device.
Status VulkanExecutable::write_inputs(const StepLayout& layout, const StepParams& params, uint64_t slot) {
    const Buffer& to = workspace_->step.mapped() ? workspace_->step : workspace_->inputs[slot];
    const uint64_t last_read = workspace_->step.mapped() ? submitted_ : read_by_[slot];
    RL_CHECK(last_read <= landed_, "step inputs are overwritten while submission {} may read them",
             last_read);
    layout.write(bound_.plan, params, to.mapped());
    return to.flush();
}

Status VulkanExecutable::run(const StepParams& params) {
    if (!busy_ || params.tokens.size() != 1) return run_recorded(params);
    const auto now = [] {
        const auto since = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::duration<double>(since).count();
    };
    busy_->when.begins(part_, now());
    RL_TRY(run_recorded(params));
    busy_->when.ends(now());
    return {};
}

Status VulkanExecutable::run_recorded(const StepParams& params) {
    results_.begin(bound_.plan, params, most_best());
    const bool best = params.best > 0;
    Recorded& commands =
        *RL_TRY(recorded(uint32_t(params.tokens.size()), best, kind_of(bound_.plan, params)));
    commands.meter.begin_step({double(params.tokens.size()), double(params.kv_len())});
    RL_TRY(fit_to_pace(commands, uint32_t(params.tokens.size()), best));
    const uint64_t slot = turn_++ % gpu::kRing;
    RL_TRY(write_inputs(commands.inputs, params, slot));
    read_by_[slot] = submitted_ + 1;
    const std::span<const VkCommandBuffer> copies = commands.copies.segments;
    const double busy = busy_ && params.tokens.size() == 1 ? busy_->when.busy_seconds(part_) : 0.0;
    RL_TRY(submit_all(copies.empty() ? copies : copies.subspan(slot, 1), commands, params.cancel, busy));
    commands.meter.end_step();
    RL_CHECK(landed_ == submitted_, "results are read while submission {} may write them", submitted_);
    RL_TRY(workspace_->output.invalidate());
    results_.read_best(params, workspace_->output.mapped());
    return with_.memory.check_guards();
}

// Buffers of a trace beside those of its ops.
Status VulkanExecutable::run_apart(std::span<const VkCommandBuffer> buffers) {
    RL_TRY(with_.device.submit(buffers, workspace_->fences[0]));
    return with_.device.wait(workspace_->fences[0], "running a step");
}

Result<View> VulkanExecutable::begin_trace(const StepParams& params) {
    const uint32_t most = row_class(uint32_t(params.tokens.size()));
    const StepLayout inputs(bound_.plan, most, kind_of(bound_.plan, params));
    Recording copies = RL_TRY(record_copies(inputs));
    if (!clock_) clock_ = RL_TRY(Stopwatch::create(with_.device));
    RL_TRY(write_inputs(inputs, params, 0));
    if (!copies.segments.empty()) RL_TRY(run_apart(std::span(copies.segments).first(1)));
    traced_.begin_step({double(params.tokens.size()), double(params.kv_len())});
    return view_of(most, inputs);
}

// One op, in submissions of the length that those of a whole step have.
Result<double> VulkanExecutable::trace(const View& view, size_t index) {
    Recorder recorder(with_.device, with_.pipelines, traced_.dispatch_seconds());
    RL_TRY(kernel(index).record(recorder, view_of(view, index)));
    const Recording op = RL_TRY(std::move(recorder).finish());
    double sum = 0.0;
    for (size_t next = 0; next < op.segments.size();) {
        const auto seconds = std::span(op.seconds).subspan(next);
        const size_t count = traced_.fitting(seconds);
        const double assumed = std::accumulate(seconds.begin(), seconds.begin() + ptrdiff_t(count), 0.0);
        const auto begin = std::chrono::steady_clock::now();
        sum += RL_TRY(clock_->run(std::span(op.segments).subspan(next, count)));
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        // What is over at once says more about submissions than about the work.
        if (assumed > 1e-3 || took.count() > 1e-2) traced_.measured(assumed, took.count());
        with_.device.pace().note(took.count());
        next += count;
    }
    return sum;
}

// Copies what a slot holds to `mirror`.
Status VulkanExecutable::read_back(Slot slot, uint64_t bytes, const Buffer& mirror, uint64_t to) {
    constexpr uint64_t kPiece = uint64_t(64)
                                << 20;  // a submission each: 1 GB/s would do for a tenth of a second
    const uint64_t from = bound_.plan.slot(slot).offset;
    for (uint64_t at = 0; at < bytes; at += kPiece) {
        const VkBufferCopy region = {from + at, to + at, std::min(kPiece, bytes - at)};
        RL_TRY(with_.device.run_once(
            [&](VkCommandBuffer commands) {
                vkCmdCopyBuffer(commands, workspace_->arena.handle(), mirror.handle(), 1, &region);
            },
            "reading traced activations"));
    }
    return mirror.invalidate();
}

Status VulkanExecutable::end_trace(const StepParams&, const View& view) {
    traced_.end_step();
    Recorder recorder(with_.device, with_.pipelines);
    RL_TRY(record_results(recorder, view, false));
    const Recording last = RL_TRY(std::move(recorder).finish());
    RL_TRY(run_apart(last.segments));
    RL_TRY(workspace_->output.invalidate());
    return with_.memory.check_guards();
}

}  // namespace redline::vulkan
