// Tokens that are sampled through guesses are distributed as those of plain decoding: a test of chi-square on
// few tokens, with seeds that are always the same.
#include "engine/generate.h"
#include "speculate/draft_model.h"
#include "speculate/mtp_head.h"
#include "speculate/ngram.h"
#include "speculate/speculation.h"
#include "support/models.h"
#include "support/mtp_model.h"

#include <doctest/doctest.h>

#include <map>

using namespace redline;
using namespace redline::test;

namespace {

constexpr size_t kDrawn = 3;  // tokens of a text: the second and third may be guessed
constexpr uint32_t kMost = 4;
constexpr size_t kTexts = 3000;

// A model of whose tokens only a few can be drawn, as samplers have it.
struct Toy {
    explicit Toy(const std::string& path, ReadHead head)
        : model(must(Model::load(path, *backend, {64, {}, head}))),
          session(must(Session::create(model, {.context = 64,
                                               .batch = 16,
                                               .outputs = kMost + 1,
                                               .cache = CacheType::f32,
                                               .drafts = kMost}))) {}
    // The likeliest tokens behind the text and further ones.
    std::vector<std::pair<Token, double>> likeliest(std::vector<Token> further, size_t count);

    std::unique_ptr<Backend> backend = redline::test::cpu(1);
    Model model;
    Session session;
    std::vector<Token> text = {70, 81, 90, 44, 12, 91, 70, 33, 90, 70, 81};
};

// With their logits.
std::vector<std::pair<Token, double>> Toy::likeliest(std::vector<Token> further, size_t count) {
    session.rewind(0);
    must(session.feed(text));
    if (!further.empty()) must(session.feed(further));
    std::vector<std::pair<Token, double>> all;
    for (Token token = 0; token < Token(model.usable_vocab()); ++token)
        if (!model.tokenizer().is_end_of_generation(token))
            all.emplace_back(token, double(session.logits()[size_t(token)]));
    std::ranges::sort(all, [](const auto& a, const auto& b) { return a.second > b.second; });
    all.resize(count);
    return all;
}

// The likeliest of few tokens, or those that make up most of the probability, less likely where they have
// come.
SamplerOptions by_top_k() {
    SamplerOptions how;
    how.temperature = 1.0f;
    how.top_k = 5;
    how.top_p = 1.0f;
    how.min_p = 0.0f;
    return how;
}
SamplerOptions with_penalties() {
    SamplerOptions how = by_top_k();
    how.temperature = 1.3f;
    how.top_k = 8;
    how.top_p = 0.9f;
    how.repeat_penalty = 1.03f;
    how.presence_penalty = 0.05f;
    return how;
}

using Counts = std::map<std::vector<Token>, double>;

// Draws texts with these seeds. `right`: gets the part of the guessed tokens that were.
Counts drawn(Toy& toy, SamplerOptions how, uint32_t first_seed, Drafter* drafter, double* right = nullptr) {
    Counts counts;
    uint64_t guessed = 0, accepted = 0;
    for (size_t i = 0; i < kTexts; ++i) {
        how.seed = first_seed + uint32_t(i);
        Sampler sampler = must(make_sampler(toy.model, how, true, 64));
        must(read_prompt(toy.session, sampler, toy.text));
        GenerateOptions options;
        options.max_tokens = kDrawn;
        options.drafter = drafter;
        const Generation made = must(generate(toy.session, sampler, options, {}));
        REQUIRE(made.tokens.size() == kDrawn);
        counts[made.tokens] += 1.0;
        guessed += made.drafted;
        accepted += made.accepted;
    }
    if (right) *right = guessed > 0 ? double(accepted) / double(guessed) : 0.0;
    return counts;
}

// The bound of chi-square that chance exceeds once in a million draws, by Wilson and Hilferty.
double bound(double freedom) {
    const double one = 2.0 / (9.0 * freedom), root = 1.0 - one + 4.7534 * std::sqrt(one);
    return freedom * root * root * root;
}

// Cells that would have few counts are counted together.
constexpr double kFew = 8.0;

// Counts of a sample of kTexts against what is expected of each cell.
void check_against(const Counts& counts, const Counts& expected) {
    double chi = 0.0, cells = 0.0, rest = 0.0, rest_expected = 0.0;
    double seen = 0.0;
    for (const auto& [text, wanted] : expected) {
        const auto found = counts.find(text);
        const double count = found == counts.end() ? 0.0 : found->second;
        seen += count;
        if (wanted < kFew) {
            rest += count;
            rest_expected += wanted;
            continue;
        }
        chi += (count - wanted) * (count - wanted) / wanted;
        ++cells;
    }
    CHECK(seen == double(kTexts));  // nothing else was drawn
    if (rest_expected > 0.0) {
        chi += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
        ++cells;
    }
    REQUIRE(cells > 10.0);
    CAPTURE(cells);
    CHECK(chi < bound(cells - 1.0));
}

// Counts of two samples of the same size.
void check_alike(const Counts& one, const Counts& other) {
    Counts all = one;
    for (const auto& [text, count] : other) all[text] += count;
    double chi = 0.0, cells = 0.0, rest_one = 0.0, rest_other = 0.0;
    const auto count_in = [](const Counts& counts, const std::vector<Token>& text) {
        const auto found = counts.find(text);
        return found == counts.end() ? 0.0 : found->second;
    };
    const auto add = [&](double a, double b) {
        chi += (a - b) * (a - b) / (a + b);
        ++cells;
    };
    for (const auto& [text, count] : all) {
        const double a = count_in(one, text), b = count_in(other, text);
        if (count >= 2.0 * kFew) {
            add(a, b);
        } else {
            rest_one += a;
            rest_other += b;
        }
    }
    if (rest_one + rest_other > 0.0) add(rest_one, rest_other);
    REQUIRE(cells > 10.0);
    CAPTURE(cells);
    CHECK(chi < bound(cells - 1.0));
}

// The expected counts of texts, by the softmax of the model's logits among the likeliest tokens.
void expect(Toy& toy, std::vector<Token> text, double probability, size_t top_k, Counts& expected) {
    const auto tokens = toy.likeliest(text, top_k);
    double sum = 0.0;
    for (const auto& [token, logit] : tokens) sum += std::exp(logit);
    for (const auto& [token, logit] : tokens) {
        const double part = probability * std::exp(logit) / sum;
        std::vector<Token> longer = text;
        longer.push_back(token);
        if (longer.size() < kDrawn)
            expect(toy, longer, part, top_k, expected);
        else
            expected[longer] += part * double(kTexts);
    }
}

void check_method(Toy& toy, const std::function<std::unique_ptr<Proposer>()>& make) {
    Counts expected;
    expect(toy, {}, 1.0, 5, expected);
    for (const bool penalties : {false, true}) {
        CAPTURE(penalties);
        std::vector<std::unique_ptr<Proposer>> methods;
        methods.push_back(make());
        Speculation guesses(std::move(methods), {kMost, true});
        guesses.tell({0, 0, 0.01});  // the first step tells what one takes
        const SamplerOptions how = penalties ? with_penalties() : by_top_k();
        double right = 0.0;
        const Counts counts = drawn(toy, how, 1, &guesses, &right);
        CHECK(right > 0.02);
        CHECK(right < 0.9);
        if (!penalties) check_against(counts, expected);
        check_alike(counts, drawn(toy, how, 1000000, nullptr));
    }
}

// Before the text stands, for each token that may come first, what may follow it. As that changes what the
// model says, it is done again.
void make_guessable(Toy& toy) {
    const std::vector<Token> end = toy.text;
    for (int round = 0; round < 8; ++round) {
        std::vector<Token> longer;
        for (const auto& [token, logit] : toy.likeliest({}, 5)) {
            const Token next = toy.likeliest({token}, 1)[0].first;
            longer.insert(longer.end(), {end.back(), token, next});
        }
        longer.insert(longer.end(), end.begin(), end.end());
        toy.text = std::move(longer);
    }
}

// A copy with a head that knows what may follow each token that may come first: its product has the output's
// row of the one for the embedding of the other, and its layer adds nothing.
std::string head_that_knows(Toy& toy, const HeadFile& file) {
    const std::string path = temporary("mtp_that_knows.gguf");
    const auto teach = [&](std::vector<TensorData>& all) {
        const auto floats = [&](const char* name) {
            const auto of = [](const TensorData& one) { return one.tensor.name; };
            return std::ranges::find(all, name, of)->floats();
        };
        const std::vector<float> table = floats("token_embd.weight"), rows = floats("output.weight");
        const size_t dim = floats("output_norm.weight").size();
        std::vector<float> product(2 * dim * dim);
        for (const auto& [token, logit] : toy.likeliest({}, 5)) {
            const auto from = std::span(table).subspan(size_t(token) * dim, dim),
                       to = std::span(rows).subspan(size_t(toy.likeliest({token}, 1)[0].first) * dim, dim);
            for (size_t i = 0; i < dim; ++i)
                for (size_t j = 0; j < dim; ++j) product[i * 2 * dim + j] += to[i] * from[j];
        }
        for (TensorData& one : all) {
            const std::string& name = one.tensor.name;
            if (name.ends_with("nextn.eh_proj.weight")) one = float_tensor(name, one.tensor.dims, product);
            if (name.ends_with("nextn.enorm.weight") || name.ends_with("shared_head_norm.weight"))
                one = float_tensor(name, one.tensor.dims, std::vector<float>(dim, 1.0f));
            if (name.starts_with("blk.2.attn_output") || name.starts_with("blk.2.ffn_down"))
                std::ranges::fill(one.bytes, std::byte(0));
        }
    };
    save_changed(must(Gguf::open(file.path)), teach, {}, path);
    return path;
}

}  // namespace

TEST_CASE("distribution: tokens drawn through the guesses of looking up are the model's") {
    Toy toy(golden("models/llama3.gguf"), ReadHead::no);
    make_guessable(toy);
    check_method(toy, [] { return std::make_unique<NgramProposer>(2); });
}

TEST_CASE("distribution: tokens drawn through the guesses of an MTP head are the model's") {
    const HeadFile file("llama3");
    Toy plain(file.path, ReadHead::no);
    REQUIRE(plain.model.config().layers == 2);
    const std::string path = head_that_knows(plain, file);
    Toy toy(path, ReadHead::required);
    std::filesystem::remove(path);
    check_method(toy,
                 [&] { return std::make_unique<MtpProposer>(toy.session.engine(), toy.session.sequence()); });
}

TEST_CASE("distribution: tokens drawn through the guesses of a draft model are the model's") {
    Toy toy(golden("models/llama3.gguf"), ReadHead::no);
    check_method(toy, [&] {
        return std::make_unique<DraftModelProposer>(
            must(Session::create(toy.model, {.context = 64, .batch = 16, .cache = CacheType::f32})));
    });
}
