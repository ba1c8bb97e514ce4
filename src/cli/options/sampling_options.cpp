#include "cli/options/sampling_options.h"

#include "base/file.h"
#include "cli/prompt.h"
#include "cli/terminal/terminal.h"
#include "grammar/json_schema.h"

#include <charconv>
#include <cmath>
#include <filesystem>

namespace redline::cli {

Status add_bias(SamplerOptions& target, const std::string& text) {
    const size_t sign = text.find_first_of("+-", 1);
    if (sign == std::string::npos)
        return error("takes ID+BIAS or ID-BIAS, for example 15043+1, not \"{}\"", text);
    const Result<int64_t> id = parse_integer(text.substr(0, sign), 0, std::numeric_limits<int32_t>::max());
    const Result<double> bias = parse_real(text.substr(sign));
    if (!id || !bias || bias.value() == HUGE_VAL)
        return error("takes ID+BIAS or ID-BIAS, for example 15043+1 or 15043-inf, not \"{}\"", text);
    target.logit_bias.emplace_back(int32_t(id.value()), float(bias.value()));
    return {};
}

namespace {

Status read_text(const std::string& text, float& target) {
    target = float(RL_TRY(parse_real(text)));
    if (!std::isfinite(target)) return error("takes a finite number, not \"{}\"", text);
    return {};
}
Status read_text(const std::string& text, int32_t& target) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    target = int32_t(RL_TRY(parse_integer(text, -kMost, kMost)));
    return {};
}
Status read_text(const std::string& text, uint32_t& target) {
    target = uint32_t(RL_TRY(parse_integer(text, -1, kRandomSeed)));
    return {};
}
// Blanks between the names of a chain are for readers.
Status read_text(const std::string& text, std::string& target) {
    target = text;
    std::erase(target, ' ');
    return {};
}
Status read_text(const std::string& text, std::vector<std::string>& target) {
    target.clear();
    if (text.empty()) return error("takes texts with blanks between them, or {}", kEmptyList);
    if (text == kEmptyList) return {};
    for (const std::string& one : split_words(text)) target.push_back(unescape(one));
    return {};
}
Status read_text(const std::string& text, std::vector<std::pair<int32_t, float>>& target) {
    SamplerOptions changed;
    if (text.empty()) return error("takes ID+BIAS or ID-BIAS, or {}", kEmptyList);
    for (const std::string& one : split_words(text == kEmptyList ? std::string() : text))
        RL_TRY(add_bias(changed, one));
    target = std::move(changed.logit_bias);
    return {};
}

std::string text_of(float value) {
    return fmt::format("{}", value);
}
std::string text_of(int32_t value) {
    return fmt::format("{}", value);
}
std::string text_of(uint32_t value) {
    return value == kRandomSeed ? "-1" : fmt::format("{}", value);
}
// A blank behind each semicolon: names and semicolons alone would be one word, too long for a line.
std::string text_of(const std::string& value) {
    std::string out = value;
    for (size_t at = out.find(';'); at != out.npos; at = out.find(';', at + 2)) out.insert(at + 1, " ");
    return out;
}
std::string text_of(const std::vector<std::string>& value) {
    std::string out;
    for (const std::string& one : value) {
        out += out.empty() ? "" : " ";
        for (const char c : one)
            out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == ' ' ? "\\x20" : std::string(1, c);
    }
    return out.empty() ? std::string(kEmptyList) : out;
}
std::string text_of(const std::vector<std::pair<int32_t, float>>& value) {
    std::string out;
    for (const auto& [token, bias] : value)
        out += fmt::format("{}{}{:+}", out.empty() ? "" : " ", token, bias);
    return out.empty() ? std::string(kEmptyList) : out;
}

// An option for each text, in place of the built-in ones.
void add_breakers(Options& options, const Parameter& p, SamplerOptions& s) {
    auto fresh = std::make_shared<bool>(true);
    options.each(p.options, std::string(p.value), std::string(p.help),
                 [&s, fresh](const std::string& text) -> Status {
                     if (*fresh) s.dry_sequence_breakers.clear();
                     *fresh = false;
                     if (text != kEmptyList) s.dry_sequence_breakers.push_back(unescape(text));
                     return {};
                 });
}

void add_parameter(Options& options, const Parameter& p, SamplerOptions& s) {
    const std::string now = parameter_text(s, p);
    const std::string help = p.value.empty() ? Options::with_default(std::string(p.help), now)
                                             : fmt::format("{} (default, without blanks: {})", p.help, now);
    options.each(p.options, p.value.empty() ? "N" : std::string(p.value), help,
                 [&s, &p](const std::string& text) { return set_by_text(s, p, text); });
}

}  // namespace

Status set_by_text(SamplerOptions& options, const Parameter& p, const std::string& text) {
    return std::visit([&](auto member) { return read_text(text, options.*member); }, p.member);
}

std::string parameter_text(const SamplerOptions& options, const Parameter& p) {
    return std::visit([&](auto member) { return text_of(options.*member); }, p.member);
}

// A value that is - or names a file is read from there, and errors then name it; else it is the text itself.
static Status add_grammar(SamplingOptions& target, const std::string& value, bool is_schema, bool is_file) {
    constexpr uint64_t kMostText = uint64_t(16) << 20;
    if (target.grammar || target.unread) return error("comes after another grammar or schema; give one");
    std::error_code unknown;
    const bool from_file =
        is_file || (value.size() < 4096 && std::filesystem::is_regular_file(value, unknown));
    Result<std::string> text = value == "-" ? read_standard_input()
                               : from_file  ? read_text_file(value, kMostText)
                                            : Result<std::string>(value);
    if (!text) {
        target.unread = text.error();
        return {};
    }
    Result<std::string> grammar =
        is_schema ? grammar_of_schema(text.value(), {&target.notes, target.strict_schema}) : std::move(text);
    Result<Grammar> parsed = grammar ? Grammar::parse(grammar.value()) : grammar.error();
    if (parsed) {
        target.grammar = std::move(parsed).value();
        return {};
    }
    // Far from any grammar or schema, it was to name a file.
    if (value != "-" && !from_file && value.find_first_of(is_schema ? "{[\"" : "=") == value.npos &&
        value.find_first_of("./") != value.npos)
        return error("\"{}\" is no file here, and no {}", value, is_schema ? "JSON schema" : "grammar");
    if (value != "-" && !from_file) return error("text: {}", parsed.error().message);
    target.unread = error("{}: {}", value == "-" ? "standard input" : value, parsed.error().message);
    return {};
}

static void add_grammar_options(Options& options, SamplingOptions& target) {
    const auto take = [&target](bool is_schema, bool is_file) {
        return [&target, is_schema, is_file](const std::string& value) {
            return add_grammar(target, value, is_schema, is_file);
        };
    };
    options.each(
        "--grammar", "GRAMMAR",
        "the text follows this grammar, in llama.cpp's GBNF; a file's name, or - for standard input, is "
        "read",
        take(false, false));
    options.each("--grammar-file", "FILE", "the same, always a file", take(false, true));
    options.each(
        "-j --json-schema", "SCHEMA",
        "the text is JSON that follows this JSON schema ({}: any object); a file's name, or - for standard "
        "input, is read",
        take(true, false));
    options.common("the text is JSON by this schema or file");
    options.each("--format", "json|SCHEMA", "the same, as ollama has it; json: any object",
                 [&target](const std::string& value) {
                     return add_grammar(target, value == "json" ? "{}" : value, true, false);
                 });
    options.each("-jf --json-schema-file", "FILE", "the same, always a file", take(true, true));
    // Before the schema or behind it.
    options.each("--strict-schema", "", "refuse a schema of which something cannot be enforced",
                 [&target](const std::string&) -> Status {
                     target.strict_schema = true;
                     if (target.notes.empty()) return {};
                     return error("the schema has more than can be enforced: {}", target.notes[0]);
                 });
}

void add_sampler_options(Options& options, SamplingOptions& target) {
    SamplerOptions& s = target.sampler;
    options.group("sampling");
    for (const Parameter& p : sampler_parameters()) {
        if (p.options.empty()) continue;
        if (p.name == "dry_sequence_breakers") {
            add_breakers(options, p, s);
        } else if (p.name == "logit_bias") {
            options.each(p.options, std::string(p.value), std::string(p.help),
                         [&s](const std::string& text) { return add_bias(s, text); });
            options.flag("--ignore-eos", "do not let the model end the text", target.ignore_eos);
        } else {
            add_parameter(options, p, s);
        }
        if (!p.brief_help.empty()) options.common(std::string(p.brief_help));
    }
}

void add_sampling_options(Options& options, SamplingOptions& target) {
    add_sampler_options(options, target);
    add_grammar_options(options, target);
}

namespace {

Status read_default(const Metadata& metadata, const std::string& key, float& target) {
    target = RL_TRY(metadata.real(key, target));
    return {};
}
Status read_default(const Metadata& metadata, const std::string& key, int32_t& target) {
    const auto* value = std::get_if<int64_t>(&metadata.find(key)->value);
    if (!value || std::abs(double(*value)) > std::numeric_limits<int32_t>::max())
        return error("key {} does not hold a whole number of 32 bits", key);
    target = int32_t(*value);
    return {};
}
Status read_default(const Metadata& metadata, const std::string& key, std::string& target) {
    target = RL_TRY(metadata.text(key, target));
    return {};
}
// Files have no default of another kind.
template <typename T>
Status read_default(const Metadata&, const std::string&, T&) {
    return {};
}

// The last name stands for an option in Options::given().
std::string option_of(const Parameter& p) {
    return split_words(p.options).back();
}

// Takes the file's defaults of parameters whose options were not given (without options: all of them), and
// lists them.
Result<std::string> take(const Options* options, const Metadata& metadata, SamplerOptions& target) {
    std::string list;
    for (const Parameter& p : sampler_parameters()) {
        const std::string key = fmt::format("general.sampling.{}", p.file_key);
        if (p.file_key.empty() || !metadata.has(key)) continue;
        if (options && options->given(option_of(p))) continue;
        RL_TRY(
            std::visit([&](auto member) { return read_default(metadata, key, target.*member); }, p.member));
        const Status fits = check_parameter(p, target);
        if (!fits) return error("key {}: {}", key, fits.error().message);
        std::string text = parameter_text(target, p);
        std::erase(text, ' ');
        list += fmt::format("{}{} {}", list.empty() ? "" : ", ", p.file_key, text);
    }
    return list;
}

}  // namespace

Status take_file_defaults(const Options& options, const Metadata& metadata, SamplerOptions& target) {
    const std::string list = RL_TRY(take(&options, metadata, target));
    if (!list.empty()) say_detail(fmt::format("sampling defaults of the file: {}", list));
    return {};
}

Result<std::string> recommended_sampling(const Metadata& metadata) {
    SamplerOptions unused;
    return take(nullptr, metadata, unused);
}

std::string unescape(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            out += text[i];
            continue;
        }
        constexpr std::string_view kLetters = "nrt'\"\\";
        constexpr std::string_view kMeanings = "\n\r\t'\"\\";
        const size_t found = kLetters.find(text[i + 1]);
        unsigned code = 0;
        const char* digits = text.data() + i + 2;
        if (found != std::string_view::npos) {
            out += kMeanings[found];
            i += 1;
        } else if (text[i + 1] == 'x' && i + 3 < text.size() &&
                   std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
            out += char(code);
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

}  // namespace redline::cli
