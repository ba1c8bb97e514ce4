// Weights in formats that a backend has no kernels for.
#include "plan/stored_weights.h"
#include "support/models.h"

#include "measure/op_case.h"

using namespace redline;
using namespace redline::test;

namespace {

// Knows F16 only, and reads in pieces that begin and end anywhere.
class OnlyHalfs : public Backend {
public:
    const DeviceInfo& device() const override { return info_; }
    bool has_kernels(const Format& format) const override { return format.name == "F16"; }
    Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo>) override {
        return error("no caches");
    }
    Result<MemoryNeed> measure(std::span<const WeightInfo>, std::span<const CacheInfo>,
                               std::vector<PlanGroup>) override {
        return MemoryNeed{};
    }
    uint64_t allocated() const override { return 0; }
    std::unique_ptr<Kernel> make_kernel(const Op&, const Plan&) override { return nullptr; }
    Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup, WeightStore&, CacheStore&,
                                                                  Record) override {
        return error("no steps");
    }
    double measure_read_bandwidth() override { return 0.0; }

    std::vector<std::vector<std::byte>> bytes;  // of each weight
    uint64_t piece = 2;

private:
    struct Store : WeightStore {
        uint64_t bytes() const override { return 0; }
    };
    Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo> weights, ByteSource& source,
                                                     const Progress&) override {
        bytes.clear();
        for (size_t i = 0; i < weights.size(); ++i) {
            std::vector<std::byte> all(weights[i].tensor.bytes());
            for (uint64_t at = 0; at < all.size(); at += piece)
                RL_TRY(source.read(i, at,
                                   std::span(all).subspan(at, std::min<uint64_t>(piece, all.size() - at))));
            bytes.push_back(std::move(all));
        }
        return std::unique_ptr<WeightStore>(std::make_unique<Store>());
    }

    DeviceInfo info_;
};

}  // namespace

TEST_CASE("stored weights: a backend gets halfs of the decoded values, wherever its reads begin and end") {
    OnlyHalfs backend;
    for (const Format* format : all_formats()) {
        if (format->name == "F16") continue;
        CAPTURE(format->name);
        Fixture fixture(3, 1);
        fixture.matrix(*format, 3, 512, 2);
        const std::vector<float> want = fixture.decoded(backend)[0];
        for (const uint64_t piece : {2u, 34u, 514u, 4000u, 1u << 20}) {
            backend.piece = piece;
            must(backend.load(fixture.weights(), fixture, {}));
            std::vector<float> got(want.size());
            find_format("F16")->decode(backend.bytes[0].data(), got.data(), got.size());
            CHECK(got == want);
        }
    }
}

TEST_CASE("stored weights: vectors and known formats stay as they are, others are counted by format") {
    OnlyHalfs backend;
    Fixture fixture(3, 1);
    fixture.vector(64);
    fixture.matrix(*find_format("F16"), 4, 64);
    fixture.matrix(*find_format("Q8_0"), 4, 64);
    fixture.matrix(*find_format("Q4_K"), 2, 256);
    fixture.matrix(*find_format("Q8_0"), 2, 64);
    const std::vector<WeightInfo> stored = stored_weights(fixture.weights(), backend);
    CHECK(stored[0].tensor.format->name == "F32");
    for (size_t i = 1; i < stored.size(); ++i) CHECK(stored[i].tensor.format->name == "F16");
    const std::vector<DecodedFormat> decoded = decoded_formats(fixture.weights(), backend);
    REQUIRE(decoded.size() == 2);
    CHECK(decoded[0].format->name == "Q8_0");
    CHECK(decoded[0].tensors == 2);
    CHECK(decoded[0].file_bytes == 12 * 34);
    CHECK(decoded[0].stored_bytes == 6 * 64 * 2);
    CHECK(decoded[1].format->name == "Q4_K");
    CHECK(decoded[1].tensors == 1);
}
