// The CPU as a backend: opens a thread team, repacks weights as it reads them, and hands out kernels.
#include "backends/cpu/kernels/linear.h"
#include "backends/cpu/runtime/executable.h"
#include "memory/budget.h"
#include "plan/backend_parts.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>

namespace redline {

namespace cpu {

namespace {

constexpr uint64_t kReadChunk = uint64_t(2) << 20;  // bytes read and repacked at a time, per thread

// A piece of loading: some panels of one expert of one weight, or a whole vector.
struct LoadItem {
    uint32_t weight;
    uint64_t expert;
    uint64_t first_panel;
    uint64_t panels;  // 0: a vector
};

PlacedWeight shape_of(const Tensor& tensor) {
    PlacedWeight placed;
    placed.matrix = {tensor.format, tensor.shape.rows, tensor.shape.cols, nullptr};
    placed.expert_bytes = aligned(placed.matrix.bytes());
    return placed;
}

uint64_t placed_bytes(const WeightInfo& info) {
    if (info.role == WeightRole::vector) return aligned(info.tensor.shape.elements() * 4);
    return shape_of(info.tensor).expert_bytes * info.tensor.shape.count;
}

std::vector<LoadItem> load_items(std::span<const WeightInfo> weights) {
    std::vector<LoadItem> items;
    for (uint32_t i = 0; i < weights.size(); ++i) {
        const Tensor& tensor = weights[i].tensor;
        if (weights[i].role == WeightRole::vector) {
            items.push_back({i, 0, 0, 0});
            continue;
        }
        const PackedMatrix m = shape_of(tensor).matrix;
        const uint64_t step = std::max<uint64_t>(1, kReadChunk / std::max<uint64_t>(1, m.panel_bytes()));
        for (uint64_t e = 0; e < tensor.shape.count; ++e)
            for (uint64_t p = 0; p < m.panels(); p += step)
                items.push_back({i, e, p, std::min(step, m.panels() - p)});
    }
    return items;
}

Status load_vector(const Tensor& tensor, uint32_t index, ByteSource& source, std::vector<std::byte>& buffer,
                   const float* placed) {
    buffer.resize(tensor.bytes());
    RL_TRY(source.read(index, 0, buffer));
    tensor.format->decode(buffer.data(), const_cast<float*>(placed), tensor.shape.elements());
    return {};
}

Status load_panels(const Tensor& tensor, const LoadItem& item, ByteSource& source,
                   std::vector<std::byte>& buffer, const PlacedWeight& placed) {
    const uint64_t row_bytes = tensor.row_bytes();
    const uint64_t first = item.first_panel * kPanelRows;
    const uint64_t rows = std::min(item.panels * kPanelRows, tensor.shape.rows - first);
    buffer.resize(rows * row_bytes);
    RL_TRY(source.read(item.weight, (item.expert * tensor.shape.rows + first) * row_bytes, buffer));
    const PackedMatrix m = placed.expert(item.expert);
    for (uint64_t p = 0; p < item.panels; ++p) {
        const uint64_t in_panel = std::min<uint64_t>(kPanelRows, rows - p * kPanelRows);
        pack_panel(*tensor.format, buffer.data() + p * kPanelRows * row_bytes, in_panel, tensor.shape.cols,
                   const_cast<std::byte*>(m.data) + (item.first_panel + p) * m.panel_bytes());
    }
    return {};
}

}  // namespace

class CpuBackend : public Backend, public SharesProcessors, public AlikeRows {
public:
    CpuBackend(uint32_t threads, Isa isa, const BackendOptions& options)
        : team_(threads), isa_(isa), guarded_(options.guarded) {
        info_.name = cpu_model_name();
        info_.detail = fmt::format("{}, {} thread{}", isa_name(isa), threads, threads == 1 ? "" : "s");
        info_.unified = true;
        info_.threads = threads;
        info_.memory = options.memory > 0 ? asked_budget(options.memory) : host_budget(host_memory());
    }

    const DeviceInfo& device() const override { return info_; }

    uint32_t alike_rows(const BoundPlan& bound) const override {
        const bool all = std::all_of(bound.kernels.begin(), bound.kernels.end(), [&](const auto& kernel) {
            return static_cast<const CpuKernel&>(*kernel).alike_rows(bound.plan);
        });
        return all ? kAlikeRows : 1;
    }

    bool has_kernels(const Format& format) const override { return !panel_fields(format.gguf_id).empty(); }

    Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo> weights, ByteSource& source,
                                                     const Progress& progress) override {
        uint64_t total = 0;
        for (const WeightInfo& info : weights) total += placed_bytes(info);
        Region region = RL_TRY(Region::allocate(total, "weights", guarded_));
        std::vector<PlacedWeight> placed;
        const std::byte* at = region.data();
        for (const WeightInfo& info : weights) {
            placed.push_back(shape_of(info.tensor));
            if (info.role == WeightRole::vector)
                placed.back().vector = reinterpret_cast<const float*>(at);
            else
                placed.back().matrix.data = at;
            at += placed_bytes(info);
        }
        RL_TRY(read_all(weights, source, progress, placed));
        return std::unique_ptr<WeightStore>(
            std::make_unique<CpuWeights>(std::move(region), std::move(placed)));
    }

    Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo> caches) override {
        return CpuCaches::create(caches, guarded_);
    }

    // Memory of the system is taken when it is first written: to allocate it costs nothing.
    Result<MemoryNeed> measure(std::span<const WeightInfo> weights, std::span<const CacheInfo> caches,
                               std::vector<PlanGroup> groups) override {
        const uint64_t before = Region::allocated_here();
        uint64_t weight_bytes = 0;
        for (const WeightInfo& info : weights) weight_bytes += placed_bytes(info);
        const Region region = RL_TRY(Region::allocate(weight_bytes, "weights"));
        const std::unique_ptr<CacheStore> store = RL_TRY(CpuCaches::create(caches, false));
        const CpuWeights none({}, {});
        std::vector<std::vector<std::unique_ptr<Executable>>> executables;
        for (PlanGroup& group : groups)
            executables.push_back(RL_TRY(CpuExecutable::create_group(
                std::move(group), none, static_cast<const CpuCaches&>(*store), team_, isa_, false)));
        MemoryNeed need;
        need.weights = region.size();
        need.cache = store->bytes();
        need.scratch = Region::allocated_here() - before - need.weights - need.cache;
        need.staging = kReadChunk * team_.size();
        return need;
    }

    uint64_t allocated() const override { return Region::allocated(); }

    std::unique_ptr<Kernel> make_kernel(const Op& op, const Plan& plan) override {
        for (const auto make :
             {make_product_kernel, make_attention_kernel, make_expert_kernel, make_vector_kernel,
              make_recurrent_kernel, make_stream_kernel, make_block_kernel, make_entry_kernel})
            if (std::unique_ptr<Kernel> kernel = make(op, plan, isa_)) return kernel;
        return nullptr;
    }

    // Replay or direct is the same here: the steps are walked.
    Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup plans, WeightStore& weights,
                                                                  CacheStore& caches, Record) override {
        return CpuExecutable::create_group(std::move(plans), static_cast<const CpuWeights&>(weights),
                                           static_cast<const CpuCaches&>(caches), team_, isa_, guarded_);
    }

    double measure_read_bandwidth() override;

    uint32_t fewest_threads() const override { return team_.fewest() < team_.size() ? team_.fewest() : 0; }

private:
    // Every thread reads and repacks the next piece until all are done; the first error ends it.
    Status read_all(std::span<const WeightInfo> weights, ByteSource& source, const Progress& progress,
                    const std::vector<PlacedWeight>& placed) {
        const std::vector<LoadItem> items = load_items(weights);
        uint64_t total = 0;
        for (const WeightInfo& info : weights) total += info.tensor.bytes();
        std::atomic<size_t> next{0};
        std::atomic<uint64_t> done{0};
        std::mutex first_error;
        Status status;
        RL_TRY(team_.run([&](const Worker& worker) {
            std::vector<std::byte> buffer;
            for (size_t i = next.fetch_add(1); i < items.size(); i = next.fetch_add(1)) {
                const LoadItem& item = items[i];
                const Tensor& tensor = weights[item.weight].tensor;
                Status one =
                    item.panels == 0
                        ? load_vector(tensor, item.weight, source, buffer, placed[item.weight].vector)
                        : load_panels(tensor, item, source, buffer, placed[item.weight]);
                if (!one) {
                    const std::lock_guard lock(first_error);
                    if (status) status = error("tensor {}: {}", tensor.name, one.error().message);
                    next.store(items.size());
                    return;
                }
                done.fetch_add(buffer.size());
                if (worker.index == 0 && progress) progress(done.load(), total);
            }
        }));
        if (status && progress) progress(total, total);
        return status;
    }

    Team team_;
    Isa isa_;
    bool guarded_;
    DeviceInfo info_;
    double bandwidth_ = 0.0;
};

double CpuBackend::measure_read_bandwidth() {
    if (bandwidth_ > 0.0) return bandwidth_;
    const uint64_t bytes = std::min<uint64_t>(uint64_t(1) << 30, host_budget(host_memory()).bytes / 2);
    Result<Region> region = Region::allocate(bytes, "the bandwidth measurement");
    if (!region || bytes < (1u << 24)) return 0.0;
    const uint64_t words = bytes / sizeof(uint64_t);
    auto* data = reinterpret_cast<uint64_t*>(region.value().data());
    const Status filled = team_.run([&](const Worker& worker) {
        const auto mine = worker.share(words);
        for (uint64_t i = mine.begin; i < mine.end; ++i) data[i] = i;
    });
    std::atomic<uint64_t> sink{0};
    for (int pass = 0; filled && pass < 6; ++pass) {
        const auto begin = std::chrono::steady_clock::now();
        const Status read = team_.run([&](const Worker& worker) {
            const auto mine = worker.share(words);
            sink.fetch_add(read_words(data + mine.begin, mine.end - mine.begin));
        });
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (read) bandwidth_ = std::max(bandwidth_, double(bytes) / took.count());
    }
    return bandwidth_;
}

}  // namespace cpu

// A build for the CPU of one machine that runs on another.
static Error no_kernels() {
    return error(
        "this build has no kernels for this CPU, whose level is {}: it was made for {}; "
        "tools/build release -DRL_CPU_LEVELS=all makes one for all CPUs",
        cpu::isa_name(cpu::best_isa()), RL_CPU_LEVELS);
}

static Result<std::unique_ptr<Backend>> open_cpu(const BackendOptions& options) {
    cpu::Isa isa = cpu::best_isa();
    if (!cpu::has_isa(isa)) return no_kernels();
    if (!options.level.empty()) {
        const cpu::Isa* wanted = nullptr;
        std::string known;
        for (const cpu::Isa& level : cpu::kIsaLevels) {
            if (options.level == cpu::isa_name(level)) wanted = &level;
            known += fmt::format("{}{}", known.empty() ? "" : ", ", cpu::isa_name(level));
        }
        if (!wanted) return error("no CPU level is called {}; these are: {}", options.level, known);
        if (!cpu::has_isa(*wanted))
            return error(
                "this CPU does not have level {}, or this build, which has {}, does not; the best is {}",
                options.level, RL_CPU_LEVELS, cpu::isa_name(isa));
        isa = *wanted;
    }
    if (options.threads > cpu::Team::kMostThreads)
        return error("{} threads were asked for; 1 to {} can be had", options.threads,
                     cpu::Team::kMostThreads);
    // One core less costs few cores much, and a team of many waits for the one that the driver disturbs.
    constexpr uint32_t kMany = 8;
    const uint32_t cores = cpu::default_threads();
    const uint32_t chosen = options.beside_gpu && cores >= kMany ? cores - 1 : cores;
    const uint32_t threads = options.threads > 0 ? options.threads : chosen;
    try {
        return std::unique_ptr<Backend>(std::make_unique<cpu::CpuBackend>(threads, isa, options));
    } catch (const std::exception& failure) {  // the system refused a thread
        return error("cannot start {} threads: {}", threads, failure.what());
    }
}

static Result<std::vector<DeviceListing>> list_cpu() {
    if (!cpu::has_isa(cpu::best_isa())) return no_kernels();
    std::string levels;
    for (const cpu::Isa& level : cpu::kIsaLevels)
        if (cpu::has_isa(level))
            levels += fmt::format("{}{}", levels.empty() ? "" : ", ", cpu::isa_name(level));
    DeviceListing listing{"cpu", cpu::cpu_model_name(), true, "", {}};
    listing.facts = {{"levels", levels},
                     {"threads", uint64_t(cpu::default_threads())},
                     {"memory", host_memory().total},
                     {"memory to plan with", host_budget(host_memory()).text()}};
    return std::vector<DeviceListing>{listing};
}

extern const BackendEntry cpu_backend;
const BackendEntry cpu_backend = {"cpu", 0, open_cpu, list_cpu};

}  // namespace redline
