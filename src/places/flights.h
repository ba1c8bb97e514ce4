// Steps in flight through the parts of a pipeline: a thread for each place runs what comes to it, in order,
// so that all places work, each on another step.
#pragma once

#include "places/pipeline.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace redline {

// A number for each step of all pipelines, which rises, and the way to tell it to those that want it.
uint64_t next_step_number();
void number_step(Executable& executable, uint64_t number);

class Pipeline::Flights {
public:
    explicit Flights(const Pipeline& pipeline);
    ~Flights();
    Flights(const Flights&) = delete;
    Flights& operator=(const Flights&) = delete;

    Status begin(const StepParams& params);
    Status finish();
    // Those of the step that was finished last.
    std::span<const float> output() const { return last_ ? last_->output : std::span<const float>(); }
    std::span<const Scored> best() const { return last_ ? last_->best : std::span<const Scored>(); }
    std::span<const float> hidden() const { return last_ ? last_->hidden : std::span<const float>(); }

private:
    struct Flight {
        StepParams params;
        uint64_t number = 0, step = 0;   // of those in flight; of all pipelines
        std::vector<uint32_t> all = {};  // its rows
        Rows rows = {};
        std::vector<float> output = {};
        std::vector<Scored> best = {};
        std::vector<float> hidden = {};
        Status status = {};
        bool over = false;
    };
    struct Task {
        Flight* flight = nullptr;
        size_t part = 0;
    };
    struct Place {
        std::deque<Task> tasks;
        std::thread thread;
    };

    void serve(Place& place);
    Status run_part(Flight& flight, size_t part) const;
    void pass_on(const Task& task, Status done);
    // Where the system has no more threads, a step runs when it is begun.
    void run_now(Flight& flight);
    void stop();

    const Pipeline& pipeline_;
    std::map<int32_t, size_t> last_takers_;  // by slot: the last part that takes its rows
    std::map<size_t, Place> places_;
    std::deque<std::unique_ptr<Flight>> flights_;  // the first was begun first
    std::unique_ptr<Flight> last_;
    uint64_t begun_ = 0;  // steps
    bool threads_ = true;

    std::mutex mutex_;  // guards what follows, the tasks, and Flight::over
    std::condition_variable wake_, over_;
    uint64_t failed_ = UINT64_MAX;  // number of the first step that failed: those behind it are not computed
    bool stopping_ = false;
};

}  // namespace redline
