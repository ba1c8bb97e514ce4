// The generation loop: reasons to stop, text in whole characters, prompts from the cache, shifts, and faults.
#include "engine/generate.h"
#include "engine/output_check.h"
#include "support/chain_model.h"
#include "support/models.h"
#include "text/tokens/unicode.h"

using namespace redline;
using namespace redline::test;

namespace {

// A loaded chain model with a session.
struct Bed {
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Model> model;
    std::unique_ptr<Session> session;
};

Bed bed(const ChainModel& chain = {}, uint64_t context = 64) {
    const std::string path = temporary("chain.gguf");
    chain.build().save(path);
    Bed out;
    out.backend = redline::test::cpu(1);
    out.model = std::make_unique<Model>(must(Model::load(path, *out.backend, {context, {}})));
    out.session = std::make_unique<Session>(must(Session::create(*out.model, {context, 16})));
    std::filesystem::remove(path);
    return out;
}

SamplerOptions greedy() {
    SamplerOptions options;
    options.temperature = 0.0f;
    return options;
}

struct Told {
    PromptResult prompt;
    Generation generation;
    std::vector<std::string> pieces;  // as the sink got them
};

Told run(Bed& b, const std::string& prompt, const GenerateOptions& options = {},
         const SamplerOptions& how = greedy(), bool ignore_eos = false) {
    Sampler sampler = must(make_sampler(*b.model, how, ignore_eos, b.session->context()));
    Told out;
    out.prompt = must(read_prompt(*b.session, sampler, b.model->tokenizer().encode(prompt)));
    const TextSink sink = [&](std::string_view piece) {
        out.pieces.emplace_back(piece);
        return true;
    };
    out.generation = must(generate(*b.session, sampler, options, sink));
    return out;
}

GenerateOptions at_most(int64_t tokens) {
    GenerateOptions options;
    options.max_tokens = tokens;
    return options;
}

}  // namespace

TEST_CASE("generate: goes on until the model ends the text, and counts what it did") {
    Bed b = bed();
    const Told r = run(b, "a");
    CHECK(r.generation.text == ChainModel::kWholeText);
    CHECK(r.generation.reason == StopReason::end_of_generation);
    CHECK(r.prompt.tokens == 2);  // with BOS
    CHECK(r.prompt.reused == 0);
    CHECK(r.generation.tokens.size() == 29);
    CHECK(r.generation.steps == 29);
    // Positions 3 to 31 in turn.
    CHECK(r.generation.context_sum == 29 * (3 + 31) / 2);
    CHECK(b.session->position() == 31);
    CHECK(r.generation.first_token_seconds > 0.0);
    CHECK(r.generation.decode_seconds > 0.0);
}

TEST_CASE("generate: the sink gets whole characters, though their bytes are three tokens") {
    Bed b = bed();
    const Told r = run(b, "x");
    std::string joined;
    for (const std::string& piece : r.pieces) {
        CHECK_MESSAGE(is_valid_utf8(piece), "piece of ", piece.size(), " bytes");
        joined += piece;
    }
    CHECK(joined == "yz\xE2\x82\xAC!");
    CHECK(joined == r.generation.text);
}

TEST_CASE("generate: a character that is cut off by the token limit becomes a replacement character") {
    Bed b = bed();
    CHECK(run(b, "y", at_most(3)).generation.text == "z\xEF\xBF\xBD");
}

TEST_CASE("generate: no more tokens than asked for, and none at all for 0") {
    Bed b = bed();
    const Told three = run(b, "a", at_most(3));
    CHECK(three.generation.text == "bcd");
    CHECK(three.generation.reason == StopReason::max_tokens);
    CHECK(three.generation.steps == 2);  // the third was not read
    const Told none = run(b, "abc", at_most(0));
    CHECK(none.generation.text.empty());
    CHECK(none.generation.reason == StopReason::max_tokens);
    CHECK(b.session->position() == 4);
}

TEST_CASE("generate: a stop token ends the text like those of the tokenizer, and is not part of it") {
    Bed b = bed();
    GenerateOptions options;
    options.stop_tokens = {ChainModel::kLetterA + 4};
    const Generation g = run(b, "a", options).generation;
    CHECK(g.text == "bcd");
    CHECK(g.reason == StopReason::end_of_generation);
    CHECK(g.tokens.size() == 3);
}

TEST_CASE("generate: before so many tokens as are wanted at least, none is chosen that ends the text") {
    Bed b = bed();
    GenerateOptions options = at_most(12);
    options.min_tokens = 8;
    options.stop_tokens = {ChainModel::kLetterA + 4};
    // The best token that does not end it follows in place of the stop token.
    const Generation g = run(b, "a", options).generation;
    CHECK(g.text.substr(0, 3) == "bcd");
    CHECK(g.tokens.size() >= 8);
    const Generation end = run(b, "!", options).generation;
    CHECK(end.tokens.size() >= 8);
}

TEST_CASE("generate: the text ends before a stop string, of which nothing reaches the sink") {
    Bed b = bed();
    GenerateOptions options;
    options.stops = {"zzz", "klm"};
    const Told r = run(b, "a", options);
    CHECK(r.generation.text == "bcdefghij");
    CHECK(r.generation.reason == StopReason::stop_string);
    CHECK(r.generation.stop == "klm");
    std::string joined;
    for (const std::string& piece : r.pieces) joined += piece;
    CHECK(joined == "bcdefghij");
}

TEST_CASE("generate: the beginning of a stop string that does not complete is text after all") {
    Bed b = bed();
    GenerateOptions options = at_most(4);
    options.stops = {"defgh"};
    CHECK(run(b, "a", options).generation.text == "bcde");
    CHECK(run(b, "a", options).generation.reason == StopReason::max_tokens);
}

TEST_CASE("generate: a full context ends the text, or is shifted when asked to") {
    Bed b = bed({}, 8);
    const Told stopped = run(b, "ab");
    CHECK(stopped.generation.reason == StopReason::context_full);
    // Three tokens of prompt, five read after it, and the one that the last of them gives.
    CHECK(stopped.generation.text == "cdefgh");
    CHECK(b.session->position() == 8);

    GenerateOptions options;
    options.when_full = WhenFull::shift;
    options.keep = 3;
    const Told shifted = run(b, "ab", options);
    CHECK(shifted.generation.reason == StopReason::end_of_generation);
    CHECK(shifted.generation.text == std::string(ChainModel::kWholeText).substr(1));
    CHECK(shifted.generation.shifts > 3);
    const std::vector<Token> kept(b.session->tokens().begin(), b.session->tokens().begin() + 3);
    CHECK(kept == b.model->tokenizer().encode("ab"));
}

TEST_CASE("generate: a shift works at the smallest contexts, and when all is to be kept") {
    GenerateOptions options = at_most(20);
    options.when_full = WhenFull::shift;
    for (const uint64_t context : {1u, 2u, 3u, 5u})
        for (const uint64_t keep : {0u, 1u, 1000u}) {
            INFO("context ", context, ", keep ", keep);
            Bed b = bed({}, context);
            options.keep = keep;
            const Told r = run(b, "", options);  // BOS alone
            CHECK(r.generation.text == "abcdefghijklmnopqrst");
            CHECK(b.session->position() <= context);
        }
}

TEST_CASE("generate: cancelling keeps the text so far") {
    Bed b = bed();
    Sampler sampler = must(make_sampler(*b.model, greedy(), false, 64));
    std::atomic<bool> cancel = false;
    must(read_prompt(*b.session, sampler, b.model->tokenizer().encode("a"), &cancel));
    int pieces = 0;
    const TextSink sink = [&](std::string_view) {
        cancel = ++pieces == 5;
        return true;
    };
    const Generation g = must(generate(*b.session, sampler, {}, sink, &cancel));
    CHECK(g.reason == StopReason::cancelled);
    CHECK(g.text == "bcdef");

    const PromptResult again =
        must(read_prompt(*b.session, sampler, b.model->tokenizer().encode("xyz"), &cancel));
    CHECK(again.cancelled);
    CHECK(must(generate(*b.session, sampler, {}, sink, &cancel)).reason == StopReason::cancelled);
}

TEST_CASE("generate: a sink that wants no more ends it") {
    Bed b = bed();
    Sampler sampler = must(make_sampler(*b.model, greedy(), false, 64));
    must(read_prompt(*b.session, sampler, b.model->tokenizer().encode("a")));
    int pieces = 0;
    const Generation g =
        must(generate(*b.session, sampler, {}, [&](std::string_view) { return ++pieces < 3; }));
    CHECK(g.reason == StopReason::sink_closed);
    CHECK(pieces == 3);
    CHECK(g.text == "bcd");
}

TEST_CASE("generate: ignore_eos never chooses a token that ends the text") {
    Bed b = bed();
    const Told r = run(b, "z", at_most(30), greedy(), true);
    CHECK(r.generation.reason == StopReason::max_tokens);
    CHECK(r.generation.tokens.size() == 30);
    for (const Token token : r.generation.tokens)
        CHECK_FALSE(b.model->tokenizer().is_end_of_generation(token));
}

TEST_CASE("generate: penalties see the prompt") {
    Bed b = bed();
    SamplerOptions penal = greedy();
    CHECK(run(b, "cab", at_most(1), penal).generation.text == "c");
    penal.presence_penalty = 100.0f;
    CHECK(run(b, "cab", at_most(1), penal).generation.text != "c");
    // The prompt counts even where it comes from the cache.
    CHECK(run(b, "cab", at_most(1), penal).generation.text != "c");
    penal.repeat_last_n = 2;
    CHECK(run(b, "cab", at_most(1), penal).generation.text == "c");
}

TEST_CASE("generate: control tokens are shown on request only") {
    ChainModel chain;
    chain.next[ChainModel::kLetterA] = ChainModel::kBos;
    chain.next[ChainModel::kBos] = ChainModel::kLetterA + 2;
    Bed b = bed(chain);
    CHECK(run(b, "a", at_most(2)).generation.text == "c");
    GenerateOptions options = at_most(2);
    options.show_special = true;
    CHECK(run(b, "a", options).generation.text == "<s>c");
}

TEST_CASE("generate: rows of the embedding that no token has are never chosen") {
    ChainModel chain;
    chain.rows = ChainModel::kVocab + 7;
    chain.next[ChainModel::kLetterA] = ChainModel::kVocab + 3;
    Bed b = bed(chain);
    REQUIRE(b.model->usable_vocab() == uint32_t(ChainModel::kVocab));
    for (const Token token : run(b, "a", at_most(5)).generation.tokens) CHECK(token < ChainModel::kVocab);
}

TEST_CASE("generate: logits that are no numbers are an error") {
    ChainModel chain;
    chain.gain = std::numeric_limits<float>::quiet_NaN();
    Bed b = bed(chain);
    Sampler sampler = must(make_sampler(*b.model, greedy(), false, 64));
    const auto prompt = b.model->tokenizer().encode("a");
    const Result<PromptResult> read = read_prompt(*b.session, sampler, prompt);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().message.find("logit 0 is nan: the model file is damaged") == 0);
    CHECK(b.session->position() == 0);
}

TEST_CASE("generate: logits that are no numbers end the text, which is kept, and empty the session") {
    for (const float temperature : {0.0f, 1.0f}) {
        ChainModel chain;
        chain.broken = ChainModel::kLetterA + 2;
        Bed b = bed(chain);
        SamplerOptions how = greedy();
        how.temperature = temperature;
        const Told r = run(b, "a", {}, how);
        CHECK(r.generation.reason == StopReason::broken);
        CHECK(r.generation.text == "bc");
        CHECK(r.generation.fault.find(" is nan: the model file is damaged") != std::string::npos);
        CHECK(b.session->position() == 0);
        // In a prompt, wherever it is.
        Sampler sampler = must(make_sampler(*b.model, how, false, 64));
        const auto prompt = b.model->tokenizer().encode("abcabaababaabababab");
        REQUIRE(prompt.size() > b.session->batch());
        const Result<PromptResult> read = read_prompt(*b.session, sampler, prompt);
        REQUIRE_FALSE(read.ok());
        CHECK(b.session->position() == 0);
    }
}

TEST_CASE("generate: a model that is certain of one token for ever is broken; one that repeats text is not") {
    const auto said = [](const ChainModel& chain, const std::string& prompt, bool ignore_eos = false) {
        Bed b = bed(chain);
        return run(b, prompt, at_most(60), greedy(), ignore_eos).generation;
    };
    ChainModel chain;
    chain.gain = 4.0f;  // its logits are 0 and 71: all but one token have 1e-29 of the probability
    for (auto& [from, to] : chain.next) to = ChainModel::kLetterA;
    const Generation broken = said(chain, "ab");
    CHECK(broken.reason == StopReason::broken);
    CHECK(broken.text == std::string(OutputWatch::kMostCertain - 1, 'a'));
    CHECK(broken.fault.find("certain of token 3 for 32 tokens in a row") != std::string::npos);
    // The last token read was that one: the text repeats.
    CHECK(said(chain, "aa").reason == StopReason::max_tokens);
    // It is not as certain: all others have 5e-6 of the probability.
    ChainModel unsure = chain;
    unsure.gain = 1.0f;
    CHECK(said(unsure, "ab").reason == StopReason::max_tokens);
    // Two tokens in turn.
    ChainModel turns = chain;
    turns.next[ChainModel::kLetterA] = ChainModel::kLetterA + 1;
    CHECK(said(turns, "ab").reason == StopReason::max_tokens);
    // The end of the text, again and again, where it is not allowed.
    ChainModel ends = chain;
    for (auto& [from, to] : ends.next) to = ChainModel::kEos;
    CHECK(said(ends, "ab", true).reason == StopReason::max_tokens);
}

TEST_CASE(
    "read_prompt: reads only what the cache does not hold, and the logits are those of a fresh session") {
    const auto backend = redline::test::cpu(1);
    const Model model = must(Model::load(golden("models/llama3.gguf"), *backend, {64, {}}));
    const std::vector<Token> tokens = golden_tokens();
    REQUIRE(tokens.size() > 20);
    std::vector<Token> other(tokens.begin(), tokens.begin() + 20);
    other[12] = (other[12] + 1) % Token(model.usable_vocab());

    Session fresh = must(Session::create(model, {64, 16}));
    Session used = must(Session::create(model, {64, 16}));
    Sampler sampler = must(make_sampler(model, greedy(), false, 64));
    must(read_prompt(fresh, sampler, other));
    must(read_prompt(used, sampler, tokens));
    const PromptResult changed = must(read_prompt(used, sampler, other));
    CHECK(changed.tokens == 20);
    CHECK(changed.reused == 12);
    CHECK(used.tokens() == other);
    CHECK(relative_error(used.logits(), fresh.logits()) < chunk_bound(model, {64, 16, 1}, other));

    // The same again: the last token is read once more, for its logits.
    CHECK(must(read_prompt(used, sampler, other)).reused == 19);
    // A beginning of it.
    CHECK(must(read_prompt(used, sampler, std::span(other).first(5))).reused == 4);
    CHECK(used.position() == 5);
}

TEST_CASE("read_prompt: an empty prompt and one that is too long are errors that say what to do") {
    Bed b = bed({}, 4);
    Sampler sampler = must(make_sampler(*b.model, greedy(), false, 4));
    CHECK_FALSE(read_prompt(*b.session, sampler, {}).ok());
    const Result<PromptResult> long_one =
        read_prompt(*b.session, sampler, b.model->tokenizer().encode("abcd"));
    REQUIRE_FALSE(long_one.ok());
    CHECK(long_one.error().message.find("5 tokens") != std::string::npos);
    CHECK(long_one.error().message.find("-c") != std::string::npos);
    // A prompt that fills the context still gives one token.
    const Told r = run(b, "abc");
    CHECK(r.generation.text == "d");
    CHECK(r.generation.reason == StopReason::context_full);
}

TEST_CASE("generate: a seed gives the same text again, another seed another one") {
    Bed b = bed();
    SamplerOptions hot;
    hot.temperature = 30.0f;
    hot.top_k = 0;
    hot.top_p = 1.0f;
    hot.min_p = 0.0f;
    hot.seed = 7;
    const std::vector<Token> first = run(b, "a", at_most(20), hot).generation.tokens;
    CHECK(run(b, "a", at_most(20), hot).generation.tokens == first);
    hot.seed = 8;
    CHECK(run(b, "a", at_most(20), hot).generation.tokens != first);
}

TEST_CASE("make_sampler: options that make no sense are errors; dry breakers come from the vocabulary") {
    Bed b = bed();
    SamplerOptions options = greedy();
    options.logit_bias = {{ChainModel::kVocab, 1.0f}};
    CHECK_FALSE(make_sampler(*b.model, options, false, 64).ok());
    options = greedy();
    options.dry_multiplier = 100.0f;
    options.dry_allowed_length = 1;
    options.dry_penalty_last_n = -1;
    // "abcab" would go on with "c", which repeats "ab" + "c".
    CHECK(run(b, "abcab", at_most(1), options).generation.text != "c");
    options.dry_sequence_breakers = {"b"};
    CHECK(run(b, "abcab", at_most(1), options).generation.text == "c");
}

TEST_CASE("generate: control tokens that are asked for are written out, and forced tokens come next") {
    ChainModel chain;
    chain.chat = true;
    chain.next[ChainModel::kLetterA + 1] =
        ChainModel::kStart;  // "b" is followed by <|im_start|>, which by "a"
    Bed b = bed(chain);
    CHECK(run(b, "a", at_most(4)).generation.text == "bab");
    GenerateOptions shown = at_most(4);
    shown.shown = {ChainModel::kStart};
    CHECK(run(b, "a", shown).generation.text == "b<|im_start|>ab");

    GenerateOptions forced = at_most(5);
    int asked = 0;
    forced.forced = [&asked]() -> std::vector<Token> {
        if (++asked != 2) return {};
        return {ChainModel::kLetterA + 23, ChainModel::kLetterA + 6};
    };
    // After the two the model goes on from the last of them.
    CHECK(run(b, "d", forced).generation.text == "exghi");
}

TEST_CASE("generate: a grammar holds the text, and ends it where nothing more may follow") {
    Bed b = bed();
    const auto constrained = [&](std::string_view grammar, const GenerateOptions& options, bool ignore_eos) {
        const auto constraint = must(make_constraint(*b.model, must(Grammar::parse(grammar))));
        Sampler sampler = must(make_sampler(*b.model, greedy(), ignore_eos, 64, constraint));
        must(read_prompt(*b.session, sampler, b.model->tokenizer().encode("a")));
        return must(generate(*b.session, sampler, options, {}));
    };
    for (const bool ignore_eos : {false, true}) {
        const Generation g = constrained("root ::= \"bc\" [d-x]", at_most(3), ignore_eos);
        CHECK(g.text == "bcd");
        CHECK(g.reason == StopReason::end_of_generation);
    }
    const Generation other = constrained("root ::= [x-z]{2} \"!\"", {}, false);
    CHECK(other.text.size() == 3);
    CHECK(other.reason == StopReason::end_of_generation);
    CHECK(constrained("root ::= [b-z]*", at_most(4), false).reason == StopReason::max_tokens);
    CHECK(constrained("root ::= \"\"", {}, false).text.empty());
}

TEST_CASE("generate: log probabilities are those of the model's logits, and the likeliest come first") {
    const std::vector<float> logits = {0.0f, std::log(2.0f), std::log(5.0f), -INFINITY};
    const TokenLogprobs one = token_logprobs(logits, 0, 2);
    CHECK(one.chosen.logprob == doctest::Approx(std::log(1.0 / 8)));
    REQUIRE(one.top.size() == 2);
    CHECK(one.top[0].token == 2);
    CHECK(one.top[0].logprob == doctest::Approx(std::log(5.0 / 8)));
    CHECK(one.top[1].token == 1);
    Bed b = bed();
    GenerateOptions options = at_most(4);
    options.logprobs = 3;
    const Generation g = run(b, "a", options).generation;
    REQUIRE(g.logprobs.size() == g.tokens.size());
    for (size_t i = 0; i < g.tokens.size(); ++i) {
        CHECK(g.logprobs[i].chosen.token == g.tokens[i]);
        CHECK(g.logprobs[i].top.size() == 3);
        CHECK(g.logprobs[i].top[0].token == g.tokens[i]);  // greedy
        CHECK(g.logprobs[i].chosen.logprob <= 0.0);
    }
    CHECK(run(b, "a", at_most(4)).generation.logprobs.empty());
}
