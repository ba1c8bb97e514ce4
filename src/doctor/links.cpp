#include "doctor/links.h"

#include "base/os/shared_library.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace redline {

namespace {

std::string fact_of(const DeviceListing& device, std::string_view name) {
    for (const DeviceListing::Fact& fact : device.facts)
        if (fact.name == name)
            if (const auto* text = std::get_if<std::string>(&fact.value)) return *text;
    return "";
}

// Looked for here and not by the backend, whose lists are made at each start: it is a large library.
std::string collectives_of(const DeviceListing& device) {
    std::vector<const char*> names = {"librccl.so.1", "/opt/rocm/lib/librccl.so.1"};
    if (fact_of(device, "runtime").starts_with("CUDA")) names = {"libnccl.so.2"};
    for (const char* name : names) {
        os::LibraryFault fault;
        void* const library = os::open_library(name, fault, false);
        if (!library) continue;
        os::close_library(library);
        return name;
    }
    return "";
}

// "hip:0 and hip:1"
std::string ids_of(const GpuLinks& links) {
    std::vector<std::string> ids;
    for (const GpuLink& gpu : links.gpus) ids.push_back(gpu.id);
    const std::string last = ids.back();
    ids.pop_back();
    return fmt::format("{} and {}", fmt::join(ids, ", "), last);
}

bool any_reaches_none(const GpuLinks& links) {
    return std::ranges::any_of(links.gpus, [](const GpuLink& gpu) { return gpu.reaches == "none"; });
}

// How rows of a layer that is divided are added.
Finding sums_finding(const GpuLinks& links) {
    const std::string ids = ids_of(links), &way = links.gpus[0].sums;
    if (way == "peer memory")
        return {Severity::good, "links",
                fmt::format("{} add rows through each other's memory: -sm tensor makes texts of large dense "
                            "models faster",
                            ids),
                ""};
    if (!way.empty())
        return {Severity::note, "links",
                fmt::format("{} add rows through {}: -sm tensor pays for large dense models alone", ids, way),
                ""};
    return {
        Severity::note, "links",
        fmt::format("the host adds the rows of {}, which takes tens of microseconds each: -sm layer makes "
                    "room for larger models, -sm tensor is rarely faster",
                    ids),
        ""};
}

void add_lanes(const GpuLinks& links, std::vector<Finding>& out) {
    for (const GpuLink& gpu : links.gpus) {
        if (!gpu.link || gpu.link->lanes >= gpu.link->most_lanes) continue;
        out.push_back(
            {Severity::note, "links",
             fmt::format("{} has {} of the {} lanes that it could have: prompts that are shared out "
                         "cross at up to {:.0f} GB/s",
                         gpu.id, gpu.link->lanes, gpu.link->most_lanes, gpu.link->bytes_per_second() * 1e-9),
             "a slot with all of its lanes, where the board has one; the manual of the board says "
             "which slots share theirs"});
    }
}

// A translation of addresses, or switches that send everything up to the root, keep devices from each other.
void add_isolation(const GpuLinks& links, std::vector<Finding>& out) {
    std::set<std::string> groups;
    std::string translates;
    for (const GpuLink& gpu : links.gpus) {
        if (!gpu.isolation) continue;
        groups.insert(gpu.isolation->group);
        if (gpu.isolation->kind.starts_with("DMA")) translates = gpu.isolation->kind;
    }
    if (translates.empty() || !any_reaches_none(links)) return;
    out.push_back(
        {Severity::note, "links",
         fmt::format("the IOMMU translates the addresses of {} ({}){}: they do not reach each other's memory",
                     ids_of(links), translates,
                     groups.size() > 1 ? ", each in a separate group, as ACS of the ports above has it" : ""),
         "iommu=pt on the kernel's command line; ACS is switched off in the firmware's set-up. Only where no "
         "virtual machine uses a device of this host"});
}

}  // namespace

std::string link_text(const GpuLink& gpu) {
    if (!gpu.link) return "";
    return fmt::format("{} lane{} of {} GT/s, up to {:.0f} GB/s each way", gpu.link->lanes,
                       gpu.link->lanes == 1 ? "" : "s", gpu.link->transfers * 1e-9,
                       gpu.link->bytes_per_second() * 1e-9);
}

std::vector<GpuLinks> gpu_links(std::span<const BackendView> views, const std::string& root) {
    std::vector<GpuLinks> all;
    for (const BackendView& view : views) {
        GpuLinks links{view.backend, {}, {}};
        for (const DeviceListing& device : view.devices) {
            if (view.backend == "cpu" || !device.missing.empty() || !device.preferred) continue;
            std::string pci = fact_of(device, "PCI address");
            if (pci == "unknown") pci.clear();
            links.gpus.push_back({device.id, pci, pci_link(pci, root), fact_of(device, "reaches"),
                                  fact_of(device, "adds rows by"), pci_isolation(pci, root)});
        }
        if (view.backend == "hip" && root.empty() && links.gpus.size() > 1)
            links.collectives = collectives_of(view.devices.front());
        if (links.gpus.size() > 1) all.push_back(std::move(links));
    }
    return all;
}

std::vector<Finding> examine_links(std::span<const GpuLinks> all) {
    std::vector<Finding> out;
    for (const GpuLinks& links : all) {
        out.push_back(sums_finding(links));
        if (!links.collectives.empty())
            out.push_back(
                {Severity::good, "links",
                 fmt::format("{} is there, which can add their rows, too: REDLINE_COLLECTIVES={} has "
                             "it tried with -sm tensor",
                             links.collectives, links.collectives),
                 ""});
        add_lanes(links, out);
        add_isolation(links, out);
    }
    return out;
}

}  // namespace redline
