// The reference of ops that keep states, and of the ops around them.
#include "reference/reference.h"

#include "reference/reference_units.h"

#include <algorithm>
#include <cmath>

namespace redline {

void Reference::eval(const CopyParts& op) {
    const std::vector<Bounded>& x = slots_[size_t(op.x.index)];
    auto& y = target(op.y);
    for (size_t row = 0; row < rows_of(op.y); ++row)
        for (size_t part = 0; part < op.parts; ++part)
            std::copy_n(x.begin() + int64_t(row * width(op.x) + op.x_first + part * op.x_stride), op.width,
                        y.begin() + int64_t(row * width(op.y) + op.y_first + part * op.y_stride));
}

void Reference::eval(const ScaleByExpert& op) {
    const std::vector<float>& factor = weights_[size_t(op.factor.index)];
    auto& scales = slots_[size_t(op.scales.index)];
    for (size_t i = 0; i < scales.size(); ++i) {
        const double f = factor[size_t(slots_[size_t(op.ids.index)][i].value)];
        scales[i] = product(scales[i], {f, 0.0, std::abs(f)});
    }
}

// softplus(x) with the error that x's error causes.
static Bounded softplus(const Bounded& x) {
    const double v = x.value > 20.0 ? x.value : std::log1p(std::exp(x.value));
    const double off = x.error + kUnit * (8 + 4 * std::abs(x.value));
    return {v, std::min(off, v * std::expm1(off)) + 4 * kUnit * v + kTiny, v};
}

void Reference::eval(const OutputGate& op) {
    const std::vector<Bounded>& x = slots_[size_t(op.x.index)];
    auto& y = slots_[size_t(op.y.index)];
    const GateLayout gates = op.layout(uint32_t(width(op.x)), uint32_t(width(op.y)));
    for (size_t i = 0; i < y.size(); ++i) {
        const Bounded& gate = x[i / op.head_dim * gates.stride + gates.first + i % op.head_dim * gates.step];
        y[i] = product(y[i], op.act == GateOf::itself     ? gate
                             : op.act == GateOf::softplus ? softplus(gate)
                                                          : sigmoid(gate));
    }
}

std::span<Bounded> Reference::state(Cache cache, size_t row) {
    const size_t floats = plan_.cache(cache).state_floats;
    const auto whole =
        std::span(states_[size_t(cache.index)]).subspan(params_.rows[row].sequence * floats, floats);
    if (params_.rows[row].position == 0) std::fill(whole.begin(), whole.end(), Bounded());
    return whole;
}

void Reference::eval(const Convolve& op) {
    const std::vector<float>& w = weights_[size_t(op.w.index)];
    const std::vector<Bounded>& x = slots_[size_t(op.x.index)];
    auto& y = target(op.y);
    const size_t n = width(op.x);
    for (size_t row = 0; row < params_.tokens.size(); ++row) {
        const std::span<Bounded> past = state(op.state, row);
        for (size_t i = 0; i < n; ++i) {
            const size_t at = row * n + i;
            Bounded terms[kMostTaps];
            for (size_t j = 0; j + 1 < op.taps; ++j) terms[j] = past[j * op.apart * n + i];
            terms[op.taps - 1] = op.before ? product(slots_[size_t(op.before.index)][at], x[at]) : x[at];
            Bounded sum;
            double size = 0.0;
            for (size_t j = 0; j < op.taps; ++j) {
                const double tap = w[i * op.taps + j];
                sum.value += tap * terms[j].value;
                sum.error += std::abs(tap) * terms[j].error;
                sum.magnitude += std::abs(tap) * terms[j].magnitude;
                size += std::abs(tap) * (std::abs(terms[j].value) + terms[j].error);
            }
            for (size_t j = 1; j < op.kept(); ++j) past[(j - 1) * n + i] = past[j * n + i];
            past[(op.kept() - 1) * n + i] = terms[op.taps - 1];
            sum.error += sum_unit(op.taps) * size + kTiny;
            y[at] = op.silu ? silu(sum) : sum;
            if (op.behind) y[at] = product(y[at], slots_[size_t(op.behind.index)][at]);
        }
    }
}

namespace {

// A vector, and the Euclidean length of its error.
struct BoundedVector {
    std::vector<double> values;
    double error = 0.0;
    double length() const {
        double squares = 0.0;
        for (const double v : values) squares += v * v;
        return std::sqrt(squares);
    }
};

// x * scale / sqrt(sum of squares + eps). The error becomes its projection divided by the length.
BoundedVector unit_vector(const Bounded* x, size_t n, double scale) {
    BoundedVector out{std::vector<double>(n)};
    double squares = 0.0, off = 0.0;
    for (size_t i = 0; i < n; ++i) {
        squares += x[i].value * x[i].value;
        off += x[i].error * x[i].error;
    }
    const double length = std::sqrt(squares + DeltaNet::kEps);
    for (size_t i = 0; i < n; ++i) out.values[i] = x[i].value / length * scale;
    out.error = scale * (2.0 * std::sqrt(off) / length + sum_unit(n));
    return out;
}

// exp(a * softplus(x)), a not above 0.
Bounded decay_of(double a, const Bounded& x) {
    const double soft = x.value > 20.0 ? x.value : std::log1p(std::exp(x.value));
    const double g = a * soft;
    // When softplus is computed as a logarithm of 1 + e^x, its error is units of one where x is far below 0.
    const double g_off = std::abs(a) * (x.error + kUnit * (8 + 4 * std::abs(x.value) + 4 * soft));
    const double v = std::exp(g);
    return {v, v * (std::expm1(g_off) + kUnit * (8 + 2 * std::abs(g))) + kTiny, v};
}

}  // namespace

void Reference::eval(const StateScan& op) {
    const ScanShape& s = op.shape;
    auto& y = target(op.y);
    const auto exact = [](double v) { return Bounded{v, 0.0, std::abs(v)}; };
    for (size_t row = 0; row < params_.tokens.size(); ++row) {
        const std::span<Bounded> states = state(op.state, row);
        const Bounded* x = slots_[size_t(op.x.index)].data() + row * s.width();
        for (size_t head = 0; head < s.heads; ++head) {
            const Bounded* in = x + s.inner() + head / (s.heads / s.groups) * s.state_dim;
            const Bounded* out = in + s.groups * s.state_dim;
            const Bounded step = softplus(plus(slots_[size_t(op.step.index)][row * s.heads + head],
                                               exact(weights_[size_t(op.step_bias.index)][head])));
            const double a = weights_[size_t(op.a.index)][head], g = a * step.value;
            const double g_off = std::abs(a) * step.error + kUnit * std::abs(g);
            const double decay = std::exp(g);
            const Bounded keep{decay, decay * (std::expm1(g_off) + kUnit * (8 + 2 * std::abs(g))) + kTiny,
                               decay};
            for (size_t p = 0; p < s.head_dim; ++p) {
                const size_t at = head * s.head_dim + p;
                const Bounded put = product(step, x[at]);
                Bounded sum = product(x[at], exact(weights_[size_t(op.through.index)][head]));
                double size = std::abs(sum.value);
                for (size_t n = 0; n < s.state_dim; ++n) {
                    Bounded& held = states[at * s.state_dim + n];
                    held = plus(product(keep, held), product(put, in[n]));
                    const Bounded term = product(held, out[n]);
                    sum = {sum.value + term.value, sum.error + term.error, sum.magnitude + term.magnitude};
                    size += std::abs(term.value) + term.error;
                }
                sum.error += sum_unit(s.state_dim + 1) * size;
                y[row * s.inner() + at] = sum;
            }
        }
    }
}

// Each token maps a column of the state to decay * (1 - b k k^T) times it, which makes no vector longer as
// |k| is at most one: so the length of its error, which is stored in the column's first element, grows only
// by what each token adds.
void Reference::delta(const DeltaNet& op, size_t row, uint32_t head, Bounded* state, Bounded* out) const {
    const DeltaShape& s = op.shape;
    const size_t at = row * s.heads + head, key_head = s.key_head(head), n = s.key_dim;
    const Bounded* qkv = slots_[size_t(op.qkv.index)].data() + row * s.width();
    const BoundedVector q = unit_vector(qkv + key_head * n, n, 1.0 / std::sqrt(double(n)));
    const BoundedVector k = unit_vector(qkv + s.keys() + key_head * n, n, 1.0);
    const Bounded* v = qkv + 2 * s.keys() + head * s.value_dim;
    const Bounded b = sigmoid(slots_[size_t(op.beta.index)][at]);
    Bounded step = slots_[size_t(op.alpha.index)][at];
    const double dt = weights_[size_t(op.dt.index)][head];
    step.value += dt;
    step.error += kUnit * std::abs(step.value);
    const Bounded d = decay_of(weights_[size_t(op.a.index)][head], step);
    const double unit = sum_unit(n), k_length = k.length(), q_length = q.length();
    for (size_t j = 0; j < s.value_dim; ++j) {
        double before = 0.0, after = 0.0, seen = 0.0;
        for (size_t i = 0; i < n; ++i) {
            double& x = state[i * s.value_dim + j].value;
            before += x * x;
            x *= d.value;
            seen += k.values[i] * x;
        }
        before = std::sqrt(before);
        double error = state[j].error;
        const double decayed = d.value * before, off = v[j].value - seen;
        const double size = decayed + error, change = std::abs(v[j].value) + k_length * size + v[j].error;
        double y = 0.0, magnitude = 0.0;
        for (size_t i = 0; i < n; ++i) {
            double& x = state[i * s.value_dim + j].value;
            x += b.value * k.values[i] * off;
            after += x * x;
            y += q.values[i] * x;
            magnitude += std::abs(q.values[i] * x);
        }
        error = d.value * error + d.error * (before + error) + kUnit * decayed +
                (b.value + b.error) * (k.error * (change + k_length * size) + k_length * v[j].error +
                                       k_length * unit * change) +
                b.error * k_length * change + 4 * kUnit * (b.value * change + std::sqrt(after));
        if (random_) error = 0.0;
        state[j].error = error;
        const double length = std::sqrt(after) + error;
        out[j] = {y,
                  error * q_length + length * q.error + unit * q_length * (length + b.value * change) + kTiny,
                  magnitude};
    }
}

void Reference::eval(const DeltaNet& op) {
    const DeltaShape& s = op.shape;
    auto& y = target(op.y);
    for (size_t row = 0; row < params_.tokens.size(); ++row) {
        Bounded* states = state(op.state, row).data();
        for (uint32_t head = 0; head < s.heads; ++head)
            delta(op, row, head, states + size_t(head) * s.key_dim * s.value_dim,
                  y.data() + row * s.values() + head * s.value_dim);
    }
}

}  // namespace redline
