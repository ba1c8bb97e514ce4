// Several models of which a few are loaded at a time: loaded when a request names them, closed when another
// one needs the room or when nobody has used them for a while.
#pragma once

#include "serve/api/service.h"

#include <thread>

namespace redline::serve {

struct OfferedModel {
    std::string name;
    std::vector<std::string> aliases = {};
    std::string path;
    uint64_t bytes = 0;
    int64_t created = 0;  // seconds since 1970
};

// A model that answers, with everything that it needs for it.
class HostedModel {
public:
    virtual ~HostedModel() = default;
    virtual Service& service() = 0;
    // Lets answers end, for so long.
    virtual void drain(std::chrono::milliseconds longest) = 0;
};

struct OpenedModel {
    std::unique_ptr<HostedModel> model;  // null: see the problem
    Problem problem = {};                // 503: it may be for lack of memory
};

struct PoolOptions {
    uint32_t most = 1;                                 // models that are loaded at a time
    std::chrono::milliseconds idle{0};                 // after which an unused one is closed; 0: never
    unsigned threads = 2;                              // for requests that had to wait for their model
    std::string build = {};                            // "redline 0.1.0"
    std::function<void(const std::string&)> say = {};  // what is loaded and closed, in a sentence
};

// A model is closed only while nobody holds it, so that no answer is cut. Where all are in use and another is
// wanted, new requests for the least recently used one wait until the other has had its turn.
class ModelPool {
public:
    using Open = std::function<OpenedModel(const OfferedModel&)>;
    // Keeps the model while it lives; to be given back before the pool ends.
    using Lease = std::shared_ptr<Service>;
    // Gets the model, or null and why there is none.
    using Take = std::function<void(Lease, const Problem&)>;
    enum class State : uint8_t { unloaded, loading, loaded, closing };
    struct Seen {
        const OfferedModel* model;
        State state;
        Lease lease;        // while it is loaded
        std::string fault;  // of the last try to load it
    };

    // `open` is called by one thread at a time.
    ModelPool(std::vector<OfferedModel> offered, PoolOptions options, Open open);
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
    // those alone that are `gone` by then.
    void want(const OfferedModel& model, std::shared_ptr<const std::atomic<bool>> gone, Take take);
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
        std::string fault = {};
    };
    struct Waiting {
        size_t index;
        std::shared_ptr<const std::atomic<bool>> gone;
        Take take;
    };

    // With the lock held, also where a function gives it up for a while.
    using Lock = std::unique_lock<std::mutex>;
    Lease lease(size_t index, bool uses);
    void give_back(size_t index, bool uses);
    Seen seen(size_t index);
    void loop();
    bool serve_waiting(Lock& lock);
    bool make_room(Lock& lock);
    std::optional<size_t> least_recent(bool idle) const;
    void load(Lock& lock, size_t index);
    OpenedModel open_now(size_t index);
    void unload(Lock& lock, size_t index, std::string_view why);
    bool unload_idle(Lock& lock);
    void hand_out(size_t index, const Problem& problem);
    void say(const std::string& text) const;

    const std::vector<OfferedModel> offered_;
    const PoolOptions options_;
    const Open open_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Entry> entries_;  // as offered_
    std::deque<Waiting> waiting_;
    std::atomic<bool> draining_ = false;
    std::unique_ptr<HandlerThreads> threads_;
    std::thread loader_;
};

}  // namespace redline::serve
