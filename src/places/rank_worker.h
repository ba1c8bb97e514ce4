// A rank that computes parts of a model for rank 0: it executes the calls that come.
#pragma once

#include "places/model.h"
#include "places/rank_run.h"
#include "places/remote_ping.h"
#include "places/remote_team.h"

#include <deque>

namespace redline {

class RankWorker {
public:
    // Answers RemoteCall::host.
    using HostCall = std::function<Result<std::vector<std::byte>>(std::span<const std::byte> arguments)>;

    explicit RankWorker(Wire& wire);
    void say_hello(const RemoteHello& hello);
    // Computes nothing until the job ends. An error says that rank 0 is lost.
    Status wait_for_end();
    // Serves rank 0 until that ends the job. The model is not placed; the devices are those of the hello. An
    // error says that rank 0 is lost.
    Status serve(const Model& model, std::vector<Backend*> devices, const HostCall& host);

private:
    struct Caches {
        std::unique_ptr<CacheStore> store;
        std::vector<CacheInfo> infos;
    };
    struct Part {
        std::shared_ptr<Executable> executable;
        Plan plan;  // without steps
        uint64_t chain = 0;
        uint32_t from = kNoRank, to = 0;
    };
    // The parts of a rank's plan, with what other ranks add between them.
    struct Joined {
        Joined(std::vector<RankRun::Part> parts, const RemoteJoin& how, WireSums& wire, uint32_t rank);
        RankRun::Sums sums;
        RankRun run;
        WireReducer reducer;
        size_t place = 0;  // of this rank in the order
        bool sends_output = true;
        uint64_t answers = 0;
        Plan limits;  // of a step, with the slot of lookups
    };
    using Answer = Result<std::vector<std::byte>>;

    void take(uint32_t from, const WireMessage& message);
    void take_loss(uint32_t rank, const std::string& why);
    void take_cancel(uint64_t chain, uint64_t number);
    std::optional<WireMessage> next_call();
    Status end();
    void execute(const WireMessage& message, const HostCall& host);
    Answer answer(RemoteCall what, Unpacker& in, const HostCall& host);
    Result<Backend*> device(Unpacker& in);
    bool lost_device() const;
    Answer lower_plan(Unpacker& in);
    Answer load(Unpacker& in);
    Answer make_caches(Unpacker& in);
    Answer measure(Unpacker& in);
    Answer record(Unpacker& in);
    Answer join(Unpacker& in);
    Answer time_sums(Unpacker& in);
    Answer read(Unpacker& in);
    Answer write(Unpacker& in);
    Answer copy(Unpacker& in);
    void pass(Unpacker& in);
    void drop(uint64_t handle);
    void run(Unpacker& in);
    void run_rank(Unpacker& in);
    void begin_step(uint64_t chain, uint64_t number);
    void end_step(uint32_t to, uint64_t chain, uint64_t number, const RemoteRows& rows);
    RemoteRows compute(Part& part, RemoteStep& step);
    RemoteRows compute_rank(Joined& joined, const RemoteStep& step);
    Error named(const Error& problem) const;
    RemoteRows input_of(const Part& part, uint64_t number);
    Result<BoundPlan> take_plan(uint64_t handle);
    struct CacheRange {
        Caches* caches = nullptr;
        Cache cache;
        uint64_t first = 0, count = 0;
        uint64_t bytes() const;
    };
    Result<CacheRange> range(Unpacker& in);

    Wire& wire_;
    RemotePing ping_;
    WireSums sums_;
    const Model* model_ = nullptr;
    std::vector<Backend*> devices_;
    uint64_t call_ = 0;     // the number of the call that is executed
    uint64_t handles_ = 0;  // further ones that this call made
    std::map<uint64_t, BoundPlan> plans_;
    std::map<uint64_t, std::unique_ptr<WeightStore>> weights_;
    std::map<uint64_t, Caches> caches_;
    std::map<uint64_t, Part> parts_;
    std::map<uint64_t, std::unique_ptr<Joined>> joined_;
    std::atomic<bool> cancelled_ = false;  // the step that runs

    std::mutex mutex_;  // guards what follows
    std::condition_variable came_;
    std::deque<WireMessage> calls_;
    std::map<std::pair<uint64_t, uint64_t>, RemoteRows> rows_;  // by chain and number
    std::map<uint64_t, uint64_t> cancelled_steps_;              // by chain: the last one
    std::pair<uint64_t, uint64_t> running_ = {};                // chain and number
    bool over_ = false;
    std::string lost_;  // why rank 0 is lost
};

}  // namespace redline
