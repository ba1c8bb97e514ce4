#include "cli/commands/bench.h"
#include "cli/job.h"

#include "base/hash.h"
#include "cli/demo_model.h"
#include "cli/terminal/terminal.h"
#include "cli/user_models.h"
#include "engine/generate.h"
#include "engine/output_check.h"
#include "host/expected_speed.h"
#include "host/kernel_check.h"
#include "host/load_model.h"
#include "host/load_plan.h"
#include "host/model_facts.h"
#include "host/quick_tune.h"
#include "host/tuned.h"
#include "memory/budget.h"

#include <ctime>
#include <fstream>
#include <set>

namespace redline::cli {

std::vector<Token> random_tokens(const Model& model, int64_t count) {
    std::vector<Token> tokens(static_cast<size_t>(count));
    uint64_t state = 42;
    for (Token& token : tokens) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        token = Token((state >> 33) % model.usable_vocab());
    }
    if (!tokens.empty() && model.tokenizer().adds_bos()) tokens[0] = model.tokenizer().bos();
    return tokens;
}

Result<uint64_t> hash_logits(std::span<const float> logits, const DeviceInfo& device) {
    RL_TRY(check_logits(logits, device));
    Hash64 hash;
    hash.add(std::as_bytes(logits));
    return hash.value();
}

namespace {

// ---- options ----

Status parse_list(const std::string& text, int64_t low, int64_t high, std::vector<int64_t>& out) {
    out.clear();
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        out.push_back(RL_TRY(parse_integer(text.substr(at, end - at), low, high)));
        at = end + 1;
    }
    return {};
}

void add_list(Options& options, std::string_view names, std::string help, int64_t high,
              std::vector<int64_t>& target) {
    help += fmt::format(" (default: {})", fmt::join(target, ","));
    options.each(names, "N[,N...]", std::move(help),
                 [high, &target](const std::string& text) { return parse_list(text, 0, high, target); });
}

Options declare(BenchOptions& bench) {
    Options options("bench", "measure the speed of a model", {"bench [MODEL...] [options]"});
    options.group("tests");
    const auto take_models = [&bench](const std::string& text) -> Status {
        const std::vector<std::string> names = split_list(text);
        if (names.empty()) return error("was given an empty name");
        bench.models.insert(bench.models.end(), names.begin(), names.end());
        return {};
    };
    options.words(take_models);
    options.each("-m --model", "FILE[,FILE...]",
                 "models in GGUF form; without: the demo model that comes with redline", take_models);
    options.common("models (without: the demo model)");
    add_list(options, "-p --n-prompt", "prompts of so many tokens, read in chunks; 0: none", kMostContext,
             bench.prompts);
    options.common("prompts of so many tokens; 0: none");
    add_list(options, "-n --n-gen", "texts of so many tokens, read one by one; 0: none", kMostContext,
             bench.generations);
    options.common("texts of so many tokens; 0: none");
    options.each("-pg --prompt-gen", "P,N", "a prompt and then a text in one test; may be given again",
                 [&bench](const std::string& text) -> Status {
                     std::vector<int64_t> both;
                     if (!parse_list(text, 1, kMostContext, both) || both.size() != 2)
                         return error("takes two numbers, for example 512,128, not \"{}\"", text);
                     bench.pairs.emplace_back(both[0], both[1]);
                     return {};
                 });
    options.common("a prompt and then a text in one test");
    add_list(options, "-d --n-depth", "tokens in the cache before the test", kMostContext, bench.depths);
    options.common("tokens in the cache before the test");
    add_list(options, "-t --threads", "threads; 0: one per physical core", kMostThreads, bench.threads);
    options.common("threads (usually one per core)");
    add_list(options, "-b --batch-size", "tokens read at a time; 0: 512, on cards of 16 GB or more 1024",
             kMostBatch, bench.batches);
    options.common("tokens read at a time");
    add_cache_lists(options, bench.caches);
    options.number("-r --repetitions", "times that each test is run", bench.repetitions, 1, 100000);
    options.common("times that each test is run");
    options.flag("--no-warmup",
                 "do not warm up: else each test is run once before, with prompts on a GPU twice",
                 bench.warmup, false);
    options.flag("--devices", "measure every device of this machine that can run the model, in one table",
                 bench.devices);
    options.common("measure every device of this machine");
    options.flag("--ops",
                 "time operations one by one instead: the model's, in steps of one token and of each -p, or "
                 "without -m a table of cases",
                 bench.ops);
    options.common("time operations one by one");
    options.flag("--rows",
                 "steps of 1 to 128 rows, each as a multiple of one row's time and with its share of the "
                 "bandwidth: what several users, guesses and short prompts cost",
                 [&bench] {
                     bench.by_rows = true;
                     bench.prompts = kStepRows;
                     bench.generations = {0};
                 });
    options.number("--soak",
                   "read so many tokens one by one, once with replayed steps and once with steps that are "
                   "launched anew, and compare the logits of each; 0: do not",
                   bench.soak, 0, kMostContext);
    options.flag("--sums",
                 "how long the devices that -dev names, or all GPUs, take to add their rows, as with -sm "
                 "tensor: 8 KiB to 64 MiB on each way, with all results compared; without a model",
                 bench.sums);
    options.common("how long several devices take to add rows");
    options.number("--repeats", "with --sums: so many sums of up to 64 KiB, and fewer of larger ones",
                   bench.repeats, 1, 10000000);
    options.each(
        "--sum-sizes", "N[,N...]", "with --sums: bytes of a sum (default: 8 KiB to 64 MiB)",
        [&bench](const std::string& text) { return parse_list(text, 4, int64_t(1) << 30, bench.sum_bytes); });
    options.name("--spec", "FILE",
                 "go on from the text of this file, once token by token and once with the guesses of "
                 "--spec-type, and tell how many of them were accepted",
                 bench.spec_file);
    options.each("--spec-acceptance", "P",
                 "with --spec: methods guess, but then each token of a guess is made right with this "
                 "probability, or wrong: what a head would be worth, where weights are random",
                 [&bench](const std::string& text) -> Status {
                     bench.scripted = RL_TRY(parse_real(text));
                     if (bench.scripted >= 0.0 && bench.scripted <= 1.0) return {};
                     return error("takes a probability from 0 to 1, not {}", text);
                 });
    options.choice("-o --output", {"md", "json", "csv", "jsonl"}, "form of the report (default: md)",
                   [&bench](size_t index) { bench.format = BenchFormat(index); });
    options.common("form of the report");
    options.flag("--json", "the same as -o json", [&bench] { bench.format = BenchFormat::json; });
    add_speculation_options(options, bench.speculation);
    add_device_options(options, bench.common);
    add_voice_options(options);
    options.example("redline bench -m model.gguf");
    options.example("redline bench -m a.gguf,b.gguf -p 512,2048 -d 0,4096 -o json > result.json");
    options.example("redline bench -m model.gguf --devices");
    options.example("redline bench -m model.gguf --ops");
    options.example("redline bench --ops --device vulkan");
    options.example("redline bench -m model.gguf --soak 5000");
    options.example("redline bench -m model.gguf --spec text.txt -n 256 --spec-type ngram-simple");
    options.remark(
        "A figure is given only when the logits at the end are finite, differ from each other, and are the "
        "same in all repetitions. GB/s counts the weights and the cache that a test has to read; the peak is "
        "the read bandwidth measured with the same threads. Tokens are random.");
    return options;
}

// ---- one test ----

struct Test {
    int64_t prompt = 0;
    int64_t generation = 0;
};

std::vector<Test> list_tests(const BenchOptions& bench) {
    std::vector<Test> tests;
    for (const int64_t prompt : bench.prompts)
        if (prompt > 0) tests.push_back({prompt, 0});
    for (const int64_t generation : bench.generations)
        if (generation > 0) tests.push_back({0, generation});
    for (const auto& [prompt, generation] : bench.pairs) tests.push_back({prompt, generation});
    return tests;
}

// Adds the bytes and the work of one repetition.
void add_costs(const Model& model, const CacheSizing& sizing, BenchRecord& record) {
    const Result<Plan> plan = model.plan(uint32_t(record.batch), 1, sizing);
    if (!plan) return;
    int64_t position = record.depth;
    const auto add = [&](int64_t rows) {
        position += rows;
        const Cost one = step_cost(plan.value(), {uint64_t(rows), 1, uint64_t(position)});
        record.bytes += one.weight_bytes + one.cache_bytes;
        record.flops += one.flops;
    };
    for (int64_t left = record.prompt; left > 0; left -= record.batch) add(std::min(left, record.batch));
    for (int64_t i = 0; i < record.generation; ++i) add(1);
}

std::string now_utc() {
    const std::time_t now = std::time(nullptr);
    std::tm parts = {};
    gmtime_r(&now, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                       parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

constexpr uint32_t kBest = 40;  // logits that sampling looks at by default

// Runs the test of `record` and fills in its samples; an error when the output is not to be trusted.
Status run_test(Session& session, const BenchOptions& bench, BenchRecord& record,
                const std::atomic<bool>* cancel) {
    const std::vector<Token> all = random_tokens(session.model(), record.depth + record.tokens());
    const auto tokens = std::span(all).subspan(size_t(record.depth));
    bool hashed = false;
    // A GPU's second run of a prompt may be recorded anew, by what the first one took.
    const int warmups = !bench.warmup ? 0 : record.prompt > 0 && session.device().threads == 0 ? 2 : 1;
    for (int i = -warmups; i < bench.repetitions; ++i) {
        const uint64_t held = session.rewind(uint64_t(record.depth));
        const auto before = std::span(all).subspan(held, size_t(record.depth) - held);
        if (!before.empty()) RL_TRY(session.feed(before, cancel));
        const auto start = std::chrono::steady_clock::now();
        if (record.prompt > 0) RL_TRY(session.feed(tokens.first(size_t(record.prompt)), cancel));
        // run takes the best logits only, too; of the last token all are wanted, since they are checked.
        for (int64_t t = record.prompt; t < record.tokens(); ++t)
            RL_TRY(session.feed_for_best(tokens[size_t(t)], t + 1 < record.tokens() ? kBest : 0, cancel));
        const auto took = std::chrono::steady_clock::now() - start;
        if (i >= 0)
            record.samples_ns.push_back(
                uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()));
        const Result<uint64_t> hash = hash_logits(session.logits(), session.device());
        if (!hash)
            return error("{}: no figure is given, for the output is wrong: {}", record.test_name(),
                         hash.error().message);
        if (hashed && hash.value() != record.logits_hash)
            return error(
                "{}: no figure is given, for the output is wrong: two repetitions differ (logits hash "
                "{:016x} "
                "and {:016x})",
                record.test_name(), record.logits_hash, hash.value());
        record.logits_hash = hash.value();
        hashed = true;
    }
    return {};
}

// ---- all tests ----

// Linux forgets the peak when it is asked to, so that what came before does not count.
void reset_peak_memory() {
    std::ofstream("/proc/self/clear_refs") << 5;
}

class Bench {
public:
    explicit Bench(const BenchOptions& options) : options_(options) {}

    Result<int> run() {
        const Result<int> code = run_models();
        if (!first_) out_.write(report_tail(options_.format));
        if (options_.format == BenchFormat::md)
            for (const std::string& kernel : tuned_) out_.write(fmt::format("tuned: {}\n", kernel));
        if (!code) return fail(code.error());
        return out_.finish(code.value());
    }

private:
    Result<int> run_models() {
        if (options_.models.empty()) {
            BenchOptions cases = options_;
            cases.common.threads = uint32_t(options_.threads[0]);
            return options_.sums ? bench_sums(cases, interrupts_) : bench_op_cases(cases, interrupts_);
        }
        // A name that is wrong is said now, not after the models before it.
        for (const std::string& path : options_.models) RL_TRY(Gguf::open(path));
        for (const std::string& path : options_.models)
            for (const int64_t threads : options_.threads) {
                ModelOptions model = options_.common;
                model.model = path;
                model.threads = uint32_t(threads);
                if (options_.ops) {
                    note_demo_model(model);
                    const LoadedModel loaded = RL_TRY(load_model(model));
                    const int code = RL_TRY(bench_ops(loaded, options_));
                    if (code != kDone) return code;
                    continue;
                }
                if (options_.soak) {
                    note_demo_model(model);
                    const LoadedModel loaded = RL_TRY(load_model(model));
                    const int code = RL_TRY(bench_soak(loaded, options_, interrupts_));
                    if (code != kDone) return code;
                    continue;
                }
                if (!options_.spec_file.empty()) {
                    note_demo_model(model);
                    const int code = RL_TRY(bench_spec(model, options_, interrupts_));
                    if (code != kDone) return code;
                    continue;
                }
                const int code = RL_TRY(options_.devices ? run_on_devices(model) : run_model(model));
                if (code != kDone) return code;
            }
        return kDone;
    }

    // Devices that cannot run the model are noted, and the others are measured.
    Result<int> run_on_devices(ModelOptions model) {
        bool measured = false;
        for (const BackendEntry* entry : backends_by_preference()) {
            const Result<std::vector<DeviceListing>> devices = entry->list();
            if (!devices) note(fmt::format("{}: {}", entry->name, devices.error().message));
            if (!devices) continue;
            for (const DeviceListing& device : devices.value()) {
                if (!device.missing.empty() || !device.preferred) {
                    note(fmt::format("{} ({}) is left out: it {}", device.id, device.name,
                                     device.missing.empty() ? "computes on the CPU, too; --device measures it"
                                                            : "lacks " + device.missing));
                    continue;
                }
                model.device = device.id;
                const Result<int> code = run_model(model);
                if (code && code.value() != kDone) return code;
                if (!code) note(fmt::format("{} ({}): {}", device.id, device.name, code.error().message));
                measured |= code.ok();
            }
        }
        if (!measured) return error("{}: no device here could be measured", model.model);
        return kDone;
    }

    // Split where that is asked for, in a way that fits the largest of the tests.
    Result<LoadedModel> load(const ModelOptions& model) const {
        LoadedModel loaded = RL_TRY(inspect_model(model));
        RL_TRY(open_for(loaded, model));
        ModelOptions most = model;
        for (const int64_t batch : options_.batches)
            most.batch = std::max(
                most.batch, batch > 0 ? uint32_t(batch) : batch_of(model, loaded.device.backend->device()));
        const auto bits = [](CacheTypes types) {
            return cache_code(types.keys).bits + cache_code(types.values).bits;
        };
        most.cache = *std::ranges::max_element(options_.caches, {}, bits);
        int64_t context = 0;
        for (const int64_t depth : options_.depths)
            for (const Test& test : list_tests(options_))
                context = std::max(context, depth + test.prompt + test.generation);
        RL_TRY(check_all(loaded, most, uint64_t(context)));
        most.kernel_check = KernelCheck::never;
        most.quick_tune = TuneBefore::never;
        if (loaded.is_shared() || (loaded.device.name() != "cpu" && asks_split(model, *loaded.model))) {
            note_demo_model(model);
            RL_TRY(place_model(loaded, most, uint64_t(context)));
            return loaded;
        }
        note_demo_model(model);
        RL_TRY(place_model(loaded, model, 0));
        loaded.split.counts.layers = loaded.device.name() == "cpu" ? 0 : loaded.model->config().layers;
        return loaded;
    }

    // Each type of cache has its kernels.
    Status check_all(LoadedModel& loaded, ModelOptions model, uint64_t context) const {
        for (const CacheTypes types : options_.caches) {
            model.cache = types;
            RL_TRY(check_kernels(loaded, model, context, 1));
            RL_TRY(quick_tune(loaded, model, context, 1));
        }
        return {};
    }

    // Measured anew, so that bench is also the way to mend a figure of a busy machine that was kept.
    // For a split model: bytes per second of all places together, when each reads its part after the others.
    static Result<double> measure_bandwidth(LoadedModel& loaded, const HostOptions& options) {
        const auto measured = [&](Backend& backend) {
            return measured_bandwidth(backend, options.cache_folder, *options.notes);
        };
        const std::vector<OpenDevice*> places = loaded.places();
        for (OpenDevice* place : places) place->bandwidth = measured(*place->backend);
        measure_paces(loaded, options, true);
        if (!loaded.split) return loaded.device.bandwidth;
        if (!loaded.split.ranks.empty())  // all of them read at the same time
            return std::accumulate(
                places.begin(), places.end(), 0.0,
                [](double sum, const OpenDevice* place) { return sum + place->bandwidth; });
        uint64_t bytes = 0;
        for (const OpenDevice* place : loaded.places())
            bytes += RL_TRY(step_bytes(*loaded.model, {}, loaded.split.placements, *place->backend, 1));
        return double(bytes) * most_tokens_per_second(loaded, EngineOptions().context, 1);
    }

    Result<int> run_model(const ModelOptions& model) {
        LoadedModel loaded = RL_TRY(load(model));
        const double bandwidth = RL_TRY(measure_bandwidth(loaded, model));
        for (const int64_t batch : options_.batches)
            for (const CacheTypes cache : options_.caches)
                for (const int64_t depth : options_.depths)
                    for (const Test& test : list_tests(options_)) {
                        BenchRecord record = describe(loaded, model);
                        record.bandwidth = bandwidth;
                        if (test.prompt == 0)
                            record.expected = expected_tokens_per_second(
                                loaded, EngineOptions().context, uint64_t(depth + test.generation / 2));
                        record.batch = batch > 0 ? batch : batch_of(model, loaded.device.backend->device());
                        record.cache = cache;
                        record.depth = depth;
                        record.prompt = test.prompt;
                        record.generation = test.generation;
                        RL_TRY(measure(loaded, model, record));
                        if (interrupts_.raised()) return interrupts_.code();
                        if (options_.by_rows) set_of_one_row(record);
                        if (first_ || (options_.by_rows && record.prompt == 1))
                            out_.write((first_ ? "" : "\n") + report_head(options_.format, record));
                        if (!out_.write(report_record(options_.format, record, first_))) return kDone;
                        first_ = false;
                        above_ |= is_above(record.bandwidth_share());
                    }
        if (std::exchange(above_, false) && options_.format == BenchFormat::md) note(kAboveNote);
        if (const std::string awake = explain_kept_awake(loaded); !awake.empty()) note(awake);
        if (const std::string shared = explain_shared_cpu(loaded); !shared.empty()) note(shared);
        return kDone;
    }

    BenchRecord describe(const LoadedModel& loaded, const ModelOptions& model) const {
        const Gguf& gguf = loaded.model->gguf();
        const DeviceInfo& device = loaded.device.backend->device();
        BenchRecord record;
        record.model_path = model.model;
        record.model_type = model_type(gguf);
        record.file_bytes = gguf.file_bytes();
        record.parameters = parameter_count(gguf);
        record.load_seconds = loaded.speed.load_seconds;
        record.kernels_checked = loaded.device.kernels_checked;
        record.kernel_check_seconds = loaded.device.kernel_check_seconds;
        record.kernels_tuned = loaded.device.kernels_tuned;
        record.quick_tune_seconds = loaded.device.quick_tune_seconds;
        record.backend = loaded.device.name();
        record.device_id = options_.devices ? model.device : loaded.labels();
        if (model.job) record.ranks = ranks_json(loaded);
        record.device = device.name;
        record.device_detail = device.detail;
        record.threads = device.threads;
        record.layers = loaded.split.counts;
        const Backend* const cpu = loaded.split.cpu.backend.get();
        record.has_split = cpu && std::ranges::count(loaded.split.placements, cpu, &Placement::backend) > 0;
        return record;
    }

    // The step of one row comes first.
    void set_of_one_row(BenchRecord& record) {
        if (record.prompt == 1) one_row_ns_ = record.mean_ns();
        record.of_one_row = record.mean_ns() / one_row_ns_;
    }

    Status measure(const LoadedModel& loaded, ModelOptions model, BenchRecord& record) {
        model.batch = uint32_t(record.batch);
        model.cache = record.cache;
        reset_peak_memory();
        const uint64_t context = uint64_t(record.depth + record.tokens());
        Session session = RL_TRY(open_session(loaded, model, context));
        record.tuned = tuned_kernels_of(*loaded.model, *loaded.device.backend,
                                        session_options(model, loaded.device.backend->device(), context));
        tuned_.insert(record.tuned.begin(), record.tuned.end());
        add_costs(*loaded.model, {context, model.batch, record.cache}, record);
        record.time = now_utc();
        loaded.device.backend->take_longest_submission();
        const Status done = run_test(session, options_, record, interrupts_.flag());
        record.peak_memory = peak_resident();
        record.longest_submission = loaded.device.backend->take_longest_submission();
        record.kept_awake = loaded.device.backend->kept_awake();
        return interrupts_.raised() ? Status() : done;
    }

    const BenchOptions& options_;
    Interrupts interrupts_;
    Output out_;
    bool first_ = true;            // nothing is reported yet
    bool above_ = false;           // see kAboveNote
    double one_row_ns_ = 0.0;      // with --rows
    std::set<std::string> tuned_;  // variants of kernels that were measured
};

// The options of speculation are for --spec alone, which has a text, and steps of one size.
Status check_spec(const Options& options, BenchOptions& bench) {
    if (bench.spec_file.empty()) {
        for (const std::string_view name :
             {"--spec-type", "--spec-draft-model", "--spec-draft-n-max", "--spec-acceptance"})
            if (options.given(name)) return error("{} wants a text: --spec FILE names one", name);
        return {};
    }
    for (const std::string_view name : {"--n-prompt", "--prompt-gen", "--n-depth", "--batch-size",
                                        "--devices", "--ops", "--rows", "--soak"})
        if (options.given(name)) return error("{} means nothing with --spec: leave it out", name);
    if (bench.format == BenchFormat::csv)
        return error("-o csv is for tables of tests: with --spec use md, json or jsonl");
    if (bench.generations.size() != 1 || bench.generations[0] < 2)
        return error("--spec takes one number of tokens, -n, and at least 2");
    if (bench.caches.size() > 1) return error("--spec takes one cache type");
    if (!options.given("--spec-type") && bench.speculation.draft_model.empty())
        bench.speculation.type = SpeculationType::automatic;
    bench.speculation.asked = true;
    RL_TRY(settle(bench.speculation));
    if (bench.speculation.type == SpeculationType::none)
        return error("--spec compares with no speculation: --spec-type none leaves nothing to compare");
    return {};
}

// A flag that a kind of run has no use for is refused: who gives it expects something of it.
Status check_kind(const Options& options, const BenchOptions& bench) {
    for (const std::string_view name : {"--device", "--gpu-layers", "--n-gpu-layers", "--main-gpu",
                                        "--cpu-moe", "--n-cpu-moe", "--override-tensor"})
        if (bench.devices && options.given(name)) return error("--devices measures all: leave {} out", name);
    for (const std::string_view name :
         {"--n-prompt", "--n-gen", "--prompt-gen", "--batch-size", "--ops", "--soak"})
        if (bench.by_rows && options.given(name))
            return error("{} means nothing with --rows: leave it out", name);
    if (!bench.ops && !bench.soak) {
        if (list_tests(bench).empty())
            return error("there is nothing to measure: -p, -n and -pg name no tokens");
        return {};
    }
    if (bench.ops && bench.soak) return error("--ops and --soak are two kinds of run: give one of them");
    const bool sizes = bench.ops && !bench.models.empty();
    const std::string_view kind = sizes ? "--ops" : bench.ops ? "--ops without -m" : "--soak";
    if (bench.format == BenchFormat::csv)
        return error("-o csv is for tables of tests: with {} use md, json or jsonl", kind);
    if (bench.caches.size() > 1) return error("{} takes one cache type", kind);
    std::vector<std::string_view> unused = {"--prompt-gen", "--batch-size", "--no-warmup", "--devices"};
    if (!sizes) unused.insert(unused.end(), {"--n-prompt", "--n-gen", "--n-depth"});
    unused.insert(unused.end(), {"--self-test", "--no-self-test"});
    if (bench.ops && !sizes)
        unused.insert(unused.end(), {"--cache-type-k", "--cache-type-v", "--cache-type"});
    if (!bench.ops) unused.push_back("--repetitions");
    for (const std::string_view name : unused)
        if (options.given(name)) return error("{} means nothing with {}: leave it out", name, kind);
    if (bench.ops && !sizes && bench.threads.size() > 1) return error("{} takes one number of threads", kind);
    if (!sizes) return {};
    const std::vector<uint64_t> rows = bench.step_rows();
    if (rows.empty()) return error("there is nothing to measure: -p and -n name no tokens");
    if (*std::max_element(rows.begin(), rows.end()) > uint64_t(kMostBatch))
        return error("with --ops, -p is the size of one step: up to {}", kMostBatch);
    return {};
}

// Joins the job that a launcher has started, if it has: a job has one model, which its ranks load once.
std::optional<int> take_ranks(BenchOptions& bench) {
    if (!is_in_job()) return {};
    const bool one = bench.models.size() == 1 && bench.threads.size() == 1 && !bench.devices && !bench.ops;
    if (!one)
        return fail(
            error("ranks measure one model: several of them, several numbers of threads, --devices and "
                  "--ops are for one process"),
            kUsage);
    bench.common.model = bench.models[0];
    bench.common.threads = uint32_t(bench.threads[0]);
    if (!bench.spec_file.empty()) bench.common.head = bench.speculation.head();
    return join_job(bench.common);
}

int run_bench(const std::vector<std::string>& arguments) {
    BenchOptions bench;
    Options options = declare(bench);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    Status usage = settle_device(bench.common);
    if (usage && (bench.ops || bench.devices))
        usage = check_one_device(bench.common, bench.ops ? "bench --ops" : "bench --devices");
    if (usage) usage = check_sums(options, bench);
    if (usage && !bench.sums) usage = check_kind(options, bench);
    if (usage) usage = check_spec(options, bench);
    if (!usage) return fail(usage.error(), kUsage);
    if (!bench.sums && (!bench.ops || !bench.models.empty())) {
        if (bench.models.empty()) bench.models.emplace_back();
        bench.common.model = bench.models[0];
        if (const Status found = take_demo_model(bench.common); !found) return fail(found.error());
        bench.models[0] = bench.common.model;
    }
    for (std::string& model : bench.models) {
        Result<std::string> path = find_user_model(model);
        if (!path) return fail(path.error());
        model = std::move(path).value();
    }
    if (const std::optional<int> code = take_ranks(bench)) return *code;
    const Result<int> code = Bench(bench).run();
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command bench_command = {"bench", "measure the speed of a model", run_bench};

}  // namespace redline::cli
