// Downloads a file, resuming an earlier attempt, and checks it before it gets its name.
#pragma once

#include "fetch/http.h"

namespace redline {

// The result of checking a whole file.
struct FileCheck {
    Status sound = {};
    bool damaged = false;  // the file is unsound because it is truncated or not of the expected kind
};

struct Download {
    std::string url;
    std::vector<std::string> headers;
    std::string path;    // the target; until it is complete the file is called PATH.part
    uint64_t bytes = 0;  // the required size; 0: the size that the server states
    std::string sha256;  // hexadecimal; empty: not known
    long stall_seconds = 60;
    // Checks the first bytes of the file, so that a web page ends the transfer early.
    std::function<Status(std::span<const std::byte> start)> check_start = {};
    // Checks the whole file, still called PATH.part. An unsound file is an error; it is deleted when it is
    // damaged and no hash shows that the server has the same bytes.
    std::function<FileCheck(const std::string& part)> check = {};
};

// Bytes of the file that are there, and the total, which is 0 while unknown.
using DownloadProgress = std::function<void(uint64_t done, uint64_t total)>;

// Fetches the missing bytes and checks the whole file. After an error PATH.part is kept for the next attempt
// where that can resume: where its content is not known to be wrong, and its hash, or the server's version of
// it, which is kept in PATH.part.version, can tell whether the rest belongs to it. A file of another size or
// hash never gets the name.
Status download(const Download& what, const DownloadProgress& progress,
                const std::atomic<bool>* cancel = nullptr);

// The size of a file that its server states when asked for the first bytes; 0: none, no answer, or not such a
// file.
uint64_t size_on_server(const Download& what, const std::atomic<bool>* cancel = nullptr);

// Explains a status that is not 2xx, with a remedy: "401: ...".
Error refused_by_server(long status, const std::string& url);

}  // namespace redline
