// A file from a server to its place, resumed where an earlier attempt ended, checked before it gets its name.
#pragma once

#include "fetch/http.h"

namespace redline {

struct Download {
    std::string url;
    std::vector<std::string> headers;
    std::string path;    // where the file is to be; until it is whole it is called PATH.part
    uint64_t bytes = 0;  // that it must have; 0: as many as the server says
    std::string sha256;  // hexadecimal; empty: not known
    long stall_seconds = 60;
};

// Bytes of the file that are there, and of all; all may be 0 for unknown.
using DownloadProgress = std::function<void(uint64_t done, uint64_t total)>;

// What is missing is fetched and the whole is checked. An error leaves PATH.part for the next attempt, unless
// its content is wrong; without a hash the next attempt begins again. A file of another size or hash is never
// given the name.
Status download(const Download& what, const DownloadProgress& progress,
                const std::atomic<bool>* cancel = nullptr);

// What a status that is not 2xx means, and what would help: "401: ...".
Error refused_by_server(long status, const std::string& url);

}  // namespace redline
