// The reference of streams, and of attention to chosen blocks.
#include "reference.h"

#include "reference_units.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace redline {

static Bounded scaled(const Bounded& x, double scale) {
    return product(x, {scale, 0.0, std::abs(scale)});
}

// Of terms that are rounded apart.
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

void Reference::eval(const StreamMix& op) {
    const std::vector<Bounded> x = slots_[size_t(op.x.index)];
    const std::vector<Bounded>& w = slots_[size_t(op.weights.index)];
    const size_t n = width(op.y), weights = width(op.weights);
    auto& y = target(op.y);
    for (size_t at = 0; at < y.size(); ++at) {
        std::vector<Bounded> terms;
        for (size_t s = 0; s < op.streams; ++s) {
            const size_t weight = weights == op.streams ? s : s * n + at % n;
            terms.push_back(product(x[(at / n * op.streams + s) * n + at % n], w[at / n * weights + weight]));
        }
        y[at] = scaled(sum_of(terms), op.scale);
    }
}

void Reference::eval(const StreamAdd& op) {
    const std::vector<Bounded>& x = slots_[size_t(op.x.index)];
    const size_t n = width(op.x);
    auto& y = target(op.y);
    for (size_t at = 0; at < y.size(); ++at) {
        if (at / n % op.streams < op.first) continue;
        Bounded weight{op.offset, 0.0, std::abs(op.offset)};
        if (op.weights) weight = plus(slots_[size_t(op.weights.index)][at / n], weight);
        const Bounded term = product(scaled(weight, op.scale), x[at / n / op.streams * n + at % n]);
        y[at] = op.replaces ? term : plus(y[at], term);
    }
}

void Reference::eval(const StreamTurn& op) {
    const std::vector<Bounded>&x = slots_[size_t(op.x.index)], &w = slots_[size_t(op.weights.index)];
    auto& y = target(op.y);
    const size_t n = width(op.x) / op.streams;
    for (size_t at = 0; at < y.size(); ++at) {
        const size_t first = at / n / op.streams * op.streams;  // of the row's streams
        std::vector<Bounded> terms = {x[at]};
        for (size_t s = 0; s < op.streams; ++s)
            terms.push_back(product(x[(first + s) * n + at % n], w[at / n * op.streams + s]));
        y[at] = sum_of(terms);
    }
}

void Reference::eval(const StreamDot& op) {
    const std::vector<Bounded>&a = slots_[size_t(op.a.index)], &b = slots_[size_t(op.b.index)];
    auto& y = target(op.y);
    const size_t n = y.empty() ? 0 : a.size() / y.size();
    for (size_t at = 0; at < y.size(); ++at) {
        std::vector<Bounded> terms;
        for (size_t i = at * n; i < (at + 1) * n; ++i) terms.push_back(product(a[i], b[i]));
        y[at] = scaled(sum_of(terms), op.scale);
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

void Reference::eval(const BlockAttention& op) {
    const Attention whole{op.q, op.y, op.cache, op.shape, op.scale};
    const std::vector<Bounded>& chosen = slots_[size_t(op.chosen.index)];
    const size_t most = width(op.chosen);
    auto& y = target(op.y);
    for (size_t row = 0; attends_ && row < params_.tokens.size(); ++row) {
        const size_t position = params_.rows[row].position, complete = (position + 1) / op.ratio;
        std::vector<bool> seen(position + 1);
        std::fill(seen.begin() + int64_t(complete * op.ratio), seen.end(), true);
        for (size_t i = row * most; i < (row + 1) * most; ++i)
            if (const double block = chosen[i].value; block >= 0.0)
                std::fill_n(seen.begin() + int64_t(size_t(block) * op.ratio), op.ratio, true);
        for (uint32_t head = 0; head < op.shape.heads; ++head)
            attend(whole, row, head, y.data() + (row * op.shape.heads + head) * op.shape.head_dim, &seen);
    }
}

}  // namespace redline
