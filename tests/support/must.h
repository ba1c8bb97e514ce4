// The value of a result that a test cannot do without: an error ends the test case with its message.
#pragma once

#include "base/result.h"

#include <doctest/doctest.h>

#include <utility>

namespace redline::test {

template <typename T>
T must(Result<T> result) {
    REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
    return std::move(result).value();
}
inline void must(Status status) {
    REQUIRE_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message));
}

}  // namespace redline::test
