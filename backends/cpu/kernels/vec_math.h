// Functions over the Vec of the including level. Coefficients are least-maximum fits of the relative error,
// made for these intervals; the errors named are those of the polynomial alone.
#pragma once

namespace redline::cpu {
namespace {

// e^x within 2 ulp: 2^n * e^r with |r| <= ln 2 / 2, e^r = 1 + r + r^2 p(r) (within 0.03 ulp). 0 below -87.3,
// where it would be subnormal: those cost over a hundred cycles each. NaN stays NaN. For arguments up to 90.
inline Vec exp_of_bounded(Vec given) {
    const Vec least = Vec::set1(-87.3f);
    const Vec x = Vec::max(least, given);    // the second operand stays when it is NaN
    const Vec magic = Vec::set1(0x1.8p23f);  // adding it rounds to a whole number
    const Vec n = Vec::fma(x, Vec::set1(1.44269502f), magic) - magic;
    // The high part of ln 2 has 14 bits, so its product with n is exact.
    Vec r = Vec::fma(n, Vec::set1(-0.69317626953125f), x);
    r = Vec::fma(n, Vec::set1(2.90889712e-5f), r);
    Vec p = Vec::set1(0.00138143206f);
    p = Vec::fma(p, r, Vec::set1(0.00836885069f));
    p = Vec::fma(p, r, Vec::set1(0.0416684002f));
    p = Vec::fma(p, r, Vec::set1(0.166665196f));
    p = Vec::fma(p, r, Vec::set1(0.49999994f));
    const Vec power = Vec::scale_by_power(Vec::fma(p, r * r, r) + Vec::set1(1.0f), n);
    return Vec::where_less(given, least, Vec::set1(0.0f), power);
}

// The same for any argument; infinity from 88.73 up.
inline Vec exp(Vec x) {
    return exp_of_bounded(Vec::min(Vec::set1(90.0f), x));
}

// tanh x within 4 ulp: an odd polynomial up to 0.63 (within 0.04 ulp), 1 - 2 / (e^2x + 1) beyond.
inline Vec tanh(Vec x) {
    const Vec square = x * x;
    Vec p = Vec::set1(-0.00566697540f);
    p = Vec::fma(p, square, Vec::set1(0.0206061751f));
    p = Vec::fma(p, square, Vec::set1(-0.0537300073f));
    p = Vec::fma(p, square, Vec::set1(0.133313313f));
    p = Vec::fma(p, square, Vec::set1(-0.333332777f));
    const Vec near = Vec::fma(p * square, x, x);
    const Vec one = Vec::set1(1.0f);
    const Vec far = one - Vec::set1(2.0f) / (exp(x + x) + one);
    return Vec::where_less(Vec::abs(x), Vec::set1(0.63f), near, far);
}

}  // namespace
}  // namespace redline::cpu
