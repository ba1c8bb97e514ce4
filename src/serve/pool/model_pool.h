// Several models of which a few are loaded at a time: loaded when a request names them, closed when another
// one needs the room or when nobody has used them for a while.
#pragma once

#include "serve/api/keep_alive.h"
#include "serve/api/service.h"

#include <thread>

namespace redline::serve {

struct OfferedModel {
    std::string name;
    std::vector<std::string> aliases = {};
    std::string path;
    uint64_t bytes = 0;
    int64_t created = 0;                                 // seconds since 1970
    std::optional<std::chrono::milliseconds> idle = {};  // in place of PoolOptions::idle
};

// A model that answers, with everything that it needs for it.
class HostedModel {
public:
    virtual ~HostedModel() = default;
    virtual Service& service() = 0;
    // Lets answers end, for so long.
    virtual void drain(std::chrono::milliseconds longest) = 0;
    // The memory that it takes.
    virtual uint64_t bytes() const = 0;
};

struct OpenedModel {
    std::unique_ptr<HostedModel> model;  // null: see the problem
    Problem problem = {};                // 503: it may be for lack of memory
};

struct PoolOptions {
    uint32_t most = 1;                                 // models that are loaded at a time
    std::chrono::milliseconds idle = kForever;         // after which an unused one is closed
    unsigned threads = 2;                              // for requests that had to wait for their model
    std::string build = {};                            // "redline 0.1.0"
    std::function<void(const std::string&)> say = {};  // what is loaded and closed, in a sentence
};

// A model is closed only while nobody holds it, so that no answer is cut. Where all are in use and another is
// wanted, new requests for the least recently used one wait until the other has had its turn.
class ModelPool {
public:
    using Open = std::function<OpenedModel(const OfferedModel&)>;
    // Why a model could not be loaded even where all others were closed, which take so many bytes.
    using Check = std::function<std::optional<Problem>(const OfferedModel&, uint64_t held)>;
    // Keeps the model while it lives; to be given back before the pool ends.
    using Lease = std::shared_ptr<Service>;
    // Gets the model, or null and why there is none.
    using Take = std::function<void(Lease, const Problem&)>;
    enum class State : uint8_t { unloaded, loading, loaded, closing };
    struct Seen {
        const OfferedModel* model;
        State state;
        Lease lease;                     // while it is loaded
        std::string fault;               // of the last try to load it
        std::chrono::milliseconds left;  // until it is closed, where nobody uses it from now on
    };

    // Both functions are called by one thread, `check` before a model is closed for another one.
    ModelPool(std::vector<OfferedModel> offered, PoolOptions options, Open open, Check check);
    ~ModelPool();
    ModelPool(const ModelPool&) = delete;
    ModelPool& operator=(const ModelPool&) = delete;

    const std::vector<OfferedModel>& offered() const { return offered_; }
    const PoolOptions& options() const { return options_; }
    // By its name or an alias, as they are or with Ollama's ":latest"; null: there is none.
    const OfferedModel* find(std::string_view name) const;
    // The loaded model that was used last; null where none is loaded.
    const OfferedModel* recent() const;
    // Calls `take` at once where the model is loaded, else by a thread of the pool. Nothing is loaded for
    // those alone that are `gone` by then. From then on it stays for as long as `keep` after its last use.
    void want(const OfferedModel& model, std::shared_ptr<const std::atomic<bool>> gone, Take take,
              std::optional<std::chrono::milliseconds> keep = {});
    // Closes a model that is loaded, or about to be, once its answers are complete.
    void unload(const OfferedModel& model);
    // The models as they are. These leases do not count as use.
    std::vector<Seen> look();
    Seen look(const OfferedModel& model);
    Health health() const;
    uint64_t in_use() const;  // requests that hold a model

    // Refuses new requests and those that wait for a model, lets the others end, for so long.
    void drain(std::chrono::milliseconds longest);
    bool draining() const { return draining_; }

private:
    using Clock = std::chrono::steady_clock;
    struct Entry {
        State state = State::unloaded;
        std::unique_ptr<HostedModel> hosted = {};
        uint64_t users = 0;
        Clock::time_point used = {};
        std::chrono::milliseconds keep = {};  // after its last use
        std::string fault = {};
    };
    struct Waiting {
        size_t index;
        std::shared_ptr<const std::atomic<bool>> gone;
        Take take;
        std::optional<std::chrono::milliseconds> keep;
    };

    // With the lock held, also where a function gives it up for a while.
    using Lock = std::unique_lock<std::mutex>;
    Lease lease(size_t index, bool uses);
    void give_back(size_t index, bool uses);
    Seen seen(size_t index);
    void loop();
    bool serve_waiting(Lock& lock);
    std::optional<Problem> check(Lock& lock, size_t index);
    bool is_full() const;
    bool make_room(Lock& lock);
    std::optional<size_t> least_recent(bool idle) const;
    void load(Lock& lock, size_t index);
    OpenedModel open_now(size_t index);
    void end_load(size_t index, const Problem& problem);
    static Clock::time_point due(const Entry& entry);
    void unload(Lock& lock, size_t index, std::string_view why);
    bool unload_idle(Lock& lock);
    void hand_out(size_t index, const Problem& problem);
    void say(const std::string& text) const;

    const std::vector<OfferedModel> offered_;
    const PoolOptions options_;
    const Open open_;
    const Check check_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Entry> entries_;  // as offered_
    std::deque<Waiting> waiting_;
    std::optional<size_t> checked_;  // the model that others may be closed for
    std::atomic<bool> draining_ = false;
    std::unique_ptr<HandlerThreads> threads_;
    std::thread loader_;
};

}  // namespace redline::serve
