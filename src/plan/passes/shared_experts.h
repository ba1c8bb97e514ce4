// Shared experts as parts of the blocks of experts that they stand beside.
#pragma once

#include "plan/plan.h"

namespace redline {

// The plan with every norm, router and experts whose shared expert follows them as one ExpertBlock, where
// nothing else reads what is between them. Model files append such steps one by one, so that the experts can
// be computed on another device than the shared one.
Plan with_shared_experts(Plan plan);

}  // namespace redline
