// HIP as a backend: picks and opens a device, places weights, and hands out kernels.
#include "backends/gpu/backend.h"
#include "backends/hip/ops/peak.h"
#include "backends/hip/runtime/executable.h"
#include "backends/hip/runtime/objects.h"
#include "backends/shared/cache_rows.h"
#include "base/hash.h"
#include "plan/rank_link.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace redline {

namespace hip {

class HipBackend : public gpu::DeviceBackend<HipBackend, HipExecutable, Running>,
                   public MatrixUnits,
                   public LinksRanks {
public:
    HipBackend(const Runtime& runtime, std::unique_ptr<Device> device, std::unique_ptr<Memory> memory,
               const std::string& why, const BackendOptions& options)
        : DeviceBackend(std::move(device), std::move(memory)), runtime_(runtime) {
        const DeviceReport& report = device_->report();
        info_.name = report.name;
        info_.detail = fmt::format("{}; {} as {}; {}; waves of {}", runtime.version_text(), report.arch,
                                   report.target, why, report.wave());
        info_.identity =
            fmt::format("{}; {}; {} as {}", report.name, runtime.version_text(), report.arch, report.target);
        info_.unified = report.integrated;
        info_.memory = options.memory > 0 ? asked_budget(options.memory) : report.budget();
        info_.wave = report.wave();
    }

    bool has_kernels(const Format& format) const override {
        const WeightLayout* layout = weight_layout(format);
        return layout && find_object(device_->report().target, layout->name);
    }

    uint64_t kernels_hash() const override {
        Hash64 hash;
        for (const CodeObject& object : all_objects())
            if (object.target == device_->report().target) hash.add(object.packed);
        return hash.value();
    }

    // Llama-3.1-8B Q4_K_M on an H200, 2026-11-29: 1.47 to 1.40 of one row's time for 2 to 8 rows. Dot
    // products with several rows were measured with Vulkan.
    double row_cost(uint32_t rows) const override {
        if (device_->report().matrix_units()) return rows <= 1 ? 1.0 : rows <= 8 ? 1.47 : 1.75;
        return rows <= 1 ? 1.0 : rows <= 2 ? 1.54 : rows <= 4 ? 2.07 : 3.2;
    }

    // One card that is opened twice would wait for itself. Cards of one kind divide rows alike.
    bool may_link(std::span<Backend* const> ranks) const override {
        std::set<int> cards;
        for (Backend* const rank : ranks) {
            const auto* one = dynamic_cast<const HipBackend*>(rank);
            if (one && one->device_->report().target == device_->report().target)
                cards.insert(one->device_->report().index);
        }
        return ranks.size() > 1 && ranks.size() <= args::kMostRanks && cards.size() == ranks.size();
    }

    uint64_t link_bytes(size_t ranks, uint64_t floats) const override {
        return HipRankLink::bytes(ranks, floats);
    }

    Result<std::shared_ptr<RankLink>> link(std::span<Backend* const> ranks, uint64_t floats,
                                           std::optional<SumWay> way) override {
        if (!may_link(ranks)) return error("these devices cannot be linked");
        HipRankLink::Members all;
        for (Backend* const rank : ranks) {
            auto& one = dynamic_cast<HipBackend&>(*rank);
            all.emplace_back(one.device_.get(), one.memory_.get());
        }
        return std::shared_ptr<RankLink>(RL_TRY(HipRankLink::create(runtime_, all, floats, way)));
    }

    Result<std::unique_ptr<Executable>> record_rank(BoundPlan plan, std::vector<RankSum> sums,
                                                    std::shared_ptr<RankLink> link, size_t rank,
                                                    WeightStore& weights, CacheStore& caches,
                                                    Record mode) override {
        return HipExecutable::create_rank(std::move(plan), std::move(sums),
                                          std::dynamic_pointer_cast<HipRankLink>(link), rank,
                                          with(weights, caches, *memory_), mode);
    }

    double measure_read_bandwidth() override;
    Result<std::optional<MatrixPeak>> measure_matrix_peak() override {
        if (!matrix_peak_) matrix_peak_ = RL_TRY(hip::measure_matrix_peak(*device_, *memory_));
        return matrix_peak_;
    }

    Running::Resources with(const WeightStore& weights, const CacheStore& caches, Memory& memory) {
        return {static_cast<const HipWeights&>(weights), static_cast<const HipCaches&>(caches), *device_,
                memory};
    }

private:
    const Runtime& runtime_;
    std::optional<MatrixPeak> matrix_peak_;
};

// Latents have no kernels for all types.
bool Running::reads(const Device& device, const CacheInfo& cache) {
    if (cache.is_state() || is_plain_cache(cache.types)) return true;
    return cache.rank == 0 && find_object(device.report().target, "cache_mixed");
}

// A copy within the device's memory: each byte is read and written once.
double HipBackend::measure_read_bandwidth() {
    if (bandwidth_ > 0.0 || !device_->use()) return bandwidth_;
    const uint64_t bytes = std::min<uint64_t>(uint64_t(1) << 29, info_.memory.bytes / 4);
    const Result<Buffer> from = memory_->allocate(bytes, Use::scratch, "the bandwidth measurement");
    const Result<Buffer> to = memory_->allocate(bytes, Use::scratch, "the bandwidth measurement");
    if (!from || !to || bytes < (1u << 24)) return 0.0;
    constexpr int kCopies = 8;
    for (int pass = 0; pass < 4; ++pass) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < kCopies; ++i) {
            const Code code =
                device_->call().copy_within(to.value().data(), from.value().data(), bytes, device_->stream());
            if (!device_->checked(code, "measuring bandwidth")) return 0.0;
        }
        if (!device_->synchronize("measuring bandwidth")) return 0.0;
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        bandwidth_ = std::max(bandwidth_, 2.0 * kCopies * double(bytes) / took.count());
    }
    return bandwidth_;
}

// How this device and the others of the machine add rows, see HipRankLink.
static void add_links(const Runtime& runtime, std::span<const DeviceReport> reports,
                      const DeviceReport& report, DeviceListing& out) {
    std::string reaches;
    for (const DeviceReport& other : reports) {
        int can = 0;
        if (other.index == report.index || !runtime.call.can_access_peer ||
            runtime.call.can_access_peer(&can, report.index, other.index) != kSuccess || can == 0)
            continue;
        reaches += fmt::format("{}hip:{}", reaches.empty() ? "" : ", ", other.index);
    }
    const bool peers = !reaches.empty() && HipRankLink::writes_to_peers(report);
    out.facts.push_back({"reaches", reaches.empty() ? "none" : reaches});
    out.facts.push_back(
        {"adds rows by", std::string(sum_way_name(peers ? SumWay::peer_memory : SumWay::host_memory))});
}

static DeviceListing listing_of(const Runtime& runtime, const DeviceReport& report) {
    DeviceListing out{fmt::format("hip:{}", report.index), report.name, true, report.missing, {}};
    out.facts = {{"type", std::string(report.integrated ? "integrated" : "card")},
                 {"runtime", fmt::format("{} ({})", runtime.version_text(), runtime.library)},
                 {"target", report.arch},
                 {"PCI address", report.pci.empty() ? "unknown" : report.pci},
                 {"kernels", report.target.empty() ? "none" : report.target},
                 {"memory", report.memory_total},
                 {"memory free", report.memory_free},
                 {"memory to plan with", report.budget().text()},
                 {"multiprocessors", uint64_t(report.multiprocessors)},
                 {"wave", uint64_t(report.wave())}};
    return out;
}

}  // namespace hip

static Result<std::unique_ptr<Backend>> open_hip(const BackendOptions& options) {
    const hip::Runtime& runtime = *RL_TRY(hip::Runtime::get());
    std::string why;
    hip::DeviceReport report = RL_TRY(hip::choose_device(hip::device_reports(runtime), options.device, why));
    auto device = RL_TRY(hip::Device::open(runtime, std::move(report)));
    if (options.most_groups > 0) device->most_blocks = options.most_groups;
    auto memory = std::make_unique<hip::Memory>(
        *device, options.guarded ? hip::Memory::Mode::guarded : hip::Memory::Mode::plain);
    return std::unique_ptr<Backend>(
        std::make_unique<hip::HipBackend>(runtime, std::move(device), std::move(memory), why, options));
}

static Result<std::vector<DeviceListing>> list_hip() {
    const hip::Runtime& runtime = *RL_TRY(hip::Runtime::get());
    std::vector<DeviceListing> out;
    const std::vector<hip::DeviceReport> reports = hip::device_reports(runtime);
    for (const hip::DeviceReport& report : reports) {
        out.push_back(listing_of(runtime, report));
        if (reports.size() > 1) add_links(runtime, reports, report, out.back());
    }
    return out;
}

extern const BackendEntry hip_backend;
const BackendEntry hip_backend = {"hip", 5, open_hip, list_hip};

}  // namespace redline
