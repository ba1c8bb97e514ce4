// An op in words, for info --plan and bench --ops: what it is, of which formats and sizes, and what is fused
// into it.
#pragma once

#include "plan/plan.h"

#include <string>

namespace redline::cli {

// "linear Q4_K 2048 x 5632 +norm +add"; the same for two ops that do the same work.
std::string describe_op(const Op& op, const Plan& plan);
// The tensors it reads, by name: "blk.0.attn_q.weight, ..."; empty for none.
std::string op_tensors(const Op& op, const Plan& plan);

}  // namespace redline::cli
