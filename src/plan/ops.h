// The vocabulary of a decoder: all ops, and functions that work on any of them. An op is its struct in the
// file of its family and a place in the list at that file's end.
#pragma once

#include "plan/ops/attention.h"
#include "plan/ops/blocks.h"
#include "plan/ops/each.h"
#include "plan/ops/experts.h"
#include "plan/ops/latent.h"
#include "plan/ops/products.h"
#include "plan/ops/recurrent.h"
#include "plan/ops/rows.h"
#include "plan/ops/streams.h"

#include <variant>

namespace redline {

// CORE(op) for each that the reference computes, FUSED(op) for those that are always made of others.
#define RL_OPS(CORE, FUSED)       \
    RL_ROW_OPS(CORE, FUSED)       \
    RL_PRODUCT_OPS(CORE, FUSED)   \
    RL_EACH_OPS(CORE, FUSED)      \
    RL_ATTENTION_OPS(CORE, FUSED) \
    RL_LATENT_OPS(CORE, FUSED)    \
    RL_EXPERT_OPS(CORE, FUSED)    \
    RL_RECURRENT_OPS(CORE, FUSED) \
    RL_BLOCK_OPS(CORE, FUSED)     \
    RL_STREAM_OPS(CORE, FUSED)

template <typename, typename... Ops>
struct OpsBehind {
    using Any = std::variant<Ops...>;
};
#define RL_LISTED(Listed) , Listed
using Op = OpsBehind<void RL_OPS(RL_LISTED, RL_LISTED)>::Any;
#undef RL_LISTED

std::string_view op_name(const Op& op);
// The ops that a block of experts is made of: its norm, its router, two products, and the same of a shared
// expert.
std::vector<Op> block_parts(const ExpertBlock& block);
Access access(const Op& op);
std::optional<Operand> operand(const Op& op);
// The op as a product by such; null: it is another op, or a product by others.
const Product* product_by(By by, const Op& op);
// The op that adds the bias of a product with one matrix.
Op bias_of(const Product& op);
// The op as attention to such keys; null: it is another op, or attends to others.
const Attention* attention_to(Keys keys, const Op& op);
// Checks that shapes and formats fit; an error names the op and the difference.
Status check(const Op& op, const Plan& plan);
Cost cost(const Op& op, const Plan& plan, const StepShape& shape);
// Replaces an op by simpler ones, peeling one fusion at a time; false when the op is a core op as it stands.
bool decompose(const Op& op, PlanBuilder& out);

// "linear Q4_K 2048 x 5632 +norm +add", for people; kernel_key() distinguishes more ops.
std::string op_text(const Op& op, const Plan& plan);
// The names of the tensors it reads: "blk.0.attn_q.weight, ..."; empty for none.
std::string op_tensors(const Op& op, const Plan& plan);
// " of blk.0.attn_q.weight (Q4_K, 2048 x 2048)", for a message that names the op; empty without a matrix.
std::string op_matrix(const Op& op, const Plan& plan);

// A key that tells the kernels of ops apart: the op's text, its caches' types, how many rows a step may have,
// and a fingerprint of all fields that select a kernel or change how it computes. See plan/kernel_key.h.
std::string kernel_key(const Op& op, const Plan& plan);

}  // namespace redline
