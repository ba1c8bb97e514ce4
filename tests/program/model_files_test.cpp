// Finding the model files of a machine, by name.
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
        put(redline_folder() / "mine.gguf", "12345");
        put(redline_folder() / "deep/Second.GGUF");
        put(redline_folder() / "big-00001-of-00003.gguf", "12");
        put(redline_folder() / "big-00002-of-00003.gguf", "345");
        put(redline_folder() / "big-00003-of-00003.gguf", "6");
        put(redline_folder() / "broken-00002-of-00002.gguf", "6");
        put(redline_folder() / "mmproj-mine-f16.gguf");
        put(redline_folder() / "half.gguf.part");
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
    fs::path redline_folder() const { return path / ".local/share/redline/models"; }
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

TEST_CASE("a file that several tags name is listed once and found by each of them") {
    const TemporaryFolder folder;
    const fs::path store = folder.path / "models", library = store / "manifests/registry.ollama.ai/library";
    put(store / "blobs/sha256-77", "123");
    for (const char* tag : {"little/latest", "little/11m", "copy/latest"})
        put(library / tag,
            R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:77"}]})");
    const std::vector<StoredModel> files = find_model_files({{"ollama", StoreKind::ollama, store}}).files;
    REQUIRE(files.size() == 1);
    CHECK(files[0].aliases.size() == 2);
    for (const std::string name : {"little", "little:latest", "LITTLE:11m", "copy", "copy:latest"}) {
        CAPTURE(name);
        REQUIRE(called(files, name).size() == 1);
        CHECK(has(called(files, name)[0].name, name == "LITTLE:11m" ? "little:11m" : name));
    }
    REQUIRE(named(files, "ttle:11").size() == 1);
    CHECK(named(files, "ttle:11")[0].name == "little:11m");
    CHECK(called(files, "ttle:11").empty());
}

TEST_CASE("of the revisions of a file in the hub's cache the main one is taken") {
    const TemporaryFolder folder;
    const fs::path model = folder.path / "hub/models--us--er-GGUF";
    for (const char* revision : {"1111", "2222", "3333"})
        put(model / "snapshots" / revision / "m-Q8_0.gguf", revision);
    put(model / "refs/main", "2222");
    const std::vector<StoredModel> files =
        find_model_files({{"hugging face", StoreKind::hugging_face, folder.path / "hub"}}).files;
    REQUIRE(files.size() == 3);
    CHECK(has(files[0].path, "2222"));
    CHECK(has(called(files, "m-q8_0")[0].path, "2222"));
}

TEST_CASE("the environment moves the stores, and without a home none is below the present folder") {
    const Home home;
    const auto find = [](const Environment& environment) {
        return names(find_model_files(model_stores(environment)).files);
    };
    const std::string folder = home.redline_folder().string();
    CHECK(find(home.environment({{"HOME", "/nowhere"}, {"REDLINE_MODELS", folder}})).size() == 4);
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
    fs::copy_file(chain_model(), home.redline_folder() / "letters.gguf");
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
    fs::copy_file(chain_model(), home.redline_folder() / "letters-one.gguf");
    fs::copy_file(chain_model(), home.redline_folder() / "letters-two.gguf");
    const auto run = [&](const std::string& name) {
        return at_home(home, {"run", "-m", name, "-p", "a", "-n", "2", "--temp", "0"});
    };
    CHECK(run("letters-o").out == "bc");
    CHECK(run("letters-o").err.empty());
    const auto told = [&](const std::string& name) {
        return at_home(home, {"run", "-v", "-m", name, "-p", "a", "-n", "2", "--temp", "0"}).err;
    };
    CHECK(has(told("letters-o"), "model: letters-one (redline)"));
    // One name in two stores is the first of them.
    const fs::path other = home.path / ".lmstudio/models/letters-one.gguf";
    fs::copy_file(chain_model(), other);
    CHECK(has(told("letters-one"), "model: letters-one (redline)"));
    fs::remove(other);
    const Outcome several = run("letters");
    CHECK(several.code == 1);
    CHECK(has(several.err, "\"letters\" may be any of 2 models; name one: letters-one, letters-two"));
    const Outcome none = run("unheard-of");
    CHECK(none.code == 1);
    CHECK(has(none.err, "redline models lists them"));
    CHECK(has(at_home(home, {"info", "-m", "letters-two"}).out, "letters-two.gguf"));
    CHECK(at_home(home, {"tokenize", "-m", "letters-two", "a"}).code == 0);
}

TEST_CASE("the first word that is a model's file or name is the model, for every command") {
    const Home home;
    fs::copy_file(chain_model(), home.redline_folder() / "letters-one.gguf");
    const std::string file = (home.redline_folder() / "letters-one.gguf").string();
    const std::vector<std::string> text = {"-n", "2", "--temp", "0"};
    const auto with = [&](std::vector<std::string> line, const std::vector<std::string>& more) {
        line.insert(line.end(), more.begin(), more.end());
        return at_home(home, line);
    };
    for (const std::string& model : {file, std::string("letters-one"), std::string("letters-o")}) {
        CAPTURE(model);
        CHECK(with({"run", model, "a"}, text).out == "bc");
        CHECK(with({"run", model, "-p", "a"}, text).out == "bc");
        CHECK(has(with({"info", model}, {}).out, "letters-one.gguf"));
        CHECK(with({"tokenize", model, "a"}, {"--ids"}).code == 0);
        CHECK(with({"verify", model, "--device", "cpu"}, {"-q"}).code == 0);
        CHECK(with({"bench", model, "--device", "cpu"}, {"-p", "0", "-n", "1", "-r", "1"}).code == 0);
    }
    // A prompt may be a part of a name: alone it is no model, and the whole name is one.
    const Outcome prompt = with({"run", "letters"}, text);
    CHECK(!has(prompt.err, "letters-one"));
    CHECK(has(prompt.err, "\"letters\" is the prompt; redline run -m letters takes the model"));
    CHECK(has(with({"run", "letters-one"}, text).err, "no prompt"));
    const Outcome none = with({"run", "unheard-of", "a"}, text);
    CHECK(none.code == 2);
    CHECK(has(none.err, "neither a file nor the name of a model here"));
    // Neither do a few letters, or the inside of a word, name a model, nor does a sentence name a file.
    for (const std::string first : {"hi", "ph", "ters-o", "make model.bin a model.gguf"}) {
        const Outcome texts = with({"run", first, "there"}, text);
        CHECK(texts.code == 2);
        CHECK_MESSAGE(has(texts.err, "are two texts"), texts.err);
    }
    CHECK(has(at_home(home, {"make a model.gguf", "a"}).err, "is not a command"));
    const std::string blank = (home.redline_folder() / "my letters.gguf").string();
    fs::copy_file(file, blank);
    CHECK(with({"run", blank, "a"}, text).out == "bc");
    const Outcome both = with({"info", "letters-one", "-m", "letters-one"}, {});
    CHECK(both.code == 2);
    CHECK(has(both.err, "a word and -m/--model are both given"));
    CHECK(has(with({"info", "one", "two"}, {}).err, "\"one\" and \"two\" are both given for -m/--model"));
    CHECK(with({"tokenize", "letters-one", "a", "b"}, {}).code == 2);
}

TEST_CASE("options without a command, and other programs' commands, do what their users expect") {
    const Home home;
    fs::copy_file(chain_model(), home.redline_folder() / "letters-one.gguf");
    const std::string file = (home.redline_folder() / "letters-one.gguf").string();
    CHECK(at_home(home, {"-m", file, "-p", "a", "-n", "2", "--temp", "0"}).out == "bc");
    CHECK(at_home(home, {file, "a", "-n", "2", "--temp", "0"}).out == "bc");
    CHECK(at_home(home, {"list", "--device", "cpu"}).out == at_home(home, {"models", "--device", "cpu"}).out);
    CHECK(has(at_home(home, {"show", "letters-one"}).out, "letters-one.gguf"));
    CHECK(has(at_home(home, {"help", "info"}).out, "redline info:"));
    CHECK(has(at_home(home, {"letters", "a"}).err, "redline run letters and redline chat letters"));
    for (const auto& [name, words] : std::map<std::string, std::string>{{"ps", "nothing to list"},
                                                                        {"rm", "rm FILE"},
                                                                        {"embed", "no embeddings"},
                                                                        {"cp", "plain GGUF files"}}) {
        const Outcome got = at_home(home, {name, "x"});
        CHECK(got.code == 2);
        CHECK(has(got.err, words));
    }
}
