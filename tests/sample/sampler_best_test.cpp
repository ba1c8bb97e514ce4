// Sampling from the best logits only, as a device picks them.
#include "sample/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace redline;

static Sampler make(const SamplerOptions& options, int32_t size) {
    Result<Sampler> sampler = Sampler::create(options, {size, 4096, {}});
    REQUIRE(sampler.ok());
    return std::move(sampler).value();
}

TEST_CASE("sampler: the best logits that it wants give the same tokens as all of them") {
    std::mt19937 random(11);
    std::normal_distribution<float> normal(0.0f, 3.0f);
    std::vector<SamplerOptions> wanting(8);
    wanting[1].temperature = 0.0f;
    wanting[2].top_k = 5, wanting[2].typical_p = 0.8f, wanting[2].top_p = 1.0f;
    wanting[3].xtc_probability = 0.7f, wanting[3].temperature = 1.3f;
    wanting[4].min_keep = 50, wanting[4].dynatemp_range = 0.5f;
    wanting[5].samplers = "top_k;penalties;temperature", wanting[5].repeat_penalty = 1.3f;
    wanting[6].logit_bias = wanting[7].logit_bias = {{5, -INFINITY}, {17, -INFINITY}};
    wanting[7].temperature = 0.0f;
    for (SamplerOptions options : wanting) {
        options.seed = 99;
        Sampler whole = make(options, 3000), picked = make(options, 3000);
        REQUIRE(picked.best_wanted() > 0);
        for (int step = 0; step < 200; ++step) {
            std::vector<float> logits(3000);
            for (float& logit : logits) logit = step % 3 ? normal(random) : float(int(normal(random)));
            logits[random() % 3000] = -INFINITY;
            if (!options.logit_bias.empty()) logits[step % 2 ? 5 : 17] = 30.0f;  // the best, were it allowed
            std::vector<Scored> best;
            for (int32_t id = 0; id < 3000; ++id) best.push_back({logits[size_t(id)], id});
            std::sort(best.begin(), best.end(), comes_first);
            best.resize(picked.best_wanted() + size_t(step % 2) * 24);
            const Result<int32_t> token = whole.sample(logits);
            REQUIRE(token.ok());
            const Result<int32_t> same = picked.sample(std::span<const Scored>(best));
            REQUIRE(same.ok());
            CHECK(same.value() == token.value());
            CHECK((options.logit_bias.empty() || (same.value() != 5 && same.value() != 17)));
            whole.accept(token.value()), picked.accept(token.value());
        }
    }
    std::vector<SamplerOptions> refusing(6);
    refusing[0].repeat_penalty = 1.1f;
    refusing[1].logit_bias = {{3, 1.0f}};
    refusing[2].top_k = 0;
    refusing[3].mirostat = 2;
    refusing[4].dry_multiplier = 0.8f;
    refusing[5].top_n_sigma = 1.0f;
    for (const SamplerOptions& options : refusing) CHECK(make(options, 3000).best_wanted() == 0);
    Sampler sampler = make(SamplerOptions(), 2);
    const Scored unsound[] = {{NAN, 1}, {0.0f, 0}}, none[] = {{-INFINITY, 0}, {-INFINITY, 1}};
    CHECK(sampler.sample(unsound).error().message.find("token 1") != std::string::npos);
    CHECK(sampler.sample(none).error().message.find("no token") != std::string::npos);
}
