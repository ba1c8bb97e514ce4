// A job whose ranks are threads of the test: messages go from one to another without MPI.
#pragma once

#include "places/rank_worker.h"
#include "places/remote_backend.h"
#include "support/must.h"

#include <cstdlib>
#include <thread>

namespace redline::test {

// The ends of all wires of a job.
struct LocalSwitch {
    struct End {
        std::mutex mutex;  // one message at a time
        Wire::Listener listener;
        Wire::LossListener losses;
        std::vector<std::pair<uint32_t, WireMessage>> early;
    };
    explicit LocalSwitch(uint32_t ranks) : ends(ranks) {}
    std::vector<End> ends;
};

class LocalWire : public Wire {
public:
    LocalWire(std::shared_ptr<LocalSwitch> all, uint32_t rank) : all_(std::move(all)), rank_(rank) {}
    ~LocalWire() override {
        LocalSwitch::End& end = all_->ends[rank_];
        const std::lock_guard lock(end.mutex);
        end.listener = [](uint32_t, const WireMessage&) {};
    }
    uint32_t rank() const override { return rank_; }
    uint32_t ranks() const override { return uint32_t(all_->ends.size()); }
    uint32_t ranks_here() const override { return ranks(); }
    std::string name_of(uint32_t rank) const override { return fmt::format("rank {}", rank); }
    void listen(Listener listener, LossListener losses) override {
        LocalSwitch::End& end = all_->ends[rank_];
        const std::lock_guard lock(end.mutex);
        end.listener = std::move(listener);
        end.losses = std::move(losses);
        for (auto& [from, message] : std::exchange(end.early, {})) end.listener(from, std::move(message));
    }
    void send(uint32_t to, WireMessage message) override {
        LocalSwitch::End& end = all_->ends[to];
        const std::lock_guard lock(end.mutex);
        if (end.listener)
            end.listener(rank_, std::move(message));
        else
            end.early.emplace_back(rank_, std::move(message));
    }
    void expect(bool) override {}
    void hurry() override {}
    [[noreturn]] void abort(int) override { std::abort(); }
    void finish() override {}

private:
    std::shared_ptr<LocalSwitch> all_;
    uint32_t rank_;
};

// Ranks from 1 on that compute parts of a model on devices of the test.
class LocalJob {
public:
    LocalJob(const std::string& path, uint64_t context, std::span<Backend* const> devices,
             ReadHead head = ReadHead::no)
        : switch_(std::make_shared<LocalSwitch>(uint32_t(devices.size()) + 1)),
          team_(std::make_shared<RemoteTeam>(std::make_unique<LocalWire>(switch_, 0))) {
        for (uint32_t rank = 1; rank <= devices.size(); ++rank)
            threads_.emplace_back([this, path, context, head, rank, device = devices[rank - 1]] {
                LocalWire wire(switch_, rank);
                RankWorker worker(wire);
                const Model model = must(Model::inspect(path, context, head));
                RemoteHello hello;
                RemoteDevice& mine = hello.devices.emplace_back();
                mine.info = device->device();
                for (const Format* format : all_formats())
                    if (device->has_kernels(*format)) mine.formats.emplace_back(format->name);
                worker.say_hello(hello);
                const Status served = worker.serve(model, {device}, [](auto) { return error("no host"); });
                if (!served) ends_[rank - 1] = served.error().message;
            });
        ends_.resize(devices.size());
        const std::vector<RemoteHello> hellos = must(team_->hellos());
        for (uint32_t rank = 1; rank <= devices.size(); ++rank)
            backends_.push_back(std::make_unique<RemoteBackend>(team_, rank, 0, hellos[rank - 1].devices[0]));
    }
    ~LocalJob() {
        team_->end(0);
        for (std::thread& thread : threads_) thread.join();
    }
    LocalJob(const LocalJob&) = delete;

    RemoteTeam& team() { return *team_; }
    Backend& device(size_t number) { return *backends_[number]; }
    // Tells rank 0 that another one is lost, and that one the same of rank 0.
    void lose(uint32_t rank) {
        switch_->ends[0].losses(rank, "the test has cut it off");
        switch_->ends[rank].losses(0, "the test has cut it off");
    }
    // Breaks the connection of two other ranks, which the first one sees.
    void lose_between(uint32_t rank, uint32_t other) {
        switch_->ends[rank].losses(other, "the test has cut it off");
    }
    // A message of one rank to another that no rank would send.
    void send(uint32_t from, uint32_t to, const WireMessage& message) {
        switch_->ends[to].listener(from, message);
    }

private:
    std::shared_ptr<LocalSwitch> switch_;
    std::shared_ptr<RemoteTeam> team_;
    std::vector<std::string> ends_;
    std::vector<std::thread> threads_;
    std::vector<std::unique_ptr<RemoteBackend>> backends_;
};

}  // namespace redline::test
