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

static void add_truncations(Options& options, SamplerOptions& s) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    options.number("--temp --temperature", "temperature; 0: always the likeliest token", s.temperature);
    options.common("randomness; 0: the likeliest token");
    options.number("--top-k", "keep the N likeliest; 0: all", s.top_k, -1, kMost);
    options.number("--top-p", "keep the likeliest with this much probability together; 1: all", s.top_p);
    options.number("--min-p", "keep those of at least this share of the likeliest's probability; 0: all",
                   s.min_p);
    options.number("--typical-p --typical", "keep the locally typical, up to this probability; 1: all",
                   s.typical_p);
    options.number("--top-n-sigma --top-nsigma",
                   "keep those within N standard deviations of the best; -1: all", s.top_n_sigma);
    options.number("--xtc-probability", "chance of dropping the likeliest; 0: never", s.xtc_probability);
    options.number("--xtc-threshold", "probability from which xtc drops; above 0.5: never", s.xtc_threshold);
    options.number("--dynatemp-range", "temperature varies by this much, with the entropy; 0: off",
                   s.dynatemp_range);
    options.number("--dynatemp-exp", "exponent of that", s.dynatemp_exponent);
    options.number("--mirostat", "1 or 2: Mirostat in place of the truncations; 0: off", s.mirostat, 0, 2);
    options.number("--mirostat-lr", "Mirostat's learning rate", s.mirostat_eta);
    options.number("--mirostat-ent", "Mirostat's target entropy, in bits", s.mirostat_tau);
}

static void add_penalties(Options& options, SamplerOptions& s) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    options.number("--repeat-last-n", "tokens that the penalties look back; -1: the context", s.repeat_last_n,
                   -1, kMost);
    options.number("--repeat-penalty", "divide the logits of tokens seen by this; 1: off", s.repeat_penalty);
    options.number("--presence-penalty", "subtract this from tokens seen", s.presence_penalty);
    options.number("--frequency-penalty", "subtract this from tokens seen, each time", s.frequency_penalty);
    options.number("--dry-multiplier", "strength of DRY, the penalty on repeated sequences; 0: off",
                   s.dry_multiplier);
    options.number("--dry-base", "growth of that penalty with the length", s.dry_base);
    options.number("--dry-allowed-length", "repetitions up to this length go free", s.dry_allowed_length, 0,
                   kMost);
    options.number("--dry-penalty-last-n", "tokens that DRY looks back; -1: the context",
                   s.dry_penalty_last_n, -1, kMost);
    auto fresh = std::make_shared<bool>(true);
    options.each(
        "--dry-sequence-breaker", "TEXT",
        "text that ends a repetition, in place of the built-in ones; may be given again; \"none\": no such "
        "text (default: newline, colon, double quote, star)",
        [&s, fresh](const std::string& text) -> Status {
            if (*fresh) s.dry_sequence_breakers.clear();
            *fresh = false;
            if (text != "none") s.dry_sequence_breakers.push_back(unescape(text));
            return {};
        });
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

void add_sampling_options(Options& options, SamplingOptions& target) {
    SamplerOptions& s = target.sampler;
    options.group("sampling");
    options.each("-s --seed", "N", "random seed; -1: a new one each time (default: -1)",
                 [&s](const std::string& text) -> Status {
                     s.seed = uint32_t(RL_TRY(parse_integer(text, -1, std::numeric_limits<uint32_t>::max())));
                     return {};
                 });
    options.common("random seed, for the same text again");
    add_truncations(options, s);
    add_penalties(options, s);
    options.each("-l --logit-bias", "ID(+|-)BIAS", "make a token likelier or less likely; -inf forbids it",
                 [&s](const std::string& text) { return add_bias(s, text); });
    options.flag("--ignore-eos", "do not let the model end the text", target.ignore_eos);
    // Names and semicolons alone would be one word, too long for a line of the help.
    std::string order = s.samplers;
    for (size_t at = order.find(';'); at != std::string::npos; at = order.find(';', at + 2))
        order.insert(at + 1, " ");
    options.text(
        "--sampling-seq --sampler-seq --samplers", "LIST",
        fmt::format("order of the samplers, by name or by letter (default, without blanks: {})", order),
        s.samplers);
    add_grammar_options(options, target);
}

namespace {

class FileDefaults {
public:
    // Without options: of all that the file has.
    FileDefaults(const Options* options, const Metadata& metadata) : options_(options), metadata_(metadata) {}

    Status real(std::string_view key, std::string_view option, float& target) {
        const std::string name = wanted(key, option);
        if (name.empty()) return {};
        target = RL_TRY(metadata_.real(name, target));
        return said(key, fmt::format("{:g}", target));
    }
    Status integer(std::string_view key, std::string_view option, int32_t& target) {
        const std::string name = wanted(key, option);
        if (name.empty()) return {};
        const auto* value = std::get_if<int64_t>(&metadata_.find(name)->value);
        if (!value || *value < -1 || *value > std::numeric_limits<int32_t>::max())
            return error("key {} does not hold a whole number of -1 or more", name);
        target = int32_t(*value);
        return said(key, fmt::format("{}", target));
    }
    Status text(std::string_view key, std::string_view option, std::string& target) {
        const std::string name = wanted(key, option);
        if (name.empty()) return {};
        target = RL_TRY(metadata_.text(name, target));
        return said(key, target);
    }
    const std::string& list() const { return list_; }

private:
    std::string wanted(std::string_view key, std::string_view option) const {
        const std::string name = fmt::format("general.sampling.{}", key);
        return (options_ && options_->given(option)) || !metadata_.has(name) ? "" : name;
    }
    Status said(std::string_view key, const std::string& value) {
        list_ += fmt::format("{}{} {}", list_.empty() ? "" : ", ", key, value);
        return {};
    }

    const Options* options_;
    const Metadata& metadata_;
    std::string list_;
};

Status take(FileDefaults& file, SamplerOptions& target) {
    RL_TRY(file.text("sequence", "--samplers", target.samplers));
    RL_TRY(file.integer("top_k", "--top-k", target.top_k));
    RL_TRY(file.real("top_p", "--top-p", target.top_p));
    RL_TRY(file.real("min_p", "--min-p", target.min_p));
    RL_TRY(file.real("xtc_probability", "--xtc-probability", target.xtc_probability));
    RL_TRY(file.real("xtc_threshold", "--xtc-threshold", target.xtc_threshold));
    RL_TRY(file.real("temp", "--temperature", target.temperature));
    RL_TRY(file.integer("penalty_last_n", "--repeat-last-n", target.repeat_last_n));
    RL_TRY(file.real("penalty_repeat", "--repeat-penalty", target.repeat_penalty));
    RL_TRY(file.integer("mirostat", "--mirostat", target.mirostat));
    RL_TRY(file.real("mirostat_tau", "--mirostat-ent", target.mirostat_tau));
    return file.real("mirostat_eta", "--mirostat-lr", target.mirostat_eta);
}

}  // namespace

Status take_file_defaults(const Options& options, const Metadata& metadata, SamplerOptions& target) {
    FileDefaults file(&options, metadata);
    RL_TRY(take(file, target));
    if (!file.list().empty()) say_detail(fmt::format("sampling defaults of the file: {}", file.list()));
    return {};
}

Result<std::string> recommended_sampling(const Metadata& metadata) {
    FileDefaults file(nullptr, metadata);
    SamplerOptions unused;
    RL_TRY(take(file, unused));
    return file.list();
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
