#include "fetch/download.h"

#include "base/file.h"
#include "base/sha256.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace redline {

namespace fs = std::filesystem;

namespace {

// PATH.part, held by this process alone while it lives.
class PartialFile {
public:
    static Result<PartialFile> open(const std::string& path) {
        const int handle = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (handle < 0) return error("cannot create {}: {}", path, std::strerror(errno));
        PartialFile file(handle, path);
        if (::flock(handle, LOCK_EX | LOCK_NB) != 0)
            return error("{} is being fetched by another process", path);
        return file;
    }
    PartialFile(PartialFile&& other) noexcept
        : handle_(std::exchange(other.handle_, -1)), path_(std::move(other.path_)), size_(other.size_) {}
    ~PartialFile() {
        if (handle_ >= 0) ::close(handle_);
    }

    // Hashes what is there, so that it need not be read again at the end.
    Result<Sha256> read_what_is_there() {
        Sha256 hash;
        std::vector<std::byte> piece(1 << 20);
        for (size_ = 0;;) {
            const ssize_t got = ::pread(handle_, piece.data(), piece.size(), off_t(size_));
            if (got < 0) return error("cannot read {}: {}", path_, std::strerror(errno));
            if (got == 0) return hash;
            hash.update(std::span(piece).first(size_t(got)));
            size_ += uint64_t(got);
        }
    }
    Status append(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t put = ::pwrite(handle_, bytes.data(), bytes.size(), off_t(size_));
            if (put < 0 && errno == EINTR) continue;
            if (put < 0)
                return error("cannot write {}: {}; what came so far is kept", path_, std::strerror(errno));
            bytes = bytes.subspan(size_t(put));
            size_ += uint64_t(put);
        }
        return {};
    }
    Status begin_again() {
        if (::ftruncate(handle_, 0) != 0) return error("cannot write {}: {}", path_, std::strerror(errno));
        size_ = 0;
        return {};
    }
    Status become(const std::string& name) {
        if (::fsync(handle_) != 0) return error("cannot write {}: {}", path_, std::strerror(errno));
        if (::rename(path_.c_str(), name.c_str()) != 0)
            return error("cannot rename {} to {}: {}", path_, name, std::strerror(errno));
        return {};
    }
    void remove() { ::unlink(path_.c_str()); }
    uint64_t size() const { return size_; }

private:
    PartialFile(int handle, std::string path) : handle_(handle), path_(std::move(path)) {}
    int handle_;
    std::string path_;
    uint64_t size_ = 0;
};

std::string header(const HttpResponse& response, const std::string& name) {
    const auto at = response.headers.find(name);
    return at == response.headers.end() ? "" : at->second;
}

uint64_t number(std::string_view text) {
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// The whole size, from "Content-Range: bytes FIRST-LAST/ALL" or the length of a whole body; 0: not said.
uint64_t size_of(const HttpResponse& response) {
    const std::string range = header(response, "content-range");
    const size_t slash = range.find('/');
    if (slash != std::string::npos) return number(std::string_view(range).substr(slash + 1));
    return response.status == 200 ? number(header(response, "content-length")) : 0;
}

uint64_t first_of(const HttpResponse& response) {
    const std::string range = header(response, "content-range");
    return range.starts_with("bytes ") ? number(std::string_view(range).substr(6)) : 0;
}

Status check_space(const std::string& path, uint64_t wanted) {
    std::error_code unknown;
    const fs::space_info space = fs::space(fs::path(path).parent_path(), unknown);
    if (unknown || space.available >= wanted) return {};
    return error("{} has {:.1f} GB free, and {:.1f} GB are still to come",
                 fs::path(path).parent_path().string(), double(space.available) * 1e-9,
                 double(wanted) * 1e-9);
}

// One attempt: asks for what the partial file lacks.
class Attempt {
public:
    Attempt(const Download& what, PartialFile& file, Sha256& hash, const DownloadProgress& progress)
        : what_(what), file_(file), hash_(hash), progress_(progress) {}

    Result<HttpResponse> run(const std::atomic<bool>* cancel) {
        HttpRequest request{what_.url, what_.headers, what_.stall_seconds};
        if (file_.size() > 0) request.headers.push_back(fmt::format("Range: bytes={}-", file_.size()));
        const HttpBody take = [&](const HttpResponse& response, std::span<const std::byte> bytes) -> Status {
            if (response.status != 200 && response.status != 206) return {};  // a page that explains
            if (!std::exchange(begun_, true)) RL_TRY(begin(response));
            if (total_ > 0 && file_.size() + bytes.size() > total_)
                return error("{} sends more than the {} bytes that the file has", what_.url, total_);
            RL_TRY(file_.append(bytes));
            hash_.update(bytes);
            progress_(file_.size(), total_);
            return {};
        };
        return http_get(request, take, cancel);
    }
    uint64_t total() const { return total_; }

private:
    Status begin(const HttpResponse& response) {
        // A server that knows no ranges sends it all again.
        if (response.status == 200 && file_.size() > 0) {
            RL_TRY(file_.begin_again());
            hash_ = {};
        }
        if (response.status == 206 && first_of(response) != file_.size())
            return error("{} sends another part of the file than it was asked for", what_.url);
        const uint64_t said = size_of(response);
        if (what_.bytes > 0 && said > 0 && said != what_.bytes)
            return error("{} has {} bytes, and {} were announced", what_.url, said, what_.bytes);
        total_ = what_.bytes > 0 ? what_.bytes : said;
        return check_space(what_.path, total_ - std::min(total_, file_.size()));
    }

    const Download& what_;
    PartialFile& file_;
    Sha256& hash_;
    const DownloadProgress& progress_;
    bool begun_ = false;
    uint64_t total_ = 0;
};

}  // namespace

Error refused_by_server(long status, const std::string& url) {
    switch (status) {
        case 401:
            return error(
                "{} answers 401: it wants to know who asks; set HF_TOKEN to an access token, or the "
                "repository does not exist",
                url);
        case 403:
            return error(
                "{} answers 403: this user may not have it; gated models must be asked for on their page",
                url);
        case 404:
            return error("{} answers 404: there is no such file or repository", url);
        case 429:
            return error("{} answers 429: too many requests; try again later, or set HF_TOKEN", url);
        default:
            return error("{} answers {}: {}", url, status,
                         status >= 500 ? "the server is in trouble; try again later" : "it refuses");
    }
}

Status download(const Download& what, const DownloadProgress& progress, const std::atomic<bool>* cancel) {
    std::error_code problem;
    fs::create_directories(fs::path(what.path).parent_path(), problem);
    if (problem)
        return error("cannot create {}: {}", fs::path(what.path).parent_path().string(), problem.message());
    PartialFile file = RL_TRY(PartialFile::open(what.path + ".part"));
    Sha256 hash = RL_TRY(file.read_what_is_there());
    // Without a hash nothing tells whether the beginning is of the same file.
    if (what.sha256.empty() || (what.bytes > 0 && file.size() > what.bytes)) {
        RL_TRY(file.begin_again());
        hash = {};
    }
    if (what.bytes == 0 || file.size() < what.bytes) {
        Attempt attempt(what, file, hash, progress);
        const HttpResponse response = RL_TRY(attempt.run(cancel));
        if (response.status != 200 && response.status != 206) {
            if (file.size() == 0) file.remove();
            return refused_by_server(response.status, what.url);
        }
        if (attempt.total() > 0 && file.size() != attempt.total())
            return error("{} ended after {} of {} bytes; {}", what.url, file.size(), attempt.total(),
                         what.sha256.empty() ? "try again" : "the same command goes on from there");
    }
    const std::string got = hash.digest();
    if (!what.sha256.empty() && got != what.sha256) {
        file.remove();
        return error("{}: what came is damaged (sha256 {}, not {}); it is thrown away", what.url, got,
                     what.sha256);
    }
    return file.become(what.path);
}

}  // namespace redline
