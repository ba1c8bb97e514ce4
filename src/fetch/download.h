// A file from a server to its place, resumed where an earlier attempt ended, checked before it gets its name.
#pragma once

#include "fetch/http.h"

namespace redline {

// The result of a look at a whole file.
struct FileCheck {
    Status sound = {};
    bool damaged = false;  // it is not sound because it is cut or another thing than it should be
};

struct Download {
    std::string url;
    std::vector<std::string> headers;
    std::string path;    // where the file is to be; until it is whole it is called PATH.part
    uint64_t bytes = 0;  // that it must have; 0: as many as the server says
    std::string sha256;  // hexadecimal; empty: not known
    long stall_seconds = 60;
    // Whether the file may begin so. It is asked of the first bytes, so that a web page ends the transfer.
    std::function<Status(std::span<const std::byte> start)> check_start = {};
    // Looks at the whole file, as PATH.part, before it gets its name. A file that is not sound is an error;
    // it is thrown away where it is damaged and no hash says that it came as the server has it.
    std::function<FileCheck(const std::string& part)> check = {};
};

// Bytes of the file that are there, and of all; all may be 0 for unknown.
using DownloadProgress = std::function<void(uint64_t done, uint64_t total)>;

// What is missing is fetched and the whole is checked. An error leaves PATH.part for the next attempt where
// that can go on from it: its content is not known to be wrong, and its hash or the server's version of it,
// which PATH.part.version keeps, tells whether the rest belongs to it. A file of another size or hash is
// never given the name.
Status download(const Download& what, const DownloadProgress& progress,
                const std::atomic<bool>* cancel = nullptr);

// The bytes of a file as its server tells them, when asked for the first ones; 0: it tells none, no answer
// came, or another thing than such a file.
uint64_t size_on_server(const Download& what, const std::atomic<bool>* cancel = nullptr);

// What a status that is not 2xx means, and what would help: "401: ...".
Error refused_by_server(long status, const std::string& url);

}  // namespace redline
