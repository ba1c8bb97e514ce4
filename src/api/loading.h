// The inside of a redline_model: the host's loaded model, with the options and notes of the C interface.
#pragma once

#include "api/redline.h"
#include "host/chat_writer.h"
#include "host/rescue.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace redline::api {

// Passes what the host reports on to the caller's functions, and keeps notes until the model is loaded.
class CallerNotes : public Notes {
public:
    explicit CallerNotes(const redline_model_options& options)
        : note_(options.note), progress_(options.progress), user_(options.user) {}

    void take(NoteKind kind, std::string_view text) override;
    void progress(std::string_view work, uint64_t done, uint64_t total) override;
    void finished(std::string_view work) override;

    // A line each. Calling it ends the collection, so that the text stays where it is.
    const std::string& kept();

private:
    void (*note_)(void* user, int kind, const char* text);
    void (*progress_)(void* user, const char* work, uint64_t done, uint64_t total);
    void* user_;
    std::atomic<uint64_t> total_ = 0;  // of the work that is done
    std::atomic<bool> keeps_ = true;
    std::string kept_;
};

// Not moved: sessions, rescues and the writer of chats point into it. The group goes before the model, the
// model before the notes.
struct Loaded {
    explicit Loaded(const redline_model_options& given) : notes(given) {}

    CallerNotes notes;
    HostOptions options;
    LoadedModel loaded;
    uint64_t context = 0;  // tokens of a session
    std::string device;    // its name
    std::optional<SessionGroup> group;
    std::mutex making;  // of sessions, one at a time

    // Tokens of a conversation up to where the assistant speaks, by the model's template.
    Result<std::vector<Token>> write_chat(Json messages);

private:
    std::mutex writing_;  // guards the writer, which changes with what it writes
    std::optional<ChatWriter> writer_;
};

// An error names the option of the struct that would have to change.
Result<std::shared_ptr<Loaded>> load(const std::string& path, const redline_model_options& options);
// Under group->use(). Of a split model one session can be open, since its weights are loaded with it.
Result<Session> new_session(Loaded& loaded);

}  // namespace redline::api
