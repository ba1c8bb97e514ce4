#include "cli/find_model.h"

#include "cli/terminal/terminal.h"

#include <cstdlib>

namespace redline::cli {

static std::string variable(const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return value ? value : "";
}

std::vector<ModelStore> user_model_stores() {
    return model_stores(variable);
}

Result<std::string> find_model(const std::string& given) {
    std::error_code unknown;
    // What looks like a path is one, so that a mistyped folder is not searched for by its name.
    const bool path = given.empty() || given.front() == '/' || given.front() == '.';
    if (path || std::filesystem::exists(given, unknown)) return given;
    const std::vector<StoredModel> found = named(find_model_files(user_model_stores()).files, given);
    if (found.empty()) {
        // A file that is not there: opening it says so.
        if (given.ends_with(".gguf") || given.find('/') != std::string::npos) return given;
        return error("\"{}\" is no file, and no model here is called so; redline models lists them", given);
    }
    if (found.size() > 1) {
        std::vector<std::string> names;
        for (const StoredModel& file : found) names.push_back(file.name);
        return error("\"{}\" may be any of {} models; name one: {}", given, names.size(),
                     fmt::join(names, ", "));
    }
    say(fmt::format("model: {} ({})", found[0].name, found[0].owner));
    say_detail("its file is " + found[0].path);
    return found[0].path;
}

}  // namespace redline::cli
