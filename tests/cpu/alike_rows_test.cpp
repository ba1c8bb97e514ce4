// A row of a step is computed as it would be alone, bit for bit, so that guesses that are checked together
// change no text: products of every format and level, and whole models.
#include "plan/alike_rows.h"
#include "backends/cpu/kernels/linear.h"
#include "support/backends.h"
#include "support/guarded.h"
#include "support/models.h"
#include "support/share.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

using namespace redline;
using namespace redline::cpu;
using namespace redline::test;

namespace {

constexpr size_t kMostRows = 16;  // of a step that checks guesses

// A matrix of random codes with sound scales.
std::vector<std::byte> random_weights(const Format& format, size_t rows, size_t cols, std::mt19937& random) {
    std::vector<std::byte> file(rows * format.row_bytes(cols));
    std::normal_distribution<float> normal(0.0f, 0.05f);
    for (size_t at = 0; at < file.size(); at += format.block_bytes) {
        if (format.block == 1) {
            const float value = normal(random);
            const uint32_t bits = std::bit_cast<uint32_t>(value);
            const uint16_t half = format.gguf_id == 1 ? float_to_half(value) : uint16_t(bits >> 16);
            std::memcpy(&file[at], format.block_bytes == 4 ? static_cast<const void*>(&bits) : &half,
                        format.block_bytes);
            continue;
        }
        for (uint32_t i = 0; i < format.block_bytes; ++i) file[at + i] = std::byte(random());
        if (format.name == "MXFP4")
            file[at] = std::byte(118 + random() % 8);
        else if (format.name != "NVFP4")
            format.set_scales(&file[at], normal(random), normal(random));
    }
    return file;
}

std::vector<float> product(const PackedMatrix& matrix, Isa isa, std::span<const float> x, size_t rows,
                           bool accumulate) {
    const LinearKernel& kernel = linear_kernel(isa, *matrix.format, rows);
    const size_t stride = kernel.activation_bytes(matrix.cols);
    Guarded<std::byte> prepared(rows * stride);
    for (size_t t = 0; t < rows; ++t)
        kernel.prepare(x.data() + t * matrix.cols, matrix.cols, prepared.data(), t, rows);
    std::vector<float> y(rows * matrix.rows, 0.375f);
    kernel.multiply(matrix, 0, matrix.panels(), prepared.data(), stride, rows, y.data(), matrix.rows,
                    accumulate);
    return y;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Codes whose products with one row stay where they are in the byte, which rounds in another order.
bool goes_alone(const Format& format, Isa isa) {
    const bool ternary = format.name == "TQ1_0" || format.name == "TQ2_0";
    if (isa >= Isa::avx512 && (ternary || format.name == "IQ1_S" || format.name == "IQ1_M")) return true;
    return isa >= Isa::avx2 && format.name == "Q1_0";
}

}  // namespace

TEST_CASE("alike rows: products of 2 to 16 rows are those of each alone, of all levels and formats") {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::set<std::string> others;
    for (const Format* format : all_formats()) {
        if (panel_fields(format->gguf_id).empty()) continue;
        const size_t rows = 90, cols = format->block == 1 ? 1100 : 1280;
        const std::vector<std::byte> file = random_weights(*format, rows, cols, random);
        PackedMatrix matrix{format, rows, cols, nullptr};
        Guarded<std::byte> packed(matrix.bytes());
        matrix.data = packed.data();
        for (size_t r = 0; r < rows; r += kPanelRows)
            pack_panel(*format, file.data() + r * format->row_bytes(cols), std::min(kPanelRows, rows - r),
                       cols, packed.data() + r / kPanelRows * matrix.panel_bytes());
        std::vector<float> x(kMostRows * cols);
        for (float& value : x) value = normal(random);
        for (const Isa isa : kIsaLevels) {
            if (!has_isa(isa)) continue;
            for (const bool accumulate : {false, true}) {
                bool same = true;
                std::vector<float> alone;
                for (size_t t = 0; t < kMostRows; ++t) {
                    const std::vector<float> one =
                        product(matrix, isa, std::span(x).subspan(t * cols, cols), 1, accumulate);
                    alone.insert(alone.end(), one.begin(), one.end());
                    set_reads_side_by_side(!reads_side_by_side());
                    const std::vector<float> again =
                        product(matrix, isa, std::span(x).subspan(t * cols, cols), 1, accumulate);
                    set_reads_side_by_side(!reads_side_by_side());
                    CHECK(same_bits(one, again));
                }
                for (size_t count = 2; count <= kMostRows; ++count)
                    same = same && same_bits(product(matrix, isa, x, count, accumulate),
                                             std::span(alone).first(count * rows));
                INFO(format->name, " ", isa_name(isa));
                if (goes_alone(*format, isa) && !same)
                    others.insert(fmt::format("{} ({})", format->name, isa_name(isa)));
                else
                    CHECK(same);
            }
        }
    }
    std::string list;
    for (const std::string& one : others) list += (list.empty() ? "" : ", ") + one;
    MESSAGE("one row alone rounds differently: ", list);
}

namespace {

EngineOptions alike_options(uint64_t context) {
    EngineOptions options{context, 64, uint32_t(kMostRows)};
    options.drafts = kMostRows - 1;
    return options;
}

// Logits behind each token from `from` on, of steps of so many rows.
std::vector<float> logits_by(const Model& model, const EngineOptions& options, std::span<const Token> text,
                             size_t from, size_t rows) {
    Session session = must(Session::create(model, options));
    must(session.feed(text.first(from)));
    std::vector<float> all;
    for (size_t at = from; at < text.size(); at += rows) {
        const auto some = text.subspan(at, std::min(rows, text.size() - at));
        must(session.feed_rows(some, 0));
        for (size_t i = 0; i < some.size(); ++i) {
            session.choose_row(i);
            const auto logits = session.logits();
            all.insert(all.end(), logits.begin(), logits.end());
        }
    }
    return all;
}

std::vector<Token> long_text(size_t count) {
    std::vector<Token> text;
    for (size_t i = 0; i < count; ++i) text.push_back(Token((i * i * 7 + i * 13 + 5) % 250 + 1));
    return text;
}

}  // namespace

TEST_CASE(
    "alike rows: steps of several rows leave the logits of single ones, unless a backend says that they may not") {
    // More keys than a part of an attention has, where a model has positions for them.
    const std::vector<Token> longest = long_text(280);
    const Share share = share_of_cases();
    const auto backend = redline::test::cpu(2);
    std::string others;
    size_t number = 0;
    for (const std::string& name : tiny_models()) {
        if (!share.takes(number++) || !runs_on(*backend, name)) continue;
        const Model model = tiny(*backend, name);
        const bool reaches = Engine::create(model, alike_options(512)).ok();
        const EngineOptions options = alike_options(reaches ? 512 : 128);
        const std::span<const Token> text = std::span(longest).first(reaches ? 280 : 100);
        const size_t from = text.size() - 30;
        bool promised = true;
        const std::vector<Plan> plans = must(engine_plans(model, options));
        for (const Plan& plan : plans)
            promised = promised && alike_rows(*backend, must(lower(plan, *backend, true))) == kAlikeRows;
        const std::vector<float> want = logits_by(model, options, text, from, 1);
        std::string rows;
        for (const size_t count : {2u, 5u, 9u, 16u})
            if (!same_bits(want, logits_by(model, options, text, from, count)))
                rows += fmt::format(" {}", count);
        INFO(name, rows);
        if (promised) CHECK(rows.empty());
        if (!promised) others += fmt::format(" {}", name);
    }
    MESSAGE("nothing is promised of:", others);
}
