// Sequences that are kept in files: those for which the caches had no room any more, and all when a server
// ends. Several servers may use a folder, and models of any kind: the files of each have a key in their
// names.
#pragma once

#include "base/result.h"
#include "host/notes.h"
#include "text/tokens/vocabulary.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace redline::serve {

struct CacheFolder {
    std::string path;                         // empty: there is none
    uint64_t most_bytes = uint64_t(4) << 30;  // of all files; those used least recently go first
    // Brings a file into the system's memory, in a thread for this; empty: by reading it. Tests have a disk
    // here that is as slow as they like.
    std::function<void(const std::string& file, const std::atomic<bool>& cancel)> read = {};
};

// Makes the folder, for its user alone, where it is not there, and tries to write to it.
Status prepare_cache_folder(const std::string& path);

// Files are written by a thread, and read by another, as a disk takes seconds for gigabytes: what waits to be
// written is limited, and one file is read at a time.
class KeptFiles {
public:
    // `rewinds`: a sequence serves all beginnings of its tokens, not only the whole of it.
    static Result<std::unique_ptr<KeptFiles>> open(CacheFolder folder, std::string key, bool rewinds,
                                                   Notes& notes);
    // Writes what waits, and cancels what is read.
    ~KeptFiles();
    KeptFiles(const KeptFiles&) = delete;

    struct Match {
        std::string name;
        uint64_t tokens = 0;  // of the prompt; 0: no file serves it
        uint64_t all = 0;     // tokens of the file
    };
    // Files of other servers are found, too.
    Match find(std::span<const Token> prompt);
    std::string path(const Match& match) const { return folder_.path + "/" + match.name; }
    // Begins to read a file, so that it is in the system's memory when its sequence is restored: then that
    // takes as long as copying it. `done` is called on the thread that reads. Only while none is being read.
    void read(const Match& match, std::function<void()> done);
    // True from read() until take_read() has returned the file.
    bool is_busy() const;
    // True while the file is not in memory yet.
    bool is_reading() const;
    // The file that is in memory now, once.
    std::optional<Match> take_read();
    // Returns when none is read any more; a read that goes on is cancelled.
    void stop_reading();
    // The file counts as used last.
    void used(const Match& match);
    // Removes a file that cannot be used, and says why.
    void remove(const Match& match, const Error& why);

    // True for a sequence that is worth a file, as no file serves as much.
    bool wants(std::span<const Token> tokens);
    // False while so many bytes more would have to wait in memory.
    bool has_room(uint64_t bytes) const;
    // Takes a file as Engine::saved() has it.
    void write(std::vector<Token> tokens, std::vector<std::byte> bytes);
    // Returns once all is written.
    void wait();
    uint64_t most_bytes() const { return folder_.most_bytes; }

private:
    struct Job {
        std::string name;
        std::vector<Token> tokens;
        std::vector<std::byte> bytes;
    };
    KeptFiles(CacheFolder folder, std::string key, bool rewinds, Notes& notes);
    void look();
    void run();
    void run_reads();
    Status write_now(const Job& job);
    void make_room(uint64_t bytes) const;
    void remove_covered(const Job& job);
    bool covers(std::span<const Token> longer, std::span<const Token> shorter) const;
    void say_once(bool& said, const std::string& text);

    CacheFolder folder_;
    const std::string key_;
    const bool rewinds_;
    Notes& notes_;
    int64_t changed_ = -1;  // the time of the folder's change that look() has seen
    bool said_damaged_ = false, said_unwritten_ = false;

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable wake_, written_, wake_reader_;
    std::map<std::string, std::vector<Token>> files_;  // by name
    std::deque<Job> jobs_;                             // the first is being written
    bool ends_ = false;
    std::optional<Match> reading_;  // until it is taken
    bool in_memory_ = false;        // reading_ is
    std::function<void()> read_done_;
    std::atomic<bool> cancel_reading_ = false;
    std::thread writer_, reader_;
};

}  // namespace redline::serve
