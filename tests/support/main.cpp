#define DOCTEST_CONFIG_IMPLEMENT
#include "at_end.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

static std::vector<std::function<void()>>& closers() {
    static std::vector<std::function<void()>> all;
    return all;
}

static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
}

static void add_line(std::string line) {
    if (std::find(lines().begin(), lines().end(), line) == lines().end()) lines().push_back(std::move(line));
}

void redline::test::at_end(std::function<void()> close) {
    closers().push_back(std::move(close));
}

void redline::test::tested_on(const std::string& device) {
    add_line("tested on " + device);
}

void redline::test::not_tested(const std::string& why) {
    add_line("not tested: " + why);
}

int main(int argc, char** argv) {
    // Checks of kernels, and timing them, are tests of their own; where nothing is remembered every program
    // would repeat them.
    ::setenv("REDLINE_SELF_TEST", "0", 0);
    ::setenv("REDLINE_QUICK_TUNE", "0", 0);
    const int status = doctest::Context(argc, argv).run();
    for (const std::string& line : lines()) std::printf("[redline] %s\n", line.c_str());
    std::fflush(stdout);
    for (const std::function<void()>& close : closers()) close();
    return status;
}
