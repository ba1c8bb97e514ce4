// Fetching a model because the user asked for it, by redline pull or by -hf: the files it has, where they go,
// and progress on the way.
#pragma once

#include "cli/options/options.h"
#include "fetch/hub.h"

#include <filesystem>

namespace redline::cli {

struct PulledFile {
    std::string url;
    HubFile file;
    std::filesystem::path path;
};

// "USER/REPO[:QUANT]" or the address of a file. Into `folder`, or where redline keeps its models when that is
// empty. What is there already is not fetched again.
Result<std::vector<PulledFile>> pull_model(const std::string& wanted, const std::string& folder,
                                           long stall_seconds, const std::atomic<bool>* cancel);

// -hf of a command with a model.
void add_hub_option(Options& options, std::string& wanted);
// The file of the model that -hf named goes to `path`: the one that is there, else what is fetched. An exit
// code when that fails.
std::optional<int> take_hub_model(const std::string& wanted, std::string& path);

}  // namespace redline::cli
