#include "measure/agreement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace redline {

namespace {

constexpr const char* kProse =
    "The lighthouse stood at the end of a long spit of sand, and whoever wanted to reach it had to know the "
    "tides. Twice a day the path was under water; twice a day it lay open, wet and shining, between two "
    "stretches of grey sea. In the winter of that year the keeper, an old man with a patient voice, wrote "
    "down every ship that passed: its name, its flag, the hour, and how the wind stood. \"One day,\" he "
    "said, "
    "\"somebody will ask which ship it was, and then the book will answer.\" Nobody asked for eleven years. "
    "Then a letter came from a town far inland, with a question that only the book could settle.";
constexpr const char* kCode =
    "static int find(const int* values, int count, int wanted) {\n"
    "    for (int i = 0; i < count; ++i) {\n"
    "        if (values[i] == wanted) return i;  // the first of them\n"
    "    }\n    return -1;\n}\n";
constexpr const char* kMixed =
    "1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89; 3.14159 * 2 = 6.28318. Grüße aus Köln, où ça? Привет, "
    "мир! 你好,世界。 {\"id\": 7, \"ok\": true}";

constexpr size_t kLongest = 160, kOneByOne = 12;

struct LogSum {
    double top = 0.0, log_sum = 0.0;
    explicit LogSum(std::span<const float> row) {
        top = double(*std::max_element(row.begin(), row.end()));
        double sum = 0.0;
        for (const float x : row) sum += std::exp(double(x) - top);
        log_sum = top + std::log(sum);
    }
};

double divergence(std::span<const float> reference, std::span<const float> device) {
    const double a = LogSum(reference).log_sum, b = LogSum(device).log_sum;
    double sum = 0.0;
    for (size_t i = 0; i < reference.size(); ++i) {
        const double p = double(reference[i]) - a;
        sum += std::exp(p) * (p - (double(device[i]) - b));
    }
    return std::isnan(sum) ? INFINITY : std::max(sum, 0.0);
}

double spread(std::span<const float> row) {
    double sum = 0.0, squares = 0.0;
    for (const float x : row) sum += double(x);
    const double mean = sum / double(row.size());
    for (const float x : row) squares += (double(x) - mean) * (double(x) - mean);
    return std::sqrt(squares / double(row.size()));
}

// The root mean square of the differences, divided by `scale`; infinite when a value is not a number.
double rms_error(std::span<const float> reference, std::span<const float> device, double scale) {
    double off = 0.0;
    for (size_t i = 0; i < reference.size(); ++i)
        off += (double(device[i]) - double(reference[i])) * (double(device[i]) - double(reference[i]));
    const double error = std::sqrt(off / double(reference.size()));
    if (error == 0.0) return 0.0;
    return std::isfinite(error) && scale > 0.0 ? error / scale : INFINITY;
}

}  // namespace

std::vector<CheckText> check_texts(const Model& model) {
    const size_t most = size_t(std::min<uint64_t>(kLongest, model.config().train_context));
    std::vector<CheckText> texts;
    for (const char* written : {kProse, kCode, kMixed}) {
        CheckText text;
        text.tokens = model.tokenizer().encode(written, {true, false});
        const auto unusable = [&](Token token) { return uint32_t(token) >= model.usable_vocab(); };
        std::erase_if(text.tokens, unusable);
        text.tokens.resize(std::min(text.tokens.size(), most));
        text.chunk = text.tokens.size() - std::min(kOneByOne, text.tokens.size() / 2);
        if (!text.tokens.empty()) texts.push_back(std::move(text));
    }
    return texts;
}

SessionOptions check_session(std::span<const CheckText> texts, SessionOptions options) {
    size_t chunk = 1, tokens = 1;
    for (const CheckText& text : texts) {
        chunk = std::max(chunk, text.chunk);
        tokens = std::max(tokens, text.tokens.size());
    }
    options.context = tokens;
    options.batch = options.outputs = uint32_t(chunk);
    return options;
}

Result<std::vector<std::vector<float>>> check_logits_of(const Model& model, std::span<const CheckText> texts,
                                                        const SessionOptions& options,
                                                        const std::atomic<bool>* cancel) {
    Session session = RL_TRY(Session::create(model, options));
    const size_t width = model.config().vocab, usable = model.usable_vocab();
    std::vector<std::vector<float>> all;
    for (const CheckText& text : texts) {
        std::vector<float>& logits = all.emplace_back();
        const auto keep = [&](size_t, std::span<const float> rows) {
            for (; !rows.empty(); rows = rows.subspan(width))
                logits.insert(logits.end(), rows.begin(), rows.begin() + ptrdiff_t(usable));
        };
        session.rewind(0);
        const std::span<const Token> tokens = text.tokens;
        RL_TRY(session.feed_all(tokens.first(text.chunk), keep, cancel));
        for (size_t i = text.chunk; i < tokens.size(); ++i)
            RL_TRY(session.feed_all(tokens.subspan(i, 1), keep, cancel));
    }
    return all;
}

// The rounding of a cached element, as a share of the largest of its block.
static double stored_rounding(CacheType type) {
    switch (type) {
        case CacheType::f32:
            return 0x1p-23;
        case CacheType::f16:
            return 0x1p-11;
        case CacheType::bf16:
            return 0x1p-8;
        case CacheType::q8_0:
            return 1.0 / 254;
        case CacheType::q5_1:
        case CacheType::q5_0:
            return 1.0 / 31;
        case CacheType::q4_1:
        case CacheType::q4_0:
        case CacheType::iq4_nl:
            return 1.0 / 15;
    }
    return 1.0;
}

Result<std::vector<double>> roundings(const Model& model, const SessionOptions& options) {
    const CacheSizing sizing{options.context, options.batch, options.cache};
    const Plan plan = RL_TRY(model.plan(options.batch, options.outputs, sizing));
    const BoundPlan bound = RL_TRY(lower(plan, model.backend(), options.fuse));
    std::vector<double> all;
    for (size_t i = 0; i < plan.caches.size(); ++i)
        for (const CacheType type : {options.cache.keys, options.cache.values})
            all.push_back(stored_rounding(type));
    for (const auto& kernel : bound.kernels) {
        const Precision p = loosest(kernel->precision(options.batch), kernel->precision(1));
        all.push_back(0x1p-17);  // rounding of f32 sums of some hundred terms
        for (const Rounding& r : {p.weights, p.activations, p.keys, p.values})
            if (const double sum = r.unit + r.block; sum > 0.0) all.push_back(sum);
    }
    return all;
}

double rounding_bound(std::span<const double> one, std::span<const double> other) {
    double sum = 0.0, squares = 0.0;
    for (const std::span<const double> all : {one, other})
        for (const double rounding : all) {
            sum += rounding;
            squares += rounding * rounding;
        }
    return std::min(sum, 4 * std::sqrt(squares));
}

Agreement compare_logits(std::span<const std::vector<float>> reference,
                         std::span<const std::vector<float>> device, size_t vocab, double bound,
                         bool has_experts) {
    Agreement out;
    out.bound = bound;
    std::vector<double> errors;
    double sum_kl = 0.0;
    for (size_t t = 0; t < reference.size(); ++t)
        for (size_t at = 0; at < reference[t].size(); at += vocab) {
            const auto want = std::span(reference[t]).subspan(at, vocab);
            const auto got = std::span(device[t]).subspan(at, vocab);
            const double scale = spread(want), error = rms_error(want, got, scale);
            const size_t best = size_t(std::max_element(want.begin(), want.end()) - want.begin());
            const size_t other = size_t(std::max_element(got.begin(), got.end()) - got.begin());
            // Either of the two logits may be off by the bound.
            const bool near = double(want[best]) - double(want[other]) <= 2 * bound * scale;
            out.same += best == other;
            out.near_ties += best != other && near;
            const double kl = divergence(want, got);
            sum_kl += kl;
            out.worst_kl = std::max(out.worst_kl, kl);
            if (errors.empty() || error > out.worst_error) {
                out.worst_error = error;
                out.worst_text = t;
                out.worst_token = at / vocab;
            }
            errors.push_back(error);
        }
    out.tokens = errors.size();
    if (errors.empty()) return out;
    out.mean_kl = sum_kl / double(errors.size());
    std::nth_element(errors.begin(), errors.begin() + ptrdiff_t(errors.size() / 2), errors.end());
    out.median_error = errors[errors.size() / 2];
    const uint64_t other = out.tokens - out.same - out.near_ties;
    out.agrees = has_experts ? out.median_error <= bound && other <= out.tokens / 10
                             : out.worst_error <= bound && other == 0;
    return out;
}

namespace {

// True for slots that an op fills whole, and not for the ids of a Route, which have no distance.
bool comparable(const Op& op, size_t write) {
    if (std::holds_alternative<Route>(op)) return write > 0;
    return !product_by(By::head, op) && !std::holds_alternative<CopyParts>(op);
}

}  // namespace

Result<std::vector<TracedWrite>> trace_token(const Model& model, const CheckText& text, size_t token,
                                             const SessionOptions& options) {
    const std::span<const Token> tokens = text.tokens;
    const bool alone = token >= text.chunk;
    const std::span<const Token> step = alone ? tokens.subspan(token, 1) : tokens.first(text.chunk);
    const size_t row = alone ? 0 : token;
    // The plan as the engine makes it.
    const uint32_t most = step.size() == 1 ? 1 : options.batch;
    const CacheSizing sizing{options.context, options.batch, options.cache};
    const Plan recorded = RL_TRY(model.plan(most, std::min(most, options.outputs), sizing));
    const BoundPlan bound = RL_TRY(lower(recorded, model.backend(), options.fuse));
    Session session = RL_TRY(Session::create(model, options));
    if (alone) RL_TRY(session.feed(tokens.first(text.chunk)));
    for (size_t i = text.chunk; i < token; ++i) RL_TRY(session.feed(tokens.subspan(i, 1)));
    std::vector<TracedWrite> out;
    RL_TRY(session.feed_traced(step, [&](const TraceStep& traced) {
        const auto slots = access(traced.step->op).writes;
        for (size_t w = 0; w < std::min(slots.size(), traced.written.size()); ++w) {
            const Slot slot = slots[w];
            const std::span<const float> all = traced.written[w];
            const bool shared = size_t(slot.index) < recorded.slots.size();
            if (!shared || !comparable(traced.step->op, w)) continue;
            const size_t width = recorded.slot(slot).width, rows = all.size() / width;
            // The output has a row for the last token alone.
            if (rows != step.size() && row + 1 != step.size()) continue;
            const auto values = all.subspan((rows == step.size() ? row : rows - 1) * width, width);
            out.push_back({traced.step->layer,
                           slot.index,
                           op_text(traced.step->op, bound.plan),
                           op_tensors(traced.step->op, bound.plan),
                           {values.begin(), values.end()}});
        }
    }));
    return out;
}

namespace {

// The writes to a slot within a layer, in order.
std::vector<const TracedWrite*> writes_to(std::span<const TracedWrite> trace, uint32_t layer, int32_t slot) {
    std::vector<const TracedWrite*> all;
    for (const TracedWrite& write : trace)
        if (write.layer == layer && write.slot == slot) all.push_back(&write);
    return all;
}

// The reference's write that corresponds to `got`. Where fusion makes a layer's writes to a slot more or
// fewer, only writes with the same tensors correspond: rope may be fused into attention, a bias may be added
// later.
const TracedWrite* counterpart(std::span<const TracedWrite> reference, std::span<const TracedWrite> device,
                               const TracedWrite& got) {
    const auto want = writes_to(reference, got.layer, got.slot),
               all_got = writes_to(device, got.layer, got.slot);
    if (want.size() == all_got.size())
        return want[size_t(std::find(all_got.begin(), all_got.end(), &got) - all_got.begin())];
    const auto same = std::find_if(want.begin(), want.end(),
                                   [&](const TracedWrite* write) { return write->tensors == got.tensors; });
    return same == want.end() || got.tensors.empty() ? nullptr : *same;
}

}  // namespace

std::optional<Parting> first_parting(std::span<const TracedWrite> reference,
                                     std::span<const TracedWrite> device, double bound) {
    std::optional<Parting> worst;
    for (const TracedWrite& got : device) {
        const TracedWrite* const want = counterpart(reference, device, got);
        if (!want || want->row.size() != got.row.size()) continue;
        double squares = 0.0;
        for (const float x : want->row) squares += double(x) * double(x);
        const double error = rms_error(want->row, got.row, std::sqrt(squares / double(got.row.size())));
        if (!worst || error > worst->error)
            worst = Parting{got.layer, got.op, got.tensors, error, error > bound};
        if (error > bound) break;
    }
    return worst;
}

}  // namespace redline
