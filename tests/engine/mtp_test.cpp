// MTP heads: their guesses are held to those of their layer as a model for itself, which has for each row a
// token whose embedding is what eh_proj makes of the row.
#include "support/backends.h"
#include "support/mtp_model.h"

#include <numeric>

using namespace redline;
using namespace redline::test;

namespace {

constexpr const char* kModels[] = {"llama3",       "llama-tied", "qwen3",           "mixtral",
                                   "glm4",         "glm4moe",    "glm4moelite",     "qwen35",
                                   "qwen35moe",    "qwen3next",  "qwen3next-fused", "deepseek2-v2",
                                   "deepseek2-v3", "step35",     "bailingmoe2",     "dots1"};

constexpr uint32_t kDrafts = 4;

EngineOptions options_of(uint32_t batch = 16) {
    EngineOptions options{64, batch, kDrafts + 1};
    options.cache = CacheType::f32;
    options.drafts = kDrafts;
    return options;
}

std::vector<float> normed(std::span<const float> x, std::span<const float> gain, float eps) {
    double squares = 0.0;
    for (const float v : x) squares += double(v) * v;
    const double factor = 1.0 / std::sqrt(squares / double(x.size()) + double(eps));
    std::vector<float> y;
    for (size_t i = 0; i < x.size(); ++i) y.push_back(float(x[i] * factor * gain[i]));
    return y;
}

std::vector<float> decoded(const Gguf& gguf, const std::string& name) {
    const GgufTensor* found = gguf.find(name);
    REQUIRE(found);
    std::vector<std::byte> bytes(found->tensor.bytes());
    must(gguf.read(*found, 0, bytes));
    std::vector<float> values(found->tensor.shape.elements());
    found->tensor.format->decode(bytes.data(), values.data(), values.size());
    return values;
}

// The residual behind the last layer, and the logits.
struct Read {
    std::vector<float> residual, logits;
};
Read read_one(Session& session, Token token) {
    Read out;
    must(session.feed_traced({&token, 1}, [&](const TraceStep& step) {
        if (std::holds_alternative<SelectRows>(step.step->op)) out.residual = copy(step.written[0]);
    }));
    out.logits = copy(session.logits());
    return out;
}

// The head's layer as a model for itself: token i has row i as its embedding.
class LayerAlone {
public:
    explicit LayerAlone(const std::string& name, Backend& backend)
        : source_(name), ends_(source_.config.dim), backend_(backend) {
        const Gguf& gguf = source_.model.gguf();
        embeddings_ = decoded(gguf, "token_embd.weight");
        norm_ = decoded(gguf, "output_norm.weight");
    }
    const std::vector<float>& output_norm() const { return norm_; }

    // Adds the row of a hidden row and a token; returns the token that it has most of, and the hidden row.
    std::pair<Token, std::vector<float>> add(std::span<const float> hidden, Token token) {
        const size_t dim = source_.config.dim;
        const auto embedding = std::span(embeddings_).subspan(size_t(token) * dim, dim);
        std::vector<float> scaled(embedding.begin(), embedding.end());
        for (float& v : scaled) v *= source_.config.embedding_scale;
        std::vector<float> both = normed(scaled, ends_.enorm, source_.config.eps);
        const std::vector<float> below = normed(hidden, ends_.hnorm, source_.config.eps);
        both.insert(both.end(), below.begin(), below.end());
        for (size_t r = 0; r < dim; ++r) {
            double sum = 0.0;
            for (size_t i = 0; i < 2 * dim; ++i) sum += double(ends_.eh_proj[r * 2 * dim + i]) * both[i];
            rows_.push_back(float(sum / source_.config.embedding_scale));
        }
        return read();
    }
    bool hidden_as_it_is() const { return source_.config.arch == "step35"; }
    float eps() const { return source_.config.eps; }

private:
    std::pair<Token, std::vector<float>> read() {
        const std::string path = temporary("mtp_layer.gguf");
        save(path);
        const Model model = must(Model::load(path, backend_, {64, {}}));
        Session session = must(Session::create(model, {64, 16, 1, CacheType::f32}));
        Read last;
        for (size_t i = 0; i < rows_.size() / source_.config.dim; ++i) last = read_one(session, Token(i));
        std::filesystem::remove(path);
        const Token best =
            Token(std::max_element(last.logits.begin(), last.logits.end()) - last.logits.begin());
        return {best, hidden_as_it_is() ? last.residual : normed(last.residual, ends_.norm, eps())};
    }

    void save(const std::string& path) const {
        std::vector<MetadataEntry> entries = entries_of(source_, {source_.layer});
        entries.emplace_back(source_.key("full_attention_interval"), metadata_u32(1));
        entries.emplace_back(source_.key("leading_dense_block_count"),
                             metadata_u32(source_.config.has_experts(source_.layer) ? 0 : 1));
        const uint64_t dim = source_.config.dim, vocab = source_.config.vocab;
        std::vector<float> table = rows_;
        table.resize(vocab * dim);
        const std::string from = source_.prefix(source_.layer);
        const auto change = [&](std::vector<TensorData>& all) {
            const bool tied = std::none_of(all.begin(), all.end(), [](const TensorData& one) {
                return one.tensor.name == "output.weight";
            });
            std::vector<TensorData> kept;
            for (TensorData& one : all) {
                const std::string name = one.tensor.name;
                if (name == "token_embd.weight" && tied) {
                    kept.push_back(one);
                    kept.back().tensor.name = "output.weight";
                }
                if (name == "token_embd.weight") one = float_tensor(name, {dim, vocab}, table);
                if (name == "output_norm.weight") one = float_tensor(name, {dim}, ends_.norm);
                if (name.starts_with("blk.") && !name.starts_with(from)) continue;
                kept.push_back(one);
                if (name.starts_with(from)) kept.back().tensor.name = "blk.0." + name.substr(from.size());
            }
            all = std::move(kept);
        };
        save_changed(source_.model.gguf(), change, entries, path);
    }

    MtpSource source_;
    MtpEnds ends_;
    Backend& backend_;
    std::vector<float> embeddings_, norm_, rows_;
};

std::vector<Token> guess(Session& session, Token last) {
    Guess guess{&session.sequence(), last, kDrafts};
    must(session.engine().guess({&guess, 1}));
    return guess.tokens;
}

std::vector<Token> guess_behind(Session& session, std::span<const Token> text, size_t chunk) {
    while (session.position() + 1 < text.size()) {
        const size_t at = size_t(session.position());
        must(session.feed(text.subspan(at, std::min(chunk, text.size() - 1 - at))));
    }
    return guess(session, text.back());
}

void for_models(const std::function<void(Backend&, const std::string&)>& test) {
    for (const auto& backend : session_test_backends())
        for (const std::string name : kModels) {
            if (!runs_on(*backend, name)) continue;
            INFO(name, " on ", backend->device().name);
            test(*backend, name);
        }
}

}  // namespace

TEST_CASE(
    "mtp: guesses are those of the head's layer as a model for itself, whatever the chunks of a prompt") {
    for_models([](Backend& backend, const std::string& name) {
        const HeadFile file(name);
        const Model model = file.load(backend);
        REQUIRE(model.has_head());
        const std::vector<Token> tokens = golden_tokens();
        const auto text = std::span(tokens).first(12);
        LayerAlone alone(name, backend);
        std::vector<Token> wanted;
        {
            const Model plain = tiny(backend, name);
            Session session = must(Session::create(plain, {64, 16, 1, CacheType::f32}));
            std::pair<Token, std::vector<float>> last;
            for (size_t i = 0; i + 1 < text.size(); ++i) {
                const std::vector<float> residual = read_one(session, text[i]).residual;
                last = alone.add(
                    alone.hidden_as_it_is() ? residual : normed(residual, alone.output_norm(), alone.eps()),
                    text[i + 1]);
            }
            wanted.push_back(last.first);
            while (wanted.size() < kDrafts) {
                last = alone.add(last.second, wanted.back());
                wanted.push_back(last.first);
            }
        }
        for (const size_t chunk : {11u, 3u, 1u}) {
            Session session = must(Session::create(model, options_of()));
            REQUIRE(session.guesses());
            CHECK(guess_behind(session, text, chunk) == wanted);
            // A guess leaves nothing behind.
            CHECK(guess(session, text.back()) == wanted);
        }
    });
}

namespace {

// A text of any length.
std::vector<Token> long_text(size_t count) {
    std::vector<Token> text;
    for (size_t i = 0; i < count; ++i) text.push_back(Token((i * i * 7 + i * 13 + 5) % 250 + 1));
    return text;
}

std::vector<Token> fresh_guess(const Model& model, const EngineOptions& options,
                               std::span<const Token> text) {
    Session session = must(Session::create(model, options));
    return guess_behind(session, text, 1000);
}

// Those of few kinds, for tests of what no kind of layer has for itself.
void for_some(const std::function<void(const Model&, const HeadFile&)>& test) {
    for (const auto& backend : session_test_backends())
        for (const std::string name : {"llama3", "qwen35", "deepseek2-v3"}) {
            if (!runs_on(*backend, name)) continue;
            INFO(name, " on ", backend->device().name);
            const HeadFile file(name);
            test(file.load(*backend), file);
        }
}

}  // namespace

TEST_CASE("mtp: rounds of which some tokens are taken back leave the head as a prompt does") {
    for_some([](const Model& model, const HeadFile&) {
        const std::vector<Token> text = long_text(64);
        Session session = must(Session::create(model, options_of()));
        must(session.feed(std::span(text).first(7)));
        for (size_t right = 1; session.position() + kDrafts + 2 < 50; right = right % (kDrafts + 1) + 1) {
            const size_t at = size_t(session.position());
            CAPTURE(at);
            std::vector<Token> round = guess(session, text[at]);
            CHECK(round == fresh_guess(model, options_of(), std::span(text).first(at + 1)));
            round.insert(round.begin(), text[at]);
            for (size_t i = 1; i < std::min(right, round.size()); ++i) round[i] = text[at + i];
            must(session.feed_rows(round, 0));
            const size_t kept = at + std::min(right, round.size());
            CHECK(session.rewind(kept) == kept);
        }
    });
}

TEST_CASE("mtp: a head reads long texts as they come, and guesses behind a rewind to long before") {
    for_some([](const Model& model, const HeadFile&) {
        EngineOptions options = options_of();
        options.context = 400;
        const std::vector<Token> text = long_text(300);
        Session session = must(Session::create(model, options));
        const std::vector<Token> wanted = fresh_guess(model, options, text);
        for (const size_t chunk : {16u, 5u}) {
            session.rewind(0);
            CHECK(guess_behind(session, text, chunk) == wanted);
        }
        session.rewind(180);  // further back than hidden rows are kept
        CHECK(guess_behind(session, text, 16).size() == wanted.size());
        session.rewind(0);
        CHECK(guess_behind(session, std::span(text).first(100), 16) ==
              fresh_guess(model, options, std::span(text).first(100)));
        // The token beside the last hidden row was another one.
        guess(session, text[120]);
        CHECK(guess_behind(session, text, 7) == wanted);
    });
}

TEST_CASE(
    "mtp: a restored session guesses as the saved one, and files go between models with a head and without") {
    const std::string path = temporary("mtp_session");
    for_some([&](const Model& model, const HeadFile& file) {
        const std::vector<Token> text = golden_tokens();
        Session session = must(Session::create(model, options_of()));
        must(session.feed(std::span(text).first(20)));
        must(session.save(path));
        Session again = must(Session::create(model, options_of()));
        must(again.feed(std::span(text).subspan(3, 4)));
        must(again.restore(path));
        const std::vector<Token> next = guess(session, text[20]);
        CHECK(!next.empty());
        CHECK(guess(again, text[20]) == next);
        // With the rows that the head has read, and those that it has not.
        must(again.save(path));
        Session third = must(Session::create(model, options_of())),
                whole = must(Session::create(model, options_of()));
        must(third.restore(path));
        must(third.feed(std::span(text).subspan(20, 1)));
        must(whole.feed(std::span(text).first(20)));
        must(whole.feed(std::span(text).subspan(20, 1)));
        CHECK(guess(third, text[21]) == guess(whole, text[21]));
        const Model plain = must(Model::load(file.path, model.backend(), {64, {}}));
        CHECK_FALSE(plain.has_head());
        Session without = must(Session::create(plain, options_of()));
        CHECK_FALSE(without.guesses());
        must(without.restore(path));
        must(without.feed(std::span(text).subspan(20, 3)));
        must(without.save(path));
        Session other = must(Session::create(model, options_of()));
        must(other.feed(std::span(text).subspan(2, 9)));
        must(other.restore(path));
        CHECK(guess(other, text[23]).empty());  // no hidden row is known
        must(other.feed(std::span(text).subspan(23, 1)));
        CHECK(!guess(other, text[24]).empty());
        must(session.feed(std::span(text).subspan(20, 4)));
        CHECK(relative_error(other.logits(), session.logits()) < 1e-3);
    });
    std::filesystem::remove(path);
}

TEST_CASE("mtp: sequences guess together what each guesses alone, and forks go on from there") {
    for_some([](const Model& model, const HeadFile&) {
        EngineOptions options = options_of();
        options.sequences = 4;
        const auto engine = must(Engine::create(model, options));
        const std::vector<Token> text = golden_tokens();
        const size_t ends[] = {5, 17, 30};
        std::vector<Sequence> sequences;
        std::vector<Guess> guesses;
        for (const size_t end : ends) {
            sequences.push_back(must(engine->open_sequence()));
            const Feed feed{&sequences.back(), std::span(text).first(end)};
            must(engine->feed({&feed, 1}, [](size_t, std::span<const float>) {}));
        }
        for (size_t i = 0; i < 3; ++i) guesses.push_back({&sequences[i], text[ends[i]], 1 + i});
        must(engine->guess(guesses));
        for (size_t i = 0; i < 3; ++i) {
            std::vector<Token> wanted = fresh_guess(model, options_of(), std::span(text).first(ends[i] + 1));
            wanted.resize(std::min(wanted.size(), 1 + i));
            CHECK(guesses[i].tokens == wanted);
        }
        sequences[0] = must(sequences[2].fork());
        for (size_t i : {0u, 2u}) {
            const Feed feed{&sequences[i], std::span(text).subspan(30 + i, 2)};
            must(engine->feed({&feed, 1}, [](size_t, std::span<const float>) {}));
        }
        guesses = {{&sequences[0], text[32], kDrafts}, {&sequences[2], text[34], kDrafts}};
        must(engine->guess(guesses));
        CHECK(guesses[0].tokens == fresh_guess(model, options_of(), std::span(text).first(33)));
        CHECK(!guesses[1].tokens.empty());
    });
}

TEST_CASE("mtp: a head in a second file guesses as one in the model's file, and both are planned for") {
    for (const auto& backend : session_test_backends()) {
        const HeadFile file("llama3"), second("llama3", true);
        const Model model = file.load(*backend), head = second.load(*backend),
                    plain = tiny(*backend, "llama3");
        CHECK(head.is_head());
        CHECK_FALSE(model.is_head());
        const std::vector<Token> tokens = golden_tokens();
        EngineOptions options = options_of();
        const MemoryNeed with = must(memory_need(model, *backend, options));
        options.head = &head;
        const MemoryNeed both = must(memory_need(plain, *backend, options));
        options.head = nullptr;
        const MemoryNeed without = must(memory_need(plain, *backend, options));
        CHECK(with.weights > without.weights);
        CHECK(with.cache > without.cache);
        CHECK(both.weights > with.weights);  // the embedding and the output twice
        CHECK(both.cache == with.cache);
        options.head = &head;
        CHECK(fresh_guess(plain, options, std::span(tokens).first(20)) ==
              fresh_guess(model, options_of(), std::span(tokens).first(20)));
    }
}

TEST_CASE(
    "mtp: files without a head, with nothing but one, and of architectures that cannot run one say so") {
    const auto message = [](const Result<Model>& model) { return model ? "" : model.error().message; };
    const std::string plain = golden("models/llama3.gguf");
    CHECK(message(Model::inspect(plain, 64, ReadHead::required)).find("this file has no MTP head") !=
          std::string::npos);
    CHECK_FALSE(must(Model::inspect(plain, 64, ReadHead::if_any)).has_head());
    CHECK_FALSE(must(Model::inspect(plain, 64)).offers_head());
    const HeadFile with("llama3");
    const Model unread = must(Model::inspect(with.path, 64));
    CHECK(unread.offers_head());
    CHECK_FALSE(unread.has_head());
    CHECK(unread.notes().empty());
    const HeadFile alone("llama3", true);
    CHECK(message(Model::inspect(alone.path)).find("holds an MTP head alone, which guesses for a model") !=
          std::string::npos);
    const std::string path = temporary("mtp_refused.gguf");
    const Gguf hybrid = must(Gguf::open(golden("models/nemotron-h.gguf")));
    save_with_key(hybrid, "nemotron_h.nextn_predict_layers", 1, path);
    CHECK(message(Model::inspect(path, 64, ReadHead::required))
              .find("redline cannot run MTP heads of architecture nemotron_h") != std::string::npos);
    const Model left = must(Model::inspect(path, 64));
    CHECK_FALSE(left.offers_head());
    CAPTURE(left.notes().size());
    CHECK(left.notes().back() == "the last layer, which predicts further tokens, is left out");
    std::filesystem::remove(path);
}
