// Which ways products of few and of many rows go: choices, and their defaults.
#include "steps.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

// True where products of so many rows with all of these could go by Path::few, with these fragments or by
// tiles.
bool can_go_few(const Device& device, std::span<const Tensor> tensors, uint64_t rows,
                const Fragments* fragments) {
    return std::ranges::all_of(tensors, [&](const Tensor& w) {
        return FewProducts::wanted(device, *w.format, w.shape.cols, rows, fragments, {.vector_rows = 1});
    });
}

// A default that is known where the size of a step is.
Default unknown(Default usual) {
    usual.value = 0;
    return usual;
}

}  // namespace

// Fragments are left out here, since their use is a choice itself.
gpu::DeviceClass class_of(const Device& device) {
    const bool apart =
        device.fragments && device.report().hardware() && device.fragments->apart(device.subgroup());
    return {.hip = false,
            .wave = device.subgroup(),
            .matrix_units = device.use_matrix() && matrix_shape(device.report()) != nullptr,
            .fragments_apart = apart,
            .group_matrices = device.unpacks(),
            .hardware = device.report().hardware(),
            .units = device.report().units};
}

Default usual_fragment_rows(const Device& device, std::span<const Tensor> tensors) {
    if (device.always_fragments) return asked_for(kMostFew);
    Default least = {UINT32_MAX};
    for (const Tensor& w : tensors) {
        const Default usual = product_default(device, "fragment_rows", {.format = w.format->name});
        if (usual.value < least.value) least = usual;
    }
    return least;
}

Ways usual_ways(const Device& device) {
    return {0, product_default(device, "few_rows").value, product_default(device, "dot_rows").value,
            product_default(device, "unpack").value != 0};
}

Ways AnyProduct::ways(const Device& device) const {
    const Ways usual = usual_ways(device);
    return {chosen(RowClass::few, "vector_rows", usual.vector_rows),
            chosen(RowClass::some, "few_rows", usual.few_rows),
            chosen(RowClass::some, "dot_rows", usual.dot_rows),
            chosen(RowClass::many, "unpack", usual.unpack) != 0};
}

const Fragments* AnyProduct::fragments_of(const Device& device, std::span<const Tensor> tensors,
                                          uint64_t rows) const {
    if (!device.fragments || rows < 2 || rows > ways(device).few_rows) return nullptr;
    const RowClass size = row_class_of(rows);
    if (chosen(size, "fragments", uses_fragments(device).value) == 0) return nullptr;
    gpu::DeviceClass filled = class_of(device);
    filled.fragments = true;
    const uint32_t vector_rows = gpu::default_of(gpu::kProductDefaults, "vector_rows", filled).value,
                   most = usual_fragment_rows(device, tensors).value;
    if (size == RowClass::few && rows <= chosen(size, "vector_rows", vector_rows)) return nullptr;
    return rows <= (size == RowClass::some ? chosen(size, "fragment_rows", most) : most) ? &*device.fragments
                                                                                         : nullptr;
}

void AnyProduct::add_fragments(Choices& all, const Device& device) {
    const Default usual = uses_fragments(device);
    all.push_back(choice("fragments", usual, {1 - usual.value}));
    all.push_back(choice("deep", unknown(product_default(device, "deep")), {4, 8, 16}));
    all.push_back(choice("high", unknown(product_default(device, "high")), {1, 2}));
}

void AnyProduct::add_ways(Choices& all, const Device& device, std::span<const Tensor> tensors,
                          RowClass rows) {
    const auto path_in = [&](const Tensor& w) {
        return path_of(device, *w.format, w.shape.cols, kFewTileRows + 1);
    };
    const auto quantized = [](const Tensor& w) { return weight_layout(*w.format)->quantized(); };
    const Fragments* fragments = device.fragments ? &*device.fragments : nullptr;
    const uint64_t least = rows == RowClass::few ? kFewRows : kFewRows + 1;
    const bool filled = fragments && can_go_few(device, tensors, least, fragments),
               few = filled || can_go_few(device, tensors, least, nullptr);
    if (rows == RowClass::few && few) {
        gpu::DeviceClass with = class_of(device);
        with.fragments = filled && uses_fragments(device).value != 0;
        all.push_back(gpu::by_shape("vector_rows",
                                    gpu::default_of(gpu::kProductDefaults, "vector_rows", with,
                                                    {.format = tensors.front().format->name}),
                                    {1, 2, 4, kFewRows}));
        all.back().crossover = true;
    }
    if (rows == RowClass::some && few)
        all.push_back(crossover("few_rows", product_default(device, "few_rows"), {kFewRows, 16, 32}));
    if (rows == RowClass::some && filled)
        all.push_back(
            crossover("fragment_rows", usual_fragment_rows(device, tensors), {kFewRows, 16, 32, kMostFew}));
    if (rows == RowClass::some && device.use_dot() && std::ranges::all_of(tensors, [&](const Tensor& w) {
            return quantized(w) && path_in(w) == Path::tiles;
        }))
        all.push_back(crossover("dot_rows", product_default(device, "dot_rows"), {kFewRows, 16, 32, 64}));
    if (rows == RowClass::many && std::ranges::any_of(tensors, [&](const Tensor& w) {
            return quantized(w) && path_in(w) == Path::matrices;
        })) {
        const Default usual = product_default(device, "unpack");
        all.push_back(choice("unpack", usual, {1 - usual.value}));
    }
}

}  // namespace redline::vulkan
