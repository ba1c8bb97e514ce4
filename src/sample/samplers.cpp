// The samplers: a row for each parameter, a function and a row for each step of the chain. A new sampler is
// added here, and its parameter in parameters.h.
#include "sample/arithmetic.h"
#include "sample/chain.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace redline {

namespace {

using O = SamplerOptions;

constexpr double kAnyReal = std::numeric_limits<float>::max(), kTiny = std::numeric_limits<float>::min();
constexpr double kAnyWhole = std::numeric_limits<int32_t>::max();

constexpr Parameter kParameters[] = {
    {.name = "seed",
     .member = &O::seed,
     .least = -1,
     .most = double(kRandomSeed),
     .setting = "seed",
     .options = "-s --seed",
     .help = "random seed; -1: a new one each time",
     .brief_help = "random seed, for the same text again"},
    {.name = "temperature",
     .member = &O::temperature,
     .least = -kAnyReal,
     .most = kAnyReal,
     .meaning = " (0 or less: greedy)",
     .setting = "temp",
     .file_key = "temp",
     .options = "--temp --temperature",
     .help = "temperature; 0: always the likeliest token",
     .brief_help = "randomness; 0: the likeliest token"},
    {.name = "top_k",
     .member = &O::top_k,
     .least = -kAnyWhole,
     .most = kAnyWhole,
     .setting = "top-k",
     .file_key = "top_k",
     .options = "--top-k",
     .help = "keep the N likeliest; 0: all"},
    {.name = "top_p",
     .member = &O::top_p,
     .least = 0,
     .most = 1,
     .meaning = " (1 turns it off)",
     .setting = "top-p",
     .file_key = "top_p",
     .options = "--top-p",
     .help = "keep the likeliest with this much probability together; 1: all"},
    {.name = "min_p",
     .member = &O::min_p,
     .least = 0,
     .most = 1,
     .meaning = " (0 turns it off)",
     .setting = "min-p",
     .file_key = "min_p",
     .options = "--min-p",
     .help = "keep those of at least this share of the likeliest's probability; 0: all"},
    {.name = "typical_p",
     .member = &O::typical_p,
     .least = 0,
     .most = 1,
     .meaning = " (1 turns it off)",
     .setting = "typical-p",
     .options = "--typical-p --typical",
     .help = "keep the locally typical, up to this probability; 1: all"},
    {.name = "top_n_sigma",
     .member = &O::top_n_sigma,
     .least = -kAnyReal,
     .most = kAnyReal,
     .meaning = " (0 or less turns it off)",
     .setting = "top-n-sigma",
     .options = "--top-n-sigma --top-nsigma",
     .help = "keep those within N standard deviations of the best; -1: all"},
    {.name = "xtc_probability",
     .member = &O::xtc_probability,
     .least = 0,
     .most = 1,
     .meaning = " (0 turns it off)",
     .setting = "xtc-probability",
     .file_key = "xtc_probability",
     .options = "--xtc-probability",
     .help = "chance of dropping the likeliest; 0: never"},
    {.name = "xtc_threshold",
     .member = &O::xtc_threshold,
     .least = 0,
     .most = 1,
     .meaning = " (above 0.5 turns it off)",
     .setting = "xtc-threshold",
     .file_key = "xtc_threshold",
     .options = "--xtc-threshold",
     .help = "probability from which xtc drops; above 0.5: never"},
    {.name = "dynatemp_range",
     .member = &O::dynatemp_range,
     .least = 0,
     .most = kAnyReal,
     .meaning = " (0 turns it off)",
     .setting = "dynatemp-range",
     .options = "--dynatemp-range",
     .help = "temperature varies by this much, with the entropy; 0: off"},
    {.name = "dynatemp_exponent",
     .member = &O::dynatemp_exponent,
     .least = 0,
     .most = kAnyReal,
     .setting = "dynatemp-exp",
     .options = "--dynatemp-exp",
     .help = "exponent of that"},
    {.name = "mirostat",
     .member = &O::mirostat,
     .least = 0,
     .most = 2,
     .must_be = "0 (off), 1 or 2",
     .setting = "mirostat",
     .file_key = "mirostat",
     .options = "--mirostat",
     .help = "1 or 2: Mirostat in place of the truncations; 0: off"},
    {.name = "mirostat_eta",
     .member = &O::mirostat_eta,
     .least = 0,
     .most = kAnyReal,
     .setting = "mirostat-lr",
     .file_key = "mirostat_eta",
     .options = "--mirostat-lr",
     .help = "Mirostat's learning rate"},
    {.name = "mirostat_tau",
     .member = &O::mirostat_tau,
     .least = 0,
     .most = kAnyReal,
     .setting = "mirostat-ent",
     .file_key = "mirostat_tau",
     .options = "--mirostat-ent",
     .help = "Mirostat's target entropy, in bits"},
    {.name = "min_keep", .member = &O::min_keep, .least = 0, .most = kAnyWhole},
    {.name = "repeat_last_n",
     .member = &O::repeat_last_n,
     .least = -1,
     .most = kAnyWhole,
     .meaning = " (-1: the whole context, 0: off)",
     .setting = "repeat-last-n",
     .file_key = "penalty_last_n",
     .options = "--repeat-last-n",
     .help = "tokens that the penalties look back; -1: the context"},
    {.name = "repeat_penalty",
     .member = &O::repeat_penalty,
     .least = kTiny,
     .most = kAnyReal,
     .meaning = " (1 turns it off)",
     .setting = "repeat-penalty",
     .file_key = "penalty_repeat",
     .options = "--repeat-penalty",
     .help = "divide the logits of tokens seen by this; 1: off"},
    {.name = "presence_penalty",
     .member = &O::presence_penalty,
     .least = -kAnyReal,
     .most = kAnyReal,
     .meaning = " (0 turns it off)",
     .setting = "presence-penalty",
     .options = "--presence-penalty",
     .help = "subtract this from tokens seen"},
    {.name = "frequency_penalty",
     .member = &O::frequency_penalty,
     .least = -kAnyReal,
     .most = kAnyReal,
     .meaning = " (0 turns it off)",
     .setting = "frequency-penalty",
     .options = "--frequency-penalty",
     .help = "subtract this from tokens seen, each time"},
    {.name = "dry_multiplier",
     .member = &O::dry_multiplier,
     .least = 0,
     .most = kAnyReal,
     .meaning = " (0 turns it off)",
     .setting = "dry-multiplier",
     .options = "--dry-multiplier",
     .help = "strength of DRY, the penalty on repeated sequences; 0: off"},
    {.name = "dry_base",
     .member = &O::dry_base,
     .least = 0,
     .most = kAnyReal,
     .meaning = " (below 1 turns it off)",
     .setting = "dry-base",
     .options = "--dry-base",
     .help = "growth of that penalty with the length"},
    {.name = "dry_allowed_length",
     .member = &O::dry_allowed_length,
     .least = 0,
     .most = kAnyWhole,
     .setting = "dry-allowed-length",
     .options = "--dry-allowed-length",
     .help = "repetitions up to this length go free"},
    {.name = "dry_penalty_last_n",
     .member = &O::dry_penalty_last_n,
     .least = -1,
     .most = kAnyWhole,
     .meaning = " (-1: the whole context, 0: off)",
     .setting = "dry-penalty-last-n",
     .options = "--dry-penalty-last-n",
     .help = "tokens that DRY looks back; -1: the context"},
    {.name = "dry_sequence_breakers",
     .member = &O::dry_sequence_breakers,
     .least = 0,
     .most = 0,
     .setting = "dry-sequence-breaker",
     .options = "--dry-sequence-breaker",
     .value = "TEXT",
     .help =
         "text that ends a repetition, in place of the built-in ones; may be given again; \"none\": no such "
         "text (default: newline, colon, double quote, star)"},
    {.name = "logit_bias",
     .member = &O::logit_bias,
     .least = 0,
     .most = 0,
     .setting = "logit-bias",
     .options = "-l --logit-bias",
     .value = "ID(+|-)BIAS",
     .help = "make a token likelier or less likely; -inf forbids it"},
    {.name = "samplers",
     .member = &O::samplers,
     .least = 0,
     .most = 0,
     .setting = "samplers",
     .file_key = "sequence",
     .options = "--sampling-seq --sampler-seq --samplers",
     .value = "LIST",
     .help = "order of the samplers, by name or by letter"},
};

size_t least_kept(const SamplerState& s) {
    return size_t(s.options.min_keep);
}

void penalise(const SamplerState& s) {
    const double repeat = double(s.options.repeat_penalty);
    const double frequency = double(s.options.frequency_penalty);
    const double presence = double(s.options.presence_penalty);
    s.candidates.change(s.counts.distinct(), std::identity(), [&](int32_t id, double logit) {
        const int32_t count = s.counts.count(id);
        if (count == 0) return logit;
        return (logit <= 0 ? logit * repeat : logit / repeat) - (count * frequency + presence);
    });
}

void penalise_repetition(const SamplerState& s) {
    const std::span<const DryMatch> matches = s.dry.matches(s.options.dry_allowed_length);
    const double base = double(s.options.dry_base);
    // Beyond this power of the base the penalty would overflow a float.
    const double most = base > 1.000001 ? 88.7228391 / std::log(base) : std::numeric_limits<double>::max();
    s.candidates.change(matches, &DryMatch::token, [&](int32_t id, double logit) {
        const auto before = [](const DryMatch& m, int32_t token) { return m.token < token; };
        const auto match = std::lower_bound(matches.begin(), matches.end(), id, before);
        if (match == matches.end() || match->token != id) return logit;
        const double excess = match->length - s.options.dry_allowed_length;
        return logit - double(s.options.dry_multiplier) * std::pow(base, std::min(excess, most));
    });
}

void keep_top_n_sigma(const SamplerState& s) {
    s.candidates.keep_top_n_sigma(double(s.options.top_n_sigma), least_kept(s));
}

void keep_top_k(const SamplerState& s) {
    s.candidates.keep_top_k(std::max(size_t(s.options.top_k), least_kept(s)));
}

void keep_typical(const SamplerState& s) {
    s.candidates.keep_typical(double(s.options.typical_p), least_kept(s));
}

void keep_top_p(const SamplerState& s) {
    s.candidates.keep_top_p(double(s.options.top_p), least_kept(s));
}

void keep_min_p(const SamplerState& s) {
    s.candidates.keep_min_p(double(s.options.min_p), least_kept(s));
}

void drop_top_choices(const SamplerState& s) {
    if (uniform(s.xtc_random) < double(s.options.xtc_probability))
        s.candidates.drop_top_choices(double(s.options.xtc_threshold), least_kept(s));
}

void apply_temperature(const SamplerState& s) {
    double temperature = double(s.options.temperature);
    if (temperature <= 0.0) return s.candidates.keep_top_k(1);
    if (s.options.dynatemp_range > 0.0f && s.options.mirostat == 0) {
        const size_t count = s.candidates.list().size();
        if (count < 2) return;
        const double range = double(s.options.dynatemp_range);
        const double low = std::max(0.0, temperature - range);
        const double evenness = std::max(0.0, s.candidates.entropy() / std::log(double(count)));
        temperature =
            low + (temperature + range - low) * std::pow(evenness, double(s.options.dynatemp_exponent));
        if (temperature <= 0.0) return s.candidates.keep_top_k(1);
    }
    s.candidates.scale(temperature);
}

bool has_penalties(const O& o) {
    return o.repeat_last_n != 0 &&
           (o.repeat_penalty != 1.0f || o.frequency_penalty != 0.0f || o.presence_penalty != 0.0f);
}

bool has_dry(const O& o) {
    return o.dry_multiplier > 0.0f && o.dry_base >= 1.0f && o.dry_penalty_last_n != 0;
}

constexpr SamplerStep kSteps[] = {
    {"penalties", 'e', false, has_penalties, penalise},
    {"dry", 'd', false, has_dry, penalise_repetition},
    {"top_n_sigma", 's', true, [](const O& o) { return o.top_n_sigma > 0.0f; }, keep_top_n_sigma},
    {kTopK, 'k', true, [](const O& o) { return o.top_k > 0; }, keep_top_k},
    {"typ_p", 'y', false, [](const O& o) { return o.typical_p < 1.0f; }, keep_typical},
    {"top_p", 'p', true, [](const O& o) { return o.top_p < 1.0f; }, keep_top_p},
    {"min_p", 'm', true, [](const O& o) { return o.min_p > 0.0f; }, keep_min_p},
    {"xtc", 'x', false, [](const O& o) { return o.xtc_probability > 0.0f && o.xtc_threshold <= 0.5f; },
     drop_top_choices},
    {kTemperature, 't', true, [](const O& o) { return o.temperature != 1.0f || o.dynatemp_range > 0.0f; },
     apply_temperature},
};

}  // namespace

std::span<const Parameter> sampler_parameters() {
    return kParameters;
}

std::span<const SamplerStep> sampler_steps() {
    return kSteps;
}

}  // namespace redline
