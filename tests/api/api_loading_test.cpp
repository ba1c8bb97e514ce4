// Models that the C interface loads: split, with tensors by name, with tuned kernels, and on a device that is
// lost.
#include "api/api_case.h"

#include <limits>
#include <thread>

using namespace redline::test;

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

TEST_CASE("api: layers are divided over the devices of a list where that is asked for") {
    redline_model_options options = tiny_options("cpu,cpu");
    Told told;
    told.listen(options);
    options.split_mode = "tensor";
    const OneModel model = load_with(options, golden("models/llama3.gguf"));
    CHECK_MESSAGE(has(told.plan, "each of 2 layers over cpu ("), told.plan);
    options.split_mode = "row";
    CHECK(redline_model_load(golden("models/llama3.gguf").c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "split_mode takes none, layer, tensor or auto, and not row"));
    options.split_mode = "tensor";
    options.gpu_layers = 1;
    CHECK(redline_model_load(golden("models/llama3.gguf").c_str(), &options) == nullptr);
    CHECK(has(redline_error(), "gpu_layers: with split_mode = tensor each device has a part"));
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
    // The session that was idle meanwhile is told the same.
    CHECK(redline_feed(other.get(), &next, 1) < 0);
    CHECK_MESSAGE(has(redline_error(), "opened again just before"), std::string(redline_error()));
}

TEST_CASE("api: a session that is cancelled while its tokens are read again keeps all of them") {
    if (!has_hip_double()) RL_SKIP("HIP's double is not what runs here");
    const redline_model_options options = tiny_options("hip");
    const std::vector<int32_t> text = {3, 17, 5, 40, 8, 21, 33, 2};
    const int32_t next = 9;
    const OneModel model = load_with(options, golden("models/llama3.gguf"));
    const OneSession whole(redline_session_new(model.get())), session(redline_session_new(model.get()));
    REQUIRE(redline_feed(whole.get(), text.data(), text.size()) == 0);
    REQUIRE(redline_feed(whole.get(), &next, 1) == 0);
    const std::vector<float> expected(redline_logits(whole.get()),
                                      redline_logits(whole.get()) + redline_model_vocabulary(model.get()));
    REQUIRE(redline_feed(session.get(), text.data(), text.size()) == 0);
    {
        const Fault lost("hipStreamSynchronize 1 719 ");
        REQUIRE(redline_feed(whole.get(), &next, 1) == 0);
    }
    redline_cancel(session.get());
    CHECK(redline_feed(session.get(), &next, 1) < 0);
    CHECK(redline_position(session.get()) == text.size());
    REQUIRE_MESSAGE(redline_feed(session.get(), &next, 1) == 0, std::string(redline_error()));
    CHECK(std::equal(expected.begin(), expected.end(), redline_logits(session.get())));
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
    REQUIRE(problems[0] == "");
    REQUIRE(problems[1] == "");
    CHECK_MESSAGE(told.notes.find("was lost") != std::string::npos, told.notes);
    CHECK(told.notes.find("was lost") == told.notes.rfind("was lost"));
    // Both have read the same.
    const uint32_t vocabulary = redline_model_vocabulary(model.get());
    CHECK(std::equal(redline_logits(sessions[0].get()), redline_logits(sessions[0].get()) + vocabulary,
                     redline_logits(sessions[1].get())));
}
