// The commands of a conversation.
#include "cli/commands/chat_settings.h"
#include "cli/commands/chat_talk.h"
#include "cli/report.h"
#include "cli/terminal/word_wrap.h"
#include "cli/user_path.h"
#include "host/load_plan.h"
#include "memory/budget.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::cli {

std::span<const Talk::TalkCommand> Talk::commands() {
    static constexpr TalkCommand kCommands[] = {
        {"/help", "", "list the commands", &Talk::help, "/?"},
        {"/system", "[TEXT]", "show or set what the model is told before the first message; none: nothing",
         &Talk::system},
        {"/read", "[FILE]", "send a file's text with the next message; alone: list such files; none: no file",
         &Talk::read_file, "/file /attach"},
        {"/clear", "", "forget the conversation, but for the system text", &Talk::clear, "/new /reset"},
        {"/regenerate", "", "another answer to the last message", &Talk::regenerate, "/regen /retry"},
        {"/continue", "", "more of the last answer", &Talk::go_on},
        {"/undo", "", "take the last message and its answer back", &Talk::undo},
        {"/edit", "[N]", "change the last message, or the N-th, and go on from there", &Talk::edit},
        {"/save", "[FILE]", "keep the conversation, and what of it the model has read", &Talk::save},
        {"/load", "FILE", "go on with a conversation that was saved", &Talk::load},
        {"/export", "FILE", "write the conversation as Markdown (.md) or JSON (.json)", &Talk::export_to},
        {"/set", "[NAME VALUE]", "change a sampling value, or list them", &Talk::set},
        {"/show", "[PART]",
         "what there is to know, or stats, plan, template, memory, sampling or system of it",
         &Talk::show_facts},
        {"/model", "[FILE]", "go on with another model, or say which it is", &Talk::change_model},
        {"/think", "on|off|hide", "whether a model that reasons does, and whether it is shown", &Talk::think},
        {"/tokens", "TEXT", "the tokens of a text", &Talk::tokens},
        {"/image", "", "", &Talk::image},
        {"/stats", "", "", &Talk::statistics},
        {"/exit", "", "leave; so does Ctrl-D", &Talk::exit, "/quit /bye"},
    };
    return kCommands;
}

std::vector<DescribedTalkCommand> described_talk_commands() {
    std::vector<DescribedTalkCommand> all;
    for (const auto& command : Talk::commands())
        if (!command.help.empty())
            all.push_back({command.name, command.argument, command.help, command.other_names});
    return all;
}

static bool has_word(std::string_view words, std::string_view word) {
    return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

const Talk::TalkCommand* Talk::find_command(const std::string& word) {
    for (const TalkCommand& command : commands())
        if (command.name == word || has_word(command.other_names, word)) return &command;
    return nullptr;
}

std::vector<std::string> Talk::command_names(bool others) {
    std::vector<std::string> names;
    for (const TalkCommand& command : commands()) names.emplace_back(command.name);
    for (const TalkCommand& command : commands())
        for (std::string_view rest = command.other_names; others && !rest.empty();) {
            const size_t end = std::min(rest.find(' '), rest.size());
            names.emplace_back(rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    return names;
}

// A name, and behind so many columns what there is to say of it. On a narrow terminal lines that go on begin
// in that column, too.
static void tell_in_columns(std::string_view name, size_t columns, std::string_view text) {
    constexpr size_t kLeast = 20;  // of the right column; narrower, the terminal's line ends do
    const size_t width = is_terminal(os::kStandardError) ? terminal_width(os::kStandardError) : 0;
    std::string lines =
        width >= columns + 2 + kLeast ? wrapped(text, width - columns - 2) : std::string(text);
    for (size_t at = lines.find('\n'); at != lines.npos; at = lines.find('\n', at + 1))
        lines.insert(at + 1, columns + 2, ' ');
    show(fmt::format("  {:<{}}{}\n", name, columns, lines));
}

bool Talk::help(const std::string&) {
    for (const TalkCommand& command : commands())
        if (!command.help.empty())
            tell_in_columns(fmt::format("{} {}", command.name, command.argument), 24, command.help);
    tell(
        "Keys: arrows move and bring earlier messages back, Alt-Enter begins a line, Tab completes commands "
        "and file names, Ctrl-R searches, Ctrl-C ends an answer. Lines between two of \"\"\", and what is "
        "pasted, are one message; so is a line that ends with a backslash, with the next. A message that "
        "begins with a blank is never taken as a command.");
    return true;
}

bool Talk::clear(const std::string&) {
    if (conversation_.turns() > 0) conversation_.cut(0);
    tell("the conversation is forgotten");
    return true;
}

bool Talk::system(const std::string& rest) {
    const std::string wanted = trimmed(rest);
    if (!wanted.empty()) conversation_.set_system(wanted == kNothing ? "" : rest);
    const std::string now = conversation_.system();
    if (wanted.empty() && !now.empty())
        tell(for_terminal(now));
    else
        tell(now.empty() ? "no system text" : "the system text is set");
    return true;
}

bool Talk::regenerate(const std::string&) {
    return finish_turn(listen([this](const Listener& listener) { return conversation_.again(listener); }));
}

bool Talk::go_on(const std::string&) {
    return finish_turn(listen([this](const Listener& listener) { return conversation_.go_on(listener); }));
}

bool Talk::undo(const std::string&) {
    if (conversation_.turns() == 0) return refuse(error("there is no message to take back")), true;
    const std::string question = conversation_.question(conversation_.turns() - 1);
    conversation_.cut(conversation_.turns() - 1);
    tell(fmt::format("taken back: {}", printable(question)));
    return true;
}

bool Talk::edit(const std::string& rest) {
    const size_t turns = conversation_.turns();
    if (turns == 0) return refuse(error("there is no message to edit")), true;
    if (!reader_.edits())
        return refuse(error("/edit wants a terminal that can edit lines; /undo takes the last message back")),
               true;
    size_t turn = turns;
    if (!rest.empty()) {
        const Result<int64_t> number = parse_integer(trimmed(rest), 1, int64_t(turns));
        if (!number) return refuse(error("/edit {}", number.error().message)), true;
        turn = size_t(number.value());
    }
    edited_ = turn - 1;
    draft_ = {conversation_.question(turn - 1)};
    return true;
}

bool Talk::think(const std::string& rest) {
    const Status taken = take_thinking(trimmed(rest), options_.writer, conversation_.options().reasoning);
    if (!taken) return refuse(error("/think {}", taken.error().message)), true;
    Result<ChatWriter> writer = ChatWriter::create(*model_->loaded.model, options_.writer);
    if (!writer) return refuse(writer.error()), true;
    if (!writer->reasoning())
        tell("this model is not known to reason");
    else if (options_.writer.thinking == false && !writer->switches_thinking())
        tell("this model's chat template has no switch for its reasoning: it is cut at its beginning");
    else
        tell(fmt::format("reasoning: {}", trimmed(rest)));
    model_->writer = writer.value();
    conversation_.writer() = std::move(writer).value();
    return true;
}

bool Talk::tokens(const std::string& rest) {
    const Tokenizer& tokenizer = model_->loaded.model->tokenizer();
    const std::vector<Token> all = tokenizer.encode(rest, {.add_special = false});
    std::string line = fmt::format("{} token{}:", all.size(), all.size() == 1 ? "" : "s");
    for (const Token token : all) line += fmt::format(" {} \"{}\"", token, printable(tokenizer.piece(token)));
    tell(line);
    return true;
}

bool Talk::image(const std::string&) {
    refuse(
        error("redline reads text only: the vision part of models is left out, so that it cannot look at an "
              "image; describe it in words"));
    return true;
}

bool Talk::statistics(const std::string&) {
    show_statistics();
    return true;
}

bool Talk::exit(const std::string&) {
    conversation_.set_draft({});
    return false;
}

bool Talk::show_facts(const std::string& rest) {
    const std::string part = trimmed(rest);
    const bool all = part.empty();
    if (!all && !has_word("stats plan template memory sampling system", part))
        return refuse(
                   error("/show knows stats, plan, template, memory, sampling and system, not \"{}\"", part)),
               true;
    if (all) tell(fmt::format("model: {} ({})", model_->name(), model_->options.model));
    if (all || part == "plan") show_plan();
    if (all || part == "template") tell(fmt::format("template: {}", conversation_.writer().description()));
    if (part == "template")
        if (const std::string text = conversation_.writer().template_text(); !text.empty())
            show(for_terminal(text) + "\n");
    if (all || part == "memory") show_memory();
    if (all) show_sampling();
    if (part == "sampling") show_settings();
    const std::vector<ChatMessage>& messages = conversation_.messages();
    const bool has_system = !messages.empty() && messages[0].role == Role::system;
    if (all || part == "system")
        tell(has_system ? fmt::format("system: {}", for_terminal(messages[0].content)) : "no system text");
    if (all || part == "stats") show_statistics();
    return true;
}

void Talk::show_plan() {
    const Session& session = conversation_.session();
    tell(fmt::format("{}, {} tokens at a time",
                     plan_line(model_->loaded, session.context(), session.memory().cache), session.batch()));
}

void Talk::show_memory() {
    const MemoryNeed& need = conversation_.session().memory();
    const LoadedModel& loaded = model_->loaded;
    std::string offered;
    for (const OpenDevice* place : loaded.places()) {
        const std::string label = loaded.label(place->backend.get());
        const std::string memory = place->backend->device().memory.text();
        offered += offered.empty() ? fmt::format("{} that {} offers", memory, label)
                                   : fmt::format(" and {} of {}", memory, label);
    }
    tell(fmt::format("memory: weights {}, cache {}, scratch {}, of {}; peak of the program {}",
                     format_bytes(need.weights), format_bytes(need.cache), format_bytes(need.scratch),
                     offered, format_bytes(peak_resident())));
}

bool Talk::set(const std::string& rest) {
    const size_t blank = std::min(rest.find_first_of(" =\t"), rest.size());
    const std::string name = rest.substr(0, blank);
    const std::string value = trimmed(rest.substr(std::min(blank + 1, rest.size())));
    if (name.empty()) return show_settings(), true;
    const Status done = apply_setting(name, value);
    if (!done) return refuse(done.error()), true;
    chosen_.emplace_back(name, value);
    tell(fmt::format("{} is {}", name, value));
    return true;
}

// The best known values, and those that are not as they are documented.
void Talk::show_sampling() {
    std::string line = "sampling:";
    const auto usual = list_settings(ConversationOptions());
    const auto now = list_settings(conversation_.options());
    for (size_t i = 0; i < now.size(); ++i)
        if (has_word("temp top-k top-p min-p", now[i].first) || now[i] != usual[i])
            line += fmt::format("{} {} {}", line.ends_with(':') ? "" : ",", now[i].first, now[i].second);
    tell(line + "; /show sampling lists all");
    say_recommended();
}

void Talk::say_recommended() {
    const Result<std::string> values = recommended_sampling(model_->loaded.model->gguf().metadata());
    if (values && !values.value().empty()) tell(fmt::format("the model file recommends: {}", values.value()));
}

void Talk::show_settings() {
    for (const auto& [name, value] : list_settings(conversation_.options())) tell_in_columns(name, 22, value);
    tell_in_columns("status", 22, options_.status ? "on" : "off");
    say_recommended();
}

Status Talk::apply_setting(const std::string& name, const std::string& value) {
    if (name != "status") return change_setting(conversation_.options(), name, value);
    if (value != "on" && value != "off") return error("/set status takes on or off, not \"{}\"", value);
    options_.status = value == "on";
    return {};
}

bool Talk::change_model(const std::string& rest) {
    const std::string path = user_path(rest);
    if (path.empty()) {
        tell(fmt::format("{} ({})", model_->name(), model_->options.model));
        return true;
    }
    const Status done = exchange_model(path);
    if (done)
        tell(fmt::format("the conversation goes on with {}", model_->name()));
    else
        refuse(done.error());
    if (!has_model_) exit_code_ = kFailed;
    return has_model_;
}

// Both may not fit: the weights of the old one go first, and come back where the new one cannot be loaded.
Status Talk::exchange_model(const std::string& path) {
    ModelOptions wanted = model_->options;
    wanted.model = path;
    wanted.unnamed = false;
    std::unique_ptr<ChatModel> next =
        RL_TRY(ChatModel::inspect(wanted, options_.writer, options_.speculation));
    SamplerOptions sampler = options_.conversation.sampling.sampler;
    sampler.seed = conversation_.options().sampling.sampler.seed;
    RL_TRY(defaults_(*next->loaded.model, sampler));
    SamplingOptions& sampling = conversation_.options().sampling;
    std::shared_ptr<Constraint> constraint;
    if (sampling.grammar) constraint = RL_TRY(make_constraint(*next->loaded.model, *sampling.grammar));
    conversation_.close();
    model_->unload();
    Result<Session> session = next->open();
    if (!session) {
        next.reset();
        Result<Session> back = model_->open();
        has_model_ = back.ok();
        if (!back)
            return error("{}; the one before cannot be loaded again: {}", session.error().message,
                         back.error().message);
        conversation_.reopen(std::move(back).value(), *model_->writer);
        conversation_.options().generate.drafter = model_->guesses.speculation.get();
        return session.error();
    }
    conversation_.reopen(std::move(session).value(), *next->writer);
    conversation_.options().generate.drafter = next->guesses.speculation.get();
    sampling.constraint = std::move(constraint);
    model_ = std::move(next);
    sampling.sampler = sampler;
    last_.reset();
    for (const auto& [name, value] : chosen_) RL_TRY(apply_setting(name, value));
    return {};
}

}  // namespace redline::cli
