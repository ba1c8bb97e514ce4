#include "cli/find_model.h"

#include "cli/command.h"
#include "cli/terminal/terminal.h"
#include "gguf/facts.h"
#include "gguf/split.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <span>

namespace redline::cli {

namespace fs = std::filesystem;

static std::string variable(const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return value ? value : "";
}

std::vector<ModelStore> user_model_stores() {
    return model_stores(variable);
}

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

std::optional<StoredModel> find_hub_model(const HubModel& model, std::vector<std::string>& faults) {
    std::map<std::string, StoredModel> by_path;
    std::vector<HubFile> here;
    const auto take = [&](const std::string& path, const StoredModel& file) {
        if (file.parts < file.of || by_path.count(path) > 0) return;
        if (const Result<Gguf> opened = Gguf::open(file.path); !opened)
            return faults.push_back(opened.error().message);
        by_path.emplace(path, file);
        here.push_back({path, file.bytes, ""});
    };
    for (const StoredModel& file : find_model_files(user_model_stores()).files) {
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

static Result<std::string> only_one(const std::string& given, const std::vector<StoredModel>& found) {
    constexpr size_t kMostShown = 8;
    std::vector<std::string> names;
    for (const StoredModel& file : found)
        if (std::find(names.begin(), names.end(), file.name) == names.end()) names.push_back(file.name);
    if (names.size() > 1)
        return error("\"{}\" may be any of {} models; name one: {}{}", given, names.size(),
                     fmt::join(std::span(names).first(std::min(names.size(), kMostShown)), ", "),
                     names.size() > kMostShown ? ", ...; redline models lists them" : "");
    say(fmt::format("model: {} ({})", found[0].name, found[0].owner));
    say_detail("its file is " + found[0].path);
    return found[0].path;
}

Result<std::string> find_model(const std::string& given) {
    std::error_code unknown;
    // What looks like a path is one, so that a mistyped folder is not searched for by its name.
    const bool path = given.empty() || given.front() == '/' || given.front() == '.';
    if (path || fs::exists(given, unknown)) return given;
    const std::vector<StoredModel> found = named(find_model_files(user_model_stores()).files, given);
    if (!found.empty()) return only_one(given, found);
    const Result<HubModel> hub = parse_hub_model(given);
    if (hub) {
        std::vector<std::string> faults;
        const std::optional<StoredModel> file = find_hub_model(hub.value(), faults);
        for (const std::string& fault : faults) note("passed over: " + fault);
        if (file) return only_one(given, {*file});
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

bool is_model_file(const std::string& word) {
    std::string end = word.substr(word.size() - std::min<size_t>(word.size(), 5));
    std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
    std::error_code ignored;
    // A prompt may end with the name of a file.
    const bool sentence = word.find_first_of(" \t\n") != word.npos;
    if (end == ".gguf" && (!sentence || fs::exists(word, ignored))) return true;
    if (!fs::is_regular_file(word, ignored)) return false;
    char magic[4] = {};
    return std::ifstream(word, std::ios::binary).read(magic, 4) && std::string_view(magic, 4) == "GGUF";
}

// Whether a name of the file has `part` at the start of one of its words. Two letters are in too many names.
static bool has_words(const StoredModel& file, const std::string& part) {
    constexpr size_t kShortest = 3;
    const auto same = [](char a, char b) { return std::tolower(uint8_t(a)) == std::tolower(uint8_t(b)); };
    const auto holds = [&](const std::string& name) {
        for (auto at = name.begin();; ++at) {
            at = std::search(at, name.end(), part.begin(), part.end(), same);
            if (at == name.end()) return false;
            if (at == name.begin() || std::string_view("/-_.:").find(at[-1]) != std::string_view::npos)
                return true;
        }
    };
    return part.size() >= kShortest && (holds(file.name) || std::ranges::any_of(file.aliases, holds));
}

bool names_model(const std::string& word, NameParts parts) {
    constexpr size_t kLongest = 256;
    if (word.empty() || word.size() > kLongest || word.find('\n') != std::string::npos) return false;
    if (is_model_file(word)) return true;
    const std::vector<StoredModel> files = find_model_files(user_model_stores()).files;
    if (!called(files, word).empty()) return true;
    if (parts == NameParts::part)
        for (const StoredModel& file : files)
            if (has_words(file, word)) return true;
    const Result<HubModel> hub = parse_hub_model(word);
    std::vector<std::string> faults;
    return hub && find_hub_model(hub.value(), faults);
}

}  // namespace redline::cli
