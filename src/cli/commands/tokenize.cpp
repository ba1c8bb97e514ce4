// redline tokenize: the tokens of a text, one per line. Reads no weights.
#include "base/file.h"
#include "cli/demo_model.h"
#include "cli/options/model_options.h"
#include "cli/prompt.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "cli/user_models.h"
#include "fetch/hub.h"
#include "gguf/gguf.h"
#include "json/json.h"
#include "text/tokens/tokenizer.h"
#include "text/tokens/unicode.h"

namespace redline::cli {

namespace {

struct TokenizeCommand {
    ModelOptions model;
    std::vector<std::string> words;  // without an option
    std::vector<std::string> texts;  // of them, and of -p
    std::string file;
    bool model_given = false;  // by an option
    bool add_special = true;
    bool parse_special = false;
    bool ids_only = false;
    bool json = false;
};

Options declare(TokenizeCommand& command) {
    Options options("tokenize", "show the tokens of a text",
                    {"tokenize [MODEL] TEXT", "tokenize [MODEL] -f FILE   (- is standard input)"});
    options.words([&command](const std::string& word) -> Status {
        command.words.push_back(word);
        return {};
    });
    options.group("what");
    options.name("-m --model", "FILE",
                 "model file (GGUF); its vocabulary is enough (default: the demo model)",
                 command.model.model);
    options.each("-p --prompt", "TEXT", "the text, for one that begins with a dash",
                 [&](const std::string& text) {
                     command.texts.push_back(text);
                     return Status();
                 });
    options.name("-f --file", "FILE", "a file with the text, taken to the last byte; - is standard input",
                 command.file);
    options.flag("--no-bos", "without the tokens that the model wants around a text (BOS, EOS)",
                 command.add_special, false);
    options.flag("--parse-special", "control tokens written in the text become control tokens",
                 command.parse_special);
    options.group("output");
    options.flag("--ids", "the ids only, on one line", command.ids_only);
    options.flag("--json", "one JSON object with ids and pieces", command.json);
    add_voice_options(options);
    options.example("redline tokenize \"Hello world\"");
    options.example("redline tokenize model.gguf \"Hello world\"");
    options.example("redline tokenize model.gguf --ids -f prompt.txt | wc -w");
    return options;
}

// The first of two words is the model, where no option names it, and so is one beside another text. A word
// alone is the text, unless it is or may be the name of a model.
void take_words(TokenizeCommand& command) {
    std::vector<std::string>& words = command.words;
    const bool alone = words.size() == 1 && command.texts.empty() && command.file.empty();
    const bool names =
        !words.empty() && (!alone || names_model(words.front(), NameParts::part) ||
                           (words.front().find(':') != std::string::npos && parse_hub_model(words.front())));
    if (command.model.model.empty() && names) {
        command.model.model = words.front();
        words.erase(words.begin());
    }
    command.texts.insert(command.texts.end(), words.begin(), words.end());
}

Status check_usage(const TokenizeCommand& command) {
    if (command.ids_only && command.json) return error("--ids and --json exclude each other");
    if (command.texts.size() > 1)
        return error("there are {} texts: redline tokenize MODEL \"TEXT\" takes one, in quotes",
                     command.texts.size());
    if (!command.texts.empty() && !command.file.empty())
        return error("there are a text and a file; give one of them");
    if (command.texts.empty() && command.file.empty() && is_terminal(os::kStandardInput))
        return error(
            "no text was given: redline tokenize MODEL \"TEXT\" takes one, -f FILE a file, and -f - standard "
            "input");
    return {};
}

Result<std::string> gather_text(const TokenizeCommand& command) {
    if (!command.texts.empty()) return command.texts.front();
    if (command.file.empty() || command.file == "-") return read_standard_input();
    return read_text_file(command.file);
}

// Beside a text the first word is the model, which may not have been meant.
Error no_model(const TokenizeCommand& command, const Error& problem) {
    if (command.texts.empty() || command.model_given) return problem;
    return error("{}; the model comes before the text, and a text of several words stands in quotes",
                 problem.message);
}

Result<Tokenizer> open_tokenizer(const TokenizeCommand& command) {
    const Result<std::string> found = find_user_model(command.model.model);
    if (!found) return no_model(command, found.error());
    const std::string& path = found.value();
    const Gguf gguf = RL_TRY(Gguf::open(path));
    Result<Tokenizer> tokenizer = Tokenizer::create(gguf.metadata());
    if (!tokenizer) return error("{}: {}", path, tokenizer.error().message);
    note_demo_model(command.model);
    for (const std::string& warning : tokenizer.value().warnings()) note(warning);
    return tokenizer;
}

std::string as_json(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
    Json pieces = Json::array();
    for (const Token token : tokens) pieces.push_back(to_valid_utf8(tokenizer.piece(token, true)));
    return to_text(Json{{"ids", tokens}, {"pieces", std::move(pieces)}}, false) + "\n";
}

std::string as_lines(const Tokenizer& tokenizer, const std::vector<Token>& tokens, bool ids_only) {
    if (ids_only) return fmt::format("{}\n", fmt::join(tokens, " "));
    std::string out;
    for (const Token token : tokens)
        out += fmt::format("{:>7}  \"{}\"\n", token, printable(tokenizer.piece(token, true)));
    return out;
}

int run_tokenize(const std::vector<std::string>& arguments) {
    TokenizeCommand command;
    Options options = declare(command);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    command.model_given = !command.model.model.empty();
    take_words(command);
    if (const Status usage = check_usage(command); !usage) return fail(usage.error(), kUsage);
    if (const Status found = take_demo_model(command.model); !found) return fail(found.error());
    const Result<std::string> text = gather_text(command);
    if (!text) return fail(text.error());
    const Result<Tokenizer> tokenizer = open_tokenizer(command);
    if (!tokenizer) return fail(tokenizer.error());
    const std::vector<Token> tokens =
        tokenizer.value().encode(text.value(), {command.add_special, command.parse_special});
    Output out;
    out.write(command.json ? as_json(tokenizer.value(), tokens)
                           : as_lines(tokenizer.value(), tokens, command.ids_only));
    return out.finish();
}

}  // namespace

extern const Command tokenize_command = {"tokenize", "show the tokens of a text", run_tokenize};

}  // namespace redline::cli
