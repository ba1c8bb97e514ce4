// Texts that are too large for any context are refused by their size, before minutes go into their tokens.
#pragma once

#include "places/model.h"

#include <string_view>

namespace redline::cli {

// An error where so many bytes cannot fit into the context, whatever they are: a token has a few at most.
// The tokens of texts of some megabytes are counted all the same, which says more. `what` begins the
// sentence.
Status check_text_size(const Model& model, std::string_view what, uint64_t bytes, uint64_t context);

}  // namespace redline::cli
