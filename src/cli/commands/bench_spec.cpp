// redline bench --spec FILE: how fast a model goes on from a text, first token by token and then with
// guesses, and what became of these. What a method learns in one repetition it has in the next.
#include "cli/commands/bench.h"

#include "engine/generate.h"
#include "host/load_model.h"
#include "host/open_speculation.h"
#include "json/json.h"

#include "cli/prompt.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>

namespace redline::cli {

namespace {

constexpr int kMostScripts = 12;

// The text after each repetition of one way to generate it.
struct SpecPass {
    std::vector<double> ts;  // tokens per second, from the first token on
    Generation last;

    double mean() const { return std::accumulate(ts.begin(), ts.end(), 0.0) / double(ts.size()); }
    double deviation() const {
        double sum = 0.0;
        for (const double each : ts) sum += (each - mean()) * (each - mean());
        return ts.size() > 1 ? std::sqrt(sum / double(ts.size() - 1)) : 0.0;
    }
    // A step without an accepted guess gives one token; the first token is the prompt's.
    uint64_t steps() const { return last.tokens.size() - 1 - last.accepted; }
    double tokens_per_step() const { return double(last.tokens.size() - 1) / double(steps()); }
};

// Has the methods guess, and puts in the place of their guesses tokens of the text that the model wrote the
// last time, of which some are made wrong: how fast a model of such an acceptance would be, where the weights
// are random.
class ScriptedDrafter : public Drafter {
public:
    ScriptedDrafter(Drafter& methods, double right, uint32_t vocab, size_t prompt,
                    std::span<const Token> script)
        : methods_(methods), right_(right), vocab_(vocab), prompt_(prompt) {
        follow(script);
    }

    // The text of the last pass. True when the script was that text already.
    bool follow(std::span<const Token> text) {
        const bool same = std::equal(script_.begin(), script_.end(), text.begin(), text.end());
        script_.assign(text.begin(), text.end());
        random_.seed(1);
        return same;
    }
    Result<std::vector<Token>> propose(std::span<const Token> read, Token last, size_t most,
                                       const std::atomic<bool>* cancel) override {
        std::vector<Token> guess = RL_TRY(methods_.propose(read, last, most, cancel));
        const size_t next = read.size() + 1 - prompt_;  // of the text
        std::bernoulli_distribution right(right_);
        for (size_t i = 0; i < guess.size() && next + i < script_.size(); ++i) {
            const Token token = script_[next + i];
            guess[i] = right(random_) ? token : Token((uint32_t(token) + 1) % vocab_);
        }
        return guess;
    }
    void tell(const DraftRound& round) override { methods_.tell(round); }

private:
    Drafter& methods_;
    double right_;
    uint32_t vocab_;
    size_t prompt_;
    std::vector<Token> script_;
    std::mt19937 random_;
};

struct SpecTest {
    const LoadedModel& loaded;
    const BenchOptions& options;
    ModelOptions settings;
    std::vector<Token> prompt;
    uint64_t tokens;
    uint64_t context;
};

Result<SpecPass> run_spec_pass(const SpecTest& test, const SpeculationOptions& speculation,
                               OpenSpeculation& guesses, std::span<const Token> script,
                               const std::atomic<bool>* cancel) {
    const Model& model = *test.loaded.model;
    Session session =
        RL_TRY(open_session(test.loaded, test.settings, test.context, speculation.outputs(model)));
    RL_TRY(open_speculation(guesses, speculation, test.settings, session));
    SamplerOptions greedy;
    greedy.temperature = 0.0f;
    GenerateOptions generate_options;
    generate_options.max_tokens = int64_t(test.tokens);
    std::optional<ScriptedDrafter> scripted;
    generate_options.drafter = guesses.speculation.get();
    if (test.options.scripted >= 0.0 && guesses.speculation)
        generate_options.drafter = &scripted.emplace(*guesses.speculation, test.options.scripted,
                                                     model.usable_vocab(), test.prompt.size(), script);
    SpecPass pass;
    // Steps of other numbers of rows may round differently than those that wrote the script, so that it can
    // take some passes until a text is that of its script.
    int first = scripted ? -kMostScripts : test.options.warmup ? -1 : 0;
    for (int i = first; i < test.options.repetitions; ++i) {
        Sampler sampler = RL_TRY(make_sampler(model, greedy, true, test.context));
        session.rewind(0);
        RL_TRY(read_prompt(session, sampler, test.prompt, cancel));
        pass.last = RL_TRY(generate(
            session, sampler, generate_options, [](std::string_view) { return true; }, cancel));
        if (pass.last.reason == StopReason::cancelled) return pass;
        if (pass.last.reason != StopReason::max_tokens)
            return error("{}: the text ended behind {} tokens: {}{}", model.gguf().path(),
                         pass.last.tokens.size(), stop_reason_name(pass.last.reason),
                         pass.last.fault.empty() ? "" : ", " + pass.last.fault);
        if (i >= 0) pass.ts.push_back(double(test.tokens - 1) / pass.last.decode_seconds);
        if (scripted && scripted->follow(pass.last.tokens) && i < 0) i = -1;
    }
    return pass;
}

std::string_view spec_type_name(SpeculationType type) {
    constexpr std::string_view kNames[] = {"none", "auto", "ngram-simple", "draft-simple", "draft-mtp"};
    return kNames[size_t(type)];
}

// How many tokens both have before they differ, as steps of several rows may round differently.
uint64_t same_tokens(const SpecPass& a, const SpecPass& b) {
    const auto differ =
        std::mismatch(a.last.tokens.begin(), a.last.tokens.end(), b.last.tokens.begin(), b.last.tokens.end());
    return uint64_t(differ.first - a.last.tokens.begin());
}

Json pass_json(const SpecPass& pass) {
    const Generation& made = pass.last;
    return {{"avg_ts", pass.mean()},
            {"stddev_ts", pass.deviation()},
            {"samples_ts", pass.ts},
            {"steps", pass.steps()},
            {"tokens_per_step", pass.tokens_per_step()},
            {"rounds", made.rounds},
            {"drafted", made.drafted},
            {"accepted", made.accepted},
            {"acceptance", made.drafted > 0 ? Json(double(made.accepted) / double(made.drafted)) : Json()}};
}

std::string pass_row(std::string_view name, const SpecPass& pass, double gain) {
    const Generation& made = pass.last;
    const std::string share =
        made.drafted > 0 ? fmt::format("{:.0f} %", 100.0 * double(made.accepted) / double(made.drafted))
                         : "-";
    return fmt::format("| {} | {:.2f} ± {:.2f} | {:.2f} | {} | {} | {} | {} | {:.2f} |\n", name, pass.mean(),
                       pass.deviation(), gain, made.rounds, made.drafted, made.accepted, share,
                       pass.tokens_per_step());
}

void report_spec(const SpecTest& test, const SpecPass& without, const SpecPass& with, Output& out) {
    const BenchOptions& options = test.options;
    const double gain = with.mean() / without.mean();
    const uint64_t same = same_tokens(without, with);
    const std::string_view type = spec_type_name(options.speculation.type);
    if (options.format == BenchFormat::md) {
        out.write(fmt::format("{}: {} tokens behind the {} of {} on {} ({})\n\n",
                              test.loaded.model->gguf().path(), test.tokens, test.prompt.size(),
                              options.spec_file, test.loaded.device.name(),
                              test.loaded.device.backend->device().name));
        out.write("| speculation | t/s | of none | rounds | guessed | accepted | share | tokens a step |\n");
        out.write("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
        out.write(pass_row("none", without, 1.0) + pass_row(type, with, gain));
        if (options.scripted >= 0.0)
            out.write(fmt::format("\nguesses are made up: each token is right in {:.0f} % of cases\n",
                                  100.0 * options.scripted));
        if (same < test.tokens) out.write(fmt::format("\nthe texts part behind {} tokens\n", same));
        return;
    }
    const std::string& draft = options.speculation.draft_model;
    out.write(to_text(Json{{"model", model_json(test.loaded)},
                           {"device", device_json(test.loaded)},
                           {"spec_type", type},
                           {"spec_draft_model", draft.empty() ? Json() : Json(draft)},
                           {"spec_draft_n_max", options.speculation.drafts(*test.loaded.model)},
                           {"spec_acceptance", options.scripted >= 0.0 ? Json(options.scripted) : Json()},
                           {"n_prompt", test.prompt.size()},
                           {"n_gen", test.tokens},
                           {"without", pass_json(without)},
                           {"with", pass_json(with)},
                           {"gain", gain},
                           {"same_tokens", same}},
                      options.format == BenchFormat::json) +
              "\n");
}

}  // namespace

Result<int> bench_spec(const ModelOptions& model, const BenchOptions& options, Interrupts& interrupts) {
    const std::string text = RL_TRY(read_prompt_file(options.spec_file));
    ModelOptions settings = model;
    settings.cache = options.caches.front();
    settings.head = options.speculation.head();
    LoadedModel loaded = RL_TRY(inspect_model(settings));
    SpeculationOptions speculation = options.speculation;
    OpenSpeculation guesses = RL_TRY(inspect_speculation(speculation, settings, loaded));
    SpecTest test{loaded, options, settings, {}, uint64_t(options.generations.front()), 0};
    test.prompt = loaded.model->tokenizer().encode(text, {.add_special = true, .parse_special = true});
    if (test.prompt.empty()) return error("{} has no text to go on from", options.spec_file);
    test.context = test.prompt.size() + test.tokens;
    RL_TRY(place_model(loaded, settings, test.context, options.speculation.outputs(*loaded.model)));
    OpenSpeculation none;
    Result<SpecPass> without = run_spec_pass(test, {}, none, {}, interrupts.flag());
    if (interrupts.raised()) return interrupts.code();
    if (!without) return without.error();
    Result<SpecPass> with =
        run_spec_pass(test, options.speculation, guesses, without.value().last.tokens, interrupts.flag());
    if (interrupts.raised()) return interrupts.code();
    if (!with) return with.error();
    Output out;
    report_spec(test, without.value(), with.value(), out);
    return out.finish(kDone);
}

}  // namespace redline::cli
