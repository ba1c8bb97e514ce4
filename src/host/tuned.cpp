#include "host/tuned.h"

#include "measure/device_file.h"
#include "measure/tune.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <set>

namespace redline {

namespace {

std::string fact(const DeviceListing& device, std::string_view name) {
    for (const DeviceListing::Fact& one : device.facts)
        if (one.name == name)
            if (const auto* text = std::get_if<std::string>(&one.value)) return *text;
    return {};
}

// A measured speed holds for as long as this is the same.
std::string setting_of(const DeviceListing& device) {
    return fmt::format("{}; {}{}; {}", device.name, fact(device, "driver"), fact(device, "runtime"),
                       fact(device, "PCI address"));
}

std::string backend_of(const DeviceListing& device) {
    return device.id.substr(0, device.id.find(':'));
}

bool same_card(const DeviceListing& a, const DeviceListing& b) {
    const std::string address = fact(a, "PCI address");
    return !address.empty() && address != "unknown" && address == fact(b, "PCI address");
}

constexpr uint64_t kVersion = 1;

DeviceFile speed_file(const std::string& cache_folder) {
    return {cache_folder, "speeds.json", kVersion};
}

// The name alone would be that of another model as well.
std::string model_key(const std::string& path) {
    std::error_code unknown;
    const std::filesystem::path file(path);
    return fmt::format("{}, {} bytes", file.filename().string(), std::filesystem::file_size(file, unknown));
}

}  // namespace

void use_tuned(Backend& backend, const HostOptions& options) {
    static std::mutex mutex;
    static std::set<std::string> said;
    if (!options.tuned || options.cache_folder.empty()) return;
    std::string problem;
    Variants variants = tuned_variants(options.cache_folder, backend, &problem);
    const std::lock_guard lock(mutex);
    if (!problem.empty() && said.insert(problem).second)
        options.notes->note(problem + ": kernels run as they do by default, until they are measured again");
    backend.use(std::move(variants));
    use_precise(backend, options);
}

void use_precise(Backend& backend, const HostOptions& options) {
    if (!options.precise) return;
    Variants variants = backend.variants();
    std::erase_if(variants, [](const Variants::value_type& kernel) {
        return std::ranges::any_of(kernel.second, [](const Variant::value_type& choice) {
            return choice.first.ends_with("int8") && choice.second != 0;
        });
    });
    backend.use(std::move(variants));
}

std::vector<std::string> tuned_kernels_of(const Model& model, Backend& backend,
                                          const EngineOptions& options) {
    std::vector<std::string> out;
    if (backend.variants().empty()) return out;
    const Result<std::vector<Plan>> plans = kernel_plans(model, options, backend);
    if (!plans) return out;
    std::set<std::string> met;
    for (const Plan& plan : plans.value()) {
        const Result<BoundPlan> bound = lower(plan, backend, options.fuse);
        if (!bound) continue;
        const std::vector<Step>& steps = bound.value().plan.steps;
        for (size_t i = 0; i < steps.size(); ++i) {
            // A variant that is wrong is not taken.
            const TakenVariants& taken = bound.value().kernels[i]->taken();
            for (const RowClass rows : kRowClassList) {
                if (taken[size_t(rows)].empty()) continue;
                std::string text = fmt::format("{}, {}: {}", op_text(steps[i].op, bound.value().plan),
                                               row_class_name(rows), variant_text(taken[size_t(rows)]));
                if (met.insert(text).second) out.push_back(std::move(text));
            }
        }
    }
    return out;
}

void note_wrong_variants(std::span<const TunedKernel> kernels, const std::string& device, Notes& notes) {
    size_t count = 0;
    std::string first;
    for (const TunedKernel& kernel : kernels)
        for (const std::string& wrong : kernel.wrong) {
            const std::string one = fmt::format("{}, {}, {}", kernel.op, row_class_name(kernel.rows), wrong);
            notes.detail("wrong variant: " + one);
            if (++count == 1) first = one;
        }
    if (count > 0)
        notes.note(
            fmt::format("{} variant{} of {}'s kernels compute{} wrongly on this device, so that the "
                        "default stays: {}{}",
                        count, count == 1 ? "" : "s", device, count == 1 ? "s" : "", first,
                        count == 1 ? "" : fmt::format(", and {} more (-v lists them)", count - 1)));
}

std::string ModelSpeed::text() const {
    return fmt::format("{:.4g} tok/s and prompts of {:.4g}", generation, prompt);
}

std::optional<DeviceListing> listing_of(const DeviceChoice& choice, const FindDevices& find) {
    for (UsableDevice& device : find()) {
        if (device.choice.backend != choice.backend) continue;
        if (choice.device.empty() || choice.device == device.choice.device) return std::move(device.listing);
    }
    return {};
}

Status keep_speed(const std::string& model, const DeviceListing& device, const ModelSpeed& speed,
                  const std::string& cache_folder) {
    if (cache_folder.empty()) return {};
    return speed_file(cache_folder).update(model_key(model), [&](Json& known) {
        known[device.id] = {
            {"of", setting_of(device)}, {"prompt", speed.prompt}, {"generation", speed.generation}};
    });
}

std::vector<DeviceChoice> ways_to_card(const DeviceChoice& usual, const FindDevices& find) {
    std::vector<DeviceChoice> all = {usual};
    const std::optional<DeviceListing> listing = listing_of(usual, find);
    if (!listing) return all;
    for (const UsableDevice& device : find())
        if (device.choice.backend != usual.backend && same_card(device.listing, *listing))
            all.push_back(device.choice);
    return all;
}

DeviceChoice faster_choice(const std::string& model, DeviceChoice usual, const std::string& cache_folder,
                           const FindDevices& find) {
    if (usual.backend == "cpu" || cache_folder.empty()) return usual;
    const Json known = speed_file(cache_folder).read(model_key(model));
    const std::optional<DeviceListing> listing =
        known.size() > 1 ? listing_of(usual, find) : std::optional<DeviceListing>();
    if (!listing) return usual;
    std::vector<std::pair<DeviceListing, ModelSpeed>> measured;
    for (UsableDevice& device : find()) {
        const auto found = known.find(device.listing.id);
        if (found == known.end() || !found->is_object() || !same_card(device.listing, *listing)) continue;
        if (found->value("of", Json()) != setting_of(device.listing)) continue;
        const Json prompt = found->value("prompt", Json()), generation = found->value("generation", Json());
        if (!prompt.is_number() || !generation.is_number()) continue;
        const ModelSpeed speed = {prompt.get<double>(), generation.get<double>()};
        if (speed.prompt > 0.0 && speed.generation > 0.0)
            measured.emplace_back(std::move(device.listing), speed);
    }
    if (measured.size() < 2) return usual;
    std::sort(measured.begin(), measured.end(),
              [](const auto& a, const auto& b) { return a.second.seconds() < b.second.seconds(); });
    const auto& [best, speed] = measured.front();
    const auto& [next, slower] = measured[1];
    const size_t colon = best.id.find(':');
    return {backend_of(best), colon == std::string::npos ? "" : best.id.substr(colon + 1),
            fmt::format("measured with this model: {}, {} has {}", speed.text(), backend_of(next),
                        slower.text())};
}

}  // namespace redline
