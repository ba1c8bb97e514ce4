// Ops of one dispatch, with work for each element or row, which both backends tell their kernels alike.
//
// A backend has a template Plain<Args>, made of an encoder and a view, which derives from PlainView and says
// what operands are: slot(s), vector(w), state(cache), and those that HIP alone has: states(), places() and
// null(). send(dispatch, all...) takes operands and numbers in the order of HIP's struct, behind the step;
// Vulkan binds the operands and the step, and pushes the numbers. Flags say what is absent: Vulkan alone has
// them.
#pragma once

#include "plan/backend.h"

#include <tuple>

namespace redline::gpu {

struct PlainDispatch {
    const char* module;  // of HIP's kernels
    std::string_view kernel;
    uint64_t work;
    bool by_groups = false;             // a work-group for each, not an invocation
    std::optional<StepKind> kind = {};  // which Vulkan's kernel is built for
};
struct Flag {
    bool value;
    operator uint32_t() const { return value; }
};

// A tuple of those of `all` whose types are wanted.
template <typename Wanted, typename... All>
auto chosen_of(const Wanted& wanted, const All&... all) {
    const auto one = [&](const auto& value) {
        if constexpr (decltype(wanted(value))::value)
            return std::tuple(value);
        else
            return std::tuple<>();
    };
    return std::tuple_cat(one(all)...);
}

template <class View>
struct PlainView {
    const View& view;

    uint32_t width(Slot s) const { return view.width(s); }
    uint32_t rows(Slot s) const { return view.rows_of(s); }
    uint64_t elements(Slot s) const { return uint64_t(width(s)) * rows(s); }
    uint32_t of_outputs(Slot s) const { return view.plan.slot(s).of_outputs ? 1 : 0; }
};

// The first of the functions that is for this op, as a kernel; null: none is. Gpu::simple(encode) makes one
// of a function encode(encoder, view).
template <class Gpu, typename... O>
std::unique_ptr<Kernel> first_of(const Op& op, Status (*... encode)(typename Gpu::Encoder&,
                                                                    const typename Gpu::View&, const O&)) {
    std::unique_ptr<Kernel> kernel;
    const auto attempt = [&](const auto* o, auto encode_one) {
        if (o)
            kernel =
                Gpu::simple([o = *o, encode_one](auto& to, auto& view) { return encode_one(to, view, o); });
    };
    (attempt(std::get_if<O>(&op), encode), ...);
    return kernel;
}

// These ops, each with the struct of its arguments, which both backends have by this name.
#define RL_PLAIN_OPS(ROW)                 \
    ROW(Input, ElementArgs)               \
    ROW(Lookup, ElementArgs)              \
    ROW(SelectRows, ElementArgs)          \
    ROW(CopyParts, CopyPartsArgs)         \
    ROW(OutputGate, OutputGateArgs)       \
    ROW(AddPosition, PositionArgs)        \
    ROW(Center, NormArgs)                 \
    ROW(Hadamard, NormArgs)               \
    ROW(Sparsify, SparsifyArgs)           \
    ROW(BlockMean, BlockMeanArgs)         \
    ROW(BlockPool, BlockPoolArgs)         \
    ROW(ChooseBlocks, ChooseArgs)         \
    ROW(StreamProduct, StreamArgs)        \
    ROW(StreamWeights, StreamWeightsArgs) \
    ROW(StreamBlend, StreamBlendArgs)

Status encode(const auto& g, const StreamProduct& op) {
    return g.send({"vector", op.name(), g.elements(op.y), op.kind == StreamKind::dot}, g.slot(op.x),
                  g.slot(op.weights), g.slot(op.y), uint32_t(op.width(g.view.plan)), op.streams,
                  g.of_outputs(op.y), op.replaces || op.by_stream(g.view.plan), op.scale, op.offset, op.first,
                  Flag{bool(op.weights)});
}

Status encode(const auto& g, const StreamWeights& op) {
    return g.send({"vector", op.kName, g.rows(op.read), true}, g.slot(op.x), g.vector(op.scale),
                  g.vector(op.base), g.slot(op.read), g.slot(op.add, op.read), g.slot(op.mix, op.read),
                  g.width(op.read), g.width(op.x), g.of_outputs(op.read), op.add ? op.rounds : 0, op.eps);
}

Status encode(const auto& g, const StreamBlend& op) {
    return g.send({"vector", op.kName, g.elements(op.y)}, g.slot(op.x), g.slot(op.weights), g.slot(op.mix),
                  g.slot(op.from), g.slot(op.y), g.width(op.x), op.streams, g.of_outputs(op.y));
}

Status encode(const auto& g, const CopyParts& op) {
    return g.send({"recurrent", op.kName, uint64_t(op.parts) * op.width * g.rows(op.y)}, g.slot(op.x),
                  g.slot(op.y), op.parts, op.width, g.width(op.x), op.x_first, op.x_stride, g.width(op.y),
                  op.y_first, op.y_stride, g.of_outputs(op.y));
}

Status encode(const auto& g, const OutputGate& op) {
    const GateLayout gates = op.layout(g.width(op.x), g.width(op.y));
    return g.send({"recurrent", op.kName, g.elements(op.y)}, g.slot(op.x), g.slot(op.y), g.width(op.y),
                  op.head_dim, gates.stride, gates.first, gates.step, uint32_t(op.act), g.of_outputs(op.y));
}

Status encode(const auto& g, const BlockMean& op) {
    const uint64_t work = uint64_t(g.width(op.x)) * g.view.segments();
    return g.send({"recurrent", op.kName, work, false, g.view.kind}, g.states(), g.places(), g.slot(op.x),
                  g.slot(op.y), g.state(op.state), g.width(op.x), op.ratio);
}

Status encode(const auto& g, const BlockPool& op) {
    const uint64_t work = uint64_t(g.width(op.y)) * g.view.segments();
    return g.send({"recurrent", op.kName, work, false, g.view.kind}, g.states(), g.places(), g.slot(op.x),
                  g.slot(op.gate), g.vector(op.bias), g.slot(op.y), g.state(op.state), g.width(op.y),
                  op.ratio, op.overlaps);
}

Status encode(const auto& g, const ChooseBlocks& op) {
    return g.send({"recurrent", op.kName, g.view.rows, true, g.view.kind}, g.places(), g.slot(op.scores),
                  g.slot(op.y), g.width(op.scores), g.width(op.y), op.ratio);
}

// A group is so many elements of a row; it has no gain.
Status encode_groups(const auto& g, const auto& op) {
    const uint32_t groups = g.width(op.x) / op.width;
    return g.send({"vector", op.kName, uint64_t(groups) * g.rows(op.x), true}, g.slot(op.x), g.slot(op.y),
                  g.null(), op.width, groups, g.of_outputs(op.x));
}
Status encode(const auto& g, const Center& op) {
    return encode_groups(g, op);
}
Status encode(const auto& g, const Hadamard& op) {
    return encode_groups(g, op);
}

Status encode(const auto& g, const Sparsify& op) {
    return g.send({"vector", op.kName, g.rows(op.y), true}, g.slot(op.y), g.width(op.y), g.of_outputs(op.y),
                  op.deviations);
}

Status encode(const auto& g, const AddPosition& op) {
    const uint64_t rows = g.view.plan.weight(op.table).tensor.shape.elements() / g.width(op.y);
    return g.send({"vector", op.kName, g.elements(op.y), false, g.view.kind}, g.places(), g.vector(op.table),
                  g.slot(op.y), g.width(op.y), uint32_t(rows - 1));
}

Status encode_copy(const auto& g, std::string_view kernel, auto from, Slot y) {
    return g.send({"vector", kernel, g.elements(y)}, from, g.slot(y), g.width(y), g.of_outputs(y));
}
Status encode(const auto& g, const SelectRows& op) {
    return encode_copy(g, op.kName, g.slot(op.x), op.y);
}
Status encode(const auto& g, const Input& op) {
    return encode_copy(g, "copy_rows", g.view.input, op.y);
}
Status encode(const auto& g, const Lookup& op) {
    return encode_copy(g, "copy_rows", g.view.lookups, op.y);
}

}  // namespace redline::gpu
