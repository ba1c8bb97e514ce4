// The parts of ops, and the facts that an op states about itself. Sizes are in elements; `rows` is the number
// of tokens in a step. Every slot element is 32 bits: a float, or an int32 for expert ids.
//
// An op is a struct with kName, name() where it has a name for each of its kinds, access(), visit_indices()
// of every slot, weight, cache and rope that it names, list(OpFacts&) for its shapes, weights and text,
// cost() unless it is that of the matrices it lists, operand() if it multiplies rows that may be in int8, and
// decompose(PlanBuilder&) unless it is a core op, which every backend must offer. decompose() peels one
// fusion at a time and returns false when the op is a core op as it stands.
#pragma once

#include "base/result.h"
#include "formats/tensor.h"
#include "plan/types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

struct Plan;
class PlanBuilder;

// Index of an activation buffer of the plan.
struct Slot {
    int32_t index = -1;
    explicit operator bool() const { return index >= 0; }
    bool operator==(const Slot&) const = default;
};

// Index of a key-value cache of the plan: layers that name the same one share it.
struct Cache {
    int32_t index = -1;
    explicit operator bool() const { return index >= 0; }
    bool operator==(const Cache&) const = default;
};

// Index of a weight in the model's list; absent when negative.
struct Weight {
    int32_t index = -1;
    explicit operator bool() const { return index >= 0; }
    bool operator==(const Weight&) const = default;
};

struct Norm {  // root-mean-square norm; absent when gain is null
    Weight gain;
    float eps = 0.0f;
    explicit operator bool() const { return bool(gain); }
};

// signed_root: sign(y) * sqrt(max(|y|, 1e-6)).
enum class Function : uint8_t { silu, squared_relu, gelu_tanh, sigmoid, signed_root };
std::string_view function_name(Function function);

// The row that an op multiplies with its matrices: norm(x).
struct Operand {
    Slot x;
    Norm norm;
};

// The slots that an op reads and writes (a slot that is accumulated into is in both).
struct Access {
    std::vector<Slot> reads;
    std::vector<Slot> writes;
    bool reads_cache = false;
    bool writes_cache = false;
    std::vector<Slot> scratch = {};  // written as well; their content is undefined afterwards
};

struct StepShape {  // the sizes that an op's cost depends on
    uint64_t rows = 1;
    uint64_t outputs = 1;
    uint64_t kv_len = 1;
};

struct Cost {
    uint64_t weight_bytes = 0;  // read once per step
    uint64_t cache_bytes = 0;
    uint64_t flops = 0;

    Cost operator+(const Cost& other) const {
        return {weight_bytes + other.weight_bytes, cache_bytes + other.cache_bytes, flops + other.flops};
    }
};

// Collects an op's description: its weights, the first mismatch of shapes and slots, and its text.
class OpFacts {
public:
    explicit OpFacts(const Plan& op_plan) : plan(op_plan) {}

    void slot(const char* what, Slot s, uint64_t width);
    Shape matrix(const char* what, Weight w);  // returns the shape, whatever it is
    void matrix(const char* what, Weight w, uint64_t rows, uint64_t cols, uint64_t count = 1);
    // A vector that may be absent; when it is there, `note` is added to the text.
    void vector(const char* what, Weight w, uint64_t width, std::string_view note = {});
    void that(bool holds, std::string_view what) {
        if (!holds) fail("{}", what);
    }
    void note(std::string_view text) { notes += text; }

    // Null, with a mismatch noted, when the plan has no such cache.
    const CacheInfo* cache(Cache c);

    uint64_t width(Slot s) const;
    Shape shape(Weight w) const;

    const Plan& plan;
    std::vector<Weight> matrices, vectors;
    std::string notes;  // the text behind name and matrices
    std::optional<Error> mismatch;

private:
    bool found(const char* what, int32_t index, size_t count);
    template <typename... Args>
    void fail(fmt::format_string<Args...> format, Args&&... args) {
        if (!mismatch) mismatch = error(format, std::forward<Args>(args)...);
    }
};

}  // namespace redline
