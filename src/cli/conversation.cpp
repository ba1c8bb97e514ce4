#include "cli/conversation.h"

#include <algorithm>

namespace redline::cli {

Result<std::vector<Token>> Conversation::encode() {
    std::vector<Message> messages;
    if (!system_.empty()) messages.push_back({Role::system, system_});
    for (size_t i = 0; i < turns_.size(); ++i) {
        messages.push_back({Role::user, turns_[i].question});
        if (i + 1 < turns_.size()) messages.push_back({Role::assistant, turns_[i].answer});
    }
    return writer_.encode(messages);
}

// A quarter of the context is kept for the answer, or less when the answer is to be short.
Result<std::vector<Token>> Conversation::make_room(uint64_t& dropped) {
    const uint64_t context = session_.context();
    uint64_t answer = std::max<uint64_t>(1, context / 4);
    if (options_.generate.max_tokens >= 0)
        answer = std::min(answer, std::max<uint64_t>(1, uint64_t(options_.generate.max_tokens)));
    std::vector<Token> tokens = RL_TRY(encode());
    if (options_.policy == ContextPolicy::stop && tokens.size() >= context)
        return error(
            "the conversation, now {} tokens, fills the context of {}: /clear begins anew, -c makes more "
            "room, --context-policy drop forgets the oldest turns",
            tokens.size(), context);
    while (options_.policy == ContextPolicy::drop && turns_.size() > 1 && tokens.size() + answer > context) {
        turns_.erase(turns_.begin());
        ++dropped;
        tokens = RL_TRY(encode());
    }
    if (tokens.size() >= context)
        return error(
            "the message has {} tokens with its surroundings, the context of {} has no room for an answer; "
            "-c makes more",
            tokens.size(), context);
    return tokens;
}

Result<Turn> Conversation::answer(const TextSink& sink, const std::atomic<bool>* cancel) {
    Turn turn;
    const std::vector<Token> tokens = RL_TRY(make_room(turn.dropped));
    SamplerOptions sampling = options_.sampling.sampler;
    sampling.seed += answers_;
    if (sampling.seed == SamplerOptions().seed) sampling.seed = 0;  // that one means random
    Sampler sampler =
        RL_TRY(make_sampler(session_.model(), sampling, options_.sampling.ignore_eos, session_.context()));
    turn.prompt = RL_TRY(read_prompt(session_, sampler, tokens, cancel));
    turn.generation = RL_TRY(generate(session_, sampler, options_.generate, sink, cancel));
    ++answers_;
    return turn;
}

Result<Turn> Conversation::ask(const std::string& text, const TextSink& sink,
                               const std::atomic<bool>* cancel) {
    turns_.push_back({text, {}});
    Result<Turn> turn = answer(sink, cancel);
    const bool nothing =
        turn.ok() && turn->generation.reason == StopReason::cancelled && turn->generation.text.empty();
    if (turn.ok() && !nothing)
        turns_.back().answer = turn->generation.text;
    else
        turns_.pop_back();
    return turn;
}

Result<Turn> Conversation::again(const TextSink& sink, const std::atomic<bool>* cancel) {
    if (turns_.empty()) return error("there is no answer yet");
    Result<Turn> turn = answer(sink, cancel);
    if (turn.ok() && !turn->generation.text.empty()) turns_.back().answer = turn->generation.text;
    return turn;
}

}  // namespace redline::cli
