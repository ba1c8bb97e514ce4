#include "cli/commands/tune_whole.h"

#include <algorithm>
#include <array>

namespace redline::cli {

namespace {

constexpr int kRounds = 7;
// Less than this is within what medians of so few runs vary by.
constexpr double kSlower = 0.995;

constexpr double kShortSeconds = 0.25;  // of a short prompt, for a long one to be read, too

struct Times {
    std::vector<double> prompt, text, longer;
};

double median(std::vector<double> all) {
    const auto middle = all.begin() + ptrdiff_t(all.size() / 2);
    std::ranges::nth_element(all, middle);
    return *middle;
}

class Turns {
public:
    Turns(std::span<const Token> tokens, const std::atomic<bool>* cancel)
        : tokens_(tokens), cancel_(cancel) {}

    Status run(Session& session, Times& times, bool longer) const {
        times.prompt.push_back(RL_TRY(read(session, tokens_.first(kWholePrompt))));
        const double begin = clock_->now();
        for (const Token token : tokens_.subspan(kWholePrompt, kWholeTokens))
            RL_TRY(session.feed({&token, 1}, cancel_));
        times.text.push_back(clock_->now() - begin);
        if (longer) times.longer.push_back(RL_TRY(read(session, tokens_)));
        return {};
    }

private:
    Result<double> read(Session& session, std::span<const Token> prompt) const {
        session.rewind(0);
        const double begin = clock_->now();
        RL_TRY(session.feed(prompt, cancel_));
        return clock_->now() - begin;
    }

    std::span<const Token> tokens_;
    const std::atomic<bool>* cancel_;
    std::unique_ptr<TuneClock> clock_ = steady_clock();
};

}  // namespace

uint64_t whole_context(uint32_t batch) {
    return std::max<uint64_t>(2 * uint64_t(batch), kWholePrompt + kWholeTokens);
}

Result<WholeGains> whole_gains(const Model& model, Backend& backend, const SessionOptions& settings,
                               std::span<const Token> tokens, const std::atomic<bool>* cancel) {
    const Turns turns(tokens, cancel);
    Times first;
    // Steps of each kind are lowered when the first is run: with the variants that the backend uses then.
    const auto ready = [&]() -> Result<Session> {
        Session session = RL_TRY(Session::create(model, settings));
        RL_TRY(turns.run(session, first, true));
        RL_TRY(turns.run(session, first, false));
        return session;
    };
    const Variants tuned = backend.variants();
    Session with = RL_TRY(ready());
    backend.use({});
    Result<Session> made = ready();
    backend.use(tuned);
    Session without = RL_TRY(std::move(made));
    const std::array<Session*, 2> sessions = {&with, &without};
    std::array<Times, 2> times;
    const bool longer = first.prompt.back() < kShortSeconds;
    for (int round = 0; round < kRounds; ++round)
        for (const int turn : {0, 1}) {
            const size_t which = size_t((round + turn) % 2);
            RL_TRY(turns.run(*sessions[which], times[which], longer));
        }
    WholeGains gains = {median(times[1].prompt) / median(times[0].prompt),
                        median(times[1].text) / median(times[0].text)};
    if (longer) gains.prompt = std::min(gains.prompt, median(times[1].longer) / median(times[0].longer));
    return gains;
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
