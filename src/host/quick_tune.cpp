#include "host/quick_tune.h"

#include "host/load_model.h"
#include "host/tensor_split.h"
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

bool fits(const LoadedModel& loaded, const OpenDevice& device, const SessionOptions& session) {
    if (loaded.divides) {
        const Result<SessionNeed> all = tensor_need(loaded, session);
        return all && all.value().fits;
    }
    const Result<MemoryNeed> need = memory_need(*loaded.model, *device.backend, session);
    return need && need.value().total() <= device.backend->device().memory.bytes;
}

// A context that was chosen to fill the device may leave no room for what faster variants need.
void keep_fitting(const LoadedModel& loaded, OpenDevice& device, const SessionOptions& session,
                  const Variants& before, Notes& notes) {
    if (fits(loaded, device, session)) return;
    const Variants tuned = device.backend->variants();
    device.backend->use(before);
    if (!fits(loaded, device, session)) return device.backend->use(tuned);
    notes.note(
        fmt::format("{} has no room for the faster kernels with this context: they are taken the next time",
                    loaded.label(device.backend.get())));
}

void say_quick(const QuickTune& tuned, const std::string& device, const HostOptions& options) {
    note_wrong_variants(tuned.kernels, device, *options.notes);
    if (tuned.planned > 0)
        options.notes->inform(fmt::format("{}; redline tune measures more, {} leaves this out",
                                          tuned.text(device), options.names->untuned));
}

Status tune_device(LoadedModel& loaded, OpenDevice& device, const HostOptions& options, uint64_t context,
                   uint32_t outputs) {
    if (device.name() == "cpu" || !wants_tune(*device.backend, options)) return {};
    const std::string name = loaded.label(device.backend.get());
    const SessionOptions session =
        with_ranks(session_options(options, device.backend->device(), context, outputs), loaded);
    const Variants before = device.backend->variants();
    const std::unique_ptr<TuneClock> clock = steady_clock();
    Result<QuickTune> tuned = [&] {
        const Work timing(*options.notes, "timing kernels");
        const ReadAhead ahead(loaded.model->gguf());
        return redline::quick_tune(*loaded.model, *device.backend, session, *clock, options.cache_folder,
                                   options.quick_tune == TuneBefore::always);
    }();
    if (!tuned) {
        options.notes->note(fmt::format("{}'s kernels could not be timed, and run as is known of them: {}",
                                        name, tuned.error().message));
        if (!device.backend->lost()) return {};
        device.backend.reset();
        device.backend = RL_TRY(open_again(loaded, device, options));
        return {};
    }
    say_quick(tuned.value(), name, options);
    device.kernels_tuned += tuned.value().kernels.size();
    device.quick_tune_seconds += tuned.value().seconds;
    use_precise(*device.backend, options);
    if (tuned.value().faster() > 0) keep_fitting(loaded, device, session, before, *options.notes);
    return {};
}

}  // namespace

Status quick_tune(LoadedModel& loaded, const HostOptions& options, uint64_t context, uint32_t outputs) {
    if (options.cache_folder.empty()) return {};
    for (OpenDevice* device : loaded.devices())
        if (device->rank == 0)  // others have done so, see check_kernels()
            RL_TRY(tune_device(loaded, *device, options, context, outputs));
    return {};
}

}  // namespace redline
