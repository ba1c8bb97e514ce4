// libFuzzer target for the tokenizers: the input gives a vocabulary (lines of a type digit and a text),
// merges or rules of normalization, a chat template and a text. Whatever they are, ids must be inside the
// vocabulary, text must not become a control token, and streams must not depend on how they are cut.
#include "text/chat/chat_format.h"
#include "text/tokens/pretokenize.h"
#include "text/tokens/unicode.h"

#include <cstdlib>

namespace {

using namespace redline;

void require(bool condition) {
    if (!condition) std::abort();
}

std::vector<std::string> lines_of(std::string_view text, char separator) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const size_t end = std::min(text.find(separator), text.size());
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

Metadata metadata_of(uint8_t choice, const std::vector<std::string>& parts) {
    static const std::vector<std::string> kPres = Pretokenizer::names();
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<int64_t> types = {2, 3, 3};
    std::vector<float> scores = {0, 0, 0};
    for (int byte = 0; byte < 256; ++byte) {
        std::string character;
        append_utf8(character, byte_alphabet().character[size_t(byte)]);
        const bool mapped = choice % 4 == 0;
        tokens.push_back(mapped ? character : fmt::format("<0x{:02X}>", byte));
        types.push_back(mapped ? 1 : 6);
        scores.push_back(0);
    }
    for (const std::string& line : lines_of(parts[0], '\n')) {
        types.push_back(line.empty() ? 1 : line[0] - '0');
        tokens.push_back(line.empty() ? line : line.substr(1));
        scores.push_back(-float(line.size() % 7) - (choice & 64 ? 0.5f : 0));
    }
    Metadata metadata;
    const auto add = [&](const char* key, MetadataValue value) {
        require(metadata.add(key, std::move(value)).ok());
    };
    static constexpr const char* kModels[] = {"gpt2", "llama", "gemma4", "t5"};
    add("tokenizer.ggml.model", {std::string(kModels[choice % 4]), 8, 0});
    add("tokenizer.ggml.precompiled_charsmap",
        {std::vector<int64_t>(parts[1].begin(), parts[1].end()), 9, 0});
    add("tokenizer.ggml.remove_extra_whitespaces", {(choice & 4) != 0, 7, 0});
    add("tokenizer.ggml.pre", {kPres[choice % kPres.size()], 8, 0});
    add("tokenizer.ggml.tokens", {tokens, 9, 8});
    add("tokenizer.ggml.token_type", {types, 9, 5});
    add("tokenizer.ggml.scores", {scores, 9, 6});
    add("tokenizer.ggml.merges", {lines_of(parts[1], '\n'), 9, 8});
    add("tokenizer.ggml.bos_token_id", {int64_t(choice), 4, 0});
    add("tokenizer.chat_template", {parts[2], 8, 0});
    add("general.name", {std::string(choice % 2 ? "Phi-3" : ""), 8, 0});
    return metadata;
}

void check_tokens(const Tokenizer& tokenizer, const std::vector<Token>& tokens, bool plain) {
    for (const Token token : tokens) {
        require(token >= 0 && size_t(token) < tokenizer.size());
        // The unknown token stands for bytes that have none; a byte token is a byte's.
        if (plain) require(tokenizer.type(token) != TokenType::control);
    }
}

void check_streams(std::string_view text, size_t cut) {
    TextStream whole;
    TextStream halves;
    StopMatcher first({"ab", "a\n", "<|", std::string(text.substr(0, cut % 5))});
    StopMatcher second = first;
    const std::string all = whole.push(text) + whole.finish();
    std::string again = halves.push(text.substr(0, cut));
    again += halves.push(text.substr(cut));
    again += halves.finish();
    require(all == again && all == to_valid_utf8(text) && is_valid_utf8(all));
    std::string once = first.push(text);
    once += first.finish();
    std::string twice = second.push(text.substr(0, cut));
    twice += second.push(text.substr(cut));
    twice += second.finish();
    require(once == twice && first.match() == second.match());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    std::vector<std::string> parts = lines_of({reinterpret_cast<const char*>(data) + 1, size - 1}, '\xFE');
    parts.resize(4);
    const Metadata metadata = metadata_of(data[0], parts);
    const Result<Tokenizer> made = Tokenizer::create(metadata);
    if (!made.ok()) return 0;
    const Tokenizer& tokenizer = made.value();
    const std::string& text = parts[3];
    const std::vector<Token> plain = tokenizer.encode(text, {.add_special = false});
    check_tokens(tokenizer, plain, true);
    check_tokens(tokenizer, tokenizer.encode(text, {.add_special = true, .parse_special = true}), false);
    for (const Token token : plain) (void)tokenizer.piece(token);
    check_streams(text, text.size() / 2);
    (void)printable(text);
    const Result<ChatFormat> format = ChatFormat::detect(metadata, tokenizer);
    if (!format.ok()) return 0;
    const std::vector<Message> messages = {{Role::system, text}, {Role::user, text}, {Role::assistant, text}};
    check_tokens(tokenizer, format.value().encode(tokenizer, messages), false);
    return 0;
}
