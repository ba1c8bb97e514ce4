#include "host/loaded_model.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace redline {

namespace {

// Those of `loaded`, which is a LoadedModel or a const one.
template <typename Device, typename Loaded>
std::vector<Device*> devices_of(Loaded& loaded) {
    std::vector<Device*> all = {&loaded.device};
    for (Device& other : loaded.others) all.push_back(&other);
    return all;
}

template <typename Device, typename Loaded>
std::vector<Device*> places_of(Loaded& loaded) {
    std::vector<Device*> all = devices_of<Device>(loaded);
    if (loaded.split.cpu.backend) all.push_back(&loaded.split.cpu);
    return all;
}

}  // namespace

std::vector<OpenDevice*> LoadedModel::devices() {
    return devices_of<OpenDevice>(*this);
}
std::vector<const OpenDevice*> LoadedModel::devices() const {
    return devices_of<const OpenDevice>(*this);
}
std::vector<OpenDevice*> LoadedModel::places() {
    return places_of<OpenDevice>(*this);
}
std::vector<const OpenDevice*> LoadedModel::places() const {
    return places_of<const OpenDevice>(*this);
}

std::string LoadedModel::label(const Backend* backend) const {
    if (backend && backend == split.cpu.backend.get()) return "cpu";
    if (!is_shared()) return device.name();
    const std::vector<const OpenDevice*> all = devices();
    const auto found = std::ranges::find_if(all, [&](auto* one) { return one->backend.get() == backend; });
    if (found == all.end()) return device.name();
    const std::string& id = (*found)->id;
    const auto before = std::count_if(all.begin(), found, [&](auto* one) { return one->id == id; });
    return before > 0 ? fmt::format("{} ({})", id, before + 1) : id;
}

std::string LoadedModel::labels() const {
    std::vector<std::string> all;
    for (const OpenDevice* one : devices()) all.push_back(label(one->backend.get()));
    return fmt::format("{}", fmt::join(all, ", "));
}

SplitPlaces LoadedModel::split_places() const {
    SplitPlaces where{split.cpu.backend.get(), {}};
    for (const OpenDevice* one : devices()) where.devices.push_back(one->backend.get());
    return where;
}

}  // namespace redline
