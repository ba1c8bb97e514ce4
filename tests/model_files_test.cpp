// Which model files are found on a machine, by what names.
#include "store/model_files.h"
#include "support/program.h"

#include <map>

using namespace redline;
using namespace redline::test;

namespace fs = std::filesystem;

namespace {

void put(const fs::path& path, const std::string& text = "GGUF") {
    fs::create_directories(path.parent_path());
    write_file(path.string(), text);
}

// A home with models of all five programs.
struct Home {
    TemporaryFolder folder;
    fs::path path = folder.path;

    Home() {
        put(own() / "mine.gguf", "12345");
        put(own() / "deep/Second.GGUF");
        put(own() / "big-00001-of-00003.gguf", "12");
        put(own() / "big-00002-of-00003.gguf", "345");
        put(own() / "big-00003-of-00003.gguf", "6");
        put(own() / "broken-00002-of-00002.gguf", "6");
        put(own() / "mmproj-mine-f16.gguf");
        put(own() / "half.gguf.part");
        const fs::path hub = path / ".cache/huggingface/hub/models--bartowski--Qwen3-8B-GGUF";
        put(hub / "blobs/abc", "1234567");
        fs::create_directories(hub / "snapshots/1111");
        fs::create_symlink("../../blobs/abc", hub / "snapshots/1111/Qwen3-8B-Q4_K_M.gguf");
        fs::create_directories(hub / "snapshots/2222");
        fs::create_symlink("../../blobs/abc", hub / "snapshots/2222/Qwen3-8B-Q4_K_M.gguf");
        put(path / ".cache/llama.cpp/ggml-org_gemma-3-1b-it-GGUF_gemma-3-1b-it-Q4_K_M.gguf");
        put(path / ".lmstudio/models/lmstudio-community/Phi/Phi-Q8_0.gguf");
        const fs::path ollama = path / ".ollama/models";
        put(ollama / "blobs/sha256-77", "123");
        put(ollama / "manifests/registry.ollama.ai/library/llama3.2/latest",
            R"({"layers":[{"mediaType":"application/vnd.ollama.image.template","digest":"sha256:99"},
                          {"mediaType":"application/vnd.ollama.image.model","digest":"sha256:77","size":3}]})");
        put(ollama / "manifests/registry.ollama.ai/someone/tiny/1b",
            R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:88"}]})");
        put(ollama / "manifests/registry.ollama.ai/library/garbage/latest", "[1, 2");
        put(ollama / "manifests/registry.ollama.ai/library/climber/latest",
            R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../x"}]})");
    }
    fs::path own() const { return path / ".local/share/redline/models"; }
    Environment environment(std::map<std::string, std::string> more = {}) const {
        more.try_emplace("HOME", path.string());
        return [more](const std::string& name) {
            const auto at = more.find(name);
            return at == more.end() ? std::string() : at->second;
        };
    }
};

std::vector<std::string> names(const std::vector<StoredModel>& files) {
    std::vector<std::string> all;
    for (const StoredModel& file : files) all.push_back(file.name);
    return all;
}

const StoredModel& file_called(const StoredModels& found, std::string_view name) {
    for (const StoredModel& file : found.files)
        if (file.name == name) return file;
    FAIL("no model called ", name);
    return found.files.front();
}

}  // namespace

TEST_CASE("the models of five programs are found, each once, with the names their users know") {
    const Home home;
    const StoredModels found = find_model_files(model_stores(home.environment()));
    CHECK(names(found.files) == std::vector<std::string>{
                                    "bartowski/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M",
                                    "big",
                                    "broken",
                                    "deep/Second",
                                    "ggml-org_gemma-3-1b-it-GGUF_gemma-3-1b-it-Q4_K_M",
                                    "llama3.2:latest",
                                    "lmstudio-community/Phi/Phi-Q8_0",
                                    "mine",
                                });
    CHECK(file_called(found, "mine").bytes == 5);
    CHECK(file_called(found, "mine").owner == "redline");
    const StoredModel& big = file_called(found, "big");
    CHECK(big.bytes == 6);
    CHECK(big.parts == 3);
    CHECK(big.of == 3);
    CHECK(big.path.ends_with("big-00001-of-00003.gguf"));
    CHECK(file_called(found, "broken").parts == 1);
    CHECK(file_called(found, "broken").of == 2);
    CHECK(file_called(found, "llama3.2:latest").bytes == 3);
    CHECK(file_called(found, "llama3.2:latest").path.ends_with("blobs/sha256-77"));
    CHECK(file_called(found, "bartowski/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M").bytes == 7);
}

TEST_CASE("manifests that say nothing usable are faults, and do not lead out of the store") {
    const Home home;
    const StoredModels found = find_model_files(model_stores(home.environment()));
    REQUIRE(found.faults.size() == 3);
    CHECK(has(found.faults[0], "climber"));
    CHECK(has(found.faults[0], "without a digest"));
    CHECK(has(found.faults[1], "garbage"));
    CHECK(has(found.faults[2], "blobs/sha256-88 is missing"));
}

TEST_CASE("the environment moves the stores, and without a home none is below the present folder") {
    const Home home;
    const auto find = [](const Environment& environment) {
        return names(find_model_files(model_stores(environment)).files);
    };
    const std::string own = home.own().string();
    CHECK(find(home.environment({{"HOME", "/nowhere"}, {"REDLINE_MODELS", own}})).size() == 4);
    CHECK(find(home.environment(
                   {{"HOME", "/nowhere"}, {"OLLAMA_MODELS", (home.path / ".ollama/models").string()}}))
              .size() == 1);
    CHECK(find(home.environment(
                   {{"HOME", "/nowhere"}, {"HF_HOME", (home.path / ".cache/huggingface").string()}}))
              .size() == 1);
    for (const ModelStore& store : model_stores(home.environment({{"HOME", ""}})))
        CHECK(store.path.is_absolute());
}

TEST_CASE("a part of a name finds models, a whole one only that model") {
    const Home home;
    const std::vector<StoredModel> all = find_model_files(model_stores(home.environment())).files;
    CHECK(names(named(all, "QWEN3-8b")) ==
          std::vector<std::string>{"bartowski/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M"});
    CHECK(named(all, "b").size() == 4);
    CHECK(names(named(all, "big")) == std::vector<std::string>{"big"});
    CHECK(names(named(all, "second.gguf")) == std::vector<std::string>{"deep/Second"});
    CHECK(names(named(all, "llama3.2")) == std::vector<std::string>{"llama3.2:latest"});
    CHECK(named(all, "nothing").empty());
}

namespace {

// The program with this home and no other store.
Outcome at_home(const Home& home, std::vector<std::string> arguments) {
    Launch what = command(std::move(arguments));
    what.environment = {"HOME=" + home.path.string()};
    for (const char* name : {"REDLINE_MODELS", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE",
                             "LLAMA_CACHE", "OLLAMA_MODELS"})
        what.environment.push_back(std::string(name) + "=");
    return launch(what);
}

}  // namespace

TEST_CASE("models: those that run come first, the others say why not") {
    const Home home;
    fs::copy_file(chain_model(), home.own() / "letters.gguf");
    const Outcome got = at_home(home, {"models", "--device", "cpu"});
    INFO(got.out, got.err);
    CHECK(got.code == 0);
    CHECK(has(got.out, "letters"));
    CHECK(got.out.find("letters") < got.out.find("Qwen3-8B"));
    CHECK(has(got.out, "fits"));
    CHECK(has(got.out, "1 of its 2 parts is missing"));
    CHECK(has(got.err, "garbage"));
    const Outcome json = at_home(home, {"models", "--device", "cpu", "--json", "--name", "LETT"});
    CHECK(has(json.out, "\"runs\": true"));
    CHECK(!has(json.out, "Qwen3"));
    CHECK(at_home(home, {"models", "--device", "cpu", "--name", "nothing-like-it"}).code == 1);
}

TEST_CASE("a model is run by a part of its name; several are listed, none is an error") {
    const Home home;
    fs::copy_file(chain_model(), home.own() / "letters-one.gguf");
    fs::copy_file(chain_model(), home.own() / "letters-two.gguf");
    const auto run = [&](const std::string& name) {
        return at_home(home, {"run", "-m", name, "-p", "a", "-n", "2", "--temp", "0"});
    };
    CHECK(run("letters-o").out == "bc");
    CHECK(run("letters-o").err.empty());
    const Outcome told = at_home(home, {"run", "-v", "-m", "letters-o", "-p", "a", "-n", "2", "--temp", "0"});
    CHECK(has(told.err, "model: letters-one (redline)"));
    const Outcome several = run("letters");
    CHECK(several.code == 1);
    CHECK(has(several.err, "\"letters\" may be any of 2 models; name one: letters-one, letters-two"));
    const Outcome none = run("unheard-of");
    CHECK(none.code == 1);
    CHECK(has(none.err, "redline models lists them"));
    CHECK(has(at_home(home, {"info", "-m", "letters-two"}).out, "letters-two.gguf"));
    CHECK(at_home(home, {"tokenize", "-m", "letters-two", "a"}).code == 0);
}
