// A file with a line for each request that a server has answered, for people or for programs.
#pragma once

#include "base/os/file_handle.h"
#include "serve/http/server.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace redline::serve {

// One line of such a log with its end. `time`: milliseconds since 1970. Nothing in it can begin a line of its
// kind: in text, what is not printable is percent-encoded.
std::string access_line(const HttpAccess& access, int64_t time, bool json);

// A thread writes the lines, so that a disk that is slow keeps no answer waiting.
class AccessLog {
public:
    // Is told, on that thread, once that lines are lost, and again when the file was opened again.
    using Tell = std::function<void(const std::string&)>;

    // Lines are appended to what the file has.
    static Result<std::unique_ptr<AccessLog>> open(const std::string& path, bool json, Tell tell);
    // Writes what waits.
    ~AccessLog();
    AccessLog(const AccessLog&) = delete;

    // From any thread. What comes faster than it can be written for long is lost.
    void add(const HttpAccess& access);
    // From any thread: what is added from here on goes to the file that the path leads to then, which is made
    // if need be. One that cannot be had leaves the present one.
    void reopen();

private:
    AccessLog(os::FileHandle file, std::string path, bool json, Tell tell)
        : file_(std::move(file)), path_(std::move(path)), json_(json), tell_(std::move(tell)) {}
    void loop();
    void open_again();
    void write(std::string lines);
    void lost(const std::string& why);

    // For the thread alone.
    os::FileHandle file_;
    const std::string path_;
    const bool json_;
    const Tell tell_;
    bool torn_ = false;  // the last line is there in part
    bool told_ = false;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::string waiting_;
    size_t old_ = 0;  // bytes of waiting_ for the file before reopen()
    bool reopens_ = false;
    bool overrun_ = false;
    bool ending_ = false;
    std::thread writer_;
};

}  // namespace redline::serve
