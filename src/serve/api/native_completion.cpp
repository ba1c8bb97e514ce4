// POST /completion and /infill
#include "serve/api/native.h"

#include "text/tokens/infill.h"
#include "text/tokens/unicode.h"

namespace redline::serve {

namespace {

Json native_probabilities(const Tokenizer& tokenizer, std::span<const TokenLogprobs> all) {
    const auto one = [&](const TokenLogprobs::One& each) -> Json {
        const std::string piece = tokenizer.piece(each.token, true);
        return {{"id", each.token},
                {"token", to_valid_utf8(piece)},
                {"bytes", std::vector<uint8_t>(piece.begin(), piece.end())},
                {"logprob", each.logprob}};
    };
    Json out = Json::array();
    for (const TokenLogprobs& each : all) {
        Json token = one(each.chosen);
        token["top_logprobs"] = Json::array();
        for (const TokenLogprobs::One& top : each.top) token["top_logprobs"].push_back(one(top));
        out.push_back(std::move(token));
    }
    return out;
}

class NativeCompletion final : public AnswerListener {
public:
    NativeCompletion(Service& service, ExchangePtr exchange, bool streams)
        : service_(service), exchange_(std::move(exchange)), streams_(streams) {
        if (streams_) exchange_->stream(sse_head(), kSsePing);
    }

    void piece(size_t, bool, const std::string& text, std::span<const TokenLogprobs> logprobs) override {
        if (!streams_) return;
        Json out = {{"index", 0}, {"content", text}, {"stop", false}, {"id_slot", -1}};
        if (!logprobs.empty())
            out["completion_probabilities"] = native_probabilities(service_.tokenizer(), logprobs);
        begun_ = true;
        exchange_->write(sse(out));
    }
    void done(const std::vector<Choice>& answers) override {
        const Choice& answer = answers[0];
        const AnswerCost& cost = answer.end.cost;
        const bool word = answer.end.reason == StopReason::stop_string;
        Json out = {{"index", 0},
                    {"content", streams_ ? std::string() : answer.content},
                    {"tokens", Json::array()},
                    {"id_slot", -1},
                    {"stop", true},
                    {"model", service_.served.name},
                    {"tokens_predicted", cost.generated_tokens},
                    {"tokens_evaluated", cost.prompt_tokens},
                    {"tokens_cached", cost.prompt_tokens + cost.generated_tokens},
                    {"truncated", false},
                    {"stop_type", is_cut(answer.end) ? "limit"
                                  : word             ? "word"
                                                     : "eos"},
                    {"stopping_word", answer.end.stop},
                    {"timings", timings_json(cost)}};
        if (!streams_ && !answer.logprobs.empty())
            out["completion_probabilities"] = native_probabilities(service_.tokenizer(), answer.logprobs);
        if (!streams_) return reply_json(exchange_, out);
        exchange_->write(sse(out));
        exchange_->finish();
    }
    void failed(const Problem& problem) override {
        if (!begun_) return exchange_->reply(problem_reply(Family::openai, problem));
        exchange_->write(fmt::format("data: {}\n\n", problem_text(Family::openai, problem)));
        exchange_->finish();
    }

private:
    Service& service_;
    const ExchangePtr exchange_;
    const bool streams_;
    bool begun_ = false;
};

void run_native(Service& service, const ExchangePtr& exchange, std::vector<Token> tokens, Wishes wishes) {
    PreparedPrompt prompt;
    prompt.tokens = std::move(tokens);
    wishes.count = 1;
    run_answers(service, exchange, prompt, wishes,
                std::make_unique<NativeCompletion>(service, exchange, wishes.stream));
}

// A text, tokens, or a list in which both are mixed.
Result<std::vector<Token>> native_prompt(const Fields& fields, const Service& service) {
    const Json* prompt = fields.find("prompt");
    const auto wrong = [&] {
        return error("prompt has to be a text, or a list of tokens and texts{}",
                     prompt ? ", not " + excerpt(*prompt) : "");
    };
    const Tokenizer& tokenizer = service.tokenizer();
    if (!prompt) return wrong();
    std::vector<Token> tokens;
    if (prompt->is_string()) {
        // Control tokens in a text are control tokens here, as in llama-server: clients write templates so.
        tokens = tokenizer.encode(prompt->get<std::string>(), {.add_special = true, .parse_special = true});
    } else if (prompt->is_array()) {
        for (const Json& each : *prompt) {
            if (each.is_string()) {
                const bool first = tokens.empty();
                for (const Token token :
                     tokenizer.encode(each.get<std::string>(), {.add_special = first, .parse_special = true}))
                    tokens.push_back(token);
            } else {
                const Json holder = {{"prompt", Json::array({each})}};
                tokens.push_back(
                    RL_TRY(Fields(holder).tokens("prompt", service.served.model->usable_vocab()))[0]);
            }
        }
    } else {
        return wrong();
    }
    if (tokens.empty()) return error("prompt is empty: give it some text");
    return tokens;
}

}  // namespace

void answer_native_completion(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const Fields fields(body);
        Wishes wishes = RL_TRY(read_wishes(fields, service));
        if (wishes.count > 1) return error("n is {}; POST /v1/completions has several answers", wishes.count);
        run_native(service, exchange, RL_TRY(native_prompt(fields, service)), std::move(wishes));
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::openai, begun.error());
}

// The texts of other files stand before the prefix, as models for code were trained with them.
static Result<std::string> extra_files(const Fields& fields) {
    const Json* extra = fields.find("input_extra");
    std::string before;
    if (!extra) return before;
    const auto wrong = [&] {
        return error("input_extra is {}; it has to be a list of objects with filename and text",
                     excerpt(*extra));
    };
    if (!extra->is_array()) return wrong();
    for (const Json& file : *extra) {
        if (!file.is_object()) return wrong();
        const Fields inner(file, "input_extra.");
        before += fmt::format("{}\n{}\n", RL_TRY(inner.text("filename")), RL_TRY(inner.text("text")));
    }
    return before;
}

void answer_infill(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const Fields fields(body);
        const Wishes wishes = RL_TRY(read_wishes(fields, service));
        FimTexts texts{
            RL_TRY(extra_files(fields)) + RL_TRY(fields.text("input_prefix")) + RL_TRY(fields.text("prompt")),
            RL_TRY(fields.text("input_suffix"))};
        const Model& model = *service.served.model;
        const Tokenizer& tokenizer = service.tokenizer();
        const uint64_t context = service.served.context;
        FimPrompt prompt = RL_TRY(write_fim(tokenizer, infill_tokens(model.gguf().metadata(), tokenizer),
                                            texts, true, context, fim_room(context, wishes.max_tokens)));
        run_native(service, exchange, std::move(prompt.tokens), wishes);
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::openai, begun.error());
}

}  // namespace redline::serve
