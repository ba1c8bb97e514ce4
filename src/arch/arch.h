// An architecture, as a file in models/ describes it: how its configuration is read, which weights it has,
// and its forward pass as a plan. The file's stem is the name of its Arch constant; the build finds it by
// itself.
#pragma once

#include "arch/keys.h"
#include "arch/weight_list.h"

#include <memory>
#include <utility>

namespace redline {

struct Arch {
    std::vector<std::string> names;  // values of general.architecture
    // The struct that it points to may be derived from Config, for the functions below.
    Result<std::shared_ptr<const Config>> (*config)(const ModelFile& file);
    void (*weights)(const Config& config, WeightList& list);
    void (*build)(const Config& config, const WeightSet& weights, PlanBuilder& plan);
};

// The Arch of three functions: kConfig returns Result<T>, where T is Config or derived from it, and the
// others take this T.
template <auto kConfig, auto kWeights, auto kBuild>
Arch make_arch(std::vector<std::string> names) {
    using T = std::decay_t<decltype(kConfig(std::declval<const ModelFile&>()).value())>;
    return {std::move(names),
            [](const ModelFile& file) -> Result<std::shared_ptr<const Config>> {
                return std::shared_ptr<const Config>(std::make_shared<const T>(RL_TRY(kConfig(file))));
            },
            [](const Config& config, WeightList& list) { kWeights(static_cast<const T&>(config), list); },
            [](const Config& config, const WeightSet& weights, PlanBuilder& plan) {
                kBuild(static_cast<const T&>(config), weights, plan);
            }};
}

// Written by the build, into the library rl_models.
std::span<const Arch* const> all_archs();

}  // namespace redline
