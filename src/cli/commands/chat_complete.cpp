// The choices that Tab offers in a chat.
#include "cli/commands/chat_settings.h"
#include "cli/commands/chat_talk.h"
#include "cli/surroundings.h"
#include "cli/user_path.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <filesystem>

namespace redline::cli {

// Below the folder that is typed, the names that begin as the rest of it.
static std::vector<std::string> file_choices(const std::string& typed) {
    std::vector<std::string> choices;
    const size_t slash = typed.rfind('/');
    const std::string folder = slash == typed.npos ? "" : typed.substr(0, slash + 1);
    const std::string start = typed.substr(folder.size());
    std::error_code problem;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder.empty() ? "." : user_path(folder), problem)) {
        const std::string name = entry.path().filename().string();
        const bool hidden = start.empty() && name[0] == '.';
        // A name that cannot be typed would stand there as another one.
        if (!name.starts_with(start) || hidden || printable(name) != name) continue;
        choices.push_back(folder + name + (entry.is_directory(problem) ? "/" : ""));
    }
    return choices;
}

static std::vector<std::string> model_names() {
    std::vector<std::string> names;
    for (const StoredModel& model : find_model_files(user_model_stores()).files) names.push_back(model.name);
    return names;
}

// "NAME ", or behind a name its values: those of a choice, and the one that it has.
static std::vector<std::string> setting_choices(const ConversationOptions& options,
                                                const std::string& typed) {
    const size_t blank = typed.find(' ');
    const std::string name = typed.substr(0, blank);
    std::vector<std::string> choices;
    for (const auto& [known, value] : list_settings(options)) {
        if (blank == typed.npos) choices.push_back(known + " ");
        if (blank != typed.npos && known == name) choices.push_back(known + " " + value);
    }
    if (blank == typed.npos) choices.emplace_back("status ");
    if (name != "status" && name != "ignore-eos") return choices;
    if (blank != typed.npos) choices = {name + " off", name + " on"};
    return choices;
}

std::vector<std::string> Talk::argument_choices(const std::string& command, const std::string& typed) const {
    if (command == "/save" || command == "/load" || command == "/export") return file_choices(typed);
    if (command == "/think") return {"high", "hide", "low", "medium", "off", "on"};
    if (command == "/show") return {"memory", "plan", "sampling", "stats", "system", "template"};
    if (command == "/set") return setting_choices(conversation_.options(), typed);
    // The present text is there to be changed.
    if (command == "/system") return {conversation_.system(), std::string(kNothing)};
    std::vector<std::string> choices;
    if (command == "/model" || command == "/read") choices = file_choices(typed);
    if (command == "/read" && !attached_.empty()) choices.emplace_back(kNothing);
    if (command == "/model")
        for (std::string& name : model_names()) choices.push_back(std::move(name));
    return choices;
}

Completion Talk::complete(const std::string& before) const {
    if (!before.starts_with('/')) return {};
    const size_t blank = before.find(' ');
    Completion found;
    if (blank == before.npos) {
        found.choices = command_names(false);
        for (std::string& word : found.choices) word += ' ';
    } else {
        found.begin = blank + 1;
        const TalkCommand* command = find_command(before.substr(0, blank));
        if (!command) return {};
        found.choices = argument_choices(std::string(command->name), before.substr(found.begin));
    }
    const std::string typed = before.substr(found.begin);
    std::erase_if(found.choices,
                  [&](const std::string& choice) { return choice.empty() || !choice.starts_with(typed); });
    std::sort(found.choices.begin(), found.choices.end());
    found.choices.erase(std::unique(found.choices.begin(), found.choices.end()), found.choices.end());
    return found;
}

}  // namespace redline::cli
