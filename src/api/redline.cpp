// The C interface: every function keeps exceptions and errors in, and says them by redline_error().
#include "api/loading.h"
#include "engine/generate.h"
#include "engine/output_check.h"
#include "grammar/json_schema.h"
#include "json/json.h"
#include "sample/parameters.h"

#include "version_generated.h"

#include <cstring>

using namespace redline;
using api::Loaded;

namespace {

thread_local std::string last_error;

template <typename T, typename Work>
T guarded(T failed, Work&& work) noexcept {
    try {
        Result<T> result = work();
        if (result) return std::move(result).value();
        last_error = std::move(result.error().message);
    } catch (const std::bad_alloc&) {
        last_error = "not enough memory";
    } catch (const std::exception& problem) {
        last_error = problem.what();
    } catch (...) {
        last_error = "an exception of an unknown kind";
    }
    return failed;
}

// The caller's struct may be shorter than ours, not longer.
template <typename T>
Result<T> options_of(const T* given, T taken) {
    if (!given) return taken;
    if (given->size < sizeof(size_t))
        return error(
            "the options have no size: begin them with REDLINE_MODEL_OPTIONS or REDLINE_SAMPLER_OPTIONS");
    if (given->size > sizeof(T))
        return error("the program was compiled for a later version of the library than {}", RL_VERSION);
    std::memcpy(&taken, given, given->size);
    return taken;
}

template <typename T>
int64_t copy_out(std::span<const T> from, T* to, size_t capacity) {
    if (!from.empty() && to) std::memcpy(to, from.data(), std::min(from.size(), capacity) * sizeof(T));
    return int64_t(from.size());
}

Result<Json> messages_of(std::span<const redline_message> given) {
    Json out = Json::array();
    for (const redline_message& message : given) {
        const std::string_view role = message.role ? message.role : "";
        if (!message.text) return error("a message has no text");
        if (role != "system" && role != "user" && role != "assistant")
            return error("the role of a message is system, user or assistant, not \"{}\"", role);
        out.push_back({{"role", role}, {"content", message.text}});
    }
    return out;
}

Result<std::shared_ptr<Constraint>> constraint_of(const Model& model,
                                                  const redline_sampler_options& options) {
    if (options.grammar && options.json_schema) return error("give a grammar or a JSON schema, not both");
    if (!options.grammar && !options.json_schema) return std::shared_ptr<Constraint>();
    const std::string text = options.grammar
                                 ? std::string(options.grammar)
                                 : RL_TRY(grammar_of_schema(options.json_schema, {.strict = true}));
    const Grammar grammar = RL_TRY(Grammar::parse(text));
    return make_constraint(model, grammar);
}

// The members of the struct by the names that the sampler's table of parameters has for them.
using SamplerMember = std::variant<uint32_t redline_sampler_options::*, int32_t redline_sampler_options::*,
                                   float redline_sampler_options::*>;
constexpr std::pair<std::string_view, SamplerMember> kSamplerMembers[] = {
    {"seed", &redline_sampler_options::seed},
    {"temperature", &redline_sampler_options::temperature},
    {"top_k", &redline_sampler_options::top_k},
    {"top_p", &redline_sampler_options::top_p},
    {"min_p", &redline_sampler_options::min_p},
    {"repeat_last_n", &redline_sampler_options::repeat_last_n},
    {"repeat_penalty", &redline_sampler_options::repeat_penalty},
    {"frequency_penalty", &redline_sampler_options::frequency_penalty},
    {"presence_penalty", &redline_sampler_options::presence_penalty},
};

Result<Sampler> make(const Model& model, const redline_sampler_options& options, uint64_t context) {
    SamplerOptions s;
    for (const auto& [name, given] : kSamplerMembers) {
        const Parameter* parameter = find_parameter(name);
        RL_CHECK(parameter, "the sampler has no parameter {}", name);
        const auto copy = [&]<typename T>(T redline_sampler_options::*from) {
            s.*std::get<T SamplerOptions::*>(parameter->member) = options.*from;
        };
        std::visit(copy, given);
        RL_TRY(check_parameter(*parameter, s));
    }
    const std::shared_ptr<Constraint> constraint = RL_TRY(constraint_of(model, options));
    return make_sampler(model, s, false, context, constraint);
}

}  // namespace

struct redline_model {
    std::shared_ptr<Loaded> loaded;
    const Model& model() const { return *loaded->loaded.model; }
    const Tokenizer& tokenizer() const { return model().tokenizer(); }
};

struct redline_session {
    std::shared_ptr<Loaded> loaded;
    std::optional<Session> session;  // set until the destructor
    OutputWatch watch;
    // (vocab rows of the model) after the last token, copied: another thread may have to close the session's
    // engine to open a lost device again. Empty: none.
    std::vector<float> logits;
    std::atomic<bool> cancel = false;

    redline_session(std::shared_ptr<Loaded> of, Session opened)
        : loaded(std::move(of)), session(std::move(opened)), watch(fresh_watch()) {
        loaded->group->join(*session);
    }
    ~redline_session() {
        const SessionGroup::Use use = loaded->group->use();
        loaded->group->leave(*session);
        session.reset();
    }
    // Forgets all but the first `count` tokens, and what was noted of the logits so far.
    uint64_t rewind(uint64_t count) {
        logits.clear();
        watch = fresh_watch();
        return session->rewind(count);
    }
    OutputWatch fresh_watch() const { return OutputWatch(session->model().tokenizer().end_of_generation()); }
    std::span<const float> usable_logits() const {
        return std::span(logits).first(session->model().usable_vocab());
    }
    // Reads tokens, and checks that the logits can be a model's.
    Status feed(std::span<const int32_t> tokens) {
        logits.clear();
        const Status read = session->feed(tokens, &cancel);
        if (cancel.exchange(false) && !read) return error("cancelled");
        RL_TRY(read);
        logits.assign(session->logits().begin(), session->logits().end());
        const Status sound = watch.see(session->tokens().back(), usable_logits(), session->device());
        if (!sound) rewind(0);  // its caches may hold what is not finite
        return sound;
    }
};

struct redline_sampler {
    std::shared_ptr<Loaded> loaded;
    Sampler sampler;
};

int redline_abi_version(void) {
    return REDLINE_ABI_VERSION;
}

const char* redline_version(void) {
    return RL_VERSION;
}

const char* redline_error(void) {
    return last_error.c_str();
}

redline_model* redline_model_load(const char* path, const redline_model_options* options) {
    return guarded<redline_model*>(nullptr, [&]() -> Result<redline_model*> {
        if (!path) return error("no file was given");
        const auto taken = RL_TRY(options_of(options, redline_model_options REDLINE_MODEL_OPTIONS));
        // First, since an error must not leave an object that is half made.
        auto loaded = RL_TRY(api::load(path, taken));
        return new redline_model{std::move(loaded)};
    });
}

void redline_model_free(redline_model* model) {
    delete model;
}

const char* redline_model_device(const redline_model* model) {
    return model ? model->loaded->device.c_str() : "";
}

const char* redline_model_notes(const redline_model* model) {
    return model ? model->loaded->notes.kept().c_str() : "";
}

uint64_t redline_model_context(const redline_model* model) {
    return model ? model->loaded->context : 0;
}

double redline_model_speed(const redline_model* model) {
    return model ? model->loaded->loaded.speed.planned.expected : 0.0;
}

uint32_t redline_model_vocabulary(const redline_model* model) {
    return model ? model->model().usable_vocab() : 0;
}

int64_t redline_tokenize(const redline_model* model, const char* text, size_t length, int flags,
                         int32_t* tokens, size_t capacity) {
    return guarded<int64_t>(-1, [&]() -> Result<int64_t> {
        if (!model || (!text && length > 0)) return error("no {} was given", model ? "text" : "model");
        const std::vector<Token> found = model->tokenizer().encode(
            std::string_view(text ? text : "", length),
            {(flags & REDLINE_ADD_SPECIAL) != 0, (flags & REDLINE_PARSE_SPECIAL) != 0});
        return copy_out<int32_t>(found, tokens, capacity);
    });
}

int64_t redline_chat(const redline_model* model, const redline_message* messages, size_t count,
                     int32_t* tokens, size_t capacity) {
    return guarded<int64_t>(-1, [&]() -> Result<int64_t> {
        if (!model || !messages) return error("no {} was given", model ? "message" : "model");
        Json taken = RL_TRY(messages_of({messages, count}));
        const std::vector<Token> written = RL_TRY(model->loaded->write_chat(std::move(taken)));
        return copy_out<int32_t>(written, tokens, capacity);
    });
}

int64_t redline_piece(const redline_model* model, int32_t token, int flags, char* bytes, size_t capacity) {
    return guarded<int64_t>(-1, [&]() -> Result<int64_t> {
        if (!model) return error("no model was given");
        const std::string piece = model->tokenizer().piece(token, (flags & REDLINE_SHOW_SPECIAL) != 0);
        return copy_out<char>(piece, bytes, capacity);
    });
}

int64_t redline_piece_after(const redline_model* model, int32_t previous, int32_t token, int flags,
                            char* bytes, size_t capacity) {
    return guarded<int64_t>(-1, [&]() -> Result<int64_t> {
        if (!model) return error("no model was given");
        const bool special = (flags & REDLINE_SHOW_SPECIAL) != 0;
        return copy_out<char>(model->tokenizer().piece_after(previous, token, special), bytes, capacity);
    });
}

int redline_is_end(const redline_model* model, int32_t token) {
    return model && model->tokenizer().is_end_of_generation(token);
}

redline_session* redline_session_new(redline_model* model) {
    return guarded<redline_session*>(nullptr, [&]() -> Result<redline_session*> {
        if (!model) return error("no model was given");
        // Two threads must not load the weights of a split model at once.
        const std::lock_guard making(model->loaded->making);
        const SessionGroup::Use use = model->loaded->group->use();
        Session opened = RL_TRY(api::new_session(*model->loaded));
        return new redline_session(model->loaded, std::move(opened));
    });
}

void redline_session_free(redline_session* session) {
    delete session;
}

int redline_feed(redline_session* session, const int32_t* tokens, size_t count) {
    return guarded<int>(-1, [&]() -> Result<int> {
        if (!session || !tokens || count == 0) return error("no {} was given", session ? "token" : "session");
        const SessionGroup::Use use = session->loaded->group->use();
        RL_TRY(session->feed({tokens, count}));
        return 0;
    });
}

const float* redline_logits(const redline_session* session) {
    return session && !session->logits.empty() ? session->logits.data() : nullptr;
}

uint64_t redline_position(const redline_session* session) {
    return session ? session->session->position() : 0;
}

uint64_t redline_rewind(redline_session* session, uint64_t count) {
    if (!session) return 0;
    const SessionGroup::Use use = session->loaded->group->use();
    return session->rewind(count);
}

void redline_cancel(redline_session* session) {
    if (session) session->cancel = true;
}

redline_sampler* redline_sampler_new(const redline_session* session, const redline_sampler_options* options) {
    return guarded<redline_sampler*>(nullptr, [&]() -> Result<redline_sampler*> {
        if (!session) return error("no session was given");
        const auto taken = RL_TRY(options_of(options, redline_sampler_options REDLINE_SAMPLER_OPTIONS));
        auto sampler = RL_TRY(make(*session->loaded->loaded.model, taken, session->session->context()));
        return new redline_sampler{session->loaded, std::move(sampler)};
    });
}

void redline_sampler_free(redline_sampler* sampler) {
    delete sampler;
}

int32_t redline_sample(redline_sampler* sampler, const redline_session* session) {
    return guarded<int32_t>(-1, [&]() -> Result<int32_t> {
        if (!sampler || !session) return error("no {} was given", sampler ? "session" : "sampler");
        if (sampler->loaded != session->loaded)
            return error("the sampler is for another model than the session");
        if (session->logits.empty())
            return error("the session has read no tokens to choose a next one after");
        if (sampler->sampler.finished()) return error("the grammar lets nothing more follow");
        const Token token = RL_TRY(sampler->sampler.sample(session->usable_logits()));
        sampler->sampler.accept(token);
        return token;
    });
}

int redline_note(redline_sampler* sampler, int32_t token) {
    return guarded<int>(-1, [&]() -> Result<int> {
        if (!sampler) return error("no sampler was given");
        if (token < 0 || uint32_t(token) >= sampler->loaded->loaded.model->usable_vocab())
            return error("{} is no token of the model", token);
        sampler->sampler.accept(token);
        return 0;
    });
}

int redline_finished(const redline_sampler* sampler) {
    return sampler && sampler->sampler.finished();
}
