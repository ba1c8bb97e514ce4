// Every level's matrix kernels against a double-precision product of the decoded weights, within bounds
// computed from the data. Packed weights and prepared activations end at an inaccessible page; results are
// fenced by canaries.
#include "backends/cpu/formats/repack.h"
#include "backends/cpu/kernels/linear.h"
#include "support/guarded.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

using namespace redline;
using namespace redline::cpu;
using redline::test::Guarded;

namespace {

std::vector<const Format*> formats() {
    std::vector<const Format*> out;
    for (const Format* format : all_formats())
        if (!panel_fields(format->gguf_id).empty()) out.push_back(format);
    return out;
}

enum class Weights { random, zero_scale, ones, zeros, alternating, subnormal_scale, large_scale, count };
enum class Inputs { random, full_scale, alternating, spikes, wide, subnormal, zero, constant, count };

std::vector<Isa> levels() {
    std::vector<Isa> out;
    for (const Isa isa : kIsaLevels)
        if (has_isa(isa)) out.push_back(isa);
    return out;
}

void set_half(std::byte* at, float value) {
    const uint16_t half = float_to_half(value);
    std::memcpy(at, &half, 2);
}

void fill_floats(const Format& format, Weights kind, std::mt19937& random, std::byte* out, size_t count) {
    std::normal_distribution<float> normal(0.0f, 0.05f);
    for (size_t i = 0; i < count; ++i, out += format.block_bytes) {
        float value = normal(random);
        if (kind == Weights::zero_scale || kind == Weights::zeros) value = 0.0f;
        if (kind == Weights::ones) value = 1.0f;
        if (kind == Weights::alternating) value = i % 2 ? 3.0f : -3.0f;
        if (kind == Weights::subnormal_scale) value *= format.gguf_id == 1 ? 1e-6f : 1e-38f;
        if (kind == Weights::large_scale) value *= 1e5f;
        if (format.gguf_id == 0)
            std::memcpy(out, &value, 4);
        else if (format.gguf_id == 1)
            set_half(out, value);
        else {
            const uint16_t bits = float_to_bfloat(value);
            std::memcpy(out, &bits, 2);
        }
    }
}

// The scale and the minimum of a block.
using Scales = std::pair<float, float>;

// Scales that are no halves keep within what products of floats can hold.
void set_scales(const Format& format, Weights kind, std::mt19937& random, const Scales& scales,
                std::byte* block) {
    if (format.name == "MXFP4") {  // a power of two; 0 and 1 are subnormal
        uint32_t exponent = 118 + uint32_t(random() % 8);
        if (kind == Weights::subnormal_scale) exponent = uint32_t(random() % 3);
        if (kind == Weights::large_scale) exponent = 180;
        block[0] = std::byte(exponent);
    } else if (format.name == "NVFP4") {  // all bytes are numbers
        for (int i = 0; i < 4; ++i) {
            if (kind == Weights::zero_scale) block[i] = std::byte(random() % 2 ? 0x7F : 0);
            if (kind == Weights::subnormal_scale) block[i] = std::byte(random() % 8);
            if (kind == Weights::large_scale) block[i] = std::byte(random() % 2 ? 0xFF : 0x7E);
        }
    } else {
        format.set_scales(block, scales.first, scales.second);
    }
}

void fill_blocks(const Format& format, Weights kind, std::mt19937& random, std::byte* out, size_t blocks,
                 std::vector<Scales>& all_scales) {
    all_scales.assign(blocks, {0.0f, 0.0f});
    if (format.block == 1) return fill_floats(format, kind, random, out, blocks);
    std::uniform_real_distribution<float> scale(-0.02f, 0.02f);
    for (size_t b = 0; b < blocks; ++b, out += format.block_bytes) {
        for (uint32_t i = 0; i < format.block_bytes; ++i) {
            uint32_t byte = uint32_t(random());
            if (kind == Weights::ones) byte = 0xFF;
            if (kind == Weights::zeros) byte = 0;
            if (kind == Weights::alternating) byte = i % 2 ? 0x80 : 0x7F;
            out[i] = std::byte(byte);
        }
        float d = scale(random), m = scale(random);
        if (kind == Weights::zero_scale) d = m = 0.0f;
        if (kind == Weights::subnormal_scale) d = m = 0x1p-24f;
        if (kind == Weights::large_scale) d = 60000.0f, m = -60000.0f;
        all_scales[b] = {d, m};
        set_scales(format, kind, random, all_scales[b], out);
    }
}

void fill_inputs(Inputs kind, std::mt19937& random, float* x, size_t cols) {
    std::normal_distribution<float> normal(0.0f, 1.0f);
    for (size_t i = 0; i < cols; ++i) {
        float value = normal(random);
        if (kind == Inputs::full_scale) value = random() % 2 ? 1.5f : -1.5f;
        if (kind == Inputs::alternating) value = i % 2 ? 2.0f : -2.0f;
        if (kind == Inputs::spikes && i % 29 == 3) value *= 1000.0f;
        if (kind == Inputs::wide) value *= std::exp2(float(int(random() % 80) - 40));
        if (kind == Inputs::subnormal) value *= 1e-39f;
        if (kind == Inputs::zero) value = 0.0f;
        if (kind == Inputs::constant) value = 0.7f;
        x[i] = value;
    }
}

// For one result: the exact value and what its error is measured against.
struct Want {
    double value = 0.0;
    double magnitude = 0.0;  // sum |w| |x|
    double expanded = 0.0;   // the same where w = scale * code + minimum counts as both parts
    double step = 0.0;       // sum |w| (half an int8 step of x's block of 32)
    double weights = 0.0;    // sum |w|
    double inputs = 0.0;     // sum |x|
};

struct Problem {
    const Format* format;
    size_t rows, cols, x_rows;
    std::vector<std::byte> file;        // (rows, row_bytes)
    std::vector<float> weights, parts;  // (rows, cols); parts: |scale * code| + |minimum|
    std::vector<float> x;               // (x_rows, cols)
    std::vector<Want> want;             // (x_rows, rows)
};

bool has_minimum(const Format& format) {
    if (format.block == 1) return false;
    std::vector<std::byte> with(format.block_bytes, std::byte(0)), without = with;
    format.set_scales(with.data(), 0.0f, 1.0f);
    format.set_scales(without.data(), 0.0f, 0.0f);
    return with != without;
}

// |scale * code| + |minimum| of each element, from the decoder itself: either is what is left without the
// other.
void expand(const Format& format, const std::byte* row, const std::vector<Scales>& scales, size_t cols,
            float* parts) {
    format.decode(row, parts, cols);
    for (size_t i = 0; i < cols; ++i) parts[i] = std::abs(parts[i]);
    if (!has_minimum(format)) return;
    std::vector<std::byte> scaled(row, row + format.row_bytes(cols)), moved = scaled;
    for (size_t b = 0; b < scales.size(); ++b) {
        format.set_scales(scaled.data() + b * format.block_bytes, scales[b].first, 0.0f);
        format.set_scales(moved.data() + b * format.block_bytes, 0.0f, scales[b].second);
    }
    std::vector<float> minima(cols);
    format.decode(scaled.data(), parts, cols);
    format.decode(moved.data(), minima.data(), cols);
    for (size_t i = 0; i < cols; ++i) parts[i] = std::abs(parts[i]) + std::abs(minima[i]);
}

Problem make_problem(const Format& format, size_t rows, size_t cols, size_t x_rows, uint32_t seed,
                     int kinds) {
    std::mt19937 random(seed);
    Problem p{&format, rows, cols, x_rows, {}, {}, {}, {}, {}};
    std::vector<Scales> scales;
    const size_t row_bytes = p.format->row_bytes(cols);
    p.file.resize(rows * row_bytes);
    p.weights.resize(rows * cols);
    p.parts.resize(rows * cols);
    for (size_t r = 0; r < rows; ++r) {
        // Mostly random rows, so that an odd row among them shows when rows are mixed up.
        const auto kind = r % 3 ? Weights::random : Weights((r / 3 + size_t(kinds)) % size_t(Weights::count));
        fill_blocks(format, kind, random, p.file.data() + r * row_bytes, cols / format.block, scales);
        p.format->decode(p.file.data() + r * row_bytes, p.weights.data() + r * cols, cols);
        expand(format, p.file.data() + r * row_bytes, scales, cols, p.parts.data() + r * cols);
    }
    p.x.resize(x_rows * cols);
    for (size_t t = 0; t < x_rows; ++t)
        fill_inputs(Inputs((t + size_t(kinds)) % size_t(Inputs::count)), random, p.x.data() + t * cols, cols);
    p.want.resize(x_rows * rows);
    std::vector<double> step(cols);
    for (size_t t = 0; t < x_rows; ++t) {
        const float* x = p.x.data() + t * cols;
        for (size_t i = 0; i < cols; i += 32) {
            float largest = 0.0f;
            for (size_t j = i; j < std::min(cols, i + 32); ++j) largest = std::max(largest, std::abs(x[j]));
            for (size_t j = i; j < std::min(cols, i + 32); ++j) step[j] = double(largest) / 254.0;
        }
        for (size_t r = 0; r < rows; ++r) {
            Want& want = p.want[t * rows + r];
            for (size_t i = 0; i < cols; ++i) {
                const double w = p.weights[r * cols + i];
                want.value += w * x[i];
                want.magnitude += std::abs(w * x[i]);
                want.expanded += double(p.parts[r * cols + i]) * (std::abs(double(x[i])) + step[i]);
                want.step += std::abs(w) * step[i];
                want.weights += std::abs(w);
                want.inputs += std::abs(double(x[i]));
            }
        }
    }
    return p;
}

double bound(const Want& want, size_t cols, Activations activations) {
    const double rounding = 4.0 * std::sqrt(double(cols)) * 0x1p-24;
    // Below these, a product, a scale or an operand may have become zero.
    const double smallest = (want.weights + want.inputs + double(cols)) * 0x1p-126;
    switch (activations) {
        case Activations::f32:
            return rounding * want.magnitude + smallest;
        case Activations::bf16:
            // Weights and activations are each rounded by up to half a unit of 8 bits.
            return rounding * want.expanded + 0x1p-7 * (1.0 + 0x1p-8) * want.magnitude + smallest;
        case Activations::int8_block32:
            return rounding * want.expanded + want.step * (1.0 + 0x1p-20) + want.weights * 0x1p-110 +
                   smallest;
    }
    return 0.0;
}

PackedMatrix pack(const Format& format, const std::byte* file, size_t rows, size_t cols, std::byte* out) {
    PackedMatrix matrix{&format, rows, cols, out};
    for (size_t r = 0; r < rows; r += kPanelRows)
        pack_panel(format, file + r * format.row_bytes(cols), std::min(kPanelRows, rows - r), cols,
                   out + r / kPanelRows * matrix.panel_bytes());
    return matrix;
}

size_t packed_bytes(const Format& format, size_t rows, size_t cols) {
    return PackedMatrix{&format, rows, cols, nullptr}.bytes();
}

struct Outcome {
    double worst = 0.0;  // largest share of a bound that an error used
    std::string where;   // of the first result beyond its bound
    bool canaries = true;
    Activations activations = Activations::f32;
};

// Multiplies the first `rows` rows by the first `x_rows` activation rows, in two calls that share out the
// panels.
Outcome run(const Problem& p, Isa isa, size_t rows, size_t x_rows, bool accumulate) {
    Outcome outcome;
    Guarded<std::byte> data(packed_bytes(*p.format, rows, p.cols));
    const PackedMatrix matrix = pack(*p.format, p.file.data(), rows, p.cols, data.data());
    const LinearKernel& kernel = linear_kernel(isa, *p.format, x_rows);
    outcome.activations = kernel.activations;
    const size_t x_stride = kernel.activation_bytes(p.cols);
    Guarded<std::byte> x(x_rows * x_stride);
    for (size_t t = 0; t < x_rows; ++t) kernel.prepare(p.x.data() + t * p.cols, p.cols, x.data(), t, x_rows);
    constexpr float kCanary = -12345.0f, kBefore = 0.25f;
    const size_t gap = 3, y_stride = rows + gap;
    Guarded<float> y(x_rows * y_stride - gap);
    std::fill(y.begin(), y.end(), kCanary);
    if (accumulate)
        for (size_t t = 0; t < x_rows; ++t) std::fill_n(y.data() + t * y_stride, rows, kBefore);
    const size_t middle = matrix.panels() / 2;
    kernel.multiply(matrix, 0, middle, x.data(), x_stride, x_rows, y.data(), y_stride, accumulate);
    kernel.multiply(matrix, middle, matrix.panels(), x.data(), x_stride, x_rows, y.data(), y_stride,
                    accumulate);
    outcome.canaries = data.intact() && x.intact() && y.intact();
    for (size_t t = 0; t < x_rows; ++t)
        for (size_t r = 0; r < y_stride && t * y_stride + r < y.size(); ++r) {
            const float got = y[t * y_stride + r];
            if (r >= rows) {
                outcome.canaries &= got == kCanary;
                continue;
            }
            const Want& want = p.want[t * p.rows + r];
            if (want.magnitude > 1e36) continue;
            double limit = bound(want, p.cols, kernel.activations);
            const double value = want.value + (accumulate ? double(kBefore) : 0.0);
            if (accumulate) limit += 0x1p-22 * (std::abs(value) + double(kBefore) + want.magnitude);
            const double fraction = std::abs(double(got) - value) / limit;
            if (!(fraction <= 1.0) && outcome.where.empty())
                outcome.where =
                    fmt::format("row {} of x row {}: got {}, want {}, bound {}", r, t, got, value, limit);
            outcome.worst = std::isnan(fraction) ? HUGE_VAL : std::max(outcome.worst, fraction);
        }
    return outcome;
}

std::vector<size_t> columns_of(const Format& format) {
    if (format.block == 1) return {1, 7, 172, 300, 1030};
    if (format.block == 32) return {32, 96, 288, 832};
    return {256, 512, 1280};
}

using Worst = std::map<std::pair<Isa, Activations>, double>;

// One row is read in one of two orders, by the kind of machine: both are checked.
void check(const Problem& p, size_t rows, size_t x_rows, bool accumulate, Worst& worst) {
    const bool own_order = reads_side_by_side();
    for (const Isa isa : levels()) {
        Outcome outcome = run(p, isa, rows, x_rows, accumulate);
        if (x_rows == 1 && outcome.where.empty() && outcome.canaries) {
            const double worst_of_own = outcome.worst;
            set_reads_side_by_side(!own_order);
            outcome = run(p, isa, rows, x_rows, accumulate);
            set_reads_side_by_side(own_order);
            outcome.worst = std::max(outcome.worst, worst_of_own);
        }
        INFO(fmt::format("{} {} {}x{} times {} rows", isa_name(isa), p.format->name, rows, p.cols, x_rows));
        INFO(outcome.where);
        CHECK(outcome.worst <= 1.0);
        CHECK(outcome.canaries);
        double& level = worst[{isa, outcome.activations}];
        level = std::max(level, outcome.worst);
    }
}

void report(const Worst& worst) {
    constexpr const char* names[] = {"f32", "bf16", "int8"};
    for (const auto& [key, fraction] : worst)
        MESSAGE(fmt::format("{}, {} activations: worst fraction of the bound {:.3f}", isa_name(key.first),
                            names[int(key.second)], fraction));
}

}  // namespace

TEST_CASE("linear: each level has separate kernels for every format that is packed") {
    for (const Format* format : formats()) {
        CAPTURE(format->name);
        const uint32_t id = format->gguf_id;
        size_t bytes = 0;
        for (const PanelField& field : panel_fields(id)) bytes += field.bytes;
        CHECK(bytes == packed_block_bytes(*format));
#ifdef RL_CPU_ALL_LEVELS
        CHECK(linear_kernel_portable(id) != nullptr);
#endif
#if defined(RL_CPU_ALL_LEVELS) && defined(__x86_64__)
        CHECK(linear_kernel_avx2(id) != nullptr);
        const bool code_book = find_repacking(id) && linear_kernel_avx512(id) == nullptr;
        CHECK((linear_kernel_avx512(id) != nullptr || (code_book && !has_byte_permutes())));
        CHECK((linear_kernel_amx(id, 64) != nullptr) == (format->block > 1));
#endif
    }
}

TEST_CASE("linear: a packed panel gives back every row bit for bit") {
    for (const Format* format : formats()) {
        for (const size_t cols : {size_t(format->block), size_t(format->block) * 9})
            for (const size_t rows : {1, 15, 16, 17, 37}) {
                std::mt19937 random(1);
                const size_t row_bytes = format->row_bytes(cols);
                Guarded<std::byte> file(rows * row_bytes);
                std::vector<Scales> scales;
                fill_blocks(*format, Weights::random, random, file.data(), rows * cols / format->block,
                            scales);
                Guarded<std::byte> data(packed_bytes(*format, rows, cols));
                const PackedMatrix matrix = pack(*format, file.data(), rows, cols, data.data());
                std::vector<float> want(cols);
                size_t different = 0;
                for (size_t r = 0; r < rows; ++r) {
                    Guarded<float> got(cols);
                    unpack_row(matrix, r, got.data());
                    format->decode(file.data() + r * row_bytes, want.data(), cols);
                    different += std::memcmp(got.data(), want.data(), cols * sizeof(float)) != 0;
                    different += !got.intact();
                }
                INFO(fmt::format("{} {}x{}", format->name, rows, cols));
                CHECK(different == 0);
                CHECK(data.intact());
            }
    }
}

TEST_CASE("linear: every level, format and number of rows is within its bound") {
    Worst worst;
    int kinds = 0;
    for (const Format* format : formats())
        for (const size_t cols : columns_of(*format)) {
            const Problem p = make_problem(*format, 37, cols, 64, uint32_t(7 + cols), kinds++);
            int shape = 0;
            for (const size_t x_rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 32, 33, 48, 49, 64})
                for (const size_t rows : {1, 15, 16, 17, 37})
                    if (rows == 37 || (shape + kinds) % 3 == 0)
                        check(p, rows, x_rows, shape++ % 4 == 3, worst);
        }
    report(worst);
}

TEST_CASE("linear: every kind of weights meets every kind of inputs") {
    Worst worst;
    for (const Format* format : formats())
        for (int kinds = 0; kinds < 8; ++kinds) {
            const size_t cols = format->block == 1 ? 172 : 768;
            const Problem p = make_problem(*format, 22, cols, 16, uint32_t(kinds), kinds);
            for (const size_t x_rows : {1, 4, 7, 16}) check(p, 22, x_rows, false, worst);
        }
    report(worst);
}

// Panels are read one after the other or side by side, by the kind of machine: each in half of the cases.
TEST_CASE("linear: a row gives the same beside any number of others, as long as these are made int8") {
    const bool beside = reads_side_by_side();
    for (const Format* format : formats()) {
        const size_t cols = format->block == 1 ? 300 : 1280, rows = 37, most = 49;
        const Problem p = make_problem(*format, rows, cols, most, 9, 0);
        std::vector<std::byte> data(packed_bytes(*format, rows, cols));
        const PackedMatrix matrix = pack(*format, p.file.data(), rows, cols, data.data());
        for (const Isa isa : levels()) {
            const Activations activations = linear_kernel(isa, *format, 2).activations;
            std::vector<float> y(most * rows), want;
            for (size_t x_rows = most; x_rows >= 2; --x_rows) {
                const LinearKernel& kernel = linear_kernel(isa, *format, x_rows);
                if (kernel.activations != activations) continue;  // bfloat16 tiles
                set_reads_side_by_side(x_rows % 2 == 0);
                const size_t stride = kernel.activation_bytes(cols);
                std::vector<std::byte> x(x_rows * stride);
                for (size_t t = 0; t < x_rows; ++t)
                    kernel.prepare(p.x.data() + t * cols, cols, x.data(), t, x_rows);
                kernel.multiply(matrix, 0, matrix.panels(), x.data(), stride, x_rows, y.data(), rows, false);
                if (want.empty()) want = y;
                INFO(fmt::format("{} {} {} rows", isa_name(isa), format->name, x_rows));
                CHECK(std::memcmp(y.data(), want.data(), x_rows * rows * sizeof(float)) == 0);
            }
        }
    }
    set_reads_side_by_side(beside);
}

TEST_CASE("linear: many panels, and more activations than the caches hold") {
    Worst worst;
    for (const uint32_t id : {0u, 30u, 8u, 12u, 14u, 22u}) {
        const Format* format = find_format(id);
        check(make_problem(*format, 16 * 19 + 5, 1024, 1, 3, 0), 16 * 19 + 5, 1, false, worst);
        check(make_problem(*format, 16 * 19 + 5, 1280, 48, 5, 0), 16 * 19 + 5, 48, false, worst);
        check(make_problem(*format, 16 * 19 + 5, 1280, 7, 6, 0), 16 * 19 + 5, 7, true, worst);
        check(make_problem(*format, 35, 1280, 530, 4, 0), 35, 530, true, worst);
        check(make_problem(*format, 35, 1280, 530, 4, 0), 35, 530, false, worst);
    }
    report(worst);
}

TEST_CASE("linear: what is not finite in the activations reaches every result of its row and no other") {
    for (const Format* format : formats())
        for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")})
            for (const size_t x_rows : {1, 3, 6, 19, 40}) {
                const size_t cols = format->block == 1 ? 100 : 512;
                Problem p = make_problem(*format, 19, cols, x_rows, 5, 0);
                const size_t bad_row = x_rows / 2;
                p.x[bad_row * cols + cols - 3] = bad;
                for (const Isa isa : levels()) {
                    Guarded<std::byte> data(packed_bytes(*p.format, p.rows, cols));
                    const PackedMatrix matrix = pack(*p.format, p.file.data(), p.rows, cols, data.data());
                    const LinearKernel& kernel = linear_kernel(isa, *p.format, x_rows);
                    const size_t stride = kernel.activation_bytes(cols);
                    std::vector<std::byte> x(x_rows * stride);
                    for (size_t t = 0; t < x_rows; ++t)
                        kernel.prepare(p.x.data() + t * cols, cols, x.data(), t, x_rows);
                    std::vector<float> y(x_rows * p.rows);
                    kernel.multiply(matrix, 0, matrix.panels(), x.data(), stride, x_rows, y.data(), p.rows,
                                    false);
                    size_t wrong = 0;
                    for (size_t t = 0; t < x_rows; ++t)
                        for (size_t r = 0; r < p.rows; ++r)
                            wrong += std::isfinite(y[t * p.rows + r]) == (t == bad_row);
                    INFO(fmt::format("{} {} {} rows, {}", isa_name(isa), p.format->name, x_rows, bad));
                    CHECK(wrong == 0);
                }
            }
}

TEST_CASE("linear: a level that exists has a name, and the highest is found") {
    CHECK(std::string(isa_name(Isa::portable)) == "portable");
    MESSAGE(fmt::format("this machine: {}", isa_name(best_isa())));
}
