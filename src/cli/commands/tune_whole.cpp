#include "cli/commands/tune_whole.h"

#include <algorithm>
#include <array>

namespace redline::cli {

namespace {

constexpr int kRounds = 7;
// Less than this is within what medians of so few runs vary by.
constexpr double kSlower = 0.995;

struct Times {
    std::vector<double> prompt, text;
};

double median(std::vector<double> all) {
    const auto middle = all.begin() + ptrdiff_t(all.size() / 2);
    std::ranges::nth_element(all, middle);
    return *middle;
}

Status time_once(Session& session, std::span<const Token> prompt, std::span<const Token> text,
                 const std::atomic<bool>* cancel, Times& times) {
    const std::unique_ptr<TuneClock> clock = steady_clock();
    session.rewind(0);
    const double begin = clock->now();
    RL_TRY(session.feed(prompt, cancel));
    const double read = clock->now();
    for (const Token token : text) RL_TRY(session.feed({&token, 1}, cancel));
    times.prompt.push_back(read - begin);
    times.text.push_back(clock->now() - read);
    return {};
}

}  // namespace

Result<WholeGains> whole_gains(const Model& model, Backend& backend, const SessionOptions& settings,
                               std::span<const Token> prompt, std::span<const Token> text,
                               const std::atomic<bool>* cancel) {
    const Variants tuned = backend.variants();
    Session with = RL_TRY(Session::create(model, settings));
    backend.use({});
    Result<Session> made = Session::create(model, settings);
    backend.use(tuned);
    Session without = RL_TRY(std::move(made));
    const std::array<Session*, 2> sessions = {&with, &without};
    std::array<Times, 2> ready, times;
    for (const size_t which : {0, 1}) RL_TRY(time_once(*sessions[which], prompt, text, cancel, ready[which]));
    for (int round = 0; round < kRounds; ++round)
        for (const int turn : {0, 1}) {
            const size_t which = size_t((round + turn) % 2);
            RL_TRY(time_once(*sessions[which], prompt, text, cancel, times[which]));
        }
    return WholeGains{median(times[1].prompt) / median(times[0].prompt),
                      median(times[1].text) / median(times[0].text)};
}

std::vector<RowClass> give_up_slower(const WholeGains& gains, Tuning& tuning, Backend& backend) {
    Variants all = backend.variants();
    std::vector<RowClass> given_up;
    for (const auto& [rows, gain] :
         {std::pair(RowClass::one, gains.generation), {RowClass::many, gains.prompt}}) {
        if (gain >= kSlower) continue;
        bool any = false;
        for (TunedKernel& kernel : tuning.kernels) {
            if (kernel.rows != rows || kernel.variant.empty()) continue;
            any = true;
            all.erase({kernel.key, rows});
            kernel.variant.clear();
            kernel.seconds = kernel.default_seconds;
        }
        if (any) given_up.push_back(rows);
    }
    backend.use(std::move(all));
    return given_up;
}

}  // namespace redline::cli
