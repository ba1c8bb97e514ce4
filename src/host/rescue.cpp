#include "host/rescue.h"

#include <algorithm>
#include <memory>

namespace redline {

namespace {

using Clock = std::chrono::steady_clock;

// A device that is lost again within this time would be lost for ever.
constexpr std::chrono::seconds kCalm(5);

// Gives the shared side of a mutex up for the exclusive one, and takes it back.
class Exclusive {
public:
    explicit Exclusive(std::shared_mutex& mutex) : mutex_(mutex) {
        mutex_.unlock_shared();
        mutex_.lock();
    }
    ~Exclusive() {
        mutex_.unlock();
        mutex_.lock_shared();
    }
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

private:
    std::shared_mutex& mutex_;
};

Error not_again(const Error& loss, const Error& problem) {
    return error("{}; opening it again: {}", loss.message, problem.message);
}

}  // namespace

Status DeviceRescue::place() {
    loaded_.model->unload();
    if (options_.second_head) options_.second_head->unload();
    for (OpenDevice* device : loaded_.devices()) {
        if (device->backend && !device->backend->lost()) continue;
        // The lost one goes first: both may not fit.
        if (device->backend) device->placed = device->backend.get();
        device->backend.reset();
        device->backend = RL_TRY(redline::open_again(loaded_, *device, options_));
        for (Placement& placement : loaded_.split.placements)
            if (placement.backend == device->placed) placement.backend = device->backend.get();
        for (RankPlace& rank : loaded_.split.ranks)
            if (rank.backend == device->placed) rank.backend = device->backend.get();
    }
    if (options_.second_head) RL_TRY(options_.second_head->place(loaded_.output_backend(), {}));
    if (loaded_.split) return {};
    Work loading(*options_.notes, "loading");
    return loaded_.model->place(*loaded_.device.backend,
                                [&](uint64_t done, uint64_t total) { loading.update(done, total); });
}

std::string DeviceRescue::lost_label() const {
    for (const OpenDevice* device : loaded_.devices())
        if (device->backend && device->backend->lost()) return loaded_.label(device->backend.get());
    return loaded_.device.name();
}

Status DeviceRescue::may_open(const Error& loss) const {
    if (last_ && Clock::now() - *last_ < kCalm)
        return error("{}; it had been opened again just before", loss.message);
    return {};
}

Status DeviceRescue::open_again(uint64_t tokens, const Error& loss) {
    options_.notes->note(
        fmt::format("{} was lost; it is opened again, and {} tokens are read again", lost_label(), tokens));
    options_.notes->detail(loss.message);
    const Status placed = place();
    last_ = Clock::now();
    if (placed) return placed;
    if (!loaded_.split) {  // no session may begin on a device without weights
        loaded_.model->unload();
        loaded_.device.backend.reset();
    }
    return not_again(loss, placed.error());
}

Status DeviceRescue::reopen(Engine& engine, const Error& loss) {
    const auto reopened = [&]() -> Status {
        if (!loaded_.split) return engine.reopen();
        Work loading(*options_.notes, "loading");
        const Progress progress = [&](uint64_t done, uint64_t total) { loading.update(done, total); };
        if (!loaded_.split.ranks.empty()) return engine.reopen(loaded_.split.ranks, progress);
        return engine.reopen(loaded_.split.placements, progress);
    }();
    if (loaded_.split) last_ = Clock::now();  // its weights were loaded only now
    return reopened ? reopened : not_again(loss, reopened.error());
}

void rescue_from_loss(Session& session, LoadedModel& loaded, const HostOptions& options) {
    auto rescue = std::make_shared<DeviceRescue>(loaded, options);
    session.set_rescue([rescue](Engine& lost, uint64_t tokens, const Error& loss) -> Status {
        RL_TRY(rescue->may_open(loss));
        lost.close();
        RL_TRY(rescue->open_again(tokens, loss));
        return rescue->reopen(lost, loss);
    });
}

bool SessionGroup::has_device() const {
    return std::ranges::all_of(loaded_.devices(),
                               [](const OpenDevice* device) { return device->backend != nullptr; });
}

void SessionGroup::join(Session& session) {
    session.set_rescue([this, seen = opened_](Engine& lost, uint64_t tokens, const Error& loss) mutable {
        return rescue(lost, tokens, loss, seen);
    });
    const std::lock_guard lock(list_);
    sessions_.push_back(&session);
}

void SessionGroup::leave(Session& session) {
    const std::lock_guard lock(list_);
    std::erase(sessions_, &session);
}

size_t SessionGroup::size() {
    const std::lock_guard lock(list_);
    return sessions_.size();
}

// Another thread may have opened the device since `engine` was; then only the engine is taken up again.
Status SessionGroup::rescue(Engine& engine, uint64_t tokens, const Error& loss, uint64_t& seen) {
    const Exclusive exclusive(exchange_);
    // The device that another thread opened may be lost, too, or could not be opened.
    const auto lost = [](const OpenDevice* device) { return device->backend->lost(); };
    if (seen == opened_ || !has_device() || std::ranges::any_of(loaded_.devices(), lost)) {
        RL_TRY(rescue_.may_open(loss));
        {
            const std::lock_guard lock(list_);
            for (Session* session : sessions_) session->close();
        }
        RL_TRY(rescue_.open_again(tokens, loss));
        ++opened_;
    }
    RL_TRY(rescue_.reopen(engine, loss));
    seen = opened_;
    return {};
}

}  // namespace redline
