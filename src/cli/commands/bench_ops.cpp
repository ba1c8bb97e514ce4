#include "cli/commands/bench.h"

#include "cli/report.h"
#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"
#include "host/expected_speed.h"
#include "host/load_model.h"
#include "host/open_device.h"
#include "json/json.h"
#include "measure/speed_cases.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace redline::cli {

namespace {

// Ops that do the same work, over the layers of a step.
struct OpTimes {
    std::string text;
    uint64_t count = 0;    // per step
    double seconds = 0.0;  // of all of them, in the best step
    Cost cost;             // of all of them
};

struct StepTimes {
    uint64_t rows = 0;
    uint64_t kv_len = 0;
    std::vector<OpTimes> ops;  // slowest first
    double seconds = 0.0;
};

// Runs a step several times. Each kind of op is given its best time of all repetitions: what another program
// takes of the machine only ever makes it slower.
Result<StepTimes> time_step(const Plan& plan, uint64_t rows, uint64_t kv_len, int repetitions,
                            const std::function<Status(const TraceSink&)>& step) {
    std::map<std::string, OpTimes> best;
    for (int i = 0; i <= repetitions; ++i) {
        std::map<std::string, OpTimes> now;
        RL_TRY(step([&](const TraceStep& traced) {
            OpTimes& op = now[op_text(traced.step->op, plan)];
            op.count++;
            op.seconds += traced.seconds;
            op.cost.weight_bytes += traced.cost.weight_bytes;
            op.cost.cache_bytes += traced.cost.cache_bytes;
            op.cost.flops += traced.cost.flops;
        }));
        for (auto& [text, op] : now) {
            op.text = text;
            OpTimes& kept = best[text];
            if (kept.count == 0 || op.seconds < kept.seconds) kept = std::move(op);
        }
    }
    StepTimes times{rows, kv_len, {}, 0.0};
    for (auto& [text, op] : best) {
        times.seconds += op.seconds;
        times.ops.push_back(std::move(op));
    }
    std::sort(times.ops.begin(), times.ops.end(),
              [](const OpTimes& a, const OpTimes& b) { return a.seconds > b.seconds; });
    return times;
}

// Steps of `rows` tokens after `depth` others.
Result<StepTimes> time_session(Session& session, const Plan& plan, uint64_t rows, uint64_t depth,
                               int repetitions) {
    const Token token = session.model().tokenizer().adds_bos() ? session.model().tokenizer().bos() : 0;
    const std::vector<Token> tokens(size_t(std::max(rows, depth)), token);
    session.rewind(0);
    if (depth > 0) RL_TRY(session.feed(std::span(tokens).first(size_t(depth))));
    return time_step(plan, rows, depth + rows, repetitions, [&](const TraceSink& sink) -> Status {
        const uint64_t held = session.rewind(depth);
        if (held < depth) RL_TRY(session.feed(std::span(tokens).subspan(held, size_t(depth - held))));
        return session.feed_traced(std::span(tokens).first(size_t(rows)), sink);
    });
}

// The ops of a case that its step spends most on: embeddings and the like are there to feed them.
Result<StepTimes> time_case(const OpCase& c, Backend& backend, bool fuse, int repetitions) {
    Fixture fixture(1, c.rows);
    const Plan plan = RL_TRY(case_plan(c, fixture, c.rows, 1));
    const auto weights = RL_TRY(backend.load(fixture.weights(), fixture, {}));
    const auto caches = RL_TRY(backend.make_caches(plan.caches));
    // Memory that was never written may be cheaper to read than a cache in use.
    for (int32_t i = 0; size_t(i) < plan.caches.size(); ++i) {
        const CacheInfo& cache = plan.cache({i});
        const uint64_t count = std::min(c.position / cache.ratio, cache.capacity);
        const std::vector<std::byte> rows(count * cache.row_bytes() * cache.kv_heads);
        RL_TRY(caches->write({i}, 0, count, rows));
    }
    BoundPlan bound = RL_TRY(lower(plan, backend, fuse));
    const auto executable = RL_TRY(backend.record(std::move(bound), *weights, *caches, Record::direct));
    std::vector<Token> tokens(c.rows);
    std::iota(tokens.begin(), tokens.end(), 0);
    StepTimes times = RL_TRY(
        time_step(plan, c.rows, c.position + c.rows, repetitions, [&](const TraceSink& sink) -> Status {
            return executable->run_traced(SequenceStep(tokens, c.position, 1), sink);
        }));
    std::erase_if(times.ops, [](const OpTimes& op) {
        return op.text.starts_with("embed") || op.text.starts_with("select");
    });
    return times;
}

double gb_per_second(const OpTimes& op) {
    return op.seconds > 0.0 ? double(op.cost.weight_bytes + op.cost.cache_bytes) * 1e-9 / op.seconds : 0.0;
}

double gflop_per_second(const OpTimes& op) {
    return op.seconds > 0.0 ? double(op.cost.flops) * 1e-9 / op.seconds : 0.0;
}

double time_share(const OpTimes& op, const StepTimes& times) {
    return times.seconds > 0.0 ? op.seconds / times.seconds : 0.0;
}

// The rates of which shares are given.
struct Peaks {
    double bandwidth = 0.0;
    std::optional<MatrixPeak> matrix;

    static Result<Peaks> measure(Backend& backend) {
        Peaks peaks;
        peaks.bandwidth = measured_bandwidth(backend, "", terminal_notes());
        peaks.matrix = RL_TRY(backend.measure_matrix_peak());
        return peaks;
    }

    double bandwidth_share(const OpTimes& op) const {
        return bandwidth > 0.0 ? 1e9 * gb_per_second(op) / bandwidth : 0.0;
    }
    // Only steps of many rows multiply with matrix units.
    std::optional<double> matrix_share(const OpTimes& op, const StepTimes& times) const {
        if (!matrix || matrix->halfs <= 0.0 || times.rows == 1) return {};
        return 1e9 * gflop_per_second(op) / matrix->halfs;
    }
    std::string text() const {
        const std::string read =
            bandwidth > 0.0 ? fmt::format("peak {:.1f} GB/s", bandwidth * 1e-9) : "peak not measured";
        if (!matrix) return read + ", matrix units not measured";
        if (matrix->halfs <= 0.0) return read + ", no matrix units";
        return fmt::format("{}, matrix units by {} {:.1f} TFLOP/s in halfs and {:.1f} TOP/s in int8", read,
                           matrix->instruction, matrix->halfs * 1e-12, matrix->bytes * 1e-12);
    }
    void add_to(Json& report) const {
        report["bandwidth_gb_per_s"] = bandwidth * 1e-9;
        report["matrix_instruction"] = matrix ? Json(matrix->instruction) : Json();
        report["matrix_f16_tflop_per_s"] = matrix ? Json(matrix->halfs * 1e-12) : Json();
        report["matrix_int8_top_per_s"] = matrix ? Json(matrix->bytes * 1e-12) : Json();
    }
};

std::string table_head() {
    return fmt::format("{:>5} {:>10} {:>7} {:>8} {:>8} {:>9} {:>9}  {}\n", "count", "us", "of all", "GB/s",
                       "of peak", "GFLOP/s", "of matrix", "op");
}

std::string table_row(const OpTimes& op, const StepTimes& times, const Peaks& peaks,
                      std::string_view suffix = "") {
    const std::optional<double> matrix = peaks.matrix_share(op, times);
    return fmt::format("{:>5} {:>10.1f} {:>5.1f} % {:>8.2f} {:>8} {:>9.1f} {:>9}  {}{}\n", op.count,
                       op.seconds * 1e6, 100.0 * time_share(op, times), gb_per_second(op),
                       share_text(peaks.bandwidth_share(op)), gflop_per_second(op),
                       matrix ? share_text(*matrix, 1) : "-", op.text, suffix);
}

bool any_above(const StepTimes& times, const Peaks& peaks) {
    return std::any_of(times.ops.begin(), times.ops.end(), [&](const OpTimes& op) {
        return is_above(peaks.bandwidth_share(op)) || is_above(peaks.matrix_share(op, times).value_or(0.0));
    });
}

std::string as_text(const StepTimes& times, const Peaks& peaks) {
    std::string out = fmt::format("{} row{}, cache of {}: {:.3f} ms in all\n", times.rows,
                                  times.rows == 1 ? "" : "s", times.kv_len, times.seconds * 1e3);
    out += table_head();
    for (const OpTimes& op : times.ops) out += table_row(op, times, peaks);
    return out + "\n";
}

Json as_json(const StepTimes& times, const Peaks& peaks) {
    Json ops = Json::array();
    for (const OpTimes& op : times.ops) {
        const std::optional<double> matrix = peaks.matrix_share(op, times);
        ops.push_back({{"op", op.text},
                       {"count", op.count},
                       {"seconds", op.seconds},
                       {"weight_bytes", op.cost.weight_bytes},
                       {"cache_bytes", op.cost.cache_bytes},
                       {"flops", op.cost.flops},
                       {"gb_per_s", gb_per_second(op)},
                       {"bandwidth_share", share_json(peaks.bandwidth_share(op))},
                       {"gflop_per_s", gflop_per_second(op)},
                       {"matrix_share", matrix ? share_json(*matrix) : Json()}});
    }
    return {{"rows", times.rows}, {"kv_len", times.kv_len}, {"seconds", times.seconds}, {"ops", ops}};
}

}  // namespace

std::vector<uint64_t> BenchOptions::step_rows() const {
    std::vector<uint64_t> rows;
    if (std::any_of(generations.begin(), generations.end(), [](int64_t n) { return n > 0; }))
        rows.push_back(1);
    for (const int64_t prompt : prompts)
        if (prompt > 0) rows.push_back(uint64_t(prompt));
    return rows;
}

Result<int> bench_ops(const LoadedModel& loaded, const BenchOptions& options) {
    const Peaks peaks = RL_TRY(Peaks::measure(*loaded.device.backend));
    const std::vector<uint64_t> steps_of = options.step_rows();
    const uint64_t most = *std::max_element(steps_of.begin(), steps_of.end()),
                   depth = uint64_t(*std::max_element(options.depths.begin(), options.depths.end())),
                   context = depth + most;
    ModelOptions settings = options.common;
    // The tokens before the step are read in steps of the usual size, however small the step itself is.
    settings.batch = uint32_t(std::max(most, std::min<uint64_t>(depth, 512)));
    settings.cache = options.caches.front();
    Session session = RL_TRY(open_session(loaded, settings, context));
    const Plan plan =
        RL_TRY(loaded.model->plan(settings.batch, 1, {context, settings.batch, settings.cache}));
    Output out;
    Json steps = Json::array();
    bool above = false;
    if (options.format == BenchFormat::md)
        out.write(fmt::format("{}: {} on {} ({}), {}\n\n", loaded.model->gguf().path(), loaded.device.name(),
                              loaded.device.backend->device().name, loaded.device.backend->device().detail,
                              peaks.text()));
    for (const int64_t before : options.depths)
        for (const uint64_t rows : steps_of) {
            const StepTimes times =
                RL_TRY(time_session(session, plan, rows, uint64_t(before), options.repetitions));
            if (options.format == BenchFormat::md)
                out.write(as_text(times, peaks)), above |= any_above(times, peaks);
            else
                steps.push_back(as_json(times, peaks));
        }
    if (above) note(kAboveNote);
    if (options.format != BenchFormat::md) {
        Json report = {{"model", model_json(loaded)}, {"device", device_json(loaded)}};
        peaks.add_to(report);
        report["steps"] = steps;
        out.write(to_text(report, options.format == BenchFormat::json) + "\n");
    }
    return out.finish();
}

Result<int> bench_op_cases(const BenchOptions& options, Interrupts& interrupts) {
    DeviceChoice choice = RL_TRY(choose_device(options.common.device));
    const std::unique_ptr<Backend> backend = RL_TRY(open_best(choice, options.common));
    const Peaks peaks = RL_TRY(Peaks::measure(*backend));
    Output out;
    Json cases = Json::array();
    bool above = false;
    if (options.format == BenchFormat::md) {
        out.write(fmt::format("random weights on {} ({}, {}), {}\n", choice.backend, backend->device().name,
                              backend->device().detail, peaks.text()));
        out.write(table_head());
    }
    for (const OpCase& c : speed_cases(*backend)) {
        const StepTimes times = RL_TRY(time_case(c, *backend, options.common.fuse, options.repetitions));
        if (interrupts.raised()) return interrupts.code();
        if (options.format != BenchFormat::md) {
            cases.push_back(as_json(times, peaks));
            continue;
        }
        const std::string suffix = fmt::format("; {} row{}{}", times.rows, times.rows == 1 ? "" : "s",
                                               c.position > 0 ? fmt::format(" at {}", c.position) : "");
        above |= any_above(times, peaks);
        for (const OpTimes& op : times.ops)
            if (!out.write(table_row(op, times, peaks, suffix))) return kDone;
    }
    if (above) note(kAboveNote);
    if (options.format != BenchFormat::md) {
        Json report = {{"device", choice.backend}, {"device_name", backend->device().name}};
        peaks.add_to(report);
        report["cases"] = cases;
        out.write(to_text(report, options.format == BenchFormat::json) + "\n");
    }
    return out.finish();
}

}  // namespace redline::cli
