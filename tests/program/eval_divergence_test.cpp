// redline eval --kl-divergence: a run is compared with another one.
#include "json/json.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

namespace fs = std::filesystem;

namespace {

// A chain whose logit of the right token is `gain` times the square root of kDim.
std::string gained_model(float gain) {
    const std::string path = file(fmt::format("gain-{}.gguf", gain));
    ChainModel chain;
    chain.next[ChainModel::kLetterA + 25] = ChainModel::kLetterA;
    chain.gain = gain;
    chain.build().save(path);
    return path;
}

std::string chained_ids() {
    std::string ids;
    for (int i = 0; i < 64; ++i) ids += fmt::format("{} ", ChainModel::kLetterA + i % 26);
    write_file(file("chained.txt"), ids);
    return file("chained.txt");
}

std::vector<std::string> eval(const std::string& model, const std::string& base,
                              const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {
        "eval", "-m", model, "--ids", chained_ids(), "-c", "16", "-q", "--kl-divergence-base", base};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

}  // namespace

TEST_CASE("eval: the divergence of two models can be worked out by hand") {
    on_each_device([] {
        const std::string base = file("gain.base");
        const Outcome wrote = redline_(eval(gained_model(0.25f), base));
        REQUIRE_MESSAGE(wrote.code == 0, wrote.err);
        CHECK(has(wrote.out, "Final estimate: PPL = "));
        // A header, 28 positions, and a checksum.
        CHECK(fs::file_size(base) == 48 + 28 * (8 + 2 * size_t(ChainModel::kVocab)) + 8);

        const Outcome got = redline_(eval(gained_model(0.2f), base, {"--kl-divergence", "--json"}));
        REQUIRE_MESSAGE(got.code == 0, got.err);
        const Json all = parse_json(got.out)["divergence"];
        const double one = 0.25 * std::sqrt(double(ChainModel::kDim)), other = one * 0.2 / 0.25;
        const auto sum = [](double logit) { return std::exp(logit) + ChainModel::kVocab - 1; };
        const double of_base = std::exp(one) / sum(one), of_run = std::exp(other) / sum(other);
        const double kl = of_base * (one - other) - std::log(sum(one)) + std::log(sum(other));
        const auto near = [](double value) { return doctest::Approx(value).epsilon(2e-3); };
        CHECK(all["kl"]["mean"].get<double>() == near(kl));
        CHECK(all["kl"]["percentiles"]["99.9"].get<double>() == near(kl));
        CHECK(all["kl"]["error"].get<double>() < 1e-3 * kl);
        CHECK(all["base_perplexity"].get<double>() == near(1.0 / of_base));
        CHECK(all["ratio"].get<double>() == near(of_base / of_run));
        CHECK(all["right_token_change"]["mean"].get<double>() == near(of_run - of_base));
        CHECK(all["right_token_change"]["root_mean_square"].get<double>() == near(of_base - of_run));
        CHECK(all["same_best"]["mean"] == 1.0);
    });
}

TEST_CASE("eval: a run that is compared with its file is at no distance") {
    on_each_device([] {
        const std::string base = file("same.base");
        REQUIRE(redline_(eval(gained_model(0.25f), base)).code == 0);
        const Outcome got = redline_(eval(gained_model(0.25f), base, {"--kl-divergence"}));
        REQUIRE_MESSAGE(got.code == 0, got.err);
        CHECK(has(got.out, "mean KL divergence     0.000000 +/- 0.000000 nats\n"));
        CHECK(has(got.out, "same best token        100.000 +/- 0.000 %\n"));
        CHECK(has(got.out, "PPL / PPL of the base  1.000000 +/- 0.000000, ln "));
        CHECK(has(got.out, "median                  0.000000"));
    });
}

TEST_CASE("eval: a base of another run's text, or none, is refused before the model is loaded") {
    const std::string base = file("refused.base"), model = gained_model(0.25f);
    REQUIRE(redline_(eval(model, base)).code == 0);
    check_refused({"eval", "-m", model, "--ids", chained_ids(), "-c", "8", "-q", "--kl-divergence-base", base,
                   "--kl-divergence"},
                  1, {"refused.base is of chunks of 16 tokens, these have 8: -c 16"});
    write_file(file("reversed.txt"), "9 8 7 6 5 4 3 3 9 8 7 6 5 4 3 3 9 8 7 6 5 4 3 3 9 8 7 6 5 4 3 3");
    check_refused({"eval", "-m", model, "--ids", file("reversed.txt"), "-c", "16", "-q",
                   "--kl-divergence-base", base, "--kl-divergence"},
                  1, {"refused.base is of another text: it has 4 chunks, this one 2"});
    check_refused(eval(model, file("absent.base"), {"--kl-divergence"}), 1, {"absent.base"});
    check_refused(eval(model, model, {"--kl-divergence"}), 1, {"is not a file that redline eval"});
    check_refused(eval(model, "/nowhere/x.base"), 1, {"/nowhere/x.base"});
    check_refused({"eval", "-m", model, "--ids", chained_ids(), "--kl-divergence"}, 2,
                  {"--kl-divergence means nothing without --kl-divergence-base"});
    check_refused(eval(model, base, {"--logits", file("x.npy")}), 2, {"means nothing with --logits"});
    check_refused(eval(model, ""), 2, {"--kl-divergence-base was given an empty name"});
}

TEST_CASE("eval: a run that ends early leaves the base as it was") {
    const std::string base = file("early.base");
    write_file(base, "before");
    ChainModel chain;
    chain.broken = ChainModel::kLetterA + 11;
    chain.build().save(file("early.gguf"));
    const Outcome got = redline_(eval(file("early.gguf"), base));
    CHECK(got.code == 1);
    CHECK(has(got.err, "after token 12: logit "));
    CHECK(read_file(base) == "before");
}
