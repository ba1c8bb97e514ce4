// redline eval: perplexity of a text, how far a run is from another one, or the logits of all tokens.
#include "cli/commands/eval_divergence.h"
#include "cli/demo_model.h"
#include "cli/npy.h"
#include "cli/options/model_options.h"
#include "cli/perplexity.h"
#include "cli/prompt.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "engine/output_check.h"
#include "host/load_model.h"
#include "json/json.h"

#include <sstream>

namespace redline::cli {

namespace {

struct EvalOptions {
    ModelOptions model;
    PromptSource text;
    std::string ids;
    std::string logits;
    std::string base;      // a file of the probabilities of a run
    bool compare = false;  // with it; else it is written
    bool json = false;
};

Options declare(EvalOptions& eval) {
    Options options("eval", "measure how well a model predicts a text",
                    {"eval MODEL -f TEXT [options]", "eval MODEL --ids FILE --logits OUT.npy",
                     "eval MODEL -f TEXT --kl-divergence-base BASE [--kl-divergence]"});
    options.group("text");
    options.name("-f --file", "FILE", "the text; - is standard input", eval.text.file);
    options.common("the text; - is standard input");
    options.name("--ids", "FILE", "token ids in decimal, apart by white space, in place of a text", eval.ids);
    options.common("token ids in place of a text");
    options.name(
        "--logits", "OUT.npy",
        "write the logits after every token, as float32 (tokens, vocabulary), and score nothing: the tokens, "
        "up to -c of them, are then one sequence, without chunks",
        eval.logits);
    options.common("write logits, and score nothing");
    options.name("--kl-divergence-base", "BASE",
                 "write the probabilities of all scored positions to this file, two bytes for each token of "
                 "the vocabulary, or with --kl-divergence read them",
                 eval.base);
    options.common("write all probabilities, or compare with them");
    options.flag("--kl-divergence",
                 "compare with the run that wrote the file of --kl-divergence-base: KL divergence, the "
                 "probability of the right token, the best token, and the ratio of perplexities",
                 eval.compare);
    options.common("compare with --kl-divergence-base");
    options.flag("--json", "print one JSON object at the end", eval.json);
    options.common("print one JSON object at the end");
    add_model_options(options, eval.model);
    options.word_is("--model");
    add_voice_options(options);
    options.example("redline eval model.gguf -f wiki.test.raw");
    options.example("redline eval model.gguf -f wiki.test.raw -c 2048 --cache-type q8_0");
    options.example("redline eval f16.gguf -f text --kl-divergence-base f16.base");
    options.example("redline eval q4.gguf -f text --kl-divergence-base f16.base --kl-divergence");
    options.remark(
        "The value is that of llama-perplexity: chunks of -c tokens, each from an empty cache and with the "
        "first token replaced by BOS if the model has one, of which the second half is scored. A rest that "
        "fills no chunk is left out.");
    return options;
}

Result<std::vector<Token>> read_ids(const std::string& path) {
    std::istringstream words(RL_TRY(read_text_file(path)));
    std::vector<Token> tokens;
    for (std::string word; words >> word;) {
        const Result<int64_t> id = parse_integer(word, 0, std::numeric_limits<Token>::max());
        if (!id) return error("{}: entry {} is \"{}\", not a token id", path, tokens.size() + 1, word);
        tokens.push_back(Token(id.value()));
    }
    if (tokens.empty()) return error("{} holds no token ids", path);
    return tokens;
}

Result<std::vector<Token>> read_tokens(const EvalOptions& eval, const Model& model) {
    if (!eval.ids.empty()) return read_ids(eval.ids);
    const auto text = RL_TRY(gather_prompt(eval.text));
    if (!text || text->empty()) return error("there is no text to evaluate");
    return model.tokenizer().encode(*text);
}

// Rows of logits per step: they take at most this much memory together.
uint32_t choose_outputs(const Model& model, uint32_t batch) {
    constexpr uint64_t kLogitsBytes = uint64_t(64) << 20;
    return uint32_t(std::clamp<uint64_t>(kLogitsBytes / (uint64_t(model.config().vocab) * 4), 1, batch));
}

Result<int> write_logits(const EvalOptions& eval, Session& session, std::span<const Token> tokens,
                         NpyWriter& out) {
    const Interrupts interrupts;
    const uint64_t vocab = session.model().config().vocab;
    OutputWatch watch(session.model().tokenizer().end_of_generation());
    Status written;
    ProgressLine progress("evaluating", Counted::tokens);
    const auto sink = [&](size_t first, std::span<const float> logits) {
        for (size_t row = 0; written && row < logits.size() / vocab; ++row) {
            const auto of_token = logits.subspan(row * vocab, vocab);
            const Status seen = watch.see(tokens[first + row], of_token, session.device());
            if (!seen) written = error("after token {}: {}", first + row + 1, seen.error().message);
        }
        if (written) written = out.write(logits);
        progress.update(first + logits.size() / vocab, tokens.size());
    };
    const Status read = session.feed_all(tokens, sink, interrupts.flag());
    if (interrupts.raised())
        return fail(error("interrupted; {} is not written", eval.logits), interrupts.code());
    RL_TRY(read);
    RL_TRY(written);
    RL_TRY(out.commit());
    say(fmt::format("{}: logits of {} tokens, {} each", eval.logits, tokens.size(), vocab));
    return kDone;
}

Json describe(const LoadedModel& loaded, const Perplexity& result, uint64_t chunk, double seconds) {
    const uint64_t read = result.running.size() * (chunk - 1);
    return {{"perplexity", result.value()},
            {"uncertainty", result.uncertainty()},
            {"nll", result.nll / double(result.scored)},
            {"tokens_scored", result.scored},
            {"chunks", result.running.size()},
            {"chunk_tokens", chunk},
            {"running", result.running},
            {"seconds", seconds},
            {"tokens_per_second", seconds > 0.0 ? double(read) / seconds : 0.0},
            {"cache_type", cache_types_name(loaded.cache)},
            {"model", model_json(loaded)},
            {"device", device_json(loaded)}};
}

// The run that is written, or compared with; neither without --kl-divergence-base.
struct Base {
    std::optional<BaseRunWriter> writer;
    std::optional<BaseRunReader> reader;
    Divergence divergence;

    Status take(std::span<const float> logits, Token right, const LogSoftmax& softmax) {
        if (writer) return writer->add(logits, right, softmax);
        divergence.add(*RL_TRY(reader->next()), logits, right, softmax);
        return {};
    }
    Status finish() { return writer ? writer->commit() : reader->finish(); }
};

Result<std::optional<Base>> open_base(const EvalOptions& eval) {
    std::optional<Base> base;
    if (eval.base.empty()) return base;
    base.emplace();
    if (eval.compare)
        base->reader.emplace(RL_TRY(BaseRunReader::open(eval.base)));
    else
        base->writer.emplace(RL_TRY(BaseRunWriter::create(eval.base)));
    return base;
}

Status begin_base(const EvalOptions& eval, Base& base, std::span<const Token> tokens, uint64_t chunk,
                  uint32_t vocab) {
    const ScoredText text = scored_text(tokens, chunk, scored_of_chunk(chunk), vocab);
    if (base.reader) return base.reader->check(text);
    say(fmt::format("{} takes {}", eval.base, format_bytes(base_run_bytes(text))));
    return base.writer->begin(text);
}

Result<int> score(const EvalOptions& eval, const LoadedModel& loaded, Session& session,
                  std::span<const Token> tokens, std::optional<Base>& base) {
    const Interrupts interrupts;
    Output out;
    const uint64_t chunk = session.context();
    const auto start = std::chrono::steady_clock::now();
    const auto done = [&](uint64_t number, double running) {
        return eval.json || out.write(fmt::format("[{}]{:.4f},", number, running));
    };
    PositionScored position;
    if (base)
        position = [&](std::span<const float> logits, Token right, const LogSoftmax& softmax) {
            return base->take(logits, right, softmax);
        };
    const uint64_t chunks = tokens.size() / chunk;
    if (chunks > 1)
        say(fmt::format("{} tokens make {} chunks of {}; the last {} are left out", tokens.size(), chunks,
                        chunk, tokens.size() - chunks * chunk));
    const Perplexity result =
        RL_TRY(measure_perplexity(session, tokens, chunk, done, interrupts.flag(), position));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!eval.json && !result.running.empty()) out.write("\n");
    if (result.cancelled)
        return fail(error("interrupted after {} chunks", result.running.size()), interrupts.code());
    // A reader of the output that has gone ends the run early.
    const bool whole = result.running.size() == chunks;
    if (base && whole) RL_TRY(base->finish());
    const Divergence* divergence = base && base->reader && whole ? &base->divergence : nullptr;
    if (eval.json) {
        Json all = describe(loaded, result, chunk, seconds);
        if (divergence) all["divergence"] = divergence_json(*divergence);
        out.write(to_text(all) + "\n");
    } else {
        out.write(
            fmt::format("Final estimate: PPL = {:.4f} +/- {:.5f}\n", result.value(), result.uncertainty()));
        if (divergence) out.write(divergence_text(*divergence));
    }
    say(fmt::format("{} chunks in {:.2f} s, {:.1f} tok/s", result.running.size(), seconds,
                    double(result.running.size() * (chunk - 1)) / seconds));
    return out.finish();
}

Result<int> evaluate(const EvalOptions& eval) {
    LoadedModel loaded = RL_TRY(inspect_model(eval.model));
    const Model& model = *loaded.model;
    // A text may come slowly, from a pipe: what can be refused without it is refused before.
    std::optional<NpyWriter> out;
    if (!eval.logits.empty()) out.emplace(RL_TRY(NpyWriter::create(eval.logits)));
    std::optional<Base> base = RL_TRY(open_base(eval));
    uint64_t context = RL_TRY(choose_context(loaded, eval.model));
    if (!loaded.device.backend) RL_TRY(open_for(loaded, eval.model));
    std::vector<Token> tokens = RL_TRY(read_tokens(eval, model));
    if (out) {
        if (tokens.size() > context)
            note(fmt::format("only the first {} of {} tokens are evaluated; -c N takes more", context,
                             tokens.size()));
        context = std::min<uint64_t>(context, tokens.size());
        tokens.resize(size_t(context));
        RL_TRY(out->write_shape(tokens.size(), model.config().vocab));
    } else {
        RL_TRY(check_chunks(tokens, context));
        if (base) RL_TRY(begin_base(eval, *base, tokens, context, model.config().vocab));
    }
    const uint32_t outputs = choose_outputs(model, batch_of(eval.model, loaded.device.backend->device()));
    note_demo_model(eval.model);
    RL_TRY(place_model(loaded, eval.model, context, outputs));
    Session session = RL_TRY(open_session(loaded, eval.model, context, outputs));
    return out ? write_logits(eval, session, tokens, *out) : score(eval, loaded, session, tokens, base);
}

Status check_together(const EvalOptions& eval) {
    if (eval.compare && eval.base.empty())
        return error(
            "--kl-divergence means nothing without --kl-divergence-base, which names the file of the "
            "run to compare with");
    if (!eval.base.empty() && !eval.logits.empty())
        return error("--kl-divergence-base means nothing with --logits: leave one of them out");
    return {};
}

int run_eval(const std::vector<std::string>& arguments) {
    EvalOptions eval;
    eval.model.default_context = 512;
    Options options = declare(eval);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (eval.text.file.empty() == eval.ids.empty())
        return fail(error("name either a text with -f FILE or token ids with --ids FILE"), kUsage);
    if (eval.logits.empty() && eval.model.context > 0 && uint64_t(eval.model.context) < kLeastChunk)
        return fail(error("-c/--ctx-size is the size of a chunk: take {} or more", kLeastChunk), kUsage);
    Status usage = check_together(eval);
    if (usage) usage = check_model_given(eval.model.model);
    if (usage) usage = settle_device(eval.model);
    if (!usage) return fail(usage.error(), kUsage);
    const Result<int> code = evaluate(eval);
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command eval_command = {"eval", "measure how well a model predicts a text", run_eval};

}  // namespace redline::cli
