// redline bench --sums: how long devices take to add their rows.
#include "cli/commands/bench.h"

#include "cli/terminal/terminal.h"
#include "host/device_list.h"
#include "json/json.h"
#include "measure/sums.h"
#include "memory/budget.h"

namespace redline::cli {

namespace {

// From a token of a small model to a long prompt of a large one; some are no whole rows.
constexpr uint64_t kSizes[] = {2048,   2049,   4096,     8192,     16384,          65536,
                               262144, 262147, 1u << 20, 1u << 22, (1u << 22) + 5, 1u << 24};
constexpr uint64_t kSmall = 16384;  // floats up to which a sum is made as often as was asked

uint32_t repeats_of(uint64_t floats, uint32_t wanted) {
    constexpr uint64_t kLeast = 16;
    if (floats <= kSmall) return wanted;
    return uint32_t(std::max(std::min<uint64_t>(kLeast, wanted), wanted * kSmall / floats));
}

// "8 KiB", "8 KiB + 4"
std::string size_text(uint64_t floats) {
    const uint64_t odd = floats % 1024;
    return format_bytes((floats - odd) * 4) + (odd > 0 ? fmt::format(" + {}", odd * 4) : "");
}

std::string time_text(const SumTime& time) {
    const double us = time.seconds * 1e6;
    return fmt::format("{:.{}f}{}", us, us < 100.0 ? 1 : 0, time.wrong > 0 ? " (wrong)" : "");
}

Json time_json(const SumMeter::Way& way, uint64_t floats, const SumTime& time) {
    return {
        {"way", way.name},
        {"seconds", time.seconds},
        {"bytes_per_second", time.seconds > 0.0 ? Json(double(floats) * 4 / time.seconds) : Json(nullptr)},
        {"compared", time.compared},
        {"wrong_elements", time.wrong}};
}

class SumBench {
public:
    SumBench(const BenchOptions& options, Interrupts& interrupts)
        : options_(options), interrupts_(interrupts) {}

    Result<int> run() {
        LoadedModel devices;
        RL_TRY(open(devices));
        SumMeter meter = SumMeter::create(backends_);
        head(devices, meter);
        uint64_t wrong = 0, compared = 0;
        std::vector<uint64_t> sizes(std::begin(kSizes), std::end(kSizes));
        if (!options_.sum_bytes.empty()) sizes.clear();
        for (const int64_t bytes : options_.sum_bytes) sizes.push_back(uint64_t(bytes) / 4);
        for (const uint64_t floats : sizes) {
            Json times = Json::array();
            std::string row = fmt::format("| {} |", size_text(floats));
            const uint32_t repeats = repeats_of(floats, options_.repeats);
            for (size_t way = 0; way < meter.ways().size(); ++way) {
                if (!meter.ways()[way].problem.empty()) continue;
                const SumTime time = RL_TRY(meter.time(way, floats, repeats));
                if (interrupts_.raised()) return interrupts_.code();
                times.push_back(time_json(meter.ways()[way], floats, time));
                row += fmt::format(" {} |", time_text(time));
                wrong += time.wrong;
                compared += time.compared;
            }
            if (options_.format == BenchFormat::md && !out_.write(row + "\n")) return kDone;
            report_["sums"].push_back({{"floats", floats}, {"repeats", repeats}, {"ways", times}});
        }
        return end(wrong, compared);
    }

private:
    Status open(LoadedModel& devices) {
        HostOptions options = options_.common;
        if (options.split_mode == SplitMode::list) options.split_mode = SplitMode::layer;
        RL_TRY(choose_devices(devices, options));
        if (!devices.is_shared())
            return error(
                "--sums is about several devices, and there is one, {}: --device hip:0,hip:1 names "
                "them",
                devices.device.name());
        RL_TRY(open_devices(devices, options));
        for (const OpenDevice* one : std::as_const(devices).devices())
            backends_.push_back(one->backend.get());
        return {};
    }

    void head(const LoadedModel& devices, const SumMeter& meter) {
        const DeviceInfo& info = devices.device.backend->device();
        report_ = {{"device", devices.labels()},
                   {"device_name", info.name},
                   {"device_detail", info.detail},
                   {"sums", Json::array()},
                   {"absent", Json::array()}};
        std::string names = "| of f32 |", lines = "|---|";
        for (const SumMeter::Way& way : meter.ways()) {
            if (!way.problem.empty()) {
                note(fmt::format("{}: {}", way.name, way.problem));
                report_["absent"].push_back({{"way", way.name}, {"why", way.problem}});
                continue;
            }
            names += fmt::format(" {} |", way.name);
            lines += "---:|";
        }
        if (options_.format == BenchFormat::md)
            out_.write(fmt::format("microseconds of a sum over {} ({}, {}), of many in a row\n\n{}\n{}\n",
                                   devices.labels(), info.name, info.detail, names, lines));
    }

    Result<int> end(uint64_t wrong, uint64_t compared) {
        report_["compared"] = compared;
        report_["wrong_elements"] = wrong;
        if (options_.format != BenchFormat::md)
            out_.write(to_text(report_, options_.format == BenchFormat::json) + "\n");
        else if (wrong == 0)
            out_.write(fmt::format("\n{} sums were compared with the CPU's: the same bits\n", compared));
        if (wrong > 0)
            return error("{} elements of {} sums differ from the CPU's: these devices do not add reliably",
                         wrong, compared);
        return out_.finish();
    }

    const BenchOptions& options_;
    Interrupts& interrupts_;
    std::vector<Backend*> backends_;
    Json report_;
    Output out_;
};

}  // namespace

Status check_sums(const Options& options, const BenchOptions& bench) {
    if (!bench.sums) {
        if (options.given("--repeats")) return error("--repeats is for --sums: tests are repeated by -r");
        if (options.given("--sum-sizes")) return error("--sum-sizes is for --sums");
        return {};
    }
    for (const std::string_view name : {"--model", "--n-prompt", "--n-gen", "--prompt-gen", "--n-depth",
                                        "--batch-size", "--repetitions", "--no-warmup", "--devices", "--ops",
                                        "--rows", "--soak", "--spec", "--cache-type", "--tensor-split"})
        if (options.given(name)) return error("{} means nothing with --sums: leave it out", name);
    if (!bench.models.empty()) return error("--sums takes no model: leave {} out", bench.models[0]);
    if (bench.format == BenchFormat::csv)
        return error("-o csv is for tables of tests: with --sums use md, json or jsonl");
    if (bench.threads.size() > 1) return error("--sums takes one number of threads");
    for (const int64_t bytes : bench.sum_bytes)
        if (bytes % 4 != 0) return error("--sum-sizes: {} bytes are no whole floats", bytes);
    return {};
}

Result<int> bench_sums(const BenchOptions& options, Interrupts& interrupts) {
    return SumBench(options, interrupts).run();
}

}  // namespace redline::cli
