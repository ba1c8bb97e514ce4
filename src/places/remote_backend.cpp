#include "places/remote_backend.h"

#include "places/remote_handle.h"

#include <algorithm>

namespace redline {

namespace {

// The kernel of a step of a plan that was lowered at a rank.
class RemoteKernel : public Kernel {
public:
    RemoteKernel(std::shared_ptr<const Remote> plan, bool mixes) : plan_(std::move(plan)), mixes_(mixes) {}
    uint64_t plan() const { return plan_->handle(); }
    bool mixes() const override { return mixes_; }

private:
    std::shared_ptr<const Remote> plan_;
    bool mixes_;
};

uint64_t plan_of(const BoundPlan& bound) {
    const auto* kernel =
        bound.kernels.empty() ? nullptr : dynamic_cast<const RemoteKernel*>(bound.kernels[0].get());
    RL_CHECK(kernel, "a plan was not lowered at its rank");
    return kernel->plan();
}

struct RemoteWeights : WeightStore {
    RemoteWeights(std::shared_ptr<RemoteTeam> team, uint32_t rank, uint64_t handle)
        : made(std::move(team), rank, handle) {}
    uint64_t bytes() const override { return 0; }  // it is still loading
    Remote made;
};

class RemoteCaches : public CacheStore, public FarCaches {
public:
    RemoteCaches(std::shared_ptr<RemoteTeam> team, uint32_t rank, uint64_t handle, uint64_t bytes)
        : made(std::move(team), rank, handle), bytes_(bytes) {}
    uint64_t bytes() const override { return bytes_; }
    Status read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) override {
        const auto answer = RL_TRY(
            made.call(RemoteCall::read,
                      std::move(Packer().add(made.handle(), cache, first, count, uint64_t(out.size())))));
        const auto rows = Unpacker(answer).next<std::vector<std::byte>>();
        if (rows.size() != out.size()) return error("{} has other caches", made.team().name_of(made.rank()));
        std::ranges::copy(rows, out.begin());
        return {};
    }
    Status write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) override {
        RL_TRY(made.call(RemoteCall::write, std::move(Packer().add(made.handle(), cache, first, count, in))));
        return {};
    }
    Result<bool> copy(Cache cache, uint64_t from, uint64_t to, uint64_t count) override {
        RL_TRY(made.call(RemoteCall::copy, std::move(Packer().add(made.handle(), cache, from, to, count))));
        return true;
    }
    Remote made;

private:
    uint64_t bytes_;
};

class RemoteExecutable : public Executable, public FarExecutable {
public:
    RemoteExecutable(std::shared_ptr<RemoteTeam> team, uint32_t rank, uint64_t handle, uint32_t most_best,
                     bool mixes)
        : made_(std::move(team), rank, handle),
          most_best_(most_best),
          mixes_(mixes),
          chain_(made_.team().new_chain()) {
        say_way();
    }
    Status run(const StepParams& params) override {
        const uint64_t number = number_++;  // where nobody has numbered the step
        Packer step;
        RemoteStep::of(made_.handle(), number, params).pack(step);
        made_.team().post(made_.rank(), RemoteCall::run, std::move(step));
        if (to_ != 0) return {};
        rows_ = RL_TRY(made_.team().rows(chain_, number, params.cancel));
        return {};
    }
    // Steps of a rank's ops are not timed from here.
    Status run_traced(const StepParams& params, const TraceSink&) override { return run(params); }
    std::span<const float> output() const override { return rows_.output; }
    std::span<const float> hidden() const override { return rows_.hidden; }
    std::span<const Scored> best() const override { return rows_.best; }
    uint32_t most_best() const override { return most_best_; }
    bool mixes() const override { return mixes_; }
    uint64_t handle() const { return made_.handle(); }
    bool passes_on() const override { return to_ != 0; }
    void number_step(uint64_t number) override { number_ = number; }
    bool pass_to(Executable& next) override {
        auto* const there = dynamic_cast<RemoteExecutable*>(&next);
        if (!there || &there->made_.team() != &made_.team()) return false;
        to_ = there->made_.rank();
        there->from_ = made_.rank();
        there->chain_ = chain_;
        say_way();
        there->say_way();
        return true;
    }

private:
    void say_way() {
        made_.team().post(made_.rank(), RemoteCall::pass,
                          std::move(Packer().add(made_.handle(), chain_, from_, to_)));
    }

    Remote made_;
    uint32_t most_best_;
    bool mixes_;
    uint64_t chain_;
    uint32_t from_ = kNoRank, to_ = 0;  // ranks
    uint64_t number_ = 1;               // of the next step
    RemoteRows rows_;
};

}  // namespace

RemoteBackend::RemoteBackend(std::shared_ptr<RemoteTeam> team, uint32_t rank, uint32_t number,
                             const RemoteDevice& device)
    : team_(std::move(team)), rank_(rank), number_(number), device_(device) {}

bool RemoteBackend::has_kernels(const Format& format) const {
    return std::ranges::count(device_.formats, format.name) > 0;
}

Result<BoundPlan> RemoteBackend::lower_there(const Plan& plan, bool fuse) {
    Packer arguments = to_device();
    arguments.add(fuse);
    pack_plan(arguments, plan);
    const auto answer = RL_TRY(team_->call(rank_, RemoteCall::lower, std::move(arguments)));
    Unpacker in(answer);
    const auto handle = in.next<uint64_t>();
    const auto mixes = in.next<bool>(), picks_best = in.next<bool>();
    BoundPlan bound{RL_TRY(unpack_plan(in)), {}, picks_best};
    const auto made = std::make_shared<const Remote>(team_, rank_, handle);
    for (size_t i = 0; i < bound.plan.steps.size(); ++i)
        bound.kernels.push_back(std::make_unique<RemoteKernel>(made, mixes));
    return bound;
}

// Only lower_there() has kernels.
std::unique_ptr<Kernel> RemoteBackend::make_kernel(const Op&, const Plan&) {
    return nullptr;
}

Result<std::unique_ptr<WeightStore>> RemoteBackend::load_there(std::span<const WeightSlice> slices,
                                                               std::span<const WeightInfo> infos) {
    Packer arguments = to_device();
    arguments.add(slices, infos);
    const uint64_t call = team_->begin(rank_, RemoteCall::load, std::move(arguments));
    loading_ = call;
    // A handle that a call makes has the call's number.
    return std::unique_ptr<WeightStore>(std::make_unique<RemoteWeights>(team_, rank_, call));
}

Result<std::unique_ptr<WeightStore>> RemoteBackend::load_stored(std::span<const WeightInfo>, ByteSource&,
                                                                const Progress&) {
    return error("{} takes weights from its copy of the model's file alone", team_->name_of(rank_));
}

Result<std::unique_ptr<CacheStore>> RemoteBackend::make_caches(std::span<const CacheInfo> caches) {
    if (loading_) RL_TRY(team_->finish(rank_, *std::exchange(loading_, {})));
    Packer arguments = to_device();
    arguments.add(caches);
    const auto answer = RL_TRY(team_->call(rank_, RemoteCall::caches, std::move(arguments)));
    Unpacker in(answer);
    const auto handle = in.next<uint64_t>(), bytes = in.next<uint64_t>();
    return std::unique_ptr<CacheStore>(std::make_unique<RemoteCaches>(team_, rank_, handle, bytes));
}

Result<MemoryNeed> RemoteBackend::measure(std::span<const WeightInfo> weights,
                                          std::span<const CacheInfo> caches, std::vector<PlanGroup> groups) {
    std::vector<std::vector<uint64_t>> plans;
    for (const PlanGroup& group : groups) {
        plans.emplace_back();
        for (const BoundPlan& bound : group) plans.back().push_back(plan_of(bound));
    }
    Packer arguments = to_device();
    arguments.add(weights, caches, plans);
    return Unpacker(RL_TRY(team_->call(rank_, RemoteCall::measure, std::move(arguments)))).next<MemoryNeed>();
}

Result<std::vector<std::unique_ptr<Executable>>> RemoteBackend::record_group(PlanGroup plans,
                                                                             WeightStore& weights,
                                                                             CacheStore& caches,
                                                                             Record mode) {
    std::vector<uint64_t> handles;
    for (const BoundPlan& bound : plans) handles.push_back(plan_of(bound));
    Packer arguments = to_device();
    arguments.add(handles, dynamic_cast<RemoteWeights&>(weights).made.handle(),
                  dynamic_cast<RemoteCaches&>(caches).made.handle(), mode);
    const auto answer = RL_TRY(team_->call(rank_, RemoteCall::record, std::move(arguments)));
    Unpacker in(answer);
    std::vector<std::unique_ptr<Executable>> made;
    for (size_t i = 0; i < plans.size(); ++i) {
        const auto handle = in.next<uint64_t>();
        const auto most_best = in.next<uint32_t>();
        const bool mixes = in.next<bool>();
        made.push_back(std::make_unique<RemoteExecutable>(team_, rank_, handle, most_best, mixes));
    }
    RL_TRY(in.status());
    return made;
}

uint64_t RemoteBackend::handle_of(const Executable& executable) {
    return dynamic_cast<const RemoteExecutable&>(executable).handle();
}

uint64_t RemoteBackend::allocated() const {
    const auto answer = team_->call(rank_, RemoteCall::allocated, to_device());
    return answer ? Unpacker(answer.value()).next<uint64_t>() : 0;
}

double RemoteBackend::measure_read_bandwidth() {
    const auto answer = team_->call(rank_, RemoteCall::bandwidth, to_device());
    return answer ? Unpacker(answer.value()).next<double>() : 0.0;
}

}  // namespace redline
