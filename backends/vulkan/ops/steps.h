// What the files of kernels share: launch shapes, and dispatches that several ops need.
#pragma once

#include "args.h"
#include "backends/gpu/activations.h"
#include "backends/gpu/key_splits.h"
#include "backends/gpu/paths.h"
#include "backends/gpu/plain_ops.h"
#include "backends/gpu/slices.h"
#include "backends/vulkan/runtime/executable.h"

namespace redline::vulkan {

using gpu::in_slices, gpu::slice_of;
using gpu::kFewRows, gpu::kFewTileRows, gpu::kMostFew, gpu::on_matrices, gpu::Path, gpu::precision_of,
    gpu::rows_in;

// Invocations per work-group, of kernels that have no reason for another number.
constexpr uint32_t kThreads = 128;

// One invocation per element, or fewer that stride over them.
inline Groups element_groups(uint64_t elements) {
    return striding((elements + kThreads - 1) / kThreads);
}

inline uint32_t rows_kind(const Plan& plan, Slot s) {
    return plan.slot(s).of_outputs ? RL_ROWS_OUTPUTS : RL_ROWS_ALL;
}

// Wraps a function record(recorder, view) as a kernel.
template <typename Write>
class SimpleKernel : public VulkanKernel {
public:
    explicit SimpleKernel(Write write) : write_(std::move(write)) {}
    Status record(Recorder& recorder, const View& view) const override { return write_(recorder, view); }

private:
    Write write_;
};

template <typename Write>
std::unique_ptr<Kernel> simple(Write write) {
    return std::make_unique<SimpleKernel<Write>>(std::move(write));
}

// The op, into `y` in place of its own.
Status record_norm(Recorder& recorder, const View& view, const RmsNorm& op, Binding y);

// For backends/gpu.
struct Gpu {
    using Encoder = Recorder;
    using View = vulkan::View;
    using Operand = Binding;
    static std::unique_ptr<Kernel> simple(auto encode) { return vulkan::simple(std::move(encode)); }
    static bool takes_few(const View& view) { return view.few_taken.bytes != 0; }
    static uint64_t prepared_bytes(const Plan& plan, Slot x);
    static uint64_t code_bytes(const Plan& plan, Slot x, uint64_t rows);
    static constexpr auto norm = record_norm;
    // `fragments`: in whose order Path::few wants halfs, or null.
    static Status prepare(Recorder& recorder, const View& view, Path path, const gpu::Activations<Gpu>& x,
                          const Fragments* fragments);
};
using Activations = gpu::Activations<Gpu>;

template <class Args>
struct Plain : gpu::PlainView<View> {
    Recorder& recorder;

    // Those that are absent are not read.
    Binding slot(Slot s) const { return s ? view.slot(s) : view.step; }
    Binding slot(Slot s, Slot absent) const { return view.slot(s ? s : absent); }
    Binding vector(Weight w) const { return view.vector(w, view.step); }
    Binding state(Cache c) const { return view.caches[c].keys; }
    std::nullptr_t states() const { return nullptr; }
    std::nullptr_t places() const { return nullptr; }
    std::nullptr_t null() const { return nullptr; }

    Status send(const gpu::PlainDispatch& d, const auto&... all) const {
        const auto bound = []<typename T>(const T&) { return std::is_same<T, Binding>(); };
        const auto number = []<typename T>(const T&) {
            return std::disjunction<std::is_arithmetic<T>, std::is_same<T, gpu::Flag>>();
        };
        const auto bindings = std::apply(
            [&](auto... each) {
                return std::array{each..., view.step};
            },
            gpu::chosen_of(bound, all...));
        const Args push =
            std::apply([](auto... each) { return Args{each...}; }, gpu::chosen_of(number, all...));
        std::vector<uint32_t> constants = {kThreads};
        if (d.kind) constants.push_back(uint32_t(*d.kind));
        return recorder.dispatch({d.kernel, uint32_t(bindings.size()), 1, constants}, bindings, push,
                                 d.by_groups ? striding(d.work) : element_groups(d.work));
    }
};
template <class Args, class O>
Status plain(Recorder& recorder, const View& view, const O& op) {
    return gpu::encode(Plain<Args>{{view}, recorder}, op);
}

// y = act(gate) * up; y may be one of them.
struct Applied {  // y = function(y)
    Slot y;
    Function function;
};
Status record_apply(Recorder& recorder, const View& view, const Applied& op);
// What kernels take for a function of their results.
inline uint32_t function_arg(std::optional<Function> function) {
    return function ? uint32_t(*function) + 1 : 0;
}
Status record_act_mul(Recorder& recorder, const View& view, Act act, Binding gate, Binding up, Slot y);

// Of kernels that come once for each type of the cache.
std::string cache_shader(std::string_view stem, const View& view, Cache cache);
// PipelineSpec::cache of such a kernel.
std::vector<uint32_t> cache_constants(const View& view, Cache cache);
// A dispatch with such a kernel.
template <class Args>
Status record_cached(Recorder& recorder, const View& view, Cache cache, std::string_view stem,
                     std::vector<uint32_t> constants, std::initializer_list<Binding> bindings,
                     const Args& push, const Groups& groups, double flops = 0.0, uint32_t subgroup = 0) {
    return recorder.dispatch({cache_shader(stem, view, cache), uint32_t(bindings.size()), 1,
                              std::move(constants), subgroup, cache_constants(view, cache)},
                             bindings, push, groups, flops);
}
template <typename Args>
void set_rows(Args& push, const CacheInfo& cache) {
    push.capacity = uint32_t(cache.capacity);
    push.sequence_rows = uint32_t(cache.sequence_rows);
    push.first_page = cache.first_page;
}
// Work-groups of attention that fill a device.
Default attention_groups(const Device& device);
inline Choice groups_choice(const Default& usual) {
    const uint32_t wanted = usual.value;
    return choice("groups", usual, {wanted / 4, wanted / 2, 2 * wanted, 4 * wanted});
}
// Splits over keys by which `units` work-groups become so many at least, where there are keys for them: fewer
// than 64 keys are not worth a work-group. `most`: 64 (kThreads / 2: see attention.comp) where the last
// work-group brings them together.
inline uint32_t attention_splits(uint64_t keys, uint64_t units, uint64_t wanted, uint64_t most = 64) {
    return gpu::key_splits(keys, 64, units, wanted, most, false);
}
// Scratch for what splits leave; of no bytes: there is one, which leaves nothing.
inline Binding claim_partials(Recorder& recorder, const View& view, uint64_t bytes) {
    if (bytes == 0) return view.step;
    recorder.claim_scratch();
    return view.scratch_at(0, bytes);
}
// Of kernels over few_tiles.glsl: at most so many queries and invocations of a work-group, and the shared
// memory that they take.
constexpr uint32_t kMostFewQueries = 8;
constexpr uint32_t kMostFewHeadDim = 256;
uint64_t few_shared(uint32_t head_dim, uint32_t queries, uint64_t threads);
Default few_threads(const Device& device);

// True where activations are in order. On other paths on matrix units the middle two of four have changed
// places: see half_units.glsl.
inline bool in_order(Path path) {
    return path == Path::halves || path == Path::unpacked || path == Path::bfloats;
}
// True where products are computed by tiles on matrix units, of halfs or in int8.
inline bool in_coop_tiles(Path path) {
    return on_matrices(path) || path == Path::int8_matrices;
}
// `rows` of x; `cols` of the weight.
Path path_of(const Device& device, const Format& format, uint64_t cols, uint64_t rows);
gpu::DeviceClass class_of(const Device& device);
inline Default product_default(const Device& device, std::string_view choice, const gpu::Work& work = {}) {
    return gpu::default_of(gpu::kProductDefaults, choice, class_of(device), work);
}
// Where a test or a report has asked for a value.
inline Default asked_for(uint32_t value) {
    return {value, "all", "asked for", "now"};
}
// Which ways products of few and of many rows go: defaults, or values of choices.
struct Ways {
    uint32_t vector_rows = 0;      // up to so many rows by vector; 0: as many as the format is best with
    uint32_t few_rows = kMostFew;  // up to so many rows by Path::few
    uint32_t dot_rows = 0;         // without matrix units: up to so many rows by dot products, in passes
    bool unpack = false;           // many rows: weights are decoded to halfs in scratch
};
Ways usual_ways(const Device& device);
// path_of() for products of whole rows: weights may be unpacked, and halfs are not reordered.
Path product_path(const Device& device, const Format& format, uint64_t cols, uint64_t rows,
                  const Fragments* fragments, const Ways& ways);
// The same without Path::few.
Path wide_path(const Device& device, const Format& format, uint64_t cols, uint64_t rows, const Ways& ways);
// Work-groups of a product over tiles.
struct Tiles {
    std::string shader;
    std::vector<uint32_t> constants;
    uint32_t rows;       // of the weight, per work-group
    uint32_t tokens;     // likewise
    uint32_t depth = 0;  // columns at a time, on matrix units

    static constexpr size_t kWhole =
        10;  // the constant that says that buffers go on to the end of every tile
};
// How a product is cut, where a value is not 0: as its choices have it.
struct ProductCut {
    uint32_t threads = 0;   // of a work-group
    uint32_t rows = 0;      // of a subgroup at a time
    uint32_t ahead = 0;     // units of a lane that are read before one is multiplied
    uint32_t groups = 0;    // at most, of work-groups that take or prepare activations by themselves
    uint32_t subgroup = 0;  // its size
    // On matrix units: of a tile, at most.
    uint32_t tile_rows = 0, tile_tokens = 0, depth = 0;
    // Where matrices are filled by their elements: subgroups that share columns, and matrices of weights (or
    // pairs) that each has.
    uint32_t deep = 0, high = 0;
};
// What works at work-groups side by side: compute units of AMD, multiprocessors of NVIDIA.
uint32_t processors(const Device& device);
// Elements that share a scale in int8.
constexpr uint32_t kHalfUnit = 16;
// How a kernel over own_row.glsl is cut: a subgroup has `rows` rows at a time, a work-group `group` results,
// which are whole halves of units.
struct OwnCut {
    uint32_t threads, subgroup, rows, group, ahead;
    uint64_t groups;  // at most
};
// As `cut` has it. `rows`: of a subgroup, whatever `cut` has; 0: as `cut` has them, or as many as make half a
// unit. `gated`: of two matrices.
OwnCut own_cut(const Device& device, const ProductCut& cut, uint32_t rows, bool gated);
// The grid of such a kernel: `results` of each row, and rows that are apart along y.
Groups own_groups(const View& view, const OwnCut& cut, uint64_t results);
// No more work-groups that take or prepare activations by themselves than fill a device.
inline Default most_owners(const Device& device) {
    return product_default(device, "groups");
}
// `cut` with tiles, where it has none yet, of which so many processors get one each: for weights of `rows`
// rows together, and a step of `tokens` rows. All steps of a class of rows get the same, for the number of
// rows that the tuner times, so that they share pipelines.
ProductCut filling_cut(uint32_t processors, ProductCut cut, uint64_t rows, uint64_t tokens);
// Of "linear_coop" and its like, by a path on matrix units, with the constants of shaders/include/coop.glsl.
// `most_tokens`: 32, 64 or 128. `paired`: half of a tile's rows are of a second matrix, and Tiles::rows
// counts one of them. Where the path allows it matrices are the work-group's.
constexpr uint32_t kMostTileTokens = 128;
Tiles coop_tiles(const Device& device, Path path, std::string_view kernel, const WeightLayout& layout,
                 uint32_t most_tokens = kMostTileTokens, bool paired = false, const ProductCut& cut = {});
// The module of "linear_coop" or its like for products of such a weight in int8, by dot products where the
// device has no matrices of codes; empty where it has neither, or where 16 elements share a scale and
// matrices have more columns.
std::string int8_module(const Device& device, std::string_view kernel, const WeightLayout& layout);
// The default of "int8", for products of many rows.
inline Default uses_int8(const Device& device) {
    return device.always_int8 ? asked_for(1) : product_default(device, "int8");
}
// Of products that go this way; of one row, or of few, or of a tile's many. `results`: rows of all matrices.
Choices product_choices(const Device& device, Path path, uint64_t results, bool gated);
// The default of "fragments": products of few rows fill matrices by their elements.
inline Default uses_fragments(const Device& device) {
    if (device.always_fragments && device.fragments) return asked_for(1);
    return product_default(device, "fragments");
}
// Up to how many rows products with all of these do so by default.
Default usual_fragment_rows(const Device& device, std::span<const Tensor> tensors);
// What kernels of products have in common: how they are cut is chosen alike.
class AnyProduct : public VulkanKernel {
protected:
    // Those that products of so many rows with weights of these formats may use, by choice; null: they don't.
    const Fragments* fragments_of(const Device& device, std::span<const Tensor> tensors, uint64_t rows) const;
    static void add_fragments(Choices& all, const Device& device);
    Ways ways(const Device& device) const;
    // Choices of up to how many rows products go which way, and of whether weights are unpacked. Steps of 2
    // to kFewRows rows that are to be alike all go the way of kFewRows, wherever the crossovers lie.
    static void add_ways(Choices& all, const Device& device, std::span<const Tensor> tensors, RowClass rows);
    // Products of many rows in int8, of weights for which the device has matrices.
    static bool can_go_int8(const Device& device, std::string_view kernel, std::span<const Tensor> tensors,
                            RowClass rows) {
        const bool many = rows == RowClass::some || rows == RowClass::many;
        return many && std::ranges::all_of(tensors, [&](const Tensor& w) {
                   return w.shape.cols % 32 == 0 &&
                          !int8_module(device, kernel, *weight_layout(*w.format)).empty();
               });
    }
    bool goes_int8(const Device& device, std::string_view kernel, std::span<const Tensor> tensors,
                   uint64_t rows) const {
        const RowClass size = row_class_of(rows);
        const bool passes = path_of(device, *tensors[0].format, tensors[0].shape.cols, rows) == Path::tiles &&
                            rows <= ways(device).dot_rows;
        return !passes && chosen(size, "int8", uses_int8(device).value) != 0 &&
               can_go_int8(device, kernel, tensors, size);
    }
    // Puts the choice before all others, since the best tiles depend on it. `path`: the way without it.
    static void add_int8(Choices& all, const Device& device, Path path) {
        const Default usual = uses_int8(device);
        all.insert(all.begin(), choice("int8", usual, {1 - usual.value}));
        if (in_coop_tiles(path) && path != Path::few) return;
        for (Choice& one : product_choices(device, Path::int8_matrices, 0, false))
            all.push_back(std::move(one));
    }
    ProductCut cut(uint64_t rows) const {
        const RowClass size = row_class_of(rows);
        const auto of = [&](std::string_view name) { return chosen(size, name, 0); };
        return {of("threads"),   of("rows"),        of("ahead"), of("groups"), of("subgroup"),
                of("tile_rows"), of("tile_tokens"), of("depth"), of("deep"),   of("high")};
    }
};
// Sizes of subgroups that kernels may have, its own first.
std::vector<uint32_t> subgroup_sizes(const Device& device);
// Activations as a path on matrix units wants them: `halves` gets 16 bits of each, `scales` a factor per row.
// With `fragments` they lie as few_fragments.glsl wants those of a step of so many rows.
Status record_halves(Recorder& recorder, const View& view, Path path, const args::HalvesArgs& args, Binding x,
                     Binding halves, Binding scales, Binding gain, uint64_t rows,
                     const Fragments* fragments = nullptr);
// The same for Path::int8_matrices: `codes` gets a byte of each, `scales` eight bytes for each 32 of them.
Status record_codes(Recorder& recorder, const View& view, const args::HalvesArgs& args, Binding x,
                    Binding codes, Binding scales, Binding gain, uint64_t rows);
// Whether one row of this many activations, as int8, and the weight's code book leave room in shared memory,
// for so many bytes more.
bool fits_shared(const Device& device, const WeightLayout& layout, uint64_t cols, uint64_t more = 0);

// A product of rows with a weight: y (+)= w * x + bias.
struct MatrixProduct {
    Weight w;
    Binding y;  // (rows, width of y)
    uint32_t rows = 1;
    uint32_t rows_kind = RL_ROWS_ALL;
    uint32_t stride = 0;  // of y
    Weight bias = {};
    bool accumulate = false;
    Act act = Act::silu;                    // of gated products
    std::optional<Function> function = {};  // of one row in int8; of others it is a dispatch of its own
    ProductCut cut = {};
};
Status record_product(Recorder& recorder, const View& view, const MatrixProduct& product,
                      const Activations& x, Path path);

// What products are told of a part of a weight.
args::LinearArgs linear_args(const PlacedWeight& w, const WeightPart& part, const MatrixProduct& product,
                             const Norm& norm);
// A product over tiles on matrix units, with `up` (of as many rows) a gated one. Of `rows_there` rows there
// is something to read.
Status record_matrices(Recorder& recorder, const View& view, const Tiles& tiles, Binding w, const Binding* up,
                       args::LinearArgs args, const MatrixProduct& product, const Activations& x,
                       uint64_t rows_there);

// A weight of Path::unpacked, or with `up` two, and what is made of it.
struct UnpackedProduct {
    const PlacedWeight* w;
    const PlacedWeight* up;
    MatrixProduct product;
};
// Of the scratch that kernels share, for weights of so many rows together, in steps of at most `most_tokens`.
uint64_t unpacked_scratch(const Device& device, uint64_t rows, uint64_t cols, uint64_t most_tokens);
// All products of an op; `at`: of the scratch that is theirs. While some rows of the weights are multiplied,
// the next are unpacked beside them.
Status record_unpacked(Recorder& recorder, const View& view, std::span<const UnpackedProduct> products,
                       const Activations& x, uint64_t at);

// Columns of the parts in which products leave rows as halfs: HAND_PART of handed_halfs.glsl.
constexpr uint32_t kHandedPart = 16;
// True where products with such weights can take the rows of few as halfs.
bool can_take_halfs(const Device& device, std::span<const Tensor> tensors);
// The tokens of a tile whose matrices are filled by their elements, for steps of so many rows.
uint32_t fragment_tokens(const Fragments& fragments, uint64_t rows);

// Products of one set of up to kMostFew rows on matrix units (Path::few), whose work-groups share
// columns where rows of the weights are few.
class FewProducts {
public:
    // True where products of `rows` rows with such a weight go this way: with `fragments` each invocation
    // fills its part of the matrices by itself, else a work-group decodes weights in shared memory.
    static bool wanted(const Device& device, const Format& format, uint64_t cols, uint64_t rows,
                       const Fragments* fragments, const Ways& ways);
    // Bytes of the scratch that kernels share, for the products of an op with these matrices in steps of at
    // most `most_rows` rows. `paired`: every matrix comes with another like it.
    static uint64_t scratch(const Device& device, std::span<const Tensor> matrices, bool paired,
                            uint64_t most_rows);

    // `at`: of the scratch that is theirs; `results`: rows of all matrices together.
    FewProducts(Recorder& recorder, const View& view, const Activations& x, uint64_t at, uint64_t results,
                const Fragments* fragments)
        : recorder_(recorder), view_(view), x_(x), at_(at), results_(results), fragments_(fragments) {}
    // With `up` a gated product.
    Status record(const MatrixProduct& product, const PlacedWeight& w, const PlacedWeight* up);

private:
    Status record_part(const MatrixProduct& product, const PlacedWeight& w, const WeightPart& part,
                       const WeightPart* up);
    Status record_fragments(const MatrixProduct& product, const PlacedWeight& w, const WeightPart& part,
                            const WeightPart* up);

    Recorder& recorder_;
    const View& view_;
    const Activations& x_;
    uint64_t at_;
    uint64_t results_;
    const Fragments* fragments_;
    uint32_t counters_ = 0;  // that are in use
};

// Invocations of work-groups that prepare activations by themselves, as far as the device goes.
uint32_t own_threads(const Device& device);
// Work-groups of `threads` whose subgroups own `per_subgroup` rows each.
uint64_t vector_groups(uint64_t rows, uint32_t per_subgroup, const Device& device,
                       uint32_t threads = kThreads, uint32_t subgroup = 0);

}  // namespace redline::vulkan
