// Shared by all endpoints: the model that is served, the scheduler, and what is worth keeping between
// requests.
#pragma once

#include "host/chat_writer.h"
#include "serve/api/answering.h"
#include "serve/http/router.h"

#include <atomic>
#include <map>
#include <mutex>

namespace redline::serve {

struct ServedModel {
    const Model* model = nullptr;
    std::string name;
    std::string path;
    uint64_t context = 0;     // most tokens of a request
    uint32_t parallel = 1;    // requests that run at a time
    int64_t created = 0;      // seconds since 1970
    std::string build;        // "redline 0.1.0"
    SamplerOptions sampling;  // where a request is silent
    ChatWriterOptions writer;
    int64_t reasoning_budget = -1;  // tokens; -1: no limit
    bool reasoning_content = true;  // the members of messages that have the reasoning: reasoning_content,
    bool reasoning = false;         // reasoning
};

class Service {
public:
    Service(ServedModel model, Answering& answering) : served(std::move(model)), answers(answering) {}

    // A writer of conversations with these settings, to be used by one request.
    Result<ChatWriter> writer(std::optional<bool> thinking, const Json& variables);
    // A constraint for one answer, from a grammar that may have been used before.
    Result<std::shared_ptr<Constraint>> constraint(const std::string& grammar);
    const Tokenizer& tokenizer() const { return served.model->tokenizer(); }

    const ServedModel served;
    Answering& answers;
    std::atomic<bool> draining = false;  // new requests are refused

private:
    // By their grammar, those that nobody uses. Answers may end after the service.
    struct Constraints {
        std::mutex mutex;
        std::multimap<std::string, std::unique_ptr<Constraint>> kept;
    };

    std::mutex mutex_;
    std::map<std::string, ChatWriter> writers_;
    const std::shared_ptr<Constraints> constraints_ = std::make_shared<Constraints>();
};

// A new name of an answer: "chatcmpl-" and 24 letters and digits.
std::string new_id(std::string_view prefix);
int64_t seconds_now();
// "2026-11-29T12:00:00Z"
std::string rfc3339(int64_t seconds);

}  // namespace redline::serve
