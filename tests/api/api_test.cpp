// The C interface, called as others call it. tests/api/client/installed builds a C program against the
// installed library.
#include "api/api_case.h"

#include <limits>
#include <thread>

using namespace redline::test;

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
    // With a norm, and without one, which takes its place.
    for (const auto* model : {&anew, &kept_there, &of_process}) {
        REQUIRE_MESSAGE(*model, redline_error());
        CHECK(
            has(redline_model_notes(model->get()),
                "2 of hip's kernels compute wrongly with this driver and are put aside (gated F32 96 x 64"));
    }
    CHECK(!refused);
    CHECK(has(why,
              "computes attention wrongly; the device cpu runs it; kernel_check = -1 runs it all the same"));
}

TEST_CASE("api: a conversation that the template refuses does not change the next one") {
    ChainModel chat;
    chat.chat = true;
    chat.chat_template =
        "{% if messages|length > 1 %}{{ raise_exception('one message at a time') }}{% endif %}"
        "b{{ messages[0].content }}<|im_end|>";
    chat.build().save(file("api_refusing.gguf"));
    const OneModel model = open_model(file("api_refusing.gguf"));
    const redline_message messages[] = {{"user", "a"}, {"user", "b"}};
    const auto written = [&](size_t count) {
        std::vector<int32_t> tokens(100);
        const int64_t length = redline_chat(model.get(), messages, count, tokens.data(), tokens.size());
        tokens.resize(size_t(std::max<int64_t>(length, 0)));
        return tokens;
    };
    const std::vector<int32_t> before = written(1);
    CHECK(!before.empty());
    written(2);
    CHECK(written(1) == before);
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
    options.device = "2";
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "device 2: a number alone names no device; vulkan:2 may be meant"));
    options.device = "vulkan";
    options.gpu_layers = 0;
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(
        has(redline_error(), "gpu_layers = 0 means the CPU, device = vulkan another: leave one of them out"));
    options.gpu_layers = -7;
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "gpu_layers is a number from -1 to "));
    options.gpu_layers = -1;
    options.stream = 2;
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "stream is a number from -1 to 1, not 2"));
    options.stream = 0;
    options.device = "cpu";
    options.cache_type = "f17";
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "f17"));
    options.cache_type = "q8_0";
    options.cache_type_v = "q4_9";
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "cache_type_v"));
    options.cache_type_v = nullptr;
    options.cache_rotation = 1;
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "cache_rotation"));
    options.cache_rotation = 0;
    options.size = sizeof options + 8;
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "later version"));
    options.size = 0;
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    // A caller of before cache_type_k has the type that it asks for.
    options.cache_type = "f16";
    options.size = offsetof(redline_model_options, cache_type_k);
    OneModel older(redline_model_load(chain_model().c_str(), &options));
    CHECK_MESSAGE(older, redline_error());
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

TEST_CASE("api: a sampler's parameter out of its range is refused with the message of the command line") {
    OneModel model = open_model(chain_model());
    OneSession session(redline_session_new(model.get()));
    const auto refused = [&](auto member, auto value) {
        redline_sampler_options options = REDLINE_SAMPLER_OPTIONS;
        options.*member = value;
        CHECK(redline_sampler_new(session.get(), &options) == nullptr);
        return std::string(redline_error());
    };
    CHECK(refused(&redline_sampler_options::top_p, 1.5f) ==
          "top_p is 1.5; it must be between 0 and 1 (1 turns it off)");
    CHECK(refused(&redline_sampler_options::min_p, -0.5f) ==
          "min_p is -0.5; it must be between 0 and 1 (0 turns it off)");
    CHECK(refused(&redline_sampler_options::repeat_last_n, -2) ==
          "repeat_last_n is -2; it must be -1 or more (-1: the whole context, 0: off)");
    CHECK(has(refused(&redline_sampler_options::repeat_penalty, 0.0f), "repeat_penalty is 0; it must be"));
    CHECK(refused(&redline_sampler_options::temperature, std::numeric_limits<float>::quiet_NaN()) ==
          "temperature is nan; it must be a finite number (0 or less: greedy)");
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
