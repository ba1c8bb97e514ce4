// The C interface, called as others call it. tests/api/client/installed builds a C program against the
// installed library.
#include "api/redline.h"

#include "support/backends.h"
#include "support/material.h"
#include "support/models.h"
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

namespace {

// Collects what the library tells.
struct Told {
    std::string notes, plan;
    uint64_t done = 0, total = 0;

    static void note(void* user, int kind, const char* text) {
        auto& told = *static_cast<Told*>(user);
        if (kind == REDLINE_NOTE) told.notes += std::string(text) + "\n";
        if (kind == REDLINE_INFORM) told.plan += std::string(text) + "\n";
    }
    static void progress(void* user, const char* work, uint64_t done, uint64_t total) {
        auto& told = *static_cast<Told*>(user);
        if (std::string(work) != "loading") return;
        told.done = done;
        told.total = total;
    }
    void listen(redline_model_options& options) {
        options.note = note;
        options.progress = progress;
        options.user = this;
    }
};

// A device beside the CPU, as the library takes it; empty: there is none.
std::string other_device() {
    for (const char* name : {"hip", "vulkan"})
        if (open_wanted(name)) return name;
    return "";
}

OneModel load_with(const redline_model_options& options, const std::string& path) {
    OneModel model(redline_model_load(path.c_str(), &options));
    REQUIRE_MESSAGE(model, redline_error());
    return model;
}

// Six tokens of the tiny model behind a prompt of eight, all of which depend on each other.
std::vector<int32_t> six_tokens(redline_session* session, redline_sampler* sampler) {
    const std::vector<int32_t> prompt = {3, 17, 5, 40, 8, 21, 33, 2};
    REQUIRE_MESSAGE(redline_feed(session, prompt.data(), prompt.size()) == 0, redline_error());
    std::vector<int32_t> made;
    for (int i = 0; i < 6; ++i) {
        made.push_back(redline_sample(sampler, session));
        REQUIRE_MESSAGE(made.back() >= 0, redline_error());
        REQUIRE_MESSAGE(redline_feed(session, &made.back(), 1) == 0, redline_error());
    }
    return made;
}

redline_model_options tiny_options(const char* device) {
    redline_model_options options = REDLINE_MODEL_OPTIONS;
    options.device = device;
    options.context = 64;
    options.batch = 4;
    options.cache_type = "f32";
    options.kernel_check = -1;
    return options;
}

// HIP's double takes a fault from the environment when the call comes.
class Fault {
public:
    explicit Fault(const char* what) { ::setenv("RL_HIP_DOUBLE_FAIL", what, 1); }
    ~Fault() { ::unsetenv("RL_HIP_DOUBLE_FAIL"); }
};

bool has_hip_double() {
    const auto hip = open_wanted("hip");
    return hip && has(hip->device().name, "double");
}

}  // namespace

TEST_CASE("api: a model is split by layers or by the memory that is given, and says what it says whole") {
    const std::string device = other_device();
    if (device.empty()) RL_SKIP("no device beside the CPU is here");
    redline_model_options options = REDLINE_MODEL_OPTIONS;
    options.device = device.c_str();
    options.kernel_check = -1;
    const auto said = [&] {
        const OneModel model = load_with(options, chain_model());
        const OneSession session(redline_session_new(model.get()));
        REQUIRE_MESSAGE(session, redline_error());
        if (options.gpu_layers == 1) {
            CHECK(redline_session_new(model.get()) == nullptr);
            CHECK(has(redline_error(), "one session at a time"));
        }
        const std::vector<int32_t> prompt = tokens_of(model.get(), "ab", REDLINE_ADD_SPECIAL);
        REQUIRE(redline_feed(session.get(), prompt.data(), prompt.size()) == 0);
        const OneSampler sampler = greedy(session.get());
        return continued(model.get(), session.get(), sampler.get(), 6);
    };
    Told whole, by_layers, by_memory;
    whole.listen(options);
    CHECK(said() == "cdefgh");
    CHECK(has(whole.plan, "plan: 2/2 layers on " + device));
    CHECK(whole.total > 0);
    CHECK(whole.done == whole.total);
    by_layers.listen(options);
    options.gpu_layers = 1;
    CHECK(said() == "cdefgh");
    CHECK(has(by_layers.plan, "plan: 1/2 layers on " + device));
    CHECK(has(by_layers.plan, ", 1 on cpu ("));
    CHECK(by_layers.done == by_layers.total);
    CHECK(by_layers.notes.empty());
    // The CPU runs the layers that the device has no room for, and a note names these options.
    options.gpu_layers = -1;
    by_memory.listen(options);
    for (options.memory = whole.total; options.memory > 1024 && by_memory.notes.empty();
         options.memory -= options.memory / 8)
        CHECK(said() == "cdefgh");
    CHECK(has(by_memory.notes, "the others on the CPU, which is slower"));
    CHECK(has(by_memory.notes, "(context = N), cache_type = \"q8_0\" or a smaller quantization"));
    // All layers there are refused with as little.
    options.gpu_layers = 2;
    CHECK(redline_model_load(chain_model().c_str(), &options) == nullptr);
    CHECK_MESSAGE(has(redline_error(), "offers"), redline_error());
}

TEST_CASE("api: tensors are placed by their names, and a place that is none is an error") {
    const std::string device = other_device();
    if (device.empty()) RL_SKIP("no device beside the CPU is here");
    redline_model_options options = tiny_options(device.c_str());
    Told told;
    told.listen(options);
    options.tensors = "blk\\.0\\.=CPU";
    const OneModel model = load_with(options, golden("models/llama3.gguf"));
    CHECK_MESSAGE(has(told.plan, ", 1 on cpu ("), told.plan);
    options.tensors = "blk\\.7\\.=cpu";
    const OneModel none = load_with(options, golden("models/llama3.gguf"));
    CHECK_MESSAGE(has(redline_model_notes(none.get()), "tensors = blk\\.7\\.: no tensor"),
                  redline_model_notes(none.get()));
    options.tensors = "blk";
    CHECK(redline_model_load(golden("models/llama3.gguf").c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "tensors takes PATTERN=DEVICE"));
    options.tensors = "blk=abacus";
    CHECK(redline_model_load(golden("models/llama3.gguf").c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "tensors = blk=abacus: tensors can be on " + device + " or cpu"));
}

TEST_CASE(
    "api: tuned variants of the cache folder are used, and kernels are timed only where that is asked") {
    if (!has_hip_double()) RL_SKIP("HIP's double is not what runs here");
    const TemporaryFolder folder;
    redline_model_options options = tiny_options("hip");
    const std::string kept = folder.path.string(), file = kept + "/tuning.json";
    options.cache_folder = kept.c_str();
    Told told;
    told.listen(options);
    load_with(options, golden("models/llama3.gguf"));
    CHECK_FALSE(std::filesystem::exists(file));
    CHECK_FALSE(has(told.plan, "timed"));
    options.tune = 1;
    load_with(options, golden("models/llama3.gguf"));
    CHECK(std::filesystem::exists(file));
    CHECK_MESSAGE(has(told.plan, " timed on hip in "), told.plan);
    CHECK(has(told.plan, "redline tune measures more, tune = -1 leaves this out"));
    told.plan.clear();
    load_with(options, golden("models/llama3.gguf"));
    CHECK_FALSE(has(told.plan, " timed on hip in "));
    options.tune = 0;
    write_file(file, "{");
    load_with(options, golden("models/llama3.gguf"));
    CHECK_MESSAGE(has(told.notes, "kernels run as they do by default"), told.notes);
    told.notes.clear();
    options.tune = -1;
    load_with(options, golden("models/llama3.gguf"));
    CHECK(told.notes.empty());
}

TEST_CASE("api: a lost device is opened again once for all sessions of a model, and they go on") {
    if (!has_hip_double()) RL_SKIP("HIP's double is not what runs here");
    redline_model_options options = tiny_options("hip");
    Told told;
    told.listen(options);
    std::vector<int32_t> expected;
    {
        const OneModel model = load_with(options, golden("models/llama3.gguf"));
        const OneSession session(redline_session_new(model.get()));
        expected = six_tokens(session.get(), greedy(session.get()).get());
    }
    CHECK(told.notes.empty());
    const OneModel model = load_with(options, golden("models/llama3.gguf"));
    const OneSession one(redline_session_new(model.get())), other(redline_session_new(model.get()));
    const OneSampler first = greedy(one.get()), second = greedy(other.get());
    const int32_t before[] = {3, 17, 5, 40, 8, 21, 33, 2};
    REQUIRE(redline_feed(other.get(), before, 8) == 0);
    const std::vector<float> logits(redline_logits(other.get()),
                                    redline_logits(other.get()) + redline_model_vocabulary(model.get()));
    {
        const Fault lost("hipStreamSynchronize 3 719 ");
        CHECK(six_tokens(one.get(), first.get()) == expected);
    }
    CHECK_MESSAGE(has(told.notes, "hip was lost; it is opened again"), told.notes);
    CHECK(told.notes.find("was lost") == told.notes.rfind("was lost"));
    // The session that was idle has its logits, and reads its tokens again before it goes on.
    CHECK(std::equal(logits.begin(), logits.end(), redline_logits(other.get())));
    const int32_t next = redline_sample(second.get(), other.get());
    CHECK(next == expected[0]);
    REQUIRE_MESSAGE(redline_feed(other.get(), &next, 1) == 0, std::string(redline_error()));
    CHECK(redline_position(other.get()) == 9);
    CHECK(redline_sample(second.get(), other.get()) == expected[1]);
    // So soon after it is lost for good, which is an error and no end of the program.
    const Fault again("hipStreamSynchronize 1 719 ");
    int done = 0;
    for (int step = 0; step < 3 && done == 0; ++step) done = redline_feed(one.get(), &next, 1);
    CHECK(done < 0);
    CHECK_MESSAGE(has(redline_error(), "opened again just before"), std::string(redline_error()));
}

TEST_CASE("api: two threads go on with their sessions after the device that both use was lost") {
    if (!has_hip_double()) RL_SKIP("HIP's double is not what runs here");
    redline_model_options options = tiny_options("hip");
    Told told;
    told.listen(options);
    const OneModel model = load_with(options, golden("models/llama3.gguf"));
    const OneSession sessions[] = {OneSession(redline_session_new(model.get())),
                                   OneSession(redline_session_new(model.get()))};
    const auto read = [&](size_t i) {
        const std::vector<int32_t> tokens = {3, 17, 5, 40, 8, 21, 33, 2};
        for (int step = 0; step < 6; ++step)
            if (redline_feed(sessions[i].get(), tokens.data(), tokens.size()) != 0)
                return std::string(redline_error());
        return std::string();
    };
    std::string problems[2];
    {
        const Fault lost("hipStreamSynchronize 7 719");
        std::thread other([&] { problems[1] = read(1); });
        problems[0] = read(0);
        other.join();
    }
    CHECK(problems[0] == "");
    CHECK(problems[1] == "");
    CHECK_MESSAGE(told.notes.find("was lost") != std::string::npos, told.notes);
    CHECK(told.notes.find("was lost") == told.notes.rfind("was lost"));
    // Both have read the same.
    const uint32_t vocabulary = redline_model_vocabulary(model.get());
    CHECK(std::equal(redline_logits(sessions[0].get()), redline_logits(sessions[0].get()) + vocabulary,
                     redline_logits(sessions[1].get())));
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
