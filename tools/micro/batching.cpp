// Times the scheduler of `redline serve` without its server: a closed loop of users, each of whom sends its
// next request when the last one has ended.
// usage: micro_batching MODEL.gguf DEVICE [--users 1,4,8] [--prompt 128] [--gen 64] [--depth 0] [--requests
// 2]
#include "host/load_model.h"
#include "serve/batch/scheduler.h"

#include <cxxopts.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <random>

using namespace redline;
using namespace redline::serve;

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

double percentile(std::vector<double> values, double part) {
    if (values.empty()) return 0.0;
    std::sort(values.begin(), values.end());
    return values[size_t(part * double(values.size() - 1))];
}

struct Load {
    uint32_t users = 1;
    uint64_t prompt = 128, gen = 64, depth = 0;
    uint32_t requests = 2;  // of each user
};

// All users of a load, who count what they get.
class Users {
public:
    Users(Scheduler& scheduler, const Load& load) : scheduler_(scheduler), load_(load), random_(7) {}

    void run() {
        const Statistics before = scheduler_.statistics();
        const auto begin = Clock::now();
        left_ = load_.users * load_.requests;
        for (uint32_t user = 0; user < load_.users; ++user) send();
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return left_ == 0; });
        const double seconds = since(begin);
        const Statistics after = scheduler_.statistics();
        const double steps = double(after.generating_steps - before.generating_steps);
        const double generated = double(after.generated_tokens - before.generated_tokens);
        std::printf(
            "%5u users  %8.1f tok/s  %7.2f ms/step  %5.1f rows/step  first %7.1f / %7.1f ms  "
            "between %6.2f / %7.2f ms  preempted %llu\n",
            load_.users, generated / seconds,
            1e3 * (after.generation_seconds - before.generation_seconds) / std::max(steps, 1.0),
            double(after.generating_rows - before.generating_rows) / std::max(steps, 1.0),
            1e3 * percentile(first_, 0.5), 1e3 * percentile(first_, 0.95), 1e3 * percentile(between_, 0.5),
            1e3 * percentile(between_, 0.99),
            static_cast<unsigned long long>(after.preemptions - before.preemptions));
    }

private:
    // Callers hold no lock; calls come from this thread and from the scheduler's.
    void send() {
        AnswerRequest request;
        {
            const std::lock_guard lock(mutex_);
            for (uint64_t i = 0; i < load_.depth + load_.prompt; ++i)
                request.prompt.push_back(Token(random_() % scheduler_.model().usable_vocab()));
        }
        request.ignore_eos = true;
        request.max_tokens = int64_t(load_.gen);
        auto last = std::make_shared<Clock::time_point>(Clock::now());
        request.sink.piece = [this, last, first = true](const serve::AnswerPiece&) mutable {
            const std::lock_guard lock(mutex_);
            (first ? first_ : between_).push_back(since(*last));
            first = false;
            *last = Clock::now();
        };
        request.sink.end = [this](const AnswerEnd&) { ended(); };
        scheduler_.submit(std::move(request));
    }

    void ended() {
        bool again = false;
        {
            const std::lock_guard lock(mutex_);
            again = --left_ >= load_.users;
            if (left_ == 0) done_.notify_one();
        }
        if (again) send();
    }

    Scheduler& scheduler_;
    const Load load_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable done_;
    std::mt19937 random_;
    std::vector<double> first_, between_;
    size_t left_ = 0;
};

Status run(const cxxopts::ParseResult& parsed) {
    HostOptions host;
    host.model = parsed["model"].as<std::string>();
    host.device = parsed["device"].as<std::string>();
    Load load;
    load.prompt = parsed["prompt"].as<uint64_t>();
    load.gen = parsed["gen"].as<uint64_t>();
    load.depth = parsed["depth"].as<uint64_t>();
    load.requests = parsed["requests"].as<uint32_t>();
    const auto users = parsed["users"].as<std::vector<uint32_t>>();
    SchedulerOptions options;
    options.parallel = *std::max_element(users.begin(), users.end());
    options.context = (load.depth + load.prompt + load.gen + 255) / 256 * 256;
    LoadedModel loaded = RL_TRY(inspect_model(host));
    const auto scheduler = RL_TRY(Scheduler::create(loaded, host, options));
    std::printf("%s: prompts of %llu behind %llu, %llu generated\n", scheduler->device().name.c_str(),
                static_cast<unsigned long long>(load.prompt), static_cast<unsigned long long>(load.depth),
                static_cast<unsigned long long>(load.gen));
    for (const uint32_t count : users) {
        load.users = count;
        Users(*scheduler, load).run();
    }
    return {};
}

}  // namespace

int main(int count, char** words) {
    cxxopts::Options options("micro_batching");
    options.add_options()("model", "", cxxopts::value<std::string>())(
        "device", "", cxxopts::value<std::string>()->default_value("cpu"))(
        "users", "", cxxopts::value<std::vector<uint32_t>>()->default_value("1,2,4,8"))(
        "prompt", "", cxxopts::value<uint64_t>()->default_value("128"))(
        "gen", "", cxxopts::value<uint64_t>()->default_value("64"))(
        "depth", "", cxxopts::value<uint64_t>()->default_value("0"))(
        "requests", "", cxxopts::value<uint32_t>()->default_value("2"));
    options.parse_positional({"model", "device"});
    const Status done = run(options.parse(count, words));
    if (!done) std::fprintf(stderr, "micro_batching: %s\n", done.error().message.c_str());
    return done ? 0 : 1;
}
