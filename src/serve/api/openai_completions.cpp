// POST /v1/completions
#include "serve/api/openai.h"

#include "text/tokens/unicode.h"

namespace redline::serve {

namespace {

struct CompletionFacts {
    Service* service;
    std::string id = new_id("cmpl-");
    int64_t created = seconds_now();
    bool logprobs = false;
    bool usage = false;
    size_t each = 1;  // answers to each prompt

    Json frame() const {
        return {{"id", id},
                {"object", "text_completion"},
                {"created", created},
                {"model", service->served.name},
                {"system_fingerprint", service->served.build}};
    }
};

// The older form: lists by token, and where in the text each begins.
Json completion_logprobs(const Tokenizer& tokenizer, std::span<const TokenLogprobs> all, size_t offset) {
    Json out = {{"tokens", Json::array()},
                {"token_logprobs", Json::array()},
                {"top_logprobs", Json::array()},
                {"text_offset", Json::array()}};
    for (const TokenLogprobs& each : all) {
        const std::string piece = to_valid_utf8(tokenizer.piece(each.chosen.token, true));
        Json top = Json::object();
        for (const TokenLogprobs::One& one : each.top)
            top[to_valid_utf8(tokenizer.piece(one.token, true))] = one.logprob;
        out["tokens"].push_back(piece);
        out["token_logprobs"].push_back(each.chosen.logprob);
        out["top_logprobs"].push_back(std::move(top));
        out["text_offset"].push_back(offset);
        offset += piece.size();
    }
    return out;
}

Json completion_usage(const std::vector<std::vector<Choice>>& prompts) {
    Usage all;
    for (const std::vector<Choice>& answers : prompts) {
        const Usage one = usage_of(answers);
        all.prompt += one.prompt;
        all.cached += one.cached;
        all.generated += one.generated;
    }
    return {{"prompt_tokens", all.prompt},
            {"completion_tokens", all.generated},
            {"total_tokens", all.prompt + all.generated},
            {"prompt_tokens_details", {{"cached_tokens", all.cached}}}};
}

// The answers to all prompts of a request. Each prompt has a listener, which tells this.
class Completions {
public:
    Completions(ExchangePtr exchange, CompletionFacts facts, size_t prompts, bool streams)
        : exchange_(std::move(exchange)),
          facts_(std::move(facts)),
          prompts_(prompts),
          offsets_(prompts * facts_.each),
          streams_(streams) {
        if (streams_) exchange_->stream(sse_head(), kSsePing);
    }

    void piece(size_t index, const std::string& text, std::span<const TokenLogprobs> logprobs) {
        if (!streams_ || failed_) return;
        send(index, text, nullptr, logprobs);
    }
    void ended(size_t index, const Choice& answer) {
        if (streams_ && !failed_) send(index, "", std::string(finish_reason(answer)), {});
    }
    void done(size_t prompt, const std::vector<Choice>& answers) {
        prompts_[prompt] = answers;
        if (++done_ < prompts_.size() || failed_) return;
        if (!streams_) return reply();
        if (facts_.usage) {
            Json out = facts_.frame();
            out["choices"] = Json::array();
            out["usage"] = completion_usage(prompts_);
            exchange_->write(sse(out));
        }
        exchange_->write("data: [DONE]\n\n");
        exchange_->finish();
    }
    void add(std::function<void()> cancel) {
        if (failed_) return cancel();
        cancels_.push_back(std::move(cancel));
    }
    void failed(const Problem& problem) {
        if (std::exchange(failed_, true)) return;
        for (const auto& cancel : cancels_) cancel();
        if (!begun_) return exchange_->reply(problem_reply(Family::openai, problem));
        exchange_->write(fmt::format("data: {}\n\n", problem_text(Family::openai, problem)));
        exchange_->finish();
    }

private:
    void send(size_t index, const std::string& text, const Json& finish,
              std::span<const TokenLogprobs> logprobs) {
        begun_ = true;
        Json out = facts_.frame();
        Json entry = {{"index", index}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", finish}};
        if (!logprobs.empty()) {
            entry["logprobs"] = completion_logprobs(facts_.service->tokenizer(), logprobs, offsets_[index]);
            for (const Json& token : entry["logprobs"]["tokens"])
                offsets_[index] += token.get_ref<const std::string&>().size();
        }
        out["choices"] = Json::array({std::move(entry)});
        exchange_->write(sse(out));
    }
    void reply() {
        Json out = facts_.frame();
        out["choices"] = Json::array();
        for (const std::vector<Choice>& answers : prompts_)
            for (const Choice& answer : answers) {
                Json entry = {{"index", out["choices"].size()},
                              {"text", answer.content},
                              {"logprobs", nullptr},
                              {"finish_reason", std::string(finish_reason(answer))}};
                if (facts_.logprobs)
                    entry["logprobs"] = completion_logprobs(facts_.service->tokenizer(), answer.logprobs, 0);
                out["choices"].push_back(std::move(entry));
            }
        out["usage"] = completion_usage(prompts_);
        out["timings"] = timings_json(prompts_[0][0].end.cost);
        reply_json(exchange_, out);
    }

    const ExchangePtr exchange_;
    const CompletionFacts facts_;
    std::vector<std::vector<Choice>> prompts_;
    std::vector<size_t> offsets_;  // bytes of each answer so far
    const bool streams_;
    std::vector<std::function<void()>> cancels_;
    size_t done_ = 0;
    bool begun_ = false;
    bool failed_ = false;
};

class CompletionListener final : public AnswerListener {
public:
    CompletionListener(std::shared_ptr<Completions> all, size_t prompt, size_t first)
        : all_(std::move(all)), prompt_(prompt), first_(first) {}
    void piece(size_t choice, bool, const std::string& text,
               std::span<const TokenLogprobs> logprobs) override {
        all_->piece(first_ + choice, text, logprobs);
    }
    void ended(size_t choice, const Choice& answer) override { all_->ended(first_ + choice, answer); }
    void done(const std::vector<Choice>& answers) override { all_->done(prompt_, answers); }
    void failed(const Problem& problem) override { all_->failed(problem); }

private:
    const std::shared_ptr<Completions> all_;
    const size_t prompt_, first_;
};

}  // namespace

// A text, a list of texts, a list of tokens, or a list of such lists.
Result<std::vector<std::vector<Token>>> read_prompts(const Json& body, const Service& service) {
    constexpr size_t kMostPrompts = 64;
    const Tokenizer& tokenizer = service.tokenizer();
    const Json* prompt = Fields(body).find("prompt");
    if (!prompt) return error("prompt is missing: it has to be a text, or a list of tokens");
    const auto is_tokens = [](const Json& value) {
        return value.is_array() && !value.empty() && value[0].is_number();
    };
    Json all = Json::array();
    if (prompt->is_string() || is_tokens(*prompt))
        all.push_back(*prompt);
    else if (prompt->is_array())
        all = *prompt;
    if (all.empty() || all.size() > kMostPrompts)
        return error("prompt is {}; it has to be a text, a list of tokens, or a list of up to {} of these",
                     excerpt(*prompt), kMostPrompts);
    std::vector<std::vector<Token>> prompts;
    for (const Json& each : all) {
        if (each.is_string()) {
            // Clients write templates, with their control tokens, as texts.
            prompts.push_back(
                tokenizer.encode(each.get<std::string>(), {.add_special = true, .parse_special = true}));
        } else if (is_tokens(each)) {
            const Json holder = {{"prompt", each}};
            prompts.push_back(RL_TRY(Fields(holder).tokens("prompt", service.served.model->usable_vocab())));
        } else {
            return error("prompt has {}; each has to be a text or a list of tokens", excerpt(each));
        }
        if (prompts.back().empty()) return error("prompt is empty: give it some text");
    }
    return prompts;
}

void answer_completion(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const Wishes wishes = RL_TRY(read_wishes(Fields(body), service));
        const std::vector<std::vector<Token>> prompts = RL_TRY(read_prompts(body, service));
        CompletionFacts facts{.service = &service,
                              .logprobs = wishes.logprobs >= 0,
                              .usage = wishes.usage_in_stream,
                              .each = wishes.count};
        const auto all =
            std::make_shared<Completions>(exchange, std::move(facts), prompts.size(), wishes.stream);
        for (size_t i = 0; i < prompts.size(); ++i) {
            PreparedPrompt prompt;
            prompt.tokens = prompts[i];
            exchange->post([all, cancel = run_answers(service, exchange, prompt, wishes,
                                                      std::make_unique<CompletionListener>(
                                                          all, i, i * wishes.count))] { all->add(cancel); });
        }
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::openai, begun.error());
}

}  // namespace redline::serve
