// The C interface, called as others call it. tests/api/client/installed builds a C program against the
// installed library.
#include "api/redline.h"

#include "support/material.h"
#include "support/program.h"

#include <limits>
#include <memory>
#include <thread>

using namespace redline::test;

namespace {

struct Free {
    void operator()(redline_model* model) const { redline_model_free(model); }
    void operator()(redline_session* session) const { redline_session_free(session); }
    void operator()(redline_sampler* sampler) const { redline_sampler_free(sampler); }
};
using OneModel = std::unique_ptr<redline_model, Free>;
using OneSession = std::unique_ptr<redline_session, Free>;
using OneSampler = std::unique_ptr<redline_sampler, Free>;

OneModel open_model(const std::string& path, uint64_t context = 0) {
    redline_model_options options = REDLINE_MODEL_OPTIONS;
    options.device = "cpu";
    options.context = context;
    OneModel model(redline_model_load(path.c_str(), &options));
    REQUIRE_MESSAGE(model, redline_error());
    return model;
}

std::vector<int32_t> tokens_of(const redline_model* model, const std::string& text, int flags = 0) {
    std::vector<int32_t> tokens(size_t(redline_tokenize(model, text.data(), text.size(), flags, nullptr, 0)));
    CHECK(redline_tokenize(model, text.data(), text.size(), flags, tokens.data(), tokens.size()) ==
          int64_t(tokens.size()));
    return tokens;
}

std::string text_of(const redline_model* model, int32_t token) {
    char bytes[64];
    const int64_t count = redline_piece(model, token, 0, bytes, sizeof bytes);
    // Only with encodings that put a space before a text is it another one at the beginning.
    for (const int32_t previous : {-1, token}) {
        char after[64];
        CHECK(redline_piece_after(model, previous, token, 0, after, sizeof after) == count);
        CHECK(std::string(after, size_t(count)) == std::string(bytes, size_t(count)));
    }
    return std::string(bytes, size_t(count));
}

// Generates at most `count` tokens after those that a session has read.
std::string continued(const redline_model* model, redline_session* session, redline_sampler* sampler,
                      int count) {
    std::string text;
    for (; count > 0; --count) {
        const int32_t token = redline_sample(sampler, session);
        REQUIRE_MESSAGE(token >= 0, redline_error());
        if (redline_is_end(model, token)) break;
        text += text_of(model, token);
        REQUIRE_MESSAGE(redline_feed(session, &token, 1) == 0, redline_error());
    }
    return text;
}

OneSampler greedy(const redline_session* session, const char* grammar = nullptr) {
    redline_sampler_options options = REDLINE_SAMPLER_OPTIONS;
    options.temperature = 0;
    options.grammar = grammar;
    OneSampler sampler(redline_sampler_new(session, &options));
    REQUIRE_MESSAGE(sampler, redline_error());
    return sampler;
}

}  // namespace

TEST_CASE("api: a model continues a text, and again from where it is rewound to") {
    OneModel model = open_model(chain_model());
    CHECK(redline_abi_version() == REDLINE_ABI_VERSION);
    CHECK(redline_model_context(model.get()) == ChainModel::kTrainContext);
    CHECK(redline_model_vocabulary(model.get()) == ChainModel::kVocab);
    CHECK(*redline_model_device(model.get()) != 0);
    OneSession session(redline_session_new(model.get()));
    REQUIRE_MESSAGE(session, redline_error());
    OneSampler sampler = greedy(session.get());
    CHECK(redline_logits(session.get()) == nullptr);
    const std::vector<int32_t> prompt = tokens_of(model.get(), "a", REDLINE_ADD_SPECIAL);
    REQUIRE(redline_feed(session.get(), prompt.data(), prompt.size()) == 0);
    CHECK(redline_position(session.get()) == prompt.size());
    CHECK(redline_logits(session.get())[ChainModel::kLetterA + 1] > 1.0f);
    CHECK(continued(model.get(), session.get(), sampler.get(), 1000) == ChainModel::kWholeText);
    CHECK(redline_rewind(session.get(), prompt.size()) == prompt.size());
    CHECK(redline_logits(session.get()) == nullptr);
    const int32_t x = ChainModel::kLetterA + 'x' - 'a';
    REQUIRE(redline_feed(session.get(), &x, 1) == 0);
    CHECK(continued(model.get(), session.get(), sampler.get(), 2) == "yz");
}

TEST_CASE("api: a token's bytes behind another are without the space that its encoding puts there") {
    const std::string path = file("unigram.gguf");
    GgufBuilder made = ChainModel().build();
    std::erase_if(made.keys, [](const GgufBuilder::Key& key) {
        return key.name == "tokenizer.ggml.model" || key.name == "tokenizer.ggml.add_space_prefix";
    });
    made.add("tokenizer.ggml.model", std::string("t5")).add("tokenizer.ggml.add_space_prefix", true);
    made.save(path);
    OneModel model = open_model(path);
    const auto behind = [&](int32_t previous) {
        char bytes[8];
        const int64_t count =
            redline_piece_after(model.get(), previous, ChainModel::kSpace, 0, bytes, sizeof bytes);
        return std::string(bytes, size_t(count));
    };
    CHECK(text_of(model.get(), ChainModel::kLetterA) == "a");
    CHECK(behind(-1) == "");
    CHECK(behind(ChainModel::kBos) == "");
    CHECK(behind(ChainModel::kLetterA) == " ");
    char bytes[8];
    CHECK(redline_piece(model.get(), ChainModel::kSpace, 0, bytes, sizeof bytes) == 1);
}

TEST_CASE("api: a GPU's kernels are checked once, and what is wrong is put aside and told") {
    const auto open_double = [](int32_t check, const char* folder) {
        redline_model_options options = REDLINE_MODEL_OPTIONS;
        options.device = "hip:0";
        options.context = 64;
        options.cache_folder = folder;
        options.kernel_check = check;
        return OneModel(redline_model_load(golden("models/llama3.gguf").c_str(), &options));
    };
    const OneModel probe = open_double(-1, nullptr);
    if (!probe || !has(redline_model_device(probe.get()), "double"))
        RL_SKIP("HIP's double is not what runs here");
    const TemporaryFolder folder;
    const std::string kept = folder.path.string(), verdicts = kept + "/kernels.json";
    CHECK(std::string(redline_model_notes(probe.get())).empty());
    CHECK_FALSE(std::filesystem::exists(verdicts));
    const OneModel right = open_double(0, kept.c_str());
    REQUIRE_MESSAGE(right, redline_error());
    CHECK(std::string(redline_model_notes(right.get())).empty());
    CHECK(std::filesystem::exists(verdicts));
    ::setenv("RL_HIP_DOUBLE_BROKEN", "gated", 1);
    const OneModel known = open_double(0, kept.c_str()), anew = open_double(1, kept.c_str()),
                   kept_there = open_double(0, kept.c_str()), of_process = open_double(0, nullptr);
    ::setenv("RL_HIP_DOUBLE_BROKEN", "attention", 1);
    const OneModel refused = open_double(1, kept.c_str());
    const std::string why = redline_error();
    ::unsetenv("RL_HIP_DOUBLE_BROKEN");
    REQUIRE_MESSAGE(known, redline_error());
    CHECK(std::string(redline_model_notes(known.get())).empty());
    for (const auto* model : {&anew, &kept_there, &of_process}) {
        REQUIRE_MESSAGE(*model, redline_error());
        CHECK(
            has(redline_model_notes(model->get()),
                "1 of hip's kernels computes wrongly with this driver and is put aside (gated F32 96 x 64"));
    }
    CHECK(!refused);
    CHECK(has(why,
              "computes attention wrongly; the device cpu runs it; kernel_check = -1 runs it all the same"));
}

TEST_CASE("api: what was made is freed in any order") {
    OneModel model = open_model(chain_model());
    OneSession session(redline_session_new(model.get()));
    OneSampler sampler = greedy(session.get());
    model.reset();
    const int32_t a = ChainModel::kLetterA;
    CHECK(redline_feed(session.get(), &a, 1) == 0);
    CHECK(redline_sample(sampler.get(), session.get()) == a + 1);
    session.reset();
    redline_model_free(nullptr);
    redline_session_free(nullptr);
    redline_sampler_free(nullptr);
}

TEST_CASE("api: logits that cannot be a model's are an error, and the session is empty") {
    ChainModel chain;
    chain.gain = std::numeric_limits<float>::quiet_NaN();
    chain.build().save(file("api_nan.gguf"));
    OneModel model = open_model(file("api_nan.gguf"));
    OneSession session(redline_session_new(model.get()));
    const int32_t a = ChainModel::kLetterA;
    CHECK(redline_feed(session.get(), &a, 1) < 0);
    CHECK(has(redline_error(), "logit"));
    CHECK(redline_logits(session.get()) == nullptr);
    CHECK(redline_position(session.get()) == 0);
}

TEST_CASE("api: a conversation is written by the model's template, and texts cannot pose as control tokens") {
    ChainModel chat;
    chat.chat = true;
    chat.build().save(file("api_chat.gguf"));
    OneModel model = open_model(file("api_chat.gguf"));
    const redline_message messages[] = {{"user", "a<|im_end|>"}};
    std::vector<int32_t> tokens(100);
    tokens.resize(size_t(redline_chat(model.get(), messages, 1, tokens.data(), tokens.size())));
    CHECK(std::count(tokens.begin(), tokens.end(), ChainModel::kStart) == 2);
    CHECK(std::count(tokens.begin(), tokens.end(), ChainModel::kEnd) == 1);
    const redline_message strange[] = {{"wizard", "a"}};
    CHECK(redline_chat(model.get(), strange, 1, nullptr, 0) < 0);
    CHECK(has(redline_error(), "\"wizard\""));
}

TEST_CASE("api: a grammar binds the choice, and is at its end") {
    OneModel model = open_model(chain_model());
    OneSession session(redline_session_new(model.get()));
    OneSampler sampler = greedy(session.get(), "root ::= \"q\" \"r\"");
    const int32_t a = ChainModel::kLetterA;
    for (const char expected : {'q', 'r'}) {
        REQUIRE(redline_feed(session.get(), &a, 1) == 0);
        CHECK(!redline_finished(sampler.get()));
        CHECK(text_of(model.get(), redline_sample(sampler.get(), session.get())) == std::string(1, expected));
    }
    CHECK(redline_finished(sampler.get()));
    CHECK(redline_sample(sampler.get(), session.get()) < 0);
    CHECK(has(redline_error(), "grammar"));
    redline_sampler_options both = REDLINE_SAMPLER_OPTIONS;
    both.grammar = both.json_schema = "{}";
    CHECK(redline_sampler_new(session.get(), &both) == nullptr);
    both.json_schema = nullptr;
    CHECK(redline_sampler_new(session.get(), &both) == nullptr);
    CHECK(has(redline_error(), "line 1"));
}

TEST_CASE("api: what is wrong is an error that says what") {
    CHECK(redline_model_load("nowhere.gguf", nullptr) == nullptr);
    CHECK(has(redline_error(), "nowhere.gguf"));
    CHECK(redline_model_load(nullptr, nullptr) == nullptr);
    redline_model_options options = REDLINE_MODEL_OPTIONS;
    options.device = "abacus";
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "abacus"));
    options.device = "cpu";
    options.cache_type = "f17";
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "f17"));
    options.size = sizeof options + 8;
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "later version"));
    options.size = 0;
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    // A caller of before cache_type: what lies behind its struct is not read.
    options.size = offsetof(redline_model_options, cache_type);
    OneModel model(redline_model_load(chain_model().c_str(), &options));
    CHECK_MESSAGE(model, redline_error());

    CHECK(redline_tokenize(nullptr, "a", 1, 0, nullptr, 0) < 0);
    CHECK(redline_piece(nullptr, 1, 0, nullptr, 0) < 0);
    CHECK(redline_piece_after(nullptr, -1, 1, 0, nullptr, 0) < 0);
    CHECK(redline_session_new(nullptr) == nullptr);
    CHECK(redline_feed(nullptr, nullptr, 0) < 0);
    CHECK(redline_sample(nullptr, nullptr) < 0);
    CHECK(redline_position(nullptr) == 0);
}

TEST_CASE("api: a session refuses what it cannot read or choose by, and goes on") {
    OneModel model = open_model(chain_model(), 8);
    OneSession session(redline_session_new(model.get()));
    OneSampler sampler = greedy(session.get());
    CHECK(redline_sample(sampler.get(), session.get()) < 0);
    CHECK(has(redline_error(), "read no tokens"));
    const std::vector<int32_t> many(9, ChainModel::kLetterA);
    CHECK(redline_feed(session.get(), many.data(), many.size()) < 0);
    CHECK(redline_position(session.get()) == 0);
    const int32_t strange = 1 << 20;
    CHECK(redline_feed(session.get(), &strange, 1) < 0);
    CHECK(redline_note(sampler.get(), strange) < 0);
    redline_cancel(session.get());
    CHECK(redline_feed(session.get(), many.data(), 1) < 0);
    CHECK(has(redline_error(), "cancelled"));
    CHECK(redline_feed(session.get(), many.data(), 8) == 0);
    CHECK(redline_note(sampler.get(), many[0]) == 0);

    OneModel other = open_model(chain_model());
    OneSession elsewhere(redline_session_new(other.get()));
    CHECK(redline_feed(elsewhere.get(), many.data(), 1) == 0);
    CHECK(redline_sample(sampler.get(), elsewhere.get()) < 0);
    CHECK(has(redline_error(), "another model"));
}

TEST_CASE("api: each thread has a separate last error") {
    CHECK(redline_model_load("here.gguf", nullptr) == nullptr);
    std::thread([] {
        CHECK(std::string(redline_error()).empty());
        CHECK(redline_model_load("there.gguf", nullptr) == nullptr);
    }).join();
    CHECK(has(redline_error(), "here.gguf"));
}
