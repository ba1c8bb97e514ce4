// The op cases of mixtures of experts.
#pragma once

#include "measure/op_case.h"

namespace redline {

inline OpCase experts_case(const Format& format, Gating gating, bool normalise, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("experts {} gating {}{} rows {}", format.name, int(gating),
                         normalise ? " normalised" : "", rows);
    c.rows = rows;
    c.alike = true;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const uint64_t experts = 7, dim = 256, hidden = 256;
        const Weight x = f.input(dim), router = f.matrix(*find_format("F32"), experts, dim);
        const Weight gate = f.matrix(format, hidden, dim, experts),
                     up = f.matrix(format, hidden, dim, experts);
        const Weight down = f.matrix(format, dim, hidden, experts);
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x);
            const Slot y = p.embed(x);
            const auto routing = p.route(in, router, 3, gating, normalise, 0.7f);
            p.experts_add(y, in, routing, {gate, up, down});
            return y;
        };
    };
    return c;
}

struct ExpertShape {
    uint64_t experts, used, dim, hidden;
    int favourite = -1;  // an expert that every row picks first
    std::string_view router = "F32";
};

// A router that norms and scales its input.
inline OpCase normed_router_case(std::string_view router, uint32_t experts, uint32_t used, uint32_t dim,
                                 float x_scale, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("router {} {} of {} by {} normed, scaled by {} rows {}", router, used, experts, dim,
                         x_scale, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(dim), w = f.matrix(*find_format(router), experts, dim);
        const Norm norm = {f.vector(dim), 1e-5f};
        return [=](PlanBuilder& p) {
            const Slot scales = p.slot(used);
            Route op{p.embed(x, 3.0f), w, p.slot(used), scales, used, Gating::softmax, true};
            op.norm = norm;
            op.x_scale = x_scale;
            p.append(op);
            return scales;
        };
    };
    return c;
}

inline OpCase many_rows_case(const Format& format, ExpertShape s, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("experts {} {} of {} by {} {}x{} rows {}{}", format.name, s.used, s.experts,
                         s.router, s.hidden, s.dim, rows, s.favourite < 0 ? "" : " one for all");
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(s.dim), router = f.matrix(*find_format(s.router), s.experts, s.dim);
        const Weight gate = f.matrix(format, s.hidden, s.dim, s.experts),
                     up = f.matrix(format, s.hidden, s.dim, s.experts);
        const Weight down = f.matrix(format, s.dim, s.hidden, s.experts);
        std::vector<float> bias(s.experts, 0.0f);
        if (s.favourite >= 0) bias[size_t(s.favourite)] = 2.0f;
        const Weight favour = s.favourite >= 0 ? f.vector(bias) : Weight{};
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x), y = p.embed(x);
            const uint32_t used = uint32_t(s.used);
            const PlanBuilder::Routing to{p.slot(used), p.slot(used), used};
            p.append(Route{in, router, to.ids, to.scales, used, Gating::softmax, true, 0.7f, favour});
            p.experts_add(y, in, to, {gate, up, down});
            return y;
        };
    };
    return c;
}

// The mixture of gpt-oss: the router's logits and every product have a bias, and activations reach their
// limits.
inline OpCase biased_experts_case(const Format& format, ExpertShape s, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("experts with biases {} {} of {} {}x{} rows {}", format.name, s.used, s.experts,
                         s.hidden, s.dim, rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(s.dim), router = f.matrix(*find_format("F32"), s.experts, s.dim);
        const Weight gate = f.matrix(format, s.hidden, s.dim, s.experts),
                     up = f.matrix(format, s.hidden, s.dim, s.experts);
        const Weight down = f.matrix(format, s.dim, s.hidden, s.experts);
        std::vector<float> large(s.hidden * s.experts);
        for (size_t i = 0; i < large.size(); ++i) large[i] = float(i % 23) - 11.0f;
        const Weight route_bias = f.vector(s.experts), gate_bias = f.vector(large), up_bias = f.vector(large);
        const Weight down_bias = f.vector(s.dim * s.experts);
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x), y = p.embed(x);
            const auto to = p.route(in, router, uint32_t(s.used), Gating::softmax_of_selected, false, 1.0f,
                                    route_bias, BiasOf::logits);
            p.experts_add(y, in, to, {gate, up, down, Act::swiglu_clamped, gate_bias, up_bias, down_bias});
            return y;
        };
    };
    return c;
}

// A layer whose second half are experts, then the next layer's products: rows are passed on in several ways.
// `far`: another op also reads the experts' input row.
inline OpCase experts_layer_case(const Format& format, ExpertShape s, uint32_t rows, bool far = false) {
    OpCase c;
    c.name = fmt::format("experts layer {} {} of {} {}x{} rows {}{}", format.name, s.used, s.experts,
                         s.hidden, s.dim, rows, far ? " and another" : "");
    c.each_op = true;
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x0 = f.input(s.dim), h0 = f.input(512), gain = f.vector(s.dim),
                     next_gain = f.vector(s.dim), router = f.matrix(*find_format("F32"), s.experts, s.dim);
        const Weight out = f.matrix(format, s.dim, 512), next = f.matrix(format, 48, s.dim);
        const Weight gate = f.matrix(format, s.hidden, s.dim, s.experts),
                     up = f.matrix(format, s.hidden, s.dim, s.experts);
        const Weight down = f.matrix(format, s.dim, s.hidden, s.experts);
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(x0);
            p.append(products::linear(p.embed(h0), out, x, {}, {}, true));
            const Norm norm{gain, 1e-5f};
            if (far) {
                const Slot h = p.rms_norm(x, norm);
                const auto routing = p.route(h, router, uint32_t(s.used), Gating::softmax, true);
                p.experts_add(x, h, routing, {gate, up, down});
                p.append(each::add(x, h, 1.0f));
            } else {
                p.expert_block(x, norm, {router, uint32_t(s.used)}, {gate, up, down});
            }
            return p.linear(x, next, {next_gain, 1e-5f});
        };
    };
    return c;
}

// Blocks of experts with the options of gpt-oss, and every way of choosing experts: each block passes its row
// to the next. Sums have biases so large that they show which experts were chosen, whatever the products'
// rounding. `beside`: the format of a shared expert, if there is one; every second one is weighted.
inline OpCase experts_ways_case(const Format& format, ExpertShape s, std::string_view beside = {}) {
    OpCase c;
    c.name = fmt::format("experts blocks {} {} of {} {}x{}{}{} in every way", format.name, s.used, s.experts,
                         s.hidden, s.dim, beside.empty() ? "" : " beside one of ", beside);
    c.each_op = true;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x0 = f.input(s.dim), gain = f.vector(s.dim),
                     router = f.matrix(*find_format(s.router), s.experts, s.dim);
        const Weight gate = f.matrix(format, s.hidden, s.dim, s.experts),
                     up = f.matrix(format, s.hidden, s.dim, s.experts),
                     down = f.matrix(format, s.dim, s.hidden, s.experts);
        std::vector<float> large(s.hidden * s.experts), larger(s.dim * s.experts), of_token;
        for (size_t i = 0; i < large.size(); ++i) large[i] = float(i % 23) - 11.0f;
        for (size_t i = 0; i < larger.size(); ++i) larger[i] = float(i * 7919 % 601) - 300.0f;
        for (uint64_t i = 0; i < s.used; ++i) of_token.push_back(float((i * 5 + 3) % s.experts));
        const Weight bias = f.vector(s.experts), table = f.vector(of_token), gate_bias = f.vector(large),
                     up_bias = f.vector(large), down_bias = f.vector(larger);
        Weight shared_router, shared_gate, shared_up, shared_down;
        if (!beside.empty()) {
            const Format& other = *find_format(beside);
            shared_router = f.matrix(*find_format(s.router), 1, s.dim);
            shared_gate = f.matrix(other, s.hidden, s.dim);
            shared_up = f.matrix(other, s.hidden, s.dim);
            shared_down = f.matrix(other, s.dim, s.hidden);
        }
        return [=](PlanBuilder& p) {
            const uint32_t used = uint32_t(s.used), dim = uint32_t(s.dim);
            const Slot x = p.embed(x0);
            bool weighted = false;
            const auto add = [&](Route route, Act act = Act::silu, bool biased = false) {
                const Slot normed = p.slot(dim), hidden = p.slot(uint32_t(s.hidden) * used);
                route.x = normed;
                route.w = router;
                route.ids = p.slot(used);
                route.scales = p.slot(used);
                route.used = used;
                Product gated = products::gated_by_expert(normed, gate, up, hidden, {route.ids, used}, act);
                const Product sum =
                    products::by_expert(hidden, down, x, {route.ids, used, true, route.scales}, down_bias);
                SharedExpert shared;
                if (shared_gate)
                    shared = {{}, shared_gate, shared_up, shared_down, {}, {}, p.slot(uint32_t(s.hidden)),
                              act};
                weighted = !weighted;
                if (shared_gate && weighted) {
                    shared.router = shared_router;
                    shared.ids = p.slot(1);
                    shared.scale = p.slot(1);
                }
                if (biased) {
                    gated.parts[0].bias = gate_bias;
                    gated.parts[1].bias = up_bias;
                }
                p.append(ExpertBlock{{x, {gain, 1e-5f}, dim, normed}, route, gated, sum, shared});
            };
            Route way;
            way.gating = Gating::softmax_of_selected;
            way.bias = bias;
            way.bias_of = BiasOf::logits;
            add(way, Act::swiglu_clamped, true);
            way.gating = Gating::sigmoid;
            way.scale = 1.5f;
            way.bias_of = BiasOf::choice;
            way.groups = {5, 3, true};
            add(way);
            way.gating = Gating::softmax;
            way.groups = {5, 2, false};
            add(way, Act::gelu_tanh);
            way.gating = Gating::sqrt_softplus;
            way.groups = {};
            add(way);
            way = {};
            way.normalise = false;
            for (const Gating gating : {Gating::sigmoid, Gating::sparse_mixer}) {
                way.gating = gating;
                add(way);
            }
            way.gating = Gating::sqrt_softplus;
            way.table = table;
            add(way);
            return x;
        };
    };
    return c;
}

// A shared expert beside the chosen ones, as in a layer.
struct SharedShape {
    uint64_t hidden;
    std::string_view format;
    bool weighted = true;  // by the sigmoid of a separate router
    bool read = false;     // another op reads the experts' input row, too, so that they are no block
    bool biased = false;   // biases of products and of the choice, which then uses sigmoids
    uint32_t layers = 1;   // each passes its row to the next
    bool handed = true;    // the first gets its row from a product, which may write it as int8
};

inline OpCase shared_expert_case(const Format& format, ExpertShape s, SharedShape shared, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("experts {} {} of {} by {} {}x{}{} beside {}one {} of {}{}{}{} rows {}", format.name,
                         s.used, s.experts, s.router, s.hidden, s.dim, shared.biased ? " with biases" : "",
                         shared.weighted ? "a weighted " : "", shared.format, shared.hidden,
                         shared.read ? " and another" : "", shared.layers > 1 ? " layer after layer" : "",
                         shared.handed ? "" : " from the beginning", rows);
    c.each_op = true;
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Format& beside = *find_format(shared.format);
        const Weight x0 = f.input(s.dim), h0 = f.input(512), gain = f.vector(s.dim),
                     next_gain = f.vector(s.dim), router = f.matrix(*find_format(s.router), s.experts, s.dim),
                     shared_router = f.matrix(*find_format(s.router), 1, s.dim);
        const Weight out = f.matrix(format, s.dim, 512), next = f.matrix(format, 48, s.dim);
        const Weight gate = f.matrix(format, s.hidden, s.dim, s.experts),
                     up = f.matrix(format, s.hidden, s.dim, s.experts),
                     down = f.matrix(format, s.dim, s.hidden, s.experts);
        const Weight shared_gate = f.matrix(beside, shared.hidden, s.dim),
                     shared_up = f.matrix(beside, shared.hidden, s.dim),
                     shared_down = f.matrix(beside, s.dim, shared.hidden);
        std::vector<float> large(s.hidden * s.experts);
        for (size_t i = 0; i < large.size(); ++i) large[i] = float(i % 23) - 11.0f;
        const auto bias = [&](auto values) { return shared.biased ? f.vector(values) : Weight{}; };
        const Weight route_bias = bias(s.experts), gate_bias = bias(large), up_bias = bias(large),
                     down_bias = bias(s.dim * s.experts);
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(x0);
            if (shared.handed) p.append(products::linear(p.embed(h0), out, x, {}, {}, true));
            const Gating gating = shared.biased ? Gating::sigmoid : Gating::softmax;
            const PlanBuilder::Experts experts{gate, up, down, Act::silu, gate_bias, up_bias, down_bias};
            for (uint32_t i = 0; i < shared.layers; ++i) {
                if (!shared.read) {
                    p.expert_block(
                        x, {gain, 1e-5f}, {router, uint32_t(s.used), gating, true, 1.0f, route_bias}, experts,
                        {shared.weighted ? shared_router : Weight{}, shared_gate, shared_up, shared_down});
                    continue;
                }
                const Slot h = p.rms_norm(x, {gain, 1e-5f});
                p.experts_add(x, h, p.route(h, router, uint32_t(s.used), gating, true, 1.0f, route_bias),
                              experts);
                if (shared.weighted)
                    p.experts_add(x, h, p.route(h, shared_router, 1, Gating::sigmoid, false),
                                  {shared_gate, shared_up, shared_down});
                else
                    p.linear_add(x, p.gated(h, shared_gate, shared_up, Act::silu), shared_down);
                p.append(each::add(x, h, 1.0f));
            }
            return p.linear(x, next, {next_gain, 1e-5f});
        };
    };
    return c;
}

// Rows per token or per entry, results per entry or summed: ways that models do not combine.
inline OpCase expert_linear_case(const Format& format, uint32_t rows, bool per_expert, bool weighted,
                                 std::optional<Function> function = {}) {
    OpCase c;
    c.name = fmt::format("expert_linear {} rows {}{}{}{}", format.name, rows, per_expert ? " per expert" : "",
                         weighted ? " weighted" : "", function ? " squared relu" : "");
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        constexpr uint32_t kExperts = 5, kUsed = 3, kCols = 256, kRows = 40;
        const Weight to_route = f.input(kCols), router = f.matrix(*find_format("F32"), kExperts, kCols);
        const Weight x = f.input(kCols * (per_expert ? kUsed : 1)), y0 = f.input(kRows);
        const Weight w = f.matrix(format, kRows, kCols, kExperts);
        return [=](PlanBuilder& p) {
            const auto to = p.route(p.embed(to_route), router, kUsed, Gating::softmax, true);
            const Slot y = weighted ? p.embed(y0) : p.slot(kRows * kUsed);
            const ChosenExperts chosen = {to.ids, kUsed, per_expert, weighted ? to.scales : Slot{}};
            p.append(products::by_expert(p.embed(x), w, y, chosen, {}, function));
            return y;
        };
    };
    return c;
}

// Formats of chosen experts and of the one for all, as files mix them.
constexpr std::string_view kBeside[][2] = {
    {"Q3_K", "Q4_K"}, {"Q3_K", "Q5_K"}, {"Q3_K", "Q6_K"}, {"Q4_K", "Q5_K"},   {"Q4_K", "Q6_K"},
    {"Q5_K", "Q6_K"}, {"Q6_K", "Q4_K"}, {"Q6_K", "Q5_K"}, {"IQ4_XS", "Q5_K"}, {"IQ4_XS", "Q6_K"}};

// Experts with no rows, a few and many: rows are sorted by expert before they are multiplied.
inline void add_expert_cases(std::vector<OpCase>& cases, std::span<const Format* const> formats) {
    const Format& q8 = *find_format("Q8_0");
    const Format& q4k = *find_format("Q4_K");
    cases.push_back(many_rows_case(q8, {33, 2, 96, 160}, 40));
    cases.push_back(many_rows_case(q8, {3, 2, 96, 160}, 150));
    cases.push_back(many_rows_case(q8, {16, 1, 64, 96, 5}, 100));
    cases.push_back(many_rows_case(q4k, {8, 2, 256, 256, 7}, 70));
    cases.push_back(many_rows_case(*find_format("F16"), {1, 1, 72, 40}, 65));
    cases.push_back(many_rows_case(*find_format("BF16"), {3, 2, 96, 160}, 150));
    cases.push_back(many_rows_case(*find_format("F32"), {4, 2, 43, 17}, 33));
    cases.push_back(many_rows_case(q8, {1024, 64, 32, 32}, 33));
    for (const uint32_t rows : {1u, 5u, 40u}) {
        cases.push_back(normed_router_case("F32", 9, 3, 96, 0.125f, rows));
        cases.push_back(normed_router_case("F32", 70, 9, 301, 1.0f, rows));
        cases.push_back(normed_router_case("F16", 128, 8, 1056, 1.0f, rows));
        cases.push_back(normed_router_case("Q8_0", 33, 2, 96, 0.125f, rows));
    }
    // Few rows, whose experts are summed in one go, as far as there is room for their activations.
    for (const uint32_t rows : {1u, 3u}) cases.push_back(many_rows_case(q8, {12, 8, 96, 160}, rows));
    cases.push_back(many_rows_case(q8, {5, 4, 32, 8192}, 1));
    cases.push_back(many_rows_case(q8, {3, 2, 32, 24576}, 1));
    for (const Format* format : formats)
        for (const uint32_t rows : {1u, 2u})
            cases.push_back(experts_layer_case(*format, {10, 8, 256, 256}, rows));
    cases.push_back(experts_layer_case(q4k, {9, 1, 256, 512}, 1));
    cases.push_back(experts_layer_case(q8, {5, 3, 96, 160}, 1));
    cases.push_back(experts_layer_case(q8, {40, 2, 64, 32}, 1));
    cases.push_back(experts_layer_case(q8, {12, 4, 64, 96}, 1, true));
    cases.push_back(experts_layer_case(*find_format("F16"), {12, 4, 64, 96}, 1));
    for (const char* name : {"MXFP4", "Q8_0", "F32"})
        for (const uint32_t rows : {1u, 5u, 40u})
            cases.push_back(biased_experts_case(*find_format(name), {7, 3, 96, 160}, rows));
    cases.push_back(experts_layer_case(q8, {3, 2, 32, 24576}, 1));  // of which only one row finds room
    for (const char* name : {"MXFP4", "Q4_1", "Q5_0"}) {
        cases.push_back(experts_ways_case(*find_format(name), {10, 3, 96, 160}));
        cases.push_back(experts_ways_case(*find_format(name), {70, 9, 160, 32, -1, "F16"}));
        cases.push_back(experts_ways_case(*find_format(name), {300, 9, 64, 32}));
        cases.push_back(experts_ways_case(*find_format(name), {70, 9, 160, 32}));
        cases.back().name += ", chosen by the router";
        cases.back().variant["chosen_late"] = 0;
    }
    for (const Format* format : formats)
        for (const std::string_view beside : {format->name, std::string_view("Q8_0")})
            cases.push_back(shared_expert_case(*format, {10, 8, 256, 256}, {256, beside}, 1));
    const auto at_first = [](std::string_view format) {
        return SharedShape{.hidden = 256, .format = format, .handed = false};
    };
    for (const Format* format : formats)
        cases.push_back(of_levels(shared_expert_case(*format, {10, 8, 256, 256}, at_first(format->name), 1)));
    for (const auto& [chosen, shared] : kBeside) {
        const Format& format = *find_format(chosen);
        cases.push_back(shared_expert_case(format, {10, 8, 256, 256}, {256, shared}, 1));
        // With 10 experts a sum of Q3_K beside Q5_K cancels so far that its bound proves little.
        cases.push_back(of_levels(shared_expert_case(format, {11, 8, 256, 256}, at_first(shared), 1)));
    }
    for (const uint32_t rows : {1u, 2u, 40u})
        for (const bool weighted : {false, true}) {
            cases.push_back(shared_expert_case(q4k, {9, 2, 256, 256}, {768, "Q4_K", weighted}, rows));
            cases.push_back(shared_expert_case(q8, {12, 4, 64, 96}, {160, "Q8_0", weighted}, rows));
        }
    cases.push_back(shared_expert_case(q4k, {5, 3, 256, 512, -1, "F16"}, {256, "Q6_K"}, 1));
    cases.push_back(shared_expert_case(q8, {300, 9, 96, 160}, {32, "Q8_0"}, 1));
    cases.push_back(shared_expert_case(q8, {12, 4, 64, 96}, {96, "F16"}, 1));
    // A row so long that blocks have no room to choose experts beside it.
    for (const std::string_view router : {"F32", "F16", "BF16"})
        cases.push_back(shared_expert_case(q8, {2, 1, 25600, 96, -1, router}, {96, "Q8_0"}, 1));
    cases.push_back(shared_expert_case(q8, {12, 4, 64, 96}, {96, "Q8_0", true, true}, 1));
    for (const uint32_t rows : {1u, 3u})
        for (const bool weighted : {false, true})
            cases.push_back(
                shared_expert_case(q8, {40, 6, 96, 160}, {224, "Q4_0", weighted, false, true, 3}, rows));
    for (const bool weighted : {false, true}) {
        cases.push_back(shared_expert_case(q8, {70, 6, 96, 160}, {224, "Q8_0", weighted, false, true, 2}, 1));
        cases.back().name += ", chosen by the router";
        cases.back().variant = {{"chosen_late", 0}, {"shared_gated_ahead", 1}, {"shared_sum_rows", 4}};
    }
    // A router with more experts than its blocks have threads.
    cases.push_back(many_rows_case(q8, {300, 64, 32, 32, 299}, 1));
    for (const bool per_expert : {false, true})
        for (const bool weighted : {false, true}) {
            cases.push_back(expert_linear_case(q4k, 1, per_expert, weighted));
            cases.push_back(expert_linear_case(q4k, 21, per_expert, weighted));
            for (const char* name : {"Q5_1", "BF16"})
                cases.push_back(expert_linear_case(*find_format(name), 65, per_expert, weighted));
        }
    for (const bool per_expert : {false, true})
        for (const uint32_t rows : {1u, 21u})
            for (const char* name : {"Q4_K", "F32"})
                cases.push_back(
                    expert_linear_case(*find_format(name), rows, per_expert, false, Function::squared_relu));
}

}  // namespace redline
