// Sequences in files: found again after a restart, by other servers, and never a wrong one.
#include "serving.h"

#include <fstream>

#include <sys/stat.h>

using namespace redline;
using namespace redline::serve;
using namespace redline::test;
namespace fs = std::filesystem;

namespace {

class NotesKept final : public Notes {
public:
    void take(NoteKind kind, std::string_view text) override {
        const std::lock_guard lock(mutex_);
        if (kind == NoteKind::note) all_.emplace_back(text);
    }
    void progress(std::string_view, uint64_t, uint64_t) override {}
    void finished(std::string_view) override {}
    std::vector<std::string> all() const {
        const std::lock_guard lock(mutex_);
        return all_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> all_;
};

// A folder, and servers that use it one after the other or at a time.
class Kept {
public:
    explicit Kept(std::string model = "llama3") : name(std::move(model)), folder(temporary("kept")) {
        fs::remove_all(folder);
    }
    ~Kept() { fs::remove_all(folder); }

    std::unique_ptr<Serving> start(bool with_folder = true) {
        SchedulerOptions options = serve_options(2, 700);
        if (with_folder) options.cache_folder = {folder, most_bytes, read};
        options.kept = kept;
        HostOptions host = serving_host(golden("models/" + name + ".gguf"));
        host.cache = cache;
        host.notes = &notes;
        return serving(std::move(host), options);
    }
    std::vector<std::string> files() const {
        std::vector<std::string> all;
        std::error_code none;
        for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
            if (entry.path().extension() == ".kept") all.push_back(entry.path().string());
        return all;
    }
    uint64_t bytes() const {
        uint64_t sum = 0;
        for (const std::string& file : files()) sum += fs::file_size(file);
        return sum;
    }

    std::string name;
    const std::string folder;
    NotesKept notes;
    uint64_t most_bytes = uint64_t(1) << 30;
    std::function<void(const std::string&, const std::atomic<bool>&)> read = {};
    std::optional<uint32_t> kept = {};
    CacheType cache = CacheType::f32;
};

// A disk that gives nothing until it is told to, or the read is cancelled.
struct SlowDisk {
    std::atomic<bool> gives = false;
    std::atomic<int> reads = 0;

    auto read() {
        return [this](const std::string&, const std::atomic<bool>& cancel) {
            ++reads;
            while (!gives && !cancel) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        };
    }
};

struct Answered {
    std::vector<Token> tokens;
    uint64_t cached = 0;
};

Answered answered(Serving& serving, const std::vector<Token>& prompt) {
    Asked asked;
    AnswerRequest request = request_of(prompt, 12);
    request.ignore_eos = true;
    ask(*serving.scheduler, asked, std::move(request));
    REQUIRE_MESSAGE(asked.submission.ticket, asked.submission.message);
    const AnswerEnd end = asked.end();
    return {asked.tokens, end.cost.cached_tokens};
}

std::vector<Token> prompt_of(const Serving& serving, uint32_t seed, size_t tokens = 300) {
    return made_up_tokens(*serving.loaded.model, tokens, seed);
}

// The prompt, its answer and a new message.
std::vector<Token> longer(const Serving& serving, std::vector<Token> prompt, const Answered& first) {
    prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
    const std::vector<Token> more = made_up_tokens(*serving.loaded.model, 20, 99);
    prompt.insert(prompt.end(), more.begin(), more.end());
    return prompt;
}

bool says(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("kept files: after a restart a conversation goes on from where it was") {
    for (const char* name : {"llama3", "gemma3", "mamba2", "qwen35"}) {
        CAPTURE(name);
        Kept kept(name);
        std::vector<Token> second;
        Answered within;
        {
            const auto one = kept.start(false);
            const std::vector<Token> prompt = prompt_of(*one, 1);
            second = longer(*one, prompt, answered(*one, prompt));
            within = answered(*one, second);
            CHECK(within.cached >= 299);
        }
        {
            const auto before = kept.start();
            CHECK(answered(*before, prompt_of(*before, 1)).cached == 0);
            CHECK(kept.files().empty());
        }
        CHECK_FALSE(kept.files().empty());
        const auto after = kept.start();
        const Answered got = answered(*after, second);
        CHECK(got.cached == within.cached);
        CHECK(got.tokens == within.tokens);
        // Another beginning, of which no file has anything.
        CHECK(answered(*after, prompt_of(*after, 2)).cached == 0);
        CHECK(kept.notes.all().empty());
    }
}

TEST_CASE("kept files: a sequence that memory has no room for is found again, by other servers, too") {
    Kept kept;
    kept.kept = 1;
    const auto one = kept.start(), other = kept.start();
    const std::vector<Token> first = prompt_of(*one, 1);
    const Answered got = answered(*one, first);
    CHECK(answered(*one, prompt_of(*one, 2)).cached == 0);
    wait_until([&] { return kept.files().size() == 1; });
    for (Serving* serving : {one.get(), other.get()}) {
        const Answered again = answered(*serving, first);
        CHECK(again.cached == 299);
        CHECK(again.tokens == got.tokens);
    }
}

TEST_CASE("kept files: a longer sequence takes the place of its beginning") {
    Kept kept;
    std::vector<Token> second;
    {
        const auto one = kept.start();
        const std::vector<Token> prompt = prompt_of(*one, 1);
        second = longer(*one, prompt, answered(*one, prompt));
    }
    CHECK(kept.files().size() == 1);
    const std::string shorter = kept.files()[0];
    CHECK(answered(*kept.start(), second).cached == 311);
    REQUIRE(kept.files().size() == 1);
    CHECK(kept.files()[0] != shorter);
}

TEST_CASE("kept files: the folder holds its size at most, and what was used least recently goes") {
    Kept kept;
    kept.kept = 1;
    {
        const auto one = kept.start();
        answered(*one, prompt_of(*one, 1));
    }
    REQUIRE(kept.files().size() == 1);
    kept.most_bytes = kept.bytes() * 5 / 2;
    fs::last_write_time(kept.files()[0], fs::file_time_type::clock::now() - std::chrono::hours(1));
    for (uint32_t seed : {2, 3}) {
        const auto one = kept.start();
        answered(*one, prompt_of(*one, seed));
    }
    CHECK(kept.files().size() == 2);
    CHECK(kept.bytes() <= kept.most_bytes);
    const auto last = kept.start();
    CHECK(answered(*last, prompt_of(*last, 3)).cached == 299);
    CHECK(answered(*last, prompt_of(*last, 1)).cached == 0);
}

TEST_CASE("kept files: one that is larger than the folder may be is not written") {
    Kept kept;
    kept.most_bytes = 1000;
    const auto one = kept.start();
    answered(*one, prompt_of(*one, 1));
    one->scheduler->stop();
    CHECK(kept.files().empty());
    CHECK(kept.notes.all().empty());
}

TEST_CASE("kept files: damaged ones are said once, removed and never used") {
    Kept kept;
    Answered before;
    {
        const auto one = kept.start();
        before = answered(*one, prompt_of(*one, 1));
        answered(*one, prompt_of(*one, 2));
    }
    REQUIRE(kept.files().size() == 2);
    for (const std::string& file : kept.files()) {
        std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
        damaged.seekp(int64_t(fs::file_size(file) / 2));
        damaged.write("damage", 6);
    }
    std::ofstream(kept.files()[0].substr(0, kept.files()[0].rfind('-')) + "-0.kept") << "no file of ours";
    const auto one = kept.start();
    const Answered got = answered(*one, prompt_of(*one, 1));
    CHECK(got.cached == 0);
    CHECK(got.tokens == before.tokens);
    CHECK(answered(*one, prompt_of(*one, 2)).cached == 0);
    CHECK(kept.files().empty());
    const std::vector<std::string> notes = kept.notes.all();
    REQUIRE(notes.size() == 1);
    CHECK(says(notes[0], "damaged: it is removed, and others like it without a word"));
}

TEST_CASE("kept files: those of another model or type of cache are left alone, and no name makes them fit") {
    Kept kept;
    std::vector<Token> prompt;
    {
        const auto one = kept.start();
        prompt = prompt_of(*one, 1, 100);
        prompt = longer(*one, prompt, answered(*one, prompt));
    }
    REQUIRE(kept.files().size() == 1);
    const std::string first = kept.files()[0];
    kept.cache = CacheType::f16;
    CHECK(answered(*kept.start(), prompt).cached == 0);
    CHECK(fs::exists(first));
    kept.cache = CacheType::f32;
    kept.name = "gemma3";
    CHECK(answered(*kept.start(), prompt).cached == 0);
    CHECK(fs::exists(first));
    // Each model's name on the file of another one.
    const std::vector<std::string> all = kept.files();
    REQUIRE(all.size() >= 3);
    for (const std::string& file : all)
        if (file != first) fs::copy_file(first, file, fs::copy_options::overwrite_existing);
    CHECK(answered(*kept.start(), prompt).cached == 0);
    REQUIRE(kept.notes.all().size() == 1);
    CHECK(says(kept.notes.all()[0], "was saved with another model"));
}

TEST_CASE("kept files: the folder is its user's alone, and one that cannot be written to is refused") {
    Kept kept;
    {
        const auto one = kept.start();
        answered(*one, prompt_of(*one, 1));
    }
    struct stat facts = {};
    CHECK(::stat(kept.folder.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0700);
    for (const fs::directory_entry& entry : fs::directory_iterator(kept.folder)) {
        CHECK(::stat(entry.path().c_str(), &facts) == 0);
        CHECK((facts.st_mode & 0777) == 0600);
    }
    const std::string file = kept.files()[0];
    for (const std::string& wrong : {file, file + "/below", std::string("/proc/kept")}) {
        const Status made = prepare_cache_folder(wrong);
        REQUIRE_FALSE(made.ok());
        CHECK(says(made.error().message, "the cache folder " + wrong + " cannot be "));
    }
}

TEST_CASE("kept files: a disk that takes nothing is said once, and the server goes on") {
    Kept kept;
    kept.kept = 1;
    const auto one = kept.start();
    fs::remove_all(kept.folder);
    std::vector<Answered> all;
    for (uint32_t seed = 1; seed <= 4; ++seed) all.push_back(answered(*one, prompt_of(*one, seed)));
    CHECK(answered(*one, prompt_of(*one, 4)).tokens == all.back().tokens);
    one->scheduler->stop();
    REQUIRE(kept.notes.all().size() == 1);
    CHECK(says(kept.notes.all()[0], kept.folder));
}

TEST_CASE("kept files: answers go on while a file is read, and requests that need no file pass by") {
    for (const char* name : {"llama3", "qwen35"}) {
        CAPTURE(name);
        Kept kept(name);
        SlowDisk disk;
        kept.read = disk.read();
        Answered before;
        {
            const auto one = kept.start();
            before = answered(*one, prompt_of(*one, 1));
        }
        const auto one = kept.start();
        const std::vector<Token> prompt = prompt_of(*one, 1);
        Asked running, reader, same;
        ask(*one->scheduler, running, seeded_request(prompt_of(*one, 2, 40), 600, 1));
        for (Asked* each : {&reader, &same}) {
            AnswerRequest request = request_of(prompt, 12);
            request.ignore_eos = true;
            ask(*one->scheduler, *each, std::move(request));
        }
        wait_until([&] { return disk.reads == 1; });
        const uint64_t then = running.pieces;
        wait_until([&] { return running.pieces >= then + 20 || running.is_over(); });
        CHECK(running.end().problem.ok());
        CHECK(running.tokens.size() == 600);
        CHECK(answered(*one, prompt_of(*one, 3)).cached == 0);
        CHECK_FALSE(reader.is_over());
        CHECK(reader.pieces + same.pieces == 0);
        disk.gives = true;
        for (Asked* each : {&reader, &same}) {
            CHECK(each->end().cost.cached_tokens == 299);
            CHECK(each->tokens == before.tokens);
        }
        CHECK(disk.reads == 1);
    }
}

TEST_CASE(
    "kept files: a request that is cancelled while its file is read ends at once, as all do at the end") {
    Kept kept;
    SlowDisk disk;
    kept.read = disk.read();
    {
        const auto one = kept.start();
        answered(*one, prompt_of(*one, 1));
    }
    const auto one = kept.start();
    Asked cancelled, last;
    ask(*one->scheduler, cancelled, request_of(prompt_of(*one, 1), 12));
    wait_until([&] { return disk.reads == 1; });
    cancelled.submission.ticket->cancel();
    CHECK(cancelled.end().reason == StopReason::cancelled);
    ask(*one->scheduler, last, request_of(prompt_of(*one, 1), 12));
    one->scheduler->stop();
    CHECK(last.end().reason == StopReason::cancelled);
    CHECK(kept.files().size() == 1);
}
