// Sharing layers out over devices by speed and room.
#include "host/share_layers.h"

#include <doctest/doctest.h>

#include <numeric>

using namespace redline;

namespace {

using Counts = std::vector<uint32_t>;
constexpr uint64_t kAll = UINT64_MAX;

std::vector<LayerSize> even(size_t layers) {
    return std::vector<LayerSize>(layers, {100, 10});
}

}  // namespace

TEST_CASE("share out: layers go by the shares, as near as whole ones come") {
    using Shares = std::vector<double>;
    const std::vector<uint64_t> room(3, kAll);
    CHECK(share_out(even(32), Shares{1, 1}, std::vector{kAll, kAll}) == Counts{16, 16});
    CHECK(share_out(even(32), Shares{3, 1}, std::vector{kAll, kAll}) == Counts{24, 8});
    CHECK(share_out(even(32), Shares{960e9, 256e9}, std::vector{kAll, kAll}) == Counts{25, 7});
    CHECK(share_out(even(7), Shares{1, 1, 1}, room) == Counts{2, 3, 2});
    CHECK(share_out(even(2), Shares{1, 1, 1}, room) == Counts{1, 0, 1});
    CHECK(share_out(even(4), Shares{1, 0, 1}, room) == Counts{2, 0, 2});
    CHECK(share_out(even(0), Shares{1, 1, 1}, room) == Counts{0, 0, 0});
    CHECK(share_out(even(5), Shares{1}, std::vector{kAll}) == Counts{5});
}

TEST_CASE("share out: the last layer is heavier with the output behind it") {
    std::vector<LayerSize> layers = even(8);
    layers.back() = {500, 50};
    CHECK(share_out(layers, std::vector{1.0, 1.0}, std::vector{kAll, kAll}) == Counts{6, 2});
}

TEST_CASE("share out: no device has more than it has room for while another has room") {
    const std::vector<double> shares = {1, 1};
    CHECK(share_out(even(10), shares, std::vector<uint64_t>{200, 2000}) == Counts{2, 8});
    CHECK(share_out(even(10), shares, std::vector<uint64_t>{2000, 200}) == Counts{8, 2});
    CHECK(share_out(even(10), shares, std::vector<uint64_t>{700, 300}) == Counts{7, 3});
    CHECK(share_out(even(10), shares, std::vector<uint64_t>{1000, 0}) == Counts{10, 0});
    CHECK(share_out(even(12), std::vector{1.0, 1.0, 1.0}, std::vector<uint64_t>{200, 700, 300}) ==
          Counts{2, 7, 3});
}

TEST_CASE("share out: where none has room for the rest, all layers are still somewhere") {
    const Counts counts = share_out(even(10), std::vector{1.0, 1.0}, std::vector<uint64_t>{200, 300});
    CHECK(std::accumulate(counts.begin(), counts.end(), 0u) == 10);
    CHECK(counts[0] == 2);
}
