// The keys by which verdicts of kernels, tunings and times are kept: what chooses a kernel tells them apart,
// and what is only a name or a number that the kernel is given does not.
#include "plan/kernel_key.h"
#include "cases/kernel_cases.h"
#include "plan/backend.h"
#include "plan/ops/fields.h"
#include "support/weight_infos.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

using namespace redline;
using namespace redline::test;

namespace {

struct Ops {
    std::vector<WeightInfo> weights = {matrix(8, 64), vector(8),      matrix(64, 64), matrix(64, 64),
                                       vector(64),    matrix(64, 64), vector(64),     matrix(64, 64, "F16")};
    Weight router{0}, bias{1}, w{2}, other{3}, gain{4}, third{5}, other_gain{6}, halfs{7};
    PlanBuilder plan{weights, {64, 4, CacheType::f16}, 1, 1};
    Slot x = plan.slot(64), y = plan.slot(64), z = plan.slot(64), ids = plan.slot(2), scales = plan.slot(2);
    uint32_t near_pairs = plan.add_rope({false, std::vector<double>(16, 1.0)}),
             half_split = plan.add_rope({true, std::vector<double>(16, 1.0)}),
             faster = plan.add_rope({false, std::vector<double>(16, 2.0)});
    Cache cache = plan.cache(1, 32), same_cache = plan.cache(1, 32), ring = plan.cache(1, 32, 8);
    HeadShape heads{2, 1, 32};

    std::string key(const Op& op) const { return kernel_key(op, plan.plan()); }
    Route route() const { return {x, router, ids, scales, 2}; }
    Attention attention() const { return {x, y, cache, heads, 0.1f}; }
};

// The key of an op with one field changed.
template <typename T>
T with(T op, const std::function<void(T&)>& change) {
    change(op);
    return op;
}

// An op as text, field by field: what its key has to tell apart.
class Described {
public:
    Described(const Op& op, const Plan& plan) : plan_(plan) {
        add(op_name(op));
        std::visit([this](const auto& o) { field(o); }, op);
    }
    std::string text;

private:
    void add(std::string_view value) { text += fmt::format("{} ", value); }
    template <typename T>
    void field(const T& value) {
        if constexpr (std::is_same_v<T, float>) {
            const bool alone = value == 0 || std::abs(value) == 1 || !std::isfinite(value);
            add(alone ? fmt::to_string(value) : value > 0 ? "above 0" : "below 0");
        } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
            add(fmt::to_string(uint64_t(value)));
        } else if constexpr (std::is_same_v<T, Slot>) {
            if (!value) return add("-");
            const auto met = slots_.emplace(value.index, slots_.size()).first;
            const SlotInfo& info = plan_.slot(value);
            add(fmt::format("s{} {}{}", met->second, info.width, info.of_outputs ? " outputs" : ""));
        } else if constexpr (std::is_same_v<T, Weight>) {
            if (!value) return add("-");
            const Tensor& tensor = plan_.weight(value).tensor;
            add(fmt::format("{} {}x{}x{} {}", tensor.format->name, tensor.shape.count, tensor.shape.rows,
                            tensor.shape.cols, int(plan_.weight(value).role)));
        } else if constexpr (std::is_same_v<T, Cache>) {
            if (!value) return add("-");
            const CacheInfo& c = plan_.cache(value);
            add(fmt::format("{} {} {} {} {} {} {}", cache_types_name(c.types), c.kv_heads, c.head_dim,
                            c.window, c.state_floats, c.rank, c.ratio));
        } else if constexpr (requires { value.has_value(); }) {
            if (!value) return add("-");
            field(*value);
        } else if constexpr (requires { value.max_size(); }) {
            for (const auto& one : value) field(one);
        } else {
            const auto one = [&](const auto& part) {
                const void* const at = &part;
                if constexpr (std::is_same_v<T, BlockScores>)
                    if (at == &value.y) return add("as the context");
                if constexpr (std::is_same_v<T, ChooseBlocks>)
                    if (at == &value.scores) return add("as the context");
                if constexpr (std::is_same_v<T, Rope> || std::is_same_v<T, RopeStore>)
                    if (at == &value.rope) return add(rope(value.rope));
                field(part);
            };
            visit_fields(value, [&](const auto&... parts) { (one(parts), ...); });
        }
    }

    std::string rope(uint32_t index) const {
        const RopeSpec& spec = plan_.ropes[index];
        return fmt::format("rope {} {}", spec.half_split, spec.inverse_frequency.size());
    }

    const Plan& plan_;
    std::map<int32_t, size_t> slots_;
};

// The number of fields of a type in an op and its parts.
template <typename Index>
size_t count_fields(const auto& of) {
    using T = std::remove_cvref_t<decltype(of)>;
    if constexpr (std::is_same_v<T, Index>) {
        return 1;
    } else if constexpr (requires { of.max_size(); }) {
        size_t count = 0;
        for (const auto& one : of) count += count_fields<Index>(one);
        return count;
    } else if constexpr (std::is_aggregate_v<T>) {
        size_t count = 0;
        visit_fields(of, [&](const auto&... fields) { count = (count_fields<Index>(fields) + ... + 0); });
        return count;
    } else {
        return 0;
    }
}

template <typename Index>
size_t count_indices(auto op) {
    size_t count = 0;
    op.visit_indices([&](auto&... all) {
        count += (size_t(std::is_same_v<std::remove_cvref_t<decltype(all)>, Index>) + ... + 0);
    });
    return count;
}

template <size_t kAt = 0>
void check_indices() {
    if constexpr (kAt < std::variant_size_v<Op>) {
        using T = std::variant_alternative_t<kAt, Op>;
        INFO(T::kName);
        CHECK(count_indices<Slot>(T()) == count_fields<Slot>(T()));
        CHECK(count_indices<Weight>(T()) == count_fields<Weight>(T()));
        CHECK(count_indices<Cache>(T()) == count_fields<Cache>(T()));
        check_indices<kAt + 1>();
    }
}

}  // namespace

TEST_CASE("kernel key: routers, activations, softcaps and ropes that are other kernels have other keys") {
    const Ops o;
    const auto differ = [&](const Op& a, const Op& b) {
        CAPTURE(op_text(a, o.plan.plan()));
        CHECK(o.key(a) != o.key(b));
    };
    const Route route = o.route(), biased = with<Route>(route, [&](Route&r) { r.bias = o.bias; });
    for (const Gating gating :
         {Gating::sigmoid, Gating::softmax_of_selected, Gating::sparse_mixer, Gating::sqrt_softplus})
        differ(route, with<Route>(route, [&](Route& r) { r.gating = gating; }));
    differ(route, with<Route>(route, [](Route& r) { r.normalise = false; }));
    differ(route, with<Route>(route, [](Route& r) { r.scale = 2.5f; }));
    differ(route, with<Route>(route, [](Route& r) { r.groups = {4, 2, false}; }));
    differ(with<Route>(route,
                       [](Route& r) {
                           r.groups = {4, 2, false};
                       }),
           with<Route>(route, [](Route& r) {
               r.groups = {4, 2, true};
           }));
    differ(route, biased);
    differ(biased, with<Route>(biased, [](Route& r) { r.bias_of = BiasOf::logits; }));
    const Product gated = products::gated(o.x, o.w, o.other, o.y);
    differ(gated, with<Product>(gated, [](Product& g) { g.act = Act::gelu_tanh; }));
    differ(gated, with<Product>(gated, [&](Product& g) { g.norm = {o.gain, 1e-5f}; }));
    differ(gated, with<Product>(gated, [&](Product& g) { g.parts[1].w = o.halfs; }));
    const Product linear = products::linear(o.x, o.w, o.y),
                  expert = products::by_expert(o.x, o.w, o.y, {o.ids, 2});
    differ(linear, with<Product>(linear, [](Product& p) { p.accumulate = true; }));
    differ(linear, with<Product>(linear, [](Product& p) { p.function = Function::silu; }));
    differ(linear, with<Product>(linear, [&](Product& p) { p.parts[0].bias = o.gain; }));
    const std::array<Product::Part, 2> pair = {{{o.w, {}, o.y}, {o.other, {}, o.z}}};
    differ(gated, products::group(o.x, pair));
    differ(products::group(o.x, pair), products::group(o.x, std::span(pair).first(1)));
    differ(linear, expert);
    differ(expert, with<Product>(expert, [](Product& p) { p.experts.per_expert = true; }));
    differ(expert, with<Product>(expert, [&](Product& p) { p.experts.scales = o.scales; }));
    differ(linear, products::by_head(o.x, o.w, o.y, {64, 64}));
    differ(each::silu_times(o.y, o.x, o.z), each::swiglu_clamped(o.y, o.x, o.z));
    differ(each::silu_times(o.y, o.x, o.z), each::silu_times(o.x, o.x, o.z));
    differ(each::scale(o.y, 2.0f), each::softcap(o.y, 2.0f, 30.0f));
    differ(each::softcap(o.y, 1.0f, 30.0f), each::softcap(o.y, 2.0f, 30.0f));
    const Attention attention = o.attention();
    differ(attention, with<Attention>(attention, [](Attention& a) { a.softcap = 50.0f; }));
    differ(attention, with<Attention>(attention, [](Attention& a) { a.window = 8; }));
    differ(with<Attention>(attention, [](Attention& a) { a.window = 8; }),
           with<Attention>(attention, [](Attention& a) {
               a.window = 8;
               a.chunks = true;
           }));
    const auto of_blocks = [&](uint32_t ratio) {
        return with<Attention>(attention, [&](Attention& a) { a.keys = {Keys::blocks, o.ids, ratio}; });
    };
    differ(attention, of_blocks(8));
    differ(of_blocks(8), of_blocks(16));
    differ(Rope{o.x, 2, 32, o.near_pairs}, Rope{o.x, 2, 32, o.half_split});
    // In place, or from one slot to another.
    differ(RmsNorm{o.x, {o.gain, 1e-5f}, 64, o.x}, RmsNorm{o.x, {o.gain, 1e-5f}, 64, o.y});
    differ(each::add(o.y, o.x, 1.0f), each::add(o.scales, o.ids, 1.0f));
}

TEST_CASE("kernel key: each element-wise op has another key, and one that begins with its name") {
    const Ops o;
    std::set<std::string> keys;
    for (size_t i = 0; i < each_rows().size(); ++i) {
        const EachFacts& row = each_rows()[i];
        const bool pair = row.operands == Operands::pair;
        Each op{EachRow(i), o.y};
        if (pair || row.operands == Operands::rows) op.x = o.x;
        if (pair) op.z = o.z;
        if (row.operands == Operands::column) op.column = o.gain;
        CHECK(o.key(op).starts_with(std::string(row.name) + " "));
        keys.insert(o.key(op));
    }
    CHECK(keys.size() == each_rows().size());
}

TEST_CASE("kernel key: names of slots, weights and caches, and factors, are the same kernel") {
    const Ops o;
    CHECK(o.key(products::gated(o.x, o.w, o.other, o.y, Act::silu, {o.gain, 1e-5f})) ==
          o.key(products::gated(o.y, o.other, o.third, o.z, Act::silu, {o.other_gain, 1e-6f})));
    CHECK(o.key(each::add(o.y, o.x, 0.5f)) == o.key(each::add(o.x, o.z, 0.25f)));
    const Attention attention = o.attention();
    CHECK(o.key(attention) ==
          o.key(with<Attention>(attention, [&](Attention& a) { a.cache = o.same_cache; })));
    CHECK(o.key(attention) != o.key(with<Attention>(attention, [&](Attention& a) { a.cache = o.ring; })));
    CHECK(o.key(Rope{o.x, 2, 32, o.near_pairs}) == o.key(Rope{o.y, 2, 32, o.faster}));
}

TEST_CASE("kernel key: the cache's type, pages, and how many rows a step may have are part of it") {
    const auto key = [](uint64_t context, uint32_t batch, CacheType type, uint64_t pages) {
        PlanBuilder p({}, {context, batch, type, 2, pages}, batch, 1);
        const Slot q = p.slot(64), y = p.slot(64);
        const Cache cache = p.cache(1, 32);
        return kernel_key(Attention{q, y, cache, {2, 1, 32}, 0.1f}, p.plan());
    };
    const std::string usual = key(512, 512, CacheType::f16, 0);
    CHECK(key(4096, 1024, CacheType::f16, 0) == usual);
    std::set<std::string> keys = {usual, key(512, 512, CacheType::q8_0, 0), key(512, 512, CacheType::f16, 4)};
    for (const uint32_t batch : {1u, 8u, 64u}) keys.insert(key(512, batch, CacheType::f16, 0));
    CHECK(keys.size() == 6);
    // The blocks of a longer context are scored by the same kernel.
    const auto scores = [](uint32_t blocks, uint32_t heads) {
        PlanBuilder p({}, {64, 4, CacheType::f16}, 1, 1);
        const Cache keys_of = p.latents(32, 32);
        const Slot q = p.slot(32 * heads), y = p.slot(blocks);
        return kernel_key(BlockScores{q, y, keys_of, heads, 8}, p.plan());
    };
    CHECK(scores(8, 2) == scores(512, 2));
    CHECK(scores(8, 2) != scores(8, 4));
}

TEST_CASE("kernel key: two ops of the shared cases have one key only if all of their fields are alike") {
    const Format* const formats[] = {find_format("F32"), find_format("Q4_K")};
    std::vector<OpCase> cases = op_cases(formats);
    for (OpCase& c : kernel_cases(std::span(formats).first(1))) cases.push_back(std::move(c));
    std::map<std::string, std::string> by_key, by_text;
    size_t ops = 0;
    for (const OpCase& c : cases) {
        Fixture fixture(1, 1, 256);
        const Plan plan = case_plan(c, fixture, c.rows, c.rows).value();
        for (const Step& step : plan.steps) {
            const std::string key = kernel_key(step.op, plan);
            std::string text = Described(step.op, plan).text;
            // Properties of the plan: its number of rows, and pages where the op depends on them.
            text += fmt::format("of {}{}", row_class_name(row_class_of(plan.max_rows)),
                                key.find(", pages") != key.npos ? " in pages" : "");
            ++ops;
            const std::string& same_key = by_key.emplace(key, text).first->second;
            if (same_key != text) FAIL_CHECK(key << "\n" << same_key << "\n" << text);
            const std::string& same_text = by_text.emplace(text, key).first->second;
            if (same_text != key) FAIL_CHECK(text << "\n" << same_text << "\n" << key);
        }
    }
    MESSAGE(ops << " ops, " << by_key.size() << " keys");
    CHECK(by_key.size() > 1000);
}

TEST_CASE("kernel key: every slot, weight and cache that an op has is visited") {
    check_indices();
}

TEST_CASE("kernel key: people read it without its fingerprint") {
    const Ops o;
    const std::string key = o.key(products::gated(o.x, o.w, o.other, o.y));
    CHECK(kernel_text(key) == "gated F32 64 x 64, F32 64 x 64, one row");
    CHECK(key.starts_with(kernel_text(key)));
    CHECK(kernel_text(kBestKey) == kBestKey);
    CHECK(kernel_text("") == "");
}

TEST_CASE("kernel key: a verdict is on a kernel in a variant, which people read behind it") {
    const Ops o;
    const std::string key = o.key(products::gated(o.x, o.w, o.other, o.y));
    CHECK(verdict_key(key, "") == key);
    TakenVariants taken;
    CHECK(taken_text(taken) == "");
    taken[size_t(RowClass::some)] = {{"queries", 4}, {"threads", 64}};
    const std::string verdict = verdict_key(key, taken_text(taken));
    CHECK(verdict != key);
    CHECK(kernel_of_verdict(verdict) == key);
    CHECK(kernel_of_verdict(key) == key);
    CHECK(kernel_text(verdict) ==
          "gated F32 64 x 64, F32 64 x 64, one row in the variant 9 to 128 rows: queries 4, threads 64");
}

TEST_CASE("kernel key: in place of a wrong default two values of each choice are tried, and no int8") {
    const std::vector<Choices> choices = {
        {choice("int8", 0, {1}), choice("lanes", 8, {16}), choice("alone", 1, {})},
        {choice("lanes", 8, {16}), choice("queries", 4, {1, 2, 8})}};
    CHECK(other_variants(choices) ==
          std::vector<Variant>{{{"lanes", 16}}, {{"queries", 1}}, {{"queries", 8}}});
}

TEST_CASE("rounding: halfs of scaled rows lose bits below 2^-14, whatever the scale") {
    CHECK(to_half(9).block == 0x1p-34);
    CHECK(to_half(0).block == 0x1p-25);
    CHECK(to_half(-5).block == 0x1p-20);
}
