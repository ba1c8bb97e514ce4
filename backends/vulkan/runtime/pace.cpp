#include "pace.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

// While nothing is measured the device may be so much slower than assumed.
constexpr double kUnmeasured = 8.0;
// What has matrix units computes so many times as much at least.
constexpr double kMatrixUnits = 4.0;

}  // namespace

Pace::Rates Pace::rates_of(VkPhysicalDeviceType type, bool matrix_units) {
    const double faster = matrix_units ? kMatrixUnits : 1.0;
    switch (type) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
            return {2e12 * faster, 500e9};
        case VK_PHYSICAL_DEVICE_TYPE_CPU:
            return {2e9, 2e9};
        default:
            return {400e9 * faster, 50e9};
    }
}

double Pace::assumed(double flops, double bytes) const {
    return std::max(flops / rates.flops, bytes / rates.bytes);
}

void Pace::note(double seconds) {
    double known = longest_.load();
    while (seconds > known && !longest_.compare_exchange_weak(known, seconds)) {
    }
}

void Meter::begin_step(const Load& load) {
    step_load_ = load;
    step_ratio_ = 0.0;
}

void Meter::measured(double assumed, double seconds) {
    if (assumed <= 0.0) return;
    step_ratio_ = std::max(step_ratio_, seconds / assumed);
    largest_ = std::max(largest_, assumed);
}

void Meter::end_step() {
    if (step_ratio_ == 0.0) return;
    before_ = ratio_;
    ratio_ = step_ratio_;
    load_ = step_load_;
}

double Meter::factor() const {
    if (!known()) return kUnmeasured;
    const double growth =
        std::max(1.0, step_load_.rows / load_.rows) * std::max(1.0, step_load_.keys / load_.keys);
    return std::max(step_ratio_, ratio_ * growth);
}

double Meter::predicted(double assumed) const {
    return assumed * factor();
}

// Operations differ in how far off the assumption is, so a first step goes on in doubling strides.
bool Meter::fits(double assumed) const {
    if (ratio_ == 0.0 && largest_ > 0.0 && assumed > 2.0 * largest_) return false;
    return predicted(assumed) <= kSubmissionSeconds;
}

size_t Meter::fitting(std::span<const double> assumed) const {
    size_t count = 1;
    for (double sum = assumed[0]; count < assumed.size() && fits(sum + assumed[count]); ++count)
        sum += assumed[count];
    return count;
}

double Meter::dispatch_seconds() const {
    if (ratio_ == 0.0) return kFirstDispatchSeconds;
    const double growth = factor() / ratio_;
    const double steady = growth * (before_ > 0.0 ? std::min(ratio_, before_) : ratio_);
    return std::clamp(0.5 * kSubmissionSeconds / steady, 0.001, 1.0);
}

}  // namespace redline::vulkan
