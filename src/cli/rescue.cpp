#include "cli/rescue.h"

#include "cli/commands/devices.h"
#include "cli/terminal/terminal.h"

#include <chrono>
#include <memory>

namespace redline::cli {

namespace {

using Clock = std::chrono::steady_clock;

// What is lost again within this time would be lost for ever.
constexpr std::chrono::seconds kCalm(5);

Status reload(Engine& engine, LoadedModel& loaded, const ModelOptions& options) {
    engine.close();
    loaded.model->unload();
    // The old one goes first: both may not fit.
    loaded.backend.reset();
    loaded.backend = RL_TRY(open_again(loaded, options));
    ProgressLine progress("loading");
    const Progress report = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    if (loaded.placements.empty()) {
        RL_TRY(loaded.model->place(*loaded.backend, report));
        return engine.reopen();
    }
    for (Placement& placement : loaded.placements)
        if (placement.backend != loaded.cpu.get()) placement.backend = loaded.backend.get();
    return engine.reopen(loaded.placements, report);
}

}  // namespace

void rescue_from_loss(Session& session, LoadedModel& loaded, const ModelOptions& options) {
    auto last = std::make_shared<std::optional<Clock::time_point>>();
    session.set_rescue([&loaded, &options, last](Engine& lost, uint64_t tokens, const Error& loss) -> Status {
        if (*last && Clock::now() - **last < kCalm)
            return error("{}; it had been opened again just before", loss.message);
        note(fmt::format("{} was lost; it is opened again, and {} tokens are read again", loaded.device,
                         tokens));
        say_detail(loss.message);
        const Status opened = reload(lost, loaded, options);
        *last = Clock::now();
        if (!opened) return error("{}; opening it again: {}", loss.message, opened.error().message);
        return {};
    });
}

}  // namespace redline::cli
