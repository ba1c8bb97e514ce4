// The output of redline info, models and the objects of --json about a model's file.
#include "json/json.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

TEST_CASE("info: the templates that a file has beside its usual one are named, and run takes them") {
    ChainModel chain;
    chain.chat = true;
    GgufBuilder builder = chain.build();
    builder.add("tokenizer.chat_template.rag", std::string("{{ messages[0].content }}"));
    builder.save(file("named.gguf"));
    const Outcome text = redline_({"info", file("named.gguf")});
    CHECK_MESSAGE(has(text.out, "other templates of the file: rag (run --chat-template NAME)"), text.out);
    CHECK(parse_json(redline_({"info", file("named.gguf"), "--json"}).out)["chat_templates"] ==
          Json{"default", "rag"});
    CHECK(redline_({"run", file("named.gguf"), "ab", "--chat-template", "rag", "--show-prompt"}).out == "ab");
    CHECK_FALSE(has(redline_({"info", chat_model()}).out, "other templates"));
}

TEST_CASE("info: whether a model fits is said once for a device") {
    Launch what;
    what.arguments = {program(), "info", chat_model()};
    const std::string text = launch(what).out;
    const size_t memory = text.find("\nmemory  ");
    REQUIRE(memory != std::string::npos);
    const std::string said = text.substr(memory, text.find("\nmetadata") - memory);
    size_t times = 0;
    for (size_t at = said.find("contexts of up to"); at != said.npos;
         at = said.find("contexts of up to", at + 1))
        ++times;
    const Json all = parse_json([&] {
        what.arguments.emplace_back("--json");
        return launch(what).out;
    }());
    CHECK_MESSAGE(times == all["devices"].size(), said);
    CHECK(has(redline_({"info", chat_model()}).out, "fits into the "));
}

TEST_CASE("run and info: --json has the mix of formats that a file states") {
    const std::string demo = source_file("models/demo/redline-demo-q8_0.gguf");
    const Json info = parse_json(redline_({"info", demo, "--json"}).out);
    const Json run = parse_json(redline_({"run", demo, "hi", "-n", "1", "--json"}).out);
    CHECK(run["model"]["file_type"] == info["file_type"]);
    CHECK(run["model"]["file_type"] == "Q8_0");
    CHECK(parse_json(redline_({"run", chat_model(), "hi", "-n", "1", "--json"}).out)["model"]["file_type"]
              .is_null());
}

TEST_CASE("models: who has none is told how to get one") {
    const TemporaryFolder home;
    Launch what;
    what.arguments = {program(), "models"};
    what.environment = {"HOME=" + home.path.string(),
                        "XDG_DATA_HOME=" + home.path.string(),
                        "REDLINE_MODELS=",
                        "HF_HOME=",
                        "HF_HUB_CACHE=",
                        "LLAMA_CACHE=",
                        "OLLAMA_MODELS="};
    const Outcome got = launch(what);
    CHECK(got.code == 0);
    CHECK_MESSAGE(has(got.err, "redline pull USER/REPO fetches one"), got.err);
    CHECK(has(got.err, home.path.string()));
}
