#include "serve/batch/kept_files.h"

#include "base/file.h"
#include "base/file_turn.h"
#include "base/hash.h"
#include "engine/saved_cache.h"
#include "serve/batch/kept_sequences.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace redline::serve {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kEnding = ".kept";
// Shorter sequences are read again as fast as from a file.
constexpr uint64_t kWorthAFile = 32;
constexpr uint64_t kMostWaiting = uint64_t(2) << 30;  // bytes
constexpr size_t kMostFiles = 1024;                   // whose tokens are compared with each prompt

struct Entry {
    std::string name;
    uint64_t bytes = 0;
    fs::file_time_type used = {};
};

std::vector<Entry> entries_of(const std::string& folder) {
    std::vector<Entry> all;
    std::error_code fault;
    for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault)) {
        std::error_code gone;  // another server may have removed it meanwhile
        Entry entry{at->path().filename().string(), at->file_size(gone), at->last_write_time(gone)};
        if (!gone) all.push_back(std::move(entry));
    }
    return all;
}

// Reads all of a file. An error is met again, and said, by whoever uses the file.
void read_through(const std::string& path, const std::atomic<bool>& cancel) {
    constexpr uint64_t kPiece = uint64_t(4) << 20;
    const Result<File> file = File::open(path);
    if (!file) return;
    const uint64_t size = file.value().size();
    std::vector<std::byte> piece(std::min(kPiece, size));
    for (uint64_t at = 0; at < size && !cancel; at += piece.size()) {
        const uint64_t bytes = std::min<uint64_t>(piece.size(), size - at);
        if (!file.value().read(at, std::span(piece).first(bytes))) return;
    }
}

int64_t ticks(fs::file_time_type time) {
    return int64_t(time.time_since_epoch().count());
}

}  // namespace

Status prepare_cache_folder(const std::string& path) {
    std::error_code fault;
    if (const fs::path parent = fs::path(path).parent_path(); !parent.empty())
        fs::create_directories(parent, fault);
    if (fs::create_directory(path, fault)) fs::permissions(path, fs::perms::owner_all, fault);
    if (!fs::is_directory(path, fault))
        return error("the cache folder {} cannot be made: {}", path,
                     fault ? fault.message() : std::string("a file has that name"));
    const Result<FileTurn> turn = FileTurn::take(path + "/cache", 0600);
    if (!turn) return error("the cache folder {} cannot be written to: {}", path, turn.error().message);
    return {};
}

Result<std::unique_ptr<KeptFiles>> KeptFiles::open(CacheFolder folder, std::string key, bool rewinds,
                                                   Notes& notes) {
    RL_TRY(prepare_cache_folder(folder.path));
    return std::unique_ptr<KeptFiles>(new KeptFiles(std::move(folder), std::move(key), rewinds, notes));
}

KeptFiles::KeptFiles(CacheFolder folder, std::string key, bool rewinds, Notes& notes)
    : folder_(std::move(folder)), key_(std::move(key)), rewinds_(rewinds), notes_(notes) {
    if (!folder_.read) folder_.read = read_through;
    writer_ = std::thread([this] { run(); });
    reader_ = std::thread([this] { run_reads(); });
}

KeptFiles::~KeptFiles() {
    stop_reading();
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
        wake_.notify_all();
    }
    writer_.join();
}

// True when nothing is lost without the shorter one.
bool KeptFiles::covers(std::span<const Token> longer, std::span<const Token> shorter) const {
    if (shorter.size() > longer.size() || (!rewinds_ && shorter.size() != longer.size())) return false;
    return common_beginning(longer, shorter) == shorter.size();
}

// Reads the tokens of files that are new. A change within the clock's last ticks may not be the last one of
// its time, so that the folder is read once more after it.
void KeptFiles::look() {
    std::error_code fault;
    const fs::file_time_type changed = fs::last_write_time(folder_.path, fault);
    if (fault || ticks(changed) == changed_) return;
    const bool settled = fs::file_time_type::clock::now() - changed > std::chrono::milliseconds(100);
    changed_ = settled ? ticks(changed) : -1;
    std::map<std::string, std::vector<Token>> found;
    for (const Entry& entry : entries_of(folder_.path)) {
        if (!entry.name.starts_with(key_ + "-") || !entry.name.ends_with(kEnding)) continue;
        const std::lock_guard lock(mutex_);
        if (auto known = files_.extract(entry.name)) {
            found.insert(std::move(known));
            continue;
        }
        Result<SavedCache> saved = describe_saved_cache(folder_.path + "/" + entry.name);
        if (!saved || saved.value().kind == SavedCache::Kind::other_version) continue;
        if (saved.value().tokens.empty())
            remove({entry.name}, error("{}/{} is damaged", folder_.path, entry.name));
        else
            found.emplace(entry.name, std::move(saved.value().tokens));
    }
    const std::lock_guard lock(mutex_);
    files_ = std::move(found);
}

KeptFiles::Match KeptFiles::find(std::span<const Token> prompt) {
    look();
    const std::lock_guard lock(mutex_);
    Match best;
    for (const auto& [name, tokens] : files_) {
        uint64_t served = std::min<uint64_t>(common_beginning(tokens, prompt), prompt.size() - 1);
        if (!rewinds_ && served != tokens.size()) served = 0;
        if (served > best.tokens) best = {name, served, tokens.size()};
    }
    return best;
}

void KeptFiles::read(const Match& match, std::function<void()> done) {
    const std::lock_guard lock(mutex_);
    reading_ = match;
    in_memory_ = false;
    read_done_ = std::move(done);
    wake_reader_.notify_one();
}

bool KeptFiles::is_busy() const {
    const std::lock_guard lock(mutex_);
    return reading_.has_value();
}

bool KeptFiles::is_reading() const {
    const std::lock_guard lock(mutex_);
    return reading_ && !in_memory_;
}

std::optional<KeptFiles::Match> KeptFiles::take_read() {
    const std::lock_guard lock(mutex_);
    if (!in_memory_) return {};
    in_memory_ = false;
    return std::exchange(reading_, {});
}

void KeptFiles::stop_reading() {
    if (!reader_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        cancel_reading_ = true;
        wake_reader_.notify_one();
    }
    reader_.join();
}

void KeptFiles::run_reads() {
    std::unique_lock lock(mutex_);
    while (true) {
        wake_reader_.wait(lock, [this] { return cancel_reading_ || (reading_ && !in_memory_); });
        if (cancel_reading_) return;
        const std::string file = path(*reading_);
        lock.unlock();
        folder_.read(file, cancel_reading_);
        lock.lock();
        in_memory_ = true;
        const std::function<void()> done = std::move(read_done_);
        lock.unlock();
        done();
        lock.lock();
    }
}

void KeptFiles::used(const Match& match) {
    std::error_code ignored;
    fs::last_write_time(path(match), fs::file_time_type::clock::now(), ignored);
}

void KeptFiles::remove(const Match& match, const Error& why) {
    std::error_code ignored;
    fs::remove(path(match), ignored);
    changed_ = -1;
    say_once(said_damaged_, fmt::format("{}: it is removed, and others like it without a word", why.message));
}

void KeptFiles::say_once(bool& said, const std::string& text) {
    if (!std::exchange(said, true)) notes_.note(text);
}

bool KeptFiles::wants(std::span<const Token> tokens) {
    if (tokens.size() < kWorthAFile) return false;
    look();
    const std::lock_guard lock(mutex_);
    return std::ranges::none_of(files_, [&](const auto& file) { return covers(file.second, tokens); }) &&
           std::ranges::none_of(jobs_, [&](const Job& job) { return covers(job.tokens, tokens); });
}

bool KeptFiles::has_room(uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    uint64_t waiting = bytes;
    for (const Job& job : jobs_) waiting += job.bytes.size();
    return bytes <= folder_.most_bytes && (jobs_.empty() || waiting <= kMostWaiting);
}

void KeptFiles::write(std::vector<Token> tokens, std::vector<std::byte> bytes) {
    Hash64 hash;
    hash.add(std::as_bytes(std::span(tokens)));
    const std::lock_guard lock(mutex_);
    jobs_.push_back(
        {fmt::format("{}-{:016x}{}", key_, hash.value(), kEnding), std::move(tokens), std::move(bytes)});
    wake_.notify_all();
}

void KeptFiles::wait() {
    std::unique_lock lock(mutex_);
    written_.wait(lock, [this] { return jobs_.empty(); });
}

void KeptFiles::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        wake_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        const Job& job = jobs_.front();  // which stays in its place while others come
        lock.unlock();
        const Status done = write_now(job);
        if (!done)
            say_once(said_unwritten_, fmt::format("{}; prompts that have to be read again cost only time",
                                                  done.error().message));
        lock.lock();
        jobs_.pop_front();
        written_.notify_all();
    }
}

Status KeptFiles::write_now(const Job& job) {
    // Other servers make room in the same folder.
    const FileTurn turn = RL_TRY(FileTurn::take(folder_.path + "/cache", 0600));
    make_room(job.bytes.size());
    AtomicWriter file = RL_TRY(AtomicWriter::create(folder_.path + "/" + job.name, 0600));
    RL_TRY(file.write(job.bytes));
    RL_TRY(file.commit(false));  // not synced: the checksum shows an incomplete file
    remove_covered(job);
    return {};
}

// A file of a longer sequence serves all beginnings.
void KeptFiles::remove_covered(const Job& job) {
    std::vector<std::string> names;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, tokens] : files_)
            if (name != job.name && covers(job.tokens, tokens)) names.push_back(name);
    }
    std::error_code ignored;
    for (const std::string& name : names) fs::remove(folder_.path + "/" + name, ignored);
}

// Removes files until `bytes` more fit: first what servers left half written, then those used least recently.
void KeptFiles::make_room(uint64_t bytes) const {
    constexpr std::chrono::hours kAbandoned(1);
    std::vector<Entry> all = entries_of(folder_.path);
    std::error_code ignored;
    const auto now = fs::file_time_type::clock::now();
    std::erase_if(all, [&](const Entry& entry) {
        if (entry.name.find(fmt::format("{}.part", kEnding)) != entry.name.npos &&
            now - entry.used > kAbandoned)
            fs::remove(folder_.path + "/" + entry.name, ignored);
        return !entry.name.ends_with(kEnding);
    });
    std::ranges::sort(all, {}, &Entry::used);
    uint64_t sum = bytes;
    for (const Entry& entry : all) sum += entry.bytes;
    for (size_t i = 0; i < all.size() && (sum > folder_.most_bytes || all.size() - i >= kMostFiles); ++i) {
        fs::remove(folder_.path + "/" + all[i].name, ignored);
        sum -= all[i].bytes;
    }
}

}  // namespace redline::serve
