// The models of redline serve --models: those of a folder, or of a file of presets.
#pragma once

#include "cli/commands/serve_options.h"

#include <map>
#include <memory>

namespace redline::cli {

// Options that stay where they were declared, as these refer to each other.
struct ServeSettings {
    ServeSettings() : options(declare_serve(serve)) {}
    ServeSettings(const ServeSettings&) = delete;

    ServeOptions serve;
    Options options;
};

struct SeveralModels {
    std::vector<serve::OfferedModel> offered;
    std::map<std::string, serve::Hosting> hosting;         // by the model's name
    std::vector<std::string> at_start;                     // those that are loaded when the server starts
    std::vector<std::unique_ptr<ServeSettings>> settings;  // that `hosting` refers to
};

// `command` has to outlive the result; `arguments` are those that it was given.
Result<SeveralModels> several_models(ServeSettings& command, const std::vector<std::string>& arguments);

}  // namespace redline::cli
