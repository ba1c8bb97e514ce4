#include "places/flights.h"

#include "plan/far_backend.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <system_error>

namespace redline {

Pipeline::Flights::Flights(const Pipeline& pipeline) : pipeline_(pipeline) {
    for (size_t part = 0; part < pipeline.parts_.size(); ++part) {
        places_[pipeline.parts_[part].place];
        for (const Crossing& taken : pipeline.parts_[part].takes) last_takers_[taken.slot.index] = part;
    }
    try {
        for (auto& [number, place] : places_)
            place.thread = std::thread([this, &place = place] { serve(place); });
    } catch (const std::system_error&) {
        stop();
        threads_ = false;
    }
}

Pipeline::Flights::~Flights() {
    stop();
}

// Steps in flight are given up, but for the parts that run.
void Pipeline::Flights::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (auto& [number, place] : places_)
        if (place.thread.joinable()) place.thread.join();
}

static bool passes_on(const Executable& executable) {
    const auto* const far = dynamic_cast<const FarExecutable*>(&executable);
    return far && far->passes_on();
}

Status Pipeline::Flights::run_part(Flight& flight, size_t part) const {
    const bool last = part + 1 == pipeline_.parts_.size();
    const size_t rows = flight.params.tokens.size();
    Executable& executable = *pipeline_.parts_[part].executable;
    StepParams params = flight.params;
    if (!last) {
        params.outputs = flight.all;
        params.best = params.best_among = 0;
    }
    try {
        if (part > 0 && !passes_on(*pipeline_.parts_[part - 1].executable))
            params.input = pipeline_.gathered(part, rows, flight.rows);
        number_step(executable, flight.step);
        RL_TRY(executable.run(params));
        // A part for each layer's experts would leave many rows behind.
        for (const Crossing& taken : pipeline_.parts_[part].takes)
            if (last_takers_.at(taken.slot.index) == part) flight.rows.of_slots.erase(taken.slot.index);
        // The executable is soon in use for the next step.
        if (!last) {
            if (!passes_on(executable)) pipeline_.keep_output_of(part, rows, true, flight.rows);
        } else {
            flight.output.assign(executable.output().begin(), executable.output().end());
            flight.best.assign(executable.best().begin(), executable.best().end());
            flight.hidden.assign(executable.hidden().begin(), executable.hidden().end());
        }
    } catch (const std::bad_alloc&) {  // an exception that left the thread would end the program
        return error("not enough memory to pass activations on");
    }
    return {};
}

void Pipeline::Flights::pass_on(const Task& task, Status done) {
    Flight& flight = *task.flight;
    const bool last = task.part + 1 == pipeline_.parts_.size();
    {
        const std::lock_guard lock(mutex_);
        if (!done) failed_ = std::min(failed_, flight.number);
        if (!done || last) {
            flight.status = std::move(done);
            flight.over = true;
        } else {
            places_.at(pipeline_.parts_[task.part + 1].place).tasks.push_back({&flight, task.part + 1});
        }
    }
    wake_.notify_all();
    over_.notify_all();
}

void Pipeline::Flights::serve(Place& place) {
    while (true) {
        Task task;
        bool failed = false;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [&] { return stopping_ || !place.tasks.empty(); });
            if (stopping_) return;
            task = place.tasks.front();
            place.tasks.pop_front();
            failed = failed_ < task.flight->number;
        }
        pass_on(task,
                failed ? Status(error("a step before this one failed")) : run_part(*task.flight, task.part));
    }
}

void Pipeline::Flights::run_now(Flight& flight) {
    for (size_t part = 0; part < pipeline_.parts_.size() && flight.status; ++part)
        flight.status = run_part(flight, part);
    flight.over = true;
}

Status Pipeline::Flights::begin(const StepParams& params) {
    auto flight = std::make_unique<Flight>(Flight{params, begun_++, next_step_number()});
    flight->all.resize(params.tokens.size());
    std::iota(flight->all.begin(), flight->all.end(), 0u);
    flights_.push_back(std::move(flight));
    if (!threads_) {
        run_now(*flights_.back());
        return {};
    }
    {
        const std::lock_guard lock(mutex_);
        places_.at(pipeline_.parts_.front().place).tasks.push_back({flights_.back().get(), 0});
    }
    wake_.notify_all();
    return {};
}

Status Pipeline::Flights::finish() {
    RL_CHECK(!flights_.empty(), "no step is in flight");
    {
        std::unique_lock lock(mutex_);
        over_.wait(lock, [&] { return flights_.front()->over; });
    }
    std::unique_ptr<Flight> first = std::move(flights_.front());
    flights_.pop_front();
    if (first->status) {
        last_ = std::move(first);
        return {};
    }
    std::unique_lock lock(mutex_);
    over_.wait(lock,
               [&] { return std::ranges::all_of(flights_, [](auto& flight) { return flight->over; }); });
    flights_.clear();
    failed_ = UINT64_MAX;
    return first->status;
}

Status Pipeline::begin(const StepParams& params) {
    if (!flights_) flights_ = std::make_unique<Flights>(*this);
    return flights_->begin(params);
}

Status Pipeline::finish() {
    RL_CHECK(flights_, "no step is in flight");
    RL_TRY(flights_->finish());
    flew_ = true;
    return {};
}

std::span<const float> Pipeline::output() const {
    return flew_ ? flights_->output() : parts_.back().executable->output();
}

std::span<const Scored> Pipeline::best() const {
    return flew_ ? flights_->best() : parts_.back().executable->best();
}

std::span<const float> Pipeline::hidden() const {
    return flew_ ? flights_->hidden() : parts_.back().executable->hidden();
}

}  // namespace redline
