// A model's step as a flat list of ops with symbolic buffers, recorded once and never changed. What varies
// per token travels in StepParams. PlanBuilder is what model files write; lower() matches a plan to a
// backend.
#pragma once

#include "plan/ops.h"

#include <span>
#include <string>

namespace redline {

// A weight as the plan sees it. A matrix may be a range of rows of a file tensor (fused q/k/v).
enum class WeightRole : uint8_t { matrix, vector };
struct WeightInfo {
    Tensor tensor;  // shape of the logical weight
    WeightRole role = WeightRole::matrix;
    // What products with it are multiplied by before a bias is added: a number, or of experts a weight with
    // one for each. PlanBuilder makes ops of it; a finished plan has none.
    float scale = 1.0f;
    Weight scales = {};
};

struct SlotInfo {
    uint32_t width = 0;       // elements per row
    bool of_outputs = false;  // one row per wanted output instead of per token
    uint64_t offset = 0;      // into the arena, in bytes; set by assign_arena
    // A row of another slot in int8, for steps of one row: the step that writes that one leaves it here, in
    // the backend's own layout, for the step whose norm this is. Declared by lower().
    bool int8 = false;
    Norm norm = {};
};
constexpr uint64_t kInt8UnitBytes = 56;  // of 32 elements in int8: the most that a backend's layout takes

struct Step {
    Op op;
    uint32_t layer = 0;
    bool barrier = false;  // must wait for the steps before it; set by assign_arena
    // Slots in int8: of the row that it writes, and of that of its operand.
    Slot leaves = {};
    Slot takes = {};
};

// What the caches of a plan are sized by.
struct CacheSizing {
    uint64_t context = 0;  // tokens of a sequence
    uint32_t batch = 1;    // most tokens of a step, of all plans that share the caches
    CacheType type = CacheType::f16;
    uint32_t sequences = 1;  // that there may be at a time
    uint64_t pages = 0;      // of caches without a window, for all sequences; 0: there is one, without pages
    uint32_t states = 0;     // rows of caches of states; 0: one for each sequence
};

struct Plan {
    std::vector<Step> steps;
    bool overlaps = false;     // steps that do not wait for each other run at the same time
    bool layers_wait = false;  // a layer waits for those before it: of what is timed
    std::vector<SlotInfo> slots;
    std::vector<RopeSpec> ropes;
    std::vector<WeightInfo> weights;
    std::vector<CacheInfo> caches;
    CacheSizing sizing;        // of the caches
    uint32_t max_rows = 1;     // tokens per step
    uint32_t max_outputs = 1;  // rows of output per step
    Slot input;                // (rows, width): what an Input takes from the host; most plans have none
    Slot lookup;               // (rows, width): what a Lookup takes, likewise
    Slot output;               // (outputs, width): read by the host after a step
    uint64_t arena_bytes = 0;

    const WeightInfo& weight(Weight w) const { return weights[size_t(w.index)]; }
    const SlotInfo& slot(Slot s) const { return slots[size_t(s.index)]; }
    const CacheInfo& cache(Cache c) const { return caches[size_t(c.index)]; }
    // Floats that the host gives with a step.
    uint64_t input_floats(uint64_t rows) const { return input ? rows * slot(input).width : 0; }
    uint64_t lookup_floats(uint64_t rows) const { return lookup ? rows * slot(lookup).width : 0; }
    uint64_t slot_bytes(Slot s) const {
        if (slot(s).int8) return slot(s).width / 32 * kInt8UnitBytes;
        return uint64_t(slot(s).width) * 4 * (slot(s).of_outputs ? max_outputs : max_rows);
    }
};

constexpr uint32_t kNoRope = UINT32_MAX;  // of attend(): queries and keys are not rotated

// Verbs of a model file. Each appends one op and returns the slot it writes.
class PlanBuilder {
public:
    PlanBuilder(std::vector<WeightInfo> weights, CacheSizing sizing, uint32_t max_rows, uint32_t max_outputs);

    // Everything of a plan but its steps.
    static PlanBuilder like(const Plan& plan);

    uint32_t add_rope(RopeSpec spec);
    void next_layer() { ++layer_; }
    // `window` > 0: no attention on it looks further back than so many tokens.
    Cache cache(uint32_t kv_heads, uint32_t head_dim, uint64_t window = 0);
    Cache state(uint64_t floats);
    // Rows of `width`, the first `rank` of which are a latent.
    Cache latents(uint32_t width, uint32_t rank, uint64_t window = 0);
    // Latents of blocks of `ratio` tokens, a divisor of kPageRows.
    Cache entries(uint32_t width, uint32_t ratio);
    Slot slot(uint32_t width, bool of_outputs = false);

    Slot embed(Weight table, float scale = 1.0f);
    // What the host looks up for each token; once in a plan.
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
    // Both for a group's q, k and v. `rope` may be kNoRope.
    Slot attend(Cache cache, const std::array<Slot, 3>& qkv, HeadShape shape, uint32_t rope, float scale,
                Norm q_norm = {}, Norm k_norm = {}, float softcap = 0.0f, Weight sinks = {},
                float v_eps = 0.0f);
    // For each head w[h] times its part of x; parts of x and of the result stand so far apart.
    Slot head_linear(Slot x, Weight w, uint32_t x_stride, uint32_t y_stride);
    Slot latent_attention(Cache cache, Slot q, uint32_t heads, float scale);
    Slot convolve(Cache state, Slot x, Weight w, uint32_t taps, bool silu, Slot before = {}, Slot behind = {},
                  uint32_t apart = 1);
    // Parts of x alone, side by side.
    Slot parts_of(Slot x, uint32_t parts, uint32_t width, uint32_t first, uint32_t stride);
    // x += scale * norm(y): what a block with a norm behind it adds to the residual.
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
    };
    struct Experts {
        Weight gate, up, down;
        Act act = Act::silu;
        Weight gate_bias = {}, up_bias = {}, down_bias = {};  // (experts, rows of the matrix)
    };
    void experts_add(Slot into, Slot x, const Routing& routing, const Experts& experts);
    // x += the experts that norm(x) goes to.
    void expert_block(Slot x, Norm norm, const Router& router, const Experts& experts);
    // The head: norm and product of the rows whose output is wanted, as Scale has them.
    void logits(Slot x, Weight w, Norm norm, float scale = 1.0f, float softcap = 0.0f);
    // Makes a slot the plan's output as it is (tests).
    void output(Slot x);
    void append(Op op);

    // Checks every op; an error here is a mistake of a model file or a shape that the file should not have
    // had.
    Result<Plan> finish() &&;
    const Plan& plan() const { return plan_; }

private:
    PlanBuilder() = default;
    template <size_t kCount>
    std::array<Slot, kCount> group_of(Slot x, const std::array<Matrix, kCount>& parts, Norm norm);
    void push(Op op) { plan_.steps.push_back({std::move(op), layer_, false}); }
    // Core ops with a weight that has a scale: the op, and what multiplies its result.
    void append_scaled(const Linear& op);
    void append_scaled(const HeadLinear& op);
    void append_scaled(const Route& op);
    void append_scaled(const ExpertLinear& op);

    uint32_t layer_ = 0;
    Plan plan_;
};

// The op's, and the slots in int8.
Access access(const Step& step);
// The last of the first `before` steps that writes a slot; none does: `before`.
size_t last_writer(const Plan& plan, size_t before, Slot slot);

// Sets slot offsets (slots that are not alive together share memory, unless `reuse` is false; `gap` bytes are
// left behind each), the arena size and the barrier flags. Where steps overlap, what runs at the same time
// shares none.
void assign_arena(Plan& plan, bool reuse = true, uint64_t gap = 0);

}  // namespace redline
