#include "fetch/download.h"

#include "base/file.h"
#include "base/os/file_handle.h"
#include "base/sha256.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

namespace redline {

namespace fs = std::filesystem;

namespace {

// PATH.part, locked by this process.
class PartialFile {
public:
    static Result<PartialFile> open(const std::string& path) {
        constexpr int kMostTries = 100;
        for (int i = 0; i < kMostTries; ++i) {
            std::error_code fault;
            os::FileHandle handle = os::FileHandle::open(path, os::OpenMode::update, fault);
            if (fault) return error("cannot create {}: {}", path, fault.message());
            if (!handle.try_lock(fault)) break;
            // Another process may have renamed or removed the file before it was locked.
            std::error_code missing;
            const os::FileInfo held = handle.info(fault), named = os::info_of(path, missing);
            if (!fault && !missing && held.is_same_file(named)) return PartialFile(std::move(handle), path);
        }
        return error("{} is being fetched by another process", path);
    }

    // Hashes the part that is there, so that it need not be read again at the end.
    Result<Sha256> read_what_is_there() {
        Sha256 hash;
        std::vector<std::byte> piece(1 << 20);
        for (size_ = 0;;) {
            std::error_code fault;
            const size_t got = handle_.read_at(size_, piece, fault);
            if (fault) return error("cannot read {}: {}", path_, fault.message());
            if (got == 0) return hash;
            hash.update(std::span(piece).first(got));
            size_ += got;
        }
    }
    Status append(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            std::error_code fault;
            const size_t put = handle_.write_at(size_, bytes, fault);
            if (fault) return error("cannot write {}: {}", path_, fault.message());
            bytes = bytes.subspan(put);
            size_ += put;
        }
        return {};
    }
    Status begin_again() {
        std::error_code fault;
        handle_.truncate(fault);
        if (fault) return error("cannot write {}: {}", path_, fault.message());
        size_ = 0;
        return {};
    }
    Status become(const std::string& name) {
        std::error_code fault;
        handle_.sync(fault);
        if (fault) return error("cannot write {}: {}", path_, fault.message());
        os::replace_file(path_, name, fault);
        if (fault) return error("cannot rename {} to {}: {}", path_, name, fault.message());
        set_version("");
        return {};
    }
    void remove() {
        set_version("");
        os::remove_file(path_.c_str());
        size_ = 0;
    }
    uint64_t size() const { return size_; }
    const std::string& path() const { return path_; }

    // The server's version (ETag) of the file that the part belongs to; empty: not known.
    std::string version() const {
        constexpr uint64_t kLongest = 1024;
        const Result<std::string> kept = read_text_file(version_path(), kLongest);
        return kept ? kept.value() : "";
    }
    void set_version(const std::string& version) const {
        if (version.empty())
            os::remove_file(version_path().c_str());
        else
            std::ofstream(version_path(), std::ios::binary) << version;
    }

private:
    std::string version_path() const { return path_ + ".version"; }
    PartialFile(os::FileHandle handle, std::string path)
        : handle_(std::move(handle)), path_(std::move(path)) {}
    os::FileHandle handle_;
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

// The whole size, from "Content-Range: bytes FIRST-LAST/ALL" or the length of a whole body; 0: not stated.
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

// A version that stands for identical bytes: weak ones, W/"...", may only mean equal content.
std::string strong_version(const HttpResponse& response) {
    const std::string version = header(response, "etag");
    return version.starts_with('"') ? version : "";
}

// One attempt, which requests the bytes that the partial file lacks.
class Attempt {
public:
    Attempt(const Download& what, PartialFile& file, Sha256& hash, const DownloadProgress& progress)
        : what_(what), file_(file), hash_(hash), progress_(progress) {}

    Result<HttpResponse> run(const std::atomic<bool>* cancel) {
        begun_ = false;
        HttpRequest request{what_.url, what_.headers, what_.stall_seconds};
        request.headers.emplace_back("Accept-Encoding: identity");
        if (file_.size() > 0) {
            request.headers.push_back(fmt::format("Range: bytes={}-", file_.size()));
            // If the file has changed, the server sends all of it.
            if (what_.sha256.empty()) request.headers.push_back("If-Range: " + file_.version());
        }
        std::optional<Error> ours;
        const HttpBody take = [&](const HttpResponse& response, std::span<const std::byte> bytes) -> Status {
            const Status taken = this->take(response, bytes);
            if (!taken) ours = taken.error();
            return taken;
        };
        Result<HttpResponse> response = http_get(request, take, cancel);
        if (!response && !ours) return error("{}: {}{}", what_.url, response.error().message, kept());
        return response;
    }
    uint64_t total() const { return total_; }
    // True when the server sent the rest of another version than the part belongs to.
    bool met_other_version() const { return other_version_; }
    // The end of an error message, which says what can be done next.
    std::string kept() const {
        if (file_.size() == 0) return "";
        return what_.sha256.empty() && file_.version().empty() ? "; try again"
                                                               : "; the same command goes on from there";
    }

private:
    Status take(const HttpResponse& response, std::span<const std::byte> bytes) {
        if (response.status != 200 && response.status != 206) return {};  // a page that explains the error
        if (!std::exchange(begun_, true)) RL_TRY(begin(response, bytes));
        if (total_ > 0 && file_.size() + bytes.size() > total_)
            return error("{} sends more than the {} bytes that the file has", what_.url, total_);
        const Status written = file_.append(bytes);
        if (!written) return error("{}{}", written.error().message, kept());
        hash_.update(bytes);
        progress_(file_.size(), total_);
        return {};
    }
    Status begin(const HttpResponse& response, std::span<const std::byte> bytes) {
        const std::string encoding = header(response, "content-encoding");
        if (!encoding.empty() && encoding != "identity")
            return error("{} sends the file compressed by {}, which was not requested", what_.url, encoding);
        constexpr size_t kLeast = 16;  // a shorter first piece is checked with the whole file
        if (response.status == 200 && what_.check_start && bytes.size() >= kLeast)
            RL_TRY(what_.check_start(bytes));
        if (response.status == 206 && first_of(response) != file_.size())
            return error("{} sends another part of the file than it was asked for", what_.url);
        // Some servers ignore If-Range, and send the rest of their current version.
        other_version_ = response.status == 206 && file_.size() > 0 && what_.sha256.empty() &&
                         strong_version(response) != file_.version();
        if (other_version_) return error("{} has another version of the file by now", what_.url);
        const uint64_t said = size_of(response);
        if (what_.bytes > 0 && said > 0 && said != what_.bytes)
            return error("{} has {} bytes, and {} were announced", what_.url, said, what_.bytes);
        // A server without ranges, or with another version, sends the whole file again.
        if (response.status == 200) {
            if (file_.size() > 0) RL_TRY(file_.begin_again());
            hash_ = {};
            if (what_.sha256.empty()) file_.set_version(strong_version(response));
        }
        total_ = what_.bytes > 0 ? what_.bytes : said;
        return check_space(what_.path, total_ - std::min(total_, file_.size()));
    }

    const Download& what_;
    PartialFile& file_;
    Sha256& hash_;
    const DownloadProgress& progress_;
    bool begun_ = false;
    bool other_version_ = false;
    uint64_t total_ = 0;
};

Status fetch_missing(const Download& what, PartialFile& file, Sha256& hash, const DownloadProgress& progress,
                     const std::atomic<bool>* cancel) {
    constexpr long kNoSuchRange = 416;
    Attempt attempt(what, file, hash, progress);
    Result<HttpResponse> response = attempt.run(cancel);
    // When the server's file is shorter than the part, the part belongs to another version.
    const bool too_long = response && response->status == kNoSuchRange && file.size() > 0;
    if (too_long || attempt.met_other_version()) {
        RL_TRY(file.begin_again());
        hash = {};
        response = attempt.run(cancel);
    }
    const long status = RL_TRY(std::move(response)).status;
    if (status != 200 && status != 206) return refused_by_server(status, what.url);
    if (attempt.total() > 0 && file.size() != attempt.total())
        return error("{} ended after {} of {} bytes{}", what.url, file.size(), attempt.total(),
                     attempt.kept());
    return {};
}

// Renames the complete file, or deletes it. A correct hash shows that the server has no better copy.
Status settle(const Download& what, PartialFile& file, const std::string& sha256) {
    if (!what.sha256.empty() && sha256 != what.sha256) {
        file.remove();
        return error("{}: the download is damaged (sha256 {}, not {}) and was deleted", what.url, sha256,
                     what.sha256);
    }
    const FileCheck found = what.check ? what.check(file.path()) : FileCheck();
    if (found.damaged && what.sha256.empty()) {
        file.remove();
        return error("{}; the download was deleted", found.sound.error().message);
    }
    RL_TRY(file.become(what.path));
    if (found.sound) return {};
    return error("{}; the download is complete and is kept as {}", found.sound.error().message, what.path);
}

}  // namespace

uint64_t size_on_server(const Download& what, const std::atomic<bool>* cancel) {
    HttpRequest request{what.url, what.headers, what.stall_seconds};
    request.headers.emplace_back("Range: bytes=0-63");
    request.headers.emplace_back("Accept-Encoding: identity");
    uint64_t bytes = 0;
    // A server without ranges would send the whole file.
    const HttpBody stop = [&](const HttpResponse& response, std::span<const std::byte> start) -> Status {
        if (!what.check_start || what.check_start(start)) bytes = size_of(response);
        return error("enough is known");
    };
    (void)http_get(request, stop, cancel);
    return bytes;
}

Error refused_by_server(long status, const std::string& url) {
    switch (status) {
        case 401:
            return error(
                "{} answers 401: it requires an access token; set HF_TOKEN to one, or the "
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
    // Without either there is no way to tell whether the part belongs to the same file.
    const auto resumable = [&] { return !what.sha256.empty() || !file.version().empty(); };
    if (!resumable() || (what.bytes > 0 && file.size() > what.bytes)) {
        RL_TRY(file.begin_again());
        hash = {};
    }
    if (what.bytes == 0 || file.size() < what.bytes) {
        const Status fetched = fetch_missing(what, file, hash, progress, cancel);
        if (!fetched && (file.size() == 0 || !resumable())) file.remove();
        RL_TRY(fetched);
    }
    return settle(what, file, hash.digest());
}

}  // namespace redline
