// The op cases of layers that keep a state.
#pragma once

#include "measure/op_case.h"

#include <optional>

namespace redline {

// A convolution and the delta rule behind it, as a layer has them, whose inputs stand in groups.
// Apart: decays from all to nothing of the state, one of them exactly 1, and gates that are open or shut.
inline OpCase delta_case(DeltaShape s, uint32_t rows, uint64_t position, bool rule, bool apart = false) {
    OpCase c;
    c.name = fmt::format("{} {} heads of {}, {} keys of {}{}{} rows {} at {}",
                         rule ? "delta rule" : "convolution", s.heads, s.value_dim, s.key_heads, s.key_dim,
                         s.in_turns ? " in turns" : "", apart ? " far apart" : "", rows, position);
    c.rows = rows;
    c.position = position;
    c.cpu_only = rule && s.key_dim > 256;
    c.context = position + rows + 3;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const uint32_t each = s.width() / s.key_heads;
        const Weight x = f.input(s.width()), beta = f.input(s.heads), alpha = f.input(s.heads),
                     taps = f.vector(s.width() * 4), dt = f.vector(s.heads);
        std::vector<float> rates(s.heads);
        for (size_t i = 0; i < rates.size(); ++i)
            rates[i] = apart ? -float(i % 4) * float(i % 4) * 20.0f : -0.02f * float(1 << (i % 6));
        const Weight a = f.vector(rates);
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x);
            const Slot split = p.slot(s.width());
            const uint32_t values = each - 2 * s.key_dim;
            p.append(CopyParts{in, split, s.key_heads, s.key_dim, 0, each, 0, s.key_dim});
            p.append(CopyParts{in, split, s.key_heads, s.key_dim, s.key_dim, each, s.keys(), s.key_dim});
            p.append(CopyParts{in, split, s.key_heads, values, 2 * s.key_dim, each, 2 * s.keys(), values});
            if (!rule) return p.convolve(p.state(3 * s.width()), split, taps, 4, true);
            const Slot y = p.slot(s.values());
            p.append(DeltaNet{split, p.embed(beta, apart ? 60.0f : 1.0f), p.embed(alpha, apart ? 4.0f : 1.0f),
                              a, dt, y, p.state(s.state_floats()), s});
            return y;
        };
    };
    return c;
}

// The convolution of a layer that has gates around it, and the gate of an attention's output.
inline OpCase gated_convolution_case(uint32_t taps, uint32_t width, uint32_t rows, uint64_t position,
                                     bool silu) {
    OpCase c;
    c.name = fmt::format("gated convolution {} of {}{} rows {} at {}", width, taps,
                         silu ? "" : " without silu", rows, position);
    c.rows = rows;
    c.position = position;
    c.context = position + rows + 3;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(width), before = f.input(width), behind = f.input(width),
                     gate = f.input(2 * width), w = f.vector(width * taps);
        return [=](PlanBuilder& p) {
            // With three taps and without silu there is no gate before it either.
            const Slot gates = p.embed(before);
            const Slot y = p.convolve(p.state(uint64_t(width) * (taps - 1)), p.embed(x), w, taps, silu,
                                      silu || taps != 3 ? gates : Slot{}, p.embed(behind));
            p.append(OutputGate{p.embed(gate), y, width / 3});
            return y;
        };
    };
    return c;
}

// The convolution before a state space, with its bias.
inline OpCase biased_convolution_case(uint32_t taps, uint32_t apart, uint32_t width, uint32_t rows,
                                      uint64_t position, bool silu) {
    OpCase c;
    c.name =
        fmt::format("convolution {} of {}{}{} with bias rows {} at {}", width, taps,
                    apart > 1 ? fmt::format(" {} apart", apart) : "", silu ? " silu" : "", rows, position);
    c.rows = rows;
    c.position = position;
    c.context = position + rows + 3;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(width), w = f.vector(width * taps), bias = f.vector(width);
        return [=](PlanBuilder& p) {
            const Slot y = p.slot(width);
            p.append(Convolve{p.embed(x),
                              w,
                              y,
                              p.state(uint64_t(width) * (taps - 1) * apart),
                              taps,
                              silu,
                              {},
                              {},
                              apart,
                              bias});
            return y;
        };
    };
    return c;
}

// Gates of an attention's output: one for each head, or one for each element.
inline OpCase gate_case(uint32_t heads, uint32_t head_dim, bool by_heads, GateOf act, uint32_t rows) {
    OpCase c;
    const char* const name = act == GateOf::sigmoid    ? "sigmoid"
                             : act == GateOf::softplus ? "softplus"
                                                       : "itself";
    c.name = fmt::format("output gate {} of {} x {} by {} rows {}", name, heads, head_dim,
                         by_heads ? "heads" : "elements", rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight gate = f.input(by_heads ? heads : heads * head_dim), x = f.input(heads * head_dim);
        return [=](PlanBuilder& p) {
            const Slot y = p.embed(x), gates = p.embed(gate, 3.0f);
            p.append(OutputGate{gates, y, head_dim, act});
            return y;
        };
    };
    return c;
}

// A norm of heads, alone or with the gate that multiplies it behind a delta rule.
inline OpCase norm_case(uint32_t heads, uint32_t width, std::optional<Act> act, uint32_t rows,
                        bool in_place = true, bool gain = true) {
    OpCase c;
    const char* const gated = !act                     ? ""
                              : *act == Act::silu      ? " gated by silu"
                              : *act == Act::gelu_tanh ? " gated by gelu"
                                                       : " gated by swiglu_clamped";
    c.name = fmt::format("rms_norm {} of {}{}{} rows {}{}", heads, width, gain ? "" : " without gain", gated,
                         rows, in_place ? " in place" : "");
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight from = f.input(heads * width), gates = act ? f.input(heads * width) : Weight{};
        const Norm norm = {gain ? f.vector(width) : Weight{}, 1e-5f};
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(from), y = in_place ? x : p.slot(heads * width);
            const Slot gate = act ? p.embed(gates) : Slot{};
            p.append(RmsNorm{x, norm, width, y, gate, act.value_or(Act::silu)});
            return y;
        };
    };
    return c;
}

// The norm behind a state space: of the gate's product, with a separate gain for each group or one for all.
inline OpCase gated_input_case(uint32_t groups, uint32_t width, Act act, bool in_place, bool gain_of_row,
                               uint32_t rows) {
    OpCase c;
    c.name = fmt::format("rms_norm {} of {} behind a gate {}{}{} rows {}", groups, width, int(act),
                         gain_of_row ? " gain of the row" : "", in_place ? " in place" : "", rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight from = f.input(groups * width), gates = f.input(groups * width);
        const Norm norm = {f.vector(gain_of_row ? groups * width : width), 1e-5f};
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(from), y = in_place ? x : p.slot(groups * width);
            RmsNorm op{x, norm, width, y, p.embed(gates), act};
            op.gates_x = true;
            p.append(op);
            return y;
        };
    };
    return c;
}

// A norm that is scaled, and as a rule added to something.
inline OpCase added_norm_case(uint32_t heads, uint32_t width, float scale, bool adds, uint32_t rows,
                              bool gain = true) {
    OpCase c;
    c.name = fmt::format("rms_norm {} of {}{} scaled by {}{} rows {}", heads, width,
                         gain ? "" : " without gain", scale, adds ? " and added" : "", rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight from = f.input(heads * width), into = f.input(heads * width);
        const Norm norm = {gain ? f.vector(width) : Weight{}, 1e-5f};
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(from), y = p.embed(into);
            p.append(RmsNorm{x, norm, width, y, {}, Act::silu, scale, adds});
            return y;
        };
    };
    return c;
}

inline OpCase normed_sum_case(uint32_t width, float scale, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("normed_sum {} scaled by {} rows {}", width, scale, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight first = f.input(width), second = f.input(width), into = f.input(width);
        const Norm a = {f.vector(width), 1e-5f}, b = {f.vector(width), 1e-2f}, all = {f.vector(width), 1e-6f};
        return [=](PlanBuilder& p) {
            const Slot y = p.embed(into);
            p.append(NormedSum{p.embed(first), p.embed(second, 3.0f), a, b, all, y, scale});
            return y;
        };
    };
    return c;
}

inline void add_norm_cases(std::vector<OpCase>& cases) {
    for (const uint32_t rows : {1u, 2u, 33u}) {
        for (const uint32_t width : {128u, 64u, 36u, 35u, 1u}) {
            cases.push_back(norm_case(5, width, Act::silu, rows));
            cases.push_back(norm_case(5, width, {}, rows));
        }
        cases.push_back(norm_case(3, 36, Act::gelu_tanh, rows, false, false));
        cases.push_back(norm_case(3, 35, Act::swiglu_clamped, rows, false, false));
        // More fours, and more elements, than a work-group has threads.
        cases.push_back(norm_case(1, 1028, Act::silu, rows, false));
        cases.push_back(norm_case(2, 301, Act::silu, rows));
        for (const uint32_t width : {1028u, 301u, 64u, 1u}) {
            cases.push_back(added_norm_case(1, width, 1.0f, true, rows));
            cases.push_back(added_norm_case(2, width, 0.375f, true, rows, false));
            cases.push_back(added_norm_case(1, width, 0.375f, false, rows));
            cases.push_back(normed_sum_case(width, width == 64 ? 0.5f : 1.0f, rows));
            cases.push_back(gated_input_case(3, width, Act::silu, true, true, rows));
            cases.push_back(gated_input_case(3, width, Act::gelu_tanh, false, false, rows));
        }
    }
    for (const Act act : {Act::gelu_tanh, Act::swiglu_clamped})
        for (const uint32_t width : {35u, 36u, 301u, 1028u}) cases.push_back(norm_case(2, width, act, 2));
}

inline OpCase in_pages(OpCase c, uint32_t sequences) {
    c.name += fmt::format(", {} sequences", sequences);
    c.sequences = sequences;
    c.context += (sequences - 1) * kFurtherTokens;
    return c;
}

inline void add_recurrent_cases(std::vector<OpCase>& cases) {
    const DeltaShape odd{6, 2, 12, 20, true}, grouped{6, 2, 20, 12, false}, usual{4, 2, 128, 128, true},
        wide{2, 1, 250, 70, true}, narrow{3, 3, 70, 131, false}, huge{2, 1, 257, 8, true};
    for (const uint32_t rows : {1u, 2u, 7u, 40u})
        for (const uint64_t position : {0u, 1u, 2u, 130u}) {
            cases.push_back(delta_case(odd, rows, position, false));
            cases.push_back(delta_case(odd, rows, position, true));
            cases.push_back(gated_convolution_case(3, 69, rows, position, true));
        }
    for (const uint32_t rows : {1u, 33u}) {
        cases.push_back(delta_case(grouped, rows, 5, true));
        cases.push_back(delta_case(usual, rows, 70, true));
        cases.push_back(delta_case(wide, rows, 3, true));
        cases.push_back(delta_case(narrow, rows, 3, true));
        cases.push_back(gated_convolution_case(2, 300, rows, 9, true));
        // Other cases have four taps with it.
        for (const uint32_t taps : {3u, 4u})
            cases.push_back(gated_convolution_case(taps, 300, rows, 9, false));
        for (const GateOf act : {GateOf::sigmoid, GateOf::softplus, GateOf::itself})
            for (const bool by_heads : {true, false}) cases.push_back(gate_case(3, 23, by_heads, act, rows));
        for (const uint32_t taps : {2u, 3u, 4u}) {
            cases.push_back(biased_convolution_case(taps, 1, 150, rows, 9, taps != 3));
            cases.push_back(biased_convolution_case(taps, 3, 150, rows, 0, taps != 3));
        }
    }
    add_norm_cases(cases);
    cases.push_back(delta_case(huge, 2, 3, true));
    // Enough heads for most devices to be filled by half as many work-groups.
    cases.push_back(delta_case({160, 2, 20, 12, true}, 19, 3, true));
    cases.push_back(delta_case({160, 2, 128, 16, true}, 10, 3, true));
    cases.push_back(delta_case({2, 1, 250, 72, true}, 2, 3, true));
    for (const uint32_t rows : {8u, 9u, 31u, 64u}) {
        cases.push_back(delta_case(narrow, rows, 130, true, true));
        cases.push_back(delta_case(grouped, rows, 0, true, true));
    }
    cases.push_back(in_pages(delta_case(grouped, 60, 10, true, true), 3));
    for (const uint32_t rows : {3u, 20u, 90u}) {
        cases.push_back(in_pages(delta_case(odd, rows, 10, true), 3));
        cases.push_back(in_pages(delta_case(odd, rows, 0, false), 3));
        cases.push_back(in_pages(gated_convolution_case(3, 69, rows, 10, true), 2));
        cases.push_back(in_pages(biased_convolution_case(4, 1, 69, rows, 10, true), 2));
    }
}

}  // namespace redline
