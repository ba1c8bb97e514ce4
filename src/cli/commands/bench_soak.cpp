// redline bench --soak: one long run of steps of one token, first replayed, then launched one by one. What is
// replayed was recorded once, so that an input that is overwritten too early, or a wait that is missing,
// shows as a step whose logits differ.
#include "cli/commands/bench.h"

#include "host/load_model.h"

#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "json/json.h"

#include <algorithm>
#include <chrono>

namespace redline::cli {

namespace {

constexpr uint64_t kMostText = 4096;  // tokens, then the next begins

struct Pass {
    std::vector<uint64_t> hashes;  // of the logits of each step
    std::vector<Token> likeliest;
    std::vector<double> seconds;
};

Result<Pass> run_pass(const LoadedModel& loaded, ModelOptions settings, Record record,
                      std::span<const Token> tokens, uint64_t context, const std::atomic<bool>* cancel) {
    settings.record = record;
    Session session = RL_TRY(open_session(loaded, settings, context));
    Pass pass;
    for (size_t i = 0; i < tokens.size(); ++i) {
        if (session.position() == context) session.rewind(0);
        const auto begin = std::chrono::steady_clock::now();
        RL_TRY(session.feed(tokens.subspan(i, 1), cancel));
        pass.seconds.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        const auto logits = session.logits();
        const Result<uint64_t> hash = hash_logits(logits, session.device());
        if (!hash) return error("step {}: {}", i, hash.error().message);
        pass.hashes.push_back(hash.value());
        pass.likeliest.push_back(Token(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    return pass;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + int64_t(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

struct Compared {
    uint64_t logits = 0;  // steps whose logits differ
    uint64_t tokens = 0;  // of these, with another likeliest token
    uint64_t first = 0;   // of these
};

Compared compare(const Pass& a, const Pass& b) {
    Compared found;
    for (size_t i = a.hashes.size(); i-- > 0;) {
        if (a.hashes[i] == b.hashes[i]) continue;
        found.logits++;
        found.tokens += a.likeliest[i] != b.likeliest[i];
        found.first = i;
    }
    return found;
}

}  // namespace

Result<int> bench_soak(const LoadedModel& loaded, const BenchOptions& options, Interrupts& interrupts) {
    const uint64_t steps = options.soak;
    const uint64_t context = std::min({steps, kMostText, loaded.model->config().train_context});
    const std::vector<Token> tokens = random_tokens(*loaded.model, int64_t(steps));
    ModelOptions settings = options.common;
    settings.cache = options.caches.front();
    Pass passes[2];
    for (const Record record : {Record::replay, Record::direct}) {
        Result<Pass> pass = run_pass(loaded, settings, record, tokens, context, interrupts.flag());
        if (interrupts.raised()) return interrupts.code();
        passes[size_t(record)] = RL_TRY(std::move(pass));
    }
    const auto& [replayed, direct] = passes;
    const Compared found = compare(replayed, direct);
    const double ms[] = {median(replayed.seconds) * 1e3, median(direct.seconds) * 1e3};
    Output out;
    if (options.format == BenchFormat::md) {
        out.write(fmt::format("{}: texts of {} tokens on {} ({})\n\n", loaded.model->gguf().path(), context,
                              loaded.device.name(), loaded.device.backend->device().name));
        out.write("| steps | logits differ | tokens differ | replayed, ms | direct, ms |\n");
        out.write("| ---: | ---: | ---: | ---: | ---: |\n");
        out.write(fmt::format("| {} | {} | {} | {:.3f} | {:.3f} |\n", steps, found.logits, found.tokens,
                              ms[0], ms[1]));
        if (found.logits) out.write(fmt::format("\nthe first that differs is step {}\n", found.first));
    } else {
        out.write(to_text(Json{{"model", model_json(loaded)},
                               {"device", device_json(loaded)},
                               {"steps", steps},
                               {"text_tokens", context},
                               {"logits_differ", found.logits},
                               {"tokens_differ", found.tokens},
                               {"first_differs", found.logits ? Json(found.first) : Json()},
                               {"replayed_ms", ms[0]},
                               {"direct_ms", ms[1]}},
                          options.format == BenchFormat::json) +
                  "\n");
    }
    return out.finish(found.logits ? kFailed : kDone);
}

}  // namespace redline::cli
