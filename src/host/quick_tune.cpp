#include "host/quick_tune.h"

#include "host/load_model.h"
#include "host/tuned.h"
#include "measure/quick_tune.h"
#include "memory/budget.h"

#include <thread>

namespace redline {

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

bool wants_tune(const Backend& backend, const HostOptions& options) {
    if (!options.tuned || options.quick_tune == TuneBefore::never) return false;
    if (options.quick_tune == TuneBefore::always) return true;
    return !backend.device().on_cpu;
}

bool fits(const LoadedModel& loaded, const SessionOptions& session) {
    const Result<MemoryNeed> need = memory_need(*loaded.model, *loaded.device.backend, session);
    return need && need.value().total() <= loaded.device.backend->device().memory.bytes;
}

// A context that was chosen to fill the device may leave no room for what faster variants need.
void keep_fitting(LoadedModel& loaded, const SessionOptions& session, const Variants& before, Notes& notes) {
    if (fits(loaded, session)) return;
    const Variants tuned = loaded.device.backend->variants();
    loaded.device.backend->use(before);
    if (!fits(loaded, session)) return loaded.device.backend->use(tuned);
    notes.note(
        fmt::format("{} has no room for the faster kernels with this context: they are taken the next time",
                    loaded.device.name()));
}

void say_quick(const QuickTune& tuned, const std::string& device, const HostOptions& options) {
    note_wrong_variants(tuned.kernels, device, *options.notes);
    if (tuned.planned > 0)
        options.notes->inform(fmt::format("{}; redline tune measures more, {} leaves this out",
                                          tuned.text(device), options.names->untuned));
}

}  // namespace

Status quick_tune(LoadedModel& loaded, const HostOptions& options, uint64_t context, uint32_t outputs) {
    if (loaded.device.name() == "cpu" || options.cache_folder.empty() ||
        !wants_tune(*loaded.device.backend, options))
        return {};
    const SessionOptions session =
        session_options(options, loaded.device.backend->device(), context, outputs);
    const Variants before = loaded.device.backend->variants();
    const std::unique_ptr<TuneClock> clock = steady_clock();
    Result<QuickTune> tuned = [&] {
        const Work timing(*options.notes, "timing kernels");
        const ReadAhead ahead(loaded.model->gguf());
        return redline::quick_tune(*loaded.model, *loaded.device.backend, session, *clock,
                                   options.cache_folder, options.quick_tune == TuneBefore::always);
    }();
    if (!tuned) {
        options.notes->note(fmt::format("{}'s kernels could not be timed, and run as is known of them: {}",
                                        loaded.device.name(), tuned.error().message));
        if (!loaded.device.backend->lost()) return {};
        loaded.device.backend.reset();
        loaded.device.backend = RL_TRY(open_again(loaded, options));
        return {};
    }
    say_quick(tuned.value(), loaded.device.name(), options);
    loaded.device.kernels_tuned += tuned.value().kernels.size();
    loaded.device.quick_tune_seconds += tuned.value().seconds;
    if (tuned.value().faster() > 0) keep_fitting(loaded, session, before, *options.notes);
    return {};
}

}  // namespace redline
