#include "executable.h"

#include "backends/shared/cache_rows.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>

namespace redline::cpu {

Result<std::unique_ptr<CacheStore>> CpuCaches::create(std::span<const CacheInfo> caches, bool guarded) {
    auto made = std::make_unique<CpuCaches>();
    uint64_t bytes = 0;
    for (const CacheInfo& cache : caches) {
        made->caches_.push_back(cache);
        made->offsets_.push_back(bytes);
        bytes += cache.is_state() ? cache.bytes()
                                  : cache.kv_heads * kv_head_bytes(cache.types, cache.head_dim,
                                                                   cache.capacity, cache.rank);
    }
    made->region_ = RL_TRY(Region::allocate(bytes, "the key-value cache", guarded));
    return std::unique_ptr<CacheStore>(std::move(made));
}

KvHead CpuCaches::head(Cache cache, uint32_t kv_head, std::span<const uint32_t> pages) const {
    const CacheInfo& own = info(cache);
    const uint64_t bytes = kv_head_bytes(own.types, own.head_dim, own.capacity, own.rank);
    return {own.types,         own.head_dim,
            own.capacity,      region_.data() + offsets_[size_t(cache.index)] + kv_head * bytes,
            own.sequence_rows, pages.empty() ? nullptr : pages.data() + own.first_page,
            own.rank};
}

float* CpuCaches::state(Cache cache, uint64_t row) const {
    return reinterpret_cast<float*>(region_.data() + offsets_[size_t(cache.index)]) +
           row * info(cache).state_floats;
}

Status CpuCaches::read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) {
    check_cache_rows(info(cache), first, count, out.size());
    if (info(cache).is_state()) {
        std::memcpy(out.data(), state(cache, first), out.size());
        return {};
    }
    const size_t bytes = out.size() / info(cache).kv_heads;
    for (uint32_t h = 0; h < info(cache).kv_heads; ++h)
        kv_export(head(cache, h), first, count, out.data() + h * bytes);
    return {};
}

Status CpuCaches::write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) {
    check_cache_rows(info(cache), first, count, in.size());
    if (info(cache).is_state()) {
        std::memcpy(state(cache, first), in.data(), in.size());
        return {};
    }
    const size_t bytes = in.size() / info(cache).kv_heads;
    for (uint32_t h = 0; h < info(cache).kv_heads; ++h)
        kv_import(head(cache, h), first, count, in.data() + h * bytes);
    return {};
}

uint64_t CpuKernel::shared_scratch(const Plan&, uint32_t) const {
    return 0;
}
uint64_t CpuKernel::thread_scratch(const Plan&) const {
    return 0;
}

Precision precision_of(Activations activations) {
    switch (activations) {
        case Activations::f32:
            return {};
        case Activations::bf16:
            return {.weights = kToBfloat, .activations = kToBfloat};
        case Activations::int8_block32:
            return {.activations = to_int8(32)};
    }
    return {};
}

const float* RunView::rope_row(uint32_t rope, uint32_t row) const {
    const float* at = rope_tables;
    for (uint32_t i = 0; i < rope; ++i) at += size_t(plan.max_rows) * plan.ropes[i].table_floats();
    return at + size_t(row) * plan.ropes[rope].table_floats();
}

CpuExecutable::CpuExecutable(BoundPlan bound, const CpuWeights& weights, const CpuCaches& caches, Team& team,
                             Isa isa)
    : bound_(std::move(bound)), weights_(weights), caches_(caches), team_(team), isa_(isa) {}

void CpuExecutable::size(bool guarded) {
    if (guarded) arena_gaps_ = guard_arena(bound_.plan);
    const Plan& plan = bound_.plan;
    const auto aligned = [](uint64_t bytes) { return (bytes + 255) / 256 * 256; };
    for (const auto& kernel : bound_.kernels) {
        const auto& cpu_kernel = static_cast<const CpuKernel&>(*kernel);
        shared_bytes_ = std::max(shared_bytes_, aligned(cpu_kernel.shared_scratch(plan, team_.size())));
        thread_bytes_ = std::max(thread_bytes_, aligned(cpu_kernel.thread_scratch(plan)));
    }
    if (guarded) {
        shared_bytes_ += kGuardBytes;
        thread_bytes_ += kGuardBytes;
        for (uint32_t i = 0; i <= team_.size(); ++i) {
            const uint64_t end = shared_bytes_ + i * thread_bytes_;
            scratch_gaps_.push_back({end - kGuardBytes, end});
        }
    }
    size_t rope_floats = 0;
    for (const RopeSpec& rope : plan.ropes) rope_floats += plan.max_rows * rope.table_floats();
    rope_.resize(rope_floats);
    counters_ = std::make_unique<std::atomic<uint32_t>[]>(plan.steps.size() * team_.size());
}

// Gives all of them one workspace.
Status CpuExecutable::share(std::span<const std::unique_ptr<CpuExecutable>> group, bool guarded) {
    uint64_t arena = 0, scratch = 0;
    for (const auto& one : group) {
        arena = std::max(arena, one->bound_.plan.arena_bytes);
        scratch = std::max(scratch, one->scratch_bytes());
    }
    const auto workspace = std::make_shared<Workspace>();
    workspace->arena = RL_TRY(Region::allocate(arena, "activations", guarded));
    workspace->scratch = RL_TRY(Region::allocate(scratch, "scratch", guarded));
    for (const auto& one : group) {
        one->workspace_ = workspace;
        workspace->arena.guard(one->arena_gaps_);
        workspace->scratch.guard(one->scratch_gaps_);
    }
    return {};
}

Result<std::vector<std::unique_ptr<Executable>>> CpuExecutable::create_group(
    PlanGroup plans, const CpuWeights& weights, const CpuCaches& caches, Team& team, Isa isa, bool guarded) {
    std::vector<std::unique_ptr<CpuExecutable>> made;
    for (BoundPlan& plan : plans) {
        made.emplace_back(new CpuExecutable(std::move(plan), weights, caches, team, isa));
        made.back()->size(guarded);
        if (guarded) RL_TRY(share({&made.back(), 1}, guarded));
    }
    if (!guarded) RL_TRY(share(made, guarded));
    return std::vector<std::unique_ptr<Executable>>(std::make_move_iterator(made.begin()),
                                                    std::make_move_iterator(made.end()));
}

RunView CpuExecutable::prepare(const StepParams& params) {
    const Plan& plan = bound_.plan;
    check_step(plan, params);
    for (size_t i = 0; i < plan.steps.size() * team_.size(); ++i)
        counters_[i].store(0, std::memory_order_relaxed);
    rows_ = uint32_t(params.tokens.size());
    outputs_ = uint32_t(params.outputs.size());
    RunView view{plan, weights_, caches_, isa_, params};
    // What another of the group left is read before it is overwritten.
    const auto* given = reinterpret_cast<const std::byte*>(params.input.data());
    const Region& arena = workspace_->arena;
    if (given && std::less_equal<>()(arena.data(), given) &&
        std::less<>()(given, arena.data() + arena.size())) {
        input_.assign(params.input.begin(), params.input.end());
        view.params.input = input_;
    }
    segments_ = segments_of(params.rows);
    view.segments = segments_;
    view.arena = workspace_->arena.data();
    view.shared_scratch = workspace_->scratch.data();
    view.thread_scratch = workspace_->scratch.data() + shared_bytes_;
    view.thread_scratch_bytes = thread_bytes_;
    view.rope_tables = rope_.data();
    view.counters = counters_.get();
    return view;
}

void CpuExecutable::fill_rope(const RunView& view, const Worker& worker) const {
    const auto mine = worker.share(view.rows());
    for (uint32_t r = 0; r < view.plan.ropes.size(); ++r) {
        const RopeSpec& rope = view.plan.ropes[r];
        for (uint64_t row = mine.begin; row < mine.end; ++row) {
            float* table = const_cast<float*>(view.rope_row(r, uint32_t(row)));
            rope.fill_table(view.params.rows[row].position, table);
        }
    }
}

// Steps of about so many rows, whose times can be compared.
TeamSize& CpuExecutable::team_size(uint32_t rows) {
    const auto at = size_t(std::bit_width(rows));
    while (sizes_.size() <= at) sizes_.emplace_back(team_.size());
    return sizes_[at];
}

Status CpuExecutable::run(const StepParams& params) {
    const RunView view = prepare(params);
    const auto cancelled = [&] { return params.cancel && params.cancel->load(std::memory_order_relaxed); };
    // The step before which all leave. Set by one worker ahead of that step's barrier, so that all agree on
    // it.
    std::atomic<size_t> stop_at{bound_.kernels.size()};
    const auto done = [&] {
        return double(view.rows()) * double(stop_at.load(std::memory_order_relaxed)) /
               double(bound_.kernels.size());
    };
    RL_TRY(team_.run_sized(team_size(view.rows()), done, [&](const Worker& worker) {
        fill_rope(view, worker);
        for (uint32_t i = 0; i < bound_.kernels.size(); ++i) {
            if (worker.index == 0 && cancelled() && stop_at.load(std::memory_order_relaxed) > i)
                stop_at.store(i, std::memory_order_relaxed);
            worker.barrier();
            if (stop_at.load(std::memory_order_relaxed) <= i) return;
            static_cast<const CpuKernel&>(*bound_.kernels[i]).run(view, worker, i);
        }
    }));
    if (stop_at.load(std::memory_order_relaxed) < bound_.kernels.size()) return error("interrupted");
    return check_guards();
}

Status CpuExecutable::check_guards() const {
    RL_TRY(workspace_->arena.check(arena_gaps_));
    RL_TRY(workspace_->scratch.check(scratch_gaps_));
    RL_TRY(weights_.check_guards());
    return caches_.check_guards();
}

Status CpuExecutable::run_traced(const StepParams& params, const TraceSink& sink) {
    const RunView view = prepare(params);
    RL_TRY(team_.run([&](const Worker& worker) { fill_rope(view, worker); }));
    const StepShape shape{view.rows(), params.outputs.size(), params.kv_len()};
    for (uint32_t i = 0; i < bound_.kernels.size(); ++i) {
        const auto begin = std::chrono::steady_clock::now();
        RL_TRY(team_.run([&](const Worker& worker) {
            static_cast<const CpuKernel&>(*bound_.kernels[i]).run(view, worker, i);
        }));
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        TraceStep traced{
            &bound_.plan.steps[i], took.count(), cost(bound_.plan.steps[i].op, bound_.plan, shape), {}};
        for (const Slot s : access(bound_.plan.steps[i].op).writes)
            traced.written.push_back({view.floats(s), size_t(view.rows_of(s)) * view.width(s)});
        sink(traced);
    }
    return check_guards();
}

std::span<const float> CpuExecutable::rows_of(Slot slot, uint32_t rows) const {
    const SlotInfo& info = bound_.plan.slot(slot);
    return {reinterpret_cast<const float*>(workspace_->arena.data() + info.offset),
            size_t(rows) * info.width};
}

std::span<const float> CpuExecutable::output() const {
    return rows_of(bound_.plan.output, outputs_);
}

std::span<const float> CpuExecutable::hidden() const {
    if (!bound_.plan.hidden) return {};
    return rows_of(bound_.plan.hidden, rows_);
}

}  // namespace redline::cpu
