// redline tune: which variants of its kernels a model is fastest with on this machine.
#include "measure/tune.h"

#include "cli/commands/bench.h"
#include "cli/commands/tune_list.h"
#include "cli/commands/tune_whole.h"
#include "cli/demo_model.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "cli/user_models.h"
#include "host/load_plan.h"
#include "host/open_device.h"
#include "host/tuned.h"
#include "json/json.h"
#include "measure/kernel_verdicts.h"

#include <algorithm>

namespace redline::cli {

namespace {

constexpr int64_t kSpeedPrompt = 512, kSpeedTokens = 64;
constexpr double kWholeSeconds = 20.0;  // at most, of whole steps beside the defaults

struct TuneCommandOptions {
    ModelOptions model;
    int64_t seconds = 0;  // per device; 0: as long as it takes
    bool prompts = true;
    bool checks = true;  // kernels, before they are timed
    bool list = false;   // what can be chosen, and no measurement
    bool json = false;
};

// The findings on one device.
struct TunedDevice {
    DeviceListing listing;
    std::string id, name, detail;
    Tuning tuning;
    std::optional<WholeGains> whole;
    std::optional<ModelSpeed> speed;
};

std::string gains_text(const WholeGains& gains) {
    std::string text;
    for (const RowClass rows : kRowClassList)
        text += fmt::format("{}{} {:.3f}", text.empty() ? "" : ", ", row_class_name(rows), gains.of(rows));
    return text;
}

class TuneRun {
public:
    explicit TuneRun(const TuneCommandOptions& options) : options_(options) {}

    Result<int> run() {
        path_ = RL_TRY(find_user_model(options_.model.model));
        const uint64_t context =
            options_.model.context > 0 ? uint64_t(options_.model.context) : options_.model.default_context;
        model_ = std::make_unique<Model>(RL_TRY(Model::inspect(path_, context)));
        context_ = options_.model.context > 0 ? context : std::min(context, model_->config().train_context);
        const std::vector<DeviceChoice> devices = RL_TRY(choose());
        note_unsplit(options_.model, *model_, devices[0].backend);
        if (options_.list) return list_all(devices);
        for (const DeviceChoice& device : devices) {
            RL_TRY(tune_on(device, devices.size() > 1));
            if (interrupts_.raised()) break;
        }
        if (options_.json) out_.write(to_text(as_json()) + "\n");
        return out_.finish(interrupts_.raised() ? interrupts_.code() : kDone);
    }

private:
    // The device that is named; without a name all ways to the card that is taken by default.
    Result<std::vector<DeviceChoice>> choose() {
        DeviceChoice usual = RL_TRY(choose_device(options_.model.device));
        if (usual.backend == "cpu")
            return error(
                "kernels of the CPU have no variants to measure, and no GPU that can be used is here");
        if (!options_.model.device.empty()) return std::vector<DeviceChoice>{usual};
        return ways_to_card(usual);
    }

    Result<int> list_all(const std::vector<DeviceChoice>& devices) {
        Json listed = Json::array();
        for (const DeviceChoice& choice : devices) {
            const std::unique_ptr<Backend> backend = RL_TRY(open_device(choice, options_.model));
            const SessionOptions session = session_options(options_.model, backend->device(), context_);
            const std::vector<KernelChoices> all =
                RL_TRY(kernel_choices(*model_, *backend, session, options_.prompts));
            const std::string& folder = options_.model.cache_folder;
            const TunedTimes times = folder.empty() ? TunedTimes() : tuned_times(folder, *backend);
            if (options_.json)
                listed.push_back(choices_json(choice.backend, backend->device(), all, times));
            else
                out_.write(choices_text(choice.backend, backend->device(), all, times));
        }
        if (options_.json) out_.write(to_text({{"model", path_}, {"devices", listed}}) + "\n");
        return out_.finish(kDone);
    }

    Status tune_on(const DeviceChoice& choice, bool compared) {
        HostOptions plain = options_.model;
        plain.tuned = false;
        const std::unique_ptr<Backend> backend = RL_TRY(open_device(choice, plain));
        TunedDevice& device = devices_.emplace_back();
        device.listing = listing_of(choice).value_or(DeviceListing{choice.backend, "", true, "", {}});
        device.id = choice.backend;
        device.name = backend->device().name;
        device.detail = backend->device().detail;
        const SessionOptions session = session_options(plain, backend->device(), context_);
        if (options_.checks)
            RL_TRY(check_kernels(*model_, *backend, session, options_.model.cache_folder,
                                 plain.kernel_check == KernelCheck::always));
        note_demo_model(options_.model);
        if (!options_.json) out_.write(head_of(device));
        const std::unique_ptr<TuneClock> clock = steady_clock();
        TuneOptions how;
        how.seconds = double(options_.seconds);
        how.prompts = options_.prompts;
        how.cancel = interrupts_.flag();
        Result<Tuning> tuning = tune(*model_, *backend, session, *clock, how, [&](const TunedKernel& kernel) {
            if (!options_.json) out_.write(row_of(kernel));
            return options_.model.cache_folder.empty()
                       ? Status()
                       : keep_tuned(options_.model.cache_folder, *backend, {&kernel, 1});
        });
        if (!tuning) return tuning.error();
        device.tuning = std::move(tuning).value();
        note_wrong_variants(device.tuning.kernels, device.id, *options_.model.notes);
        if (!options_.json) out_.write(sum_of(device));
        if ((compared || better(device.tuning) > 0) && !interrupts_.raised())
            RL_TRY(measure_whole(device, *backend, session, compared));
        return {};
    }

    // Where it fits: variants that make whole steps slower are given up again, and the speed is kept, if it
    // is `compared`, so that the faster of a card's backends can be taken from now on.
    Status measure_whole(TunedDevice& device, Backend& backend, SessionOptions session, bool compared) {
        session.context =
            std::max<uint64_t>({session.context, kSpeedPrompt + kSpeedTokens, whole_context(session.batch)});
        const MemoryNeed need = RL_TRY(memory_need(*model_, backend, session));
        if (!check_fits(need, *model_, backend.device(), session.context)) {
            note(
                fmt::format("the model does not fit {} whole: its speed there is not measured", device.name));
            return {};
        }
        {
            ProgressLine progress("loading");
            RL_TRY(model_->place(backend, [&](uint64_t done, uint64_t all) { progress.update(done, all); }));
        }
        const Status checked = check_whole(device, backend, session);
        const Result<ModelSpeed> speed = checked && compared ? speed_of(session) : ModelSpeed();
        model_->unload();
        if (interrupts_.raised()) return {};
        RL_TRY(checked);
        if (!compared) return {};
        device.speed = RL_TRY(Result<ModelSpeed>(speed));
        if (!options_.json)
            out_.write(fmt::format("with them {} makes {}\n", device.id, device.speed->text()));
        return keep_speed(path_, device.listing, *device.speed, options_.model.cache_folder);
    }

    Status check_whole(TunedDevice& device, Backend& backend, const SessionOptions& settings) {
        if (better(device.tuning) == 0) return {};
        const std::vector<Token> tokens = random_tokens(*model_, int64_t(whole_context(settings.batch)));
        const double seconds =
            options_.seconds > 0 ? std::min(kWholeSeconds, double(options_.seconds)) : kWholeSeconds;
        const std::unique_ptr<TuneClock> clock = steady_clock();
        device.whole =
            RL_TRY(whole_gains(*model_, backend, settings, tokens, seconds, *clock, interrupts_.flag()));
        const std::vector<RowClass> slower = give_up_slower(*device.whole, device.tuning, backend);
        if (!options_.json)
            out_.write(fmt::format("whole steps, beside the defaults: {}\n", gains_text(*device.whole)));
        for (const RowClass rows : slower)
            note(fmt::format("steps of {} are slower with these variants as a whole: they are not taken",
                             row_class_name(rows)));
        if (slower.empty() || options_.model.cache_folder.empty()) return {};
        return keep_tuned(options_.model.cache_folder, backend, device.tuning.kernels);
    }

    Result<ModelSpeed> speed_of(const SessionOptions& settings) {
        Session session = RL_TRY(Session::create(*model_, settings));
        const std::vector<Token> tokens = random_tokens(*model_, kSpeedPrompt + kSpeedTokens);
        const auto prompt = std::span(tokens).first(size_t(kSpeedPrompt));
        const std::unique_ptr<TuneClock> clock = steady_clock();
        ModelSpeed best;
        for (int pass = 0; pass < 3; ++pass) {
            session.rewind(0);
            const double start = clock->now();
            RL_TRY(session.feed(prompt, interrupts_.flag()));
            const double read = clock->now();
            for (const Token token : std::span(tokens).subspan(prompt.size()))
                RL_TRY(session.feed({&token, 1}, interrupts_.flag()));
            const double end = clock->now();
            best.prompt = std::max(best.prompt, double(kSpeedPrompt) / (read - start));
            best.generation = std::max(best.generation, double(kSpeedTokens) / (end - read));
        }
        return best;
    }

    static std::string head_of(const TunedDevice& device) {
        return fmt::format("{}: {} ({})\n{:>14} {:>11} {:>11} {:>8}  {:<32} {}\n", device.id, device.name,
                           device.detail, "rows", "default us", "best us", "gain", "variant", "op");
    }
    static std::string row_of(const TunedKernel& kernel) {
        return fmt::format("{:>14} {:>11.2f} {:>11.2f} {:>6.1f} %  {:<32} {}\n", row_class_name(kernel.rows),
                           kernel.default_seconds * 1e6, kernel.seconds * 1e6, 100.0 * kernel.gain(),
                           variant_text(kernel.variant), kernel.op);
    }
    static size_t better(const Tuning& tuning) {
        return size_t(std::count_if(tuning.kernels.begin(), tuning.kernels.end(),
                                    [](const TunedKernel& kernel) { return !kernel.variant.empty(); }));
    }
    static std::string sum_of(const TunedDevice& device) {
        const Tuning& t = device.tuning;
        return fmt::format(
            "{} of {} kernels are faster otherwise than by default; the measured ops of a step of one row "
            "take {:.1f} "
            "% less time, of a prompt {:.1f} % less ({:.0f} s{})\n",
            better(t), t.kernels.size(), 100 * saved_share(t.kernels, RowClass::one),
            100 * saved_share(t.kernels, RowClass::many), t.seconds,
            t.complete ? "" : "; not all were measured");
    }

    Json as_json() const {
        Json devices = Json::array();
        for (const TunedDevice& device : devices_) {
            Json kernels = Json::array();
            for (const TunedKernel& k : device.tuning.kernels)
                kernels.push_back({{"op", k.op},
                                   {"rows", row_class_name(k.rows)},
                                   {"count", k.count},
                                   {"default_us", k.default_seconds * 1e6},
                                   {"best_us", k.seconds * 1e6},
                                   {"gain", k.gain()},
                                   {"variant", k.variant},
                                   {"tried", k.tried},
                                   {"wrong", k.wrong}});
            Json row = {{"device", device.id},
                        {"name", device.name},
                        {"detail", device.detail},
                        {"complete", device.tuning.complete},
                        {"seconds", device.tuning.seconds},
                        {"kernels", kernels},
                        {"saved_generation", saved_share(device.tuning.kernels, RowClass::one)},
                        {"saved_prompt", saved_share(device.tuning.kernels, RowClass::many)},
                        {"whole_generation", nullptr},
                        {"whole_few", nullptr},
                        {"whole_some", nullptr},
                        {"whole_prompt", nullptr},
                        {"prompt_ts", nullptr},
                        {"generation_ts", nullptr}};
            if (device.whole) {
                row["whole_generation"] = device.whole->of(RowClass::one);
                row["whole_few"] = device.whole->of(RowClass::few);
                row["whole_some"] = device.whole->of(RowClass::some);
                row["whole_prompt"] = device.whole->of(RowClass::many);
            }
            if (device.speed) {
                row["prompt_ts"] = device.speed->prompt;
                row["generation_ts"] = device.speed->generation;
            }
            devices.push_back(std::move(row));
        }
        return {
            {"model", path_}, {"file", options_.model.cache_folder + "/tuning.json"}, {"devices", devices}};
    }

    const TuneCommandOptions& options_;
    Interrupts interrupts_;
    Output out_;
    std::string path_;
    std::unique_ptr<Model> model_;
    uint64_t context_ = 0;
    std::vector<TunedDevice> devices_;
};

Options declare(TuneCommandOptions& tune) {
    Options options("tune", "measure which variants of its kernels a model is fastest with here",
                    {"tune [MODEL] [options]"});
    options.group("what");
    options.name("-m --model", "FILE", "model in GGUF form, or part of its name (default: the demo model)",
                 tune.model.model);
    options.common("a model (without: the demo model)");
    options.number("--seconds",
                   "stop after about so many, for each device; 0: when all is measured (default: 0)",
                   tune.seconds, 0, 86400);
    options.common("stop after about so many");
    options.flag("--no-prompts", "measure only what makes tokens, one at a time", tune.prompts, false);
    options.common("only what makes tokens");
    options.number("-c --ctx-size", "tokens of context (default: 4096)", tune.model.context, 1, kMostContext);
    options.common("tokens of context");
    options.number("-b --batch-size --ubatch-size", kBatchHelp, tune.model.batch, 1, kMostBatch);
    add_cache_options(options, tune.model.cache);
    add_device_options(options, tune.model);
    options.flag("--list", "print what can be chosen, the defaults and why, and what was measured",
                 tune.list);
    options.flag("--json", "write one JSON object", tune.json);
    options.common("write one JSON object");
    options.word_is("--model");
    add_voice_options(options);
    options.example("redline tune model.gguf");
    options.example("redline tune model.gguf --device vulkan --seconds 60");
    options.example("redline tune model.gguf --list");
    options.remark(
        "Each op of the model is timed by itself, on made-up weights that are larger than the device's "
        "caches. "
        "A variant is taken that is faster by at least 2 %, again and again in turn with the default, and "
        "right "
        "by the reference. Then whole steps are measured in turn with the defaults', where the model fits, "
        "and what makes them slower is not taken. What is found is kept for this device, its driver and this "
        "build, and run, chat, "
        "bench and eval use it; --no-tune there runs the defaults. Ctrl-C keeps what was found. "
        "Where HIP and Vulkan drive the same card both are measured, the model's speed with them, too, and "
        "without --device the faster one is taken from then on.");
    return options;
}

int run_tune(const std::vector<std::string>& arguments) {
    TuneCommandOptions tune;
    Options options = declare(tune);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    tune.checks = tune.model.kernel_check == KernelCheck::always || !options.given("--no-self-test");
    Status usage = settle_device(tune.model);
    if (usage) usage = check_one_device(tune.model, "tune");
    for (const char* name : {"--seconds", "--no-self-test"})
        if (usage && tune.list && options.given(name))
            usage = error("--list measures nothing: leave {} out", name);
    if (usage && tune.model.device == "cpu")
        usage = error("--device cpu: kernels of the CPU have no variants to measure");
    if (!usage) return fail(usage.error(), kUsage);
    if (const Status found = take_demo_model(tune.model); !found) return fail(found.error());
    const Result<int> code = TuneRun(tune).run();
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command tune_command = {"tune", "measure which variants of kernels are fastest here", run_tune};

}  // namespace redline::cli
