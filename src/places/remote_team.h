// The other ranks of a job, as rank 0 sees them: calls that they answer, rows that come back from steps, and
// whether they are there.
#pragma once

#include "mpi/wire.h"
#include "places/remote_messages.h"
#include "places/remote_ping.h"
#include "places/wire_sums.h"
#include "plan/backend.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

namespace redline {

// A device that a rank has opened for its part of the model.
struct RemoteDevice {
    std::string id;       // "hip:1"
    std::string backend;  // "hip"
    DeviceInfo info;
    std::vector<std::string> formats;  // that it has kernels for
};

// A rank says this at the start of a job.
struct RemoteHello {
    std::string problem;  // why it cannot take part; empty: it can
    std::string build;    // of the program
    uint64_t file_digest = 0, file_bytes = 0;
    std::string settings;  // options that all ranks have to agree on
    std::string host;
    std::vector<RemoteDevice> devices;
};

class RemoteTeam {
public:
    // `wire` is that of rank 0.
    explicit RemoteTeam(std::unique_ptr<Wire> wire);
    ~RemoteTeam();
    RemoteTeam(const RemoteTeam&) = delete;
    RemoteTeam& operator=(const RemoteTeam&) = delete;

    uint32_t ranks() const { return wire_->ranks(); }
    std::string name_of(uint32_t rank) const { return wire_->name_of(rank); }
    // Waits for the hellos of all ranks but this one, in their order: one for each rank from 1 on.
    Result<std::vector<RemoteHello>> hellos();

    // Results of a call; an error names the rank.
    Result<std::vector<std::byte>> call(uint32_t rank, RemoteCall what, Packer arguments);
    // The same in two parts: the rank works meanwhile.
    uint64_t begin(uint32_t rank, RemoteCall what, Packer arguments);
    Result<std::vector<std::byte>> finish(uint32_t rank, uint64_t number);
    // A call that is not answered.
    void post(uint32_t rank, RemoteCall what, Packer arguments);

    // A number for executables through which the rows of steps go.
    uint64_t new_chain() { return ++chains_; }
    // Waits for the rows of a step. Where `cancel` turns true, ranks are told to end it.
    Result<RemoteRows> rows(uint64_t chain, uint64_t number, const std::atomic<bool>* cancel);

    // The sums of which this rank has a part.
    WireSums& sums() { return sums_; }

    // Seconds that so many bytes take from one rank to another; 0: not known.
    double hop_seconds(uint32_t from, uint32_t to, uint64_t bytes);
    // Seconds of a sum of so many floats over these ranks, of which this is one; 0: not known.
    double sum_seconds(const std::vector<uint32_t>& ranks, uint64_t floats);

    // Why the job cannot go on, since a rank or its device was lost; empty: it can.
    std::string problem() const;
    // Where the rank has lost its device, the job is over, too.
    bool lost_device(uint32_t rank) const;
    // Ranks that do not answer are lost sooner from now on, see Wire.
    void hurry() { wire_->hurry(); }
    // Ends the job: the other ranks go on to their ends. Where one is lost, all of them are ended with
    // `status`, and this does not return then, unless `status` is 0.
    void end(int status);

private:
    struct Answer {
        std::string problem;
        std::vector<std::byte> bytes;
    };
    void take(uint32_t from, const WireMessage& message);
    void take_answer(uint32_t from, Unpacker& in);
    void take_loss(uint32_t rank, const std::string& why);
    Error failure() const;  // under mutex_

    std::unique_ptr<Wire> wire_;
    RemotePing ping_;
    WireSums sums_;
    std::atomic<uint64_t> chains_ = 0;
    bool ended_ = false;

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable came_;
    uint64_t calls_ = 0;
    std::map<uint64_t, Answer> answers_;
    std::map<std::pair<uint64_t, uint64_t>, RemoteRows> rows_;  // by chain and number
    std::map<uint32_t, RemoteHello> hellos_;
    std::set<uint32_t> lost_devices_;
    std::string problem_;
};

}  // namespace redline
