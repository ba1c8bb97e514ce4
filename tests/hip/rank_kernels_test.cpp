// Kernels of sums over ranks, each alone on one device: the rows of the other ranks are there when it begins.
// So they can be tried where devices do not run at the same time.
#include "backends/hip/kernels/rank_args.h"
#include "backends/hip/runtime/launcher.h"
#include "backends/hip/runtime/memory.h"
#include "support/must.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

using namespace redline;
using namespace redline::test;

namespace {

namespace args = hip::args;

constexpr uint32_t kRanks = 3, kRank = 1;

std::vector<float> random_rows(size_t count, uint32_t seed) {
    std::mt19937 chance(seed);
    std::normal_distribution<float> normal;
    std::vector<float> rows(count);
    for (float& x : rows) x = normal(chance);
    return rows;
}

// Memory of a device that holds what a vector of the host has, and goes back to one.
template <typename T>
class Held {
public:
    Held(hip::Device& device, hip::Memory& pool, std::vector<T> content)
        : device_(device),
          count_(content.size()),
          buffer_(must(pool.allocate(count_ * sizeof(T), hip::Use::scratch, "a test"))) {
        set(content);
    }
    T* data() const { return reinterpret_cast<T*>(buffer_.data()); }
    void set(const std::vector<T>& content) {
        REQUIRE(content.size() == count_);
        const hip::Code code =
            device_.call().copy_in(data(), content.data(), count_ * sizeof(T), device_.stream());
        REQUIRE(device_.checked(code, "filling").ok());
        REQUIRE(device_.synchronize("filling").ok());
    }
    std::vector<T> get() const {
        std::vector<T> content(count_);
        const hip::Code code =
            device_.call().copy_out(content.data(), data(), count_ * sizeof(T), device_.stream());
        REQUIRE(device_.checked(code, "reading").ok());
        REQUIRE(device_.synchronize("reading").ok());
        return content;
    }

private:
    hip::Device& device_;
    size_t count_;
    hip::Buffer buffer_;
};

std::unique_ptr<hip::Device> first_device() {
    const hip::Runtime& runtime = *must(hip::Runtime::get());
    for (const hip::DeviceReport& report : hip::device_reports(runtime))
        if (!report.target.empty()) return must(hip::Device::open(runtime, report));
    return nullptr;
}

// A float with its turn above it, as rank_sum_short sends it.
uint64_t word(uint32_t turn, float value) {
    return uint64_t(turn) << 32 | std::bit_cast<uint32_t>(value);
}

// One rank's side of sums of `width` elements: its rows, and where those of the others come to.
struct Sum {
    Sum(hip::Device& on, uint32_t elements, bool in_words, uint32_t last_turn)
        : device(on),
          width(elements),
          is_short(in_words),
          step(device, pool, {args::Step{.rows = 1}}),
          y(device, pool, std::vector<float>(width, NAN)),
          turns(device, pool, std::vector<uint32_t>(args::kMostRankBlocks, last_turn)),
          trouble(device, pool, {0u}) {
        for (uint32_t rank = 0; rank < kRanks; ++rank) {
            from.emplace_back(device, pool, std::vector<uint64_t>(2 * half()));
            to.emplace_back(device, pool, std::vector<uint64_t>(2 * half()));
            seen.emplace_back(device, pool, no_flags());
            flags.emplace_back(device, pool, no_flags());
        }
    }
    uint64_t half() const { return is_short ? args::kMostShort : (width + 63) / 64 * 64; }
    static std::vector<uint32_t> no_flags() {
        return std::vector<uint32_t>(args::kMostRankBlocks * args::kRankFlagStride);
    }
    uint32_t blocks() const { return (width + 511) / 512; }

    // The memory of rows of a turn, or of words.
    std::vector<uint64_t> sent(const std::vector<float>& rows, uint32_t turn) const {
        std::vector<uint64_t> memory(2 * half());
        const uint64_t at = (turn & 1) * half();
        if (is_short)
            for (size_t i = 0; i < rows.size(); ++i) memory[at + i] = word(turn, rows[i]);
        else
            std::memcpy(reinterpret_cast<float*>(memory.data()) + at, rows.data(), rows.size() * 4);
        return memory;
    }
    std::vector<uint32_t> flags_of(uint32_t turn) const {
        std::vector<uint32_t> all = no_flags();
        for (uint32_t block = 0; block < blocks(); ++block) all[block * args::kRankFlagStride] = turn;
        return all;
    }

    void run(const Held<float>& x) {
        args::RankSumArgs sum{};
        sum.step = step.data();
        sum.x = x.data();
        sum.y = y.data();
        sum.width = width;
        sum.rank = kRank;
        sum.ranks = kRanks;
        sum.spins = 1000;
        sum.half = half();
        sum.turns = turns.data();
        sum.trouble = trouble.data();
        for (uint32_t rank = 0; rank < kRanks; ++rank) {
            sum.from[rank] = from[rank].data();
            sum.seen[rank] = seen[rank].data();
            if (rank == kRank) continue;
            sum.to[sum.targets] = to[rank].data();
            sum.flags[sum.targets++] = flags[rank].data();
        }
        hip::Launcher launcher(device, hip::Launcher::Mode::run);
        REQUIRE(launcher.launch("ranks", is_short ? "rank_sum_short" : "rank_sum", {blocks(), 1, 1, 256}, sum)
                    .ok());
        REQUIRE(device.synchronize("adding").ok());
    }

    hip::Device& device;
    uint32_t width;
    bool is_short;
    hip::Memory pool{device};
    Held<args::Step> step;
    Held<float> y;
    Held<uint32_t> turns, trouble;
    std::vector<Held<uint64_t>> from, to;
    std::vector<Held<uint32_t>> seen, flags;
};

// One turn whose rows are all there.
void check_turn(Sum& sum, uint32_t turn) {
    CAPTURE(sum.width);
    CAPTURE(sum.is_short);
    CAPTURE(turn);
    std::vector<std::vector<float>> rows;
    for (uint32_t rank = 0; rank < kRanks; ++rank) rows.push_back(random_rows(sum.width, turn * 8 + rank));
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
        if (rank == kRank) continue;
        sum.from[rank].set(sum.sent(rows[rank], turn));
        sum.seen[rank].set(sum.flags_of(turn));
    }
    sum.run({sum.device, sum.pool, rows[kRank]});
    CHECK(sum.trouble.get()[0] == 0);
    const std::vector<float> got = sum.y.get();
    size_t wrong = 0;
    for (uint32_t i = 0; i < sum.width; ++i)
        wrong +=
            std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(rows[0][i] + rows[1][i] + rows[2][i]);
    CHECK(wrong == 0);
    // The others get this rank's rows in the half of the turn, and the flags of all its blocks.
    const std::vector<uint64_t> want = sum.sent(rows[kRank], turn);
    const uint64_t words = sum.is_short ? sum.half() : sum.half() / 2, at = (turn & 1) * words;
    for (const uint32_t rank : {0u, 2u}) {
        const std::vector<uint64_t> there = sum.to[rank].get();
        const auto begin = there.begin() + ptrdiff_t(at);
        CHECK(std::equal(begin, begin + ptrdiff_t(words), want.begin() + ptrdiff_t(at)));
        if (!sum.is_short) CHECK(sum.flags[rank].get() == sum.flags_of(turn));
    }
    for (const uint32_t seen : sum.turns.get()) CHECK(seen == turn);
}

}  // namespace

TEST_CASE(
    "a kernel of sums over ranks adds what the others have left, in the order of ranks, and sends its rows") {
    const auto device = first_device();
    REQUIRE(device);
    for (const bool is_short : {false, true})
        for (const uint32_t width : {64u, 192u, 2048u, 4160u}) {
            Sum sum(*device, width, is_short, 0);
            check_turn(sum, 1);
            check_turn(sum, 2);
        }
    // Behind the last turn that 32 bits count comes 2, as zero is what memory has at first.
    for (const bool is_short : {false, true}) {
        Sum sum(*device, 512, is_short, 0xFFFFFFFEu);
        check_turn(sum, 0xFFFFFFFFu);
        check_turn(sum, 2);
    }
}

TEST_CASE("a kernel of sums over ranks gives up when rows do not come, and says so") {
    const auto device = first_device();
    REQUIRE(device);
    for (const bool is_short : {false, true}) {
        Sum sum(*device, 512, is_short, 0);
        sum.run({*device, sum.pool, random_rows(512, 1)});
        CHECK(sum.trouble.get()[0] == 1);
    }
}
