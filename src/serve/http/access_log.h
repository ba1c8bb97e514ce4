// A file with a line for each request that a server has answered, for people or for programs.
#pragma once

#include "base/os/file_handle.h"
#include "serve/http/server.h"

namespace redline::serve {

// One line of such a log with its end. `time`: milliseconds since 1970. Nothing in it can begin a line of its
// kind: in text, what is not printable is percent-encoded.
std::string access_line(const HttpAccess& access, int64_t time, bool json);

class AccessLog {
public:
    // Lines are appended to what the file has.
    static Result<AccessLog> open(const std::string& path, bool json);
    // The error comes once, however many lines are lost.
    Status write(const HttpAccess& access);

private:
    AccessLog(os::FileHandle file, std::string path, bool json)
        : file_(std::move(file)), path_(std::move(path)), json_(json) {}

    os::FileHandle file_;
    std::string path_;
    bool json_ = false;
    bool torn_ = false;  // the last line is there in part
    bool told_ = false;
};

}  // namespace redline::serve
