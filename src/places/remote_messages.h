// The messages between rank 0, which has the engine, and the ranks that compute parts of its steps. Every
// message begins with its kind. Rank 0 makes calls; a rank executes them in the order in which they come.
#pragma once

#include "base/scored.h"
#include "places/remote_bytes.h"
#include "plan/step_params.h"

namespace redline {

enum class RemoteKind : uint8_t {
    hello,   // of a rank: what it has, or why it cannot take part
    call,    // of rank 0: number, RemoteCall, arguments; the number 0 wants no answer
    answer,  // number, whether the device is lost, an error's text or nothing, results
    rows,    // of the executable that goes on: the chain, the step's number, RemoteRows
    cancel,  // of rank 0: the chain, and the number of the last step that is to end early
    ping,    // a number and some bytes, which come back as a pong
    pong,
    sum,     // rows of a rank that are added: the chain, the step's number, which of its messages, floats
    no_sum,  // a rank failed: the chain and the number of the step that ends without further sums
    loss,    // to rank 0: a rank that this one has lost, and why
    end      // of rank 0: the job is over
};

enum class RemoteCall : uint8_t {
    lower,     // device, fuse, plan -> handle, mixes, lowered plan
    load,      // device, parts of weights, the infos of these weights -> handle, bytes
    caches,    // device, cache infos -> handle, bytes
    measure,   // device, weights, caches, groups of handles of plans -> memory need
    record,    // device, handles of plans, weights, caches, mode -> for each its handle, most_best, mixes
    drop,      // handle
    pass,      // handle of an executable, chain, rank that its input comes from or none, rank that it goes to
    run,       // RemoteStep: answered by rows, to the rank that the executable's go to
    join,      // RemoteJoin -> handle, most_best, mixes
    run_rank,  // RemoteStep of what join() made: answered by rows to rank 0
    sums,      // chain, ranks, floats: makes sums with the others, to be timed
    read,      // handle of caches, cache, first, count, bytes -> bytes
    write,     // handle of caches, cache, first, count, bytes
    copy,      // handle of caches, cache, from, to, count
    allocated,  // device -> bytes
    bandwidth,  // device -> bytes per second
    hop,        // rank, bytes, count -> seconds of a message there, the median
    host        // whatever the host's code asks
};

constexpr uint32_t kNoRank = UINT32_MAX;

// A step of an executable, with all that StepParams refers to.
struct RemoteStep {
    uint64_t executable = 0;
    uint64_t number = 0;  // of the steps of its chain
    std::vector<int32_t> tokens = {};
    std::vector<Row> rows = {};
    std::vector<uint32_t> outputs = {};
    bool has_pages = false;
    std::vector<std::vector<uint32_t>> pages = {};
    uint32_t best = 0, best_among = 0;
    std::vector<float> input = {}, lookups = {};
    std::vector<StateRows> states = {};
    std::vector<uint32_t> row_states = {};

    static RemoteStep of(uint64_t executable, uint64_t number, const StepParams& params);
    void pack(Packer& out) const;
    void unpack(Unpacker& in);
    Status check(const Plan& plan) const;
};

// Executables of a rank that are the parts of its plan, cut where sums over all ranks are due.
struct RemoteJoin {
    struct Crossing {
        Slot slot;
        uint32_t width = 0;
    };
    struct Part {
        uint64_t executable = 0;
        std::vector<Crossing> takes = {}, leaves = {}, sums = {};
    };
    std::vector<Part> parts;
    uint64_t first_output = 0, outputs = 0;  // of those of the whole model
    bool sends_output = true;
    uint64_t chain = 0;           // of the sums, the same on all ranks
    std::vector<uint32_t> ranks;  // in the order in which their rows are added
    uint64_t answers = 0;         // the chain of what goes to rank 0
};

// The results of a step at one rank, or its error.
struct RemoteRows {
    std::string problem;  // empty: there is none
    std::vector<float> output = {};
    std::vector<Scored> best = {};
    std::vector<float> hidden = {};
    bool gave_up = false;  // since another rank failed, which has the problem
};

}  // namespace redline
