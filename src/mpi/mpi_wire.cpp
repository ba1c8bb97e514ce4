#include "mpi/mpi_wire.h"

#include "base/os/process_watch.h"
#include "base/os/shared_library.h"
#include "base/os/system.h"
#include "mpi/redline_mpi.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

namespace redline {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Each rank says that it is there as often as this, and is lost when it has said nothing for so long. A
// process that this machine has lost is missed at once.
constexpr Clock::duration kBeat = 250ms, kLook = 50ms;
constexpr Clock::duration kSilence = 15s, kSilenceInHurry = 3s;
// How long a rank that expects a message looks for it all the time, and then how often. A processor that
// other threads compute on is left to them soon.
constexpr Clock::duration kSpin = 300us, kNap = 20us, kLongNap = 1ms;
constexpr Clock::duration kRest = 1s;  // after which naps are long

// A rank tells the others this about itself.
struct Introduction {
    char host[128] = "";
    char machine[128] = "";  // processes of the same see each other's numbers
    int64_t process = 0;
};

class MpiWire : public Wire {
public:
    static Result<std::unique_ptr<Wire>> open(const RedlineMpi* calls) {
        auto wire = std::make_unique<MpiWire>();
        wire->calls_ = calls;
        wire->thread_ = std::thread([made = wire.get()] { made->run(); });
        std::unique_lock lock(wire->mutex_);
        wire->changed_.wait(lock, [&] { return wire->started_.has_value(); });
        if (!*wire->started_) {
            const Error problem = wire->started_->error();
            lock.unlock();
            return problem;
        }
        lock.unlock();
        return std::unique_ptr<Wire>(std::move(wire));
    }
    ~MpiWire() override { finish(); }

    uint32_t rank() const override { return rank_; }
    uint32_t ranks() const override { return ranks_; }
    uint32_t ranks_here() const override { return ranks_here_; }
    std::string name_of(uint32_t rank) const override {
        const bool one_host =
            std::ranges::all_of(peers_, [&](const Peer& p) { return p.host == peers_[0].host; });
        return one_host ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, peers_[rank].host);
    }
    void listen(Listener listener, LossListener losses) override {
        const std::lock_guard lock(mutex_);
        listener_ = std::move(listener);
        losses_ = std::move(losses);
        changed_.notify_all();
    }
    void send(uint32_t to, WireMessage message) override {
        const std::lock_guard lock(mutex_);
        outgoing_.push_back({to, std::move(message)});
        changed_.notify_all();
    }
    void expect(bool more) override {
        expecting_ += more ? 1 : -1;
        if (!more) return;
        const std::lock_guard lock(mutex_);
        changed_.notify_all();
    }
    void hurry() override { hurries_ = true; }
    [[noreturn]] void abort(int status) override {
        // The thread of MPI ends the job; this one has nothing left to do.
        {
            const std::lock_guard lock(mutex_);
            abort_status_ = status;
            changed_.notify_all();
        }
        while (true) std::this_thread::sleep_for(1s);
    }
    void finish() override {
        if (!thread_.joinable()) return;
        {
            const std::lock_guard lock(mutex_);
            finishing_ = true;
            changed_.notify_all();
        }
        thread_.join();
    }

private:
    struct Outgoing {
        uint32_t to = 0;
        WireMessage message;
        void* sending = nullptr;
    };
    struct Peer {
        std::string host;
        std::optional<os::ProcessWatch> process;  // of this machine
        Clock::time_point heard = {};
        bool lost = false;
    };

    // The thread of MPI.
    void run() {
        const Status started = start();
        {
            const std::lock_guard lock(mutex_);
            started_ = started;
            changed_.notify_all();
        }
        if (!started) return;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return listener_ || finishing_ || abort_status_; });
        }
        loop();
    }

    Status start() {
        char problem[512] = "";
        if (calls_->start(&rank_, &ranks_, problem, sizeof(problem))) return error("MPI: {}", problem);
        Introduction mine;
        std::snprintf(mine.host, sizeof(mine.host), "%s", os::host_name().c_str());
        std::snprintf(mine.machine, sizeof(mine.machine), "%s", os::machine_of_processes().c_str());
        mine.process = os::process_id();
        std::vector<Introduction> all(ranks_);
        if (calls_->gather(&mine, all.data(), sizeof(mine), problem, sizeof(problem)))
            return error("MPI: {}", problem);
        for (uint32_t rank = 0; rank < ranks_; ++rank) {
            Peer peer;
            peer.host = all[rank].host;
            peer.heard = Clock::now();
            const bool here = rank != rank_ && std::strcmp(all[rank].machine, mine.machine) == 0;
            ranks_here_ += here;
            if (here) peer.process = os::ProcessWatch::open(all[rank].process);
            peers_.push_back(std::move(peer));
        }
        return {};
    }

    void loop() {
        os::end_waits_promptly();
        Clock::time_point active = Clock::now(), beat = {}, look = {};
        while (true) {
            const bool sent = send_waiting();
            const bool received = receive_all();
            const Clock::time_point now = Clock::now();
            if (sent || received) active = now;
            if (now - beat >= kBeat) {
                say_alive();
                beat = now;
            }
            if (now - look >= kLook) {
                look_for_losses(now);
                look = now;
            }
            if (!wait(now - active)) return;
        }
    }

    // False at the end.
    bool wait(Clock::duration idle) {
        if (expecting_ > 0 && idle < kSpin) {
            std::this_thread::yield();
            return true;
        }
        std::unique_lock lock(mutex_);
        if (abort_status_) calls_->abort(*abort_status_);
        if (finishing_ && outgoing_.empty() && sending_.empty()) {
            lock.unlock();
            const bool all = std::ranges::none_of(peers_, [](const Peer& peer) { return peer.lost; });
            if (all) calls_->finish();
            return false;
        }
        const bool long_nap = expecting_ == 0 || idle > kRest;
        if (outgoing_.empty()) changed_.wait_for(lock, long_nap ? kLongNap : kNap);
        return true;
    }

    bool send_waiting() {
        {
            const std::lock_guard lock(mutex_);
            for (Outgoing& one : outgoing_) sending_.push_back(std::move(one));
            outgoing_.clear();
        }
        bool any = false;
        for (auto one = sending_.begin(); one != sending_.end();) {
            const bool begins = !one->sending;
            if (peers_[one->to].lost || !progress(*one)) {
                one = sending_.erase(one);
                continue;
            }
            any |= begins;
            ++one;
        }
        return any;
    }

    // False once the message is on its way or cannot be.
    bool progress(Outgoing& one) {
        char problem[512] = "";
        if (!one.sending && calls_->send(one.to, one.message.data(), one.message.size(), &one.sending,
                                         problem, sizeof(problem))) {
            lose(one.to, problem);
            return false;
        }
        int done = 0;
        if (calls_->sent(one.sending, &done, problem, sizeof(problem))) {
            lose(one.to, problem);
            return false;
        }
        return !done;
    }

    bool receive_all() {
        bool any = false;
        while (true) {
            int found = 0;
            uint32_t from = 0;
            uint64_t bytes = 0;
            char problem[512] = "";
            if (calls_->probe(&found, &from, &bytes, problem, sizeof(problem))) {
                for (uint32_t rank = 0; rank < ranks_; ++rank)
                    if (rank != rank_) lose(rank, problem);
                return any;
            }
            if (!found) return any;
            WireMessage message(bytes);
            if (calls_->receive(from, message.data(), bytes, problem, sizeof(problem))) {
                lose(from, problem);
                return any;
            }
            peers_[from].heard = Clock::now();
            if (message.empty()) continue;  // it is there, and says no more
            any = true;
            if (listener_) listener_(from, std::move(message));
        }
    }

    // All ranks look after the first one, and that one after all.
    bool watches(uint32_t rank) const { return rank != rank_ && (rank == 0 || rank_ == 0); }

    void say_alive() {
        for (uint32_t rank = 0; rank < ranks_; ++rank) {
            const bool waits = std::ranges::any_of(
                sending_, [&](const Outgoing& one) { return one.to == rank && one.message.empty(); });
            if (watches(rank) && !peers_[rank].lost && !waits) sending_.push_back({rank, {}, nullptr});
        }
    }

    void look_for_losses(Clock::time_point now) {
        const auto most = hurries_ ? kSilenceInHurry : kSilence;
        for (uint32_t rank = 0; rank < ranks_; ++rank) {
            if (!watches(rank) || peers_[rank].lost) continue;
            if (peers_[rank].process && peers_[rank].process->ended()) {
                lose(rank, "its process has ended");
            } else if (now - peers_[rank].heard > most) {
                lose(rank, fmt::format("it has said nothing for {} s",
                                       std::chrono::duration_cast<std::chrono::seconds>(most).count()));
            }
        }
    }

    void lose(uint32_t rank, const std::string& why) {
        if (std::exchange(peers_[rank].lost, true)) return;
        if (losses_ && !finishing_) losses_(rank, why);
    }

    const RedlineMpi* calls_ = nullptr;
    uint32_t rank_ = 0, ranks_ = 1, ranks_here_ = 1;
    std::vector<Peer> peers_;      // by rank; of the thread of MPI, but for the hosts
    std::list<Outgoing> sending_;  // likewise
    std::atomic<int> expecting_ = 0;
    std::atomic<bool> hurries_ = false, finishing_ = false;
    std::thread thread_;

    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::optional<Status> started_;
    Listener listener_;  // set once, before the thread's loop
    LossListener losses_;
    std::deque<Outgoing> outgoing_;
    std::optional<int> abort_status_;
};

constexpr const char* kInstall =
    "install OpenMPI or MPICH (openmpi-bin) and redline's plug-in for it, which is built where libopenmpi-dev "
    "or libmpich-dev is installed";

}  // namespace

LaunchedAs launched_as(const std::function<std::string(const std::string&)>& variable) {
    constexpr std::pair<const char*, const char*> kLaunchers[] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},  // OpenMPI
        {"PMI_RANK", "PMI_SIZE"},                          // MPICH, and srun with PMI-2
        {"PMIX_RANK", "SLURM_NTASKS"},                     // srun with PMIx
    };
    const auto number = [&](const char* name) -> std::optional<uint32_t> {
        const std::string text = variable(name);
        if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != text.npos) return {};
        return uint32_t(std::stoul(text));
    };
    for (const auto& [rank, ranks] : kLaunchers) {
        const auto mine = number(rank), all = number(ranks);
        if (mine && all && *mine < *all) return {*mine, *all};
    }
    return {};
}

Result<std::unique_ptr<Wire>> open_mpi_wire(const std::vector<std::string>& plugins) {
    std::string why;
    for (const std::string& path : plugins) {
        os::LibraryFault fault;
        void* const library = os::open_library(path.c_str(), fault);
        if (!library) {
            if (os::exists(path)) why = fault.message;
            continue;
        }
        const auto make = reinterpret_cast<decltype(&redline_mpi)>(os::find_symbol(library, "redline_mpi"));
        const RedlineMpi* const calls = make ? make() : nullptr;
        if (calls && calls->interface_version == REDLINE_MPI_INTERFACE) return MpiWire::open(calls);
        why = fmt::format("{} is of another version of redline", path);
    }
    if (why.empty())
        return error("this job has several ranks, and redline's MPI plug-in is not there: {}", kInstall);
    return error("redline's MPI plug-in cannot be opened ({}): {}", why, kInstall);
}

}  // namespace redline
