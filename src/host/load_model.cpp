#include "host/load_model.h"

#include "host/device_list.h"
#include "host/expected_speed.h"
#include "host/file_notes.h"
#include "host/find_model.h"
#include "host/kernel_check.h"
#include "host/load_plan.h"
#include "host/model_facts.h"
#include "host/open_device.h"
#include "host/quick_tune.h"
#include "host/rank_job.h"
#include "host/tensor_split.h"
#include "host/tuned.h"
#include "host/wide_keys.h"
#include "memory/budget.h"

#include <algorithm>
#include <chrono>

namespace redline {

using Clock = std::chrono::steady_clock;

static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<LoadedModel> inspect_model(const HostOptions& options) {
    const auto start = Clock::now();
    LoadedModel loaded;
    const std::string path = RL_TRY(find_model(options.model, options.stores, *options.notes));
    RL_TRY(choose_devices(loaded, options));
    if (options.device.empty() && !loaded.is_shared() && options.tuned)
        loaded.device.choice = faster_choice(path, std::move(loaded.device.choice), options.cache_folder);
    loaded.cache = options.cache;
    const uint64_t context = options.context < 0 ? options.default_context : uint64_t(options.context);
    loaded.model = std::make_unique<Model>(RL_TRY(Model::inspect(path, context, options.head)));
    if (options.job) RL_TRY(options.job->check_same(*loaded.model, options));
    loaded.speed.load_seconds = seconds_since(start);
    return loaded;
}

Status open_for(LoadedModel& loaded, const HostOptions& options) {
    if (loaded.is_shared()) {
        RL_TRY(open_devices(loaded, options));
        choose_division(loaded, options);
        return {};
    }
    loaded.device.backend = RL_TRY(open_best(loaded.device.choice, options));
    if (loaded.device.name() == "cpu" && options.streams.value_or(false))
        options.notes->note(fmt::format("{}: no GPU is used, so that prompts are computed on the CPU",
                                        options.names->stream));
    return {};
}

Result<std::unique_ptr<Backend>> open_again(const LoadedModel& loaded, const OpenDevice& device,
                                            const HostOptions& options) {
    std::unique_ptr<Backend> backend = RL_TRY(open_listed(loaded, device, options));
    backend->refuse(device.refused);
    return backend;
}

static std::vector<std::string> file_notes(const Model& model, const Backend& backend) {
    std::vector<std::string> notes = model.notes();
    for (const std::string& warning : model.tokenizer().warnings()) notes.push_back(warning);
    for (const std::string& line : describe_decoding(model.file_weights(), backend)) notes.push_back(line);
    return notes;
}

// True where the model with its head is split as it would be without.
static Result<bool> splits_alike_with_head(LoadedModel& loaded, const HostOptions& options,
                                           const SessionOptions& session) {
    SessionOptions plain = session;
    plain.drafts = 0;
    std::vector<std::string> unsaid;
    const Result<LoadDecision> with = decide_load(loaded, options, session, unsaid);
    if (!with) return false;
    const LoadDecision without = RL_TRY(decide_load(loaded, options, plain, unsaid));
    if (with.value().split.has_value() != without.split.has_value()) return false;
    return !without.split || with.value().split->counts == without.split->counts;
}

// A head that was not asked for goes before layers do.
static Status leave_out_head_without_room(LoadedModel& loaded, const HostOptions& options,
                                          const SessionOptions& session) {
    if (options.head != ReadHead::if_any || !loaded.model->has_head()) return {};
    const DeviceInfo& device = loaded.device.backend->device();
    if (loaded.is_shared() || asks_split(options, *loaded.model)) {
        if (RL_TRY(splits_alike_with_head(loaded, options, session))) return {};
        options.notes->note("the model's MTP head is left out: with it other layers would be on the CPU");
        return loaded.model->leave_out_head();
    }
    const MemoryNeed need = RL_TRY(memory_need(*loaded.model, *loaded.device.backend, session));
    if (need.total() <= device.memory.bytes) return {};
    options.notes->note(fmt::format("the model's MTP head is left out: {} are needed with it, {} offers {}",
                                    format_bytes(need.total()), device.name, device.memory.text()));
    return loaded.model->leave_out_head();
}

Status place_model(LoadedModel& loaded, const HostOptions& options, uint64_t context, uint32_t outputs) {
    const auto start = Clock::now();
    if (!loaded.device.backend) RL_TRY(open_for(loaded, options));
    if (context > 0) {
        if (loaded.divides) measure_speeds(loaded, options);  // by which kernels have their widths
        RL_TRY(check_kernels(loaded, options, context, outputs));
        RL_TRY(quick_tune(loaded, options, context, outputs));
        const DeviceInfo& device = loaded.device.backend->device();
        const SessionOptions session = session_options(options, device, context, outputs);
        RL_TRY(leave_out_head_without_room(loaded, options, session));
        RL_TRY(plan_load(loaded, options, session));
    }
    if (options.second_head) RL_TRY(options.second_head->place(loaded.output_backend(), {}));
    if (!loaded.split) {
        Work loading(*options.notes, "loading");
        RL_TRY(loaded.model->place(*loaded.device.backend,
                                   [&](uint64_t done, uint64_t total) { loading.update(done, total); }));
    }
    say_file_notes(loaded.model->gguf().path(), file_notes(*loaded.model, *loaded.device.backend),
                   options.cache_folder, *options.notes);
    loaded.speed.load_seconds += seconds_since(start);
    return {};
}

Result<LoadedModel> load_model(const HostOptions& options) {
    LoadedModel loaded = RL_TRY(inspect_model(options));
    note_unsplit(options, *loaded.model, loaded.device.name());
    RL_TRY(place_model(loaded, options, 0));
    return loaded;
}

// For the whole model on the device, unless next to no context would fit and the model can be split.
static Result<uint64_t> context_that_fits(LoadedModel& loaded, const HostOptions& options) {
    if (!loaded.device.backend) RL_TRY(open_for(loaded, options));
    const uint64_t most = loaded.model->config().train_context;
    const DeviceInfo& device = loaded.device.backend->device();
    const bool asked = loaded.device.name() != "cpu" && asks_split(options, *loaded.model);
    uint64_t context = 0;
    if (!asked)
        context = RL_TRY(largest_context(*loaded.model, *loaded.device.backend,
                                         session_options(options, device, most), most));
    if (asked || context < std::min(options.default_context, most)) {
        const uint64_t split = RL_TRY(split_context(loaded, options, most));
        if (split > context) {
            if (split < most)
                options.notes->note(fmt::format(
                    "a context of {} tokens is taken, with which the model fits {}; it was trained "
                    "for {}, and {} asks for another",
                    split, asked ? "as it is split" : "once it is split", most,
                    options.names->with(options.names->context, "N")));
            return split;
        }
    }
    if (context == 0)
        return error("{}: no context fits into the {} that {} offers. A smaller quantization or model would",
                     loaded.model->gguf().path(), device.memory.text(), device.name);
    if (context < most)
        options.notes->note(
            fmt::format("a context of {} tokens is the most that fits into {}; the model was trained for {}",
                        context, device.memory.text(), most));
    return context;
}

Result<uint64_t> choose_context(LoadedModel& loaded, const HostOptions& options) {
    const Config& config = loaded.model->config();
    if (options.context == 0) return context_that_fits(loaded, options);
    if (options.context < 0) return std::min(options.default_context, config.train_context);
    if (uint64_t(options.context) > config.train_context)
        options.notes->note(fmt::format(
            "the model was trained for {} tokens of context; beyond them, of the {} asked for, its "
            "text may turn to nonsense",
            config.train_context, options.context));
    return uint64_t(options.context);
}

Result<std::unique_ptr<Engine>> open_engine(const LoadedModel& loaded, const HostOptions& options,
                                            uint64_t context, uint32_t outputs) {
    EngineOptions engine = session_options(options, loaded.device.backend->device(), context, outputs);
    if (const std::string wide = wide_keys_note(*loaded.model, engine.cache); !wide.empty())
        options.notes->note(wide);
    if (!loaded.split) return Engine::create(*loaded.model, engine);
    Work loading(*options.notes, "loading");
    engine.placements = loaded.split.placements;
    engine.ranks = loaded.split.ranks;
    engine.ranks_note = [notes = options.notes](const std::string& text) { notes->note(text); };
    engine.stream_rows = loaded.split.stream_rows;
    engine.stream_expected = {loaded.split.cpu_row_seconds,
                              [notes = options.notes](const std::string& slow) { notes->note(slow); }};
    engine.progress = [&](uint64_t done, uint64_t total) { loading.update(done, total); };
    return Engine::create(*loaded.model, engine);
}

Result<Session> open_session(const LoadedModel& loaded, const HostOptions& options, uint64_t context,
                             uint32_t outputs) {
    return Session::create(RL_TRY(open_engine(loaded, options, context, outputs)));
}

}  // namespace redline
