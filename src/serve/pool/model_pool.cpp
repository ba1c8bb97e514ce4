#include "serve/pool/model_pool.h"

#include <algorithm>

namespace redline::serve {

ModelPool::ModelPool(std::vector<OfferedModel> offered, PoolOptions options, Open open, Check check)
    : offered_(std::move(offered)),
      options_(std::move(options)),
      open_(std::move(open)),
      check_(std::move(check)),
      entries_(offered_.size()),
      threads_(std::make_unique<HandlerThreads>(options_.threads)) {
    loader_ = std::thread([this] { loop(); });
}

ModelPool::~ModelPool() {
    drain(std::chrono::milliseconds(0));
    // Requests that end with their scheduler still give their lease back.
    for (Entry& entry : entries_) entry.hosted.reset();
}

const OfferedModel* ModelPool::find(std::string_view name) const {
    constexpr std::string_view kTag = ":latest";
    const auto called = [&](std::string_view wanted) {
        return std::ranges::find_if(offered_, [&](const OfferedModel& model) {
            return model.name == wanted || std::ranges::find(model.aliases, wanted) != model.aliases.end();
        });
    };
    auto found = called(name);
    if (found == offered_.end() && name.ends_with(kTag))
        found = called(name.substr(0, name.size() - kTag.size()));
    return found == offered_.end() ? nullptr : &*found;
}

const OfferedModel* ModelPool::recent() const {
    const std::lock_guard lock(mutex_);
    const Entry* last = nullptr;
    for (const Entry& entry : entries_)
        if (entry.hosted && (!last || entry.used > last->used)) last = &entry;
    return last ? &offered_[size_t(last - entries_.data())] : nullptr;
}

void ModelPool::want(const OfferedModel& model, std::shared_ptr<const std::atomic<bool>> gone, Take take,
                     std::optional<std::chrono::milliseconds> keep) {
    const size_t index = size_t(&model - offered_.data());
    Lease held;
    {
        const std::lock_guard lock(mutex_);
        if (!draining_ && entries_[index].state != State::loaded) {
            waiting_.push_back({index, std::move(gone), std::move(take), keep});
            changed_.notify_all();
            return;
        }
        if (!draining_) {
            held = lease(index, true);
            entries_[index].keep = keep.value_or(entries_[index].keep);
        }
    }
    take(std::move(held), {.status = 503, .message = "the server ends, and takes no new requests"});
}

void ModelPool::unload(const OfferedModel& model) {
    const std::lock_guard lock(mutex_);
    entries_[size_t(&model - offered_.data())].keep = std::chrono::milliseconds(0);
    changed_.notify_all();
}

ModelPool::Lease ModelPool::lease(size_t index, bool uses) {
    Entry& entry = entries_[index];
    ++entry.users;
    if (uses) entry.used = Clock::now();
    return {&entry.hosted->service(), [this, index, uses](Service*) { give_back(index, uses); }};
}

void ModelPool::give_back(size_t index, bool uses) {
    // Notified with the lock held: the pool may end as soon as it is free.
    const std::lock_guard lock(mutex_);
    --entries_[index].users;
    if (uses) entries_[index].used = Clock::now();
    changed_.notify_all();
}

ModelPool::Seen ModelPool::seen(size_t index) {
    const Entry& entry = entries_[index];
    auto left = entry.keep;
    if (entry.users == 0 && left != kForever)
        left = std::max(std::chrono::milliseconds(0),
                        std::chrono::duration_cast<std::chrono::milliseconds>(due(entry) - Clock::now()));
    return {&offered_[index], entry.state, entry.hosted ? lease(index, false) : nullptr, entry.fault, left};
}

// The time at which it is closed, where nobody uses it.
ModelPool::Clock::time_point ModelPool::due(const Entry& entry) {
    return entry.keep == kForever ? Clock::time_point::max() : entry.used + entry.keep;
}

std::vector<ModelPool::Seen> ModelPool::look() {
    const std::lock_guard lock(mutex_);
    std::vector<Seen> all;
    for (size_t i = 0; i < entries_.size(); ++i) all.push_back(seen(i));
    return all;
}

ModelPool::Seen ModelPool::look(const OfferedModel& model) {
    const std::lock_guard lock(mutex_);
    return seen(size_t(&model - offered_.data()));
}

Health ModelPool::health() const {
    if (draining_) return Health::draining;
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
        if (entry.hosted)
            if (const Health health = entry.hosted->service().answers.health(); health != Health::serving)
                return health;
    return Health::serving;
}

uint64_t ModelPool::in_use() const {
    const std::lock_guard lock(mutex_);
    uint64_t users = 0;
    for (const Entry& entry : entries_) users += entry.users;
    return users;
}

void ModelPool::drain(std::chrono::milliseconds longest) {
    const Clock::time_point deadline = Clock::now() + longest;
    {
        const std::lock_guard lock(mutex_);
        draining_ = true;
        changed_.notify_all();
    }
    if (loader_.joinable()) loader_.join();
    for (const Waiting& each : std::exchange(waiting_, {}))
        each.take(nullptr, {.status = 503, .message = "the server ends, and loads no more models"});
    threads_.reset();
    using std::chrono::milliseconds;
    for (Entry& entry : entries_)
        if (entry.hosted)
            entry.hosted->drain(
                std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(deadline - Clock::now())));
}

void ModelPool::loop() {
    Lock lock(mutex_);
    while (!draining_) {
        if (serve_waiting(lock) || unload_idle(lock)) continue;
        auto wake = Clock::now() + std::chrono::hours(1);
        for (const Entry& entry : entries_)
            if (entry.hosted && entry.users == 0) wake = std::min(wake, due(entry));
        changed_.wait_until(lock, wake);
    }
}

// Serves all requests for the model that the first one wants; false: something has to end before.
bool ModelPool::serve_waiting(Lock& lock) {
    std::erase_if(waiting_, [](const Waiting& each) { return each.gone && *each.gone; });
    if (waiting_.empty()) return false;
    const size_t index = waiting_.front().index;
    if (entries_[index].hosted) {
        // It was about to make room for a model that nobody waits for any more, or that came before.
        entries_[index].state = State::loaded;
        hand_out(index, {});
        return true;
    }
    if (is_full())
        if (const std::optional<Problem> problem = check(lock, index)) {
            end_load(index, *problem);
            return true;
        }
    if (!make_room(lock)) return false;
    load(lock, index);
    return true;
}

// Checked once for all that wait for the model, as they may have to wait for the end of answers afterwards.
std::optional<Problem> ModelPool::check(Lock& lock, size_t index) {
    if (checked_ == index) return {};
    uint64_t held = 0;
    for (const Entry& entry : entries_)
        if (entry.hosted) held += entry.hosted->bytes();
    lock.unlock();
    std::optional<Problem> problem;
    try {
        problem = check_(offered_[index], held);
    } catch (const std::exception& fault) {
        problem = {.status = 503, .message = fmt::format("the model cannot be checked: {}", fault.what())};
    }
    lock.lock();
    if (!problem) checked_ = index;
    return problem;
}

bool ModelPool::is_full() const {
    const auto loaded = std::ranges::count_if(entries_, [](const Entry& entry) { return !!entry.hosted; });
    return size_t(loaded) >= options_.most;
}

std::optional<size_t> ModelPool::least_recent(bool idle) const {
    std::optional<size_t> least;
    for (size_t i = 0; i < entries_.size(); ++i) {
        const Entry& entry = entries_[i];
        if (!entry.hosted || (idle && entry.users > 0)) continue;
        if (!least || entry.used < entries_[*least].used) least = i;
    }
    return least;
}

bool ModelPool::make_room(Lock& lock) {
    if (!is_full()) return true;
    if (const std::optional<size_t> idle = least_recent(true)) {
        unload(lock, *idle, "another model is wanted");
        return true;
    }
    const bool closing =
        std::ranges::any_of(entries_, [](const Entry& entry) { return entry.state == State::closing; });
    if (!closing) entries_[*least_recent(false)].state = State::closing;
    return false;
}

OpenedModel ModelPool::open_now(size_t index) {
    try {
        return open_(offered_[index]);
    } catch (const std::bad_alloc&) {
        return {nullptr, {.status = 503, .message = "there is no memory left to load the model"}};
    } catch (const std::exception& fault) {
        return {nullptr, {.status = 500, .message = fmt::format("a fault of this server: {}", fault.what())}};
    }
}

void ModelPool::load(Lock& lock, size_t index) {
    Entry& entry = entries_[index];
    entry.state = State::loading;
    entry.keep = offered_[index].idle.value_or(options_.idle);
    while (true) {
        lock.unlock();
        OpenedModel opened = open_now(index);
        lock.lock();
        entry.hosted = std::move(opened.model);
        entry.used = Clock::now();
        // A loaded model that is not in use may have the memory that this one needs.
        const bool no_room = !entry.hosted && opened.problem.status == 503 && !draining_;
        if (no_room && least_recent(true)) {
            const std::optional<Problem> problem = check(lock, index);
            if (problem) return end_load(index, *problem);
            if (const std::optional<size_t> idle = least_recent(true)) {
                unload(lock, *idle, "another model needs the memory");
                continue;
            }
        }
        return end_load(index, opened.problem);
    }
}

// The model is there, or the problem is told to all that wait for it.
void ModelPool::end_load(size_t index, const Problem& problem) {
    Entry& entry = entries_[index];
    entry.fault = entry.hosted ? "" : problem.message;
    entry.state = entry.hosted ? State::loaded : State::unloaded;
    checked_.reset();
    // A model that had been chosen to make room stays where the load has failed.
    for (Entry& other : entries_)
        if (other.state == State::closing) other.state = State::loaded;
    say(entry.hosted ? fmt::format("{} is loaded", offered_[index].name)
                     : fmt::format("{} cannot be loaded: {}", offered_[index].name, entry.fault));
    hand_out(index, problem);
}

void ModelPool::unload(Lock& lock, size_t index, std::string_view why) {
    Entry& entry = entries_[index];
    entry.state = State::closing;
    std::unique_ptr<HostedModel> hosted = std::move(entry.hosted);
    lock.unlock();
    hosted.reset();
    say(fmt::format("{} is unloaded: {}", offered_[index].name, why));
    lock.lock();
    entry.state = State::unloaded;
}

bool ModelPool::unload_idle(Lock& lock) {
    for (size_t i = 0; i < entries_.size(); ++i) {
        const Entry& entry = entries_[i];
        if (!entry.hosted || entry.users > 0 || due(entry) > Clock::now()) continue;
        unload(lock, i,
               entry.keep.count() == 0 ? "a request asked for that" : "nobody has used it for a while");
        return true;
    }
    return false;
}

// Gives the model, or the problem, to all that wait for it.
void ModelPool::hand_out(size_t index, const Problem& problem) {
    std::deque<Waiting> others;
    for (Waiting& each : waiting_) {
        if (each.index != index) {
            others.push_back(std::move(each));
            continue;
        }
        // The lease goes along: one that ended here would ask for the lock again.
        Lease held = entries_[index].hosted ? lease(index, true) : nullptr;
        entries_[index].keep = each.keep.value_or(entries_[index].keep);
        threads_->run([take = std::move(each.take), held = std::move(held), problem]() mutable {
            take(std::move(held), problem);
        });
    }
    waiting_ = std::move(others);
}

void ModelPool::say(const std::string& text) const {
    if (options_.say) options_.say(text);
}

}  // namespace redline::serve
