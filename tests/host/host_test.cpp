// The host: from wishes to a session, with everything that there is to say of it at one sink.
#include "host/find_model.h"
#include "host/load_model.h"
#include "host/load_plan.h"
#include "support/models.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

namespace {

class Heard : public Notes {
public:
    void take(NoteKind kind, std::string_view text) override {
        texts[size_t(kind)] += std::string(text) + "\n";
    }
    bool shows(NoteKind kind) const override { return kind != NoteKind::detail || curious; }
    void progress(std::string_view work, uint64_t done, uint64_t total) override {
        works += fmt::format("{} {}\n", work, total == 0 ? "begins" : done == total ? "is done" : "goes on");
    }
    void finished(std::string_view work) override { works += fmt::format("{} ends\n", work); }
    const std::string& of(NoteKind kind) const { return texts[size_t(kind)]; }

    bool curious = false;
    std::string texts[3], works;
};

constexpr SettingNames kServerNames = {.device = "\"device\"", .gpu_layers = "\"layers\"", .between = ": "};

}  // namespace

TEST_CASE("host: a model becomes a session, its plan and progress go to the sink, and nothing else is said") {
    Heard heard;
    HostOptions options;
    options.model = chain_model();
    options.device = "cpu";
    options.threads = 1;
    options.notes = &heard;
    LoadedModel loaded = must(inspect_model(options));
    CHECK(loaded.device.name() == "cpu");
    CHECK(!loaded.device.backend);
    const uint64_t context = must(choose_context(loaded, options));
    CHECK(context == ChainModel::kTrainContext);
    must(place_model(loaded, options, context));
    Session session = must(open_session(loaded, options, context));
    const Token a = ChainModel::kLetterA;
    must(session.feed({&a, 1}));
    CHECK(session.logits()[ChainModel::kLetterA + 1] > 1.0f);
    CHECK(heard.of(NoteKind::note).empty());
    CHECK_MESSAGE(heard.of(NoteKind::inform).starts_with("plan: 2/2 layers on cpu ("),
                  heard.of(NoteKind::inform));
    CHECK(heard.of(NoteKind::detail).starts_with("memory: weights "));
    CHECK(heard.works.starts_with("loading begins\n"));
    CHECK(heard.works.ends_with("loading is done\nloading ends\n"));
}

TEST_CASE("host: messages name settings as the caller's users do") {
    HostOptions options;
    options.device = "vulkan";
    options.gpu_layers = 0;
    CHECK(
        settle_device(options).error().message.starts_with("-ngl 0 means the CPU, --device vulkan another"));
    options.names = &kServerNames;
    CHECK(settle_device(options).error().message.starts_with(
        "\"layers\": 0 means the CPU, \"device\": vulkan another"));
    // For a device that splits nothing the wish is noted.
    Heard heard;
    options.notes = &heard;
    options.gpu_layers = 1;
    const Model model = must(Model::inspect(chain_model()));
    CHECK(asks_split(options, model));
    note_unsplit(options, model, "vulkan");
    CHECK(heard.of(NoteKind::note) == "\"layers\": 1: nothing is split here; all 2 layers are on vulkan\n");
}

TEST_CASE("host: more context than a model was trained for is noted, and as it is asked for") {
    Heard heard;
    HostOptions options;
    options.model = chain_model();
    options.device = "cpu";
    options.notes = &heard;
    options.context = int64_t(ChainModel::kTrainContext) * 2;
    LoadedModel loaded = must(inspect_model(options));
    CHECK(must(choose_context(loaded, options)) == uint64_t(options.context));
    CHECK(heard.of(NoteKind::note).find("its text may turn to nonsense") != std::string::npos);
}

TEST_CASE("host: a name is looked for only where there are stores, and what is found is told") {
    Heard heard;
    CHECK(must(find_model("no such model", {}, heard)) == "no such model");
    const TemporaryFolder folder;
    std::filesystem::copy_file(chain_model(), folder.path / "little-chain.gguf");
    const std::vector<ModelStore> stores = {{"tests", StoreKind::folder, folder.path}};
    CHECK(must(find_model("little", stores, heard)) == (folder.path / "little-chain.gguf").string());
    CHECK(heard.of(NoteKind::inform) == "model: little-chain (tests)\n");
    const Result<std::string> none = find_model("no such model", stores, heard);
    REQUIRE(!none);
    CHECK(none.error().message.starts_with("\"no such model\" is no file"));
}
