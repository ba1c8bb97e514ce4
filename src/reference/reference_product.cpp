#include "reference/reference_product.h"

#include "reference/reference_units.h"

#include <algorithm>
#include <cmath>

namespace redline {

namespace {

// Several sums side by side, which a compiler keeps in vector registers.
constexpr size_t kLanes = 4;
struct Sums {
    double lanes[kLanes] = {};
    double total() const { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }
};

Bounded weighted(const Bounded& one, const Bounded& scale) {
    const auto off = [&](double of_one) {
        return std::abs(scale.value) * of_one + scale.error * (std::abs(one.value) + of_one) +
               kUnit * std::abs(one.value * scale.value);
    };
    return {one.value * scale.value, off(one.error), one.magnitude * scale.magnitude,
            one.spread < 0.0 ? -1.0 : off(one.spread)};
}

}  // namespace

ProductRow::ProductRow(const Precision& precision, const Bounded* x, size_t cols, std::minstd_rand* random)
    : precision_(precision), x_(x), cols_(cols), random_(random) {
    if (random) return;
    for (auto* each : {&values_, &sizes_, &magnitudes_, &largest_, &errors_, &squares_}) each->resize(cols);
    Rounded off(precision.activations, x, cols);
    for (size_t i = 0; i < cols; ++i) {
        const double x_off = off(i);
        values_[i] = x[i].value;
        sizes_[i] = std::abs(x[i].value);
        magnitudes_[i] = x[i].magnitude;
        largest_[i] = size_of(x[i]) + x_off;
        const double w_off = precision.weights.unit * largest_[i], before = x[i].likely();
        errors_[i] = x[i].error + x_off + w_off;
        squares_[i] = before * before + x_off * x_off + w_off * w_off;
    }
}

Bounded ProductRow::rounded_dot(const float* w) {
    Rounded off_w(precision_.weights, w, cols_);
    Rounded off_x(precision_.activations, x_, cols_);
    double value = 0.0, magnitude = 0.0, terms = 0.0;
    for (size_t i = 0; i < cols_; ++i) {
        const double size = std::abs(double(w[i]));
        value += (w[i] + within(off_w(i), *random_)) * (x_[i].value + within(off_x(i), *random_));
        magnitude += size * x_[i].magnitude;
        terms += size * std::abs(x_[i].value);
    }
    return {value + within(sum_unit(cols_) * terms, *random_), 0.0, magnitude};
}

Bounded ProductRow::dot(const float* w) {
    if (random_) return rounded_dot(w);
    Sums value, error, magnitude, terms, square;
    const size_t even = cols_ / kLanes * kLanes;
    for (size_t i = 0; i < even; i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane) {
            const double weight = double(w[i + lane]), size = std::abs(weight);
            value.lanes[lane] += weight * values_[i + lane];
            error.lanes[lane] += size * errors_[i + lane];
            magnitude.lanes[lane] += size * magnitudes_[i + lane];
            terms.lanes[lane] += size * sizes_[i + lane];
            square.lanes[lane] += weight * weight * squares_[i + lane];
        }
    for (size_t i = even; i < cols_; ++i) {
        const double weight = double(w[i]), size = std::abs(weight);
        value.lanes[0] += weight * values_[i];
        error.lanes[0] += size * errors_[i];
        magnitude.lanes[0] += size * magnitudes_[i];
        terms.lanes[0] += size * sizes_[i];
        square.lanes[0] += weight * weight * squares_[i];
    }
    Bounded sum = {value.total(), error.total(), magnitude.total()};
    double squares = square.total();
    const Rounding& weights = precision_.weights;
    if (weights.block > 0.0)
        for (size_t begin = 0; begin < cols_; begin += weights.group) {
            const size_t end = std::min(begin + weights.group, cols_);
            double most = 0.0, reach = 0.0, square_reach = 0.0;
            for (size_t i = begin; i < end; ++i) {
                most = std::max(most, std::abs(double(w[i])));
                reach += largest_[i];
                square_reach += largest_[i] * largest_[i];
            }
            sum.error += weights.block * most * reach;
            squares += weights.block * most * weights.block * most * square_reach;
        }
    // The sum is over the rounded terms.
    const double summed = sum_unit(cols_) * (terms.total() + sum.error) + kTiny;
    sum.error += summed;
    sum.spread = std::sqrt(squares) + summed;
    return sum;
}

void Reference::eval(const Product& op) {
    const Shape& shape = plan_.weight(op.w()).tensor.shape;
    const std::vector<float>& w = weights_[size_t(op.w().index)];
    const std::vector<Bounded> x = slots_[size_t(op.x.index)];
    const ChosenExperts& chosen = op.experts;
    const bool by_head = op.by() == By::head;
    const size_t places = op.by() == By::expert ? chosen.used : shape.count,
                 x_apart = by_head             ? op.strides.x
                           : chosen.per_expert ? shape.cols
                                               : 0,
                 y_apart = by_head         ? op.strides.y
                           : chosen.scales ? 0
                                           : shape.rows;
    auto& y = target(op.y());
    for (size_t t = 0; t < rows_of(op.y()); ++t)
        for (size_t place = 0; place < places; ++place) {
            const size_t entry = t * places + place;
            const size_t one = chosen.ids ? size_t(slots_[size_t(chosen.ids.index)][entry].value) : place;
            ProductRow row(precision_, x.data() + t * width(op.x) + place * x_apart, shape.cols, random());
            for (size_t r = 0; r < shape.rows; ++r) {
                const Bounded dot = row.dot(w.data() + (one * shape.rows + r) * shape.cols);
                Bounded& result = y[t * width(op.y()) + place * y_apart + r];
                result = chosen.scales
                             ? plus(result, weighted(dot, slots_[size_t(chosen.scales.index)][entry]))
                             : dot;
            }
        }
}

}  // namespace redline
