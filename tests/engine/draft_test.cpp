// Steps whose last tokens are drafts: what is taken back leaves no trace, whatever a model's layers keep.
#include "support/backends.h"
#include "support/models.h"
#include "support/share.h"

using namespace redline;
using namespace redline::test;

namespace {

// Without windows and states, with windows, with latents, with each kind of state.
constexpr const char* kModels[] = {"llama3",        "gemma3",    "gpt-oss",  "deepseek2-v3", "lfm2",
                                   "qwen35",        "qwen3next", "mamba2",   "nemotron-h",   "falcon-h1",
                                   "granitehybrid", "qwen4exp",  "deepseek4"};
constexpr uint32_t kDrafts = 8;
constexpr size_t kRead = 13;  // tokens before a round

EngineOptions options_of(uint32_t sequences) {
    EngineOptions options{64, 16, kDrafts + 1};
    options.cache = CacheType::f32;
    options.sequences = sequences;
    options.drafts = kDrafts;
    return options;
}

std::vector<float> alone(const Model& model, std::span<const Token> tokens) {
    Session session = must(Session::create(model, options_of(1)));
    must(session.feed(tokens));
    return copy(session.logits());
}

void for_models(const std::function<void(const Model&, double)>& test) {
    const Share share = share_of_cases();
    size_t number = 0;
    for (const auto& backend : session_test_backends())
        for (const std::string name : kModels) {
            if (!share.takes(number++) || !runs_on(*backend, name)) continue;
            INFO(name, " on ", backend->device().name);
            const Model model = tiny(*backend, name);
            EngineOptions bound = options_of(1);
            bound.outputs = 1;
            test(model, chunk_bound(model, bound, golden_tokens()));
        }
}

// Longer than the golden one.
std::vector<Token> text_of(size_t count) {
    std::vector<Token> text = golden_tokens();
    for (size_t i = 0; text.size() < count; ++i) text.push_back(Token((i * i * 7 + i * 13 + 5) % 250 + 1));
    return text;
}

// The tokens of a round: `right` of them as the text goes on, the others not.
std::vector<Token> round_of(std::span<const Token> text, size_t at, size_t count, size_t right, Token wrong) {
    std::vector<Token> tokens(text.begin() + ptrdiff_t(at), text.begin() + ptrdiff_t(at + count));
    for (size_t i = right; i < count; ++i) tokens[i] = (tokens[i] + wrong) % 256;
    return tokens;
}

}  // namespace

TEST_CASE("drafts: a round of any length is taken back to any of its tokens, as if these were never read") {
    for_models([](const Model& model, double bound) {
        const std::vector<Token> text = text_of(64);
        for (size_t count = 2; count <= kDrafts + 1; ++count)
            for (size_t right = 1; right < count; ++right) {
                CAPTURE(count);
                CAPTURE(right);
                std::vector<float> after[2];
                for (const Token wrong : {1, 2}) {
                    Session session = must(Session::create(model, options_of(1)));
                    REQUIRE(session.most_rows() >= count);
                    must(session.feed(std::span(text).first(kRead)));
                    must(session.feed_rows(round_of(text, kRead, count, right, wrong), 0));
                    CHECK(session.rewind(kRead + right) == kRead + right);
                    must(session.feed(std::span(text).subspan(kRead + right, 1)));
                    after[wrong - 1] = copy(session.logits());
                }
                // Experts take the rows that chose them together, and so round them.
                if (model.config().experts == 0) CHECK(after[0] == after[1]);
                CHECK(relative_error(after[0], after[1]) < bound);
                if (count % 4 == 1)
                    CHECK(relative_error(after[0], alone(model, std::span(text).first(kRead + right + 1))) <
                          bound);
            }
    });
}

TEST_CASE("drafts: at every position any number of rows is taken back") {
    for_models([](const Model& model, double bound) {
        const std::vector<Token> text = text_of(64);
        std::vector<std::vector<float>> plain;
        Session one_by_one = must(Session::create(model, options_of(1)));
        for (size_t i = 0; i < 56; ++i) {
            must(one_by_one.feed(std::span(text).subspan(i, 1)));
            plain.push_back(copy(one_by_one.logits()));
        }
        for (size_t taken = 1; taken <= kDrafts; ++taken) {
            CAPTURE(taken);
            Session session = must(Session::create(model, options_of(1)));
            must(session.feed(std::span(text).first(1)));
            size_t wrong = 0;
            while (session.position() < plain.size() - 1 - kDrafts) {
                const size_t at = size_t(session.position());
                must(session.feed_rows(round_of(text, at, 1 + taken, 1, 3), 0));
                session.choose_row(0);
                wrong += relative_error(session.logits(), plain[at]) < bound ? 0 : 1;
                if (session.rewind(at + 1) != at + 1) ++wrong;
            }
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("drafts: rounds follow each other, and a second step leaves only snapshots of the first") {
    for_models([](const Model& model, double bound) {
        const std::vector<Token> text = text_of(64);
        Session session = must(Session::create(model, options_of(1)));
        must(session.feed(std::span(text).first(kRead)));
        while (session.position() < 50) {
            const size_t at = size_t(session.position()), count = 2 + at % kDrafts,
                         right = 1 + at % (count - 1);
            must(session.feed_rows(round_of(text, at, count, right, 3), 0));
            if (at % 5 != 0)
                CHECK(session.rewind(at + right) == at + right);
            else
                CHECK(session.rewind(at + 1) == at + 1);
        }
        const size_t end = size_t(session.position());
        must(session.feed(std::span(text).subspan(end, 1)));
        CHECK(relative_error(session.logits(), alone(model, std::span(text).first(end + 1))) < bound);
        must(session.feed_rows(round_of(text, end + 1, 3, 3, 0), 0));
        must(session.feed(std::span(text).subspan(end + 4, 1)));
        const uint64_t held = session.rewind(end + 2);
        CHECK(held <= end + 2);
        must(session.feed(std::span(text).subspan(held, end + 2 - held + 1)));
        CHECK(relative_error(session.logits(), alone(model, std::span(text).first(end + 3))) < bound);
    });
}

TEST_CASE(
    "drafts: sequences of one step take back different numbers of tokens, beside one that reads a prompt") {
    for_models([](const Model& model, double bound) {
        const std::vector<Token> text = text_of(64);
        const auto engine = must(Engine::create(model, options_of(3)));
        std::vector<Sequence> sequences;
        for (size_t i = 0; i < 3; ++i) sequences.push_back(must(engine->open_sequence()));
        const auto ignored = [](size_t, std::span<const float>) {};
        for (size_t i = 0; i < 3; ++i) {
            const Feed feed{&sequences[i], std::span(text).subspan(i, kRead)};
            must(engine->feed({&feed, 1}, ignored));
        }
        const std::vector<Token> first = round_of(text, kRead, 4, 1, 1),
                                 second = round_of(text, kRead + 1, 5, 3, 1);
        const std::vector<Token> prompt = round_of(text, kRead + 2, 7, 7, 0);
        const Feed feeds[] = {{&sequences[0], first}, {&sequences[1], second}, {&sequences[2], prompt}};
        must(engine->step(feeds, {}));
        CHECK(sequences[0].rewind(kRead + 1) == kRead + 1);
        CHECK(sequences[1].rewind(kRead + 3) == kRead + 3);
        const size_t ends[] = {kRead + 1, kRead + 3, kRead + 7};
        for (size_t i = 0; i < 3; ++i) {
            CAPTURE(i);
            const Feed next{&sequences[i], std::span(text).subspan(i + ends[i], 1)};
            must(engine->step({&next, 1}, {}));
            CHECK(relative_error(engine->output(), alone(model, std::span(text).subspan(i, ends[i] + 1))) <
                  bound);
        }
    });
}

TEST_CASE("drafts: a round that is interrupted leaves the states as they were") {
    for_models([](const Model& model, double) {
        const std::vector<Token> text = text_of(64);
        Session session = must(Session::create(model, options_of(1))),
                other = must(Session::create(model, options_of(1)));
        for (Session* one : {&session, &other}) must(one->feed(std::span(text).first(kRead)));
        std::atomic<bool> cancel{true};
        CHECK_FALSE(session.feed_rows(round_of(text, kRead, 4, 1, 1), 0, &cancel).ok());
        CHECK(session.position() == kRead);
        for (Session* one : {&session, &other}) must(one->feed_rows(round_of(text, kRead, 4, 4, 1), 0));
        CHECK(copy(session.logits()) == copy(other.logits()));
    });
}
