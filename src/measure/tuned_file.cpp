// The file that keeps what tuning found, by device, kernel and class of rows.
#include "measure/device_file.h"
#include "measure/tune.h"
#include "plan/kernel_key.h"

namespace redline {

static DeviceFile tuned_file(const std::string& folder) {
    return {folder, "tuning.json", kKernelKeyVersion};
}

// A part of the file; an empty object where it is missing or of another type.
static Json part_of(const Json& json, std::string_view name) {
    const auto found = json.is_object() ? json.find(std::string(name)) : json.end();
    return found != json.end() && found->is_object() ? *found : Json::object();
}

static bool is_quick(const Json& kernel) {
    return kernel.value("quick", Json()) == Json(true);
}

static void put_tuned(Json& device, const TunedKernel& kernel) {
    const std::string rows(row_class_name(kernel.rows));
    const Json before = part_of(part_of(part_of(device, "kernels"), kernel.key), rows);
    const bool timed = kernel.seconds > 0.0;
    if (kernel.quick && !before.empty() && !(timed && is_quick(before))) return;
    Json& kernels = device["kernels"];
    if (!kernels.is_object()) kernels = Json::object();
    Json& of_key = kernels[kernel.key];
    if (!of_key.is_object()) of_key = Json::object();
    of_key[rows] = {{"variant", kernel.variant},
                    {"default_us", kernel.default_seconds * 1e6},
                    {"us", kernel.seconds * 1e6}};
    if (kernel.quick) of_key[rows]["quick"] = true;
}

Status keep_tuned(const std::string& folder, const Backend& backend, std::span<const TunedKernel> all) {
    return tuned_file(folder).update(device_key(backend), [&](Json& device) {
        for (const TunedKernel& kernel : all) put_tuned(device, kernel);
    });
}

// Calls `each` with the entry of every kernel and row class.
static void visit_kept(const std::string& folder, const Backend& backend, std::string* problem,
                       const std::function<void(const Variants::key_type&, const Json&)>& each) {
    const Json device = tuned_file(folder).read(device_key(backend), problem);
    const Json kernels = part_of(device, "kernels");
    for (const auto& [key, classes] : kernels.items())
        for (const RowClass rows : kRowClassList)
            if (const Json kept = part_of(classes, row_class_name(rows)); !kept.empty())
                each({key, rows}, kept);
}

Variants tuned_variants(const std::string& folder, const Backend& backend, std::string* problem) {
    Variants out;
    visit_kept(folder, backend, problem, [&](const Variants::key_type& kernel, const Json& kept) {
        const Json variant = part_of(kept, "variant");
        for (const auto& [name, value] : variant.items())
            if (value.is_number_unsigned() && value.get<uint64_t>() <= UINT32_MAX)
                out[kernel][name] = value.get<uint32_t>();
    });
    return out;
}

std::map<Variants::key_type, KeptTimes> tuned_times(const std::string& folder, const Backend& backend) {
    std::map<Variants::key_type, KeptTimes> out;
    visit_kept(folder, backend, nullptr, [&](const Variants::key_type& kernel, const Json& kept) {
        const Json by_default = kept.value("default_us", Json()), found = kept.value("us", Json());
        if (!by_default.is_number() || !found.is_number()) return;
        out[kernel] = {by_default.get<double>() * 1e-6, found.get<double>() * 1e-6, is_quick(kept)};
    });
    return out;
}

std::set<Variants::key_type> tuned_keys(const std::string& folder, const Backend& backend, bool quick_ones) {
    std::set<Variants::key_type> out;
    visit_kept(folder, backend, nullptr, [&](const Variants::key_type& kernel, const Json& kept) {
        if (quick_ones || !is_quick(kept)) out.insert(kernel);
    });
    return out;
}

}  // namespace redline
