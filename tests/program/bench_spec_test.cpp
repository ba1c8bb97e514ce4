// redline bench --spec: guesses are measured against none.
#include "json/json.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

namespace {

std::string ring_text() {
    write_file(file("ring.txt"), "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
    return file("ring.txt");
}

Json measured(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"bench", "-m", ring_model(), "--spec", ring_text(), "-n",
                                    "61",    "-r", "2",          "--json", "-q"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome got = redline_(all);
    REQUIRE_MESSAGE(got.code == 0, got.err);
    return read_json(got.out);
}

}  // namespace

TEST_CASE("bench: --spec goes on from a text with guesses and without, and counts those accepted") {
    const Json looked_up = measured({"--spec-type", "ngram-simple", "--spec-draft-n-max", "5"});
    CHECK(looked_up["spec_type"] == "ngram-simple");
    CHECK(looked_up["spec_draft_n_max"] == 5);
    CHECK(looked_up["spec_draft_model"].is_null());
    CHECK(looked_up["n_prompt"].get<int>() >= 52);
    CHECK(looked_up["n_gen"] == 61);
    CHECK(looked_up["same_tokens"] == 61);
    const Json &with = looked_up["with"], &without = looked_up["without"];
    CHECK(without["rounds"] == 0);
    CHECK(without["steps"] == 60);
    CHECK(without["acceptance"].is_null());
    CHECK(without["samples_ts"].size() == 2);
    // The text repeats itself, so that every guess is right, but for what the last one has beyond the end.
    CHECK(with["drafted"].get<int>() - with["accepted"].get<int>() <= 1);
    CHECK(with["acceptance"].get<double>() >= 0.95);
    CHECK(with["steps"].get<int>() + with["accepted"].get<int>() == 60);
    CHECK(with["steps"].get<int>() <= 13);
    CHECK(with["tokens_per_step"].get<double>() ==
          doctest::Approx(60.0 / with["steps"].get<double>()).epsilon(1e-9));
    CHECK(looked_up["gain"].get<double>() ==
          doctest::Approx(with["avg_ts"].get<double>() / without["avg_ts"].get<double>()).epsilon(1e-6));
}

TEST_CASE("bench: --spec takes a draft model, too, and its table has a row without guesses") {
    const Json drafted = measured({"-md", ring_model(), "--spec-type", "draft-simple"});
    CHECK(drafted["spec_draft_model"] == ring_model());
    CHECK(drafted["with"]["acceptance"].get<double>() >= 0.95);
    // The model of another chain is wrong wherever that one goes on from z to the euro sign.
    const Json wrong = measured({"-md", chain_model(), "--spec-type", "draft-simple"});
    CHECK(wrong["same_tokens"] == 61);
    CHECK(wrong["with"]["accepted"].get<int>() < wrong["with"]["drafted"].get<int>());
    const Outcome table =
        redline_({"bench", "-m", ring_model(), "--spec", ring_text(), "-n", "40", "-r", "1", "-q"});
    REQUIRE_MESSAGE(table.code == 0, table.err);
    CHECK(has(table.out, "40 tokens behind the "));
    CHECK(has(table.out, "\n| none | "));
    CHECK(has(table.out, "\n| auto | "));
}

TEST_CASE("bench: --spec and its options are refused where they have nothing to do") {
    const std::string text = ring_text();
    check_refused({"bench", "-m", ring_model(), "--spec-type", "auto"}, 2, {"--spec-type", "--spec FILE"});
    check_refused({"bench", "-m", ring_model(), "--spec", text, "--spec-type", "none"}, 2, {"to compare"});
    check_refused({"bench", "-m", ring_model(), "--spec", text, "-n", "5,6"}, 2, {"one number of tokens"});
    check_refused({"bench", "-m", ring_model(), "--spec", text, "-n", "1"}, 2, {"at least 2"});
    check_refused({"bench", "-m", ring_model(), "--spec", text, "--spec-type", "draft-simple"}, 2, {"-md"});
    check_refused({"bench", "-m", ring_model(), "--spec", text, "-o", "csv"}, 2, {"-o csv"});
    for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
             {"-p", "8"}, {"-d", "8"}, {"-b", "8"}, {"--ops"}, {"--rows"}, {"--soak", "8"}}) {
        std::vector<std::string> all = {"bench", "-m", ring_model(), "--spec", text};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome got = redline_(all);
        CHECK_MESSAGE(got.code == 2, more[0]);
        CHECK_MESSAGE(has(got.err, "means nothing with"), got.err);
    }
    const Outcome missing = redline_({"bench", "-m", ring_model(), "--spec", file("none.txt"), "-q"});
    CHECK(missing.code == 1);
    CHECK(has(missing.err, "none.txt"));
}
