#include "cli/user_models.h"

#include "cli/surroundings.h"
#include "fetch/hub.h"
#include "host/find_model.h"

#include <algorithm>
#include <fstream>

namespace redline::cli {

namespace fs = std::filesystem;

Result<std::string> find_user_model(const std::string& given) {
    return find_model(given, user_model_stores(), terminal_notes());
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

// True where a name of the file has `part` at the start of one of its words. Two letters are in too many
// names.
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
    return hub && find_hub_model(hub.value(), user_model_stores(), faults);
}

}  // namespace redline::cli
