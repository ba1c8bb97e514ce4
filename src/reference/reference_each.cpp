// The reference of element-wise ops. By hand: kernels come from plan/ops/each.def, which the oracle must not
// share.
#include "reference/reference.h"

#include "reference/reference_units.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace redline {

namespace {

Bounded add(const Bounded& y, const Bounded& x, double scale) {
    const double v = x.value * scale;
    const double size = std::abs(scale), rounded = scale == 1.0 ? 0.0 : kUnit * std::abs(v);
    return plus(y, {v, x.error * size + rounded, x.magnitude * size,
                    x.spread < 0.0 ? -1.0 : x.spread * size + rounded});
}

Bounded multiplied(const Bounded& y, double scale) {
    const double size = std::abs(scale);
    return {y.value * scale, size * (y.error + kUnit * std::abs(y.value)), size * y.magnitude};
}

Bounded softcap(const Bounded& y, double cap) {
    return {cap * std::tanh(y.value / cap), y.error + softcap_error(y.value, cap), y.magnitude};
}

Bounded clamp(Bounded y, double low, double high) {
    y.value = std::clamp(y.value, low, high);
    return y;
}

double gelu_value(double x) {
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

// The same bounds hold as for silu.
Bounded gelu(const Bounded& x) {
    return {gelu_value(x.value), 1.13 * x.error + 8 * kUnit * std::abs(x.value) + kTiny, x.magnitude};
}

Bounded squared_relu(const Bounded& x) {
    return x.value > 0.0 ? product(x, x) : Bounded{0.0, x.error * x.error, x.magnitude * x.magnitude};
}

// Below 1e-6 only the sign matters. The slope is 500 at most, and the result's difference is at most the root
// of twice the argument's difference.
Bounded signed_root(const Bounded& x) {
    const double size = std::max(std::abs(x.value), 1e-6), root = std::sqrt(size);
    const double v = x.value == 0.0 ? 0.0 : std::copysign(root, x.value);
    const double jump = x.error > std::abs(x.value) ? 2.0 * std::sqrt(size + x.error) : 0.0;
    return {v, std::max(jump, root - std::sqrt(std::max(size - x.error, 0.0))) + 4 * kUnit * root + kTiny,
            root};
}

// The slope is between those of its parts; each part is rounded by a few units.
Bounded xielu(const Bounded& y, double positive, double negative, double linear, double limit) {
    const double x = y.value, low = std::min(x, limit), straight = linear * x;
    const double tail = std::expm1(low) - low, bent = tail + (low - x);
    const double v = x > 0.0 ? positive * x * x + straight : negative * bent + straight;
    const double above = std::abs(positive) * (2.0 * std::abs(x) + y.error);
    const double slope = std::abs(linear) + std::max(above, std::abs(negative));
    // The exponential of the tail has an error of units of one where it is not computed by a series.
    const double parts =
        x > 0.0 ? std::abs(positive) * x * x : std::abs(negative) * (std::abs(x) + std::abs(low) + tail);
    return {v, slope * y.error + kUnit * (16 * parts + 2 * std::abs(straight) + 2 * std::abs(v)) + kTiny,
            slope * y.magnitude};
}

constexpr double kActSlope = 1.13;  // a bound of |act'|

// act(gate) * factor, with `a` = act(gate).
Bounded gated(double a, const Bounded& gate, const Bounded& factor) {
    const double v = a * factor.value;
    // The rounding of the activation: a few units of its input, since its size is at most the input's.
    const auto off = [&](double of_gate, double of_factor) {
        const double of_act = kActSlope * of_gate + 8 * kUnit * std::abs(gate.value);
        return of_act * (std::abs(factor.value) + of_factor) + std::abs(a) * of_factor +
               2 * kUnit * std::abs(v) + kTiny;
    };
    const bool known = gate.spread >= 0.0 && factor.spread >= 0.0;
    return {v, off(gate.error, factor.error), gate.magnitude * factor.magnitude,
            known ? off(gate.spread, factor.spread) : -1.0};
}

Bounded swiglu_clamped(const Bounded& gate, Bounded factor) {
    factor.value = std::clamp(factor.value, -7.0, 7.0) + 1.0;
    factor.error += kUnit * std::abs(factor.value);
    factor.magnitude += 1.0;
    const double low = std::min(gate.value, 7.0);
    return gated(low / (1.0 + std::exp(-1.702 * low)), gate, factor);
}

}  // namespace

void Reference::eval(const Each& op) {
    const auto slot_of = [this](Slot s) { return s ? slots_[size_t(s.index)] : std::vector<Bounded>(); };
    const std::vector<Bounded> x = slot_of(op.x), z = slot_of(op.z);
    const std::vector<float> none, &column = op.column ? weights_[size_t(op.column.index)] : none;
    const auto& values = op.values;
    auto& y = target(op.y);
    for (size_t i = 0; i < y.size(); ++i) {
        const double c = column.empty() ? 0.0 : column[i % column.size()];
        const auto next = [&]() -> Bounded {
            switch (op.row) {
                case EachRow::add:
                    return add(y[i], x[i], values[0]);
                case EachRow::add_bias:
                    return plus(y[i], {c, 0.0, std::abs(c)});
                case EachRow::multiply:
                    return product(y[i], {c, 0.0, std::abs(c)});
                case EachRow::scale:
                    return multiplied(y[i], values[0]);
                case EachRow::softcap:
                    return softcap(multiplied(y[i], values[0]), values[1]);
                case EachRow::clamp:
                    return clamp(y[i], values[0], values[1]);
                case EachRow::silu:
                    return silu(y[i]);
                case EachRow::squared_relu:
                    return squared_relu(y[i]);
                case EachRow::gelu:
                    return gelu(y[i]);
                case EachRow::sigmoid:
                    return sigmoid(y[i]);
                case EachRow::signed_root:
                    return signed_root(y[i]);
                case EachRow::xielu:
                    return xielu(y[i], values[0], values[1], values[2], values[3]);
                case EachRow::silu_times:
                    return gated(silu(x[i]).value, x[i], z[i]);
                case EachRow::gelu_times:
                    return gated(gelu_value(x[i].value), x[i], z[i]);
                case EachRow::swiglu_clamped:
                    return swiglu_clamped(x[i], z[i]);
            }
            RL_CHECK(false, "{} has no reference", op.name());
        };
        y[i] = next();
    }
}

}  // namespace redline
