#include "cli/bench.h"

#include "cli/op_text.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace redline::cli {

namespace {

constexpr uint64_t kManyRows = 512;

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

// Steps of `rows` tokens after `depth` others. Each kind of op is given its best time of all repetitions:
// what another program takes of the machine only ever makes it slower.
Result<StepTimes> time_step(Session& session, const Plan& plan, uint64_t rows, uint64_t depth,
                            int repetitions) {
    const Token token = session.model().tokenizer().adds_bos() ? session.model().tokenizer().bos() : 0;
    const std::vector<Token> tokens(size_t(std::max(rows, depth)), token);
    session.truncate(0);
    if (depth > 0) RL_TRY(session.feed(std::span(tokens).first(size_t(depth))));
    std::map<std::string, OpTimes> best;
    for (int i = 0; i <= repetitions; ++i) {
        session.truncate(depth);
        std::map<std::string, OpTimes> now;
        const auto sink = [&](const TraceStep& step) {
            OpTimes& op = now[describe_op(step.step->op, plan)];
            op.count++;
            op.seconds += step.seconds;
            op.cost.weight_bytes += step.cost.weight_bytes;
            op.cost.cache_bytes += step.cost.cache_bytes;
            op.cost.flops += step.cost.flops;
        };
        RL_TRY(session.feed_traced(std::span(tokens).first(size_t(rows)), sink));
        for (auto& [text, op] : now) {
            op.text = text;
            OpTimes& kept = best[text];
            if (kept.count == 0 || op.seconds < kept.seconds) kept = std::move(op);
        }
    }
    StepTimes times{rows, depth + rows, {}, 0.0};
    for (auto& [text, op] : best) {
        times.seconds += op.seconds;
        times.ops.push_back(std::move(op));
    }
    std::sort(times.ops.begin(), times.ops.end(),
              [](const OpTimes& a, const OpTimes& b) { return a.seconds > b.seconds; });
    return times;
}

double gb_per_second(const OpTimes& op) {
    return op.seconds > 0.0 ? double(op.cost.weight_bytes + op.cost.cache_bytes) * 1e-9 / op.seconds : 0.0;
}

double gflop_per_second(const OpTimes& op) {
    return op.seconds > 0.0 ? double(op.cost.flops) * 1e-9 / op.seconds : 0.0;
}

std::string as_text(const StepTimes& times, double bandwidth) {
    std::string out = fmt::format("{} row{}, cache of {}: {:.3f} ms in all\n", times.rows,
                                  times.rows == 1 ? "" : "s", times.kv_len, times.seconds * 1e3);
    out += fmt::format("{:>5} {:>10} {:>7} {:>8} {:>8} {:>9}  {}\n", "count", "us", "of all", "GB/s",
                       "of peak", "GFLOP/s", "op");
    for (const OpTimes& op : times.ops)
        out += fmt::format("{:>5} {:>10.1f} {:>5.1f} % {:>8.2f} {:>6.0f} % {:>9.1f}  {}\n", op.count,
                           op.seconds * 1e6, 100.0 * op.seconds / times.seconds, gb_per_second(op),
                           bandwidth > 0.0 ? 100e9 * gb_per_second(op) / bandwidth : 0.0,
                           gflop_per_second(op), op.text);
    return out + "\n";
}

Json as_json(const StepTimes& times, double bandwidth) {
    Json ops = Json::array();
    for (const OpTimes& op : times.ops)
        ops.push_back({{"op", op.text},
                       {"count", op.count},
                       {"seconds", op.seconds},
                       {"weight_bytes", op.cost.weight_bytes},
                       {"cache_bytes", op.cost.cache_bytes},
                       {"flops", op.cost.flops},
                       {"gb_per_s", gb_per_second(op)},
                       {"bandwidth_share", bandwidth > 0.0 ? 1e9 * gb_per_second(op) / bandwidth : 0.0},
                       {"gflop_per_s", gflop_per_second(op)}});
    return {{"rows", times.rows}, {"kv_len", times.kv_len}, {"seconds", times.seconds}, {"ops", ops}};
}

}  // namespace

Result<int> bench_ops(const LoadedModel& loaded, const BenchOptions& options) {
    const double bandwidth = loaded.backend->measure_read_bandwidth();
    const uint64_t depth = uint64_t(*std::max_element(options.depths.begin(), options.depths.end()));
    ModelOptions settings = options.common;
    settings.batch = uint32_t(kManyRows);
    settings.cache = options.caches.front();
    const uint64_t context = depth + kManyRows;
    Session session = RL_TRY(open_session(loaded, settings, context));
    const Plan plan = RL_TRY(
        loaded.model->plan(uint32_t(kManyRows), 1, loaded.model->cache_shape(context, settings.cache)));
    Output out;
    Json steps = Json::array();
    if (options.format == BenchFormat::md)
        out.write(fmt::format("{}: {} on {} ({}), peak {:.1f} GB/s\n\n", loaded.model->gguf().path(),
                              loaded.device, loaded.backend->device().name, loaded.backend->device().detail,
                              bandwidth * 1e-9));
    for (const uint64_t rows : {uint64_t(1), kManyRows}) {
        const StepTimes times = RL_TRY(time_step(session, plan, rows, depth, options.repetitions));
        if (options.format == BenchFormat::md)
            out.write(as_text(times, bandwidth));
        else
            steps.push_back(as_json(times, bandwidth));
    }
    if (options.format != BenchFormat::md)
        out.write(to_text(Json{{"model", model_json(loaded)},
                               {"device", device_json(loaded)},
                               {"bandwidth_gb_per_s", bandwidth * 1e-9},
                               {"steps", steps}},
                          options.format == BenchFormat::json) +
                  "\n");
    return out.finish();
}

}  // namespace redline::cli
