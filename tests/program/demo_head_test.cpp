// The demo model's MTP head as users have it: run, chat, bench and info.
#include "json/json.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

namespace {

std::vector<std::string> with(std::vector<std::string> first, const std::vector<std::string>& more) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
}

const std::vector<std::string> kGuessing = {"--spec-type", "draft-mtp", "--spec-draft-n-max", "3"};

}  // namespace

TEST_CASE("demo head: run says the same with it, and four of five guesses are right") {
    const std::vector<std::string> asked = {
        "run", "Which quant should I use?", "--temp", "0", "--json", "--device", "cpu", "-q"};
    const Json plain = parse_json(redline_(asked).out),
               guessed = parse_json(redline_(with(asked, kGuessing)).out);
    CHECK(guessed["text"] == plain["text"]);
    CHECK(guessed["token_ids"] == plain["token_ids"]);
    REQUIRE(guessed["speculation"].size() == 1);
    const Json& head = guessed["speculation"][0];
    CHECK(head["method"] == "draft-mtp");
    CHECK(5 * head["draft_n_accepted"].get<int>() >= 4 * head["draft_n"].get<int>());
}

TEST_CASE("demo head: chat says the same with it") {
    const std::vector<std::string> talk = {"chat", "--temp", "0", "--device", "cpu", "-q"};
    const std::string said = "What is GGUF?\nHow much is 12 plus 30?\nTell me a story about a fox\n";
    const Outcome plain = redline_(talk, said), guessed = redline_(with(talk, kGuessing), said);
    REQUIRE(plain.code == 0);
    REQUIRE_MESSAGE(guessed.code == 0, guessed.err);
    CHECK(guessed.out == plain.out);
}

TEST_CASE("demo head: bench --spec counts three tokens of a step") {
    write_file(file("asked.txt"),
               "<|im_start|>user\nTell me a story about a fox<|im_end|>\n<|im_start|>assistant\n");
    const Outcome got = redline_(with(
        {"bench", "--spec", file("asked.txt"), "-n", "150", "-r", "1", "--json", "-q", "--device", "cpu"},
        kGuessing));
    REQUIRE_MESSAGE(got.code == 0, got.err);
    const Json measured = read_json(got.out);
    CHECK(measured["same_tokens"] == 150);
    CHECK(measured["with"]["tokens_per_step"].get<double>() >= 3.0);
}

TEST_CASE("demo head: info names it, and nothing is to be known about the file") {
    const Outcome said = redline_({"info", "--device", "cpu"});
    CHECK(has(said.out, "--spec-type draft-mtp"));
    CHECK(has(said.out, "guesses up to 8 tokens in turn"));
    CHECK(has(said.out, "beside the model"));
    CHECK_FALSE(has(said.out, "left out"));
    const Json all = parse_json(redline_({"info", "--device", "cpu", "--json"}).out);
    CHECK(all["mtp_head"] == true);
    CHECK(all["mtp"]["heads"] == 1);
    CHECK(all["mtp"]["layers"] == 1);
    CHECK(all["mtp"]["draft_n"] == 8);
    CHECK(all["mtp"]["weights"] > 0);
    CHECK(all["mtp"]["cache"] > 0);
    // Weights of the head alone: the embedding and the output are the model's.
    CHECK(all["mtp"]["weights"].get<uint64_t>() * 3 < all["memory"]["weights"].get<uint64_t>());
    CHECK_FALSE(has(redline_({"run", "hi", "-n", "1", "--device", "cpu"}).err, "something to know"));
}
