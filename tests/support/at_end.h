// What a test program closes when its cases have run.
#pragma once

#include <functional>

namespace redline::test {

// Called before main returns: later, drivers and their layers may be gone already.
void at_end(std::function<void()> close);

}  // namespace redline::test
