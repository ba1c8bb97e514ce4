#include "places/rank_worker.h"

namespace redline {

namespace {

// Handles that a call makes: its number, and for further ones numbers that no call has.
uint64_t further_handle(uint64_t call, uint64_t which) {
    return which == 0 ? call : (which << 48) | call;
}

// Parts of a weight that are not in it would be read out of bounds.
Status check_slice(const WeightSlice& slice, const Tensor& of) {
    const auto within = [](const Runs& runs, uint64_t count, uint64_t grain) {
        return std::ranges::all_of(runs, [&](const Run& run) {
            return run.first <= count && run.count <= count - run.first && run.first % grain == 0 &&
                   run.count % grain == 0;
        });
    };
    if (within(slice.matrices, of.shape.count, 1) && within(slice.rows, of.shape.rows, 1) &&
        within(slice.cols, of.shape.cols, of.format->block))
        return {};
    return error("rank 0 asks for a part of {} that is not there", of.name);
}

std::vector<RankRun::Crossing> crossings_of(const std::vector<RemoteJoin::Crossing>& all) {
    std::vector<RankRun::Crossing> made;
    for (const RemoteJoin::Crossing& one : all) made.push_back({one.slot, one.width});
    return made;
}

// A part takes and leaves rows of the widths that its plan has, and a slot has one width everywhere.
Status check_widths(const RemoteJoin::Part& part, const Plan& plan, bool last,
                    std::map<int32_t, uint32_t>& widths) {
    const auto sum = [&](const std::vector<RemoteJoin::Crossing>& all) {
        uint64_t width = 0;
        for (const RemoteJoin::Crossing& one : all) width += one.width;
        return width;
    };
    bool fits =
        sum(part.takes) == plan.input_floats(1) && (last || sum(part.leaves) == plan.slot(plan.output).width);
    for (const auto* all : {&part.takes, &part.leaves, &part.sums})
        for (const RemoteJoin::Crossing& one : *all)
            fits = fits && widths.try_emplace(one.slot.index, one.width).first->second == one.width;
    if (!fits) return error("rank 0 joins executables that do not follow each other");
    return {};
}

// Calls `run` with the values of a step.
template <typename Run>
Status with_params(const RemoteStep& step, const std::atomic<bool>& cancel, const Run& run) {
    StepParams params{step.tokens, step.rows, step.outputs};
    std::vector<std::span<const uint32_t>> pages(step.pages.begin(), step.pages.end());
    if (step.has_pages) params.pages = pages;
    params.cancel = &cancel;
    params.best = step.best;
    params.best_among = step.best_among;
    params.input = step.input;
    params.lookups = step.lookups;
    params.states = step.states;
    params.row_states = step.row_states;
    return run(params);
}

RemoteRows rows_of(const Executable& executable) {
    const auto copied = [](auto values) { return std::vector(values.begin(), values.end()); };
    return {"", copied(executable.output()), copied(executable.best()), copied(executable.hidden())};
}

}  // namespace

RankWorker::Joined::Joined(std::vector<RankRun::Part> parts, const RemoteJoin& how, WireSums& wire,
                           uint32_t rank)
    : sums(RankRun::sums_of(parts)),
      run(std::move(parts), {how.first_output, how.outputs}, sums),
      reducer(wire, how.chain, how.ranks),
      place(size_t(std::ranges::find(how.ranks, rank) - how.ranks.begin())),
      sends_output(how.sends_output),
      answers(how.answers) {}

RankWorker::RankWorker(Wire& wire) : wire_(wire), ping_(wire), sums_(wire) {
    wire_.listen([this](uint32_t from, WireMessage message) { take(from, message); },
                 [this](uint32_t rank, const std::string& why) { take_loss(rank, why); });
}

// Rank 0 looks after all ranks, but does not see a connection between two others that breaks.
void RankWorker::take_loss(uint32_t rank, const std::string& why) {
    {
        const std::lock_guard lock(mutex_);
        if (rank == 0) lost_ = why;
    }
    if (rank != 0) wire_.send(0, Packer().add(RemoteKind::loss, rank, why).take());
    sums_.stop();
    came_.notify_all();
}

void RankWorker::say_hello(const RemoteHello& hello) {
    wire_.send(0, Packer().add(RemoteKind::hello, hello).take());
}

void RankWorker::take(uint32_t from, const WireMessage& message) {
    if (ping_.took(from, message) || sums_.took(from, message)) return;
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
        if (kind == RemoteKind::end) {
            over_ = true;
            sums_.stop();
        }
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
    joined_.clear();
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
    if (what == RemoteCall::run_rank) return run_rank(in);
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
        case RemoteCall::join:
            return join(in);
        case RemoteCall::sums:
            return time_sums(in);
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
    const auto slices = in.next<std::vector<WeightSlice>>();
    const auto infos = in.next<std::vector<WeightInfo>>();
    RL_TRY(in.status());
    const std::span<const WeightInfo> all = model_->file_weights();
    std::vector<Weight> which;
    for (size_t i = 0; i < slices.size(); ++i) {
        which.push_back(slices[i].of);
        const auto index = size_t(which[i].index);
        if (which[i].index < 0 || index >= all.size() || i >= infos.size() ||
            all[index].tensor.name != infos[i].tensor.name ||
            all[index].tensor.shape != infos[i].tensor.shape)
            return error("rank 0 counts the model's weights in another way");
        RL_TRY(check_slice(slices[i], all[index].tensor));
    }
    const bool whole = std::ranges::all_of(slices, [](const WeightSlice& one) { return one.is_whole(); });
    weights_[call_] =
        RL_TRY(whole ? model_->load_some(which, backend) : model_->load_slices(slices, backend, {}));
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
    joined_.erase(handle);
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

Error RankWorker::named(const Error& problem) const {
    return error("{}: {}", wire_.name_of(wire_.rank()), problem.message);
}

RemoteRows RankWorker::compute(Part& part, RemoteStep& step) {
    if (const Status fits = step.check(part.plan); !fits) return {named(fits.error()).message};
    if (part.from != kNoRank) {
        RemoteRows before = input_of(part, step.number);
        if (!before.problem.empty()) return {before.problem};
        step.input = std::move(before.output);
    }
    if (step.input.size() != part.plan.input_floats(step.tokens.size()))
        return {named(error("a step has {} floats as its input", step.input.size())).message};
    const Status done =
        with_params(step, cancelled_, [&](const StepParams& params) { return part.executable->run(params); });
    if (!done) return {named(done.error()).message};
    return rows_of(*part.executable);
}

void RankWorker::begin_step(uint64_t chain, uint64_t number) {
    const std::lock_guard lock(mutex_);
    running_ = {chain, number};
    const auto last = cancelled_steps_.find(chain);
    cancelled_ = last != cancelled_steps_.end() && number <= last->second;
}

void RankWorker::end_step(uint32_t to, uint64_t chain, uint64_t number, const RemoteRows& rows) {
    if (!rows.problem.empty() && lost_device())
        wire_.send(0, Packer()
                          .add(RemoteKind::answer, uint64_t(0), true, rows.problem, std::vector<std::byte>())
                          .take());
    wire_.send(to, Packer().add(RemoteKind::rows, chain, number, rows).take());
    const std::lock_guard lock(mutex_);
    running_ = {};
}

void RankWorker::run(Unpacker& in) {
    RemoteStep step;
    step.unpack(in);
    const auto found = parts_.find(step.executable);
    if (found == parts_.end() || !in.status()) return;  // rank 0 is of this build, and asks for no such thing
    Part& part = found->second;
    begin_step(part.chain, step.number);
    end_step(part.to, part.chain, step.number, compute(part, step));
}

RankWorker::Answer RankWorker::join(Unpacker& in) {
    const auto how = in.next<RemoteJoin>();
    RL_TRY(in.status());
    std::vector<RankRun::Part> parts;
    std::map<int32_t, uint32_t> widths;
    Plan limits;
    for (const RemoteJoin::Part& part : how.parts) {
        const auto found = parts_.find(part.executable);
        if (found == parts_.end()) return error("there is no executable {}", part.executable);
        const Plan& plan = found->second.plan;
        RL_TRY(check_widths(part, plan, &part == &how.parts.back(), widths));
        limits.max_rows = plan.max_rows;
        limits.max_outputs = plan.max_outputs;
        if (plan.lookup) {
            limits.slots = {plan.slot(plan.lookup)};
            limits.lookup = {0};
        }
        parts.push_back({found->second.executable, crossings_of(part.takes), crossings_of(part.leaves),
                         crossings_of(part.sums)});
    }
    if (parts.empty() || std::ranges::count(how.ranks, wire_.rank()) != 1 ||
        std::ranges::any_of(how.ranks, [&](uint32_t rank) { return rank >= wire_.ranks(); }))
        return error("this rank has no part of what is joined");
    auto made = std::make_unique<Joined>(std::move(parts), how, sums_, wire_.rank());
    made->limits = std::move(limits);
    Packer out;
    out.add(call_, made->run.last().most_best(), made->run.mixes());
    joined_[call_] = std::move(made);
    return out.take();
}

RankWorker::Answer RankWorker::time_sums(Unpacker& in) {
    const auto chain = in.next<uint64_t>();
    const auto ranks = in.next<std::vector<uint32_t>>();
    const auto floats = in.next<uint64_t>();
    RL_TRY(in.status());
    constexpr uint64_t kMost = uint64_t(1) << 24;
    if (floats > kMost || std::ranges::count(ranks, wire_.rank()) != 1 ||
        std::ranges::any_of(ranks, [&](uint32_t rank) { return rank >= wire_.ranks(); }))
        return error("this rank has no part of the sums");
    return Packer().add(sums_.seconds(chain, ranks, floats)).take();
}

RemoteRows RankWorker::compute_rank(Joined& joined, const RemoteStep& step) {
    joined.reducer.begin(step.number);
    if (const Status fits = step.check(joined.limits); !fits) {
        joined.reducer.give_up();
        return {named(fits.error()).message};
    }
    const Status done = with_params(step, cancelled_, [&](const StepParams& params) {
        joined.run.begin(params);
        joined.run.run(joined.place, params, joined.reducer);
        return joined.run.status();
    });
    if (!done) return {named(done.error()).message};
    if (joined.run.gave_up()) return {"", {}, {}, {}, true};
    return joined.sends_output ? rows_of(joined.run.last()) : RemoteRows{};
}

void RankWorker::run_rank(Unpacker& in) {
    RemoteStep step;
    step.unpack(in);
    const auto found = joined_.find(step.executable);
    if (found == joined_.end() || !in.status()) return;
    Joined& joined = *found->second;
    begin_step(joined.answers, step.number);
    end_step(0, joined.answers, step.number, compute_rank(joined, step));
}

}  // namespace redline
