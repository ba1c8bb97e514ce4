#include "host/rescue.h"

#include <chrono>
#include <memory>

namespace redline {

namespace {

using Clock = std::chrono::steady_clock;

// What is lost again within this time would be lost for ever.
constexpr std::chrono::seconds kCalm(5);

Status reload(Engine& engine, LoadedModel& loaded, const HostOptions& options) {
    engine.close();
    loaded.model->unload();
    // The old one goes first: both may not fit.
    loaded.device.backend.reset();
    loaded.device.backend = RL_TRY(open_again(loaded, options));
    Work loading(*options.notes, "loading");
    const Progress report = [&](uint64_t done, uint64_t total) { loading.update(done, total); };
    if (!loaded.split) {
        RL_TRY(loaded.model->place(*loaded.device.backend, report));
        return engine.reopen();
    }
    for (Placement& placement : loaded.split.placements)
        if (placement.backend != loaded.split.cpu.get()) placement.backend = loaded.device.backend.get();
    return engine.reopen(loaded.split.placements, report);
}

}  // namespace

void rescue_from_loss(Session& session, LoadedModel& loaded, const HostOptions& options) {
    auto last = std::make_shared<std::optional<Clock::time_point>>();
    session.set_rescue([&loaded, &options, last](Engine& lost, uint64_t tokens, const Error& loss) -> Status {
        if (*last && Clock::now() - **last < kCalm)
            return error("{}; it had been opened again just before", loss.message);
        options.notes->note(fmt::format("{} was lost; it is opened again, and {} tokens are read again",
                                        loaded.device.name(), tokens));
        options.notes->detail(loss.message);
        const Status opened = reload(lost, loaded, options);
        *last = Clock::now();
        if (!opened) return error("{}; opening it again: {}", loss.message, opened.error().message);
        return {};
    });
}

}  // namespace redline
