// Goes on after a lost device: it is opened again, the model is placed there, and sessions read their tokens
// again.
#pragma once

#include "host/load_model.h"

#include <chrono>
#include <mutex>
#include <shared_mutex>

namespace redline {

// Opens the device of a loaded model again.
class DeviceRescue {
public:
    // Both have to outlive it.
    DeviceRescue(LoadedModel& loaded, const HostOptions& options) : loaded_(loaded), options_(options) {}

    // An error soon after the last loss. It comes before engines are closed, so that they keep the driver's
    // message.
    Status may_open(const Error& loss) const;
    // Nothing may be on the device any more. `tokens` are read again, as the note says.
    Status open_again(uint64_t tokens, const Error& loss);
    // Takes an engine of the model up again; of a split model it loads the weights.
    Status reopen(Engine& engine, const Error& loss);

private:
    Status place();
    std::string lost_label() const;

    LoadedModel& loaded_;
    const HostOptions& options_;
    std::optional<std::chrono::steady_clock::time_point> last_;
};

// For a model that has one session at a time. `loaded` and `options` have to outlive the session.
void rescue_from_loss(Session& session, LoadedModel& loaded, const HostOptions& options);

// The sessions of a model that several threads use. Their device is opened again once for all of them.
class SessionGroup {
public:
    SessionGroup(LoadedModel& loaded, const HostOptions& options)
        : loaded_(loaded), rescue_(loaded, options) {}

    // A thread holds this while it makes, feeds or frees a session, so that no other thread exchanges the
    // device meanwhile.
    using Use = std::shared_lock<std::shared_mutex>;
    Use use() { return Use(exchange_); }

    // False where the device was lost and could not be opened again; under use().
    bool has_device() const;
    // From here on the session, which must not move, is rescued from losses; under use().
    void join(Session& session);
    void leave(Session& session);
    size_t size();

private:
    Status rescue(Engine& engine, uint64_t tokens, const Error& loss, uint64_t& seen);

    LoadedModel& loaded_;
    std::shared_mutex
        exchange_;     // shared by threads that compute; exclusive to the one that opens the device
    std::mutex list_;  // guards sessions_
    std::vector<Session*> sessions_;
    DeviceRescue rescue_;  // this and opened_ are used by the exclusive thread
    uint64_t opened_ = 1;  // how often the device was opened
};

}  // namespace redline
