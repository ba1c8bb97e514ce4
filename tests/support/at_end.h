// What a test program does when its cases have run: it says what they ran on, and closes what they share.
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

}  // namespace redline::test
