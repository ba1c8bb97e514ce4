// redline chat: a conversation at the terminal, or one turn per line of a pipe.
#include "cli/commands/chat_talk.h"
#include "cli/demo_model.h"
#include "cli/pull_model.h"
#include "cli/terminal/terminal.h"
#include "sample/parameters.h"

namespace redline::cli {

namespace {

Options declare(ChatOptions& chat) {
    Options options("chat", "talk with an instruct model", {"chat [MODEL] [options]"});
    GenerateOptions& generate = chat.conversation.generate;
    options.group("conversation");
    options.text("-sys --system-prompt", "TEXT", "what the model is told before the first turn", chat.system);
    options.common("what the model is told first");
    add_template_options(options, chat.writer);
    add_reasoning_options(options, chat.writer, chat.conversation.reasoning);
    options.flag("--list-chat-formats", "print their names and exit", chat.list_formats);
    options.number("-n --predict --n-predict", "tokens of an answer at most; -1: until the model ends it",
                   generate.max_tokens, -2, std::numeric_limits<int64_t>::max());
    options.common("tokens of an answer at most");
    options.each("-r --reverse-prompt --stop", "TEXT", "end an answer before this text; may be given again",
                 [&generate](const std::string& text) -> Status {
                     if (text.empty()) return error("takes a text that is not empty");
                     generate.stops.push_back(text);
                     return {};
                 });
    options.choice(
        "--context-policy", {"drop", "stop"},
        "when the context is full: the model reads the system text and the latest turns only, which leave a "
        "quarter of the context for the answer (drop), or the chat stops and says so (default: drop)",
        [&chat](size_t index) { chat.conversation.policy = ContextPolicy(index); });
    options.name("--session", "FILE",
                 "go on with the conversation in this file, if it exists, and keep it there at the end",
                 chat.session);
    options.common("go on with the chat in this file; keep it");
    options.flag("--no-status", "no line of figures after an answer on a terminal", chat.status, false);
    options.flag("--special", "write control tokens out", generate.show_special);
    options.flag("-e --escape", "take \\n, \\t, \\\", \\\\ and the like in -sys and --stop (default)",
                 chat.escapes);
    options.flag("--no-escape", "take them as they are", chat.escapes, false);
    add_model_options(options, chat.model);
    options.word_is("--model");
    add_remote_options(options, chat.model.remote);
    add_sampling_options(options, chat.conversation.sampling);
    add_speculation_options(options, chat.speculation);
    add_voice_options(options);
    options.example("redline chat model.gguf");
    options.example("redline chat model.gguf -sys \"Answer briefly.\" --temp 0 < questions.txt");
    options.remark(
        "At the prompt: /help lists the commands and keys. Pasted lines, lines between two of three double "
        "quotes, and a line that ends with a backslash with the next are one message; Alt-Enter breaks a "
        "line. "
        "Ctrl-C ends an answer, Ctrl-D the program. From a pipe each line is a turn, and only the answers go "
        "to standard output.");
    return options;
}

Result<int> chat_with(ChatOptions& chat, const Options& options) {
    LineReader reader;
    std::optional<SessionPlace> place = RL_TRY(find_session_place(chat.session, reader));
    if (!place) return kFailed;
    std::unique_ptr<ChatModel> chat_model =
        RL_TRY(ChatModel::inspect(chat.model, chat.writer, chat.speculation));
    const auto take_defaults = [&options](const Model& model, SamplerOptions& sampler) {
        return take_file_defaults(options, model.gguf().metadata(), sampler);
    };
    const Model& model = *chat_model->loaded.model;
    ConversationOptions conversation = chat.conversation;
    SamplerOptions& sampler = conversation.sampling.sampler;
    RL_TRY(take_defaults(model, sampler));
    // Checks the options, and settles a random seed.
    SamplingOptions& sampling = conversation.sampling;
    for (const std::string& each : sampling.notes) note(each);
    if (sampling.grammar) sampling.constraint = RL_TRY(make_constraint(model, *sampling.grammar));
    sampler.seed =
        RL_TRY(make_sampler(model, sampler, conversation.sampling.ignore_eos, chat_model->context)).seed();
    Session session = RL_TRY(chat_model->open());
    conversation.generate.drafter = chat_model->guesses.speculation.get();
    say_detail(fmt::format("{}, seed {}", chat_model->writer->description(), sampler.seed));
    Conversation begun(std::move(session), *chat_model->writer, std::move(conversation));
    if (chat.escapes) chat.system = unescape(chat.system);
    begun.set_system(chat.system);
    Talk talk(chat, take_defaults, std::move(chat_model), std::move(begun), std::move(*place),
              std::move(reader));
    RL_TRY(talk.resume());
    return talk.run();
}

int list_formats() {
    Output out;
    for (const std::string& name : ChatFormat::names()) out.write(name + "\n");
    return out.finish();
}

int run_chat(const std::vector<std::string>& arguments) {
    ChatOptions chat;
    Options options = declare(chat);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (chat.list_formats) return list_formats();
    Status usage = settle_device(chat.model);
    if (usage) usage = settle(chat.speculation);
    if (usage) usage = check_options(chat.conversation.sampling.sampler);
    if (!usage) return fail(usage.error(), kUsage);
    if (chat.conversation.sampling.unread) return fail(*chat.conversation.sampling.unread);
    if (chat.escapes)
        for (std::string& stop : chat.conversation.generate.stops) stop = unescape(stop);
    if (const std::optional<int> code = take_remote_model(chat.model)) return *code;
    if (const Status found = take_demo_model(chat.model); !found) return fail(found.error());
    const Result<int> code = chat_with(chat, options);
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command chat_command = {"chat", "talk with an instruct model", run_chat};

}  // namespace redline::cli
