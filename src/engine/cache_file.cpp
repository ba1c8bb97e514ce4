// Saves a sequence's cache rows and tokens to a file: a header, a description of each cache, the tokens, a
// text of the caller, then per cache the rows that it holds, oldest first, in pieces as CacheStore returns
// them. A checksum ends the file.
#include "base/file.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "engine/saved_cache.h"

#include <algorithm>
#include <cstring>

namespace redline {

namespace {

struct FileHeader {
    char magic[8] = {'R', 'L', 'C', 'A', 'C', 'H', 'E', '4'};
    uint64_t fingerprint = 0;
    uint64_t tokens = 0;
    uint64_t caches = 0;
    uint64_t text_bytes = 0;
};
static_assert(sizeof(FileHeader) == 40);

struct FileCache {
    uint32_t kv_heads = 0;
    uint32_t head_dim = 0;
    uint32_t type = 0;
    uint32_t piece = 0;  // rows
    uint64_t window = 0;
    uint64_t first = 0;  // the first token whose row is there; for states, the last token
    uint64_t state_floats = 0;
};
static_assert(sizeof(FileCache) == 40);

constexpr uint64_t kPieceBytes = uint64_t(4) << 20;
constexpr uint64_t kMostText = uint64_t(1) << 30;

SavedCache::Kind kind_of(const FileHeader& header) {
    const FileHeader wanted;
    constexpr size_t kVersion = sizeof(wanted.magic) - 1;  // the last byte
    if (std::memcmp(header.magic, wanted.magic, kVersion) != 0) return SavedCache::Kind::none;
    return header.magic[kVersion] == wanted.magic[kVersion] ? SavedCache::Kind::this_version
                                                            : SavedCache::Kind::other_version;
}

bool is_cancelled(const std::atomic<bool>* flag) {
    return flag && flag->load(std::memory_order_relaxed);
}

uint64_t row_bytes(const CacheInfo& cache) {
    return cache.row_bytes() * cache.kv_heads;
}

// The number of rows that a sequence of so many tokens has written; with blocks, only complete ones count.
uint64_t rows_of(const CacheInfo& cache, uint64_t tokens) {
    return tokens / cache.ratio;
}

// A contiguous run of some rows of a sequence.
struct Stretch {
    uint64_t at;  // index of its first row among those rows
    uint64_t row;
    uint64_t rows;
};

// Runs end at page boundaries, and a ring continues at its first row.
std::vector<Stretch> stretches(const CacheInfo& cache, std::span<const uint32_t> pages, uint64_t first,
                               uint64_t count) {
    std::vector<Stretch> out;
    for (uint64_t at = 0; at < count; at += out.back().rows) {
        const uint64_t rows = cache.sequence_rows / cache.ratio, page = kPageRows / cache.ratio;
        const uint64_t in_sequence = (first + at) % rows;
        const uint64_t left = pages.empty() ? rows - in_sequence : page - in_sequence % page;
        out.push_back({at, cache.row_of((first + at) * cache.ratio, pages), std::min(count - at, left)});
    }
    return out;
}

// Maps planes of `rows` rows from their places among planes of `count` rows, the first being row `at`, to
// planes that hold these rows alone: visit(offset among all, offset among these rows, bytes).
template <typename Visit>
void for_planes(const CacheInfo& cache, uint64_t count, uint64_t at, uint64_t rows, const Visit& visit) {
    uint64_t whole = 0, part = 0;
    for (uint32_t head = 0; head < cache.kv_heads; ++head)
        for (const uint64_t bytes : cache.planes()) {
            visit(whole + at * bytes, part, rows * bytes);
            whole += count * bytes;
            part += rows * bytes;
        }
}

}  // namespace

// The layout that save() and restore() share: which rows of which caches stand where in the file.
class CacheFile {
public:
    CacheFile(const std::string& path, const Engine& engine, const Sequence& sequence, uint64_t tokens,
              const Progress& progress, const std::atomic<bool>* cancel)
        : path_(path),
          engine_(engine),
          sequence_(sequence),
          tokens_(tokens),
          progress_(progress),
          cancel_(cancel) {}

    // Decides what the file has; bytes of all of it.
    uint64_t prepare(std::string_view text);
    // Hands the bytes of the file to `write`, piece by piece.
    using Write = std::function<Status(std::span<const std::byte>)>;
    Status write_to(std::string_view text, const Write& write);
    // Reads the whole file and compares it with its checksum.
    Status check(const File& file);
    Status load(const File& file, uint64_t at);
    static Result<CacheFile> open(const File& file, const Engine& engine, const Sequence& sequence,
                                  const Progress& progress, const std::atomic<bool>* cancel);

    uint64_t tokens() const { return tokens_; }
    uint64_t tokens_at() const { return sizeof(FileHeader) + caches_.size() * sizeof(FileCache); }
    uint64_t text_at() const { return tokens_at() + tokens_ * sizeof(Token); }
    uint64_t text_bytes() const { return text_bytes_; }
    uint64_t oldest() const { return oldest_; }

private:
    std::span<const CacheInfo> infos() const { return engine_.text_caches(); }
    void describe();
    Status check_caches() const;
    uint64_t file_bytes() const;
    // Calls visit(cache, its first row, count, bytes) for each piece.
    template <typename Visit>
    Status for_pieces(const Visit& visit) const;
    // Copies a sequence's rows [first, first + count) to or from `bytes`.
    Status read_rows(size_t cache, uint64_t first, uint64_t count, std::span<std::byte> bytes) const;
    Status write_rows(size_t cache, uint64_t first, uint64_t count, std::span<const std::byte> bytes) const;
    Status tick(uint64_t bytes);

    std::string path_;
    const Engine& engine_;
    const Sequence& sequence_;
    uint64_t tokens_;
    uint64_t text_bytes_ = 0;
    const Progress& progress_;
    const std::atomic<bool>* cancel_;
    std::vector<FileCache> caches_;
    uint64_t oldest_ = 0;
    uint64_t done_ = 0, total_ = 0;
};

void CacheFile::describe() {
    for (const CacheInfo& cache : infos()) {
        if (cache.is_state()) {
            caches_.push_back({cache.kv_heads, cache.head_dim, uint32_t(cache.type), 1, cache.window,
                               tokens_ > 0 ? tokens_ - 1 : 0, cache.state_floats});
            continue;
        }
        const uint64_t piece = std::max<uint64_t>(1, kPieceBytes / std::max<uint64_t>(1, row_bytes(cache)));
        caches_.push_back({cache.kv_heads, cache.head_dim, uint32_t(cache.type), uint32_t(piece),
                           cache.window, std::min(sequence_.first_held(cache), tokens_), 0});
    }
}

uint64_t CacheFile::file_bytes() const {
    uint64_t bytes = text_at() + text_bytes_ + sizeof(uint64_t);
    for (size_t i = 0; i < caches_.size(); ++i)
        bytes += (rows_of(infos()[i], tokens_) - caches_[i].first) * row_bytes(infos()[i]);
    return bytes;
}

Status CacheFile::tick(uint64_t bytes) {
    if (is_cancelled(cancel_)) return error("interrupted");
    done_ += bytes;
    if (progress_) progress_(done_, total_);
    return {};
}

template <typename Visit>
Status CacheFile::for_pieces(const Visit& visit) const {
    for (size_t i = 0; i < caches_.size(); ++i) {
        const uint64_t end = rows_of(infos()[i], tokens_);
        for (uint64_t first = caches_[i].first; first < end; first += caches_[i].piece) {
            const uint64_t count = std::min<uint64_t>(caches_[i].piece, end - first);
            RL_TRY(visit(i, first, count, count * row_bytes(infos()[i])));
        }
    }
    return {};
}

Status CacheFile::read_rows(size_t cache, uint64_t first, uint64_t count, std::span<std::byte> bytes) const {
    const CacheInfo& info = infos()[cache];
    if (info.is_state()) return engine_.caches_->read({int32_t(cache)}, sequence_.state_, 1, bytes);
    for (const auto& [at, row, rows] : stretches(info, sequence_.pages_, first, count)) {
        if (rows == count) return engine_.caches_->read({int32_t(cache)}, row, rows, bytes);
        std::vector<std::byte> part(rows * row_bytes(info));
        RL_TRY(engine_.caches_->read({int32_t(cache)}, row, rows, part));
        for_planes(info, count, at, rows, [&](uint64_t whole, uint64_t piece, uint64_t size) {
            std::memcpy(bytes.data() + whole, part.data() + piece, size);
        });
    }
    return {};
}

Status CacheFile::write_rows(size_t cache, uint64_t first, uint64_t count,
                             std::span<const std::byte> bytes) const {
    const CacheInfo& info = infos()[cache];
    if (info.is_state()) return engine_.caches_->write({int32_t(cache)}, sequence_.state_, 1, bytes);
    for (const auto& [at, row, rows] : stretches(info, sequence_.pages_, first, count)) {
        if (rows == count) return engine_.caches_->write({int32_t(cache)}, row, rows, bytes);
        std::vector<std::byte> part(rows * row_bytes(info));
        for_planes(info, count, at, rows, [&](uint64_t whole, uint64_t piece, uint64_t size) {
            std::memcpy(part.data() + piece, bytes.data() + whole, size);
        });
        RL_TRY(engine_.caches_->write({int32_t(cache)}, row, rows, part));
    }
    return {};
}

uint64_t CacheFile::prepare(std::string_view text) {
    describe();
    text_bytes_ = text.size();
    total_ = file_bytes();
    return total_;
}

Status CacheFile::write_to(std::string_view text, const Write& write_bytes) {
    Hash64 hash;
    const auto write = [&](std::span<const std::byte> bytes) -> Status {
        hash.add(bytes);
        RL_TRY(write_bytes(bytes));
        return tick(bytes.size());
    };
    FileHeader header;
    header.fingerprint = RL_TRY(engine_.model().fingerprint());
    header.tokens = tokens_;
    header.caches = caches_.size();
    header.text_bytes = text_bytes_;
    RL_TRY(write(std::as_bytes(std::span(&header, 1))));
    RL_TRY(write(std::as_bytes(std::span(caches_))));
    RL_TRY(write(std::as_bytes(std::span(sequence_.tokens()))));
    RL_TRY(write(std::as_bytes(std::span(text))));
    std::vector<std::byte> piece;
    const auto save_piece = [&](size_t cache, uint64_t first, uint64_t count, uint64_t bytes) -> Status {
        piece.resize(bytes);
        RL_TRY(read_rows(cache, first, count, piece));
        return write(piece);
    };
    RL_TRY(for_pieces(save_piece));
    const uint64_t sum = hash.value();
    return write_bytes(std::as_bytes(std::span(&sum, 1)));
}

Status CacheFile::check_caches() const {
    for (size_t i = 0; i < caches_.size(); ++i) {
        const FileCache& have = caches_[i];
        const CacheInfo& want = infos()[i];
        if (have.kv_heads != want.kv_heads || have.head_dim != want.head_dim || have.window != want.window ||
            have.state_floats != want.state_floats)
            return error("{} was saved with another model shape", path_);
        if (have.type != uint32_t(want.type))
            return error(
                "{} holds a {} cache; choose that cache type to use it", path_,
                have.type <= uint32_t(CacheType::f32) ? cache_type_name(CacheType(have.type)) : "newer");
        if (want.is_state() && have.first == (tokens_ > 0 ? tokens_ - 1 : 0) && have.piece == 1) continue;
        if (want.is_state() || have.piece == 0 || have.first > tokens_ ||
            (want.window == 0 && have.first > 0) || have.first > first_seen(want, tokens_))
            return error("{} holds impossible sizes: it is damaged", path_);
    }
    return {};
}

Result<CacheFile> CacheFile::open(const File& file, const Engine& engine, const Sequence& sequence,
                                  const Progress& progress, const std::atomic<bool>* cancel) {
    FileHeader header;
    if (file.size() < sizeof(header))
        return error("{} is not a saved cache: it has {} bytes", file.path(), file.size());
    RL_TRY(file.read(0, std::as_writable_bytes(std::span(&header, 1))));
    if (kind_of(header) == SavedCache::Kind::none) return error("{} is not a saved cache", file.path());
    if (kind_of(header) == SavedCache::Kind::other_version)
        return error("{} was saved by another version of redline", file.path());
    if (header.fingerprint != RL_TRY(engine.model().fingerprint()))
        return error("{} was saved with another model", file.path());
    if (header.tokens > engine.options().context)
        return error("{} holds {} tokens, the context is {}: -c {} makes room", file.path(), header.tokens,
                     engine.options().context, header.tokens + 1);
    CacheFile made(file.path(), engine, sequence, header.tokens, progress, cancel);
    if (header.caches != made.infos().size())
        return error("{} was saved with another model shape", file.path());
    if (header.text_bytes > file.size())
        return error("{} holds impossible sizes: it is damaged", file.path());
    made.text_bytes_ = header.text_bytes;
    made.caches_.resize(header.caches);
    RL_TRY(file.read(sizeof(header), std::as_writable_bytes(std::span(made.caches_))));
    RL_TRY(made.check_caches());
    if (file.size() != made.file_bytes())
        return error("{} has {} bytes, {} expected: it is damaged", file.path(), file.size(),
                     made.file_bytes());
    made.total_ = 2 * file.size();
    return made;
}

Status CacheFile::check(const File& file) {
    Hash64 hash;
    std::vector<std::byte> chunk(kPieceBytes);
    const uint64_t body = file.size() - sizeof(uint64_t);
    for (uint64_t at = 0; at < body; at += chunk.size()) {
        const auto part = std::span(chunk).first(size_t(std::min<uint64_t>(chunk.size(), body - at)));
        RL_TRY(file.read(at, part));
        hash.add(part);
        RL_TRY(tick(part.size()));
    }
    uint64_t sum = 0;
    RL_TRY(file.read(body, std::as_writable_bytes(std::span(&sum, 1))));
    if (sum != hash.value()) return error("{} does not match its checksum: it is damaged", path_);
    return {};
}

// Rows for which a smaller ring has no room are skipped.
Status CacheFile::load(const File& file, uint64_t at) {
    std::vector<std::byte> piece;
    for (size_t i = 0; i < caches_.size(); ++i)
        if (infos()[i].window > 0)
            oldest_ = std::max({oldest_, caches_[i].first,
                                tokens_ > infos()[i].sequence_rows ? tokens_ - infos()[i].sequence_rows : 0});
    return for_pieces([&](size_t cache, uint64_t first, uint64_t count, uint64_t bytes) -> Status {
        piece.resize(bytes);
        RL_TRY(file.read(at, piece));
        at += bytes;
        RL_TRY(write_rows(cache, first, count, piece));
        return tick(bytes);
    });
}

Result<SavedCache> describe_saved_cache(const std::string& path) {
    const File file = RL_TRY(File::open(path));
    FileHeader header;
    SavedCache saved;
    if (file.size() < sizeof(header)) return saved;
    RL_TRY(file.read(0, std::as_writable_bytes(std::span(&header, 1))));
    saved.kind = kind_of(header);
    if (saved.kind != SavedCache::Kind::this_version) return saved;
    saved.fingerprint = header.fingerprint;
    const uint64_t room = file.size() - sizeof(header);
    const bool fits = header.caches <= room / sizeof(FileCache) && header.tokens <= room / sizeof(Token) &&
                      header.text_bytes <= std::min(room, kMostText);
    const uint64_t tokens_at = fits ? sizeof(header) + header.caches * sizeof(FileCache) : 0;
    const uint64_t at = fits ? tokens_at + header.tokens * sizeof(Token) : 0;
    if (!fits || at + header.text_bytes > file.size()) return saved;  // damaged
    saved.tokens.resize(header.tokens);
    RL_TRY(file.read(tokens_at, std::as_writable_bytes(std::span(saved.tokens))));
    saved.text.resize(header.text_bytes);
    RL_TRY(file.read(at, std::as_writable_bytes(std::span(saved.text))));
    return saved;
}

Status Engine::save(const Sequence& sequence, const std::string& path, const Progress& progress,
                    const std::atomic<bool>* cancel, std::string_view text) const {
    const std::lock_guard turn(model_->turns());
    RL_TRY(check_open());
    if (sequence.opened_ != opened_) return error("{}: the caches that held it are lost", path);
    CacheFile saved(path, *this, sequence, sequence.position(), progress, cancel);
    saved.prepare(text);
    AtomicWriter file = RL_TRY(AtomicWriter::create(path, 0600));  // it holds the conversation
    RL_TRY(saved.write_to(text, [&](std::span<const std::byte> bytes) { return file.write(bytes); }));
    return file.commit(false);  // not synced: the checksum shows an incomplete file
}

uint64_t Engine::saved_bytes(const Sequence& sequence) const {
    const Progress none;
    return CacheFile("", *this, sequence, sequence.position(), none, nullptr).prepare({});
}

Result<std::vector<std::byte>> Engine::saved(const Sequence& sequence) const {
    const std::lock_guard turn(model_->turns());
    RL_TRY(check_open());
    if (sequence.opened_ != opened_) return error("the caches that held a sequence are lost");
    const Progress none;
    CacheFile saved("a saved cache", *this, sequence, sequence.position(), none, nullptr);
    std::vector<std::byte> all;
    all.reserve(saved.prepare({}));
    RL_TRY(saved.write_to({}, [&](std::span<const std::byte> bytes) -> Status {
        all.insert(all.end(), bytes.begin(), bytes.end());
        return {};
    }));
    return all;
}

// Reads the file twice: nothing of the sequence changes unless the whole file is sound.
Status Engine::restore(Sequence& sequence, const std::string& path, const Progress& progress,
                       const std::atomic<bool>* cancel, std::string* text) {
    const std::lock_guard turn(model_->turns());
    RL_TRY(check_open());
    const File file = RL_TRY(File::open(path));
    CacheFile saved = RL_TRY(CacheFile::open(file, *this, sequence, progress, cancel));
    RL_TRY(saved.check(file));
    std::vector<Token> tokens(saved.tokens());
    RL_TRY(file.read(saved.tokens_at(), std::as_writable_bytes(std::span(tokens))));
    for (const Token token : tokens)
        if (token < 0 || uint32_t(token) >= model_->config().vocab)
            return error("{} holds token id {}, outside the model's vocabulary", path, token);
    if (text) {
        text->resize(saved.text_bytes());
        RL_TRY(file.read(saved.text_at(), std::as_writable_bytes(std::span(*text))));
    }
    sequence.rewind(0);
    sequence.opened_ = opened_;
    const Feed all{&sequence, tokens};
    if (!tokens.empty()) {
        RL_TRY(give_pages({&all, 1}));
        sequence.state_ = pool_->take_state();
    }
    RL_TRY(saved.load(file, saved.text_at() + saved.text_bytes()));
    sequence.tokens_ = std::move(tokens);
    sequence.written_ = sequence.position();
    sequence.oldest_ = saved.oldest();
    sequence.take_snapshot(false);
    sequence.head_.begin = sequence.head_.read = sequence.position();
    return {};
}

}  // namespace redline
