// The filters on sequences, which are a part of the table of filters.
#pragma once

#include "text/jinja/arguments.h"

namespace redline::jinja {

Builtin find_sequence_filter(std::string_view name);

}  // namespace redline::jinja
