// The end of a test program: it reports the devices that its cases ran on, and closes what they share.
#pragma once

#include <functional>
#include <string>

namespace redline::test {

// Called before main returns: later, drivers and their layers may be gone already.
void at_end(std::function<void()> close);

// Said once each when the cases have run, because doctest counts neither: "vulkan: NAME, LEVEL" was tested;
// this was not, and why. tools/test --gpu reads these lines.
void tested_on(const std::string& device);
void not_tested(const std::string& why);
// The same of the test case that runs, which returns next: it counts as skipped, and not as passed. A program
// whose cases are all skipped ends with kSkipped, which ctest shows as skipped.
void skip_case(const std::string& why);
constexpr int kSkipped = 77;

}  // namespace redline::test

// Skips the rest of the test case.
#define RL_SKIP(why)                   \
    do {                               \
        redline::test::skip_case(why); \
        return;                        \
    } while (false)
