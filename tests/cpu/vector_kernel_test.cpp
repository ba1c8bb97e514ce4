// The vector kernels of every level against scalar code in doubles.
#include "backends/cpu/kernels/each.h"
#include "plan/ops/each.h"
#include "support/guarded.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace redline;
using namespace redline::cpu;
using redline::test::Guarded;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kUnit = 0x1p-24;
const size_t kSizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 255, 256, 257, 1000, 4096, 5003, 16384};

std::vector<Isa> levels() {
    std::vector<Isa> found;
    for (const Isa isa : kIsaLevels)
        if (has_isa(isa)) found.push_back(isa);
    return found;
}

void fill(Guarded<float>& x, std::mt19937& random, float spread = 1.0f) {
    std::normal_distribution<float> normal;
    for (float& v : x) v = spread * normal(random);
}

double silu(double x) {
    return x / (1.0 + std::exp(-x));
}
// x / 2 * (1 + tanh(u)), written so that the negative side does not cancel.
double gelu_tanh(double x) {
    return x / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}
double act_times(Act act, double x, double up) {
    if (act == Act::silu) return silu(x) * up;
    if (act == Act::gelu_tanh) return gelu_tanh(x) * up;
    x = std::min(x, 7.0);
    return x / (1.0 + std::exp(-1.702 * x)) * (std::clamp(up, -7.0, 7.0) + 1.0);
}
// The argument of an activation's exponential where it grows.
double exponent_of(Act act, double x) {
    return act == Act::silu ? 0 : act == Act::gelu_tanh ? -1.6 * x * (1 + 0.045 * x * x) : -1.702 * x;
}

constexpr Act kActs[] = {Act::silu, Act::gelu_tanh, Act::swiglu_clamped};

}  // namespace

TEST_CASE("rms_norm: relative error stays near one rounding per operation up to 16384 elements") {
    std::mt19937 random(1);
    for (const Isa isa : levels())
        for (const size_t n : kSizes)
            for (const float spread : {1e-15f, 1.0f, 1e15f})
                for (const bool with_gain : {true, false}) {
                    INFO(std::string(isa_name(isa)), " n ", n, " spread ", spread);
                    Guarded<float> x(n), gain(n), y(n);
                    fill(x, random, spread);
                    fill(gain, random);
                    const float eps = 1e-6f;
                    double squares = 0;
                    for (const float v : x) squares += double(v) * double(v);
                    const double scale = 1 / std::sqrt(squares / double(n) + double(eps));
                    vector_kernels(isa).rms_norm(x.data(), with_gain ? gain.data() : nullptr, eps, n,
                                                 y.data());
                    double worst = 0;
                    for (size_t i = 0; i < n; ++i) {
                        const double want = double(x[i]) * scale * (with_gain ? double(gain[i]) : 1.0);
                        if (want != 0) worst = std::max(worst, std::abs(double(y[i]) / want - 1));
                    }
                    CHECK(worst <= 16 * kUnit);
                    CHECK(y.intact());
                    const std::vector<float> apart(y.begin(), y.end());
                    vector_kernels(isa).rms_norm(x.data(), with_gain ? gain.data() : nullptr, eps, n,
                                                 x.data());
                    CHECK(std::memcmp(apart.data(), x.data(), n * sizeof(float)) == 0);
                }
}

TEST_CASE("rms_norm: one large element among equal small ones is not lost") {
    for (const Isa isa : levels())
        for (const size_t at : {size_t{0}, size_t{5}, size_t{16383}}) {
            Guarded<float> x(16384), y(16384);
            std::fill(x.begin(), x.end(), 1.0f);
            x[at] = 3000.0f;
            vector_kernels(isa).rms_norm(x.data(), nullptr, 0.0f, x.size(), y.data());
            const double want = 1 / std::sqrt((16383.0 + 9e6) / 16384);
            CHECK(std::abs(double(y[7]) / want - 1) <= 8 * kUnit);
        }
}

TEST_CASE("act_mul: every activation holds a few units in the last place over the whole range") {
    for (const Isa isa : levels())
        for (const Act act : kActs) {
            std::vector<float> inputs{0.0f,   -0.0f, 1e-30f, -1e-30f, 1e-8f, 88.0f,
                                      -87.3f, 1e4f,  -1e4f,  3e38f,   -3e38f};
            for (float x = -30.0f; x < 30.0f; x += 0.00317f) inputs.push_back(x);
            Guarded<float> gate(inputs.size()), up(inputs.size()), y(inputs.size());
            std::copy(inputs.begin(), inputs.end(), gate.begin());
            const float limited = act == Act::swiglu_clamped ? -9.0f : -0.75f;
            for (size_t i = 0; i < up.size(); ++i) up[i] = i % 2 == 0 ? 1.0f : limited;
            vector_kernels(isa).act_mul(act, gate.data(), up.data(), gate.size(), y.data());
            double worst = 0;
            for (size_t i = 0; i < inputs.size(); ++i) {
                const double x = double(gate[i]);
                const double want = act_times(act, x, double(up[i]));
                // The exponent of gelu has six roundings behind it, relative to its size.
                const double units = 8 + 6 * std::clamp(exponent_of(act, x), 0.0, 110.0);
                const double fraction =
                    std::abs(double(y[i]) - want) / (units * kUnit * std::abs(want) + 1e-37);
                worst = std::isnan(fraction) ? double(kInf) : std::max(worst, fraction);
            }
            INFO(std::string(isa_name(isa)), " activation ", int(act));
            CHECK(worst <= 1);
        }
}

TEST_CASE("act_mul: every length, in place on either input, NaN stays where it is") {
    std::mt19937 random(2);
    for (const Isa isa : levels())
        for (const Act act : kActs)
            for (const size_t n : kSizes) {
                INFO(std::string(isa_name(isa)), " n ", n);
                Guarded<float> gate(n), up(n), y(n);
                fill(gate, random);
                fill(up, random);
                gate[n / 2] = kNan;
                vector_kernels(isa).act_mul(act, gate.data(), up.data(), n, y.data());
                for (size_t i = 0; i < n; ++i) CHECK(std::isnan(y[i]) == (i == n / 2));
                CHECK(y.intact());
                Guarded<float> over_gate(n), over_up(n);
                std::copy(gate.begin(), gate.end(), over_gate.begin());
                std::copy(up.begin(), up.end(), over_up.begin());
                vector_kernels(isa).act_mul(act, over_gate.data(), up.data(), n, over_gate.data());
                vector_kernels(isa).act_mul(act, gate.data(), over_up.data(), n, over_up.data());
                CHECK(std::memcmp(y.data(), over_gate.data(), n * sizeof(float)) == 0);
                CHECK(std::memcmp(y.data(), over_up.data(), n * sizeof(float)) == 0);
            }
}

TEST_CASE("add and add_scaled: one rounding, every length, infinities and NaN as in scalar code") {
    std::mt19937 random(3);
    for (const Isa isa : levels())
        for (const size_t n : kSizes) {
            INFO(std::string(isa_name(isa)), " n ", n);
            Guarded<float> a(n), x(n), y(n);
            fill(a, random);
            fill(x, random, 100.0f);
            x[n - 1] = n % 2 == 0 ? kInf : kNan;
            std::copy(a.begin(), a.end(), y.begin());
            vector_kernels(isa).add(y.data(), x.data(), n);
            for (size_t i = 0; i + 1 < n; ++i) CHECK(y[i] == a[i] + x[i]);
            CHECK((n % 2 == 0 ? y[n - 1] == kInf : std::isnan(y[n - 1])));
            std::copy(a.begin(), a.end(), y.begin());
            vector_kernels(isa).add_scaled(y.data(), x.data(), -0.37f, n);
            for (size_t i = 0; i + 1 < n; ++i) {
                const double product = double(-0.37f) * double(x[i]);
                const double error = double(y[i]) - (double(a[i]) + product);
                CHECK(std::abs(error) <= kUnit * (std::abs(product) + std::abs(double(y[i]))));
            }
            CHECK((n % 2 == 0 ? y[n - 1] == -kInf : std::isnan(y[n - 1])));
            CHECK(y.intact());
        }
}

TEST_CASE("rope: both pairings, any count of pairs, the rest of the head untouched") {
    std::mt19937 random(4);
    for (const Isa isa : levels())
        for (const size_t pairs :
             {1u, 2u, 3u, 4u, 5u, 8u, 9u, 13u, 16u, 17u, 20u, 31u, 32u, 40u, 48u, 64u, 127u, 128u, 256u})
            for (const bool half_split : {false, true}) {
                INFO(std::string(isa_name(isa)), " pairs ", pairs, " half split ", half_split);
                for (const size_t rest : {size_t{0}, size_t{6}}) {
                    Guarded<float> head(2 * pairs + rest), before(2 * pairs + rest), c(pairs), s(pairs);
                    fill(head, random);
                    std::copy(head.begin(), head.end(), before.begin());
                    for (size_t i = 0; i < pairs; ++i) {
                        const double angle = 0.37 * double(i) + 0.1;
                        c[i] = float(std::cos(angle));
                        s[i] = float(std::sin(angle));
                    }
                    vector_kernels(isa).rope(head.data(), c.data(), s.data(), pairs, half_split);
                    for (size_t i = 0; i < pairs; ++i) {
                        const size_t first = half_split ? i : 2 * i;
                        const size_t second = half_split ? i + pairs : 2 * i + 1;
                        const double a = double(before[first]), b = double(before[second]);
                        const double bound = 2 * kUnit * (std::abs(a) + std::abs(b));
                        CHECK(std::abs(double(head[first]) - (a * double(c[i]) - b * double(s[i]))) <= bound);
                        CHECK(std::abs(double(head[second]) - (a * double(s[i]) + b * double(c[i]))) <=
                              bound);
                    }
                    for (size_t i = 2 * pairs; i < head.size(); ++i) CHECK(head[i] == before[i]);
                    CHECK(head.intact());
                }
            }
}

TEST_CASE("each: every element-wise op gives an element what it has alone, at every level, NaN included") {
    std::mt19937 random(5);
    constexpr float kValues[] = {-1.5f, 0.75f, 0.5f, -0.5f};
    for (const Isa isa : levels())
        for (size_t row = 0; row < each_rows().size(); ++row)
            for (const size_t n : {1u, 3u, 8u, 16u, 31u, 257u}) {
                INFO(std::string(isa_name(isa)), " ", std::string(each_rows()[row].name), " n ", n);
                Guarded<float> x(n), z(n), column(n), y(n), before(n);
                for (Guarded<float>* one : {&x, &z, &column, &before}) fill(*one, random);
                before[n / 2] = x[n / 2] = kNan;
                std::copy(before.begin(), before.end(), y.begin());
                const EachLoop loop = each_loops(isa)[row];
                loop({y.data(), x.data(), z.data(), column.data(), kValues, n});
                CHECK(y.intact());
                for (size_t i = 0; i < n; ++i) {
                    Guarded<float> alone(1);
                    alone[0] = before[i];
                    loop({alone.data(), &x[i], &z[i], &column[i], kValues, 1});
                    CHECK(alone.intact());
                    CHECK(std::memcmp(&y[i], &alone[0], sizeof(float)) == 0);
                    CHECK(std::isnan(y[i]) == (i == n / 2));
                }
            }
}
