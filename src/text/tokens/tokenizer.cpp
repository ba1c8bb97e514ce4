#include "text/tokens/tokenizer.h"

#include "text/tokens/bpe.h"
#include "text/tokens/special_ids.h"
#include "text/tokens/special_splitter.h"
#include "text/tokens/spm.h"
#include "text/tokens/unicode.h"
#include "text/tokens/unigram.h"

#include <algorithm>
#include <optional>

namespace redline {
namespace {

enum class Model : uint8_t { spm, bpe, gemma4, unigram };

struct ModelRow {
    const char* name;
    Model model;
    SpecialDefaults defaults;
};

constexpr ModelRow kModels[] = {
    {"llama", Model::spm, {.bos = 1, .eos = 2, .unknown = 0, .add_bos = true}},
    {"gpt2", Model::bpe, {.bos = 11, .eos = 11}},
    {"gemma4", Model::gemma4, {}},
    // T5 appends EOS, as its files say; for a decoder the text would be over.
    {"t5", Model::unigram, {.eos = 1}},
};

constexpr std::string_view kSupported = "\"llama\", \"gpt2\", \"gemma4\" and \"t5\" are";

struct KnownModel {
    const char* name;
    const char* what;
};

constexpr KnownModel kUnsupported[] = {
    {"bert", "WordPiece"},    {"rwkv", "the RWKV trie"},    {"plamo2", "PLaMo 2's"},
    {"none", "no tokenizer"}, {"no_vocab", "no tokenizer"},
};

Result<const ModelRow*> find_model(const Metadata& metadata) {
    const std::string name = RL_TRY(metadata.text("tokenizer.ggml.model"));
    for (const ModelRow& row : kModels)
        if (name == row.name) return &row;
    for (const KnownModel& known : kUnsupported)
        if (name == known.name)
            return error("the tokenizer model \"{}\" ({}) is not supported; {}", name, known.what,
                         kSupported);
    return error("the tokenizer model \"{}\" is not known; {} supported", printable(name), kSupported);
}

// Phi-3 strips white space after its special tokens; GGUF has no key for that, only the name shows it.
Result<std::vector<Token>> swallowing_tokens(const Metadata& metadata, const Vocabulary& vocabulary) {
    std::string name = RL_TRY(metadata.text("general.name", ""));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
    if (name.find("phi-3") == name.npos && name.find("phi3") == name.npos) return std::vector<Token>();
    std::vector<Token> tokens;
    for (size_t i = 0; i < vocabulary.size(); ++i) {
        const TokenType type = vocabulary.type(Token(i));
        const std::string& text = vocabulary.text(Token(i));
        if (type != TokenType::control && type != TokenType::user_defined && type != TokenType::unknown)
            continue;
        if (text != "<unk>" && text != "<s>" && text != "<|endoftext|>") tokens.push_back(Token(i));
    }
    return tokens;
}

std::string with_spaces(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const bool space = text.substr(at).starts_with(kSpaceSymbol);
        out += space ? ' ' : text[at];
        at += space ? kSpaceSymbol.size() : 1;
    }
    return out;
}

std::string without_byte_alphabet(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        const bool mapped = step.kind == Utf8Step::Kind::character &&
                            step.code < byte_alphabet().byte.size() && byte_alphabet().byte[step.code] >= 0;
        if (mapped)
            out += char(byte_alphabet().byte[step.code]);
        else
            out += text.substr(at, step.bytes);
        at += step.bytes;
    }
    return out;
}

}  // namespace

struct Tokenizer::State {
    State(Model the_model, Vocabulary the_vocabulary)
        : model(the_model), vocabulary(std::move(the_vocabulary)) {}

    Status create_bpe(const Metadata& metadata, SpecialDefaults& defaults, bool& no_bos);
    Status create_unigram(const Metadata& metadata, bool default_prefix);
    void encode(std::string_view text, std::span<const TextRange> trusted, std::vector<Token>& out) const;

    Model model;
    Vocabulary vocabulary;
    std::string pre;
    std::optional<Bpe> bpe;
    std::optional<Spm> spm;
    std::optional<Unigram> unigram;
    SpecialIds ids;
    std::vector<bool> ends;  // by token: in the end-of-generation set
    SpecialSplitter splitter;
    std::vector<std::string> warnings;
};

Status Tokenizer::State::create_bpe(const Metadata& metadata, SpecialDefaults& defaults, bool& no_bos) {
    const std::vector<std::string>* merges = metadata.strings("tokenizer.ggml.merges");
    if (!merges)
        return error("tokenizer.ggml.merges is {}: a BPE tokenizer cannot work without",
                     metadata.has("tokenizer.ggml.merges") ? "no list of texts" : "missing");
    std::optional<Pretokenizer> pretokenizer;
    if (model == Model::bpe) {
        pre = RL_TRY(metadata.text("tokenizer.ggml.pre", "default"));
        // Ollama's files of gpt-oss name no pre-tokenizer.
        if (RL_TRY(metadata.text("general.architecture", "")) == "gptoss") pre = "gpt-4o";
        pretokenizer = RL_TRY(Pretokenizer::create(pre));
        if (pre == "default")
            warnings.push_back(
                "the file does not name its pre-tokenizer: a general one is used, and the tokens may "
                "differ from those the model was trained with");
        defaults.add_bos = pretokenizer->traits().add_bos;
        no_bos = pretokenizer->traits().no_bos;
    }
    const auto alphabet = model == Model::bpe ? Bpe::Alphabet::bytes : Bpe::Alphabet::characters;
    bpe = RL_TRY(Bpe::create(vocabulary, *merges, alphabet, std::move(pretokenizer), warnings));
    return {};
}

Status Tokenizer::State::create_unigram(const Metadata& metadata, bool default_prefix) {
    constexpr const char* kRules = "tokenizer.ggml.precompiled_charsmap";
    UnigramOptions options;
    options.space_prefix = RL_TRY(metadata.boolean("tokenizer.ggml.add_space_prefix", default_prefix));
    options.remove_extra_spaces = RL_TRY(metadata.boolean("tokenizer.ggml.remove_extra_whitespaces", false));
    if (metadata.has(kRules)) {
        const std::vector<int64_t>* numbers = metadata.integers(kRules);
        if (!numbers) return error("{} is no list of bytes", kRules);
        std::string bytes;
        for (const int64_t number : *numbers) bytes += char(number);
        Result<CharsMap> rules = CharsMap::read(bytes);
        if (!rules) return error("{}: {}", kRules, rules.error().message);
        options.normalization = std::move(rules).value();
    }
    for (size_t i = 0; i < vocabulary.size() && ids.unknown == kNoToken; ++i)
        if (vocabulary.type(Token(i)) == TokenType::unknown) ids.unknown = Token(i);
    unigram = RL_TRY(Unigram::create(vocabulary, ids.unknown, std::move(options), warnings));
    return {};
}

Result<Tokenizer> Tokenizer::create(const Metadata& metadata, size_t embedding_rows) {
    const ModelRow* row = RL_TRY(find_model(metadata));
    std::vector<std::string> warnings;
    Vocabulary vocabulary = RL_TRY(Vocabulary::read(metadata, embedding_rows, warnings));
    auto state = std::make_unique<State>(row->model, std::move(vocabulary));
    state->warnings = std::move(warnings);
    SpecialDefaults defaults = row->defaults;
    bool no_bos = false;
    const bool marked_spm = row->model == Model::spm;
    if (marked_spm && has_unigram_scores(state->vocabulary)) {
        state->model = Model::unigram;
        state->warnings.push_back(
            "the tokenizer is marked \"llama\" and its scores are those of a Unigram vocabulary: it is used "
            "as one, as the model was trained with");
    }
    if (state->model == Model::bpe || state->model == Model::gemma4)
        RL_TRY(state->create_bpe(metadata, defaults, no_bos));
    const auto is_text = [&](Token token) { return state->bpe && state->bpe->is_merged(token); };
    state->ids = RL_TRY(read_special_ids(metadata, state->vocabulary, defaults, is_text, state->warnings));
    if (no_bos) state->ids.bos = kNoToken;
    if (state->model == Model::gemma4) state->ids.add_bos = true;
    if (state->model == Model::unigram) RL_TRY(state->create_unigram(metadata, marked_spm));
    if (state->model == Model::spm) {
        const bool prefix = RL_TRY(metadata.boolean("tokenizer.ggml.add_space_prefix", true));
        state->spm = RL_TRY(Spm::create(state->vocabulary, state->ids.unknown, prefix, state->warnings));
    }
    state->ends.assign(state->vocabulary.size(), false);
    for (const Token token : state->ids.end_of_generation) state->ends[size_t(token)] = true;
    state->splitter =
        SpecialSplitter(state->vocabulary, RL_TRY(swallowing_tokens(metadata, state->vocabulary)));
    return Tokenizer(std::move(state));
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

void Tokenizer::State::encode(std::string_view text, std::span<const TextRange> trusted,
                              std::vector<Token>& out) const {
    for (const Fragment& fragment : splitter.split(text, trusted)) {
        const std::string_view raw = text.substr(fragment.begin, fragment.end - fragment.begin);
        if (fragment.token != kNoToken)
            out.push_back(fragment.token);
        else if (spm)
            spm->encode(vocabulary, raw, out);
        else if (unigram)
            unigram->encode(vocabulary, raw, out);
        else
            bpe->encode(vocabulary, raw, out);
    }
}

std::vector<Token> Tokenizer::encode(std::string_view text, TokenizeOptions options) const {
    std::vector<Token> out;
    if (options.add_special && adds_bos()) out.push_back(bos());
    const TextRange whole{0, text.size()};
    state_->encode(text, std::span(&whole, options.parse_special ? 1 : 0), out);
    if (options.add_special && adds_eos()) out.push_back(eos());
    return out;
}

std::vector<Token> Tokenizer::encode(std::span<const TextPart> parts, bool add_special) const {
    std::string text;
    std::vector<TextRange> trusted;
    for (const TextPart& part : parts) {
        const size_t begin = text.size();
        text += part.text;
        if (!part.scaffold) continue;
        if (!trusted.empty() && trusted.back().end == begin)
            trusted.back().end = text.size();
        else
            trusted.push_back({begin, text.size()});
    }
    std::vector<Token> out;
    if (add_special && adds_bos()) out.push_back(bos());
    state_->encode(text, trusted, out);
    if (add_special && adds_eos()) out.push_back(eos());
    return out;
}

std::string Tokenizer::piece(Token token, bool special) const {
    const Vocabulary& vocabulary = state_->vocabulary;
    if (!vocabulary.contains(token)) return {};
    const std::string& text = vocabulary.text(token);
    const std::vector<Token>& printed = state_->ids.printed;
    switch (vocabulary.type(token)) {
        case TokenType::control:
        case TokenType::unknown:
            if (!special && std::find(printed.begin(), printed.end(), token) == printed.end()) return {};
            return text;
        case TokenType::user_defined:
            return text;
        case TokenType::byte:
            if (const int byte = byte_of_text(text); byte >= 0) return std::string(1, char(byte));
            return text;
        default:
            break;
    }
    return state_->model == Model::bpe ? without_byte_alphabet(text) : with_spaces(text);
}

std::string Tokenizer::piece_after(Token previous, Token token, bool special) const {
    std::string bytes = piece(token, special);
    if (!state_->unigram || !state_->unigram->space_prefix()) return bytes;
    const TokenType before = type(previous), kind = type(token);
    const bool begins =
        before == TokenType::undefined || before == TokenType::control || before == TokenType::user_defined;
    const bool text = kind == TokenType::normal || kind == TokenType::unused;
    if (begins && text && bytes.starts_with(' ')) bytes.erase(0, 1);
    return bytes;
}

std::string Tokenizer::decode(std::span<const Token> tokens, bool special) const {
    std::string text;
    bool at_start = state_->spm && state_->spm->space_prefix();
    Token previous = kNoToken;
    for (const Token token : tokens) {
        std::string bytes = piece_after(previous, token, special);
        previous = token;
        const TokenType kind = type(token);
        const bool is_special = kind == TokenType::control || kind == TokenType::unknown;
        if (at_start && !is_special) {
            if (kind != TokenType::user_defined && bytes.starts_with(' ')) bytes.erase(0, 1);
            at_start = false;
        }
        text += bytes;
    }
    return text;
}

size_t Tokenizer::size() const {
    return state_->vocabulary.size();
}

std::string_view Tokenizer::raw_text(Token token) const {
    return state_->vocabulary.contains(token) ? std::string_view(state_->vocabulary.text(token))
                                              : std::string_view();
}

TokenType Tokenizer::type(Token token) const {
    return state_->vocabulary.contains(token) ? state_->vocabulary.type(token) : TokenType::undefined;
}

Token Tokenizer::find(std::string_view raw_text) const {
    return state_->vocabulary.find(raw_text);
}

Token Tokenizer::bos() const {
    return state_->ids.bos;
}

Token Tokenizer::eos() const {
    return state_->ids.eos;
}

bool Tokenizer::adds_bos() const {
    return state_->ids.add_bos && state_->ids.bos != kNoToken;
}

bool Tokenizer::adds_eos() const {
    return state_->ids.add_eos && state_->ids.eos != kNoToken;
}

bool Tokenizer::is_end_of_generation(Token token) const {
    return state_->vocabulary.contains(token) && state_->ends[size_t(token)];
}

const std::vector<Token>& Tokenizer::end_of_generation() const {
    return state_->ids.end_of_generation;
}

std::string Tokenizer::description() const {
    switch (state_->model) {
        case Model::spm:
            return "SPM";
        case Model::bpe:
            return fmt::format("BPE ({})", printable(state_->pre));
        case Model::unigram:
            return "Unigram";
        case Model::gemma4:
            break;
    }
    return "BPE of characters (gemma4)";
}

const std::vector<std::string>& Tokenizer::warnings() const {
    return state_->warnings;
}

}  // namespace redline
