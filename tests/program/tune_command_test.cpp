// redline tune, and what other commands make of what it has kept.
#include "cli/commands/tune_whole.h"
#include "cli/report.h"
#include "host/tuned.h"
#include "json/json.h"
#include "support/fake_clock.h"
#include "support/models.h"
#include "support/program.h"

#include <algorithm>
#include <set>

using namespace redline;
using namespace redline::test;

namespace {

UsableDevice usable(const std::string& backend, const std::string& number, const std::string& address,
                    const std::string& driver = "1.0") {
    const std::string id = number.empty() ? backend : backend + ":" + number;
    return {{id, "card at " + address, true, "", {{"driver", driver}, {"PCI address", address}}},
            {backend, number, "the best GPU"}};
}

// Two cards, of which both backends drive the second.
std::vector<UsableDevice> two_cards() {
    return {usable("vulkan", "0", "0000:03:00.0"), usable("vulkan", "1", "0000:0a:00.0"),
            usable("hip", "0", "0000:0a:00.0")};
}

// A folder for what is kept between runs, while a test runs.
struct KeptHere {
    CacheFolder folder;
    std::string model = folder.path / "model.gguf", cache = folder.path / "redline";
    KeptHere() { write_file(model, "GGUF"); }
    Status keep(const DeviceListing& device, const ModelSpeed& speed) const {
        return keep_speed(model, device, speed, cache);
    }
    std::string faster(const DeviceChoice& usual, const FindDevices& find = two_cards) const {
        return faster_choice(model, usual, cache, find).backend;
    }
};

// Every reading of it is a second later than the one before; how many readings there were is counted.
class TickClock : public TuneClock {
public:
    double now() override { return double(readings++); }
    Result<double> time(const TimedStep&, const std::function<Status()>& step) override {
        RL_TRY(step());
        return 1.0;
    }

    int readings = 0;
};

}  // namespace

TEST_CASE("tune: bench names what was found, --no-tune runs the defaults, a damaged file is said once") {
    for (const auto& backend : gpu_backends()) {
        const std::string device = backend->device().on_cpu ? "vulkan:0" : "hip";
        if (!backend->device().on_cpu && backend->device().name.find("double") == std::string::npos) continue;
        INFO(device);
        const CacheFolder cache;
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 512));
        FakeClock clock;
        TuneOptions how;
        how.prompts = false;
        for (const TunedKernel& kernel : tuned(model, *backend, clock, how).kernels)
            must(keep_tuned(cache.path / "redline", *backend, {&kernel, 1}));
        const auto bench = [&](const std::vector<std::string>& more) {
            Launch what;
            what.arguments = {program(),
                              "bench",
                              "--device",
                              device,
                              "-m",
                              golden("models/llama3.gguf"),
                              "-p",
                              "0",
                              "-n",
                              "2",
                              "-r",
                              "1",
                              "--no-self-test"};
            what.arguments.insert(what.arguments.end(), more.begin(), more.end());
            what.environment = {"XDG_CACHE_HOME=" + cache.path.string()};
            return launch(what);
        };
        const Outcome with = bench({"-o", "json"});
        REQUIRE(with.code == 0);
        const Json named = parse_json(with.out)[0]["tuned_kernels"];
        CHECK(named.size() >= 1);
        CHECK(bench({}).out.find("tuned: " + named[0].get<std::string>()) != std::string::npos);
        CHECK(parse_json(bench({"-o", "json", "--no-tune"}).out)[0]["tuned_kernels"].empty());
        write_file(cache.path / "redline/tuning.json", "{");
        const Outcome damaged = bench({"-o", "json"});
        CHECK(damaged.code == 0);
        CHECK(parse_json(damaged.out)[0]["tuned_kernels"].empty());
        const size_t said = damaged.err.find("is damaged");
        CHECK(said != std::string::npos);
        CHECK(damaged.err.find("is damaged", said + 1) == std::string::npos);
    }
}

TEST_CASE(
    "quick tune: it comes before a GPU's first use of kernels, once, and says so; nothing stops a run") {
    for (const auto& backend : gpu_backends()) {
        const bool on_cpu = backend->device().on_cpu;
        const std::string device = on_cpu ? "vulkan:0" : "hip";
        if (!on_cpu && backend->device().name.find("double") == std::string::npos) continue;
        INFO(device);
        const CacheFolder cache;
        write_file(cache.path / "file", "");
        const auto ran = [&](const std::string& folder, const std::vector<std::string>& more,
                             const std::string& fail = "") {
            Launch what;
            what.arguments = {program(),  "run",
                              "--device", device,
                              "-m",       golden("models/llama3.gguf"),
                              "--raw",    "-p",
                              "a b",      "--temp",
                              "0",        "-n",
                              "2",        "--no-self-test",
                              "-v"};
            what.arguments.insert(what.arguments.end(), more.begin(), more.end());
            what.environment = {"XDG_CACHE_HOME=" + (cache.path / folder).string(), "REDLINE_QUICK_TUNE=1",
                                "RL_HIP_DOUBLE_FAIL=" + fail};
            Outcome outcome = launch(what);
            CHECK_MESSAGE(outcome.code == 0, outcome.err);
            return outcome;
        };
        const auto times = [](const Outcome& outcome) {
            return outcome.err.find(" timed on ") != std::string::npos;
        };
        // A driver that computes on the CPU is used only when asked for.
        CHECK(times(ran("plain", {})) == !on_cpu);
        if (on_cpu) continue;
        CHECK(!times(ran("none", {"--no-tune", "--quick-tune"})));
        const Outcome first = ran("asked", {"--quick-tune"});
        CHECK(times(first));
        CHECK(!times(ran("asked", {})));
        CHECK(std::filesystem::exists(cache.path / "asked/redline/tuning.json"));
        const Outcome unkept = ran("file", {"--quick-tune"});
        CHECK(unkept.err.find("could not be timed") != std::string::npos);
        CHECK(unkept.out == first.out);
        // A device that does not survive it is opened again, and not put to it a second time.
        const Outcome lost = ran("lost", {}, "hipStreamSynchronize 3 719");
        CHECK(lost.err.find("could not be timed") != std::string::npos);
        CHECK(lost.out == first.out);
        CHECK(!times(ran("lost", {})));
    }
}

TEST_CASE("tune: the command measures, keeps what it finds, and refuses what it cannot do") {
    for (const auto& backend : gpu_backends()) {
        const std::string device = backend->device().on_cpu ? "vulkan:0" : "hip";
        if (!backend->device().on_cpu && backend->device().name.find("double") == std::string::npos) continue;
        INFO(device);
        const CacheFolder cache;
        Launch what;
        what.arguments = {program(),   "tune", "--device",     device,  "-m", golden("models/llama3.gguf"),
                          "--seconds", "1",    "--no-prompts", "--json"};
        what.environment = {"XDG_CACHE_HOME=" + cache.path.string()};
        const Outcome ran = launch(what);
        REQUIRE_MESSAGE(ran.code == 0, ran.err);
        const Json report = parse_json(ran.out);
        REQUIRE(report["devices"].size() == 1);
        const Json& kernels = report["devices"][0]["kernels"];
        REQUIRE(kernels.size() >= 1);
        CHECK(kernels[0]["tried"] >= 1);
        CHECK(kernels[0]["default_us"] > 0.0);
        CHECK(std::filesystem::exists(cache.path / "redline/tuning.json"));
    }
    CHECK(redline_({"tune", "--help"}).code == 0);
    check_refused({"tune", "--seconds", "soon"}, 2, {"--seconds"});
    check_refused({"tune", "--device", "cpu"}, 2, {"cpu"});
    check_refused({"tune", "--frobnicate"}, 2, {"--frobnicate"});
    check_refused({"tune", "--device", "abacus", "-q"}, 3, {"abacus"});
    check_refused({"tune", "-m", file("nowhere.gguf"), "--device", "vulkan", "-q"}, 1, {"nowhere.gguf"});
}

TEST_CASE("tune: of classes of rows that whole steps are slower with the variants are given up") {
    for (const auto& backend : gpu_backends()) {
        Tuning tuning;
        Variants all;
        for (const RowClass rows : kRowClassList) {
            TunedKernel kernel;
            kernel.key = "a kernel";
            kernel.rows = rows;
            kernel.default_seconds = 2.0;
            kernel.seconds = 1.0;
            kernel.variant = {{"threads", 64}};
            all[{kernel.key, rows}] = kernel.variant;
            tuning.kernels.push_back(kernel);
        }
        tuning.kernels[size_t(RowClass::many)].variant = {};  // its default was the fastest
        all.erase({"a kernel", RowClass::many});
        backend->use(all);
        cli::WholeGains gains;
        gains.of(RowClass::one) = 0.997;  // as fast, as far as can be seen
        gains.of(RowClass::few) = gains.of(RowClass::many) = 0.98;
        CHECK(cli::give_up_slower(gains, tuning, *backend) == std::vector<RowClass>{RowClass::few});
        all.erase({"a kernel", RowClass::few});
        CHECK(backend->variants() == all);
        for (const TunedKernel& kernel : tuning.kernels)
            CHECK(kernel.variant.empty() == (kernel.rows == RowClass::few || kernel.rows == RowClass::many));
        CHECK(tuning.kernels[size_t(RowClass::few)].gain() == 0.0);
        backend->use({});
    }
}

TEST_CASE("tune: whole steps of every class of rows are measured, and the backend keeps its variants") {
    const auto backends = gpu_backends();
    if (backends.empty()) RL_SKIP("no backend of this run is tuned");
    Backend& backend = *backends.back();  // one is enough: they take a while on a CPU
    const Model model = must(Model::load(golden("models/llama3.gguf"), backend, {2048, {}}));
    const Variants tuned = {{{"a kernel", RowClass::one}, {{"threads", 64}}}};
    backend.use(tuned);
    SessionOptions settings;
    settings.context = cli::whole_context(256);
    settings.batch = 256;
    CHECK(settings.context >= 512);
    const std::vector<Token> tokens(settings.context, 5);
    TickClock clock;
    const cli::WholeGains gains =
        must(cli::whole_gains(model, backend, settings, tokens, 0.0, clock, nullptr));
    for (const RowClass rows : kRowClassList) CHECK(gains.of(rows) == 1.0);
    // Two for each class of each run: once before the turns both sessions read all and, since the prompt
    // takes a whole second here, the long prompt once more; then three turns of both, and two looks at the
    // time.
    CHECK(clock.readings == 2 * (10 + 8) + 1 + 3 * 2 * 8 + 1);
    CHECK(backend.variants() == tuned);
    std::atomic<bool> stop = true;
    CHECK(!cli::whole_gains(model, backend, settings, tokens, 0.0, clock, &stop));
    backend.use({});
}

TEST_CASE("device: of a card's backends the one that was measured to be faster is taken by default") {
    const KeptHere kept;
    const std::vector<UsableDevice> all = two_cards();
    const DeviceListing& vulkan = all[1].listing;
    const DeviceListing& hip = all[2].listing;
    const DeviceChoice usual = all[1].choice;
    CHECK(kept.faster(usual) == "vulkan");
    must(kept.keep(hip, {4000.0, 130.0}));
    CHECK(kept.faster(usual) == "vulkan");  // as long as only one is known
    must(kept.keep(vulkan, {4000.0, 100.0}));
    const DeviceChoice taken = faster_choice(kept.model, usual, kept.cache, two_cards);
    CHECK(taken.backend == "hip");
    CHECK(taken.device == "0");
    CHECK(taken.why ==
          "measured with this model: 130 tok/s and prompts of 4000, vulkan has 100 tok/s and "
          "prompts of 4000");
    // The time of a prompt and an answer together decides.
    must(kept.keep(hip, {400.0, 130.0}));
    CHECK(kept.faster(usual) == "vulkan");
    CHECK(kept.faster(all[2].choice) == "vulkan");
    must(kept.keep(hip, {4000.0, 130.0}));
    CHECK(kept.faster(usual) == "hip");
    // Another card is no other way to this one, and the CPU is not compared.
    CHECK(kept.faster(all[0].choice) == "vulkan");
    CHECK(faster_choice(kept.model, all[0].choice, kept.cache, two_cards).device == "0");
    const auto none = []() -> std::vector<UsableDevice> {
        throw std::logic_error("devices were looked for");
    };
    CHECK(kept.faster({"cpu", "", "there is no GPU"}, none) == "cpu");
}

TEST_CASE("device: a measured speed holds for its model, driver and card, and a damaged file for nothing") {
    const KeptHere kept;
    const std::vector<UsableDevice> all = two_cards();
    const DeviceChoice usual = all[1].choice;
    must(kept.keep(all[1].listing, {4000.0, 100.0}));
    must(kept.keep(all[2].listing, {4000.0, 130.0}));
    CHECK(kept.faster(usual) == "hip");
    const std::string other = kept.folder.path / "other.gguf";
    write_file(other, "GGUF");
    CHECK(faster_choice(other, usual, kept.cache, two_cards).backend == "vulkan");
    write_file(kept.model, "GGUF, longer");
    CHECK(kept.faster(usual) == "vulkan");
    write_file(kept.model, "GGUF");
    CHECK(kept.faster(usual) == "hip");
    CHECK(kept.faster(usual, [] {
        std::vector<UsableDevice> newer = two_cards();
        newer[2] = usable("hip", "0", "0000:0a:00.0", "1.1");
        return newer;
    }) == "vulkan");
    CHECK(kept.faster(usual, [] {
        std::vector<UsableDevice> alone = two_cards();
        alone.pop_back();
        return alone;
    }) == "vulkan");
    write_file(kept.folder.path / "redline/speeds.json", "{");
    CHECK(kept.faster(usual) == "vulkan");
}

TEST_CASE("tune: without a device's name all backends of the card are measured that is taken by default") {
    const auto names = [](const DeviceChoice& usual) {
        std::string text;
        for (const DeviceChoice& way : ways_to_card(usual, two_cards))
            text += way.backend + ":" + way.device + " ";
        return text;
    };
    const std::vector<UsableDevice> all = two_cards();
    CHECK(names(all[0].choice) == "vulkan:0 ");
    CHECK(names(all[1].choice) == "vulkan:1 hip:0 ");
    CHECK(names(all[2].choice) == "hip:0 vulkan:1 ");
    CHECK(names({"vulkan", "", "the best GPU"}) == "vulkan: ");
}

TEST_CASE("tune --list: choices stand by family, with why a default is one and what was measured here") {
    for (const auto& backend : gpu_backends()) {
        const bool on_cpu = backend->device().on_cpu;
        const std::string device = on_cpu ? "vulkan:0" : "hip";
        if (!on_cpu && backend->device().name.find("double") == std::string::npos) continue;
        INFO(device);
        const CacheFolder cache;
        const Model model = must(Model::inspect(demo(), 512));
        const std::vector<KernelChoices> all = must(kernel_choices(model, *backend, tune_options(), true));
        const auto some = std::ranges::find_if(all, [](const KernelChoices& kernel) {
            return kernel.rows == RowClass::some && kernel.family == "products" &&
                   std::ranges::any_of(kernel.choices, &Choice::crossover);
        });
        // Without matrix units and int8 dot products no step of 9 to 128 rows can go two ways.
        if (some == all.end()) continue;
        const Choice& moved = *std::ranges::find_if(some->choices, &Choice::crossover);
        TunedKernel found;
        found.key = some->key;
        found.rows = some->rows;
        found.default_seconds = 4e-6;
        found.seconds = 3e-6;
        found.variant = {{moved.name, moved.values.back()}};
        must(keep_tuned(cache.path / "redline", *backend, {&found, 1}));
        const auto list = [&](const std::vector<std::string>& more) {
            Launch what;
            what.arguments = {program(), "tune", "--list", "--device", device, "-m",
                              demo(),    "-c",   "512",    "-b",       "160"};
            what.arguments.insert(what.arguments.end(), more.begin(), more.end());
            what.environment = {"XDG_CACHE_HOME=" + cache.path.string()};
            return launch(what);
        };
        const Outcome json = list({"--json"});
        REQUIRE(json.code == 0);
        size_t crossovers = 0, measured = 0;
        std::set<std::string> families;
        const Json listed = parse_json(json.out)["devices"][0]["kernels"];
        for (const Json& kernel : listed) {
            families.insert(kernel["family"].get<std::string>());
            for (const Json& choice : kernel["choices"]) {
                INFO(choice["name"].get<std::string>());
                crossovers += choice["crossover"].get<bool>();
                CHECK(choice["why"]["devices"] != "");
                CHECK(choice["why"]["source"] != "");
                CHECK(choice["why"]["date"] != "");
            }
            if (kernel["measured"].is_null()) continue;
            ++measured;
            CHECK(kernel["measured"]["us"].get<double>() == doctest::Approx(3.0));
            CHECK(kernel["measured"]["default_us"].get<double>() == doctest::Approx(4.0));
            for (const Json& choice : kernel["choices"])
                if (choice["name"] == moved.name) CHECK(choice["used"] == moved.values.back());
        }
        CHECK(crossovers > 0);
        CHECK(measured == 1);
        CHECK(families.contains("products"));
        CHECK(families.contains("attention"));
        const std::string text = list({}).out;
        CHECK(text.find("4.00 to 3.00 us") != std::string::npos);
        CHECK(text.find("not yet") != std::string::npos);
        CHECK(text.find(fmt::format("    default {}: ", moved.usual.value)) != std::string::npos);
    }
}
