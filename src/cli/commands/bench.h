// redline bench: what is measured, and the record of one measurement. The tests are those of llama-bench, and
// so are the names in the reports where the meaning is the same.
#pragma once

#include "cli/options/model_options.h"
#include "cli/options/speculation_options.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"

namespace redline::cli {

enum class BenchFormat : uint8_t { md, json, csv, jsonl };

struct BenchOptions {
    std::vector<std::string> models;
    std::vector<int64_t> prompts = {512};
    std::vector<int64_t> generations = {128};
    std::vector<std::pair<int64_t, int64_t>> pairs;  // prompt, then generation, in one test
    std::vector<int64_t> depths = {0};
    std::vector<int64_t> threads = {0};
    std::vector<int64_t> batches = {0};  // 0: see batch_of()
    std::vector<CacheTypes> caches = {CacheTypes()};
    int32_t repetitions = 5;
    bool warmup = true;
    bool devices = false;  // every one that can be used
    bool ops = false;
    bool by_rows = false;                 // a table of steps by their rows
    uint64_t soak = 0;                    // steps
    bool sums = false;                    // over several devices
    uint32_t repeats = 1000;              // of each of these
    std::vector<int64_t> sum_bytes = {};  // of one of these; empty: see bench_sums()
    std::string spec_file;                // a text to go on from, with guesses and without
    double scripted = -1.0;  // the probability with which guesses are made right or wrong; below 0: they stay
    SpeculationOptions speculation;
    BenchFormat format = BenchFormat::md;
    ModelOptions common;  // device, level, fusing

    // Rows of the steps whose operations are timed.
    std::vector<uint64_t> step_rows() const;
};

// One line of the report: a model on a device with settings, and one test.
struct BenchRecord {
    std::string model_path;
    std::string model_type;
    uint64_t file_bytes = 0;
    uint64_t parameters = 0;
    double load_seconds = 0.0;
    uint64_t kernels_checked = 0;  // before their first use
    double kernel_check_seconds = 0.0;
    uint64_t kernels_tuned = 0;  // likewise
    double quick_tune_seconds = 0.0;
    std::string backend;
    std::string device_id;  // as --device takes it
    std::string device;
    std::string device_detail;
    SplitCounts layers;      // on the device
    bool has_split = false;  // the CPU has the others
    int64_t threads = 0;     // as asked for; 0: one per physical core
    int64_t batch = 0;
    CacheTypes cache = {};
    int64_t prompt = 0;      // tokens read in chunks of the batch
    int64_t generation = 0;  // tokens read one by one
    int64_t depth = 0;       // tokens in the cache before that
    std::string time;        // when it began, UTC
    std::vector<uint64_t> samples_ns;
    uint64_t bytes = 0;  // read from memory in one repetition
    uint64_t flops = 0;
    uint64_t logits_hash = 0;
    double bandwidth = 0.0;  // bytes per second that the device can read
    double expected = 0.0;   // of a generation: tokens per second by the pace of its kernels; 0: not known
    uint64_t peak_memory = 0;
    std::vector<std::string> tuned;   // variants of kernels that are not their defaults
    bool kept_awake = false;          // the device, while it waited for the CPU
    double longest_submission = 0.0;  // seconds that the device was kept busy at once; 0: unknown
    Json ranks = Json::array();       // of a job: see ranks_json()
    double of_one_row = 0.0;          // with --rows: its time as a multiple of that of one row

    int64_t tokens() const { return prompt + generation; }
    std::string test_name() const;  // "pp512 @ d4096"
    double mean_ns() const;
    double stddev_ns() const;
    std::vector<double> samples_ts() const;  // tokens per second
    double mean_ts() const;
    double stddev_ts() const;
    double gb_per_second() const;  // at the mean time
    double bandwidth_share() const;
    double gflop_per_second() const;
};

// "87 %" of a rate that was measured. Above 100 % the measured one does not bound it: "above" stands there.
bool is_above(double share);
std::string share_text(double share, int digits = 0);
Json share_json(double share);
constexpr const char* kAboveNote =
    "\"above\": faster than the rate that was measured for the device, as where caches hold what is read, so "
    "that there is no share of it to give";

// The rows of steps that --rows measures.
inline const std::vector<int64_t> kStepRows = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32, 48, 64, 96, 128};

std::string report_head(BenchFormat format, const BenchRecord& first);
// `first`: no record was reported before.
std::string report_record(BenchFormat format, const BenchRecord& record, bool first);
std::string report_tail(BenchFormat format);

// Times every distinct op of the model's plan, for steps of one row and of each prompt.
Result<int> bench_ops(const LoadedModel& loaded, const BenchOptions& options);
// Times the op cases, which need no model.
Result<int> bench_op_cases(const BenchOptions& options, Interrupts& interrupts);
// Sums over devices have neither a model nor its options.
Status check_sums(const Options& options, const BenchOptions& bench);
// Times how long several devices take to add their rows.
Result<int> bench_sums(const BenchOptions& options, Interrupts& interrupts);
// Compares replayed steps with such as are launched one by one.
Result<int> bench_soak(const LoadedModel& loaded, const BenchOptions& options, Interrupts& interrupts);

// Times how the model goes on from a text, with guesses and without.
Result<int> bench_spec(const ModelOptions& model, const BenchOptions& options, Interrupts& interrupts);

// Ids as good as random, the same at every call; the first is BOS where the model wants it.
std::vector<Token> random_tokens(const Model& model, int64_t count);
// Their hash; an error when they are not to be trusted.
Result<uint64_t> hash_logits(std::span<const float> logits, const DeviceInfo& device);

}  // namespace redline::cli
