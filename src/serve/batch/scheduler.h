// Continuous batching: one thread runs an engine for all requests to a model, a step for all of them at a
// time. Requests wait in a queue, share the pages of equal beginnings, and end by themselves.
#pragma once

#include "host/load_model.h"
#include "host/load_plan.h"
#include "host/open_speculation.h"
#include "serve/batch/answer.h"
#include "serve/batch/held_blocks.h"
#include "serve/batch/kept_files.h"
#include "serve/batch/statistics.h"

#include <chrono>

namespace redline::serve {

struct SchedulerOptions {
    uint32_t parallel = 4;    // requests that run at a time; others wait
    uint64_t context = 4096;  // most tokens of a request, its answer included
    // Tokens that the caches hold for all requests together, kept beginnings included; 0: parallel * context,
    // and some for what is kept of models with states or windows.
    // max_tokens reserves none of them: where they run out, the youngest request is read again later.
    uint64_t cache_tokens = 0;
    uint32_t queue = 256;  // requests that wait at most
    // Sequences that are kept for requests that begin alike; none: 0. Not set: 4 * parallel, at least 32.
    // With states or windows, which take memory: 3 * parallel, as a conversation has one at the end of its
    // first message, of its last, and of the answer; or fewer, so that the rest fits.
    std::optional<uint32_t> kept = {};
    // The share of the time that goes to prompts while others generate. A token of these then takes
    // 1 / (1 - share) of the time that it takes alone.
    double prompt_share = 0.6;
    // For kept sequences that the caches have no room for, and for all of them when the scheduler ends.
    CacheFolder cache_folder = {};
    // Guesses of what follows, several tokens of which a step checks. The model was inspected with the head
    // that they want, see SpeculationOptions::head().
    SpeculationOptions speculation = {};
    std::shared_ptr<HeldBlocks> held = {};  // is told what the caches hold; may be null
    uint32_t sampling_threads = 0;  // beside the thread that computes; 0: by the processors, at most 8
};

enum class Refusal : uint8_t {
    none,
    invalid,          // an option or a token is out of range
    prompt_too_long,  // for the context or for the caches: see Submission::prompt_tokens
    queue_full,
    draining,
    device_lost  // it is being opened again
};

struct Submission {
    std::shared_ptr<AnswerTicket> ticket;  // null: refused, and the sink is never called
    Refusal refusal = Refusal::none;
    std::string message = {};  // why
    uint64_t prompt_tokens = 0, context = 0;
    uint32_t retry_seconds = 0;  // when another try may succeed, about
};

enum class Health : uint8_t {
    serving,
    draining,
    device_lost,  // it is being opened again
    stopped
};

// Requests do not see each other, but kernels of other numbers of rows round differently, which in the end
// changes a seeded answer of a real model. On the CPU the steps of a request with a seed have two rows at
// least, so that dense models give the same bits alone and beside seven others where their prompts are short.
// Long prompts are read in other parts beside others, and round by these: of eight answers of SmolLM2 (Q4_1)
// eight were the same with prompts of 30 tokens, seven with 280 (2026-11-29, avx2). Experts and states round
// by what else is in a step, too. On GPUs nothing is done for it.
class Scheduler {
public:
    // Places an inspected model for so many requests, which plans the memory of their caches, and starts the
    // thread. `loaded` and what `host` names have to outlive the scheduler.
    static Result<std::unique_ptr<Scheduler>> create(LoadedModel& loaded, const HostOptions& host,
                                                     const SchedulerOptions& options);
    // The memory that such a scheduler takes with all of the model on its devices. They are opened if that is
    // not done, and nothing is loaded.
    static Result<SessionNeed> need(LoadedModel& loaded, const HostOptions& host,
                                    const SchedulerOptions& options);
    // Ends what runs and what waits, as cancelled.
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    // From any thread. The sink's calls may begin before this returns.
    Submission submit(AnswerRequest request);

    // Refuses new requests from now on, lets the others end, and ends those that take longer as cancelled.
    // Returns when nothing runs.
    void drain(std::chrono::milliseconds longest);
    void stop() { drain(std::chrono::milliseconds(0)); }

    Health health() const;
    // Counted up to the last step.
    Statistics statistics() const;

    const Model& model() const;
    const DeviceInfo& device() const;
    const MemoryNeed& memory() const;
    const SchedulerOptions& options() const;  // with the values chosen for those not set

private:
    class Loop;
    explicit Scheduler(std::unique_ptr<Loop> loop);
    std::unique_ptr<Loop> loop_;
};

}  // namespace redline::serve
