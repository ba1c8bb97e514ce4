// The one place where the code of this room reports to. The program prints what arrives there, the C
// interface collects it, a server logs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace redline {

enum class NoteKind : uint8_t {
    note,    // something that the user did not ask for or may not expect, told once
    inform,  // a step that went as it should: the plan of a model, kernels that were checked
    detail,  // for the curious
};

// Calls come from the thread that loads the model or feeds the session; progress may come from threads that
// load.
class Notes {
public:
    virtual ~Notes() = default;

    // A sentence without its first capital and without a full stop.
    virtual void take(NoteKind kind, std::string_view text) = 0;
    // False where nobody will see texts of this kind. A note that is given once per file counts as given only
    // then.
    virtual bool shows(NoteKind) const { return true; }
    // Long work, one at a time, such as "loading": `done` of `total` bytes; a total of 0 is not known, as at
    // the beginning, and throughout "checking kernels". It ends with finished().
    virtual void progress(std::string_view work, uint64_t done, uint64_t total) = 0;
    virtual void finished(std::string_view work) = 0;

    void note(std::string_view text) { take(NoteKind::note, text); }
    void inform(std::string_view text) { take(NoteKind::inform, text); }
    void detail(std::string_view text) { take(NoteKind::detail, text); }
};

// Drops everything.
Notes& silent_notes();

// Reports work, such as "loading", from its construction to its destruction.
class Work {
public:
    Work(Notes& notes, std::string name) : notes_(notes), name_(std::move(name)) {
        notes_.progress(name_, 0, 0);
    }
    ~Work() { notes_.finished(name_); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    void update(uint64_t done, uint64_t total) { notes_.progress(name_, done, total); }

private:
    Notes& notes_;
    std::string name_;
};

}  // namespace redline
