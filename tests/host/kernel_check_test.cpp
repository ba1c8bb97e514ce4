// The check of a device's kernels: silent where they are right; what is wrong is found, put aside, and the
// text stays right.
#include "host/tuned.h"
#include "json/json.h"
#include "measure/comparison.h"
#include "measure/kernel_verdicts.h"
#include "plan/kernel_key.h"
#include "support/models.h"
#include "support/program.h"

#include <map>
#include <sstream>

using namespace redline;
using namespace redline::test;

namespace {

// An environment variable for as long as a test runs.
class Setting {
public:
    Setting(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
    ~Setting() { ::unsetenv(name_); }

private:
    const char* name_;
};

constexpr const char* kBroken = "RL_HIP_DOUBLE_BROKEN";

// The double of HIP, the only device whose kernels can be broken; null without it.
std::unique_ptr<Backend> hip_double() {
    std::unique_ptr<Backend> backend = open_wanted("hip");
    if (backend && backend->device().name.find("double") == std::string::npos) return nullptr;
    return backend;
}

SessionOptions check_options() {
    SessionOptions options;
    options.context = 256;
    options.batch = 192;
    return options;
}

SelfTest tested(Backend& backend, const std::string& name, const std::set<std::string>& known = {},
                const SessionOptions& options = check_options()) {
    const Model model = must(Model::inspect(golden("models/" + name + ".gguf"), 256));
    return must(self_test(model, backend, options, known));
}

// Two sequences that share pages.
SessionOptions paged_options() {
    SessionOptions options = check_options();
    options.sequences = 2;
    return options;
}

bool has_word(const std::set<std::string>& keys, const std::string& word) {
    return std::ranges::any_of(keys, [&](const std::string& key) { return key.find(word) != key.npos; });
}

// Matrices of this one are in eight bits, so that rows are left in int8.
// Logits of tokens that are read one by one.
std::vector<float> single_logits(const Model& model, const std::vector<Token>& tokens) {
    Session session = must(Session::create(model, check_options()));
    std::vector<float> out;
    for (const Token token : tokens) {
        must(session.feed({&token, 1}));
        out.insert(out.end(), session.logits().begin(), session.logits().end());
    }
    return out;
}

std::string all_wrong(const SelfTest& test) {
    std::string text;
    for (const WrongKernel& kernel : test.wrong) text += kernel.key + ": " + kernel.what + "\n";
    return text;
}

size_t lines_with(const std::string& text, const std::string& word) {
    std::istringstream in(text);
    size_t count = 0;
    for (std::string line; std::getline(in, line);) count += line.find(word) != line.npos;
    return count;
}

Launch run_launch(const std::string& cache, const std::string& broken, std::vector<std::string> more) {
    std::vector<std::string> arguments = {program(), "run",    "-m",  golden("models/llama3.gguf"),
                                          "--raw",   "-p",     "a b", "-n",
                                          "8",       "--temp", "0",   "--self-test"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "--later") != more.end()) {
        std::erase(arguments, "--later");
        std::erase(arguments, "--self-test");
    }
    Launch what;
    what.arguments = std::move(arguments);
    what.environment = {"XDG_CACHE_HOME=" + cache, std::string(kBroken) + "=" + broken,
                        "REDLINE_SELF_TEST=1"};
    return what;
}

// The logits of a model are the CPU's, within the bound of chunks.
void check_logits(Backend& backend, const std::string& name) {
    const auto reference = test::cpu();
    const std::string path = golden("models/" + name + ".gguf");
    const Model model = must(Model::load(path, backend, {256, {}})),
                right = must(Model::load(path, *reference, {256, {}}));
    SessionOptions options = check_options();
    options.outputs = options.batch;
    CHECK(relative_error(all_logits(model, golden_tokens(), options),
                         all_logits(right, golden_tokens(), options)) <
          chunk_bound(model, options, golden_tokens()));
}

// The delta rule of this model, whose kernels are one for each number of lanes.
constexpr const char* kDelta = "qwen35";
struct DeltaLanes {
    uint32_t usual, other;
    Variants others;  // the other for all of its kernels
};
DeltaLanes delta_lanes(Backend& backend) {
    DeltaLanes out = {};
    const Model model = must(Model::inspect(golden(fmt::format("models/{}.gguf", kDelta)), 256));
    for (const KernelChoices& kernel : must(kernel_choices(model, backend, check_options(), true)))
        for (const Choice& one : kernel.choices) {
            if (one.name != "lanes") continue;
            REQUIRE(one.values.size() == 2);
            out.usual = one.values[0];
            out.other = one.values[1];
            out.others[{kernel.key, kernel.rows}] = {{"lanes", out.other}};
        }
    REQUIRE(!out.others.empty());
    return out;
}

}  // namespace

TEST_CASE("kernel check: what models use is right on every device, and is checked once") {
    for (const std::string& kind : backend_names()) {
        const auto backend = kind == "cpu" ? nullptr : open_wanted(kind);
        if (!backend) continue;
        // The CPU's driver of Vulkan takes long to compile kernels.
        std::vector<std::string> names = tiny_models(*backend);
        if (backend->device().on_cpu) names = {"llama3", "qwen35moe"};
        for (const std::string& name : names) {
            INFO(name, " on ", backend->device().name);
            const SelfTest test = tested(*backend, name);
            CHECK(all_wrong(test) == "");
            CHECK(!test.lost);
            CHECK(backend->refused().empty());
            CHECK(test.right.size() >= 5);
            std::string again;
            for (const std::string& key : tested(*backend, name, test.right).right) again += key + "\n";
            CHECK(again == "");
        }
    }
}

TEST_CASE("kernel check: a fused kernel that is wrong is put aside, and logits stay right") {
    if (!hip_double()) RL_SKIP("HIP's double is not what runs here");
    const std::map<std::string, std::string> broken = {
        {"gated", "gated"}, {"best", kBestKey}, {"expert_gated", "expert_gated"}};
    for (const auto& [kernel, key] : broken) {
        const Setting setting(kBroken, kernel);
        const auto backend = hip_double();
        const std::string name = kernel == "expert_gated" ? "qwen3moe" : "llama3";
        INFO(kernel, " in ", name);
        const SelfTest test = tested(*backend, name);
        CHECK(!test.lost);
        REQUIRE(!test.wrong.empty());
        for (const WrongKernel& wrong : test.wrong) {
            CHECK(wrong.key.find(key) != std::string::npos);
            CHECK(backend->refused().contains(wrong.key));
        }
        // The replacement was checked as well.
        CHECK(tested(*backend, name, test.right).wrong.empty());
        check_logits(*backend, name);
    }
}

TEST_CASE("kernel check: where a kernel's default is wrong another variant of it is used") {
    if (!hip_double()) RL_SKIP("HIP's double is not what runs here");
    const DeltaLanes lanes = delta_lanes(*hip_double());
    const Setting setting(kBroken, fmt::format("delta_net_128_{}", lanes.usual));
    const auto backend = hip_double();
    const SelfTest test = tested(*backend, kDelta);
    CHECK(!test.lost);
    REQUIRE(!test.wrong.empty());
    for (const WrongKernel& wrong : test.wrong) {
        CHECK(wrong.key.find("delta") != std::string::npos);
        CHECK(kernel_of_verdict(wrong.key) == wrong.key);
        CHECK(backend->refused().contains(wrong.key));
    }
    CHECK(has_word(test.right, fmt::format(" in the variant 1 row: lanes {}", lanes.other)));
    CHECK(tested(*backend, kDelta, test.right).right.empty());
    check_logits(*backend, kDelta);
    // The others are as they were.
    CHECK(test.wrong.size() <= 2);
    const WrongKernels sorted = wrong_kernels({{}, test});
    CHECK(sorted.aside.empty());
    CHECK(wrong_text(sorted, "hip", false).find(" run in another variant (delta") != std::string::npos);
}

TEST_CASE("kernel check: where a variant in use is wrong the default goes on being used") {
    if (!hip_double()) RL_SKIP("HIP's double is not what runs here");
    const DeltaLanes lanes = delta_lanes(*hip_double());
    const Setting setting(kBroken, fmt::format("delta_net_128_{}", lanes.other));
    const auto backend = hip_double();
    backend->use(lanes.others);
    // Those that were tested when they were tuned are tested again when asked.
    const Model model = must(Model::inspect(golden(fmt::format("models/{}.gguf", kDelta)), 256));
    CHECK(all_wrong(must(self_test(model, *backend, check_options(), {}, false))) == "");
    const SelfTest test = tested(*backend, kDelta);
    CHECK(!test.lost);
    REQUIRE(!test.wrong.empty());
    for (const WrongKernel& wrong : test.wrong) {
        CHECK(wrong.key.find(fmt::format(": lanes {}", lanes.other)) != std::string::npos);
        CHECK(test.right.contains(std::string(kernel_of_verdict(wrong.key))));
    }
    check_logits(*backend, kDelta);
    CHECK(tuned_kernels_of(model, *backend, check_options()).empty());
    const WrongKernels sorted = wrong_kernels({{}, test});
    CHECK(sorted.aside.empty());
    CHECK(sorted.elsewhere.size() == test.wrong.size());
}

TEST_CASE("kernel check: a row left in int8 is checked with who takes it, and not left where it is wrong") {
    if (!hip_double()) RL_SKIP("HIP's double is not what runs here");
    const Model model = must(Model::inspect(demo(), 256));
    const auto whole = hip_double();
    const SelfTest right = must(self_test(model, *whole, check_options(), {}));
    CHECK(all_wrong(right) == "");
    size_t pairs = 0;
    for (const std::string& key : right.right) pairs += key.starts_with("the row in int8 from ");
    CHECK(pairs >= 4);
    const Setting setting(kBroken, "hand");
    const auto backend = hip_double();
    const SelfTest test = must(self_test(model, *backend, check_options(), {}));
    CHECK(!test.lost);
    CHECK(test.wrong.size() == pairs);
    for (const WrongKernel& wrong : test.wrong) CHECK(wrong.key.starts_with("the row in int8 from "));
    // They are left by none then: the logits are those of a right device that does so.
    whole->refuse(backend->refused());
    const Model broken = must(Model::load(demo(), *backend, {256, {}})),
                other = must(Model::load(demo(), *whole, {256, {}}));
    const std::vector<Token> tokens = {1, 70, 300, 44, 81, 500};
    CHECK(single_logits(broken, tokens) == single_logits(other, tokens));
}

TEST_CASE("kernel check: results that are too far off for roundings are found within their bounds") {
    if (!hip_double()) RL_SKIP("HIP's double is not what runs here");
    const Model model = must(Model::inspect(demo(), 256));
    const Setting setting(kBroken, "slight");
    const auto backend = hip_double();
    const SelfTest test = must(self_test(model, *backend, check_options(), {}));
    CHECK(!test.lost);
    const std::string text = all_wrong(test);
    CHECK(text.find(" times the error that rounding is likely to cause, the largest ") != std::string::npos);
    for (const WrongKernel& wrong : test.wrong) CHECK(wrong.key.starts_with("the row in int8 from "));
}

TEST_CASE("kernel check: sequences that share pages have kernels checked with pages") {
    for (const std::string& kind : backend_names()) {
        const auto backend = kind == "cpu" ? nullptr : open_wanted(kind);
        if (!backend) continue;
        for (const std::string name : {"llama3", "gemma3", "qwen35moe", "deepseek2-lite"}) {
            if (backend->device().on_cpu && name != "llama3") continue;
            INFO(name, " on ", backend->device().name);
            const SelfTest test = tested(*backend, name, {}, paged_options());
            CHECK(all_wrong(test) == "");
            CHECK(!test.lost);
            CHECK(has_word(test.right, ", pages, one row"));
            CHECK(has_word(test.right, ", pages, rows"));
            // A kernel that only one sequence uses is not judged by it.
            CHECK(has_word(tested(*backend, name, test.right).right, ", cache f16, rows"));
        }
    }
    if (!hip_double()) RL_SKIP("HIP's double is not what runs here");
    const Setting setting(kBroken, "pages");
    const auto backend = hip_double();
    CHECK(all_wrong(tested(*backend, "llama3")) == "");
    const SelfTest test = tested(*backend, "llama3", {}, paged_options());
    CHECK(test.lost);
    CHECK(all_wrong(test).find(", cache f16, pages") != std::string::npos);
}

TEST_CASE("kernel check: a device whose core kernels are wrong is not used") {
    if (!hip_double()) RL_SKIP("HIP's double is not what runs here");
    const Setting setting(kBroken, "attention");
    const auto backend = hip_double();
    const SelfTest test = tested(*backend, "llama3");
    REQUIRE(test.lost);
    CHECK(test.lost->message == "gfx test double computes attention wrongly; the device cpu runs it");
}

TEST_CASE("kernel check: verdicts are remembered, said, and checked again when asked") {
    if (!hip_double()) RL_SKIP("HIP's double is not what runs here");
    const TemporaryFolder folder;
    const std::string cache = folder.path.string();
    const Outcome whole = launch(run_launch(cache, "", {"--device", "hip", "-v"}));
    CHECK(whole.code == 0);
    CHECK(whole.err.find(" checked for the first time on hip, all right in ") != std::string::npos);
    // Known verdicts are not checked again, not even after an unnoticed change; --self-test does that.
    const Outcome known = launch(run_launch(cache, "gated", {"--device", "hip", "--later", "-v"}));
    CHECK(known.err.find("checked") == std::string::npos);
    const Outcome found = launch(run_launch(cache, "gated", {"--device", "hip"}));
    CHECK(found.code == 0);
    CHECK(found.out == whole.out);
    CHECK(found.err.find(
              "2 of hip's kernels compute wrongly with this driver and are put aside (gated F32 96 x 64, "
              "F32 96 x 64 +norm, one row, for one: with 1 row 64 of 64 results are wrong") !=
          std::string::npos);
    // One line for all of them; each by itself with -v and in --json.
    CHECK(lines_with(found.err, "wrong") == 1);
    const Outcome several = launch(run_launch(cache, "gated,rms_norm", {"--device", "hip", "--no-tune"}));
    CHECK(lines_with(several.err, "wrong") == 1);
    const Outcome curious = launch(run_launch(cache, "gated", {"--device", "hip", "-v"}));
    CHECK(lines_with(curious.err, "64 of 64 results are wrong") >= 2);
    const Outcome json = launch(run_launch(cache, "gated", {"--device", "hip", "--json"}));
    const Json put_aside = parse_json(json.out)["timings"]["kernels_put_aside"];
    REQUIRE(put_aside.size() >= 1);
    CHECK(put_aside[0] == "gated F32 96 x 64, F32 96 x 64 +norm, one row");
    const Outcome later = launch(run_launch(cache, "gated", {"--device", "hip", "--later"}));
    CHECK(later.out == whole.out);
    CHECK(later.err.find("put aside (gated F32 96 x 64, F32 96 x 64 +norm, one row, for one); --self-test "
                         "checks again") != std::string::npos);
    const Outcome refused = launch(run_launch(cache, "attention", {"--device", "hip"}));
    CHECK(refused.code == 3);
    CHECK(lines_with(refused.err, "wrong") == 1);
    CHECK(refused.err.find("computes attention wrongly; the device cpu runs it; --no-self-test runs it all "
                           "the same") != std::string::npos);
    // Verdicts of another program, or a damaged file, are as good as none.
    write_file(cache + "/redline/kernels.json", "{\"a\": [1, 2");
    CHECK(launch(run_launch(cache, "", {"--device", "hip", "--later", "-v"})).err.find("all right") !=
          std::string::npos);
}

TEST_CASE("verify: a size of steps whose results are wrong is named, and one that is right is advised") {
    if (!hip_double()) RL_SKIP("HIP's double is not what runs here");
    const auto verify = [](const std::string& broken, std::vector<std::string> more) {
        Launch what;
        what.arguments = {program(),  "verify", "-m", golden("models/llama3.gguf"),
                          "--device", "hip",    "-q", "--no-self-test"};
        what.arguments.insert(what.arguments.end(), more.begin(), more.end());
        what.environment = {"RL_HIP_DOUBLE_BROKEN=" + broken};
        return launch(what);
    };
    const Outcome right = verify("", {"--json"});
    CHECK(right.code == 0);
    const Json whole = parse_json(right.out)["devices"][0]["batches"];
    CHECK(whole["agrees"] == true);
    CHECK(whole["sizes"].size() == 2);
    CHECK(whole["left_out"].empty());
    const Outcome wrong = verify("tokens", {"--json"});
    CHECK(wrong.code == 1);
    const Json device = parse_json(wrong.out)["devices"][0], sizes = device["batches"]["sizes"];
    CHECK(device["agrees"] == false);
    REQUIRE(sizes.size() == 2);
    CHECK(sizes[0]["batch"] == 64);
    CHECK(sizes[0]["beside_reference"]["agrees"] == true);
    CHECK(sizes[1]["batch"] == 192);
    CHECK(sizes[1]["agrees"] == false);
    CHECK(sizes[1]["beside_reference"]["agrees"] == false);
    const Outcome text = verify("tokens", {});
    CHECK(has(text.out, "  by 192    DISAGREES"));
    CHECK(has(text.out,
              "hip: a prompt that is read in steps of 192 tokens gives other logits than in steps of 64; "
              "until a newer driver helps, --batch-size 64"));
}
