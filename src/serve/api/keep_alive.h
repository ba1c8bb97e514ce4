// Ollama's wish for how long a model stays in memory when nobody uses it.
#pragma once

#include "serve/api/fields.h"

#include <chrono>

namespace redline::serve {

inline constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

// The member keep_alive: seconds, or a text such as "5m", "1h30m" or "300ms"; below 0: forever. Absent: the
// request leaves it open.
Result<std::optional<std::chrono::milliseconds>> read_keep_alive(const Fields& fields);

}  // namespace redline::serve
