// redline models: the model files that this machine has, and which of them run here.
#include "cli/options/model_options.h"
#include "cli/report.h"
#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"
#include "host/model_facts.h"
#include "host/open_device.h"
#include "json/json.h"
#include "memory/budget.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::cli {

namespace {

struct ModelsOptions {
    ModelOptions model;
    std::string part;
    bool json = false;
    bool names = false;
};

Options declare(ModelsOptions& models) {
    Options options("models", "list the model files of this machine, those that fit best first",
                    {"models [NAME] [options]"});
    options.group("what");
    options.name("--name", "TEXT", "only those whose name holds this text", models.part);
    options.common("only those whose name holds this text");
    options.word_is("--name");
    options.number("-c --ctx-size", "tokens of context that are to fit", models.model.default_context, 1,
                   kMostContext);
    options.common("tokens of context that are to fit");
    options.flag("--json", "print one JSON object", models.json);
    options.common("print one JSON object");
    options.flag("--names", "print their names alone, one a line, without looking into the files",
                 models.names);
    options.group("device");
    add_device_options(options, models.model);
    add_voice_options(options);
    options.example("redline models");
    options.example("redline run -m qwen3-8b -p \"Hello\"    # any part of a name that only one has");
    options.remark(
        "Looked through are redline's own folder ($REDLINE_MODELS, or ~/.local/share/redline/models), the "
        "caches of "
        "Hugging Face and llama.cpp, LM Studio's folder, and what Ollama has pulled.");
    return options;
}

// Lower comes first.
enum class Rank : uint8_t { fits, too_large, cannot_run };

struct Listed {
    StoredModel file;
    std::string type;     // "llama 8.03 B Q4_K_M"
    std::string problem;  // why it cannot run; empty: it can
    uint64_t needs = 0;   // bytes of memory with the context asked for
    Rank rank = Rank::cannot_run;
};

Status judge(Listed& listed, const ModelsOptions& options, Backend& backend) {
    const StoredModel& file = listed.file;
    if (file.parts < file.of)
        return error("{} of its {} parts {} missing", file.of - file.parts, file.of,
                     file.of - file.parts == 1 ? "is" : "are");
    listed.type = model_type(RL_TRY(Gguf::open(file.path)));
    const uint64_t context = options.model.default_context;
    const Model model = RL_TRY(Model::inspect(file.path, context));
    const SessionOptions session = session_options(options.model, backend.device(), context);
    listed.needs = RL_TRY(memory_need(model, backend, session)).total();
    listed.rank = listed.needs <= backend.device().memory.bytes ? Rank::fits : Rank::too_large;
    return {};
}

// The models that fit come first, the largest before others: it is the best that runs. Among the rest the one
// that misses it by least.
bool better(const Listed& a, const Listed& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.file.bytes != b.file.bytes) return (a.rank == Rank::fits) == (a.file.bytes > b.file.bytes);
    return a.file.name < b.file.name;
}

std::string verdict(const Listed& listed, const DeviceInfo& device) {
    if (listed.rank == Rank::fits) return "fits";
    if (listed.rank == Rank::too_large)
        return fmt::format("needs {} of {}", format_bytes(listed.needs), format_bytes(device.memory.bytes));
    return printable(listed.problem);
}

std::string table(const std::vector<Listed>& all, const DeviceInfo& device) {
    size_t name = 4, type = 5;
    for (const Listed& listed : all) {
        name = std::max(name, printable(listed.file.name).size());
        for (const std::string& alias : listed.file.aliases) name = std::max(name, printable(alias).size());
        type = std::max(type, listed.type.size());
    }
    std::string out = fmt::format("{:<{}}  {:<{}}  {:>10}  {:<12}  {}\n", "name", name, "model", type, "size",
                                  "of", "on this device");
    for (const Listed& listed : all) {
        out += fmt::format("{:<{}}  {:<{}}  {:>10}  {:<12}  {}\n", printable(listed.file.name), name,
                           listed.type, type, format_bytes(listed.file.bytes), listed.file.owner,
                           verdict(listed, device));
        for (const std::string& alias : listed.file.aliases)
            out += fmt::format("{:<{}}  the same file\n", printable(alias), name);
    }
    return out;
}

Json as_json(const std::vector<Listed>& all, const StoredModels& found, const std::string& backend,
             const ModelsOptions& options, const DeviceInfo& device) {
    Json models = Json::array();
    for (const Listed& listed : all)
        models.push_back({{"name", listed.file.name},
                          {"aliases", listed.file.aliases},
                          {"path", listed.file.path},
                          {"owner", listed.file.owner},
                          {"type", listed.type},
                          {"bytes", listed.file.bytes},
                          {"parts", listed.file.parts},
                          {"parts_wanted", listed.file.of},
                          {"runs", listed.rank != Rank::cannot_run},
                          {"fits", listed.rank == Rank::fits},
                          {"memory", listed.needs},
                          {"problem", listed.problem.empty() ? Json(nullptr) : Json(listed.problem)}});
    return {{"models", models},
            {"faults", found.faults},
            {"device", backend},
            {"available", device.memory.bytes},
            {"context", options.model.default_context}};
}

constexpr const char* kExample = "bartowski/Llama-3.2-1B-Instruct-GGUF";

Result<int> list(const ModelsOptions& options) {
    const std::vector<ModelStore> stores = user_model_stores();
    const StoredModels found = find_model_files(stores);
    for (const std::string& fault : found.faults) note(fault);
    const std::vector<StoredModel> files =
        options.part.empty() ? found.files : named(found.files, options.part);
    DeviceChoice choice = RL_TRY(choose_device(options.model.device));
    const std::unique_ptr<Backend> backend = RL_TRY(open_best(choice, options.model));
    std::vector<Listed> all;
    for (const StoredModel& file : files) {
        Listed& listed = all.emplace_back(Listed{file, "", "", 0, Rank::cannot_run});
        if (const Status judged = judge(listed, options, *backend); !judged)
            listed.problem = judged.error().message;
    }
    std::sort(all.begin(), all.end(), better);
    Output out;
    if (options.json) {
        out.write(to_text(as_json(all, found, choice.backend, options, backend->device())) + "\n");
        return out.finish();
    }
    if (!all.empty())
        out.write(table(all, backend->device()));
    else if (!options.part.empty())
        return error("no model here is called \"{}\"; redline models lists all", options.part);
    else
        say(
            fmt::format("no model files here yet: redline pull USER/REPO fetches one, such as redline pull "
                        "{}. GGUF files "
                        "may also be put into {}, or named by their paths with -m",
                        kExample, stores.front().path.string()));
    return out.finish();
}

int print_names(const ModelsOptions& options) {
    Output out;
    const std::vector<StoredModel> files = find_model_files(user_model_stores()).files;
    for (const StoredModel& file : options.part.empty() ? files : named(files, options.part))
        if (file.parts == file.of) out.write(file.name + "\n");
    return out.finish();
}

int run_models(const std::vector<std::string>& arguments) {
    ModelsOptions models;
    Options options = declare(models);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    Status usage = settle_device(models.model);
    if (usage) usage = check_one_device(models.model, "models");
    if (!usage) return fail(usage.error(), kUsage);
    if (models.names) return print_names(models);
    const Result<int> code = list(models);
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command models_command = {"models", "list the model files of this machine", run_models};

}  // namespace redline::cli
