#include "cli/commands/serve_models.h"

#include "cli/options/foreign.h"
#include "cli/options/preset_file.h"
#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"
#include "host/find_model.h"

#include <algorithm>
#include <filesystem>

#include <sys/stat.h>

namespace redline::cli {

namespace {

serve::Hosting hosting_of(ServeSettings& settings) {
    ServeOptions& serve = settings.serve;
    say_to_requests(serve.writer);
    const Options* const options = &settings.options;
    return {serve.model, serve.scheduler, served_by(serve),
            [&serve, options](const Metadata& metadata) -> Result<SamplerOptions> {
                SamplerOptions sampler = serve.sampling.sampler;
                RL_TRY(take_file_defaults(*options, metadata, sampler));
                return sampler;
            }};
}

// Seconds since 1970; 0: not known.
int64_t time_of(const std::string& path) {
    struct stat facts = {};
    return ::stat(path.c_str(), &facts) == 0 ? int64_t(facts.st_mtime) : 0;
}

// The models of the folder, by the names that redline models gives them.
Result<SeveralModels> models_of_folder(ServeSettings& command) {
    const std::string& folder = command.serve.models;
    const StoredModels found = find_model_files({{"redline", StoreKind::folder, folder}});
    for (const std::string& fault : found.faults) note(fault);
    SeveralModels all;
    for (const StoredModel& file : found.files) {
        all.offered.push_back({file.name, file.aliases, file.path, file.bytes, time_of(file.path)});
        all.hosting.emplace(file.name, hosting_of(command));
    }
    if (all.offered.empty()) return error("--models {}: the folder has no GGUF file", folder);
    return all;
}

// The settings of one section of a file, on their way to a model.
class Section {
public:
    Section(std::string file, const Options& command) : file_(std::move(file)), command_(command) {}

    // Lines that come first go before others.
    Status take(const PresetLine& line) {
        const Status taken = take_line(line);
        if (!taken) return error("{}:{}: {}", file_, line.number, taken.error().message);
        return {};
    }
    Status end(const Preset& preset, const std::vector<std::string>& arguments, SeveralModels& all);

private:
    Status take_line(const PresetLine& line);
    Status take_foreign(const PresetLine& line);

    const std::string file_;
    const Options& command_;
    std::unique_ptr<ServeSettings> settings_ = std::make_unique<ServeSettings>();
    std::set<std::string> taken_;
    bool at_start_ = false;
};

Status Section::take_line(const PresetLine& line) {
    const Options::Option* const option = settings_->options.called(line.key);
    if (!option && line.key != "load-on-startup") return take_foreign(line);
    const std::string name = option ? option->name() : line.key;
    // The command line goes before a file, as it does for llama-server.
    if (!taken_.insert(name).second || command_.given(name)) return {};
    if (!option) {
        const Result<bool> start = parse_switch(line.value);
        if (!start) return error("{} {}", line.key, start.error().message);
        at_start_ = start.value();
        return {};
    }
    if (!is_of_model(*option))
        return error("{} holds for the whole server: it belongs on the command line", line.key);
    const Status taken = settings_->options.take(*option, line.value);
    if (!taken) return error("{} {}", line.key, taken.error().message);
    return {};
}

// Options of llama-server that redline has no use for.
Status Section::take_foreign(const PresetLine& line) {
    if (line.key == "stop-timeout" || line.key == "dedup-cache-models") return {};
    const ForeignOption* foreign = find_foreign("--" + line.key);
    if (!foreign) foreign = find_foreign("-" + line.key);
    if (!foreign) return error("there is no option {}; redline serve --help-all lists them", line.key);
    if (!foreign->instead.empty()) return error("{}: {}", line.key, foreign->instead);
    return {};
}

// Adds the model once all lines are taken.
Status Section::end(const Preset& preset, const std::vector<std::string>& arguments, SeveralModels& all) {
    ServeOptions& serve = settings_->serve;
    RL_TRY(settings_->options.apply(arguments));
    RL_TRY(settle_serve(serve));
    if (serve.model.remote)
        return error("a server of several models fetches none: redline pull does, and model = NAME takes it");
    const std::string& given = serve.model.model.empty() ? preset.name : serve.model.model;
    const std::string path = RL_TRY(find_model(given, serve.model.stores, terminal_notes()));
    std::error_code unknown;
    const uint64_t bytes = std::filesystem::file_size(path, unknown);
    if (unknown) return error("model {}: {}", path, unknown.message());
    serve::OfferedModel offered{preset.name, {}, path, bytes, time_of(path)};
    if (!serve.alias.empty()) offered.aliases.push_back(serve.alias);
    if (settings_->options.given("--idle-unload"))
        offered.idle = serve.idle_seconds > 0 ? std::chrono::seconds(serve.idle_seconds) : serve::kForever;
    all.hosting.emplace(preset.name, hosting_of(*settings_));
    if (at_start_) all.at_start.push_back(preset.name);
    all.offered.push_back(std::move(offered));
    all.settings.push_back(std::move(settings_));
    return {};
}

Result<SeveralModels> models_of_presets(ServeSettings& command, const std::vector<std::string>& arguments) {
    const std::string& file = command.serve.models;
    const std::vector<Preset> presets = RL_TRY(read_presets(file));
    const auto shared = std::ranges::find(presets, "*", &Preset::name);
    SeveralModels all;
    for (const Preset& preset : presets) {
        if (preset.name == "*") continue;
        Section section(file, command.options);
        for (const PresetLine& line : preset.lines) RL_TRY(section.take(line));
        if (shared != presets.end())
            for (const PresetLine& line : shared->lines) RL_TRY(section.take(line));
        const Status ended = section.end(preset, arguments, all);
        if (!ended) return error("{}:{}: [{}]: {}", file, preset.number, preset.name, ended.error().message);
    }
    if (all.offered.empty())
        return error("--models {}: the file names no model: a section [NAME] with model = FILE does", file);
    return all;
}

}  // namespace

Result<SeveralModels> several_models(ServeSettings& command, const std::vector<std::string>& arguments) {
    std::error_code unknown;
    const auto kind = std::filesystem::status(command.serve.models, unknown).type();
    if (kind == std::filesystem::file_type::directory) return models_of_folder(command);
    if (kind == std::filesystem::file_type::not_found)
        return error("--models {}: there is no such folder or file", command.serve.models);
    return models_of_presets(command, arguments);
}

}  // namespace redline::cli
