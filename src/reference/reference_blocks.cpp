// The reference of streams, and of attention to chosen blocks.
#include "reference/reference.h"

#include "reference/reference_units.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace redline {

static Bounded scaled(const Bounded& x, double scale) {
    return product(x, {scale, 0.0, std::abs(scale)});
}

// The sum of terms that are rounded separately.
static Bounded sum_of(std::span<const Bounded> terms) {
    Bounded sum;
    double size = 0.0;
    for (const Bounded& term : terms) {
        sum.value += term.value;
        sum.error += term.error;
        sum.magnitude += term.magnitude;
        size += std::abs(term.value) + term.error;
    }
    sum.error += sum_unit(terms.size()) * size + kTiny;
    return sum;
}

void Reference::eval(const StreamProduct& op) {
    const std::vector<Bounded> x = slots_[size_t(op.x.index)];  // which y may be
    const std::vector<Bounded> none, &w = op.weights ? slots_[size_t(op.weights.index)] : none;
    const size_t streams = op.streams, n = op.width(plan_), weights = op.weights ? width(op.weights) : 0;
    auto& y = target(op.y);
    for (size_t at = 0; at < y.size(); ++at) {
        const size_t stream = at / n, row = stream / streams;
        std::vector<Bounded> terms;
        switch (op.kind) {
            case StreamKind::mix:
                for (size_t s = 0; s < streams; ++s)
                    terms.push_back(product(x[(stream * streams + s) * n + at % n],
                                            w[stream * weights + (weights == streams ? s : s * n + at % n)]));
                y[at] = scaled(sum_of(terms), op.scale);
                break;
            case StreamKind::add: {
                if (stream % streams < op.first) break;
                Bounded weight{op.offset, 0.0, std::abs(op.offset)};
                if (op.weights) weight = plus(w[stream], weight);
                const Bounded term = product(scaled(weight, op.scale), x[row * n + at % n]);
                y[at] = op.replaces ? term : plus(y[at], term);
                break;
            }
            case StreamKind::dot:
                for (size_t i = at * n; i < (at + 1) * n; ++i) terms.push_back(product(x[i], w[i]));
                y[at] = scaled(sum_of(terms), op.scale);
                break;
            case StreamKind::turn:
                terms.push_back(x[at]);
                for (size_t s = 0; s < streams; ++s)
                    terms.push_back(product(x[(row * streams + s) * n + at % n], w[stream * streams + s]));
                y[at] = sum_of(terms);
                break;
        }
    }
}

namespace {

// A square matrix of weights that is made doubly stochastic step by step, and how errors of each step change
// the result. Products of two errors are neglected, since errors are small.
class Balanced {
public:
    Balanced(size_t size, std::vector<double> weights, std::vector<double> errors, uint32_t rounds,
             double eps)
        : size_(size), eps_(eps), errors_(std::move(errors)), steps_{{std::move(weights), false, {}}} {
        for (uint32_t round = 0; round < rounds; ++round) {
            if (round > 0) divide(true);
            divide(false);
        }
    }
    double value(size_t at) const { return steps_.back().weights[at]; }
    // The error of one result, computed backwards: how much the rounding of each step, and the error of the
    // initial weights, change it.
    double error(size_t at) const {
        std::vector<double> moves(size_ * size_);
        moves[at] = 1.0;
        double sum = 0.0;
        const double unit = sum_unit(size_) + 8 * kUnit;
        for (size_t step = steps_.size() - 1; step > 0; --step) {
            for (size_t i = 0; i < moves.size(); ++i)
                sum += std::abs(moves[i] * steps_[step].weights[i]) * unit;
            moves = before(steps_[step], moves);
        }
        for (size_t i = 0; i < moves.size(); ++i) sum += std::abs(moves[i]) * errors_[i];
        return sum;
    }

private:
    struct Step {
        std::vector<double> weights;  // after the step
        bool rows = false;            // divided by the sums of rows; false: of columns
        std::vector<double> sums;
    };
    size_t line(size_t at, bool rows) const { return rows ? at / size_ : at % size_; }

    void divide(bool rows) {
        Step step{steps_.back().weights, rows, std::vector<double>(size_, eps_)};
        for (size_t i = 0; i < step.weights.size(); ++i) step.sums[line(i, rows)] += step.weights[i];
        for (size_t i = 0; i < step.weights.size(); ++i) step.weights[i] /= step.sums[line(i, rows)];
        steps_.push_back(std::move(step));
    }
    // The influence of each weight before the step on the result, given the influence of each weight behind
    // it.
    std::vector<double> before(const Step& step, const std::vector<double>& moves) const {
        std::vector<double> shared(size_), out(moves.size());
        for (size_t i = 0; i < moves.size(); ++i) shared[line(i, step.rows)] += moves[i] * step.weights[i];
        for (size_t i = 0; i < moves.size(); ++i) {
            const size_t here = line(i, step.rows);
            out[i] = (moves[i] - shared[here]) / step.sums[here];
        }
        return out;
    }

    size_t size_;
    double eps_;
    std::vector<double> errors_;
    std::vector<Step> steps_;
};

}  // namespace

void Reference::eval(const StreamWeights& op) {
    const std::vector<Bounded> x = slots_[size_t(op.x.index)];
    const std::vector<float>&scale = weights_[size_t(op.scale.index)],
          &base = weights_[size_t(op.base.index)];
    const size_t n = width(op.read), wide = width(op.x), rows = x.size() / wide;
    const auto z = [&](size_t row, size_t i) {
        const double factor = scale[std::min(i / n, scale.size() - 1)], added = base[i];
        return plus(scaled(x[row * wide + i], factor), {added, 0.0, std::abs(added)});
    };
    const auto raised = [&](const Bounded& v) { return plus(v, {op.eps, 0.0, op.eps}); };
    auto& read = target(op.read);
    for (size_t i = 0; i < rows * n; ++i) read[i] = raised(sigmoid(z(i / n, i % n)));
    if (!op.add) return;
    auto &add = target(op.add), &mix = target(op.mix);
    for (size_t i = 0; i < rows * n; ++i) add[i] = scaled(sigmoid(z(i / n, n + i % n)), 2.0);
    for (size_t row = 0; row < rows; ++row) {
        std::vector<double> weights, errors;
        for (size_t i = 0; i < n; ++i) {
            double total = 0.0, size = 0.0, off = 0.0;
            std::vector<Bounded> line;
            for (size_t j = 0; j < n; ++j) line.push_back(z(row, 2 * n + i * n + j));
            const double top = std::max_element(line.begin(), line.end(), [](auto& a, auto& b) {
                                   return a.value < b.value;
                               })->value;
            for (const Bounded& one : line) {
                total += std::exp(one.value - top);
                size = std::max(size, std::abs(one.value));
                off = std::max(off, one.error);
            }
            for (const Bounded& one : line) {
                const double p = std::exp(one.value - top) / total;
                weights.push_back(p + op.eps);
                // An exponential is a few units off, plus the rounding of its argument, which grows with its
                // size.
                errors.push_back(p * std::expm1(2.0 * off + (40 + 8 * size) * kUnit) + kUnit * (p + op.eps));
            }
        }
        const Balanced balanced(n, std::move(weights), std::move(errors), op.rounds, op.eps);
        for (size_t i = 0; i < n * n; ++i) {
            const double v = balanced.value(i);
            mix[row * n * n + i] = {v, balanced.error(i) + kTiny, v};
        }
    }
}

void Reference::eval(const StreamBlend& op) {
    const std::vector<Bounded>&x = slots_[size_t(op.x.index)], &from = slots_[size_t(op.from.index)];
    const std::vector<Bounded>&weights = slots_[size_t(op.weights.index)],
          &mix = slots_[size_t(op.mix.index)];
    auto& y = target(op.y);
    const size_t n = width(op.x), streams = op.streams;
    for (size_t at = 0; at < y.size(); ++at) {
        const size_t row = at / n / streams, j = at / n % streams, column = at % n;
        std::vector<Bounded> terms = {product(weights[row * streams + j], x[row * n + column])};
        for (size_t i = 0; i < streams; ++i)
            terms.push_back(
                product(mix[(row * streams + i) * streams + j], from[(row * streams + i) * n + column]));
        y[at] = sum_of(terms);
    }
}

void Reference::eval(const BlockMean& op) {
    const std::vector<Bounded>& x = slots_[size_t(op.x.index)];
    auto& y = target(op.y);
    const size_t n = width(op.x);
    for (size_t row = 0; row < params_.tokens.size(); ++row) {
        const std::span<Bounded> sum = state(op.state, row);
        const bool begins = params_.rows[row].position % op.ratio == 0;
        for (size_t i = 0; i < n; ++i) {
            sum[i] = begins ? x[row * n + i] : plus(sum[i], x[row * n + i]);
            y[row * n + i] = scaled(sum[i], 1.0 / op.ratio);
        }
    }
}

void Reference::eval(const BlockScores& op) {
    const size_t dims = plan_.cache(op.cache).head_dim, blocks = width(op.y);
    auto& y = target(op.y);
    for (size_t row = 0; row < params_.tokens.size(); ++row) {
        const size_t complete = (size_t(params_.rows[row].position) + 1) / op.ratio;
        for (size_t b = 0; b < blocks; ++b) {
            Bounded& out = y[row * blocks + b] = {};
            if (b >= complete) continue;
            const size_t token = begin_of(row) + (b + 1) * op.ratio - 1;
            const Bounded* key = keys_[size_t(op.cache.index)].data() + token * dims;
            std::vector<Bounded> heads;
            for (size_t h = 0; h < op.heads; ++h) {
                const Bounded* q = slots_[size_t(op.q.index)].data() + (row * op.heads + h) * dims;
                std::vector<Bounded> terms;
                for (size_t i = 0; i < dims; ++i) terms.push_back(product(q[i], key[i]));
                heads.push_back(sum_of(terms));
                heads.back().value = std::max(heads.back().value, 0.0);
                if (op.weights)
                    heads.back() =
                        product(heads.back(), slots_[size_t(op.weights.index)][row * op.heads + h]);
            }
            out = sum_of(heads);
        }
    }
}

void Reference::eval(const ChooseBlocks& op) {
    const std::vector<Bounded>& scores = slots_[size_t(op.scores.index)];
    const size_t blocks = width(op.scores), most = width(op.y);
    auto& y = target(op.y);
    std::fill(y.begin(), y.end(), Bounded{-1.0, 0.0, 1.0});
    for (size_t row = 0; row < params_.tokens.size(); ++row) {
        const size_t complete = std::min(blocks, (size_t(params_.rows[row].position) + 1) / op.ratio);
        std::vector<size_t> order(complete);
        std::iota(order.begin(), order.end(), size_t(0));
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
            return scores[row * blocks + a].value > scores[row * blocks + b].value;
        });
        order.resize(std::min(most, complete));
        std::sort(order.begin(), order.end());
        for (size_t i = 0; i < order.size(); ++i)
            y[row * most + i] = {double(order[i]), 0.0, double(order[i]) + 1.0};
    }
}

std::vector<bool> Reference::seen_blocks(const Attention& op, size_t row) const {
    const std::vector<Bounded>& chosen = slots_[size_t(op.keys.chosen.index)];
    const size_t most = width(op.keys.chosen), ratio = op.keys.ratio, position = params_.rows[row].position,
                 complete = (position + 1) / ratio;
    std::vector<bool> seen(position + 1);
    std::fill(seen.begin() + int64_t(complete * ratio), seen.end(), true);
    for (size_t i = row * most; i < (row + 1) * most; ++i)
        if (const double block = chosen[i].value; block >= 0.0)
            std::fill_n(seen.begin() + int64_t(size_t(block) * ratio), ratio, true);
    return seen;
}

namespace {

// A running mean of elements weighted by exponentials: three numbers of a state. The error of `top` is the
// relative error of the weights; the error of `sum` is that of the elements, and its magnitude is theirs.
struct Pool {
    Bounded &top, &total, &sum;

    bool empty() const { return total.value == 0.0; }
    void clear() const { top = total = sum = {}; }
    void copy(const Pool& other) const {
        top = other.top;
        total = other.total;
        sum = other.sum;
    }
    void add(const Bounded& exponent, const Bounded& x) const {
        const double before = top.value, now = empty() ? exponent.value : std::max(before, exponent.value);
        const double down = empty() ? 0.0 : std::exp(before - now), added = std::exp(exponent.value - now);
        const double others = empty() ? 0.0 : top.error + (8 + 4 * (now - before)) * kUnit;
        const double mine = exponent.error + (16 + 4 * (now - exponent.value)) * kUnit;
        top = {now, std::max(others, mine) + 4 * kUnit, 0.0};
        total.value = total.value * down + added;
        sum = {sum.value * down + added * x.value, sum.error * down + added * x.error,
               sum.magnitude * down + added * std::abs(x.value)};
    }
};

// The mean over several pools together.
Bounded mean_of(std::span<const Pool> pools) {
    double top = -INFINITY, total = 0.0, off = 0.0;
    for (const Pool& pool : pools)
        if (!pool.empty()) top = std::max(top, pool.top.value);
    Bounded sum;
    for (const Pool& pool : pools) {
        if (pool.empty()) continue;
        const double down = std::exp(pool.top.value - top);
        off = std::max(off, pool.top.error + (16 + 4 * (top - pool.top.value)) * kUnit);
        total += down * pool.total.value;
        sum.value += down * pool.sum.value;
        sum.error += down * pool.sum.error;
        sum.magnitude += down * pool.sum.magnitude;
    }
    const double v = sum.value / total, size = sum.magnitude / total + std::abs(v);
    return {v, (sum.error / total) * std::exp(2.0 * off) + (std::expm1(2.0 * off) + 8 * kUnit) * size + kTiny,
            sum.magnitude / total};
}

}  // namespace

void Reference::eval(const BlockPool& op) {
    const std::vector<Bounded>&x = slots_[size_t(op.x.index)], &gate = slots_[size_t(op.gate.index)];
    const std::vector<float>& bias = weights_[size_t(op.bias.index)];
    auto& y = target(op.y);
    const size_t n = width(op.y), wide = width(op.x);
    for (size_t row = 0; row < params_.tokens.size(); ++row) {
        const std::span<Bounded> all = state(op.state, row);
        const size_t place = params_.rows[row].position % op.ratio;
        for (size_t i = 0; i < n; ++i) {
            const auto pool = [&](size_t part) {
                Bounded* const first = all.data() + part * 3 * n + i;
                return Pool{first[0], first[n], first[2 * n]};
            };
            const auto add = [&](const Pool& to, size_t element) {
                const double added = bias[place * wide + element];
                to.add(plus(gate[row * wide + element], {added, 0.0, std::abs(added)}),
                       x[row * wide + element]);
            };
            if (!op.overlaps) {
                if (place == 0) pool(0).clear();
                add(pool(0), i);
                y[row * n + i] = mean_of(std::array{pool(0)});
                continue;
            }
            const Pool first = pool(0), before = pool(1), second = pool(2);
            if (place == 0) before.copy(first);
            if (place == 0) first.clear();
            if (place == 0) second.clear();
            add(first, i);
            add(second, n + i);
            y[row * n + i] = mean_of(std::array{before, second});
        }
    }
}

void Reference::attend_to_entries(const Attention& op) {
    const uint32_t d = op.shape.head_dim;
    const Slot chosen = op.keys.chosen;
    const Cache entries = op.keys.entries;
    auto& y = target(op.y);
    for (size_t row = 0; attends_ && row < params_.tokens.size(); ++row) {
        const size_t position = params_.rows[row].position;
        Rows keys;
        const auto see = [&](Cache cache, size_t token) {
            keys.push_back(keys_[size_t(cache.index)].data() + (begin_of(row) + token) * d);
        };
        for (size_t p = first_seen(position, op.window, false); p <= position; ++p) see(op.cache, p);
        const size_t ratio = entries ? plan_.cache(entries).ratio : 1,
                     complete = entries ? (position + 1) / ratio : 0;
        const size_t count = chosen ? std::min<size_t>(complete, width(chosen)) : complete;
        for (size_t i = 0; i < count; ++i) {
            const size_t block =
                chosen ? size_t(slots_[size_t(chosen.index)][row * width(chosen) + i].value) : i;
            see(entries, (block + 1) * ratio - 1);
        }
        for (uint32_t head = 0; head < op.shape.heads; ++head) {
            const size_t at = (row * op.shape.heads + head) * d;
            attend_to(op, slots_[size_t(op.q.index)].data() + at, head, keys, keys, d, y.data() + at);
        }
    }
}

}  // namespace redline
