// Fetching a model because the user asked for it, by redline pull or by -hf: the files it has, where they go,
// and progress on the way.
#pragma once

#include "cli/options/model_options.h"
#include "fetch/hub.h"

#include <filesystem>

namespace redline::cli {

struct PulledFile {
    std::string url;
    HubFile file;
    std::filesystem::path path;
};

struct PullSettings {
    std::string folder;  // empty: where redline keeps its models
    std::string token;   // for the hub; empty: the user's
    long stall_seconds = 60;
};
// An error where this can be neither a name nor an address, whatever the hub says.
Status check_pull(const std::string& wanted);
// "USER/REPO[:QUANT]" or the address of a file. What is there already is not fetched again.
Result<std::vector<PulledFile>> pull_model(const std::string& wanted, const PullSettings& settings,
                                           const std::atomic<bool>* cancel);

// -hf, -mu and their relatives, of a command with a model.
void add_remote_options(Options& options, RemoteModel& remote);
// The file of the model that they name goes to `model.model`: the one that some program here has, else what
// is fetched. An exit code when that fails.
std::optional<int> take_remote_model(ModelOptions& model);

}  // namespace redline::cli
