// The corpora of the fuzz targets for requests and connections, replayed with any compiler: each target ends
// the program where one of its checks fails.
#include "support/material.h"

#include "base/file.h"

#include <doctest/doctest.h>

#define LLVMFuzzerTestOneInput fuzz_body
#include "fuzz/serve_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_connection
#include "fuzz/http_fuzz.cpp"
#undef LLVMFuzzerTestOneInput

using namespace redline;

static size_t replay(const char* name, int (*target)(const uint8_t*, size_t)) {
    size_t files = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(test::source_file(std::string("tests/fuzz/corpus/") + name))) {
        CAPTURE(entry.path().string());
        const Result<std::string> text = read_text_file(entry.path().string());
        REQUIRE(text.ok());
        CHECK(target(reinterpret_cast<const uint8_t*>(text.value().data()), text.value().size()) == 0);
        ++files;
    }
    return files;
}

TEST_CASE("fuzz: the corpora of requests and connections hold what their targets check") {
    CHECK(replay("serve", fuzz_body) >= 40);
    CHECK(replay("http", fuzz_connection) >= 10);
}
