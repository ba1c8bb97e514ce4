#define DOCTEST_CONFIG_IMPLEMENT
#include "at_end.h"
#include "share.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>
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

static bool skips = false;  // the case that runs

// Leaves cases to other days, and gives their number: those outside of the share that RL_TEST_PART names,
// counted in each file from a number that goes by its name, so that days have as many. Of one file alone
// where `-sf` names one.
static unsigned leave_to_other_days(int argc, char** argv) {
    if (!std::getenv("RL_TEST_PART")) return 0;
    const redline::test::Share part = redline::test::share_by("RL_TEST_PART");
    constexpr std::string_view kFile = "-sf=*";
    std::string_view wanted;
    for (int i = 1; i < argc; ++i)
        if (std::string_view(argv[i]).starts_with(kFile))
            wanted = std::string_view(argv[i]).substr(kFile.size());
    std::map<std::string_view, size_t> next;
    unsigned left = 0;
    for (const doctest::detail::TestCase& test : doctest::detail::getRegisteredTests()) {
        const std::string_view file = test.m_file.c_str();
        if (!file.ends_with(wanted)) continue;
        size_t begin = 0;
        for (const char letter : file.substr(file.rfind('/') + 1)) begin += uint8_t(letter);
        if (part.takes(next.emplace(file, begin).first->second++, test.m_name)) continue;
        const_cast<doctest::detail::TestCase&>(test).m_skip = true;
        ++left;
    }
    return left;
}

void redline::test::skip_case(const std::string& why) {
    skips = true;
    not_tested(why);
}

namespace {

// Counts the cases that ran, and those of them that were skipped.
struct SkipCounter : doctest::IReporter {
    static inline unsigned cases = 0, skipped = 0;

    explicit SkipCounter(const doctest::ContextOptions&) {}
    void test_case_start(const doctest::TestCaseData&) override { skips = false; }
    void test_case_end(const doctest::CurrentTestCaseStats&) override {
        ++cases;
        if (skips) ++skipped;
    }
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("skips", 1, SkipCounter);

}  // namespace

int main(int argc, char** argv) {
    // The checks and the timing of kernels have separate tests; without a cache every program would repeat
    // them.
    ::setenv("REDLINE_SELF_TEST", "0", 0);
    ::setenv("REDLINE_QUICK_TUNE", "0", 0);
    const unsigned left = leave_to_other_days(argc, argv);
    const int status = doctest::Context(argc, argv).run();
    for (const std::string& line : lines()) std::printf("[redline] %s\n", line.c_str());
    if (SkipCounter::skipped > 0)
        std::printf("[redline] skipped: %u of %u test cases\n", SkipCounter::skipped, SkipCounter::cases);
    if (left > 0)
        std::printf("[redline] left to other days: %u of %u test cases\n", left, left + SkipCounter::cases);
    std::fflush(stdout);
    for (const std::function<void()>& close : closers()) close();
    const bool nothing_ran = left + SkipCounter::cases > 0 && SkipCounter::skipped == SkipCounter::cases;
    return status == 0 && nothing_ran ? redline::test::kSkipped : status;
}
