// Plans divided over ranks: each computes a part of every layer.
#include "places/ranks.h"
#include "devices/device_choice.h"
#include "engine/session.h"
#include "support/backends.h"
#include "support/cuts.h"
#include "support/fails_in_turn.h"
#include "support/models.h"

using namespace redline;
using namespace redline::test;

namespace {

constexpr size_t kPrompt = 30;  // tokens that are read in chunks of kBatch; the others one by one
constexpr size_t kMostRanks = 3;
// Models that cannot be divided, and the op that their refusal names.
const std::map<std::string, std::string> kRefused = {
    {"deepseek4", "entry_attention"},
    {"deepseek4-dense", "block_pool"},
    {"minimax-m2", "rms_norm"},
    {"olmo2", "rms_norm"},
    {"olmoe", "rms_norm"},
    {"qwen4exp", "block_mean"},
    {"qwen4exp-dense", "block_mean"},
};

struct Kind {
    std::string name;
    Backends devices;
};

// Three devices of each kind that is here, or the same one, opened three times; of several kinds also one of
// each.
std::vector<Kind>& kinds() {
    static std::vector<Kind> all = [] {
        std::vector<Kind> made;
        Kind mixed{"several kinds", {}};
        for (const std::string& name : backend_names()) {
            Kind kind{name, {}}, others{name + ", each another", {}};
            for (size_t i = 0; i < kMostRanks; ++i) {
                if (auto one = open_wanted(name, {.threads = 1})) kind.devices.push_back(std::move(one));
                if (name == "cpu" || !wanted(name)) continue;
                if (auto one = open_backend(name, {.device = std::to_string(i)}))
                    others.devices.push_back(std::move(one.value()));
            }
            for (Kind* one : {&kind, &others})
                if (one->devices.size() == kMostRanks) made.push_back(std::move(*one));
            if (auto one = open_wanted(name, {.threads = 1})) mixed.devices.push_back(std::move(one));
        }
        while (mixed.devices.size() > 1 && mixed.devices.size() < kMostRanks)
            mixed.devices.push_back(open_wanted("cpu", {.threads = 2}));
        if (mixed.devices.size() >= kMostRanks) made.push_back(std::move(mixed));
        at_end([] { kinds().clear(); });
        return made;
    }();
    return all;
}

// By how much logits may differ from those of transformers, whichever device computes most.
double bound_on(const Kind& kind, const std::string& name) {
    double most = 0.0;
    for (const auto& device : kind.devices) most = std::max(most, golden_bound(*device, name));
    return most;
}

std::vector<RankPlace> ranks_of(const Kind& kind, const std::vector<double>& shares) {
    std::vector<RankPlace> ranks;
    for (size_t i = 0; i < shares.size(); ++i) ranks.push_back({kind.devices[i].get(), shares[i]});
    return ranks;
}

// Models of each way in which layers are divided.
constexpr const char* kModels[] = {"llama3", "gemma3", "qwen3moe", "qwen35", "lfm2", "deepseek2-v3"};

SessionOptions options_of(std::vector<RankPlace> ranks) {
    SessionOptions options{kSizing.context, kBatch, kBatch, kSizing.types};
    options.ranks = std::move(ranks);
    return options;
}

std::vector<float> session_logits(Session session, const std::vector<Token>& tokens) {
    std::vector<float> out;
    const auto sink = [&](size_t, std::span<const float> rows) {
        out.insert(out.end(), rows.begin(), rows.end());
    };
    must(session.feed_all(std::span(tokens).first(kPrompt), sink));
    for (size_t at = kPrompt; at < tokens.size(); ++at)
        must(session.feed_all(std::span(tokens).subspan(at, 1), sink));
    return out;
}

}  // namespace

TEST_CASE("ranks: every model that can be divided gives its logits over two and three ranks") {
    const std::vector<Token> tokens = golden_tokens();
    std::map<std::string, std::string> refused;
    const std::vector<std::vector<double>> all_shares = {{1, 1}, {3, 1}, {1, 1, 1}};
    size_t number = 0;
    for (const Kind& kind : kinds())
        for (const std::string& name : tiny_models(*kind.devices.back())) {
            if (!runs_on(*kind.devices[0], name)) continue;
            const Matrix want = read_npy(golden("models/" + name + ".npy"));
            const Model model = tiny(name);
            // GPUs that compute on the CPU take minutes for all: there each model has one of them, in turn.
            const size_t turn = number++ % all_shares.size();
            const bool each = kind.name == "cpu";
            for (const std::vector<double>& shares :
                 std::span(all_shares).subspan(each ? 0 : turn, each ? 3 : 1)) {
                INFO(name, " of ", kind.name, " in shares of ", fmt::format("{}", fmt::join(shares, ", ")));
                Result<Session> session = Session::create(model, options_of(ranks_of(kind, shares)));
                if (!session) {
                    refused[name] = session.error().message;
                    break;
                }
                const std::vector<float> got = session_logits(std::move(session.value()), tokens);
                CHECK(relative_error(got, want.values) < bound_on(kind, name));
            }
        }
    for (const auto& [name, why] : refused) {
        CAPTURE(why);
        REQUIRE(kRefused.contains(name));
        CHECK(why.find(kRefused.at(name) + " cannot be divided over devices: ") != std::string::npos);
    }
}

TEST_CASE("ranks: one rank is the whole model, bit for bit") {
    const std::vector<Token> tokens = golden_tokens();
    for (const Kind& kind : kinds())
        for (const std::string name : kModels) {
            INFO(name, " of ", kind.name);
            const Model whole = must(
                Model::load(golden("models/" + name + ".gguf"), *kind.devices[0], {kSizing.context, {}}));
            const Model model = tiny(name);
            CHECK(session_logits(must(Session::create(model, options_of(ranks_of(kind, {1})))), tokens) ==
                  session_logits(must(Session::create(whole, options_of({}))), tokens));
        }
}

TEST_CASE("ranks: the same bits each time, and after a rewind and from a file those of a new session") {
    const std::vector<Token> tokens = golden_tokens();
    const std::string path = temporary("ranks.cache");
    for (const Kind& kind : kinds())
        for (const std::string name : kModels) {
            INFO(name, " of ", kind.name);
            const Model model = tiny(name);
            const auto open = [&](std::vector<double> shares) {
                return must(Session::create(model, options_of(ranks_of(kind, shares))));
            };
            const std::vector<float> first = session_logits(open({1, 1}), tokens);
            CHECK(session_logits(open({1, 1}), tokens) == first);
            Session whole = open({1, 1}), saved = open({1, 1});
            must(whole.feed(tokens));
            must(saved.feed(std::span(tokens).first(kPrompt)));
            must(saved.save(path));
            // The caches of three ranks take the rows of two.
            for (const std::vector<double>& shares : {std::vector<double>{1, 1}, {1, 1, 1}}) {
                Session restored = open(shares);
                must(restored.restore(path));
                must(restored.feed(std::span(tokens).subspan(kPrompt)));
                CHECK(relative_error(restored.logits(), whole.logits()) < 1e-2);
                if (shares.size() != 2) continue;
                must(saved.feed(std::span(tokens).subspan(kPrompt)));
                // Devices of several kinds do not agree on the bits of what each of them has whole.
                CHECK(relative_error(restored.logits(), saved.logits()) < 1e-2);
                if (kind.name != "several kinds")
                    CHECK(std::ranges::equal(restored.logits(), saved.logits()));
            }
        }
    std::filesystem::remove(path);
}

TEST_CASE("ranks: the best outputs of all ranks are the best of the model") {
    const std::vector<Token> tokens = golden_tokens();
    for (const Kind& kind : kinds()) {
        INFO("of ", kind.name);
        const Model model = tiny("qwen3");
        Ranks ranks = must(Ranks::load(model, kSizing, ranks_of(kind, {1, 1, 1})));
        const auto caches = must(ranks.make_caches());
        const auto many = must(ranks.record(kBatch, 3, Record::replay, true));
        const SequenceStep step({tokens.data(), kBatch}, 0, 3);
        StepParams params = step;
        std::atomic<bool> cancel{true};
        params.cancel = &cancel;
        CHECK(many->run(params).error().message == "interrupted");
        cancel = false;
        must(many->run(params));
        const std::vector<float> logits = copy(many->output());
        const size_t vocab = logits.size() / 3;
        size_t heads = 0;
        must(many->run_traced(params, [&](const TraceStep& s) { heads += s.step->op.index() == 0; }));
        CHECK(heads == 3);  // each rank looks tokens up
        CHECK(std::ranges::equal(many->output(), logits));
        if (many->most_best() == 0) continue;
        params.best = std::min(5u, many->most_best());
        params.best_among = uint32_t(vocab) - 1;
        must(many->run(params));
        CHECK(many->output().empty());
        REQUIRE(many->best().size() == 3 * params.best);
        for (size_t row = 0; row < 3; ++row) {
            std::vector<Scored> all;
            for (uint32_t id = 0; id < params.best_among; ++id)
                all.push_back({logits[row * vocab + id], int32_t(id)});
            std::ranges::sort(all, comes_first);
            for (uint32_t i = 0; i < params.best; ++i)
                CHECK(many->best()[row * params.best + i].id == all[i].id);
        }
    }
}

TEST_CASE("ranks: each has its part of the weights, and all of them a little more than the model") {
    for (const std::string name : kModels) {
        CAPTURE(name);
        const Model model = tiny(name);
        const auto bytes = [&](std::vector<double> shares) {
            uint64_t sum = 0;
            const auto needs = must(memory_needs(model, options_of(ranks_of(kinds()[0], shares))));
            for (const MemoryNeed& need : needs) sum += need.weights;
            return sum;
        };
        const uint64_t whole = bytes({1}), all = bytes({1, 1});
        CHECK(all > whole);
        CHECK(all < 2 * whole);
        const RankSharing sharing = must(Ranks::sharing(model, kSizing, ranks_of(kinds()[0], {1, 1}), 1));
        CHECK(sharing.sums >= model.config().layers);
        CHECK(sharing.sum_bytes >= sharing.sums * uint64_t(4));
        for (const RankSharing::Rank& rank : sharing.ranks) CHECK(rank.read_bytes > 0);
    }
}

TEST_CASE("ranks: any call that fails on any of three devices is one error, and frees everything") {
    const std::vector<Token> tokens = golden_tokens();
    for (const Kind& kind : kinds()) {
        // Devices that are several are not linked here, and fail as one that is opened several times.
        if (kind.name.find(' ') != std::string::npos) continue;
        for (const std::string name : {"llama3", "qwen35"})
            for (size_t which = 0; which < kMostRanks; ++which) {
                INFO(name, " of ", kind.name, ", rank ", which);
                const Model model = tiny(name);
                const SessionOptions plain = options_of(ranks_of(kind, {1, 1, 1}));
                Calls calls;
                FailingDevice failing(*kind.devices[which], calls);
                SessionOptions options = plain;
                options.ranks[which].backend = &failing;
                fails_in_turn(model, plain, options, calls, *kind.devices[which], tokens, kBatch);
            }
    }
}

TEST_CASE("ranks: a call that fails within linked devices ends the step on all of them, and then all works") {
    const auto kind = std::ranges::find(kinds(), "hip, each another", &Kind::name);
    if (kind == kinds().end() || kind->devices[0]->device().name.find("double") == std::string::npos)
        RL_SKIP("HIP's double is not what runs here");
    const std::vector<Token> tokens = golden_tokens();
    const Model model = tiny("llama3");
    const SessionOptions options = options_of(ranks_of(*kind, {1, 1, 1}));
    REQUIRE(Ranks::may_link(options.ranks));
    const auto bytes = [&] {
        uint64_t sum = 0;
        for (const auto& device : kind->devices) sum += device->allocated();
        return sum;
    };
    Session lasting = must(Session::create(model, options));
    must(lasting.feed(tokens));
    const std::vector<float> want = copy(lasting.logits());
    const uint64_t before = bytes();
    size_t failures = 0;
    const auto read = [&](bool anew) -> Result<std::vector<float>> {
        if (!anew) {
            lasting.rewind(0);
            RL_TRY(lasting.feed(tokens));
            return copy(lasting.logits());
        }
        Session session = RL_TRY(Session::create(model, options));
        RL_TRY(session.feed(tokens));
        return copy(session.logits());
    };
    for (const std::string fault : {"hipMalloc 2", "hipHostMalloc 2", "hipMemcpyHtoDAsync 1",
                                    "hipMemcpyDtoHAsync 1", "hipModuleLaunchKernel 1", "hipGraphLaunch 1"})
        for (const bool anew : {true, false})
            for (const int call : {1, 2, 3, 5, 8, 13, 21, 34}) {
                const size_t space = fault.find(' ');
                const std::string what =
                    fmt::format("{} {}{}", fault.substr(0, space), call, fault.substr(space));
                CAPTURE(what);
                ::setenv("RL_HIP_DOUBLE_FAIL", what.c_str(), 1);
                const Result<std::vector<float>> got = read(anew);
                ::unsetenv("RL_HIP_DOUBLE_FAIL");
                CHECK(bytes() == before);
                // Where a link cannot be had the host adds.
                if (got.ok()) CHECK(relative_error(got.value(), want) < 1e-2);
                if (got.ok()) continue;
                ++failures;
                CHECK(got.error().message.find('\n') == std::string::npos);
                CHECK(must(read(anew)) == want);
            }
    CHECK(failures > 20);
}
