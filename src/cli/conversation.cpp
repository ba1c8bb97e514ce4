#include "cli/conversation.h"

#include "cli/text_size.h"
#include "json/json.h"
#include "text/chat/answer_text.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <filesystem>

namespace redline::cli {

std::vector<Token> keep_read(std::span<const Token> read, std::vector<Token> wanted,
                             const Tokenizer& tokenizer) {
    size_t same_read = 0, same_wanted = 0;  // so many spell the same
    size_t i = 0, j = 0;
    std::string ahead;  // what the reads spell beyond the wanted, or the other way round
    bool read_is_ahead = false;
    while (true) {
        if (ahead.empty()) {
            same_read = i;
            same_wanted = j;
            if (i < read.size() && j < wanted.size() && read[i] == wanted[j]) {
                ++i;
                ++j;
                continue;
            }
        }
        const bool take_read = !read_is_ahead || ahead.empty();
        if (take_read ? i == read.size() : j == wanted.size()) break;
        const std::string piece = tokenizer.piece(take_read ? read[i++] : wanted[j++]);
        if (piece.empty()) break;  // a control token
        if (ahead.empty()) {
            ahead = piece;
            read_is_ahead = take_read;
            continue;
        }
        const size_t common = std::min(ahead.size(), piece.size());
        if (ahead.compare(0, common, piece, 0, common) != 0) break;
        if (piece.size() > ahead.size()) read_is_ahead = take_read;
        ahead = piece.size() > ahead.size() ? piece.substr(common) : ahead.substr(common);
    }
    wanted.erase(wanted.begin(), wanted.begin() + ptrdiff_t(same_wanted));
    wanted.insert(wanted.begin(), read.begin(), read.begin() + ptrdiff_t(same_read));
    return wanted;
}

static size_t system_messages(std::span<const ChatMessage> messages) {
    return !messages.empty() && messages[0].role == Role::system ? 1 : 0;
}

// Where each turn begins, counted in messages behind the system text.
static std::vector<size_t> turn_starts(std::span<const ChatMessage> messages) {
    std::vector<size_t> starts;
    const size_t system = system_messages(messages);
    for (size_t i = system; i < messages.size(); ++i)
        if (messages[i].role == Role::user) starts.push_back(i - system);
    return starts;
}

size_t Conversation::turns() const {
    return turn_starts(messages_).size();
}

size_t Conversation::place_of(size_t turn) const {
    const std::vector<size_t> starts = turn_starts(messages_);
    RL_CHECK(turn < starts.size(), "turn {} of {}", turn, starts.size());
    return system_messages(messages_) + starts[turn];
}

const std::string& Conversation::question(size_t turn) const {
    return messages_[place_of(turn)].content;
}

void Conversation::cut(size_t turn) {
    messages_.resize(place_of(turn));
    unread_ = std::min(unread_, messages_.size() - system_messages(messages_));
    last_answer_.clear();
    ++changes_;
}

void Conversation::set_system(const std::string& text) {
    if (text == system()) return;
    messages_.erase(messages_.begin(), messages_.begin() + ptrdiff_t(system_messages(messages_)));
    if (!text.empty()) messages_.insert(messages_.begin(), {Role::system, text, {}});
    ++changes_;
}

std::string Conversation::system() const {
    return system_messages(messages_) > 0 ? messages_[0].content : "";
}

void Conversation::set_draft(const std::string& text) {
    if (text == draft_) return;
    draft_ = text;
    ++changes_;
}

Result<WrittenChat> Conversation::write(std::span<const ChatMessage> messages, size_t unread) {
    const size_t system = system_messages(messages);
    Messages read(messages.begin(), messages.begin() + ptrdiff_t(system));
    read.insert(read.end(), messages.begin() + ptrdiff_t(system + unread), messages.end());
    WrittenChat written = RL_TRY(writer_.write(messages_json(read), {}));
    written.tokens = keep_read(session_->tokens(), std::move(written.tokens), session_->model().tokenizer());
    return written;
}

Result<uint64_t> Conversation::count_tokens() {
    return RL_TRY(write(messages_, unread_)).tokens.size();
}

// A quarter of the context is kept for the answer, or less when the answer is to be short.
Result<WrittenChat> Conversation::make_room(std::span<const ChatMessage> messages,
                                            std::span<const Token> begun, size_t& unread) {
    const uint64_t context = session_->context();
    uint64_t room = std::max<uint64_t>(1, context / 4);
    if (options_.generate.max_tokens >= 0)
        room = std::min(room, std::max<uint64_t>(1, uint64_t(options_.generate.max_tokens)));
    WrittenChat written;
    const auto leave_out = [&](size_t count) -> Status {
        unread = count;
        written = RL_TRY(write(messages, count));
        written.tokens.insert(written.tokens.end(), begun.begin(), begun.end());
        return {};
    };
    // All turns may be left out but the last.
    const std::vector<size_t> turns = turn_starts(messages);
    RL_TRY(leave_out(turns.empty() ? 0 : std::min(unread, turns.back())));
    if (options_.policy == ContextPolicy::stop && written.tokens.size() >= context && turns.size() > 1)
        return error(
            "the conversation, now {} tokens, fills the context of {}: /clear begins anew, -c makes more "
            "room, --context-policy drop lets the model read the latest turns only",
            written.tokens.size(), context);
    // The turns that are left are read anew: down to half of the context at once, so that it happens rarely.
    // After a cut, or in a larger context, there may be room for older turns again.
    const bool full = options_.policy == ContextPolicy::drop && written.tokens.size() + room > context;
    const bool sparse = unread > 0 && written.tokens.size() < context / 4;
    if (full || sparse) {
        auto first = full ? std::lower_bound(turns.begin(), turns.end(), unread) : turns.begin();
        auto last = turns.empty() ? first : turns.end() - 1;
        while (first < last) {
            const auto middle = first + (last - first) / 2;
            RL_TRY(leave_out(*middle));
            if (written.tokens.size() > context / 2)
                first = middle + 1;
            else
                last = middle;
        }
        if (first != turns.end()) RL_TRY(leave_out(*first));
    }
    if (written.tokens.size() < context) return written;
    if (begun.empty()) return too_long(messages.back(), written.tokens.size());
    return error(
        "the answer, {} tokens with what stands before it, fills the context of {}: -c makes more room, or "
        "a new message goes on without the oldest turns",
        written.tokens.size(), context);
}

// Its tokens are counted with the system text and what the template writes around both.
Error Conversation::too_long(const ChatMessage& message, uint64_t tokens) const {
    const uint64_t context = session_->context();
    const auto of_message = session_->model().tokenizer().encode(message.content, {.add_special = false});
    const uint64_t around = tokens - std::min<uint64_t>(tokens, of_message.size());
    const uint64_t fit = context - std::min(context, around + 1);
    const uint64_t trained = session_->model().config().train_context;
    const uint64_t wanted = (tokens + tokens / 4 + 1023) / 1024 * 1024;
    const std::string remedy =
        trained > 0 && tokens >= trained
            ? fmt::format("the model was trained for {} tokens, so the message has to be shorter", trained)
            : fmt::format("-c {} makes room", trained > 0 ? std::min(wanted, trained) : wanted);
    return error("the message has {} tokens, and {} fit in the context of {} beside the {} around it: {}",
                 of_message.size(), fit, context, around, remedy);
}

// Marks of reasoning that are control tokens are seen only where they are written out.
GenerateOptions Conversation::generate_options() const {
    GenerateOptions options = options_.generate;
    if (writer_.reasoning())
        options.shown = writer_.reasoning()->control_tokens(session_->model().tokenizer());
    return options;
}

namespace {

// The text that generate() writes for them behind `previous`.
std::string text_of(std::span<const Token> tokens, Token previous, const Tokenizer& tokenizer,
                    const GenerateOptions& options) {
    std::string text;
    for (const Token token : tokens) {
        const std::vector<Token>& shown = options.shown;
        const bool special =
            options.show_special || std::find(shown.begin(), shown.end(), token) != shown.end();
        text += tokenizer.piece_after(previous, token, special);
        previous = token;
    }
    return text;
}

bool ends_within_character(std::string_view text) {
    size_t at = text.size() - std::min<size_t>(text.size(), 3);  // of four bytes at most the last lacks
    for (; at < text.size(); at += utf8_step(text, at).bytes)
        if (utf8_step(text, at).kind == Utf8Step::Kind::cut) return true;
    return false;
}

}  // namespace

// The messages become those of the conversation, unless nothing comes of them.
Result<Turn> Conversation::answer(Messages messages, const Listener& listener, std::span<const Token> begun) {
    Turn turn;
    size_t unread = unread_;
    const WrittenChat written = RL_TRY(make_room(messages, begun, unread));
    turn.unread = unread - std::min(unread, unread_);
    SamplerOptions sampling = options_.sampling.sampler;
    sampling.seed += answers_;
    if (sampling.seed == SamplerOptions().seed) sampling.seed = 0;  // that one means random
    const int64_t budget = writer_.reasoning_budget(options_.reasoning.budget);
    Constraint* constraint = options_.sampling.constraint.get();
    if (constraint)
        constraint->expect_reasoning(writer_.reasoning(), last_scaffold(written.parts),
                                     writer_.wants_thinking() && budget != 0);
    Sampler sampler = RL_TRY(make_sampler(session_->model(), sampling, options_.sampling.ignore_eos,
                                          session_->context(), options_.sampling.constraint));
    for (const Token token : begun) sampler.advance(token);
    turn.prompt = RL_TRY(read_prompt(*session_, sampler, written.tokens, listener.cancel, listener.progress));
    GenerateOptions options = generate_options();
    bool shown = false;  // what was said before was shown then
    AnswerText answer(writer_.reasoning(), last_scaffold(written.parts), [&](const AnswerPiece& piece) {
        const TextSink& sink = piece.reasoning ? listener.reasoning : listener.text;
        return !shown || !sink || sink(piece.text);
    });
    const size_t read = written.tokens.size() - begun.size();
    const Token previous = read > 0 ? written.tokens[read - 1] : kNoToken;
    answer.push(to_valid_utf8(text_of(begun, previous, session_->model().tokenizer(), options)));
    shown = true;
    if (budget >= 0) options.forced = answer.reasoning_limit(session_->model().tokenizer(), uint64_t(budget));
    const TextSink sink = [&](std::string_view text) { return answer.push(text); };
    turn.generation = RL_TRY(generate(*session_, sampler, options, sink, listener.cancel));
    answer.finish();
    turn.reasoning_cut = answer.cut();
    ++answers_;
    const Generation& made = turn.generation;
    const bool broken = made.reason == StopReason::broken;
    if (made.text.empty() && (made.reason == StopReason::cancelled || broken)) return turn;
    messages_ = std::move(messages);
    messages_.push_back({Role::assistant, answer.content(), answer.reasoning()});
    unread_ = unread;
    ++changes_;
    last_answer_.assign(begun.begin(), begun.end());
    last_answer_.insert(last_answer_.end(), made.tokens.begin(), made.tokens.end());
    drop_cut_character(options);
    return turn;
}

// An answer may be cut within a character, whose bytes are several tokens: what goes on begins before it.
void Conversation::drop_cut_character(const GenerateOptions& options) {
    const Tokenizer& tokenizer = session_->model().tokenizer();
    std::string& content = messages_.back().content;
    if (!ends_within_character(text_of(last_answer_, kNoToken, tokenizer, options))) return;
    while (ends_within_character(text_of(last_answer_, kNoToken, tokenizer, options)))
        last_answer_.pop_back();
    while (content.ends_with(kReplacement)) content.resize(content.size() - kReplacement.size());
}

Result<Turn> Conversation::ask(const std::string& text, const Listener& listener,
                               std::optional<size_t> instead_of) {
    RL_TRY(check_text_size(session_->model(), "the message", text.size(), session_->context()));
    Messages messages = messages_;
    if (instead_of) messages.resize(place_of(*instead_of));
    messages.push_back({Role::user, text, {}});
    return answer(std::move(messages), listener);
}

Result<Turn> Conversation::again(const Listener& listener) {
    if (messages_.empty() || messages_.back().role != Role::assistant) return error("there is no answer yet");
    return answer({messages_.begin(), messages_.end() - 1}, listener);
}

Result<Turn> Conversation::go_on(const Listener& listener) {
    if (messages_.empty() || messages_.back().role != Role::assistant) return error("there is no answer yet");
    const ChatMessage& said = messages_.back();
    std::vector<Token> begun = last_answer_;
    // An earlier turn's answer, and one of another model, are known as text alone.
    if (begun.empty() && !said.reasoning.empty())
        return error(
            "an answer with reasoning goes on only where it was the last: /regenerate makes another");
    if (begun.empty()) begun = session_->model().tokenizer().encode(said.content, {.add_special = false});
    return answer({messages_.begin(), messages_.end() - 1}, listener, begun);
}

// For who finds the conversation without it.
static std::string model_text(const Model& model) {
    std::error_code unknown;
    const std::filesystem::path path = std::filesystem::absolute(model.gguf().path(), unknown);
    const std::string file = unknown ? model.gguf().path() : path.string();
    Result<std::string> name = model.gguf().metadata().text("general.name", "");
    return name && !name->empty() ? fmt::format("{} ({})", name.value(), file) : file;
}

std::string Conversation::text() const {
    return to_json_text({messages_, last_answer_, answers_, options_.sampling.sampler.seed, uint32_t(unread_),
                         draft_, model_text(session_->model())});
}

Status Conversation::save(const std::string& path, const Progress& progress,
                          const std::atomic<bool>* cancel) const {
    return session_->save(path, progress, cancel, text());
}

Status Conversation::load(const std::string& path, const Progress& progress,
                          const std::atomic<bool>* cancel) {
    std::string text;
    if (const Status restored = session_->restore(path, progress, cancel, &text); !restored) {
        const Result<uint64_t> fingerprint = session_->model().fingerprint();
        const std::string why = fingerprint ? explain_unfit(path, fingerprint.value()) : "";
        return why.empty() ? restored.error() : error("{}", why);
    }
    return take_text(text, path);
}

Status Conversation::take_text(const std::string& text, const std::string& path) {
    SavedConversation saved = RL_TRY(read_conversation(text, path));
    const auto vocabulary = Token(session_->model().tokenizer().size());
    for (const Token token : saved.last_answer)
        if (token < 0 || token >= vocabulary)
            return error("{} holds token {}, which this model does not have", path, token);
    messages_ = std::move(saved.messages);
    last_answer_ = std::move(saved.last_answer);
    answers_ = saved.answers;
    unread_ = std::min<size_t>(saved.unread, messages_.size() - system_messages(messages_));
    draft_ = std::move(saved.draft);
    ++changes_;
    options_.sampling.sampler.seed = saved.seed;
    return {};
}

void Conversation::reopen(Session session, ChatWriter writer) {
    session_.emplace(std::move(session));
    writer_ = std::move(writer);
    if (last_answer_.empty()) return;
    last_answer_.clear();  // tokens of the model before
    ++changes_;
}

}  // namespace redline::cli
