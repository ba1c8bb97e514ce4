#include "cli/commands/bench.h"

#include "cli/version.h"
#include "json/json.h"
#include "memory/budget.h"

#include <cmath>
#include <numeric>

namespace redline::cli {

static double mean(const std::vector<double>& values) {
    return values.empty() ? 0.0 : std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

// The standard deviation of a sample: divided by n - 1.
static double deviation(const std::vector<double>& values) {
    if (values.size() < 2) return 0.0;
    const double center = mean(values);
    double sum = 0.0;
    for (const double value : values) sum += (value - center) * (value - center);
    return std::sqrt(sum / double(values.size() - 1));
}

// A share that rounds to 100 % is all that the device has.
bool is_above(double share) {
    return share >= 1.005;
}

std::string share_text(double share, int digits) {
    return is_above(share) ? "above" : fmt::format("{:.{}f} %", 100.0 * share, digits);
}

Json share_json(double share) {
    return is_above(share) ? Json(nullptr) : Json(share);
}

std::string BenchRecord::test_name() const {
    std::string name;
    if (prompt > 0) name = fmt::format("pp{}", prompt);
    if (generation > 0) name += fmt::format("{}tg{}", name.empty() ? "" : "+", generation);
    return depth > 0 ? fmt::format("{} @ d{}", name, depth) : name;
}

double BenchRecord::mean_ns() const {
    return mean({samples_ns.begin(), samples_ns.end()});
}
double BenchRecord::stddev_ns() const {
    return deviation({samples_ns.begin(), samples_ns.end()});
}

std::vector<double> BenchRecord::samples_ts() const {
    std::vector<double> rates;
    for (const uint64_t ns : samples_ns)
        rates.push_back(1e9 * double(tokens()) / double(std::max<uint64_t>(ns, 1)));
    return rates;
}

double BenchRecord::mean_ts() const {
    return mean(samples_ts());
}
double BenchRecord::stddev_ts() const {
    return deviation(samples_ts());
}
double BenchRecord::gb_per_second() const {
    return mean_ns() > 0.0 ? double(bytes) / mean_ns() : 0.0;
}
double BenchRecord::bandwidth_share() const {
    return bandwidth > 0.0 ? gb_per_second() * 1e9 / bandwidth : 0.0;
}
double BenchRecord::gflop_per_second() const {
    return mean_ns() > 0.0 ? double(flops) / mean_ns() : 0.0;
}

static Json to_json(const BenchRecord& r) {
    return {{"build_commit", commit()},
            {"build_version", version()},
            {"cpu_info", r.device},
            {"gpu_info", ""},
            {"backends", r.backend},
            {"device_id", r.device_id},
            {"device", r.device},
            {"device_detail", r.device_detail},
            {"n_gpu_layers", r.layers.layers},
            {"n_cpu_moe", r.layers.experts},
            {"model_filename", r.model_path},
            {"model_type", r.model_type},
            {"model_size", r.file_bytes},
            {"model_n_params", r.parameters},
            {"file_bytes", r.file_bytes},
            {"load_seconds", r.load_seconds},
            {"kernels_checked", r.kernels_checked},
            {"kernel_check_seconds", r.kernel_check_seconds},
            {"kernels_tuned", r.kernels_tuned},
            {"quick_tune_seconds", r.quick_tune_seconds},
            {"n_batch", r.batch},
            {"n_threads", r.threads},
            {"type_k", cache_type_name(r.cache.keys)},
            {"type_v", cache_type_name(r.cache.values)},
            {"n_prompt", r.prompt},
            {"n_gen", r.generation},
            {"n_depth", r.depth},
            {"test_time", r.time},
            {"avg_ns", uint64_t(r.mean_ns())},
            {"stddev_ns", uint64_t(r.stddev_ns())},
            {"avg_ts", r.mean_ts()},
            {"stddev_ts", r.stddev_ts()},
            {"samples_ns", r.samples_ns},
            {"samples_ts", r.samples_ts()},
            {"gb_per_s", r.gb_per_second()},
            {"bandwidth_gb_per_s", r.bandwidth * 1e-9},
            {"bandwidth_share", share_json(r.bandwidth_share())},
            {"expected_ts", r.expected},
            {"of_one_row", r.of_one_row > 0.0 ? Json(r.of_one_row) : Json(nullptr)},
            {"gflop_per_s", r.gflop_per_second()},
            {"logits_hash", fmt::format("{:016x}", r.logits_hash)},
            {"peak_memory", r.peak_memory},
            {"longest_submission_ms", r.longest_submission * 1e3},
            {"kept_awake", r.kept_awake},
            {"ranks", r.ranks},
            {"tuned_kernels", r.tuned}};
}

static std::string csv_field(const Json& value) {
    if (value.is_null()) return "";
    std::string text = value.is_string() ? value.get<std::string>() : to_text(value, false);
    for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 2))
        text.insert(at, 1, '"');
    return "\"" + text + "\"";
}

static std::string csv_line(const std::vector<std::string>& fields) {
    return fmt::format("{}\n", fmt::join(fields, ","));
}

static std::string rows_line(const BenchRecord& r) {
    return fmt::format("| {:>4} | {:>9.3f} | {:>10.2f} | {:>9.1f} | {:>7.1f} | {:>7} | {:>8.1f} |\n",
                       r.prompt, r.mean_ns() * 1e-6, r.of_one_row, r.mean_ts(), r.gb_per_second(),
                       share_text(r.bandwidth_share()), r.gflop_per_second());
}

static std::string md_line(const BenchRecord& r) {
    if (r.of_one_row > 0.0) return rows_line(r);
    const std::string rate = fmt::format("{:.2f} ± {:.2f}", r.mean_ts(), r.stddev_ts());
    return fmt::format(
        "| {:<30} | {:>12} | {:<8} | {:>7} | {:>5} | {:>16} | {:>20} | {:>7.2f} | {:>7} | "
        "{:>8.1f} |\n",
        r.model_type, format_bytes(r.file_bytes), r.device_id + (r.has_split ? "+cpu" : ""), r.threads,
        cache_types_name(r.cache), r.test_name(), rate, r.gb_per_second(), share_text(r.bandwidth_share()),
        r.gflop_per_second());
}

static std::string rows_head(const BenchRecord& r) {
    return fmt::format("{} on {} ({}), {} tokens in the cache\n\n", r.model_type,
                       r.device_id + (r.has_split ? "+cpu" : ""), r.device, r.depth) +
           fmt::format("| {:>4} | {:>9} | {:>10} | {:>9} | {:>7} | {:>7} | {:>8} |\n", "rows", "ms",
                       "of one row", "t/s", "GB/s", "of peak", "GFLOP/s") +
           fmt::format("| {:->3}: | {:->8}: | {:->9}: | {:->8}: | {:->6}: | {:->6}: | {:->7}: |\n", "", "",
                       "", "", "", "", "");
}

std::string report_head(BenchFormat format, const BenchRecord& first) {
    switch (format) {
        case BenchFormat::json:
            return "[";
        case BenchFormat::jsonl:
            return "";
        case BenchFormat::csv: {
            std::vector<std::string> names;
            const Json example = to_json({});  // items() borrows it
            for (const auto& [key, value] : example.items()) names.push_back(key);
            return csv_line(names);
        }
        case BenchFormat::md:
            break;
    }
    if (first.of_one_row > 0.0) return rows_head(first);
    return fmt::format(
               "| {:<30} | {:>12} | {:<8} | {:>7} | {:>5} | {:>16} | {:>20} | {:>7} | {:>7} | {:>8} |\n",
               "model", "file", "device", "threads", "cache", "test", "t/s", "GB/s", "of peak", "GFLOP/s") +
           fmt::format(
               "| {:-<30} | {:->11}: | {:-<8} | {:->6}: | {:->5} | {:->15}: | {:->19}: | {:->6}: | {:->6}: | "
               "{:->7}: |\n",
               "", "", "", "", "", "", "", "", "", "");
}

std::string report_record(BenchFormat format, const BenchRecord& record, bool first) {
    switch (format) {
        case BenchFormat::json:
            return (first ? "\n" : ",\n") + to_text(to_json(record));
        case BenchFormat::jsonl:
            return to_text(to_json(record), false) + "\n";
        case BenchFormat::csv: {
            std::vector<std::string> fields;
            const Json fields_of_record = to_json(record);
            for (const auto& [key, value] : fields_of_record.items()) fields.push_back(csv_field(value));
            return csv_line(fields);
        }
        case BenchFormat::md:
            break;
    }
    return md_line(record);
}

std::string report_tail(BenchFormat format) {
    return format == BenchFormat::json ? "\n]\n" : "";
}

}  // namespace redline::cli
