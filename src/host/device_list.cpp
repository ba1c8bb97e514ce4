#include "host/device_list.h"

#include "host/open_device.h"
#include "host/rank_job.h"
#include "memory/budget.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace redline {

namespace {

// All GPUs of the backend that is chosen, in their order.
std::vector<DeviceChoice> all_gpus(const DeviceChoice& chosen) {
    std::vector<DeviceChoice> all;
    for (const UsableDevice& device : usable_devices())
        if (device.choice.backend == chosen.backend) all.push_back(device.choice);
    return all.empty() ? std::vector{chosen} : all;
}

std::string lower_case(std::string text) {
    for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

std::string number_of(const DeviceListing& listing) {
    const size_t colon = listing.id.find(':');
    return colon == std::string::npos ? "" : listing.id.substr(colon + 1);
}

std::string card_of(const DeviceListing& listing) {
    for (const DeviceListing::Fact& fact : listing.facts)
        if (const auto* text = std::get_if<std::string>(&fact.value))
            if (fact.name == "PCI address" && *text != "unknown" && !text->empty()) return *text;
    return listing.id;
}

// Which device of its backend a choice is, by number. A backend alone has to have one device only.
Status find_listing(OpenDevice& device) {
    const auto entries = all_backends();
    const auto entry = std::ranges::find(entries, device.choice.backend, &BackendEntry::name);
    RL_CHECK(entry != entries.end(), "no backend is called {}", device.choice.backend);
    const std::vector<DeviceListing> all = RL_TRY((*entry)->list());
    std::string& which = device.choice.device;
    std::vector<std::string> ids;
    for (const DeviceListing& listing : all) ids.push_back(listing.id);
    if (which.empty() && all.size() > 1)
        return error("{}: in a list its devices go by number: {}", device.choice.backend,
                     fmt::join(ids, ", "));
    for (const DeviceListing& listing : all) {
        const std::string number = number_of(listing);
        const bool named = lower_case(listing.name).find(lower_case(which)) != std::string::npos;
        const bool numbered = which.find_first_not_of("0123456789") == std::string::npos;
        if (!which.empty() && (numbered ? which != number : !named)) continue;
        which = number;
        device.id = listing.id;
        device.card = card_of(listing);
        return {};
    }
    return Error{fmt::format("no {} device is called {}; there {} {}", device.choice.backend, which,
                             all.size() == 1 ? "is" : "are",
                             all.empty() ? "none" : fmt::format("{}", fmt::join(ids, ", "))),
                 Cause::no_device};
}

Status take(LoadedModel& loaded, std::vector<DeviceChoice> choices, std::span<const double> shares) {
    std::vector<OpenDevice> all;
    for (size_t i = 0; i < choices.size(); ++i) {
        if (!shares.empty() && shares[i] == 0.0) continue;
        all.emplace_back();
        all.back().choice = std::move(choices[i]);
        if (!shares.empty()) all.back().share = shares[i];
    }
    if (all.size() > 1)
        for (OpenDevice& device : all) RL_TRY(find_listing(device));
    loaded.device = std::move(all.front());
    all.erase(all.begin());
    loaded.others = std::move(all);
    return {};
}

bool any_gpu(const LoadedModel& loaded) {
    return std::ranges::any_of(loaded.devices(),
                               [](const OpenDevice* one) { return one->name() != "cpu" && one->rank == 0; });
}

// Adds the devices of other ranks before those of this one, which computes the output. Shares are in the
// order of ranks.
Status add_ranks(LoadedModel& loaded, const HostOptions& options) {
    std::vector<OpenDevice> all = RL_TRY(options.job->devices()), mine;
    mine.push_back(std::move(loaded.device));
    for (OpenDevice& other : loaded.others) mine.push_back(std::move(other));
    for (OpenDevice& device : mine)
        device.id = fmt::format("rank 0's {}", device.id.empty() ? device.name() : device.id);
    const std::vector<double>& shares = options.shares;
    if (!shares.empty() && shares.size() != mine.size() + all.size())
        return error("{}: {} share{} for the {} devices of {} ranks", options.names->shares, shares.size(),
                     shares.size() == 1 ? "" : "s", mine.size() + all.size(), options.job->team().ranks());
    for (size_t i = 0; i < shares.size(); ++i)
        (i < mine.size() ? mine[i] : all[i - mine.size()]).share = shares[i];
    for (OpenDevice& device : mine) all.push_back(std::move(device));
    if (!shares.empty()) std::erase_if(all, [](const OpenDevice& device) { return device.share == 0.0; });
    loaded.device = std::move(all.front());
    all.erase(all.begin());
    loaded.others = std::move(all);
    return {};
}

// Gives each of several openings of a device its part of it.
Status divide(LoadedModel& loaded, std::span<OpenDevice* const> same, const HostOptions& options) {
    std::vector<std::string> ids;
    for (const OpenDevice* one : same) ids.push_back(one->id);
    options.notes->note(fmt::format(
        "{}: these are one device, and each has a part of its memory: nothing is faster than on it alone",
        fmt::join(ids, ", ")));
    const auto times = uint32_t(same.size());
    for (OpenDevice* one : same) {
        const DeviceInfo& info = one->backend->device();
        one->times = times;
        one->memory = std::max<uint64_t>(1, info.memory.bytes / times);
        one->threads = std::max(1u, info.threads / times);
    }
    for (OpenDevice* one : same) {
        one->backend.reset();
        one->backend = RL_TRY(open_listed(loaded, *one, options));
    }
    return {};
}

}  // namespace

std::string why_not_divided(const LoadedModel& loaded) {
    std::set<uint32_t> ranks;
    for (const OpenDevice* one : loaded.devices())
        if (!ranks.insert(one->rank).second)
            return fmt::format(
                "rank {} has several devices, and has to divide layers with one: --device names it",
                one->rank);
    if (!ranks.contains(0)) return "rank 0, which computes with all others, has no share";
    return "";
}

Status choose_devices(LoadedModel& loaded, const HostOptions& options) {
    std::vector<DeviceChoice> all = {RL_TRY(choose_device(options.device))};
    for (const std::string& other : options.others) all.push_back(RL_TRY(choose_device(other)));
    const std::vector<double> none;
    const std::vector<double>& shares = options.job ? none : options.shares;
    const bool one_named = options.device.find(':') != std::string::npos || options.device == "cpu";
    const bool shares_out = options.split_mode >= SplitMode::layer || !shares.empty();
    if (all.size() == 1 && !one_named && shares_out) all = all_gpus(all.front());
    if (!shares.empty() && shares.size() != all.size())
        return error("{}: {} share{} for {} device{}; {} names the devices, one twice where that is wanted",
                     options.names->shares, shares.size(), shares.size() == 1 ? "" : "s", all.size(),
                     all.size() == 1 ? "" : "s", options.names->device);
    RL_TRY(take(loaded, std::move(all), shares));
    if (options.job) RL_TRY(add_ranks(loaded, options));
    loaded.divides = loaded.is_shared() && options.split_mode == SplitMode::tensor;
    if (!options.job || !loaded.divides) return {};
    if (const std::string why = why_not_divided(loaded); !why.empty())
        return error("{}: {}; {} shares whole layers out",
                     options.names->with(options.names->split_mode, "tensor"), why,
                     options.names->with(options.names->split_mode, "layer"));
    return {};
}

Result<std::unique_ptr<Backend>> open_listed(const LoadedModel& loaded, const OpenDevice& device,
                                             const HostOptions& options) {
    if (device.rank > 0) return options.job->open(device);
    HostOptions its = options;
    if (device.name() == "cpu" && any_gpu(loaded)) {
        // Budgets were given for the GPUs.
        its.memory = 0;
        its.beside_gpu = true;
    }
    if (device.name() != "vulkan") its.vulkan_level.clear();
    if (!device.vulkan_level.empty()) its.vulkan_level = device.vulkan_level;
    if (device.times > 1) its.memory = device.memory;
    if (device.times > 1 && device.threads > 0) its.threads = device.threads;
    return open_device(device.choice, its);
}

Status open_devices(LoadedModel& loaded, const HostOptions& options) {
    std::map<std::string, std::vector<OpenDevice*>> cards;
    for (OpenDevice* one : loaded.devices()) {
        one->backend = RL_TRY(open_listed(loaded, *one, options));
        cards[one->card].push_back(one);
    }
    for (const auto& [card, same] : cards)
        if (same.size() > 1) RL_TRY(divide(loaded, same, options));
    return {};
}

}  // namespace redline
