// A talk at the terminal or through a pipe: a user's messages and commands, and the model's answers.
#pragma once

#include "cli/attachment.h"
#include "cli/commands/chat_session.h"
#include "cli/conversation.h"
#include "cli/options/model_options.h"
#include "cli/options/speculation_options.h"
#include "cli/terminal/answer_view.h"
#include "host/loaded_model.h"

namespace redline::cli {

struct ChatOptions {
    ModelOptions model;
    ConversationOptions conversation;
    SpeculationOptions speculation;
    ChatWriterOptions writer;
    std::string system;
    std::string session;  // a file; empty: none
    bool status = true;
    bool escapes = true;
    bool list_formats = false;
};

// A model, and how it is written to. Sessions and rescues point here.
struct ChatModel {
    ModelOptions options;
    LoadedModel loaded;
    std::optional<ChatWriter> writer;
    uint64_t context = 0;
    SpeculationOptions speculation;
    OpenSpeculation guesses;

    // All but the weights, so that what is wrong is said early.
    static Result<std::unique_ptr<ChatModel>> inspect(const ModelOptions& options,
                                                      const ChatWriterOptions& writer,
                                                      const SpeculationOptions& speculation);
    // Loads the weights and opens a session, whose answers `guesses` may hasten. It can be done again after
    // unload().
    Result<Session> open();
    void unload();
    std::string name() const;  // short, for the line of figures
};

// Sets defaults that a model file recommends.
using FileDefaults = std::function<Status(const Model& model, SamplerOptions& sampler)>;

// In place of a text or a file this takes it away.
constexpr std::string_view kNothing = "none";

// A command of a conversation as the manual page lists it.
struct DescribedTalkCommand {
    std::string_view name, argument, help, other_names;
};
// In the order of /help, from the table by which a conversation finds its commands.
std::vector<DescribedTalkCommand> described_talk_commands();

class Talk {
public:
    friend std::vector<DescribedTalkCommand> described_talk_commands();
    Talk(ChatOptions options, FileDefaults defaults, std::unique_ptr<ChatModel> chat_model,
         Conversation conversation, SessionPlace place, LineReader reader);
    // The exit code.
    int run();
    // Takes the conversation of the session's file, if it exists, and what was said after it was written.
    Status resume();

private:
    struct TalkCommand {
        std::string_view name, argument, help;
        bool (Talk::*run)(const std::string& rest);  // false: leave
        std::string_view other_names = {};
    };
    static std::span<const TalkCommand> commands();
    static const TalkCommand* find_command(const std::string& word);
    static std::vector<std::string> command_names(bool others);

    // False: leave.
    bool take(const Typed& typed);
    bool take_command(const TalkCommand& command, const Typed& typed);
    bool interrupted_at_prompt(const Typed& typed);
    // True: a text that begins with this word is meant as a command that there is not, and was given back.
    bool misspelled(const Typed& typed, const std::string& word);
    bool ask(const std::string& text, const std::string& shown);
    // An answer's life: what the listener does, what is said afterwards.
    Result<Turn> listen(const std::function<Result<Turn>(const Listener&)>& answer);
    bool finish_turn(Result<Turn> turn, const std::string& shown = {});
    void explain_turn(const Turn& turn, bool cancelled);
    void say_status();
    void show_statistics();
    int leave();
    // Says the error; from a pipe it counts for the exit code.
    void refuse(const Error& problem);
    Completion complete(const std::string& before) const;
    std::vector<std::string> argument_choices(const std::string& command, const std::string& typed) const;

    bool help(const std::string& rest);
    bool clear(const std::string& rest);
    bool system(const std::string& rest);
    bool regenerate(const std::string& rest);
    bool undo(const std::string& rest);
    bool edit(const std::string& rest);
    bool go_on(const std::string& rest);
    bool save(const std::string& rest);
    bool load(const std::string& rest);
    bool export_to(const std::string& rest);
    bool set(const std::string& rest);
    bool show_facts(const std::string& rest);
    bool change_model(const std::string& rest);
    bool think(const std::string& rest);
    bool tokens(const std::string& rest);
    bool image(const std::string& rest);
    bool read_file(const std::string& rest);
    bool statistics(const std::string& rest);
    bool exit(const std::string& rest);

    Status attach(const std::string& rest);
    void list_attachments();
    Status save_conversation(const std::string& path, const std::string& name);
    Status save_to(const std::string& path);
    Status load_session(const std::string& path);
    // Writes the conversation to the session's journal, unless it is there or in the session's file.
    void write_journal();
    // True where the file that is read at the start is the one that is kept, and no other chat has it.
    bool keeps_what_it_reads() const;
    Status take_journal(const std::string& text, const std::string& path);
    // For a journal that cannot be used. An error where the session has nothing else.
    Status pass_over_journal(const Error& problem, bool saved);
    Status exchange_model(const std::string& path);
    Status apply_setting(const std::string& name, const std::string& value);
    void show_settings();
    void show_sampling();
    void say_recommended();
    void show_plan();
    void show_memory();

    ChatOptions options_;
    FileDefaults defaults_;
    std::unique_ptr<ChatModel> model_;
    Conversation conversation_;
    Interrupts interrupts_;
    LineReader reader_;
    Output out_;
    AnswerView view_{out_};
    SessionPlace place_;
    uint64_t in_file_ = 0, in_journal_ = 0;                    // Conversation::changes() as they were written
    Draft draft_;                                              // what the next prompt begins with
    std::optional<size_t> edited_;                             // the turn that the next message replaces
    std::vector<Attachment> attached_;                         // to the next message
    std::vector<std::pair<std::string, std::string>> chosen_;  // by /set
    bool said_dropping_ = false, said_slow_ = false, said_awake_ = false, said_shared_ = false;
    bool said_no_journal_ = false;
    bool hinted_ = false;  // that Ctrl-C again leaves
    bool has_model_ = true;
    int exit_code_ = kDone;
    std::optional<Turn> last_;
};

}  // namespace redline::cli
