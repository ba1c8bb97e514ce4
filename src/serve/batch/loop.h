// The thread of a scheduler: it admits requests, runs steps, and hands their logits out.
#pragma once

#include "host/rescue.h"
#include "serve/batch/kept_sequences.h"
#include "serve/batch/prompt_pace.h"
#include "serve/batch/request.h"
#include "serve/batch/scheduler.h"
#include "serve/batch/workers.h"

#include <deque>

namespace redline::serve {

class Scheduler::Loop {
public:
    using Clock = Request::Clock;

    static Result<std::unique_ptr<Loop>> create(LoadedModel& loaded, const HostOptions& host,
                                                const SchedulerOptions& options);
    ~Loop();

    Submission submit(AnswerRequest asked);
    void drain(std::chrono::milliseconds longest);
    Health health() const;
    Statistics statistics() const;
    const Engine& engine() const { return *engine_; }
    const DeviceInfo& device() const { return device_; }
    const SchedulerOptions& options() const { return options_; }

private:
    static constexpr Token kPaddingToken = 0;
    static constexpr std::span<const Token> kPadding{&kPaddingToken, 1};

    using Waiting = std::deque<std::unique_ptr<Request>>;

    // A part of a request's text that a step reads.
    struct Part {
        Request* request;
        uint64_t tokens;
        bool generates = false;         // it is the token that was chosen last,
        std::vector<Token> round = {};  // with a guess behind it; empty: without
        uint64_t used = 0;              // tokens of the round that turned out to be the text

        uint64_t drafts() const { return round.empty() ? 0 : round.size() - 1; }
        uint32_t outputs() const { return uint32_t(drafts() + 1); }
    };
    using Parts = std::vector<Part>;
    // The sequence that a request goes on with: one that runs, or one that is kept.
    struct Source {
        uint64_t tokens = 0;  // 0: there is none
        const Sequence* running = nullptr;
        KeptSequences::Match kept = {};
    };

    Loop(LoadedModel& loaded, HostOptions host, const SchedulerOptions& options, OpenSpeculation drafting)
        : loaded_(loaded),
          host_(std::move(host)),
          options_(options),
          drafting_(std::move(drafting)),
          rescue_(loaded, host_),
          pace_(options.prompt_share),
          bursts_(options.prompt_share) {}
    Status open();

    // From the threads of others.
    Submission refuse(Refusal why, std::string message, uint64_t tokens);
    Submission check(const AnswerRequest& asked);

    // The thread.
    void run();
    bool wait_for_work();
    void take_submitted();
    std::unique_ptr<Request> take_waiting(Waiting::iterator at);
    void end_waiting(StopReason reason, const std::function<bool(Request&)>& which);
    void end_cancelled();
    void end_all(StopReason reason);
    void leave(Request& request, StopReason reason);
    void end(std::unique_ptr<Request> request, StopReason reason);
    void publish();
    void lose(const Error& loss);
    void try_reopen();

    // Rows with an output that a step has without guesses.
    uint32_t plain_outputs() const;
    // The engine's pages but for the one of the padding.
    Engine::PageCount count_pages() const;

    // Admission.
    void admit();
    Source source_for(const Request& request);
    bool has_room(const Request& request, const Source& source) const;
    bool awaits(Request& request, uint64_t served);
    void start(std::unique_ptr<Request> request, const Source& source);
    std::vector<uint64_t> marks_of(const Request& request) const;
    void hold(Request& request, uint64_t tokens);
    void release(Request& request);

    // Files.
    Status open_files();
    void store(const Sequence& sequence);
    void store_all();
    bool awaits_file(Request& request, const Source& source);
    void take_file();
    void wait_for_file();
    void restore(const KeptFiles::Match& match);
    uint64_t kept_pages() const;

    // Steps.
    void iterate();
    Parts generating();
    void add_prompts(Parts& together, std::vector<Parts>& alone);
    uint64_t tokens_in_flight(const Request& request) const;
    void step(Parts parts);
    void guess(Parts& parts);
    void say_guesses_failed(const Error& problem);
    static std::vector<Feed> feeds_of(const Parts& parts);
    bool pads(const Parts& parts) const;
    static uint32_t best_wanted(const Parts& parts);
    void find_pages(Parts& parts);
    void preempt(Request& request);
    void step_went_wrong(const Parts& parts, const Error& problem);
    void count(const Parts& parts, double seconds);
    void keep_marked(const Parts& parts);
    void choose(Parts& parts);
    void choose_for(Part& part, size_t output, size_t outputs);
    void take_back(Part& part);

    LoadedModel& loaded_;
    const HostOptions host_;
    SchedulerOptions options_;
    OpenSpeculation drafting_;
    DeviceRescue rescue_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<SharedSpeculation> speculation_;  // null: there is none
    bool guesses_failed_ = false;                     // which was noted
    std::unique_ptr<Workers> workers_;
    DeviceInfo device_;         // a copy, as the backend changes with a loss
    uint64_t most_tokens_ = 0;  // of a request: the context, or all pages
    // Steps of prompts and generated tokens together cost no more than apart, on a CPU, or where attention
    // has tiles for them.
    bool mixes_ = false, tiles_ = false;

    // Used by the thread alone.
    Waiting waiting_;
    std::vector<std::unique_ptr<Request>> running_;
    std::optional<KeptSequences> kept_;
    std::unique_ptr<KeptFiles> files_;  // null: there is no folder for them
    uint64_t file_reader_ = 0;          // the number of the request that a file is read for
    // Read beside a seeded request that would be alone in its step; it holds a page between steps.
    std::optional<Sequence> padding_;
    PromptPace pace_;      // where steps mix
    PromptBursts bursts_;  // where they do not
    Statistics counted_;
    uint64_t first_generating_ = 0;  // where the next step begins, when not all fit into one
    std::optional<Error> loss_;      // set while there is no device
    Clock::time_point next_try_;
    std::chrono::seconds pause_{0};

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable wake_, ended_;
    Waiting submitted_;
    Statistics published_;
    uint64_t refused_ = 0;
    uint64_t number_ = 0;
    size_t unstarted_ = 0, unfinished_ = 0;  // submitted, and not running yet, or not ended
    bool draining_ = false, lost_ = false, stopped_ = false;
    Clock::time_point deadline_;
    std::atomic<bool> abort_ = false;  // ends the step that runs
    std::thread thread_;
};

}  // namespace redline::serve
