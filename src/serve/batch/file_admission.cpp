// Kept sequences on their way to files and back.
#include "serve/batch/loop.h"

#include <algorithm>
#include <new>

namespace redline::serve {

namespace {

// Tokens that a file has to save, and the share of its tokens, as all of them are restored.
constexpr uint64_t kWorthRestoring = 32, kShare = 8;
// How often a scheduler that only waits for a file looks for requests that were cancelled.
constexpr std::chrono::milliseconds kFileLook(50);

}  // namespace

// The key names all that the rows of the caches depend on, beside the shape that each file states.
Status Scheduler::Loop::open_files() {
    if (options_.cache_folder.path.empty()) return {};
    const Model& model = engine_->model();
    const CacheTypes types = engine_->options().cache;
    std::string key = fmt::format("{:016x}-{}", RL_TRY(model.fingerprint()), cache_type_name(types.keys));
    if (!types.are(types.keys)) key += fmt::format("-{}", cache_type_name(types.values));
    if (!types.rotate) key += "-plain";
    // With longrope the rotation of all positions depends on the context.
    if (model.gguf().find("rope_factors_long.weight")) key += fmt::format("-{}", engine_->options().context);
    files_ = RL_TRY(KeptFiles::open(options_.cache_folder, key, engine_->rewinds(), *host_.notes));
    return {};
}

// Copies the rows of a sequence that is about to lose its pages; a thread writes them. Where that is behind
// with more than its share of memory, the sequence is lost, which costs less than to let all requests wait.
void Scheduler::Loop::store(const Sequence& sequence) {
    if (!files_ || loss_ || !files_->wants(sequence.tokens())) return;
    if (!files_->has_room(engine_->saved_bytes(sequence))) return;
    try {
        if (Result<std::vector<std::byte>> bytes = engine_->saved(sequence))
            files_->write(sequence.tokens(), std::move(bytes).value());
    } catch (const std::bad_alloc&) {
        // There is no memory for a copy, and nothing depends on it.
    }
}

// At the end of the scheduler, for the next one: those used last, as many as the folder may have.
void Scheduler::Loop::store_all() {
    if (!files_) return;
    files_->stop_reading();
    std::vector<const Sequence*> chosen;
    uint64_t bytes = 0;
    for (auto at = kept_->all().rbegin(); at != kept_->all().rend(); ++at) {
        bytes += engine_->saved_bytes(*at);
        if (bytes > files_->most_bytes()) break;
        chosen.push_back(&*at);
    }
    for (auto at = chosen.rbegin(); at != chosen.rend(); ++at) {
        files_->wait();
        store(**at);
    }
    files_->wait();
}

// True while a file is read that serves the request better than the source, so that others go on meanwhile.
// The file's sequence is then kept, and is the request's source. Where another file is being read, the
// request waits for that one, too.
bool Scheduler::Loop::awaits_file(Request& request, const Source& source) {
    if (!files_ || !request.cached() || *options_.kept == 0 || request.had_file) return false;
    if (request.awaits_file && files_->is_busy()) return true;
    request.awaits_file = false;
    const KeptFiles::Match match = files_->find(request.text());
    if (match.tokens < source.tokens + std::max(kWorthRestoring, match.all / kShare)) return false;
    const uint64_t pages = pages_for(match.all) + running_.size() + 1;
    if (engine_->pages().all > 0 && pages > engine_->pages().free + kept_pages()) return false;
    request.awaits_file = true;
    if (files_->is_busy()) return true;
    file_reader_ = request.number;
    files_->read(match, [this] {
        const std::lock_guard lock(mutex_);
        wake_.notify_one();
    });
    return true;
}

// Restores the sequence of a file that is in memory now, if its request still waits.
void Scheduler::Loop::take_file() {
    const std::optional<KeptFiles::Match> match = files_ ? files_->take_read() : std::nullopt;
    if (!match) return;
    const auto reader = std::ranges::find_if(
        waiting_, [this](const auto& request) { return request->number == file_reader_; });
    if (reader == waiting_.end()) return;
    (*reader)->had_file = true;
    restore(*match);
}

// Where nothing runs: until the file is in memory, or another request comes.
void Scheduler::Loop::wait_for_file() {
    if (!files_ || !files_->is_busy()) return;
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, kFileLook, [this] { return !submitted_.empty() || !files_->is_reading(); });
}

void Scheduler::Loop::restore(const KeptFiles::Match& match) {
    kept_->make_room();
    while (engine_->pages().all > 0 && engine_->pages().free < pages_for(match.all) && kept_->give_up()) {
    }
    Result<Sequence> sequence = engine_->open_sequence();
    if (!sequence) return;
    const Status restored = engine_->restore(sequence.value(), files_->path(match), {}, &abort_);
    if (restored) {
        files_->used(match);
        kept_->add(std::move(sequence).value());
    } else if (!abort_ && !engine_->lost()) {
        files_->remove(match, restored.error());
    }
}

}  // namespace redline::serve
