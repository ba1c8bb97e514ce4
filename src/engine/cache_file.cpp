// Saves a sequence's cache rows and tokens to a file: a header, a description of each cache, the tokens, a
// text of the caller, then per cache the rows that it holds, oldest first, in pieces as CacheStore returns
// them. Where MTP heads know the sequence, a part of each follows: a header, a description of each of its
// caches, hidden rows, and rows of the caches. A checksum ends the file.
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
    uint32_t type = 0;   // see type_number()
    uint32_t piece = 0;  // rows
    uint64_t window = 0;
    uint64_t first = 0;  // the first token whose row is there; for states, the last token
    uint64_t state_floats = 0;
};
static_assert(sizeof(FileCache) == 40);

struct FileHead {
    uint64_t bytes = 0;        // of this part
    uint64_t fingerprint = 0;  // of the model that has the head
    uint64_t caches = 0;
    uint64_t begin = 0, read = 0, first = 0;  // as Sequence::Head has them
    uint64_t hidden = 0;                      // floats
    int64_t unused = -1;                      // files of one head had a token here
};
static_assert(sizeof(FileHead) == 64);

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

// The keys' type in the lowest byte, and how the values' number differs from it in the next: files from
// before they could differ have 0 there. Above them, whether keys and whether values are rotated.
uint32_t type_number(const CacheInfo& cache) {
    const auto keys = uint32_t(cache.types.keys), values = uint32_t(cache.types.values);
    return keys | (keys ^ values) << 8 | uint32_t(cache.key_rotation() > 0) << 16 |
           uint32_t(cache.value_rotation() > 0) << 17;
}

// "q4_0/f16 with rotated keys", as far as this version knows the types.
std::string type_text(uint32_t number) {
    const uint32_t keys = number & 255, values = keys ^ (number >> 8 & 255), rotations = number >> 16;
    if (std::max(keys, values) >= std::size(kCacheTypes) || rotations > 3) return "newer";
    constexpr std::string_view kRotations[] = {"", " with rotated keys", " with rotated values", " rotated"};
    return cache_types_name({CacheType(keys), CacheType(values)}) + std::string(kRotations[rotations]);
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
    // The caches of the text's layers, or of a head.
    struct Part {
        std::span<const CacheInfo> infos;
        size_t first = 0;     // number of the first of them
        uint64_t tokens = 0;  // whose rows they have
        std::vector<FileCache> caches = {};
    };
    // A head, with the rows that depend on the sequence's tokens alone.
    struct HeadPart {
        Part part;
        FileHead header = {};
        Sequence::Head known = {};
    };

public:
    CacheFile(const std::string& path, const Engine& engine, const Sequence& sequence, uint64_t tokens,
              const Progress& progress, const std::atomic<bool>* cancel)
        : path_(path),
          engine_(engine),
          sequence_(sequence),
          text_{engine.text_caches(), 0, tokens},
          progress_(progress),
          cancel_(cancel) {}

    // Decides what the file has; bytes of all of it.
    uint64_t prepare(std::string_view text);
    // Hands the bytes of the file to `write`, piece by piece.
    using Write = std::function<Status(std::span<const std::byte>)>;
    Status write_to(std::string_view text, const Write& write);
    // Reads the whole file and compares it with its checksum.
    Status check(const File& file);
    // Fills the caches. `heads`: what the heads know of the sequence from then on.
    Status load(const File& file, std::vector<Sequence::Head>& heads);
    static Result<CacheFile> open(const File& file, const Engine& engine, const Sequence& sequence,
                                  const Progress& progress, const std::atomic<bool>* cancel);

    uint64_t tokens() const { return text_.tokens; }
    uint64_t tokens_at() const { return sizeof(FileHeader) + text_.caches.size() * sizeof(FileCache); }
    uint64_t text_at() const { return tokens_at() + text_.tokens * sizeof(Token); }
    uint64_t text_bytes() const { return text_bytes_; }
    uint64_t oldest() const { return oldest_; }

private:
    void describe(Part& part) const;
    uint64_t first_held(const Part& part, const CacheInfo& cache) const;
    Part caches_of_head(size_t which) const;
    void describe_heads();
    Status check_caches(const Part& part) const;
    Status open_heads(const File& file);
    Result<HeadPart> open_head(const File& file, uint64_t at, const FileHead& header) const;
    static uint64_t row_bytes_of(const Part& part);
    uint64_t heads_at() const { return text_at() + text_bytes_ + row_bytes_of(text_); }
    uint64_t file_bytes() const { return heads_at() + head_bytes_ + sizeof(uint64_t); }
    // Calls visit(cache, its first row, count, bytes) for each piece.
    template <typename Visit>
    static Status for_pieces(const Part& part, const Visit& visit);
    // Copies a sequence's rows [first, first + count) to or from `bytes`.
    Status read_rows(const Part& part, size_t cache, uint64_t first, uint64_t count,
                     std::span<std::byte> bytes) const;
    Status write_rows(const Part& part, size_t cache, uint64_t first, uint64_t count,
                      std::span<const std::byte> bytes) const;
    Status load_rows(const Part& part, const File& file, uint64_t at);
    Status tick(uint64_t bytes);

    std::string path_;
    const Engine& engine_;
    const Sequence& sequence_;
    Part text_;
    std::vector<HeadPart> heads_;  // those that the file has and the engine guesses with
    uint64_t head_bytes_ = 0;      // of all heads in the file
    uint64_t text_bytes_ = 0;
    const Progress& progress_;
    const std::atomic<bool>* cancel_;
    uint64_t oldest_ = 0;
    uint64_t done_ = 0, total_ = 0;
};

void CacheFile::describe(Part& part) const {
    for (const CacheInfo& cache : part.infos) {
        if (cache.is_state()) {
            part.caches.push_back({cache.kv_heads, cache.head_dim, type_number(cache), 1, cache.window,
                                   part.tokens > 0 ? part.tokens - 1 : 0, cache.state_floats});
            continue;
        }
        const uint64_t piece = std::max<uint64_t>(1, kPieceBytes / std::max<uint64_t>(1, row_bytes(cache)));
        part.caches.push_back({cache.kv_heads, cache.head_dim, type_number(cache), uint32_t(piece),
                               cache.window, std::min(first_held(part, cache), part.tokens), 0});
    }
}

// In a ring of the head guesses may have taken the place of earlier rows.
uint64_t CacheFile::first_held(const Part& part, const CacheInfo& cache) const {
    if (part.first == 0) return sequence_.first_held(cache);
    const uint64_t written = part.tokens + engine_.options().drafts;
    return cache.window > 0 && written > cache.sequence_rows ? written - cache.sequence_rows : 0;
}

CacheFile::Part CacheFile::caches_of_head(size_t which) const {
    const std::span<const CacheInfo> all = engine_.pool_->caches().subspan(engine_.text_caches_);
    const size_t each = all.size() / engine_.head_count_;
    return {all.subspan(which * each, each), engine_.text_caches_ + which * each};
}

// Rows beside tokens that were guessed are left out: the next guess would read them again.
void CacheFile::describe_heads() {
    if (sequence_.heads_.empty()) return;
    const Sequence::Head& first = sequence_.heads_.front();
    if (first.hidden.empty() && first.read == first.begin) return;
    std::vector<Sequence::Head> known = sequence_.heads_;
    Sequence::keep_before(known, text_.tokens, engine_.head_width());
    for (size_t which = 0; which < known.size(); ++which) {
        HeadPart head{caches_of_head(which), {}, std::move(known[which])};
        head.part.tokens = head.known.read - head.known.begin;
        describe(head.part);
        FileHead& header = head.header;
        header.caches = head.part.caches.size();
        header.begin = head.known.begin, header.read = head.known.read, header.first = head.known.first;
        header.hidden = head.known.hidden.size();
        header.bytes = sizeof(FileHead) + header.caches * sizeof(FileCache) + header.hidden * sizeof(float) +
                       row_bytes_of(head.part);
        head_bytes_ += header.bytes;
        heads_.push_back(std::move(head));
    }
}

uint64_t CacheFile::row_bytes_of(const Part& part) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < part.caches.size(); ++i)
        bytes += (rows_of(part.infos[i], part.tokens) - part.caches[i].first) * row_bytes(part.infos[i]);
    return bytes;
}

Status CacheFile::tick(uint64_t bytes) {
    if (is_cancelled(cancel_)) return error("interrupted");
    done_ += bytes;
    if (progress_) progress_(done_, total_);
    return {};
}

template <typename Visit>
Status CacheFile::for_pieces(const Part& part, const Visit& visit) {
    for (size_t i = 0; i < part.caches.size(); ++i) {
        const uint64_t end = rows_of(part.infos[i], part.tokens);
        for (uint64_t first = part.caches[i].first; first < end; first += part.caches[i].piece) {
            const uint64_t count = std::min<uint64_t>(part.caches[i].piece, end - first);
            RL_TRY(visit(i, first, count, count * row_bytes(part.infos[i])));
        }
    }
    return {};
}

Status CacheFile::read_rows(const Part& part, size_t cache, uint64_t first, uint64_t count,
                            std::span<std::byte> bytes) const {
    const CacheInfo& info = part.infos[cache];
    const Cache number{int32_t(part.first + cache)};
    if (info.is_state()) return engine_.caches_->read(number, sequence_.state_, 1, bytes);
    for (const auto& [at, row, rows] : stretches(info, sequence_.pages_, first, count)) {
        if (rows == count) return engine_.caches_->read(number, row, rows, bytes);
        std::vector<std::byte> some(rows * row_bytes(info));
        RL_TRY(engine_.caches_->read(number, row, rows, some));
        for_planes(info, count, at, rows, [&](uint64_t whole, uint64_t piece, uint64_t size) {
            std::memcpy(bytes.data() + whole, some.data() + piece, size);
        });
    }
    return {};
}

Status CacheFile::write_rows(const Part& part, size_t cache, uint64_t first, uint64_t count,
                             std::span<const std::byte> bytes) const {
    const CacheInfo& info = part.infos[cache];
    const Cache number{int32_t(part.first + cache)};
    if (info.is_state()) return engine_.caches_->write(number, sequence_.state_, 1, bytes);
    for (const auto& [at, row, rows] : stretches(info, sequence_.pages_, first, count)) {
        if (rows == count) return engine_.caches_->write(number, row, rows, bytes);
        std::vector<std::byte> some(rows * row_bytes(info));
        for_planes(info, count, at, rows, [&](uint64_t whole, uint64_t piece, uint64_t size) {
            std::memcpy(some.data() + piece, bytes.data() + whole, size);
        });
        RL_TRY(engine_.caches_->write(number, row, rows, some));
    }
    return {};
}

uint64_t CacheFile::prepare(std::string_view text) {
    describe(text_);
    describe_heads();
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
    header.tokens = text_.tokens;
    header.caches = text_.caches.size();
    header.text_bytes = text_bytes_;
    RL_TRY(write(std::as_bytes(std::span(&header, 1))));
    RL_TRY(write(std::as_bytes(std::span(text_.caches))));
    RL_TRY(write(std::as_bytes(std::span(sequence_.tokens()))));
    RL_TRY(write(std::as_bytes(std::span(text))));
    std::vector<std::byte> piece;
    const auto save_rows = [&](const Part& part) {
        return for_pieces(part, [&](size_t cache, uint64_t first, uint64_t count, uint64_t bytes) -> Status {
            piece.resize(bytes);
            RL_TRY(read_rows(part, cache, first, count, piece));
            return write(piece);
        });
    };
    RL_TRY(save_rows(text_));
    for (HeadPart& head : heads_) {
        head.header.fingerprint = RL_TRY(engine_.head_->fingerprint());
        RL_TRY(write(std::as_bytes(std::span(&head.header, 1))));
        RL_TRY(write(std::as_bytes(std::span(head.part.caches))));
        RL_TRY(write(std::as_bytes(std::span(head.known.hidden))));
        RL_TRY(save_rows(head.part));
    }
    const uint64_t sum = hash.value();
    return write_bytes(std::as_bytes(std::span(&sum, 1)));
}

Status CacheFile::check_caches(const Part& part) const {
    for (size_t i = 0; i < part.caches.size(); ++i) {
        const FileCache& have = part.caches[i];
        const CacheInfo& want = part.infos[i];
        if (have.kv_heads != want.kv_heads || have.head_dim != want.head_dim || have.window != want.window ||
            have.state_floats != want.state_floats)
            return error("{} was saved with another model shape", path_);
        if (have.type != type_number(want))
            return error("{} holds a {} cache, not {}; choose that to use it", path_, type_text(have.type),
                         type_text(type_number(want)));
        if (want.is_state() && have.first == (part.tokens > 0 ? part.tokens - 1 : 0) && have.piece == 1)
            continue;
        if (want.is_state() || have.piece == 0 || have.first > part.tokens ||
            (want.window == 0 && have.first > 0) || have.first > first_seen(want, part.tokens))
            return error("{} holds impossible sizes: it is damaged", path_);
    }
    return {};
}

// The parts of heads are skipped where others are to guess, more or fewer of them, or none.
Status CacheFile::open_heads(const File& file) {
    const auto damaged = [&] { return error("{} holds impossible sizes: it is damaged", path_); };
    const uint64_t begin = heads_at(), end = file.size() - std::min(file.size(), sizeof(uint64_t));
    if (end <= begin) return {};
    head_bytes_ = end - begin;
    std::vector<std::pair<uint64_t, FileHead>> found;
    for (uint64_t at = begin; at < end; at += found.back().second.bytes) {
        FileHead head;
        if (end - at < sizeof(head)) return damaged();
        RL_TRY(file.read(at, std::as_writable_bytes(std::span(&head, 1))));
        if (head.bytes < sizeof(head) || head.bytes > end - at) return damaged();
        found.push_back({at, head});
    }
    if (engine_.head_count_ != found.size()) return {};
    for (const auto& [at, head] : found) {
        if (head.fingerprint != RL_TRY(engine_.head_->fingerprint())) {
            heads_.clear();
            return {};
        }
        heads_.push_back(RL_TRY(open_head(file, at, head)));
    }
    return {};
}

Result<CacheFile::HeadPart> CacheFile::open_head(const File& file, uint64_t at, const FileHead& head) const {
    const auto damaged = [&] { return error("{} holds impossible sizes: it is damaged", path_); };
    HeadPart made{caches_of_head(heads_.size()), head};
    const uint64_t width = engine_.head_width(), rows = head.hidden / width;
    if (head.caches != made.part.infos.size() || head.begin > head.read || head.read > text_.tokens ||
        head.hidden % width != 0 || head.first > text_.tokens || rows > text_.tokens - head.first)
        return damaged();
    made.part.tokens = head.read - head.begin;
    made.part.caches.resize(head.caches);
    RL_TRY(file.read(at + sizeof(head), std::as_writable_bytes(std::span(made.part.caches))));
    RL_TRY(check_caches(made.part));
    const uint64_t bytes = sizeof(head) + head.caches * sizeof(FileCache) + head.hidden * sizeof(float);
    if (head.bytes != bytes + row_bytes_of(made.part)) return damaged();
    return made;
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
    if (header.caches != made.text_.infos.size())
        return error("{} was saved with another model shape", file.path());
    if (header.text_bytes > file.size())
        return error("{} holds impossible sizes: it is damaged", file.path());
    made.text_bytes_ = header.text_bytes;
    made.text_.caches.resize(header.caches);
    RL_TRY(file.read(sizeof(header), std::as_writable_bytes(std::span(made.text_.caches))));
    RL_TRY(made.check_caches(made.text_));
    RL_TRY(made.open_heads(file));
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

Status CacheFile::load_rows(const Part& part, const File& file, uint64_t at) {
    std::vector<std::byte> piece;
    return for_pieces(part, [&](size_t cache, uint64_t first, uint64_t count, uint64_t bytes) -> Status {
        piece.resize(bytes);
        RL_TRY(file.read(at, piece));
        at += bytes;
        RL_TRY(write_rows(part, cache, first, count, piece));
        return tick(bytes);
    });
}

// Rows for which a smaller ring has no room are skipped.
Status CacheFile::load(const File& file, std::vector<Sequence::Head>& heads) {
    for (size_t i = 0; i < text_.caches.size(); ++i) {
        const CacheInfo& info = text_.infos[i];
        if (info.window > 0)
            oldest_ = std::max({oldest_, text_.caches[i].first,
                                text_.tokens > info.sequence_rows ? text_.tokens - info.sequence_rows : 0});
    }
    RL_TRY(load_rows(text_, file, text_at() + text_bytes_));
    for (Sequence::Head& head : heads) head = {{}, 0, text_.tokens, text_.tokens};
    uint64_t at = heads_at();
    for (size_t which = 0; which < heads_.size(); ++which) {
        const auto& [part, header, unused] = heads_[which];
        const uint64_t hidden_at = at + sizeof(FileHead) + part.caches.size() * sizeof(FileCache);
        std::vector<float> hidden(header.hidden);
        RL_TRY(file.read(hidden_at, std::as_writable_bytes(std::span(hidden))));
        RL_TRY(load_rows(part, file, hidden_at + hidden.size() * sizeof(float)));
        heads[which] = {std::move(hidden), header.first, header.begin, header.read};
        at += header.bytes;
    }
    return {};
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
    std::vector<Sequence::Head> heads(sequence.heads_.size());
    RL_TRY(saved.load(file, heads));
    sequence.tokens_ = std::move(tokens);
    sequence.written_ = sequence.position();
    sequence.oldest_ = saved.oldest();
    sequence.take_snapshot(false);
    sequence.heads_ = std::move(heads);
    return {};
}

}  // namespace redline
