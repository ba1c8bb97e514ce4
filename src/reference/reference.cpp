#include "reference/reference_product.h"
#include "reference/reference_units.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace redline {

Expanded expand(const Plan& plan) {
    PlanBuilder out = PlanBuilder::like(plan);
    Expanded expanded;
    std::vector<Step> placed;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        std::vector<Step> pending = {plan.steps[i]};
        while (!pending.empty()) {
            const Step step = pending.back();
            pending.pop_back();
            const size_t before = out.plan().steps.size();
            if (!decompose(step.op, out)) {
                placed.push_back(step);
                expanded.from.push_back(i);
                continue;
            }
            for (size_t part = out.plan().steps.size(); part > before; --part)
                pending.push_back(out.plan().steps[part - 1]);
        }
    }
    expanded.plan = out.plan();
    expanded.plan.steps = std::move(placed);
    return expanded;
}

std::vector<Precision> precisions(const BoundPlan& bound, const StepParams& params) {
    std::vector<Precision> all;
    for (size_t i = 0; i < bound.kernels.size(); ++i) {
        const std::vector<Slot> writes = access(bound.plan.steps[i].op).writes;
        const bool of_outputs = !writes.empty() && bound.plan.slot(writes[0]).of_outputs;
        all.push_back(bound.kernels[i]->precision(of_outputs ? params.outputs.size() : params.tokens.size()));
    }
    return all;
}

Reference::Reference(const Plan& plan, std::vector<std::vector<float>> weights)
    : weights_(std::move(weights)),
      keys_(plan.caches.size()),
      values_(plan.caches.size()),
      states_(plan.caches.size()) {
    Expanded expanded = expand(plan);
    plan_ = std::move(expanded.plan);
    from_ = std::move(expanded.from);
    slots_.resize(plan_.slots.size());
    // The caches have a row for every token of every sequence, even where a backend's ring or pages keep
    // fewer.
    for (size_t i = 0; i < plan.caches.size(); ++i) {
        const size_t rows = plan.sizing.sequences * plan.sizing.context;
        const size_t size = rows * plan.caches[i].kv_heads * plan.caches[i].head_dim;
        keys_[i].resize(size);
        values_[i].resize(size);
        states_[i].resize(plan.sizing.sequences * plan.caches[i].state_floats);
    }
}

void Reference::run(const StepParams& params, std::span<const Precision> precisions, bool attends) {
    attends_ = attends;
    const size_t steps = from_.empty() ? 0 : from_.back() + 1;
    for (size_t i = 0; i < steps; ++i) run_step(params, i, precisions.empty() ? Precision() : precisions[i]);
    attends_ = true;
}

void Reference::run_step(const StepParams& params, size_t step, const Precision& precision) {
    params_ = params;
    precision_ = precision;
    const auto [begin, end] = std::equal_range(from_.begin(), from_.end(), step);
    for (auto at = begin; at != end; ++at)
        std::visit([this](const auto& op) { eval(op); }, plan_.steps[size_t(at - from_.begin())].op);
    if (!random_) return;
    for (std::vector<Bounded>& slot : slots_)
        for (Bounded& x : slot) x.error = 0.0;
}

double Reference::nudge(double most) const {
    return random_ ? within(most, *random_) : 0.0;
}

void Reference::assign(Slot s, std::span<const float> values) {
    std::vector<Bounded>& out = slots_[size_t(s.index)];
    out.clear();
    for (const float v : values) out.push_back({v, 0.0, std::abs(v)});
}

size_t Reference::rows_of(Slot s) const {
    return plan_.slot(s).of_outputs ? params_.outputs.size() : params_.tokens.size();
}

std::vector<Bounded>& Reference::target(Slot s) {
    std::vector<Bounded>& out = slots_[size_t(s.index)];
    out.resize(rows_of(s) * width(s));
    return out;
}

void Reference::eval(const Embed& op) {
    const auto& table = weights_[size_t(op.table.index)];
    const size_t cols = width(op.y);
    auto& y = target(op.y);
    for (size_t t = 0; t < params_.tokens.size(); ++t)
        for (size_t i = 0; i < cols; ++i) {
            const double v = double(table[size_t(params_.tokens[t]) * cols + i]) * op.scale;
            y[t * cols + i] = {v, op.scale == 1.0f ? 0.0 : std::abs(v) * kUnit, std::abs(v)};
        }
}

void Reference::eval(const Input& op) {
    auto& y = target(op.y);
    for (size_t i = 0; i < y.size(); ++i) y[i] = {params_.input[i], 0.0};
}

void Reference::eval(const Lookup& op) {
    auto& y = target(op.y);
    for (size_t i = 0; i < y.size(); ++i) y[i] = {params_.lookups[i], 0.0, std::abs(params_.lookups[i])};
}

void Reference::eval(const RmsNorm& op) {
    const std::vector<Bounded> x = slots_[size_t(op.x.index)];
    const std::vector<float>* gain = op.norm.gain ? &weights_[size_t(op.norm.gain.index)] : nullptr;
    auto& y = target(op.y);
    for (size_t begin = 0; begin < x.size(); begin += op.width) {
        double squares = 0.0, spread = 0.0;
        for (size_t i = 0; i < op.width; ++i) {
            squares += x[begin + i].value * x[begin + i].value;
            spread +=
                std::abs(x[begin + i].value) * x[begin + i].error + 0.5 * std::pow(x[begin + i].error, 2);
        }
        const double scale = 1.0 / std::sqrt(squares / op.width + op.norm.eps);
        // d(1/sqrt(m)) = 0.5 m^-1.5 dm with dm = 2 spread / n, in addition to the sum's rounding.
        const double scale_error = scale * scale * scale * spread / op.width + scale * sum_unit(op.width);
        for (size_t i = 0; i < op.width; ++i) {
            const double g = gain ? double((*gain)[i]) : 1.0;
            const Bounded& in = x[begin + i];
            const double v = in.value * scale * g;
            y[begin + i] = {v,
                            std::abs(g) * (scale * in.error + (std::abs(in.value) + in.error) * scale_error) +
                                4 * kUnit * std::abs(v) + kTiny,
                            in.magnitude * scale * std::abs(g)};
        }
    }
}

static Bounded mean_of(std::span<const Bounded> x) {
    const double n = double(x.size());
    Bounded mean;
    for (const Bounded& one : x) {
        mean.value += one.value / n;
        mean.error += (one.error + sum_unit(x.size()) * (std::abs(one.value) + one.error)) / n;
        mean.magnitude += one.magnitude / n;
    }
    return mean;
}

void Reference::eval(const Center& op) {
    const std::vector<Bounded> x = slots_[size_t(op.x.index)];
    auto& y = target(op.y);
    for (size_t begin = 0; begin < x.size(); begin += op.width) {
        const Bounded mean = mean_of(std::span(x).subspan(begin, op.width));
        for (size_t i = begin; i < begin + op.width; ++i) {
            const double v = x[i].value - mean.value, error = x[i].error + mean.error;
            y[i] = {v, error + kUnit * (std::abs(v) + error) + kTiny, x[i].magnitude + mean.magnitude};
        }
    }
}

void Reference::eval(const Hadamard& op) {
    const std::vector<Bounded> x = slots_[size_t(op.x.index)];
    auto& y = target(op.y);
    const double root = std::sqrt(double(op.width)), unit = sum_unit(op.width);
    for (size_t begin = 0; begin < x.size(); begin += op.width)
        for (uint32_t i = 0; i < op.width; ++i) {
            Bounded sum;
            for (uint32_t j = 0; j < op.width; ++j) {
                const Bounded& one = x[begin + j];
                sum.value += (std::popcount(i & j) % 2 == 0 ? one.value : -one.value) / root;
                sum.error += (one.error + unit * size_of(one)) / root;
                sum.magnitude += one.magnitude / root;
            }
            y[begin + i] = sum;
        }
}

// A standard deviation is a seminorm: its error is at most the standard deviation of the elements' errors.
void Reference::eval(const Sparsify& op) {
    auto& y = slots_[size_t(op.y.index)];
    const size_t n = width(op.y);
    for (size_t begin = 0; begin < y.size(); begin += n) {
        const std::span<Bounded> row = std::span(y).subspan(begin, n);
        const Bounded mean = mean_of(row);
        double squares = 0.0, off = 0.0;
        for (const Bounded& x : row) {
            const double v = x.value - mean.value, error = x.error + mean.error;
            squares += v * v;
            off += std::pow(error + kUnit * (std::abs(v) + error), 2);
        }
        const double deviation = op.deviations * std::sqrt(squares / double(n));
        const double least = mean.value + deviation;
        const double error = mean.error + op.deviations * std::sqrt(off / double(n)) +
                             (sum_unit(n) + 8 * kUnit) * deviation + kUnit * std::abs(least) + kTiny;
        for (Bounded& x : row) {
            const double v = x.value - least, all = x.error + error;
            x = {std::max(v, 0.0), all + kUnit * (std::abs(v) + all),
                 x.magnitude + mean.magnitude + deviation};
        }
    }
}

void Reference::eval(const AddPosition& op) {
    auto& y = slots_[size_t(op.y.index)];
    const std::vector<float>& table = weights_[size_t(op.table.index)];
    const size_t n = width(op.y), last = table.size() / n - 1;
    for (size_t i = 0; i < y.size(); ++i) {
        const size_t position = std::min<size_t>(params_.rows[i / n].position, last);
        const double b = table[position * n + i % n];
        y[i] = plus(y[i], {b, 0.0, std::abs(b)});
    }
}

void Reference::eval(const Rope& op) {
    auto& x = slots_[size_t(op.x.index)];
    const RopeSpec& rope = plan_.ropes[op.rope];
    const size_t pairs = rope.inverse_frequency.size();
    for (size_t head = 0; head < x.size(); head += op.head_dim) {
        const size_t row = head / (size_t(op.heads) * op.head_dim), begin = head + op.first;
        for (size_t i = 0; i < pairs; ++i) {
            Bounded& a = x[begin + (rope.half_split ? i : 2 * i)];
            Bounded& b = x[begin + (rope.half_split ? i + pairs : 2 * i + 1)];
            const uint32_t position = params_.rows[row].position, rounded = position - position % rope.block;
            const double angle = double(rounded) * rope.inverse_frequency[i];
            const double longer = rope.magnitude_at(rounded);
            const double c = std::cos(angle) * longer, s = std::sin(angle) * longer;
            const double size = (std::abs(a.value) + std::abs(b.value)) * std::abs(longer);
            const Bounded turned_a{a.value * c - b.value * s,
                                   std::abs(c) * a.error + std::abs(s) * b.error + 4 * kUnit * size,
                                   std::abs(c) * a.magnitude + std::abs(s) * b.magnitude};
            const Bounded turned_b{a.value * s + b.value * c,
                                   std::abs(s) * a.error + std::abs(c) * b.error + 4 * kUnit * size,
                                   std::abs(s) * a.magnitude + std::abs(c) * b.magnitude};
            a = turned_a;
            b = turned_b;
        }
    }
}

// The most that an element of a block can be off. With the scale rounded to a half, levels move by less than
// 2^-10 of the largest; a scale below the normal halfs is off by 2^-25.
static double stored_error(std::span<const Bounded> block, double size, CacheType type) {
    double most = 0.0, low = INFINITY, high = -INFINITY;
    for (const Bounded& x : block) {
        most = std::max(most, size_of(x));
        low = std::min(low, x.value - x.error);
        high = std::max(high, x.value + x.error);
    }
    const auto levels = [&](double least) { return most * 0x1p-10 + least * 0x1p-25; };
    // The largest element is level -steps, and the highest level of the other sign is steps - 1.
    const auto around_zero = [&](double steps) {
        return std::max(most / steps / 2, size - most * (steps - 1) / steps) + levels(steps);
    };
    const auto from_low = [&](double steps) { return (high - low) / steps / 2 + levels(2 * steps); };
    switch (type) {
        case CacheType::f32:
            return 0.0;
        case CacheType::f16:
            return size * kToHalf.unit + 0x1p-25;
        case CacheType::bf16:
            return size * kToBfloat.unit;
        case CacheType::q8_0:
            return most * (1.0 / 254.0 + 0x1p-10);
        case CacheType::q5_1:
            return from_low(31.0);
        case CacheType::q5_0:
            return around_zero(16.0);
        case CacheType::q4_1:
            return from_low(15.0);
        case CacheType::q4_0:
            return around_zero(8.0);
        case CacheType::iq4_nl:
            // Levels are at most 24 apart; the highest one is 14 below the largest element.
            return most * (14.0 / 127.0) + levels(127.0);
    }
    return INFINITY;
}

Bounded Reference::cached(std::span<const Bounded> x, size_t i, CacheType type) const {
    const size_t begin = i / kCacheBlock * kCacheBlock;
    const auto block = x.subspan(begin, std::min<size_t>(kCacheBlock, x.size() - begin));
    const double off = stored_error(block, size_of(x[i]), type);
    double magnitude = x[i].magnitude;
    if (cache_code(type).is_quantized())
        for (const Bounded& other : block) magnitude = std::max(magnitude, size_of(other));
    return {x[i].value + nudge(off), random_ ? 0.0 : x[i].error + off, magnitude};
}

void Reference::eval(const KvStore& op) {
    const size_t row_size = size_t(op.shape.kv_heads) * op.shape.head_dim;
    const CacheTypes types = plan_.cache(op.cache).types;
    for (const bool is_key : {true, false}) {
        const auto& x = slots_[size_t((is_key ? op.k : op.v).index)];
        auto& cache = (is_key ? keys_ : values_)[size_t(op.cache.index)];
        for (size_t i = 0; i < x.size(); ++i)
            cache[(begin_of(i / row_size) + params_.rows[i / row_size].position) * row_size + i % row_size] =
                cached(x, i, is_key ? types.keys : types.values);
    }
}

void Reference::attend(const Attention& op, size_t row, uint32_t head, const std::vector<bool>& seen,
                       Bounded* out) const {
    const uint32_t d = op.shape.head_dim, kv_head = head / (op.shape.heads / op.shape.kv_heads),
                   rank = plan_.cache(op.cache).rank;
    const size_t row_size = size_t(op.shape.kv_heads) * d, position = params_.rows[row].position;
    const auto& all_values = (rank > 0 ? keys_ : values_)[size_t(op.cache.index)];
    Rows keys, values;
    for (size_t p = first_seen(position, op.window, op.chunks); p <= position; ++p) {
        if (!seen.empty() && !seen[p]) continue;
        const size_t at = (begin_of(row) + p) * row_size + size_t(kv_head) * d;
        keys.push_back(keys_[size_t(op.cache.index)].data() + at);
        values.push_back(all_values.data() + at);
    }
    const Bounded* q = slots_[size_t(op.q.index)].data() + (row * op.shape.heads + head) * d;
    attend_to(op, q, head, keys, values, rank > 0 ? rank : d, out);
}

void Reference::attend_to(const Attention& op, const Bounded* q, uint32_t head, const Rows& keys,
                          const Rows& values, uint32_t value_dim, Bounded* out) const {
    const uint32_t d = op.shape.head_dim;
    std::vector<double> scores, errors;
    for (const Bounded* const k : keys) {
        Rounded off_q(precision_.activations, q, d), off_k(precision_.keys, k, d);
        double sum = 0.0, error = 0.0, magnitude = 0.0;
        for (uint32_t i = 0; i < d; ++i) {
            const double q_off = q[i].error + off_q(i), k_off = k[i].error + off_k(i);
            sum += (q[i].value + nudge(q_off)) * (k[i].value + nudge(k_off));
            magnitude += size_of(q[i]) * size_of(k[i]);
            error += std::abs(q[i].value) * k_off + (std::abs(k[i].value) + k_off) * q_off;
        }
        double score = sum * op.scale;
        double off = (error + (sum_unit(d) + 4 * kUnit) * magnitude) * std::abs(op.scale);
        if (op.softcap > 0.0f) {
            off += softcap_error(score, op.softcap);
            score = op.softcap * std::tanh(score / op.softcap);
        }
        scores.push_back(score);
        errors.push_back(random_ ? 0.0 : off);
    }
    weigh(op, head, values, value_dim, scores, std::move(errors), out);
}

void Reference::weigh(const Attention& op, uint32_t head, const Rows& values, uint32_t d,
                      std::span<const double> scores, std::vector<double> errors, Bounded* out) const {
    double top = *std::max_element(scores.begin(), scores.end());
    const double sink = op.sinks ? double(weights_[size_t(op.sinks.index)][head]) : -INFINITY;
    top = std::max(top, sink);
    double total = std::exp(sink - top), largest_score = op.sinks ? std::abs(sink) : 0.0;
    for (const double s : scores) {
        total += std::exp(s - top);
        largest_score = std::max(largest_score, std::abs(s));
    }
    std::vector<double> p(scores.size());
    double least_total = std::exp(sink - top) / total, largest = 0.0;
    for (size_t j = 0; j < p.size(); ++j) {
        p[j] = std::exp(scores[j] - top) / total;
        // The error of an exponential, and of its argument: a score minus the largest.
        errors[j] += (16 + 4 * largest_score) * kUnit;
        least_total += p[j] * std::exp(-errors[j]);
        largest = std::max(largest, p[j] * std::exp(errors[j]));
    }
    std::fill(out, out + d, Bounded());
    for (size_t j = 0; j < p.size(); ++j) {
        const Bounded* v = values[j];
        Rounded off_v(precision_.values, v, d);
        const double most = p[j] * std::exp(errors[j]) / least_total;
        const double p_off = most * (sum_unit(p.size()) + precision_.weights.unit) +
                             largest / least_total * precision_.weights.block;
        const double p_rounded = p[j] + nudge(p_off);
        for (uint32_t i = 0; i < d; ++i) {
            const double v_off = v[i].error + off_v(i);
            out[i].value += p_rounded * (v[i].value + nudge(v_off));
            out[i].magnitude += p[j] * v[i].magnitude;
            out[i].error += most * v_off + p_off * (std::abs(v[i].value) + v_off);
        }
    }
    for (uint32_t i = 0; i < d; ++i) out[i].error += kTiny;
    if (random_) return;
    // Errors of scores change the total, too; a value that equals the output changes nothing. With factors
    // f[j] from e^-errors[j] to e^errors[j], sum p f v / sum p f - out is sum p (f - 1) (v - out) / sum p f.
    for (size_t j = 0; j < p.size(); ++j) {
        const double moved = p[j] * std::expm1(errors[j]) / least_total;
        for (uint32_t i = 0; i < d; ++i) out[i].error += moved * std::abs(values[j][i].value - out[i].value);
    }
}

void Reference::eval(const Attention& op) {
    if (op.keys.kind == Keys::entries) return attend_to_entries(op);
    auto& y = target(op.y);
    const size_t d = width(op.y) / op.shape.heads;
    for (size_t row = 0; attends_ && row < params_.tokens.size(); ++row) {
        const std::vector<bool> seen =
            op.keys.kind == Keys::blocks ? seen_blocks(op, row) : std::vector<bool>();
        for (uint32_t head = 0; head < op.shape.heads; ++head)
            attend(op, row, head, seen, y.data() + (row * op.shape.heads + head) * d);
    }
}

static std::vector<size_t> best_first(std::span<const double> scores) {
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    return order;
}

static void leave_best_groups(const ExpertGroups& groups, std::vector<double>& scores) {
    const size_t size = scores.size() / groups.count;
    std::vector<double> worth;
    for (size_t at = 0; at < scores.size(); at += size) {
        std::vector<double> group(scores.begin() + ptrdiff_t(at), scores.begin() + ptrdiff_t(at + size));
        std::sort(group.begin(), group.end(), std::greater<>());
        worth.push_back(group[0] + (groups.by_two ? group[1] : 0.0));
    }
    const std::vector<size_t> order = best_first(worth);
    for (size_t i = groups.used; i < order.size(); ++i)
        std::fill_n(scores.begin() + ptrdiff_t(order[i] * size), size, -INFINITY);
}

// Sparse mixer: the weights of the first of `order`, by their logits.
static void mix_sparsely(const std::vector<double>& logits, const std::vector<size_t>& order,
                         std::vector<double>& weights) {
    for (size_t k = 0; k < weights.size(); ++k) {
        const double best = logits[order[k]];
        double sum = 0.0;
        for (size_t i = k; i < order.size(); ++i) {
            const double z = logits[order[i]];
            if (!(best - z > kMixerReach * std::max(std::abs(z), best))) sum += std::exp(z - best);
        }
        weights[k] = 1.0 / sum;
    }
}

// The experts that the table lists for a token.
std::vector<size_t> Reference::experts_of(const Route& op, int32_t token) const {
    const float last = float(plan_.weight(op.w).tensor.shape.rows - 1);
    const float* const listed = weights_[size_t(op.table.index)].data() + size_t(token) * op.used;
    std::vector<size_t> experts;
    for (uint32_t k = 0; k < op.used; ++k) experts.push_back(size_t(std::clamp(listed[k], 0.0f, last)));
    return experts;
}

void Reference::eval(const Route& op) {
    const Shape& shape = plan_.weight(op.w).tensor.shape;
    const std::vector<float>& w = weights_[size_t(op.w.index)];
    const std::vector<Bounded>& x = slots_[size_t(op.x.index)];
    const std::vector<float>* bias = op.bias ? &weights_[size_t(op.bias.index)] : nullptr;
    auto& ids = target(op.ids);
    auto& scales = target(op.scales);
    for (size_t t = 0; t < params_.tokens.size(); ++t) {
        std::vector<double> logits(shape.rows), gates(shape.rows);
        double logit_error = 0.0;
        ProductRow row(precision_, x.data() + t * shape.cols, shape.cols, random());
        for (size_t e = 0; e < shape.rows; ++e) {
            const Bounded z = row.dot(w.data() + e * shape.cols);
            logits[e] = z.value + (bias && op.bias_of == BiasOf::logits ? double((*bias)[e]) : 0.0);
            logit_error = std::max(logit_error, z.error + kUnit * std::abs(logits[e]));
        }
        const double top = *std::max_element(logits.begin(), logits.end());
        double total = 0.0;
        for (const double z : logits) total += std::exp(z - top);
        for (size_t e = 0; e < shape.rows; ++e) {
            if (op.gating == Gating::softmax) gates[e] = std::exp(logits[e] - top) / total;
            if (op.gating == Gating::sigmoid) gates[e] = 1.0 / (1.0 + std::exp(-logits[e]));
            if (op.gating == Gating::softmax_of_selected || op.gating == Gating::sparse_mixer)
                gates[e] = logits[e];
            if (op.gating == Gating::sqrt_softplus)
                gates[e] = std::sqrt(std::max(logits[e], 0.0) + std::log1p(std::exp(-std::abs(logits[e]))));
        }
        const auto score = [&](size_t e) {
            if (op.chosen_by_logits()) return logits[e];
            return gates[e] + (bias && op.bias_of == BiasOf::choice ? double((*bias)[e]) : 0.0);
        };
        std::vector<double> scores(shape.rows);
        for (size_t e = 0; e < shape.rows; ++e) scores[e] = score(e);
        if (op.groups.count > 1) leave_best_groups(op.groups, scores);
        std::vector<size_t> order = op.table ? experts_of(op, params_.tokens[t]) : best_first(scores);
        if (routed_ == chosen_.size())
            chosen_.push_back(order);
        else if (random_)
            order = chosen_[routed_];
        ++routed_;
        double sum = 0.0;
        std::vector<double> chosen(op.used);
        for (uint32_t k = 0; k < op.used; ++k) chosen[k] = gates[order[k]];
        if (op.gating == Gating::softmax_of_selected) {
            double selected = 0.0;
            for (const double z : chosen) selected += std::exp(z - chosen[0]);
            const double first = chosen[0];
            for (double& z : chosen) z = std::exp(z - first) / selected;
        }
        if (op.gating == Gating::sparse_mixer) mix_sparsely(gates, order, chosen);
        for (const double p : chosen) sum += p;
        const double divisor = op.normalise ? std::max(sum, 6.103515625e-5) : 1.0;
        // Devices may flush numbers below 2^-126 to zero, under the root, too.
        const double lost =
            op.gating == Gating::sqrt_softplus ? 0x1p-63 * std::abs(op.scale) / divisor : kTiny;
        for (uint32_t k = 0; k < op.used; ++k) {
            const double share = chosen[k] / divisor;
            const double scale = std::abs(share * op.scale);
            ids[t * op.used + k] = {double(order[k]), 0.0, double(order[k])};
            // A share is at most e^logit over such a sum: numerator and sum change by e^error at most.
            scales[t * op.used + k] = {share * op.scale,
                                       scale * (std::expm1(2.0 * logit_error) + 32 * kUnit) + lost, scale};
        }
    }
}

void Reference::eval(const AddExpertBias& op) {
    const std::vector<float>& bias = weights_[size_t(op.bias.index)];
    const auto& ids = slots_[size_t(op.ids.index)];
    auto& y = slots_[size_t(op.y.index)];
    const size_t n = width(op.y) / (op.scales ? 1 : op.used);
    const size_t terms = op.scales ? op.used : 1;  // the number added to each element
    for (size_t at = 0; at < params_.tokens.size() * op.used / terms * n; ++at) {
        Bounded& to = y[at];
        double size = std::abs(to.value);  // of all terms: in any order no partial sum is larger
        for (size_t entry = at / n * terms; entry < (at / n + 1) * terms; ++entry) {
            const double one = bias[size_t(ids[entry].value) * n + at % n];
            const Bounded s = op.scales ? slots_[size_t(op.scales.index)][entry] : Bounded{1.0, 0.0, 1.0};
            const double rounded = op.scales ? kUnit * std::abs(s.value) : 0.0;
            size += std::abs(one) * (std::abs(s.value) + s.error);
            const double more = std::abs(one) * (s.error + rounded);
            to = {to.value + one * s.value, to.error + more, to.magnitude + std::abs(one * s.value),
                  to.spread < 0.0 ? -1.0 : to.spread + more};
        }
        const double summed = double(terms) * kUnit * (size + to.error);
        to.error += summed;
        if (to.spread >= 0.0) to.spread += summed;
    }
}

void Reference::eval(const SelectRows& op) {
    const std::vector<Bounded> x = slots_[size_t(op.x.index)];
    auto& y = target(op.y);
    for (size_t i = 0; i < params_.outputs.size(); ++i)
        std::copy_n(x.begin() + int64_t(params_.outputs[i] * width(op.x)), width(op.x),
                    y.begin() + int64_t(i * width(op.x)));
}

}  // namespace redline
