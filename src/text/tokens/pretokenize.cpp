#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokens/pretokenize.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace redline {
namespace {

// Cuts a match into pieces: whole, or in groups of three characters counted from its end.
enum class Cut : uint8_t { whole, threes_from_end };

// One regular expression, as parts that are concatenated. It is applied inside each piece of the step before
// it; matches and the gaps between them are the new pieces.
struct Expression {
    std::array<const char*, 4> parts = {};
    Cut cut = Cut::whole;
};

struct PatternRow {
    const char* name;
    std::array<Expression, 6> expressions;
};

// Parts that many patterns share.
constexpr const char* kContraction = R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|)";
constexpr const char* kLineEndsAndSpaces = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr const char* kLlama3 = R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)";
constexpr const char* kQwen2 = R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)";
// Words of any case, then words that begin in capitals: o200k without and with English contractions.
constexpr const char* kCased =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)";
constexpr const char* kCasedContraction =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)";
// The same without Han: a class that lists everything but the unwanted categories and the script.
constexpr const char* kCasedNotHan =
    R"([^\r\n\p{L}\p{N}]?)"
    R"([^\p{sc:Han}\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}]*[^\p{sc:Han}\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?)"
    R"([^\p{sc:Han}\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}]+[^\p{sc:Han}\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)";
constexpr const char* kDigitsAndMarks = R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)";
constexpr const char* kDigitAndMarks = R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)";
constexpr const char* kDeepseek3 = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
                                   R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)";
constexpr const char* kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";
// Han and Hangul in early DeepSeek models.
constexpr const char* kDeepseekHan = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr const char* kHanKana = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr const char* kDeepseekLetters =
    R"(\s?[)"
    R"(A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a})"
    R"(\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556})"
    R"(\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf})"
    R"(\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d})"
    R"(\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d})"
    R"(\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4})"
    R"(\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4})"
    R"(\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124})"
    R"(\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f})"
    R"(\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
    R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
    R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
    R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3})"
    R"(\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df})"
    R"(\x{1e900}-\x{1e943})"
    R"(]+)";
// Scripts without spaces between words, in AFMOE.
constexpr const char* kUnspaced = R"([)"
                                  R"(\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{f900}-\x{faff}\x{3040}-\x{309f})"
                                  R"(\x{30a0}-\x{30ff}\x{ff65}-\x{ff9f}\x{2f00}-\x{2fdf}\x{e40}-\x{e7f})"
                                  R"(\x{e80}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f}\x{aa60}-\x{aa7f})"
                                  R"(\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff})"
                                  R"(]+)";
constexpr const char* kDefaultMarks = R"([\p{P}\$\+<=>\^~\|]+)";

// Some expressions differ from the models' originals, which take quadratic time on a long run. The result is
// the same but for one case of SUPERBPE: a superscript right after a number is cut off. "\s+$" (DEEPSEEK_LLM)
// looks back, so that it is tried once per run. Numbers in groups of three are matched whole and then cut,
// and word ends are spelled out by Unicode's classes. JAIS2 looks for the line end of a run of spaces only
// where such a run can begin.
constexpr PatternRow kPatterns[] = {
    {"LLAMA3", {{{{kContraction, kLlama3, kLineEndsAndSpaces}}}}},
    {"QWEN2", {{{{kContraction, kQwen2, kLineEndsAndSpaces}}}}},
    {"QWEN35",
     {{{{kContraction, R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)",
         kLineEndsAndSpaces}}}}},
    {"GPT2", {{{{kGpt2}}}}},
    {"STARCODER", {{{{R"(\p{N})"}}, {{kGpt2}}}}},
    {"FALCON", {{{{R"([\p{P}\$\+<=>\^~\|`]+)"}}, {{kGpt2}}, {{"[0-9][0-9][0-9]"}}}}},
    {"TEKKEN", {{{{kCased, kDigitAndMarks, kLineEndsAndSpaces}}}}},
    {"GPT4O", {{{{kCasedContraction, kDigitsAndMarks, kLineEndsAndSpaces}}}}},
    {"KIMI_K2",
     {{{{R"(\p{sc:Han}+|)", kCasedNotHan, R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)", kLineEndsAndSpaces}}}}},
    {"TINY_AYA",
     {{{{R"((?<!\d)\d++(?![\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]))"}, Cut::threes_from_end},
       {{kCasedContraction, kDigitsAndMarks, kLineEndsAndSpaces}}}}},
    {"YOUTU",
     {{{{R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|)",
         R"([\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}\x{ff1a}\x{ff1b}\x{ff0c})"
         R"(\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|)"
         R"([\x{3105}-\x{312f}]+|)",
         kHanKana}},
       {{kCasedContraction, kDigitAndMarks, kLineEndsAndSpaces}}}}},
    {"DEEPSEEK_LLM",
     {{{{R"([\r\n])"}},
       {{kDeepseekLetters}},
       {{R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)"}},
       {{R"((?<!\s)\s++$)"}},
       {{kDeepseekHan}},
       {{R"(\p{N}+)"}}}}},
    {"DEEPSEEK_CODER",
     {{{{R"([\r\n])"}}, {{R"(\s?\p{L}+)"}}, {{R"(\s?\p{P}+)"}}, {{kDeepseekHan}}, {{R"(\p{N})"}}}}},
    {"DEEPSEEK3_LLM", {{{{R"(\p{N}{1,3})"}}, {{kHanKana}}, {{kDeepseek3, kLineEndsAndSpaces}}}}},
    {"AFMOE", {{{{R"(\p{Nd}+)"}, Cut::threes_from_end}, {{kUnspaced}}, {{kDeepseek3, kLineEndsAndSpaces}}}}},
    {"BLOOM", {{{{kBloom}}}}},
    {"VIKING", {{{{kBloom}}, {{R"(\p{N})"}}}}},
    {"CHAMELEON",
     {{{{"<sentinel:[0-9]+>"}},
       {{"(?:IMGIMG)(?:[A-I]{1,4})Z"}},
       {{R"([\t\n]|    |  )"}},
       {{R"(\p{N})"}},
       {{R"([\p{P}!-/:-@\[-`{-~])"}},
       {{kGpt2}}}}},
    {"SUPERBPE", {{{{R"(\p{N}+)"}}, {{R"((?:\d{3})++(?!\d))"}, Cut::threes_from_end}}}},
    {"BAILINGMOE",
     {{{{R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|)", kQwen2, R"(|\s*[\r\n]|\s+(?!\S)|\s+)"}}}}},
    {"SEED_CODER",
     {{{{kContraction, R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)", kLineEndsAndSpaces}}}}},
    {"EXAONE_MOE",
     {{{{kContraction, R"([^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}|)",
         R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}}}}},
    {"JAIS2",
     {{{{kContraction, kLlama3, R"(|(?<![^\S\r\n])\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S))",
         R"(|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)"}}}}},
    {"DEFAULT", {{{{kDefaultMarks}}, {{kGpt2}}, {{R"(\p{N}+)"}}, {{"[0-9][0-9][0-9]"}}}}},
};

constexpr PretokenizerTraits kPlain = {};
constexpr PretokenizerTraits kBos = {.add_bos = true};
constexpr PretokenizerTraits kWhole = {.whole_pieces = true};
constexpr PretokenizerTraits kWholeBos = {.whole_pieces = true, .add_bos = true};
constexpr PretokenizerTraits kNoBos = {.no_bos = true};

struct PreRow {
    const char* pre;
    const char* pattern;
    PretokenizerTraits traits = kPlain;
};

constexpr PreRow kPres[] = {
    {"llama3", "LLAMA3", kWholeBos},
    {"llama-v3", "LLAMA3", kWholeBos},
    {"llama-bpe", "LLAMA3", kWholeBos},
    {"falcon3", "LLAMA3", kWholeBos},
    {"falcon-h1", "LLAMA3", kWholeBos},
    {"pixtral", "LLAMA3", kWholeBos},
    {"midm-2.0", "LLAMA3", kWholeBos},
    {"lfm2", "LLAMA3", kWholeBos},
    {"laguna", "LLAMA3", kWholeBos},
    {"jina-v5-nano", "LLAMA3", kWholeBos},
    {"dbrx", "LLAMA3"},
    {"smaug-bpe", "LLAMA3"},
    {"glm4", "LLAMA3", kNoBos},
    {"chatglm-bpe", "LLAMA3", kNoBos},
    {"tekken", "TEKKEN", kWholeBos},
    {"qwen2", "QWEN2"},
    {"deepseek-r1-qwen", "QWEN2"},
    {"kormo", "QWEN2"},
    {"openpangu", "QWEN2"},
    {"f2llmv2", "QWEN2"},
    {"megrez", "QWEN2"},
    {"stablelm2", "QWEN2"},
    {"hunyuan", "QWEN2"},
    {"solar-open", "QWEN2"},
    {"grok-2", "QWEN2"},
    {"qwen35", "QWEN35"},
    {"gpt-4o", "GPT4O"},
    {"llama4", "GPT4O"},
    {"kanana2", "GPT4O"},
    {"minimax-m2", "GPT4O"},
    {"kimi-k2", "KIMI_K2"},
    {"tiny_aya", "TINY_AYA"},
    {"youtu", "YOUTU", kWhole},
    {"deepseek-llm", "DEEPSEEK_LLM"},
    {"deepseek-coder", "DEEPSEEK_CODER"},
    {"deepseek-v3", "DEEPSEEK3_LLM"},
    {"hunyuan-dense", "DEEPSEEK3_LLM"},
    {"joyai-llm", "DEEPSEEK3_LLM"},
    {"gpt-2", "GPT2"},
    {"phi-2", "GPT2"},
    {"jina-es", "GPT2"},
    {"jina-de", "GPT2"},
    {"gigachat", "GPT2"},
    {"jina-v2-es", "GPT2"},
    {"jina-v2-de", "GPT2"},
    {"a.x-4.0", "GPT2"},
    {"mellum", "GPT2"},
    {"modern-bert", "GPT2"},
    {"exaone4", "GPT2"},
    {"jina-v1-en", "GPT2"},
    {"jina-v2-code", "GPT2"},
    {"roberta-bpe", "GPT2"},
    {"mpt", "GPT2"},
    {"olmo", "GPT2"},
    {"jais", "GPT2"},
    {"trillion", "GPT2"},
    {"granite-docling", "GPT2"},
    {"starcoder", "STARCODER"},
    {"refact", "STARCODER"},
    {"codeshell", "STARCODER"},
    {"exaone", "STARCODER"},
    {"minerva-7b", "STARCODER"},
    {"mellum2", "STARCODER"},
    {"smollm", "STARCODER"},
    {"command-r", "STARCODER"},
    {"cohere2_moe", "STARCODER"},
    {"falcon", "FALCON"},
    {"bailingmoe", "BAILINGMOE"},
    {"bailingmoe2", "BAILINGMOE"},
    {"llada-moe", "BAILINGMOE"},
    {"seed-coder", "SEED_CODER"},
    {"afmoe", "AFMOE"},
    {"superbpe", "SUPERBPE"},
    {"exaone-moe", "EXAONE_MOE"},
    {"viking", "VIKING"},
    {"poro-chat", "BLOOM"},
    {"bloom", "BLOOM"},
    {"gpt3-finnish", "BLOOM"},
    {"chameleon", "CHAMELEON", kBos},
    {"jais-2", "JAIS2"},
    {"default", "DEFAULT"},
};

// White space is Unicode's property White_Space: PCRE2's \s includes U+180E, too.
std::string joined(const Expression& expression) {
    std::string text;
    for (const char* part : expression.parts)
        for (const char* c = part; c && *c; ++c) {
            if (*c == '\\' && (c[1] == 's' || c[1] == 'S'))
                text += *++c == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
            else if (*c == '\\')
                text.append({*c, *++c});
            else
                text += *c;
        }
    return text;
}

struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

using Code = std::unique_ptr<pcre2_code, FreeCode>;
using MatchData = std::unique_ptr<pcre2_match_data, FreeMatch>;
using MatchContext = std::unique_ptr<pcre2_match_context, FreeContext>;
using Sink = std::function<void(std::string_view)>;

Result<Code> compile(const std::string& pattern) {
    int number = 0;
    PCRE2_SIZE offset = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &number, &offset, nullptr));
    if (!code) {
        std::array<PCRE2_UCHAR, 256> message = {};
        pcre2_get_error_message(number, message.data(), message.size());
        return error("PCRE2 refuses the pre-tokenizer pattern at offset {}: {}", offset,
                     reinterpret_cast<const char*>(message.data()));
    }
    // Without JIT compilation matching is interpreted: slower, the same result.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    return code;
}

template <typename Piece>
void cut_threes_from_end(std::string_view match, const Piece& piece) {
    std::vector<size_t> starts;  // the start of each of its characters
    for (size_t i = 0; i < match.size(); ++i)
        if ((uint8_t(match[i]) & 0xC0) != 0x80) starts.push_back(i);
    size_t begin = 0;
    for (size_t i = starts.size() % 3; i < starts.size(); i += 3) {
        if (starts[i] > begin) piece(match.substr(begin, starts[i] - begin));
        begin = starts[i];
    }
    piece(match.substr(begin));
}

}  // namespace

struct Pretokenizer::Step {
    Code code;
    Cut cut;
};

// The state of one split: match data and limits belong to a thread, compiled patterns are shared.
class Pretokenizer::Run {
public:
    Run(const std::vector<Step>& steps, size_t bytes, const Sink& piece)
        : steps_(steps), piece_(piece), context_(pcre2_match_context_create(nullptr)) {
        for (size_t i = 0; i < steps.size(); ++i) data_.emplace_back(pcre2_match_data_create(1, nullptr));
        // An expression looks at each character of a run a few times at most, so this is never reached; it
        // guards against a mistake in the table.
        if (context_)
            pcre2_set_match_limit(context_.get(), uint32_t(std::min<size_t>(1'000'000 + 16 * bytes, ~0u)));
    }

    // Applies the steps from `index` on. When PCRE2 gives up (a limit, no memory), the rest of the part is a
    // gap.
    void apply(size_t index, std::string_view part) {
        if (index == steps_.size()) return piece_(part);
        pcre2_match_data* data = data_[index].get();
        size_t done = 0;
        while (data && done < part.size()) {
            // The text was validated before; without this flag PCRE2 would validate it for every match.
            const int count =
                pcre2_match(steps_[index].code.get(), reinterpret_cast<PCRE2_SPTR>(part.data()), part.size(),
                            done, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data, context_.get());
            if (count < 0) break;
            const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
            const size_t begin = ends[0];
            const size_t end = ends[1];
            if (begin > done) apply(index + 1, part.substr(done, begin - done));
            const std::string_view match = part.substr(begin, end - begin);
            if (steps_[index].cut == Cut::threes_from_end)
                cut_threes_from_end(match, [&](std::string_view inner) { apply(index + 1, inner); });
            else
                apply(index + 1, match);
            done = end;
        }
        if (done < part.size()) apply(index + 1, part.substr(done));
    }

private:
    const std::vector<Step>& steps_;
    const Sink& piece_;
    MatchContext context_;
    std::vector<MatchData> data_;  // by step
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

Result<Pretokenizer> Pretokenizer::of_pattern(std::string_view name) {
    const auto* row = std::find_if(std::begin(kPatterns), std::end(kPatterns),
                                   [&](const PatternRow& candidate) { return candidate.name == name; });
    RL_CHECK(row != std::end(kPatterns), "no pattern named {}", name);
    Pretokenizer pretokenizer;
    for (const Expression& expression : row->expressions)
        if (expression.parts[0])
            pretokenizer.steps_.push_back({RL_TRY(compile(joined(expression))), expression.cut});
    return pretokenizer;
}

Result<Pretokenizer> Pretokenizer::create(std::string_view pre) {
    for (const PreRow& row : kPres)
        if (row.pre == pre) {
            Pretokenizer pretokenizer = RL_TRY(of_pattern(row.pattern));
            pretokenizer.traits_ = row.traits;
            return pretokenizer;
        }
    return error("the pre-tokenizer \"{}\" is not known; known are {}", pre, fmt::join(names(), ", "));
}

std::vector<std::string> Pretokenizer::names() {
    std::vector<std::string> all;
    for (const PreRow& row : kPres) all.push_back(row.pre);
    std::sort(all.begin(), all.end());
    return all;
}

std::vector<std::string> Pretokenizer::pattern_names() {
    std::vector<std::string> all;
    for (const PatternRow& row : kPatterns) all.push_back(row.name);
    return all;
}

void Pretokenizer::split(std::string_view text, const Sink& piece) const {
    if (!text.empty()) Run(steps_, text.size(), piece).apply(0, text);
}

}  // namespace redline
