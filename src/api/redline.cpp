// The C interface: every function keeps exceptions and errors in, and says them by redline_error().
#include "api/redline.h"

#include "devices/device_choice.h"
#include "engine/generate.h"
#include "engine/output_check.h"
#include "grammar/json_schema.h"
#include "measure/kernel_verdicts.h"
#include "text/chat/chat_template.h"

#include "version_generated.h"

#include <atomic>
#include <cstring>
#include <ctime>

using namespace redline;

namespace {

// The model goes before the backend that its weights are on.
struct Loaded {
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Model> model;
    SessionOptions session;
    std::string device;
    std::string notes;  // lines
};

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

Result<CacheType> cache_type(const char* name) {
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32})
        if (!name || cache_type_name(type) == name) return type;
    return error("cache_type is f16, q8_0 or f32, not \"{}\"", name);
}

template <typename T>
int64_t copy_out(std::span<const T> from, T* to, size_t capacity) {
    if (!from.empty() && to) std::memcpy(to, from.data(), std::min(from.size(), capacity) * sizeof(T));
    return int64_t(from.size());
}

Result<std::vector<Message>> messages_of(std::span<const redline_message> given) {
    std::vector<Message> out;
    for (const redline_message& message : given) {
        const std::string_view role = message.role ? message.role : "";
        if (!message.text) return error("a message has no text");
        if (role != "system" && role != "user" && role != "assistant")
            return error("the role of a message is system, user or assistant, not \"{}\"", role);
        out.push_back({role == "system" ? Role::system
                       : role == "user" ? Role::user
                                        : Role::assistant,
                       message.text});
    }
    return out;
}

Result<std::vector<Token>> write_chat(const Model& model, const std::vector<Message>& messages) {
    const Metadata& metadata = model.gguf().metadata();
    const std::optional<ChatTemplate> own = RL_TRY(ChatTemplate::of(metadata));
    if (!own)
        return RL_TRY(ChatFormat::detect(metadata, model.tokenizer())).encode(model.tokenizer(), messages);
    TemplateInput input;
    input.messages = messages_json(messages);
    const std::time_t now = std::time(nullptr);
    localtime_r(&now, &input.now);
    return own->encode(model.tokenizer(), input);
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

Result<Sampler> make(const Model& model, const redline_sampler_options& options, uint64_t context) {
    SamplerOptions s;
    s.seed = options.seed;
    s.temperature = options.temperature;
    s.top_k = options.top_k;
    s.top_p = options.top_p;
    s.min_p = options.min_p;
    s.repeat_last_n = options.repeat_last_n;
    s.repeat_penalty = options.repeat_penalty;
    s.frequency_penalty = options.frequency_penalty;
    s.presence_penalty = options.presence_penalty;
    const std::shared_ptr<Constraint> constraint = RL_TRY(constraint_of(model, options));
    return make_sampler(model, s, false, context, constraint);
}

Status open(Loaded& loaded, const DeviceChoice& choice, const redline_model_options& options) {
    loaded.backend.reset();  // both may not fit
    loaded.backend = RL_TRY(
        open_backend(choice.backend, {.threads = options.threads,
                                      .device = choice.device,
                                      .cache_folder = options.cache_folder ? options.cache_folder : ""}));
    const DeviceInfo& device = loaded.backend->device();
    SessionOptions& session = loaded.session;
    const uint64_t most = loaded.model->config().train_context;
    session.context = options.context > 0 ? options.context : std::min<uint64_t>(4096, most);
    session.batch = options.batch > 0 ? options.batch : usual_batch(device);
    session.cache = RL_TRY(cache_type(options.cache_type));
    return {};
}

void add_note(Loaded& loaded, const std::string& text) {
    loaded.notes += text + "\n";
}

// Then: what the device cannot run, if anything.
std::optional<Error> check_kernels(Loaded& loaded, const std::string& id,
                                   const redline_model_options& options) {
    const bool wanted =
        options.kernel_check > 0 || (options.kernel_check == 0 && !loaded.backend->device().on_cpu);
    if (id == "cpu" || !wanted) return {};
    Result<CheckedKernels> checked =
        redline::check_kernels(*loaded.model, *loaded.backend, loaded.session,
                               options.cache_folder ? options.cache_folder : "", options.kernel_check > 0);
    if (!checked) {
        add_note(loaded, fmt::format("{}'s kernels could not be checked: {}", id, checked.error().message));
        return {};
    }
    CheckedKernels& kernels = checked.value();
    for (const WrongKernel& kernel : kernels.found.wrong) kernels.before.wrong[kernel.key] = kernel.what;
    if (const auto& wrong = kernels.before.wrong; !wrong.empty())
        add_note(loaded,
                 put_aside_text(wrong.size(), id, wrong.begin()->first) + ": " + wrong.begin()->second + ")");
    return std::move(kernels.found.lost);
}

// Opens what was asked for, or the best device whose kernels are right.
Status open_checked(Loaded& loaded, DeviceChoice choice, const redline_model_options& options) {
    while (true) {
        RL_TRY(open(loaded, choice, options));
        const std::optional<Error> lost = check_kernels(loaded, choice.backend, options);
        if (!lost) return {};
        const std::optional<DeviceChoice> next =
            choice.why.empty() ? std::optional<DeviceChoice>() : next_choice(choice);
        if (!next) return error("{}; kernel_check = -1 runs it all the same", lost->message);
        add_note(loaded, fmt::format("{}: {} is taken", lost->message, next->backend));
        choice = *next;
    }
}

Result<std::shared_ptr<Loaded>> load(const std::string& path, const redline_model_options& options) {
    const DeviceChoice choice = RL_TRY(choose_device(options.device ? options.device : ""));
    auto loaded = std::make_shared<Loaded>();
    loaded->model = std::make_unique<Model>(RL_TRY(Model::inspect(path, options.context)));
    RL_TRY(open_checked(*loaded, choice, options));
    const DeviceInfo& device = loaded->backend->device();
    const SessionOptions& session = loaded->session;
    // What does not fit is said before gigabytes are read.
    const MemoryNeed need = RL_TRY(memory_need(*loaded->model, *loaded->backend, session));
    RL_TRY(check_fits(need, *loaded->model, device, session.context));
    RL_TRY(loaded->model->place(*loaded->backend, {}));
    loaded->device = device.name;
    return loaded;
}

}  // namespace

struct redline_model {
    std::shared_ptr<Loaded> loaded;
    const Tokenizer& tokenizer() const { return loaded->model->tokenizer(); }
};

struct redline_session {
    std::shared_ptr<Loaded> loaded;
    Session session;
    OutputWatch watch;
    bool has_logits = false;
    std::atomic<bool> cancel = false;

    // Forgets all but the first `count` tokens, and what was noted of the logits so far.
    uint64_t rewind(uint64_t count) {
        has_logits = false;
        watch = watch_of(session);
        return session.rewind(count);
    }
    static OutputWatch watch_of(const Session& session) {
        return OutputWatch(session.model().tokenizer().end_of_generation());
    }
    // Whether the logits can be a model's.
    Status check() {
        const size_t usable = session.model().usable_vocab();
        return watch.see(session.tokens().back(), session.logits().first(usable), session.device());
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
        auto loaded = RL_TRY(load(path, taken));
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
    return model ? model->loaded->notes.c_str() : "";
}

uint64_t redline_model_context(const redline_model* model) {
    return model ? model->loaded->session.context : 0;
}

uint32_t redline_model_vocabulary(const redline_model* model) {
    return model ? model->loaded->model->usable_vocab() : 0;
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
        const std::vector<Message> taken = RL_TRY(messages_of({messages, count}));
        const std::vector<Token> written = RL_TRY(write_chat(*model->loaded->model, taken));
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
        auto session = RL_TRY(Session::create(*model->loaded->model, model->loaded->session));
        OutputWatch watch = redline_session::watch_of(session);
        return new redline_session{model->loaded, std::move(session), std::move(watch)};
    });
}

void redline_session_free(redline_session* session) {
    delete session;
}

int redline_feed(redline_session* session, const int32_t* tokens, size_t count) {
    return guarded<int>(-1, [&]() -> Result<int> {
        if (!session || !tokens || count == 0) return error("no {} was given", session ? "token" : "session");
        const Status read = session->session.feed({tokens, count}, &session->cancel);
        session->has_logits = read.ok();
        if (session->cancel.exchange(false) && !read) return error("cancelled");
        if (!read) return read.error();
        if (const Status sound = session->check(); !sound) {
            session->rewind(0);  // its caches may hold what is not finite
            return sound.error();
        }
        return 0;
    });
}

const float* redline_logits(const redline_session* session) {
    return session && session->has_logits ? session->session.logits().data() : nullptr;
}

uint64_t redline_position(const redline_session* session) {
    return session ? session->session.position() : 0;
}

uint64_t redline_rewind(redline_session* session, uint64_t count) {
    return session ? session->rewind(count) : 0;
}

void redline_cancel(redline_session* session) {
    if (session) session->cancel = true;
}

redline_sampler* redline_sampler_new(const redline_session* session, const redline_sampler_options* options) {
    return guarded<redline_sampler*>(nullptr, [&]() -> Result<redline_sampler*> {
        if (!session) return error("no session was given");
        const auto taken = RL_TRY(options_of(options, redline_sampler_options REDLINE_SAMPLER_OPTIONS));
        auto sampler = RL_TRY(make(*session->loaded->model, taken, session->session.context()));
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
        if (!session->has_logits) return error("the session has read no tokens to choose a next one after");
        if (sampler->sampler.finished()) return error("the grammar lets nothing more follow");
        const uint32_t usable = session->loaded->model->usable_vocab();
        const Token token = RL_TRY(sampler->sampler.sample(session->session.logits().first(usable)));
        sampler->sampler.accept(token);
        return token;
    });
}

int redline_note(redline_sampler* sampler, int32_t token) {
    return guarded<int>(-1, [&]() -> Result<int> {
        if (!sampler) return error("no sampler was given");
        if (token < 0 || uint32_t(token) >= sampler->loaded->model->usable_vocab())
            return error("{} is no token of the model", token);
        sampler->sampler.accept(token);
        return 0;
    });
}

int redline_finished(const redline_sampler* sampler) {
    return sampler && sampler->sampler.finished();
}
