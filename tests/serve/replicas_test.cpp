// Replicas of a model behind one address: the choice between them, what a lost one costs, and what they
// share.
#include "serve/pool/replica_set.h"
#include "served.h"
#include "serving.h"

#include <array>
#include <set>

using namespace redline;
using namespace redline::test;
namespace server = redline::serve;

namespace {

// Keeps requests until the test ends them.
class HeldAnswers final : public server::Answering {
public:
    server::Submission submit(server::AnswerRequest request) override {
        if (refusal.refusal != server::Refusal::none) return refusal;
        server::Submission taken;
        taken.ticket = request.ticket;
        requests.push_back(std::move(request));
        return taken;
    }
    server::Health health() const override { return state; }
    server::Statistics statistics() const override {
        server::Statistics all;
        all.slots.resize(2);
        all.pages = 8;
        all.generated_tokens = 5;
        all.first_token.add(0.003);
        return all;
    }
    void end(size_t request, const server::AnswerEnd& end) {
        const server::AnswerSink sink = requests[request].sink;
        sink.end(end);
    }
    void lose() {
        state = server::Health::device_lost;
        const size_t had = requests.size();
        for (size_t i = 0; i < had; ++i)
            end(i,
                {.reason = StopReason::broken, .problem = error("the device was lost"), .device_lost = true});
        requests.clear();
    }

    std::vector<server::AnswerRequest> requests;
    server::Submission refusal;
    server::Health state = server::Health::serving;
};

struct ThreeReplicas {
    std::array<HeldAnswers, 3> each;
    std::array<std::shared_ptr<server::HeldBlocks>, 3> held;
    std::optional<server::Replicas> all;

    ThreeReplicas() {
        std::vector<server::Replicas::Member> members;
        for (size_t i = 0; i < each.size(); ++i) {
            held[i] = std::make_shared<server::HeldBlocks>();
            members.push_back({&each[i], held[i], fmt::format("device {}", i)});
        }
        all.emplace(std::move(members));
    }
    // The number of the replica that got it; 3: none.
    size_t ask(const std::vector<Token>& prompt) {
        std::array<size_t, 3> before{};
        for (size_t i = 0; i < 3; ++i) before[i] = each[i].requests.size();
        server::AnswerRequest request;
        request.prompt = prompt;
        request.sink.piece = [this](const server::AnswerPiece&) { ++pieces; };
        request.sink.end = [this](server::AnswerEnd end) { ends.push_back(std::move(end)); };
        last = all->submit(std::move(request));
        for (size_t i = 0; i < 3; ++i)
            if (each[i].requests.size() > before[i]) return i;
        return 3;
    }

    server::Submission last;
    std::vector<server::AnswerEnd> ends;
    size_t pieces = 0;
};

std::vector<Token> tokens_from(Token first, size_t count) {
    std::vector<Token> tokens(count);
    for (size_t i = 0; i < count; ++i) tokens[i] = first + Token(i);
    return tokens;
}

}  // namespace

TEST_CASE("held blocks: equal beginnings count once for each holder, and changes are told in their order") {
    std::vector<server::HeldBlocks::Change> told;
    server::HeldBlocks held([&](std::vector<server::HeldBlocks::Change> changes) {
        for (auto& each : changes) told.push_back(std::move(each));
    });
    using Kind = server::HeldBlocks::Change::Kind;
    const std::vector<Token> text = tokens_from(1, 40), longer = tokens_from(1, 70);
    const std::vector<uint64_t> blocks = server::HeldBlocks::hashes(longer);
    REQUIRE(blocks.size() == 4);
    for (const uint64_t block : blocks) CHECK(block < (uint64_t(1) << 63));
    CHECK(server::HeldBlocks::hashes(tokens_from(2, 70))[1] != blocks[1]);
    held.hold(text);
    held.hold(longer);
    CHECK(held.longest(blocks) == 4);
    held.flush();
    REQUIRE(told.size() == 2);
    CHECK(told[0].kind == Kind::stored);
    CHECK(told[0].blocks == std::vector<uint64_t>(blocks.begin(), blocks.begin() + 2));
    CHECK_FALSE(told[0].parent);
    CHECK(told[0].tokens == tokens_from(1, 32));
    CHECK(told[1].blocks == std::vector<uint64_t>(blocks.begin() + 2, blocks.end()));
    CHECK(told[1].parent == blocks[1]);
    CHECK(told[1].tokens == tokens_from(33, 32));
    told.clear();
    held.release(longer);
    held.flush();
    REQUIRE(told.size() == 1);
    CHECK(told[0].kind == Kind::removed);
    CHECK(told[0].blocks == std::vector<uint64_t>(blocks.begin() + 2, blocks.end()));
    CHECK(held.longest(blocks) == 2);
    held.expect(blocks);
    CHECK(held.longest(blocks) == 4);
    held.clear();
    CHECK(held.longest(blocks) == 4);
    held.forget(blocks);
    CHECK(held.longest(blocks) == 0);
    held.release(text);  // which clear() has forgotten
    held.flush();
    CHECK(told.back().kind == Kind::cleared);
}

TEST_CASE("replicas: a prompt goes where its beginning is known, and others to the least loaded") {
    ThreeReplicas three;
    const std::vector<Token> text = tokens_from(1, 1000);
    three.held[1]->hold(text);
    CHECK(three.ask(text) == 1);
    CHECK(three.ask(text) == 1);
    // Two requests there outweigh a beginning of 500 tokens, and a third one that of 600.
    CHECK(three.ask(tokens_from(1, 500)) != 1);
    CHECK(three.ask(tokens_from(5000, 100)) != 1);
    ThreeReplicas empty;
    CHECK(empty.ask(tokens_from(1, 20)) == 0);
    CHECK(empty.ask(tokens_from(100, 20)) == 1);
    CHECK(empty.ask(tokens_from(200, 20)) == 2);
    CHECK(empty.ask(tokens_from(300, 20)) == 0);
    // A prompt that is on its way counts as known.
    ThreeReplicas on_its_way;
    CHECK(on_its_way.ask(text) == 0);
    CHECK(on_its_way.ask(text) == 0);
    on_its_way.each[0].end(0, {});
    on_its_way.each[0].end(1, {});
    CHECK(on_its_way.ends.size() == 2);
    CHECK(on_its_way.ask(text) == 1);
}

TEST_CASE("replicas: one that is lost gets nothing, and what it had not begun goes to others") {
    ThreeReplicas three;
    CHECK(three.ask(tokens_from(1, 20)) == 0);
    CHECK(three.ask(tokens_from(100, 20)) == 1);
    three.each[1].requests[0].sink.piece({"a", {1}, {}});
    three.each[0].lose();
    CHECK(three.ends.empty());
    CHECK(three.each[2].requests.size() == 1);
    three.each[1].lose();
    REQUIRE(three.ends.size() == 1);
    CHECK(three.ends[0].device_lost);
    CHECK(three.all->health() == server::Health::serving);
    CHECK(three.ask(tokens_from(200, 20)) == 2);
    three.each[2].lose();
    CHECK(three.ends.size() == 3);
    CHECK(three.all->health() == server::Health::device_lost);
    CHECK(three.ask(tokens_from(300, 20)) == 3);
    CHECK(three.last.refusal == server::Refusal::device_lost);
    CHECK(three.last.retry_seconds > 0);
    three.each[0].state = server::Health::serving;
    CHECK(three.ask(tokens_from(300, 20)) == 0);
    // One that was cancelled meanwhile is not asked again.
    three.each[1].state = server::Health::serving;
    three.last.ticket->cancel();
    three.each[0].lose();
    CHECK(three.each[1].requests.empty());
    CHECK(three.ends.size() == 4);
}

TEST_CASE("replicas: a full one passes requests on, and what is wrong with a request is said once") {
    ThreeReplicas three;
    three.each[0].refusal.refusal = three.each[1].refusal.refusal = server::Refusal::queue_full;
    CHECK(three.ask(tokens_from(1, 20)) == 2);
    three.each[2].refusal.refusal = server::Refusal::queue_full;
    CHECK(three.ask(tokens_from(1, 20)) == 3);
    CHECK(three.last.refusal == server::Refusal::queue_full);
    for (HeldAnswers& each : three.each) each.refusal.refusal = server::Refusal::prompt_too_long;
    CHECK(three.ask(tokens_from(1, 20)) == 3);
    CHECK(three.last.refusal == server::Refusal::prompt_too_long);
    for (HeldAnswers& each : three.each) each.state = server::Health::draining;
    CHECK(three.ask(tokens_from(1, 20)) == 3);
    CHECK(three.last.refusal == server::Refusal::draining);
    const server::Statistics sum = three.all->statistics();
    CHECK(sum.slots.size() == 6);
    CHECK(sum.pages == 24);
    CHECK(sum.generated_tokens == 15);
    CHECK(sum.first_token.count() == 3);
    CHECK(three.all->replicas()[2].device == "device 2");
}

TEST_CASE("replicas: on the CPU they have the same weights, answer alike, and remember each for itself") {
    const std::string path = temporary("replicas.gguf");
    ChainModel().build().save(path);
    const HostOptions host = serving_host(path);
    LoadedModel first = must(inspect_model(host));
    std::mutex mutex;
    std::array<size_t, 2> stored{};
    std::unique_ptr<server::ReplicaSet> set = must(server::ReplicaSet::open(
        first, {{"cpu", "cpu"}, host, serve_options(2), [&](const auto& changes, uint32_t replica) {
                    const std::lock_guard lock(mutex);
                    for (const auto& each : changes)
                        if (each.kind == server::HeldBlocks::Change::Kind::stored)
                            stored[replica] += each.blocks.size();
                }}));
    std::filesystem::remove(path);
    const auto texts = [&](uint32_t seed) {
        std::vector<std::unique_ptr<Asked>> all;
        for (int i = 0; i < 6; ++i) {
            server::AnswerRequest request = request_of(made_up_tokens(*first.model, 20, seed), 12);
            request.ignore_eos = true;
            Asked& asked = *all.emplace_back(std::make_unique<Asked>());
            request.sink.piece = [&asked](const server::AnswerPiece& piece) { asked.text += piece.text; };
            request.sink.end = [&asked](server::AnswerEnd end) { asked.ending.set_value(std::move(end)); };
            REQUIRE(set->answers().submit(std::move(request)).ticket);
        }
        std::set<std::string> different;
        for (const auto& each : all) {
            CHECK(each->end().reason == StopReason::max_tokens);
            different.insert(each->text);
        }
        return different.size();
    };
    CHECK(texts(1) == 1);
    CHECK(texts(2) == 1);
    const std::vector<server::ReplicaState> states = set->answers().replicas();
    REQUIRE(states.size() == 2);
    for (const server::ReplicaState& state : states) {
        CHECK(state.statistics.ended_length > 0);
        CHECK(mentions(state.device, "cpu ("));
    }
    CHECK(states[0].statistics.ended_length + states[1].statistics.ended_length == 12);
    set->drain(std::chrono::milliseconds(1000));
    CHECK(set->answers().health() != server::Health::serving);
    const std::lock_guard lock(mutex);
    CHECK(stored[0] > 0);
    CHECK(stored[1] > 0);
}

TEST_CASE("replicas: a model's twin takes its weights on another CPU, and reads them elsewhere") {
    const std::string path = temporary("twin.gguf");
    ChainModel().build().save(path);
    const HostOptions host = serving_host(path);
    LoadedModel loaded = must(load_model(host));
    std::filesystem::remove(path);
    const std::unique_ptr<Backend> other = must(open_backend("cpu", {.threads = 1}));
    const uint64_t before = other->allocated();
    Model twin = loaded.model->twin();
    CHECK(twin.place(*other, {}).ok());
    CHECK(&twin.weights() == &loaded.model->weights());
    CHECK(other->allocated() == before);
    CHECK(&twin.backend() == other.get());
    CHECK(&twin.turns() != &loaded.model->turns());
    // The weights stay as long as one of them has them.
    loaded.model->unload();
    CHECK(other->allocated() == before);
}

TEST_CASE("replicas: devices are those of the list, one for all, or as many as there are") {
    using Names = std::vector<std::string>;
    CHECK(must(server::replica_devices("cpu", 3)) == Names{"cpu", "cpu", "cpu"});
    CHECK(must(server::replica_devices("Vulkan0,cpu", 2)) == Names{"vulkan:0", "cpu"});
    for (const char* wrong : {"hip:0,hip:1", "cpu,,cpu", "1,2,3"}) {
        const Result<Names> refused = server::replica_devices(wrong, 3);
        REQUIRE_FALSE(refused.ok());
        CHECK_MESSAGE(mentions(refused.error().message, wrong[0] == '1' ? "a number alone" : wrong),
                      refused.error().message);
    }
}
