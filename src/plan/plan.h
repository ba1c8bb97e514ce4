// A model's step as a flat list of ops with symbolic buffers, recorded once and never changed. Values that
// vary per token travel in StepParams. Model files write with PlanBuilder; lower() matches a plan to a
// backend.
#pragma once

#include "plan/ops.h"

#include <algorithm>
#include <span>
#include <string>

namespace redline {

// A weight as the plan sees it. A matrix may be a range of rows of a file tensor (fused q/k/v).
enum class WeightRole : uint8_t { matrix, vector };
struct WeightInfo {
    Tensor tensor;  // shape of the logical weight
    WeightRole role = WeightRole::matrix;
    // Factors of products with this weight, before a bias is added: one number, or for experts a weight with
    // one for each. PlanBuilder turns them into ops; a finished plan has none.
    float scale = 1.0f;
    Weight scales = {};
};

struct SlotInfo {
    uint32_t width = 0;       // elements per row
    bool of_outputs = false;  // one row per wanted output instead of per token
    uint64_t offset = 0;      // into the arena, in bytes; set by assign_arena
    // This slot is another slot's rows as the products of a backend take them, after `norm`: the step that
    // writes the rows writes this, too, for the step whose norm it is. Declared by lower(), for steps of one
    // row, of few rows, or both.
    bool handed = false;
    bool handed_one = false, handed_few = false;
    Norm norm = {};
};
// 32 elements in the largest layout of any backend: one row in int8, or few rows.
constexpr uint64_t kHandedUnitBytes = 56, kHandedFewUnitBytes = 16 * (64 + 16);

struct Step {
    Op op;
    uint32_t layer = 0;
    bool barrier = false;  // must wait for the steps before it; set by assign_arena
    // Handed slots: the rows that this step writes, and those that it reads as its operand.
    Slot leaves = {};
    Slot takes = {};
};

// The sizes that the caches of a plan are made for.
struct CacheSizing {
    uint64_t context = 0;  // tokens of a sequence
    uint32_t batch = 1;    // most tokens of a step, of all plans that share the caches
    CacheTypes types = {};
    uint32_t sequences = 1;  // most sequences at a time
    uint64_t pages = 0;      // of caches without a window, for all sequences; 0: one sequence, without pages
    uint32_t states = 0;     // rows of caches of states; 0: one for each sequence
    // Steps of one to kFewAlike rows of a sequence compute each row as it would be alone, see AlikeRows.
    bool alike_rows = false;
};

// The rows of CacheSizing::alike_rows.
constexpr uint32_t kFewAlike = 8;

struct Plan {
    std::vector<Step> steps;
    bool overlaps = false;     // steps that do not wait for each other run at the same time
    bool layers_wait = false;  // a layer waits for the one before it, in plans that are timed
    std::vector<SlotInfo> slots;
    std::vector<RopeSpec> ropes;
    std::vector<WeightInfo> weights;
    std::vector<CacheInfo> caches;
    CacheSizing sizing;        // of the caches
    uint32_t max_rows = 1;     // tokens per step
    uint32_t max_outputs = 1;  // rows of output per step
    Slot input;                // (rows, width): the rows that Input takes from the host; most plans have none
    Slot lookup;               // (rows, width): the rows that Lookup takes, likewise
    Slot output;               // (outputs, width): read by the host after a step
    Slot hidden;               // (rows, width): likewise; most plans leave none
    uint64_t arena_bytes = 0;

    const WeightInfo& weight(Weight w) const { return weights[size_t(w.index)]; }
    const SlotInfo& slot(Slot s) const { return slots[size_t(s.index)]; }
    const CacheInfo& cache(Cache c) const { return caches[size_t(c.index)]; }
    // Floats that the host supplies with a step.
    uint64_t input_floats(uint64_t rows) const { return input ? rows * slot(input).width : 0; }
    uint64_t lookup_floats(uint64_t rows) const { return lookup ? rows * slot(lookup).width : 0; }
    // True where a step of so many rows is to compute each of them as it would be alone.
    bool alike(uint64_t rows) const {
        return sizing.alike_rows && sizing.pages > 0 && max_rows > 1 && rows <= kFewAlike;
    }
    // The rows by whose number the work of such a step is divided.
    uint32_t divided_rows(uint32_t rows) const { return alike(rows) ? std::min(kFewAlike, max_rows) : rows; }
    uint64_t slot_bytes(Slot s) const {
        if (slot(s).handed)
            return slot(s).width / 32 *
                   (max_rows > 1 && slot(s).handed_few ? kHandedFewUnitBytes : kHandedUnitBytes);
        return uint64_t(slot(s).width) * 4 * (slot(s).of_outputs ? max_outputs : max_rows);
    }
};

constexpr uint32_t kNoRope = UINT32_MAX;  // given to attend(): queries and keys are not rotated

// Verbs of a model file. Each appends one op and returns the slot it writes.
class PlanBuilder {
public:
    PlanBuilder(std::vector<WeightInfo> weights, CacheSizing sizing, uint32_t max_rows, uint32_t max_outputs);

    // A builder with everything of a plan but its steps.
    static PlanBuilder like(const Plan& plan);

    uint32_t add_rope(RopeSpec spec);
    void next_layer() { ++layer_; }
    // `window` > 0: no attention on it looks further back than so many tokens.
    Cache cache(uint32_t kv_heads, uint32_t head_dim, uint64_t window = 0);
    Cache state(uint64_t floats);
    // Rows of `width`, the first `rank` of which are a latent.
    Cache latents(uint32_t width, uint32_t rank, uint64_t window = 0);
    // Latents of blocks of `ratio` tokens; kPageRows is a multiple of `ratio`.
    Cache entries(uint32_t width, uint32_t ratio);
    Slot slot(uint32_t width, bool of_outputs = false);

    // The caches that are made next are behind those of another plan, with which the plan shares its store.
    void follow(std::vector<CacheInfo> caches) { plan_.caches = std::move(caches); }
    // The plan is to leave its last hidden rows to the host: see Plan::hidden.
    void want_hidden() { wants_hidden_ = true; }
    bool wants_hidden() const { return wants_hidden_; }
    void leave_hidden(Slot x) { plan_.hidden = x; }

    // The rows that the host gives with each step; once in a plan.
    Slot input(uint32_t width);
    Slot embed(Weight table, float scale = 1.0f);
    // The rows that the host looks up for each token; once in a plan.
    Slot look_up(uint32_t width);
    Slot rms_norm(Slot x, Norm norm, float scale = 1.0f);
    Slot centered(Slot x);
    Slot layer_norm(Slot x, Norm norm, Weight bias);
    Slot linear(Slot x, Weight w, Norm norm = {}, Weight bias = {}, std::optional<Function> function = {});
    void linear_add(Slot into, Slot x, Weight w, Weight bias = {});
    struct Matrix {
        Weight w;
        Weight bias = {};
    };
    std::array<Slot, 3> group(Slot x, std::array<Matrix, 3> parts, Norm norm);
    std::array<Slot, 2> group(Slot x, Matrix first, Matrix second, Norm norm);
    std::array<Slot, 4> group(Slot x, Matrix first, Matrix second, Matrix third, Matrix last, Norm norm);
    void rope_store(Cache cache, Slot q, Slot k, Slot v, HeadShape shape, uint32_t rope, Norm q_norm = {},
                    Norm k_norm = {});
    Slot attention(Cache cache, Slot q, HeadShape shape, float scale, float softcap = 0.0f,
                   Weight sinks = {});
    // rope_store() and attention() for the q, k and v of a group. `rope` may be kNoRope.
    Slot attend(Cache cache, const std::array<Slot, 3>& qkv, HeadShape shape, uint32_t rope, float scale,
                Norm q_norm = {}, Norm k_norm = {}, float softcap = 0.0f, Weight sinks = {},
                float v_eps = 0.0f);
    // For each head w[h] times its part of x; the strides are the distances between parts of x and of the
    // result.
    Slot head_linear(Slot x, Weight w, uint32_t x_stride, uint32_t y_stride);
    Slot latent_attention(Cache cache, Slot q, uint32_t heads, float scale);
    Slot convolve(Cache state, Slot x, Weight w, uint32_t taps, bool silu, Slot before = {}, Slot behind = {},
                  uint32_t apart = 1);
    // Copies parts of x into a new slot, side by side.
    Slot parts_of(Slot x, uint32_t parts, uint32_t width, uint32_t first, uint32_t stride);
    // x += scale * norm(y): the residual connection of a block that ends with a norm.
    void add(Slot into, Slot x, float scale = 1.0f, Norm norm = {});
    Slot gated(Slot x, Weight gate, Weight up, Act act, Norm norm = {});
    struct Routing {
        Slot ids;
        Slot scales;
        uint32_t used = 0;
    };
    Routing route(Slot x, Weight w, uint32_t used, Gating gating, bool normalise, float scale = 1.0f,
                  Weight bias = {}, BiasOf bias_of = BiasOf::choice, ExpertGroups groups = {},
                  Weight table = {}, Norm norm = {}, float x_scale = 1.0f);
    struct Router {
        Weight w;
        uint32_t used = 0;
        Gating gating = Gating::softmax;
        bool normalise = true;
        float scale = 1.0f;
        Weight bias = {};
        BiasOf bias_of = BiasOf::choice;
        ExpertGroups groups = {};
    };
    struct Experts {
        Weight gate, up, down;
        Act act = Act::silu;
        Weight gate_bias = {}, up_bias = {}, down_bias = {};  // (experts, rows of the matrix)
    };
    void experts_add(Slot into, Slot x, const Routing& routing, const Experts& experts);
    // The results of each row's experts, side by side; and such rows, added up by the experts' weights.
    Slot experts(Slot x, Weight w, const Routing& routing, std::optional<Function> function = {});
    void add_experts(Slot into, Slot x, Weight w, const Routing& routing, Weight bias = {});
    // x += the experts that the router chooses for norm(x), and the shared one, whose slots are made here.
    void expert_block(Slot x, Norm norm, const Router& router, const Experts& experts,
                      SharedExpert shared = {});
    // The head: norm and product of the rows whose output is wanted, then scale and softcap as rows of
    // each.def.
    void logits(Slot x, Weight w, Norm norm, float scale = 1.0f, float softcap = 0.0f);
    // Makes a slot the plan's output unchanged (tests).
    void output(Slot x);
    // Ops on a cache whose keys or values are rotated are recorded with the rotations around them, but by a
    // builder that is like() a plan, which has them already.
    void append(Op op);

    // Checks every op; an error here is a mistake of a model file or a shape that the file should not have
    // had.
    Result<Plan> finish() &&;
    const Plan& plan() const { return plan_; }

private:
    PlanBuilder() = default;
    template <size_t kCount>
    std::array<Slot, kCount> group_of(Slot x, const std::array<Matrix, kCount>& parts, Norm norm);
    // False when the op's cache is not rotated.
    bool append_rotated(const Op& op);
    Slot rotated(Slot x, uint32_t width);
    void push(Op op) { plan_.steps.push_back({std::move(op), layer_, false}); }
    // Append a core op whose weight has a scale, and the ops that apply the scale.
    void append_scaled(const Product& op);
    void append_scaled(const Route& op);

    uint32_t layer_ = 0;
    bool wants_hidden_ = false;
    bool has_rotations_ = false;
    Plan plan_;
};

// The accesses of the step's op and of its slots in int8.
Access access(const Step& step);
// The last of the first `before` steps that writes a slot; `before` when none does.
size_t last_writer(const Plan& plan, size_t before, Slot slot);

// Sets slot offsets, the arena size and the barrier flags. Slots that are not alive together share memory,
// unless `reuse` is false; `gap` bytes are left behind each. Where steps overlap, steps that run at the same
// time share none.
void assign_arena(Plan& plan, bool reuse = true, uint64_t gap = 0);

}  // namespace redline
