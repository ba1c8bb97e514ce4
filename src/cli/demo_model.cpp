#include "cli/demo_model.h"

#include "cli/command.h"
#include "cli/terminal/terminal.h"

#include <filesystem>
#include <utility>

// From the build: the file's name, where `install` puts it as seen from the program, and the source tree.
#ifndef RL_DEMO_FILE
#error "the build says what the demo model is called"
#endif

namespace redline::cli {

namespace fs = std::filesystem;

static std::vector<fs::path> places() {
    std::vector<fs::path> out;
    std::error_code unknown;
    const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
    if (!unknown) {
        fs::path folder = program.parent_path();
        out.push_back((folder / RL_DEMO_FROM_PROGRAM).lexically_normal());
        out.push_back(folder / RL_DEMO_FILE);
        // A source tree that was moved together with its build, at build/PRESET/redline or
        // build/PRESET/tests/TEST.
        for (int up = 0; up < 3; ++up) {
            folder = folder.parent_path();
            out.push_back(folder / "models/demo" / RL_DEMO_FILE);
        }
    }
    out.push_back(fs::path(RL_DEMO_SOURCE) / RL_DEMO_FILE);
    return out;
}

Result<std::string> find_demo_model() {
    std::error_code ignored;
    std::vector<std::string> looked;
    for (const fs::path& place : places()) {
        if (fs::is_regular_file(place, ignored)) return place.string();
        looked.push_back(place.string());
    }
    return error(
        "no model: name a GGUF file with -m FILE (the demo model is not beside the program: {} is missing)",
        fmt::join(looked, ", and "));
}

Status take_demo_model(ModelOptions& options) {
    if (!options.model.empty()) return {};
    options.model = RL_TRY(find_demo_model());
    options.unnamed = true;
    return {};
}

void note_demo_model(const ModelOptions& options) {
    static bool noted = false;
    if (!options.unnamed || std::exchange(noted, true)) return;
    note("no model is named: the small demo model that comes with redline is taken; -m FILE takes another");
    say_detail("its file is " + options.model);
}

}  // namespace redline::cli
