// A model whose keys do not survive a cache of few bits is named, from the biases in its file.
#include "host/cache_loss.h"

#include "support/fake_clock.h"
#include "support/models.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace redline;
using namespace redline::test;

TEST_CASE("caches: large biases of keys are named where keys have few bits") {
    const CacheFolder folder;
    std::filesystem::create_directories(folder.path);
    const std::string path = folder.path / "large.gguf";
    std::filesystem::copy_file(golden("models/qwen2.gguf"), path);
    CHECK(key_loss(must(Gguf::open(path)), CacheType::q4_0) == "");
    {
        const Gguf gguf = must(Gguf::open(path));
        const GgufTensor* bias = gguf.find("blk.1.attn_k.bias");
        REQUIRE(bias);
        const float large = -354.0f;
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(std::streamoff(bias->offset));
        file.write(reinterpret_cast<const char*>(&large), sizeof(large));
    }
    const Gguf gguf = must(Gguf::open(path));
    for (const CacheType few : {CacheType::q5_1, CacheType::q4_0, CacheType::iq4_nl})
        CHECK(key_loss(gguf, {few, CacheType::q8_0}).find("adds up to 354 to its keys") != std::string::npos);
    for (const CacheType more : {CacheType::q8_0, CacheType::f16, CacheType::f32})
        CHECK(key_loss(gguf, {more, CacheType::q4_0}) == "");
}
