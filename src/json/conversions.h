// Only for precompiled headers: evaluates which of the common types convert to JSON. These checks take longer
// than all else in those files, and are compiled with the headers.
#pragma once

#include "json/json.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace redline::json_conversions {

template <typename T>
constexpr bool becomes_json = sizeof(decltype(Json(std::declval<T>()))) +
                                  sizeof(decltype(Json(std::declval<T&>()))) +
                                  sizeof(decltype(Json(std::declval<const T&>()))) +
                                  sizeof(decltype(std::declval<Json&>() = std::declval<T>())) +
                                  sizeof(decltype(std::declval<Json&>() = std::declval<const T&>())) >
                              0;
template <typename... T>
constexpr bool all_become_json = (becomes_json<T> && ...);

static_assert(all_become_json<Json, std::string, std::string_view, const char*, bool, int, uint32_t, int64_t,
                              uint64_t, float, double, std::vector<std::string>, std::nullptr_t>);

}  // namespace redline::json_conversions
