// The table of filters is made of two files' halves.
#pragma once

#include "text/jinja/arguments.h"

namespace redline::jinja {

Builtin find_sequence_filter(std::string_view name);

}  // namespace redline::jinja
