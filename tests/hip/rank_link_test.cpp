// Devices that add the rows of ranks by themselves, on HIP's double: on each way, and with what goes wrong.
#include "plan/rank_link.h"
#include "backends/hip/kernels/rank_args.h"
#include "devices/device_choice.h"
#include "engine/session.h"
#include "measure/sums.h"
#include "support/must.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <string>

using namespace redline;
using namespace redline::test;

namespace {

// A variable of a double, and the library for sums, for as long as a test runs.
struct With {
    With(const char* variable, const std::string& value) : name(variable) {
        ::setenv(variable, value.c_str(), 1);
    }
    ~With() { ::unsetenv(name); }
    const char* name;
};
struct Library {
    explicit Library(const std::string& path) { use_collectives(path); }
    ~Library() { use_collectives("none"); }
};

struct Cards {
    explicit Cards(size_t count) {
        ::setenv("RL_HIP_DOUBLE_COUNT", "3", 1);
        for (size_t i = 0; i < count; ++i) {
            auto one = open_backend("hip", {.device = std::to_string(i)});
            REQUIRE(one.ok());
            all.push_back(std::move(one.value()));
            ranks.push_back(all.back().get());
        }
    }
    LinksRanks& links() { return dynamic_cast<LinksRanks&>(*ranks[0]); }
    auto link(uint64_t floats, std::optional<SumWay> way = {}) { return links().link(ranks, floats, way); }
    uint64_t bytes() const {
        uint64_t sum = 0;
        for (const auto& one : all) sum += one->allocated();
        return sum;
    }

    std::vector<std::unique_ptr<Backend>> all;
    std::vector<Backend*> ranks;
};

bool has(const std::string& text, const std::string& part) {
    CAPTURE(text);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("rank link: rows of any number are added on each way as the CPU adds them") {
    const Library library(RL_RCCL_DOUBLE);
    for (const size_t count : {2, 3})
        for (const SumWay way : kSumWays) {
            Cards cards(count);
            const auto link = cards.link(70001, way);
            REQUIRE_MESSAGE(link.ok(), link.error().message);
            for (const uint64_t floats : {1, 31, 2049, 65536, 70001}) {
                CAPTURE(count);
                CAPTURE(sum_way_name(way));
                CAPTURE(floats);
                const auto got = link.value()->try_sums({floats, 1});
                REQUIRE_MESSAGE(got.ok(), got.error().message);
                CHECK(got.value().wrong == 0);
                CHECK(got.value().compared == count * 32);
                CHECK(got.value().seconds > 0.0);
            }
            CHECK(!link.value()->try_sums({70100, 1}).ok());
        }
}

TEST_CASE("rank link: a link takes the memory that it says, and gives it back") {
    for (const size_t count : {2, 3}) {
        Cards cards(count);
        const uint64_t before = cards.bytes();
        {
            const auto link = cards.link(100000);
            REQUIRE(link.ok());
            CHECK(cards.bytes() - before == count * cards.links().link_bytes(count, 100000));
        }
        CHECK(cards.bytes() == before);
    }
}

TEST_CASE("rank link: without peer memory it is the host's, and kernels that do nothing are found") {
    const With peers("RL_HIP_DOUBLE_PEERS", "0");
    Cards cards(2);
    CHECK(has(cards.link(5000, SumWay::peer_memory).error().message, "do not reach each other's memory"));
    CHECK(cards.link(5000).value()->text() == "pinned memory of the host");
    const With broken("RL_HIP_DOUBLE_BROKEN", "rank_sum_short");
    Cards others(2);
    CHECK(has(others.link(5000).error().message, "added rows of the others wrongly"));
}

TEST_CASE("rank link: a library is taken when it is named and faster, and any fault of it is one sentence") {
    Cards cards(2);
    const auto problem_of = [&] {
        const auto link = cards.link(5000);
        REQUIRE(link.ok());
        CHECK(link.value()->try_sums({5000, 8}).value().wrong == 0);
        const std::string text = link.value()->problem();
        CHECK(text.find('\n') == std::string::npos);
        return text;
    };
    CHECK(problem_of() == "");
    {
        const Library library("/nowhere/librccl.so.1");
        CHECK(has(problem_of(), "RCCL cannot be loaded"));
    }
    const Library library(RL_RCCL_DOUBLE);
    CHECK(problem_of() == "");
    {
        const With wrong("RL_RCCL_DOUBLE_WRONG", "1");
        CHECK(has(problem_of(), "added rows wrongly through RCCL 2.22.5"));
    }
    for (const std::string call : {"ncclGetVersion", "ncclCommInitAll", "ncclAllReduce"}) {
        CAPTURE(call);
        const With fault("RL_RCCL_DOUBLE_FAIL", call + " 1 2");
        CHECK(has(problem_of(), "unhandled system error (2): injected"));
    }
}

TEST_CASE("rank link: what goes wrong in a step gives the library up, and the next step has it anew") {
    const Library library(RL_RCCL_DOUBLE);
    Cards cards(2);
    const auto link = cards.link(5000, SumWay::library);
    REQUIRE_MESSAGE(link.ok(), link.error().message);
    for (const std::string what : {"ncclAllReduce 5 1", "ncclCommGetAsyncError 1 3", "asynchronous 1 6"}) {
        CAPTURE(what);
        {
            const bool hangs = what[0] == 'a' || what.find("Async") != std::string::npos;
            const With fault("RL_RCCL_DOUBLE_FAIL", what);
            const With hang("RL_RCCL_DOUBLE_HANGS", hangs ? "sum" : "");
            const auto got = link.value()->try_sums({5000, 8});
            REQUIRE(!got.ok());
            CHECK(has(got.error().message, "RCCL 2.22.5"));
        }
        const auto again = link.value()->try_sums({5000, 8});
        REQUIRE_MESSAGE(again.ok(), again.error().message);
        CHECK(again.value().wrong == 0);
    }
}

TEST_CASE("rank link: the sums of a token are left in int8, and prompts of a session go through a library") {
    using Sum = hip::args::RankSumArgs;
    const Model model = must(Model::inspect(RL_SOURCE_DIR "/models/demo/redline-demo-q8_0.gguf", 128));
    const std::vector<Token> tokens = {1, 17, 300, 45, 9, 210, 33, 71, 5, 8, 12, 101};
    Cards cards(3);
    const auto left = [] {
        void* library = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD);
        REQUIRE(library);
        using Launches = size_t(size_t, size_t);
        return reinterpret_cast<Launches*>(dlsym(library, "rl_hip_double_launches"))(
            sizeof(Sum), offsetof(Sum, hand) + offsetof(hip::args::HandOver, row));
    };
    const auto logits_of = [&](size_t ranks) {
        SessionOptions options{128, 8, 8, CacheType::f32};
        for (size_t i = 0; i < ranks; ++i) options.ranks.push_back({cards.ranks[i], 1.0});
        Session session = must(Session::create(model, options));
        must(session.feed(std::span(tokens).first(9)));
        for (size_t i = 9; i < tokens.size(); ++i) must(session.feed(std::span(tokens).subspan(i, 1)));
        return std::vector<float>(session.logits().begin(), session.logits().end());
    };
    const std::vector<float> alone = logits_of(1);
    const size_t before = left();
    const auto error_of = [&](const std::vector<float>& got) {
        double off = 0.0, all = 0.0;
        for (size_t i = 0; i < got.size(); ++i) {
            off += double(got[i] - alone[i]) * (got[i] - alone[i]);
            all += double(alone[i]) * alone[i];
        }
        return std::sqrt(off / all);
    };
    const std::vector<float> two = logits_of(2);
    CHECK(left() - before >= size_t(2 * 3 * model.config().layers));
    CHECK(error_of(two) < 0.02);
    CHECK(logits_of(2) == two);
    const Library library(RL_RCCL_DOUBLE);
    CHECK(error_of(logits_of(2)) < 0.02);
    CHECK(error_of(logits_of(3)) < 0.02);
}

TEST_CASE("rank link: times of sums are those of all ways, the host's among them") {
    const Library library(RL_RCCL_DOUBLE);
    Cards cards(3);
    SumMeter meter = SumMeter::create(cards.ranks);
    REQUIRE(meter.ways().size() == 4);
    CHECK(meter.ways()[3].name == "the host");
    for (size_t way = 0; way < 4; ++way)
        for (const uint64_t floats : {2049, 8192}) {
            CAPTURE(way);
            CHECK(meter.ways()[way].problem == "");
            const auto got = meter.time(way, floats, 16);
            REQUIRE_MESSAGE(got.ok(), got.error().message);
            CHECK(got.value().wrong == 0);
            CHECK(got.value().compared >= 16);
        }
}
