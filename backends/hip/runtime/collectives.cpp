#include "collectives.h"

#include "base/os/shared_library.h"

#include <system_error>

namespace redline::hip {

namespace {

constexpr int kOk = 0, kInProgress = 7, kFloat32 = 7, kSum = 0;
// Some cards hang while it starts (ROCm issue 6074).
constexpr std::chrono::seconds kMostStart{60};
constexpr std::chrono::seconds kMostStep{120};
constexpr std::chrono::milliseconds kPoll{20};

std::vector<const char*> names_of(const Runtime& runtime) {
    if (runtime.cuda) return {"libnccl.so.2"};
    return {"librccl.so.1", "/opt/rocm/lib/librccl.so.1"};
}

}  // namespace

struct Collectives::Calls {
    int (*version)(int*) = nullptr;
    int (*init_all)(Communicator*, int, const int*) = nullptr;
    int (*all_reduce)(const void*, void*, size_t, int, int, Communicator, Stream) = nullptr;
    int (*async_error)(Communicator, int*) = nullptr;
    int (*abort)(Communicator) = nullptr;
    int (*destroy)(Communicator) = nullptr;
    const char* (*error_text)(int) = nullptr;
    const char* (*last_error)(Communicator) = nullptr;  // null in old versions

    Status find(void* library) {
        std::string lacking;
        const auto take = [&](const char* name, auto& function, bool needed = true) {
            function =
                reinterpret_cast<std::remove_reference_t<decltype(function)>>(os::find_symbol(library, name));
            if (!function && needed) lacking = name;
        };
        take("ncclGetVersion", version);
        take("ncclCommInitAll", init_all);
        take("ncclAllReduce", all_reduce);
        take("ncclCommGetAsyncError", async_error);
        take("ncclCommAbort", abort);
        take("ncclCommDestroy", destroy);
        take("ncclGetErrorString", error_text);
        take("ncclGetLastError", last_error, false);
        return lacking.empty() ? Status() : Status(error("it has no function {}", lacking));
    }
};

std::string Collectives::find(const Runtime& runtime) {
    for (const char* name : names_of(runtime)) {
        os::LibraryFault fault;
        if (void* library = os::open_library(name, fault, false)) {
            os::close_library(library);
            return name;
        }
    }
    return "";
}

Status Collectives::checked(int code, std::string_view doing) const {
    if (code == kOk || code == kInProgress) return {};
    const char* const more = call_->last_error ? call_->last_error(nullptr) : nullptr;
    std::string text = more ? more : "";
    text.erase(std::min(text.find('\n'), text.size()));
    return error("{}, {}: {} ({}){}{}", text_, doing, call_->error_text(code), code, text.empty() ? "" : ": ",
                 text);
}

Result<std::shared_ptr<Collectives>> Collectives::open(const Runtime& runtime, std::span<Device* const> ranks,
                                                       const std::string& path) {
    std::vector<std::string> names;
    for (const char* name : names_of(runtime)) names.emplace_back(name);
    if (!path.empty()) names = {path};
    const char* const product = runtime.cuda ? "NCCL" : "RCCL";
    std::string trouble;
    for (const std::string& name : names) {
        os::LibraryFault fault;
        void* const library = os::open_library(name.c_str(), fault);
        if (!library) {
            if (trouble.empty() || fault.kind != os::LibraryFault::Kind::missing) trouble = fault.message;
            continue;
        }
        // It stays open: its threads may outlive what is used of it.
        std::shared_ptr<Collectives> made(new Collectives);
        auto calls = std::make_shared<Calls>();
        if (const Status found = calls->find(library); !found)
            return error("{} is not usable: {}", name, found.error().message);
        made->call_ = std::move(calls);
        int version = 0;
        made->text_ = fmt::format("{} ({})", product, name);
        RL_TRY(made->checked(made->call_->version(&version), "asking for the version"));
        made->text_ = fmt::format("{} {}.{}.{} ({})", product, version / 10000, version / 100 % 100,
                                  version % 100, name);
        RL_TRY(made->start(ranks));
        return made;
    }
    return error("{} cannot be loaded: {}", product, trouble);
}

// In a thread that is left to itself if the library does not come back.
Status Collectives::start(std::span<Device* const> ranks) {
    struct Started {
        std::mutex mutex;
        std::condition_variable changed;
        bool done = false;
        int code = kOk;
        std::vector<Communicator> communicators;
    };
    const auto started = std::make_shared<Started>();
    started->communicators.resize(ranks.size());
    std::vector<int> devices;
    for (const Device* device : ranks) devices.push_back(device->report().index);
    std::thread([started, devices, call = call_] {
        std::vector<Communicator> made(devices.size());
        const int code = call->init_all(made.data(), int(devices.size()), devices.data());
        const std::lock_guard lock(started->mutex);
        started->communicators = std::move(made);
        started->code = code;
        started->done = true;
        started->changed.notify_all();
    }).detach();
    std::unique_lock lock(started->mutex);
    if (!started->changed.wait_for(lock, kMostStart, [&] { return started->done; }))
        return error("{} did not start within {} s", text_, kMostStart.count());
    RL_TRY(checked(started->code, "starting"));
    devices_.assign(ranks.begin(), ranks.end());
    communicators_ = started->communicators;
    watcher_ = std::thread([this] { watch_steps(); });
    return {};
}

Collectives::~Collectives() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    if (watcher_.joinable()) watcher_.join();
    if (aborted_) return;
    // Communicators that are ended one after another by one thread may wait for each other.
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < communicators_.size(); ++rank)
        threads.emplace_back([this, rank] {
            if (devices_[rank]->use()) call_->destroy(communicators_[rank]);
        });
    for (std::thread& thread : threads) thread.join();
}

Status Collectives::add(size_t rank, const float* x, float* y, uint64_t floats) const {
    if (aborted_) return error("{} was given up", text_);
    const int code = call_->all_reduce(x, y, size_t(floats), kFloat32, kSum, communicators_[rank],
                                       devices_[rank]->stream());
    // The library may leave another device chosen.
    RL_TRY(devices_[rank]->use());
    return checked(code, "adding rows");
}

Status Collectives::problem() const {
    for (const Communicator one : communicators_) {
        int code = kOk;
        RL_TRY(checked(call_->async_error(one, &code), "asking for errors"));
        RL_TRY(checked(code, "adding rows"));
    }
    return {};
}

void Collectives::watch(bool in_flight) {
    {
        const std::lock_guard lock(mutex_);
        in_flight_ = in_flight;
    }
    changed_.notify_all();
}

void Collectives::watch_steps() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return in_flight_ || ends_; });
        if (ends_) return;
        const auto begin = std::chrono::steady_clock::now();
        while (!changed_.wait_for(lock, kPoll, [&] { return !in_flight_ || ends_; }) && !aborted_) {
            lock.unlock();
            if (const Status good = problem(); !good)
                abort(good.error().message);
            else if (std::chrono::steady_clock::now() - begin > kMostStep)
                abort(fmt::format("a step took more than {} s", kMostStep.count()));
            lock.lock();
        }
        changed_.wait(lock, [&] { return !in_flight_ || ends_; });
    }
}

void Collectives::abort(const std::string& why) {
    {
        const std::lock_guard lock(mutex_);
        if (aborted_.exchange(true)) return;
        why_ = why;
    }
    for (const Communicator one : communicators_) call_->abort(one);
}

std::string Collectives::why_aborted() const {
    const std::lock_guard lock(mutex_);
    return why_;
}

}  // namespace redline::hip
