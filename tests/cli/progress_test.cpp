// Sizes and progress: in a unit that fits, so that nothing that is there is shown as nothing.
#include "cli/terminal/progress.h"
#include "cli/version.h"

#include <doctest/doctest.h>

using namespace redline::cli;
using std::chrono::milliseconds;

TEST_CASE("sizes: the unit fits, and only nothing is 0") {
    CHECK(decimal_size(0) == "0.00 kB");
    CHECK(decimal_size(5) == "0.01 kB");
    CHECK(decimal_size(400) == "0.4 kB");
    CHECK(decimal_size(11'835'520) == "11.8 MB");
    CHECK(decimal_size(2'700'000'000) == "2.70 GB");
}

TEST_CASE("progress: both counts have the unit of the total, and the rate has a separate one") {
    CHECK(progress_text(5'300'000, 11'835'520, milliseconds(100)) == "44 %  5.3 of 11.8 MB  53.0 MB/s");
    CHECK(progress_text(300, 900, milliseconds(1000)) == "33 %  0.3 of 0.9 kB  0.3 kB/s");
    CHECK(progress_text(1'210'000'000, 2'700'000'000, milliseconds(500)) ==
          "44 %  1.21 of 2.70 GB  2.42 GB/s");
    CHECK(progress_text(0, 0, milliseconds(0)).starts_with("100 %"));
}

TEST_CASE("progress: tokens are counted as tokens") {
    CHECK(progress_text(950, 2112, milliseconds(2000), Counted::tokens) ==
          "44 %  950 of 2112 tokens  475 tok/s");
}

TEST_CASE("what a build lacks: many kinds of GPU are told by their families") {
    CHECK(
        short_lacks("HIP kernels for gfx90a, gfx942, gfx1030, gfx1151, gfx9-4-generic, gfx12-generic (it was "
                    "built with RL_HIP_TARGETS=host), so that those GPUs compute with Vulkan") ==
        "HIP kernels for 6 kinds of AMD GPU (gfx9, gfx10, gfx11, gfx12) (it was built with "
        "RL_HIP_TARGETS=host), so that those GPUs compute with Vulkan");
    CHECK(short_lacks("HIP kernels for gfx90a, gfx942, so that") ==
          "HIP kernels for gfx90a, gfx942, so that");
    CHECK(short_lacks("the Vulkan backend, since glslang is not here") ==
          "the Vulkan backend, since glslang is not here");
    CHECK(short_lacks("").empty());
}
