#include "sample/sampler.h"

#include "grammar/constraint.h"
#include "sample/arithmetic.h"
#include "sample/chain.h"
#include "sample/mirostat.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <random>

namespace redline {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Result<uint32_t> choose_seed(uint32_t wanted) {
    if (wanted != kRandomSeed) return wanted;
    try {
        std::random_device device;
        return uint32_t(device()) & 0x7FFFFFFFu;  // so that asking for it again gives the same run
    } catch (const std::exception& problem) {
        return error("the system gives no random seed ({}); name one", problem.what());
    }
}

size_t window_tokens(int32_t wanted, int32_t context) {
    const int32_t most = std::max(context, 0);
    return size_t(wanted < 0 ? most : most > 0 ? std::min(wanted, most) : wanted);
}

}  // namespace

struct Sampler::State {
    State(const SamplerOptions& given, int32_t size, uint32_t first_seed)
        : options(given),
          vocabulary_size(size),
          seed(first_seed),
          mirostat{given.mirostat, double(given.mirostat_tau), double(given.mirostat_eta)} {}

    const SamplerOptions options;
    const int32_t vocabulary_size;
    const uint32_t seed;
    std::vector<const SamplerStep*> chain;  // the active steps; with mirostat on: temperature at most
    std::vector<std::pair<int32_t, double>> bias;
    bool takes_argmax = false;  // the choice is the argmax of the logits with the bias
    bool plain_argmax = false;  // and there is no bias
    bool only_forbids = true;   // all of the bias is -inf
    std::vector<Scored> allowed;
    Candidates candidates;
    TokenCounts counts;
    DryHistory dry;
    std::mt19937 draw_random;
    std::mt19937 xtc_random;
    Mirostat mirostat;
    Candidates::Drawn last = {-1, 1.0};  // for mirostat and the constraint, until accepted
    std::shared_ptr<Constraint> constraint;
    Status constrained;  // what was wrong with the last token accepted

    Status prepare(SamplerVocabulary vocabulary);
    void restart();
    void add_bias();
    std::span<const Scored> without_forbidden(std::span<const Scored> best);
    Status constrain();
    Result<int32_t> choose();

    bool has(std::string_view step) const {
        return std::ranges::find(chain, step, &SamplerStep::name) != chain.end();
    }
    bool cold() const { return options.temperature <= 0.0f; }
};

Status Sampler::State::prepare(SamplerVocabulary vocabulary) {
    const bool by_chain = options.mirostat == 0;
    chain = by_chain ? RL_TRY(parse_chain(options.samplers)) : std::vector{&sampler_step(kTemperature)};
    std::erase_if(chain, [&](const SamplerStep* step) { return !step->active(options); });

    std::map<int32_t, double> sums;
    for (const auto& [id, value] : options.logit_bias) sums[id] += double(value);
    bias.assign(sums.begin(), sums.end());
    takes_argmax = cold() && std::ranges::all_of(chain, &SamplerStep::keeps_best);
    plain_argmax = takes_argmax && bias.empty();
    only_forbids =
        std::all_of(bias.begin(), bias.end(), [](const auto& b) { return b.second == -kInfinity; });
    const int32_t context = vocabulary.context;
    constraint = std::move(vocabulary.constraint);
    if (constraint && constraint->table().size() != size_t(vocabulary_size))
        return error("the grammar was prepared for a vocabulary of {}, this one has {}",
                     constraint->table().size(), vocabulary_size);
    try {
        RL_TRY(candidates.reserve(size_t(vocabulary_size)));
        if (has("penalties")) {
            if (options.repeat_last_n < 0 && context <= 0)
                return error("repeat_last_n is -1 without a context");
            counts = TokenCounts(window_tokens(options.repeat_last_n, context), size_t(vocabulary_size));
        }
        if (has("dry")) {
            if (options.dry_penalty_last_n < 0 && context <= 0)
                return error("dry_penalty_last_n is -1 without a context");
            std::sort(vocabulary.dry_breakers.begin(), vocabulary.dry_breakers.end());
            dry = DryHistory(window_tokens(options.dry_penalty_last_n, context),
                             std::move(vocabulary.dry_breakers));
        }
    } catch (const std::bad_alloc&) {
        return error("not enough memory for the sampler's history of {} tokens", std::max(context, 0));
    }
    restart();
    return {};
}

void Sampler::State::restart() {
    counts.clear();
    dry.clear();
    // Two generators, so that turning xtc on does not shift the final draws. Not from the same seed: each
    // takes one number per token, and the draw would depend on whether xtc acted.
    draw_random.seed(seed);
    xtc_random.seed(seed ^ 0x9E3779B9u);
    mirostat.mu = 2 * mirostat.tau;
    last = {-1, 1.0};
    constrained = {};
    if (constraint) constraint->restart();
}

void Sampler::State::add_bias() {
    const std::span<float> logits = candidates.editable();
    constexpr double kMost = std::numeric_limits<float>::max();
    for (const auto& [id, value] : bias) {
        float& logit = logits[size_t(id)];
        const double sum = double(logit) + value;
        logit = sum < -kMost ? -std::numeric_limits<float>::infinity() : float(std::min(sum, kMost));
    }
}

// The best without those that the bias forbids, which does nothing else.
std::span<const Scored> Sampler::State::without_forbidden(std::span<const Scored> best) {
    if (bias.empty()) return best;
    const auto forbidden = [this](const Scored& one) {
        return std::any_of(bias.begin(), bias.end(), [&](const auto& b) { return b.first == one.id; });
    };
    allowed.clear();
    std::remove_copy_if(best.begin(), best.end(), std::back_inserter(allowed), forbidden);
    return allowed;
}

// Forbids the tokens that the constraint does not allow. Where the best of the unmodified logits is chosen,
// it is enough that this one is allowed.
Status Sampler::State::constrain() {
    RL_TRY(constrained);
    if (plain_argmax && RL_TRY(constraint->allows(candidates.best()))) return {};
    candidates.mask(RL_TRY(constraint->allowed()));
    return {};
}

Result<int32_t> Sampler::State::choose() {
    const SamplerState state{options, candidates, counts, dry, xtc_random};
    for (const SamplerStep* step : chain) step->apply(state);
    if (cold()) {
        last = {candidates.best(), 1.0};
    } else if (!candidates.list().empty()) {
        // A single candidate costs no random number.
        const double u = candidates.list().size() > 1 ? uniform(draw_random) : 0.0;
        last = options.mirostat != 0 ? mirostat.choose(candidates, size_t(vocabulary_size), u)
                                     : candidates.draw(u);
    } else {
        last = {-1, 1.0};
    }
    if (last.id >= 0) return last.id;
    if (constraint) return error("no token of the vocabulary goes on with the text as the grammar wants it");
    return error("no token may be chosen: all {} logits are -inf", vocabulary_size);
}

Sampler::Sampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

Result<Sampler> Sampler::create(const SamplerOptions& options, SamplerVocabulary vocabulary) {
    RL_TRY(check_options(options));
    if (vocabulary.size <= 0)
        return error("a sampler needs a vocabulary, this one has {} tokens", vocabulary.size);
    RL_TRY(check_bias(options, vocabulary.size));
    const uint32_t seed = RL_TRY(choose_seed(options.seed));
    auto state = std::make_unique<State>(options, vocabulary.size, seed);
    RL_TRY(state->prepare(std::move(vocabulary)));
    return Sampler(std::move(state));
}

uint32_t Sampler::seed() const {
    return state_->seed;
}

bool Sampler::greedy() const {
    return state_->plain_argmax;
}

Result<int32_t> Sampler::sample(std::span<const float> logits) {
    if (logits.size() != size_t(state_->vocabulary_size))
        return error("the sampler was made for a vocabulary of {} and got {} logits", state_->vocabulary_size,
                     logits.size());
    RL_TRY(state_->candidates.begin(logits));
    if (state_->constraint) RL_TRY(state_->constrain());
    if (!state_->bias.empty()) state_->add_bias();
    return state_->choose();
}

uint32_t Sampler::best_wanted() const {
    const State& state = *state_;
    if (state.constraint || !state.only_forbids) return 0;
    // The best that are not forbidden are among so many more.
    const uint32_t forbidden = uint32_t(state.bias.size());
    if (state.takes_argmax) return 1 + forbidden;
    const bool top_k_first = !state.chain.empty() && state.chain.front()->name == kTopK;
    return top_k_first ? uint32_t(std::max(state.options.top_k, state.options.min_keep)) + forbidden : 0;
}

Result<int32_t> Sampler::sample(std::span<const Scored> best) {
    RL_CHECK(
        best_wanted() > 0 && best.size() >= std::min<size_t>(best_wanted(), size_t(state_->vocabulary_size)),
        "{} best logits of the {} that the sampler needs", best.size(), best_wanted());
    RL_TRY(state_->candidates.begin(state_->without_forbidden(best)));
    return state_->choose();
}

void Sampler::accept(int32_t token) {
    const bool known = token >= 0 && token < state_->vocabulary_size;
    state_->counts.push(known ? token : -1);
    state_->dry.push(known ? token : -1);
    if (state_->options.mirostat != 0 && token == state_->last.id)
        state_->mirostat.learn(state_->last.probability);
    if (known && token == state_->last.id) advance(token);
    state_->last.id = -1;
}

void Sampler::advance(int32_t token) {
    if (state_->constraint && state_->constrained) state_->constrained = state_->constraint->accept(token);
}

Result<int32_t> Sampler::in_time(int32_t token, uint64_t left) {
    if (!state_->constraint || !state_->constrained) return token;
    return state_->constraint->in_time(token, left);
}

bool Sampler::finished() const {
    return state_->constraint && state_->constraint->finished();
}

void Sampler::reset() {
    state_->restart();
}

}  // namespace redline
