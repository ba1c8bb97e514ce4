#include "cli/quick_tune.h"

#include "measure/quick_tune.h"

#include "cli/command.h"
#include "cli/commands/devices.h"
#include "cli/terminal/terminal.h"
#include "cli/tuned.h"

#include <cstdlib>
#include <thread>

namespace redline::cli {

namespace {

// While it lives the system reads a model's files into its page cache, as far as there is room.
class ReadAhead {
public:
    explicit ReadAhead(const Gguf& gguf)
        : thread_([&gguf](const std::stop_token& stop) { read(gguf, stop); }) {}

private:
    static void read(const Gguf& gguf, const std::stop_token& stop) {
        constexpr uint64_t kPiece = uint64_t(16) << 20;
        uint64_t room = host_budget(host_memory()).bytes / 2;
        for (uint32_t i = 0; i < gguf.file_count(); ++i)
            for (uint64_t at = 0; at < gguf.file(i).size(); at += kPiece) {
                if (stop.stop_requested() || room < kPiece) return;
                gguf.file(i).will_read(at, std::min(kPiece, gguf.file(i).size() - at));
                room -= kPiece;
            }
    }

    std::jthread thread_;
};

// REDLINE_QUICK_TUNE=0 is for those who start the program often where nothing is remembered.
bool wants_tune(const Backend& backend, const ModelOptions& options) {
    if (!options.tuned || options.quick_tune == TuneBefore::never) return false;
    if (options.quick_tune == TuneBefore::always) return true;
    const char* const given = std::getenv("REDLINE_QUICK_TUNE");
    return !backend.device().on_cpu && (!given || std::string_view(given) != "0");
}

bool fits(const LoadedModel& loaded, const SessionOptions& session) {
    const Result<MemoryNeed> need = memory_need(*loaded.model, *loaded.backend, session);
    return need && need.value().total() <= loaded.backend->device().memory.bytes;
}

// A context that was chosen to fill the device may leave no room for what faster variants need.
void keep_fitting(LoadedModel& loaded, const SessionOptions& session, const Variants& before) {
    if (fits(loaded, session)) return;
    const Variants tuned = loaded.backend->variants();
    loaded.backend->use(before);
    if (!fits(loaded, session)) return loaded.backend->use(tuned);
    note(fmt::format("{} has no room for the faster kernels with this context: they are taken the next time",
                     loaded.device));
}

void say_quick(const QuickTune& tuned, const std::string& device) {
    note_wrong_variants(tuned.kernels, device);
    if (tuned.planned > 0)
        say(tuned.text(device) + "; redline tune measures more, --no-tune leaves this out");
}

}  // namespace

Status quick_tune(LoadedModel& loaded, const ModelOptions& options, uint64_t context, uint32_t outputs) {
    if (loaded.device == "cpu" || cache_folder().empty() || !wants_tune(*loaded.backend, options)) return {};
    const SessionOptions session = session_options(options, loaded.backend->device(), context, outputs);
    const Variants before = loaded.backend->variants();
    const std::unique_ptr<TuneClock> clock = steady_clock();
    Result<QuickTune> tuned = [&] {
        const ReadAhead ahead(loaded.model->gguf());
        return redline::quick_tune(*loaded.model, *loaded.backend, session, *clock, cache_folder(),
                                   options.quick_tune == TuneBefore::always);
    }();
    if (!tuned) {
        note(fmt::format("{}'s kernels could not be timed, and run as is known of them: {}", loaded.device,
                         tuned.error().message));
        if (!loaded.backend->lost()) return {};
        loaded.backend.reset();
        loaded.backend = RL_TRY(open_again(loaded, options));
        return {};
    }
    say_quick(tuned.value(), loaded.device);
    loaded.kernels_tuned += tuned.value().kernels.size();
    loaded.quick_tune_seconds += tuned.value().seconds;
    if (tuned.value().faster() > 0) keep_fitting(loaded, session, before);
    return {};
}

}  // namespace redline::cli
