#include "places/rank_worker.h"

namespace redline {

namespace {

// Handles that a call makes: its number, and for further ones numbers that no call has.
uint64_t further_handle(uint64_t call, uint64_t which) {
    return which == 0 ? call : (which << 48) | call;
}

}  // namespace

RankWorker::RankWorker(Wire& wire) : wire_(wire), ping_(wire) {
    wire_.listen([this](uint32_t from, WireMessage message) { take(from, message); },
                 [this](uint32_t rank, const std::string& why) {
                     const std::lock_guard lock(mutex_);
                     if (rank == 0) lost_ = why;
                     came_.notify_all();
                 });
}

void RankWorker::say_hello(const RemoteHello& hello) {
    wire_.send(0, Packer().add(RemoteKind::hello, hello).take());
}

void RankWorker::take(uint32_t from, const WireMessage& message) {
    if (ping_.took(from, message)) return;
    Unpacker in(message);
    const auto kind = in.next<RemoteKind>();
    if (kind == RemoteKind::rows) {
        const auto chain = in.next<uint64_t>(), number = in.next<uint64_t>();
        auto rows = in.next<RemoteRows>();
        if (!in.status()) return;
        const std::lock_guard lock(mutex_);
        rows_[{chain, number}] = std::move(rows);
    } else if (from == 0) {  // nobody else has a say
        const std::lock_guard lock(mutex_);
        if (kind == RemoteKind::call) calls_.push_back(message);
        if (kind == RemoteKind::end) over_ = true;
        if (kind == RemoteKind::cancel) {
            const auto chain = in.next<uint64_t>(), number = in.next<uint64_t>();
            take_cancel(chain, number);
        }
    }
    came_.notify_all();
}

void RankWorker::take_cancel(uint64_t chain, uint64_t number) {
    cancelled_steps_[chain] = std::max(cancelled_steps_[chain], number);
    if (running_.first == chain && running_.second <= number) cancelled_ = true;
}

// Nothing at the end.
std::optional<WireMessage> RankWorker::next_call() {
    const Expecting expecting(wire_);
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return over_ || !lost_.empty() || !calls_.empty(); });
    if (over_ || !lost_.empty()) return {};
    WireMessage first = std::move(calls_.front());
    calls_.pop_front();
    return first;
}

Status RankWorker::end() {
    const std::lock_guard lock(mutex_);
    if (!over_) return error("{} is lost: {}", wire_.name_of(0), lost_);
    return {};
}

Status RankWorker::wait_for_end() {
    while (next_call()) {
    }
    return end();
}

Status RankWorker::serve(const Model& model, std::vector<Backend*> devices, const HostCall& host) {
    model_ = &model;
    devices_ = std::move(devices);
    while (const std::optional<WireMessage> call = next_call()) execute(*call, host);
    parts_.clear();
    caches_.clear();
    weights_.clear();
    plans_.clear();
    return end();
}

bool RankWorker::lost_device() const {
    return std::ranges::any_of(devices_, [](const Backend* device) { return device->lost(); });
}

void RankWorker::execute(const WireMessage& message, const HostCall& host) {
    Unpacker outer(message);
    outer.next<RemoteKind>();
    call_ = outer.next<uint64_t>();
    handles_ = 0;
    const auto what = outer.next<RemoteCall>();
    const auto arguments = outer.next<std::vector<std::byte>>();
    Unpacker in(arguments);
    if (what == RemoteCall::run) return run(in);
    if (what == RemoteCall::pass) return pass(in);
    if (what == RemoteCall::drop) return drop(in.next<uint64_t>());
    const Answer result = answer(what, in, host);
    Packer out;
    out.add(RemoteKind::answer, call_, lost_device(), result ? std::string() : result.error().message,
            result ? result.value() : std::vector<std::byte>());
    wire_.send(0, out.take());
}

RankWorker::Answer RankWorker::answer(RemoteCall what, Unpacker& in, const HostCall& host) {
    switch (what) {
        case RemoteCall::lower:
            return lower_plan(in);
        case RemoteCall::load:
            return load(in);
        case RemoteCall::caches:
            return make_caches(in);
        case RemoteCall::measure:
            return measure(in);
        case RemoteCall::record:
            return record(in);
        case RemoteCall::read:
            return read(in);
        case RemoteCall::write:
            return write(in);
        case RemoteCall::copy:
            return copy(in);
        case RemoteCall::allocated:
            return Packer().add(RL_TRY(device(in))->allocated()).take();
        case RemoteCall::bandwidth:
            return Packer().add(RL_TRY(device(in))->measure_read_bandwidth()).take();
        case RemoteCall::hop: {
            const auto rank = in.next<uint32_t>();
            const auto bytes = in.next<uint64_t>();
            RL_TRY(in.status());
            if (rank >= wire_.ranks()) return error("there is no rank {}", rank);
            return Packer().add(ping_.seconds(rank, bytes)).take();
        }
        case RemoteCall::host:
            return host(in.next<std::vector<std::byte>>());
        default:
            return error("rank 0 asks for something that this rank does not know");
    }
}

Result<Backend*> RankWorker::device(Unpacker& in) {
    const auto number = in.next<uint32_t>();
    RL_TRY(in.status());
    if (number >= devices_.size()) return error("there is no device {}", number);
    return devices_[number];
}

RankWorker::Answer RankWorker::lower_plan(Unpacker& in) {
    Backend& backend = *RL_TRY(device(in));
    const bool fuse = in.next<bool>();
    const Plan plan = RL_TRY(unpack_plan(in));
    BoundPlan bound = RL_TRY(lower(plan, backend, fuse));
    Packer out;
    out.add(call_, mixes(bound), bound.picks_best);
    pack_plan(out, bound.plan);
    plans_.emplace(call_, std::move(bound));
    return out.take();
}

Result<BoundPlan> RankWorker::take_plan(uint64_t handle) {
    const auto found = plans_.find(handle);
    if (found == plans_.end()) return error("there is no plan {}", handle);
    BoundPlan bound = std::move(found->second);
    plans_.erase(found);
    return bound;
}

RankWorker::Answer RankWorker::load(Unpacker& in) {
    Backend& backend = *RL_TRY(device(in));
    const auto which = in.next<std::vector<Weight>>();
    const auto infos = in.next<std::vector<WeightInfo>>();
    RL_TRY(in.status());
    const std::span<const WeightInfo> all = model_->file_weights();
    for (size_t i = 0; i < which.size(); ++i) {
        const auto index = size_t(which[i].index);
        if (which[i].index < 0 || index >= all.size() || i >= infos.size() ||
            all[index].tensor.name != infos[i].tensor.name ||
            all[index].tensor.shape != infos[i].tensor.shape)
            return error("rank 0 counts the model's weights in another way");
    }
    weights_[call_] = RL_TRY(model_->load_some(which, backend));
    return Packer().add(call_, weights_[call_]->bytes()).take();
}

RankWorker::Answer RankWorker::make_caches(Unpacker& in) {
    Backend& backend = *RL_TRY(device(in));
    const auto infos = in.next<std::vector<CacheInfo>>();
    RL_TRY(in.status());
    caches_[call_] = {RL_TRY(backend.make_caches(infos)), infos};
    return Packer().add(call_, caches_[call_].store->bytes()).take();
}

RankWorker::Answer RankWorker::measure(Unpacker& in) {
    Backend& backend = *RL_TRY(device(in));
    const auto weights = in.next<std::vector<WeightInfo>>();
    const auto caches = in.next<std::vector<CacheInfo>>();
    const auto handles = in.next<std::vector<std::vector<uint64_t>>>();
    RL_TRY(in.status());
    std::vector<PlanGroup> groups;
    for (const std::vector<uint64_t>& group : handles) {
        groups.emplace_back();
        for (const uint64_t handle : group) groups.back().push_back(RL_TRY(take_plan(handle)));
    }
    return Packer().add(RL_TRY(backend.measure(weights, caches, std::move(groups)))).take();
}

RankWorker::Answer RankWorker::record(Unpacker& in) {
    Backend& backend = *RL_TRY(device(in));
    const auto handles = in.next<std::vector<uint64_t>>();
    const auto weights = weights_.find(in.next<uint64_t>());
    const auto caches = caches_.find(in.next<uint64_t>());
    const auto mode = in.next<Record>();
    RL_TRY(in.status());
    if (weights == weights_.end() || caches == caches_.end())
        return error("the plan's weights or caches are not there");
    PlanGroup group;
    std::vector<Plan> plans;
    for (const uint64_t handle : handles) {
        group.push_back(RL_TRY(take_plan(handle)));
        plans.push_back(group.back().plan);
        plans.back().steps.clear();
    }
    auto made = RL_TRY(backend.record_group(std::move(group), *weights->second, *caches->second.store, mode));
    Packer out;
    for (size_t i = 0; i < made.size(); ++i) {
        const uint64_t handle = further_handle(call_, i);
        out.add(handle, made[i]->most_best(), made[i]->mixes());
        parts_[handle] = {std::move(made[i]), std::move(plans[i])};
    }
    return out.take();
}

uint64_t RankWorker::CacheRange::bytes() const {
    const CacheInfo& info = caches->infos[size_t(cache.index)];
    return count * info.row_bytes() * info.kv_heads;
}

Result<RankWorker::CacheRange> RankWorker::range(Unpacker& in) {
    const auto found = caches_.find(in.next<uint64_t>());
    CacheRange all;
    in.get(all.cache, all.first, all.count);
    RL_TRY(in.status());
    if (found == caches_.end()) return error("the caches are not there");
    all.caches = &found->second;
    const std::vector<CacheInfo>& infos = all.caches->infos;
    if (all.cache.index < 0 || size_t(all.cache.index) >= infos.size())
        return error("there is no cache {}", all.cache.index);
    const uint64_t capacity = infos[size_t(all.cache.index)].capacity;
    if (all.first > capacity || all.count > capacity - all.first)
        return error("rows {} to {} of a cache of {} are asked for", all.first, all.first + all.count,
                     capacity);
    return all;
}

RankWorker::Answer RankWorker::read(Unpacker& in) {
    const CacheRange all = RL_TRY(range(in));
    std::vector<std::byte> rows(all.bytes());
    if (in.next<uint64_t>() != rows.size()) return error("the rows of a cache have {} bytes", rows.size());
    RL_TRY(all.caches->store->read(all.cache, all.first, all.count, rows));
    return Packer().add(rows).take();
}

RankWorker::Answer RankWorker::write(Unpacker& in) {
    const CacheRange all = RL_TRY(range(in));
    const auto rows = in.next<std::vector<std::byte>>();
    RL_TRY(in.status());
    if (rows.size() != all.bytes()) return error("the rows of a cache have {} bytes", all.bytes());
    RL_TRY(all.caches->store->write(all.cache, all.first, all.count, rows));
    return std::vector<std::byte>();
}

RankWorker::Answer RankWorker::copy(Unpacker& in) {
    const auto handle = in.next<uint64_t>();
    const auto cache = in.next<Cache>();
    const auto from = in.next<uint64_t>(), to = in.next<uint64_t>(), count = in.next<uint64_t>();
    RL_TRY(in.status());
    const auto range_at = [&](uint64_t first) {
        const std::vector<std::byte> bytes = Packer().add(handle, cache, first, count).take();
        Unpacker again(bytes);
        return range(again);
    };
    const CacheRange source = RL_TRY(range_at(from));
    RL_TRY(range_at(to));
    std::vector<std::byte> rows(source.bytes());
    RL_TRY(source.caches->store->read(cache, from, count, rows));
    RL_TRY(source.caches->store->write(cache, to, count, rows));
    return std::vector<std::byte>();
}

void RankWorker::pass(Unpacker& in) {
    const auto found = parts_.find(in.next<uint64_t>());
    if (found != parts_.end()) in.get(found->second.chain, found->second.from, found->second.to);
}

void RankWorker::drop(uint64_t handle) {
    parts_.erase(handle);
    caches_.erase(handle);
    weights_.erase(handle);
    plans_.erase(handle);
}

RemoteRows RankWorker::input_of(const Part& part, uint64_t number) {
    const std::pair key(part.chain, number);
    const Expecting expecting(wire_);
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return over_ || !lost_.empty() || rows_.contains(key); });
    // Steps before this one that were given up may have left rows.
    rows_.erase(rows_.lower_bound({part.chain, 0}), rows_.lower_bound(key));
    const auto found = rows_.find(key);
    if (found == rows_.end()) return {"the job has ended"};
    RemoteRows rows = std::move(found->second);
    rows_.erase(found);
    return rows;
}

RemoteRows RankWorker::compute(Part& part, RemoteStep& step) {
    const auto failed = [this](const Error& problem) {
        return RemoteRows{fmt::format("{}: {}", wire_.name_of(wire_.rank()), problem.message)};
    };
    if (const Status fits = step.check(part.plan); !fits) return failed(fits.error());
    if (part.from != kNoRank) {
        RemoteRows before = input_of(part, step.number);
        if (!before.problem.empty()) return {before.problem};
        step.input = std::move(before.output);
    }
    if (step.input.size() != part.plan.input_floats(step.tokens.size()))
        return failed(error("a step has {} floats as its input", step.input.size()));
    StepParams params{step.tokens, step.rows, step.outputs};
    std::vector<std::span<const uint32_t>> pages(step.pages.begin(), step.pages.end());
    if (step.has_pages) params.pages = pages;
    params.cancel = &cancelled_;
    params.best = step.best;
    params.best_among = step.best_among;
    params.input = step.input;
    params.lookups = step.lookups;
    params.states = step.states;
    params.row_states = step.row_states;
    const Status done = part.executable->run(params);
    if (!done) return failed(done.error());
    const auto copied = [](auto values) { return std::vector(values.begin(), values.end()); };
    return {"", copied(part.executable->output()), copied(part.executable->best()),
            copied(part.executable->hidden())};
}

void RankWorker::run(Unpacker& in) {
    RemoteStep step;
    step.unpack(in);
    const auto found = parts_.find(step.executable);
    if (found == parts_.end() || !in.status()) return;  // rank 0 is of this build, and asks for no such thing
    Part& part = found->second;
    {
        const std::lock_guard lock(mutex_);
        running_ = {part.chain, step.number};
        const auto last = cancelled_steps_.find(part.chain);
        cancelled_ = last != cancelled_steps_.end() && step.number <= last->second;
    }
    const RemoteRows rows = compute(part, step);
    if (!rows.problem.empty() && lost_device())
        wire_.send(0, Packer()
                          .add(RemoteKind::answer, uint64_t(0), true, rows.problem, std::vector<std::byte>())
                          .take());
    wire_.send(part.to, Packer().add(RemoteKind::rows, part.chain, step.number, rows).take());
    const std::lock_guard lock(mutex_);
    running_ = {};
}

}  // namespace redline
