#include "cli/report.h"

#include "cli/terminal/terminal.h"
#include "gguf/facts.h"
#include "host/expected_speed.h"
#include "host/rank_job.h"
#include "json/json.h"
#include "memory/budget.h"
#include "plan/kernel_key.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <cmath>

namespace redline::cli {

static double per_second(uint64_t count, double seconds) {
    return seconds > 0.0 ? double(count) / seconds : 0.0;
}

std::string to_text(const Json& value, bool pretty) {
    return value.dump(pretty ? 2 : -1, ' ', false, Json::error_handler_t::replace);
}

Json real_json(double value) {
    if (double(float(value)) != value || !std::isfinite(value)) return value;
    return std::stod(fmt::format("{}", float(value)));
}

DecodeSpeed decode_speed(const LoadedModel& loaded, const Session& session, const Generation& generation) {
    DecodeSpeed speed;
    speed.tokens_per_second = per_second(generation.steps, generation.decode_seconds);
    const Result<Plan> plan = loaded.model->plan(1, 1, {session.context(), 1, loaded.cache});
    if (!plan || generation.steps == 0) return speed;
    const uint64_t mean_context = generation.context_sum / generation.steps;
    const Cost one = step_cost(plan.value(), {1, 1, mean_context});
    // A guess that was right is read together with the token before it.
    const uint64_t reads = generation.steps - generation.accepted;
    speed.gb_per_second =
        double(one.weight_bytes + one.cache_bytes) * per_second(reads, generation.decode_seconds) * 1e-9;
    speed.share_of_file = double(one.weight_bytes) / double(loaded.model->gguf().file_bytes());
    return speed;
}

std::string figures_line(const LoadedModel& loaded, const PromptResult& prompt,
                         const Generation& generation) {
    const size_t made = generation.tokens.size();
    std::string line = fmt::format("{} token{}", made, made == 1 ? "" : "s");
    if (generation.steps > 0)
        line += fmt::format(", {:.1f} tok/s", per_second(generation.steps, generation.decode_seconds));
    line += fmt::format("; prompt {}", prompt.tokens);
    if (prompt.read > 0) line += fmt::format(", {:.0f} tok/s", per_second(prompt.read, prompt.seconds));
    if (generation.first_token_seconds > 0.0)
        line += fmt::format("; first after {:.2f} s", prompt.seconds + generation.first_token_seconds);
    return line + "; " + loaded.labels();
}

void say_statistics(const LoadedModel& loaded, const Session& session, const PromptResult& prompt,
                    const Generation& generation) {
    const uint64_t read = prompt.read;
    std::string line = fmt::format("prompt: {} token{} in {:.3f} s ({:.1f} tok/s)", read,
                                   read == 1 ? "" : "s", prompt.seconds, per_second(read, prompt.seconds));
    if (prompt.reused > 0) line += fmt::format(", {} more from the cache", prompt.reused);
    if (generation.first_token_seconds > 0.0)
        line += fmt::format(", first token after {:.1f} ms",
                            1000.0 * (prompt.seconds + generation.first_token_seconds));
    say(line);
    const DecodeSpeed speed = decode_speed(loaded, session, generation);
    line =
        fmt::format("decode: {} token{}", generation.tokens.size(), generation.tokens.size() == 1 ? "" : "s");
    if (generation.steps > 0)
        line += fmt::format(" in {:.3f} s ({:.2f} tok/s, {:.2f} GB/s; each reads {:.0f} % of the file)",
                            generation.decode_seconds, speed.tokens_per_second, speed.gb_per_second,
                            100.0 * speed.share_of_file);
    say(line);
    if (generation.rounds > 0)
        say(fmt::format("speculation: {} of {} guessed tokens were right, in {} rounds", generation.accepted,
                        generation.drafted, generation.rounds));
    say(fmt::format("load: {} in {:.2f} s; peak memory {}", format_bytes(loaded.model->gguf().file_bytes()),
                    loaded.speed.load_seconds, format_bytes(peak_resident())));
}

void say_methods(const Speculation* speculation) {
    if (!speculation) return;
    for (const Speculation::MethodResult& one : speculation->results()) {
        if (one.rounds == 0) continue;
        say(fmt::format(
            "{}: {} of {} guessed tokens were right, in {} rounds, {:.2f} times as fast as one by one{}",
            one.name, one.accepted, one.proposed, one.rounds, one.gain, one.paused ? "; it rests" : ""));
    }
}

Json methods_json(const Speculation* speculation) {
    Json all = Json::array();
    if (!speculation) return all;
    for (const Speculation::MethodResult& one : speculation->results())
        all.push_back({{"method", one.name},
                       {"rounds", one.rounds},
                       {"draft_n", one.proposed},
                       {"draft_n_accepted", one.accepted},
                       {"gain", one.gain > 0.0 ? Json(one.gain) : Json(nullptr)},
                       {"rests", one.paused}});
    return all;
}

std::string explain_stop(const Generation& generation, uint64_t context) {
    switch (generation.reason) {
        case StopReason::context_full:
            return fmt::format(
                "the text ends here because the context of {} tokens is full; a larger one (-c N) "
                "goes on",
                context);
        case StopReason::cancelled:
            return "interrupted";
        default:
            return "";
    }
}

Json timings_json(const LoadedModel& loaded, const Session& session, const PromptResult& prompt,
                  const Generation& generation) {
    const uint64_t read = prompt.read;
    const DecodeSpeed speed = decode_speed(loaded, session, generation);
    Json put_aside = Json::array();
    for (const std::string& kernel : loaded.device.refused) put_aside.push_back(kernel_text(kernel));
    return {{"load_ms", loaded.speed.load_seconds * 1e3},
            {"kernels_checked", loaded.device.kernels_checked},
            {"kernels_put_aside", put_aside},
            {"kernel_check_ms", loaded.device.kernel_check_seconds * 1e3},
            {"kernels_tuned", loaded.device.kernels_tuned},
            {"quick_tune_ms", loaded.device.quick_tune_seconds * 1e3},
            {"prompt_n", read},
            {"prompt_ms", prompt.seconds * 1e3},
            {"prompt_per_second", per_second(read, prompt.seconds)},
            {"first_token_ms", generation.first_token_seconds > 0.0
                                   ? Json((prompt.seconds + generation.first_token_seconds) * 1e3)
                                   : Json(nullptr)},
            {"predicted_n", generation.steps},
            {"predicted_ms", generation.decode_seconds * 1e3},
            {"predicted_per_second", speed.tokens_per_second},
            {"draft_n", generation.drafted},
            {"draft_n_accepted", generation.accepted},
            {"draft_rounds", generation.rounds},
            {"gb_per_s", speed.gb_per_second},
            {"share_of_file", speed.share_of_file}};
}

Json model_json(const LoadedModel& loaded) {
    const Gguf& gguf = loaded.model->gguf();
    const Result<std::string> name = gguf.metadata().text("general.name", "");
    const Result<std::string> arch = gguf.metadata().text("general.architecture", "");
    return {{"path", gguf.path()},
            {"name", name ? name.value() : ""},
            {"architecture", arch ? arch.value() : ""},
            {"file_type", stated_file_type(gguf).empty() ? Json(nullptr) : Json(stated_file_type(gguf))},
            {"file_bytes", gguf.file_bytes()}};
}

Json ranks_json(const LoadedModel& loaded) {
    Json all = Json::array();
    const std::vector<const OpenDevice*> devices = loaded.devices();
    double shares = 0.0;
    for (const RankPlace& rank : loaded.split.ranks) shares += rank.share;
    for (size_t i = 0; i < devices.size(); ++i) {
        const OpenDevice& device = *devices[i];
        const DeviceInfo& info = device.backend->device();
        const std::optional<LayerRange> range = layers_of(loaded, device);
        const double hop =
            i + 1 < devices.size() ? crossing_of(loaded)(*device.backend, *devices[i + 1]->backend) : 0.0;
        const auto part = std::ranges::find(loaded.split.ranks, device.backend.get(), &RankPlace::backend);
        const double sum = loaded.speed.sum_seconds;
        all.push_back(
            {{"rank", device.rank},
             {"device_id", device.local_id()},
             {"device", info.name},
             {"device_detail", info.detail},
             {"first_layer", range ? Json(range->first) : Json(nullptr)},
             {"last_layer", range ? Json(range->last) : Json(nullptr)},
             {"hop_seconds", hop > 0.0 ? Json(hop) : Json(nullptr)},
             {"share", part != loaded.split.ranks.end() ? Json(part->share / shares) : Json(nullptr)},
             {"sum_seconds", sum > 0.0 ? Json(sum) : Json(nullptr)}});
    }
    return all;
}

Json device_json(const LoadedModel& loaded) {
    const DeviceInfo& device = loaded.device.backend->device();
    Json all = {{"backend", loaded.device.name()}, {"name", device.name}, {"detail", device.detail}};
    if (!loaded.is_shared()) return all;
    Json list = Json::array();
    const std::vector<const OpenDevice*> devices = loaded.devices();
    for (size_t i = 0; i < devices.size(); ++i) {
        const Backend& backend = *devices[i]->backend;
        list.push_back(
            {{"id", loaded.label(&backend)},
             {"name", backend.device().name},
             {"detail", backend.device().detail},
             {"layers", i < loaded.split.counts.by_device.size() ? Json(loaded.split.counts.by_device[i])
                                                                 : Json(nullptr)}});
    }
    all["list"] = list;
    return all;
}

}  // namespace redline::cli
