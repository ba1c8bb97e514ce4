#define DOCTEST_CONFIG_IMPLEMENT
#include "at_end.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

static std::vector<std::function<void()>>& closers() {
    static std::vector<std::function<void()>> all;
    return all;
}

void redline::test::at_end(std::function<void()> close) {
    closers().push_back(std::move(close));
}

int main(int argc, char** argv) {
    const int status = doctest::Context(argc, argv).run();
    for (const std::function<void()>& close : closers()) close();
    return status;
}
