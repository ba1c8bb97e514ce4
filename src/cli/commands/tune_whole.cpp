#include "cli/commands/tune_whole.h"

#include <algorithm>

namespace redline::cli {

namespace {

constexpr int kRounds = 7, kFewestRounds = 3;
// Less than this is within what medians of so few runs vary by.
constexpr double kSlower = 0.995;

constexpr double kShortSeconds = 0.25;  // of a short prompt, for a long one to be read, too

// The tokens of each class of rows, and how many of them a step has.
struct Stretch {
    RowClass rows;
    uint64_t tokens, step;
};
constexpr Stretch kStretches[] = {
    {RowClass::many, 512, 512}, {RowClass::one, 64, 1}, {RowClass::few, 64, 4}, {RowClass::some, 256, 64}};

struct Times {
    std::vector<double>& of(RowClass rows) { return by_class[size_t(rows)]; }

    std::array<std::vector<double>, std::size(kRowClassList)> by_class;
    std::vector<double> longer;
};

double median(std::vector<double> all) {
    const auto middle = all.begin() + ptrdiff_t(all.size() / 2);
    std::ranges::nth_element(all, middle);
    return *middle;
}

class Turns {
public:
    Turns(std::span<const Token> tokens, TuneClock& clock, const std::atomic<bool>* cancel)
        : tokens_(tokens), clock_(clock), cancel_(cancel) {}

    Status run(Session& session, Times& times, bool longer) const {
        session.rewind(0);
        uint64_t place = 0;
        for (const Stretch& s : kStretches) {
            times.of(s.rows).push_back(RL_TRY(read(session, tokens_.subspan(place, s.tokens), s.step)));
            place += s.tokens;
        }
        if (!longer) return {};
        session.rewind(0);
        times.longer.push_back(RL_TRY(read(session, tokens_, tokens_.size())));
        return {};
    }

private:
    Result<double> read(Session& session, std::span<const Token> tokens, uint64_t step) const {
        const double begin = clock_.now();
        for (; !tokens.empty(); tokens = tokens.subspan(std::min<uint64_t>(step, tokens.size())))
            RL_TRY(session.feed(tokens.first(std::min<uint64_t>(step, tokens.size())), cancel_));
        return clock_.now() - begin;
    }

    std::span<const Token> tokens_;
    TuneClock& clock_;
    const std::atomic<bool>* cancel_;
};

}  // namespace

uint64_t whole_context(uint32_t batch) {
    uint64_t all = 0;
    for (const Stretch& s : kStretches) all += s.tokens;
    return std::max(2 * uint64_t(batch), all);
}

Result<WholeGains> whole_gains(const Model& model, Backend& backend, const SessionOptions& settings,
                               std::span<const Token> tokens, double seconds, TuneClock& clock,
                               const std::atomic<bool>* cancel) {
    const Turns turns(tokens, clock, cancel);
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
    const bool longer = first.of(RowClass::many).back() < kShortSeconds;
    const double end = clock.now() + seconds;
    for (int round = 0; round < kFewestRounds || (round < kRounds && clock.now() < end); ++round)
        for (const int turn : {0, 1}) {
            const size_t which = size_t((round + turn) % 2);
            RL_TRY(turns.run(*sessions[which], times[which], longer));
        }
    WholeGains gains;
    for (const RowClass rows : kRowClassList)
        gains.of(rows) = median(times[1].of(rows)) / median(times[0].of(rows));
    double& prompt = gains.of(RowClass::many);
    if (longer) prompt = std::min(prompt, median(times[1].longer) / median(times[0].longer));
    return gains;
}

std::vector<RowClass> give_up_slower(const WholeGains& gains, Tuning& tuning, Backend& backend) {
    Variants all = backend.variants();
    std::vector<RowClass> given_up;
    for (const RowClass rows : kRowClassList) {
        if (gains.of(rows) >= kSlower) continue;
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
