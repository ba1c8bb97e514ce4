#include "host/find_model.h"

#include "gguf/facts.h"
#include "gguf/split.h"

#include <algorithm>
#include <map>
#include <span>

namespace redline {

namespace fs = std::filesystem;

static bool starts_with_any_case(const std::string& text, const std::string& head) {
    const auto same = [](char a, char b) { return std::tolower(uint8_t(a)) == std::tolower(uint8_t(b)); };
    return text.size() >= head.size() && std::equal(head.begin(), head.end(), text.begin(), same);
}

// The file's path in `repository`, where its name says that it came from there: USER/REPO/FILE of redline, of
// the hub's cache and of LM Studio, USER_REPO_FILE of llama.cpp, hf.co/USER/REPO:QUANT of Ollama.
static std::optional<std::string> path_in(const std::string& repository, const std::string& name,
                                          const StoredModel& file) {
    std::string joined = repository + "_";
    std::replace(joined.begin(), joined.end(), '/', '_');
    for (const std::string& head : {repository + "/", joined})
        if (starts_with_any_case(name, head)) return name.substr(head.size()) + ".gguf";
    const std::string ollama = "hf.co/" + repository + ":";
    if (!starts_with_any_case(name, ollama)) return std::nullopt;
    const std::string tag = name.substr(ollama.size());
    if (tag != "latest") return tag + ".gguf";
    const Result<Gguf> opened = Gguf::open(file.path);
    const std::string type = opened ? stated_file_type(opened.value()) : "";
    return (type.empty() ? tag : type) + ".gguf";
}

std::optional<StoredModel> find_hub_model(const HubModel& model, const std::vector<ModelStore>& stores,
                                          std::vector<std::string>& faults) {
    std::map<std::string, StoredModel> by_path;
    std::vector<HubFile> here;
    const auto take = [&](const std::string& path, const StoredModel& file) {
        if (file.parts < file.of || by_path.count(path) > 0) return;
        if (const Result<Gguf> opened = Gguf::open(file.path); !opened)
            return faults.push_back(opened.error().message);
        by_path.emplace(path, file);
        here.push_back({path, file.bytes, ""});
    };
    for (const StoredModel& file : find_model_files(stores).files) {
        std::vector<std::string> names = file.aliases;
        names.insert(names.begin(), file.name);
        for (const std::string& name : names)
            if (const auto path = path_in(model.repository, name, file)) take(*path, file);
    }
    HubModel wanted = model;
    if (const auto part = split_name(model.wanted)) wanted.wanted = part->prefix + ".gguf";
    const Result<std::vector<HubFile>> chosen = choose_files(here, wanted);
    if (!chosen) return std::nullopt;
    return by_path.at(chosen.value().front().path);
}

static Result<std::string> only_one(const std::string& given, const std::vector<StoredModel>& found,
                                    Notes& notes) {
    constexpr size_t kMostShown = 8;
    std::vector<std::string> names;
    for (const StoredModel& file : found)
        if (std::find(names.begin(), names.end(), file.name) == names.end()) names.push_back(file.name);
    if (names.size() > 1)
        return error("\"{}\" may be any of {} models; name one: {}{}", given, names.size(),
                     fmt::join(std::span(names).first(std::min(names.size(), kMostShown)), ", "),
                     names.size() > kMostShown ? ", ...; redline models lists them" : "");
    notes.inform(fmt::format("model: {} ({})", found[0].name, found[0].owner));
    notes.detail("its file is " + found[0].path);
    return found[0].path;
}

Result<std::string> find_model(const std::string& given, const std::vector<ModelStore>& stores,
                               Notes& notes) {
    std::error_code unknown;
    // A name that looks like a path is one, so that a mistyped folder is not searched for by its name.
    const bool path = given.empty() || given.front() == '/' || given.front() == '.';
    if (path || stores.empty() || fs::exists(given, unknown)) return given;
    const std::vector<StoredModel> found = named(find_model_files(stores).files, given);
    if (!found.empty()) return only_one(given, found, notes);
    const Result<HubModel> hub = parse_hub_model(given);
    if (hub) {
        std::vector<std::string> faults;
        const std::optional<StoredModel> file = find_hub_model(hub.value(), stores, faults);
        for (const std::string& fault : faults) notes.note("passed over: " + fault);
        if (file) return only_one(given, {*file}, notes);
    }
    // A file that is not there: opening it says so.
    if (given.ends_with(".gguf") || (!hub && given.find('/') != std::string::npos)) return given;
    if (hub)
        return error(
            "\"{}\" is no file, and no model here is called so; redline pull {} fetches one of a hub, "
            "redline "
            "models lists those that are here",
            given, given);
    return error("\"{}\" is no file, and no model here is called so; redline models lists them", given);
}

}  // namespace redline
