#include "text/chat/chat_format.h"
#include "json/json.h"
#include "support/material.h"
#include "support/text_support.h"
#include "text/chat/chat_family.h"
#include "text/chat/reasoning.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace redline;
using namespace redline::test;

namespace {

constexpr const char* kMarkers[] = {"<|im_start|>",
                                    "<|im_end|>",
                                    "<|im_sep|>",
                                    "<|start_header_id|>",
                                    "<|end_header_id|>",
                                    "<|eot_id|>",
                                    "<start_of_turn>",
                                    "<end_of_turn>",
                                    "<|start_of_role|>",
                                    "<|end_of_role|>",
                                    "<|end_of_text|>",
                                    "<｜User｜>",
                                    "<｜Assistant｜>",
                                    "<｜end▁of▁sentence｜>",
                                    "[INST]",
                                    "[/INST]",
                                    "[SYSTEM_PROMPT]",
                                    "[/SYSTEM_PROMPT]",
                                    "<|system|>",
                                    "<|user|>",
                                    "<|assistant|>",
                                    "<|end|>"};

// A vocabulary with the markers of every format.
SmallVocabulary chat_vocabulary(const std::string& bos = "<s>", const std::string& eos = "</s>") {
    SmallVocabulary vocabulary = small_bpe();
    vocabulary.pre = "qwen2";  // adds no BOS by itself
    vocabulary.set_id("bos", vocabulary.add(bos, 3));
    vocabulary.set_id("eos", vocabulary.add(eos, 3));
    for (const char* marker : kMarkers) vocabulary.add(marker, 3);
    return vocabulary;
}

Metadata with_template(const std::string& source) {
    Metadata metadata;
    REQUIRE(metadata.add("tokenizer.chat_template", {source, 8, 0}).ok());
    return metadata;
}

std::string joined(const std::vector<TextPart>& parts) {
    std::string text;
    for (const TextPart& part : parts) text += part.text;
    return text;
}

std::vector<Message> messages_of(const Json& rows) {
    std::vector<Message> messages;
    for (const Json& row : rows) {
        const std::string role = row[0];
        messages.push_back({role == "system" ? Role::system
                            : role == "user" ? Role::user
                                             : Role::assistant,
                            row[1]});
    }
    return messages;
}

ChatOptions options_of(const Json& options) {
    return {.date = options.value("date", ""), .thinking = options.value("thinking", true)};
}

void check_cases(const Json& entry, const std::string& source, const Tokenizer& tokenizer) {
    const Result<ChatFormat> made = ChatFormat::detect(with_template(source), tokenizer);
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
    const ChatFormat& format = made.value();
    CHECK(format.name() == entry["format"].get<std::string>());
    CHECK(format.origin() == "the chat template");
    for (const Json& sample : entry["cases"]) {
        const std::vector<Message> messages = messages_of(sample["messages"]);
        const ChatOptions options = options_of(sample["options"]);
        const std::vector<TextPart> parts = format.render(tokenizer, messages, options);
        CHECK(joined(parts) == sample["text"].get<std::string>());
        // The tokens say the same, and only the scaffold has control tokens.
        const std::vector<Token> tokens = format.encode(tokenizer, messages, options);
        CHECK(tokenizer.decode(tokens, true) == sample["text"].get<std::string>());
        size_t scaffold = 0;
        for (const TextPart& part : parts)
            if (part.scaffold) scaffold += count_control(tokenizer, tokenizer.encode(part.text, kParsed));
        CHECK(count_control(tokenizer, tokens) == scaffold);
    }
}

// A conversation in a format chosen by name, with "<s>" and "</s>".
std::string rendered(std::string_view name, const std::vector<Message>& messages) {
    const Result<ChatFormat> format = ChatFormat::named(name);
    REQUIRE(format.ok());
    return joined(format.value().render(make(chat_vocabulary()), messages));
}

const std::vector<Message> kTalk = {
    {Role::system, "S"}, {Role::user, "A"}, {Role::assistant, "B"}, {Role::user, "C"}};

}  // namespace

TEST_CASE("chat: no two families share a name or the mark of a form of calls") {
    std::set<std::string_view> names, reasoning, marks;
    for (const ChatFamily& family : chat_families()) {
        const ChatStyle& style = family.style;
        CAPTURE(style.name);
        CAPTURE(family.reasoning.name);
        const bool calls = !family.calls.tokens[0].empty() || family.calls.forms[0].read != nullptr;
        CHECK((!style.name.empty() || !family.reasoning.name.empty() || calls));
        if (!style.name.empty()) {
            CHECK(names.insert(style.name).second);
            CHECK(ChatFormat::named(style.name).value().name() == style.name);
        }
        for (const std::string_view other : style.also)
            if (!other.empty()) CHECK(ChatFormat::named(other).value().name() == style.name);
        if (!family.reasoning.name.empty()) {
            CHECK(reasoning.insert(family.reasoning.name).second);
            CHECK(ReasoningMarks::named(family.reasoning.name)->open() == family.reasoning.open);
        }
        for (const CallForm& form : family.calls.forms) {
            CHECK(form.mark.empty() == (form.read == nullptr));
            if (form.read) CHECK(marks.insert(form.mark).second);
        }
    }
    CHECK_FALSE(ChatFormat::named("").ok());
    CHECK_FALSE(ReasoningMarks::named("").has_value());
}

TEST_CASE("chat format: conversations are rendered as the models' templates render them") {
    const Json all = parse_json(read_file(golden("text/chat_formats.json")));
    const Tokenizer tokenizer = make(chat_vocabulary(all["bos"], all["eos"]));
    CHECK(all["templates"].size() >= 12);
    for (const Json& entry : all["templates"]) {
        const std::string name = entry["template"];
        CAPTURE(name);
        check_cases(entry, entry["stub"], tokenizer);
        if (const auto path = material("templates/" + name + ".jinja"))
            check_cases(entry, read_file(*path), tokenizer);
    }
}

TEST_CASE("chat format: formats without a golden template follow their documentation") {
    CHECK(rendered("llama2", kTalk) ==
          "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nA [/INST] B </s><s>[INST] C [/INST]");
    CHECK(rendered("llama2", {{Role::user, " A "}}) == "<s>[INST] A [/INST]");
    CHECK(rendered("mistral-v1", kTalk) == "<s>[INST] S\n\nA [/INST] B</s>[INST] C [/INST]");
    CHECK(rendered("mistral-v3", kTalk) == "<s>[INST] A[/INST] B</s>[INST] S\n\nC[/INST]");
    CHECK(rendered("mistral-v7", kTalk) ==
          "<s>[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] A[/INST] B</s>[INST] C[/INST]");
    CHECK(rendered("zephyr", kTalk) ==
          "<|system|>\nS</s>\n<|user|>\nA</s>\n<|assistant|>\nB</s>\n<|user|>\nC</s>\n<|assistant|>\n");
    CHECK(rendered("phi4", kTalk) ==
          "<|im_start|>system<|im_sep|>S<|im_end|><|im_start|>user<|im_sep|>A<|im_end|>"
          "<|im_start|>assistant<|im_sep|>B<|im_end|><|im_start|>user<|im_sep|>C<|im_end|>"
          "<|im_start|>assistant<|im_sep|>");
    CHECK(rendered("phi4-mini", kTalk) ==
          "<|system|>S<|end|><|user|>A<|end|><|assistant|>B<|end|><|user|>C<|end|><|assistant|>");
    CHECK(rendered("harmony", kTalk) ==
          "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
          "Knowledge cutoff: 2024-06\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. "
          "Channel must be included for every message.<|end|>"
          "<|start|>developer<|message|># Instructions\n\nS\n\n<|end|><|start|>user<|message|>A<|end|>"
          "<|start|>assistant<|channel|>final<|message|>B<|end|><|start|>user<|message|>C<|end|>"
          "<|start|>assistant");
    const Message thought = {
        Role::assistant,
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>B"};
    CHECK(rendered("harmony", {{Role::user, "A"}, thought, {Role::user, "C"}})
              .ends_with("A<|end|><|start|>assistant<|channel|>final<|message|>B<|end|>"
                         "<|start|>user<|message|>C<|end|><|start|>assistant"));
    CHECK(rendered("glm4", kTalk) ==
          "[gMASK]<sop><|system|>\nS<|user|>\nA<|assistant|>\nB<|user|>\nC<|assistant|>");
    CHECK(rendered("glm4.5", kTalk) ==
          "[gMASK]<sop><|system|>\nS<|user|>\nA<|assistant|>\n<think></think>\nB<|user|>\nC<|assistant|>");
    CHECK(rendered("gemma", kTalk) ==
          "<s><start_of_turn>user\nS\n\nA<end_of_turn>\n<start_of_turn>model\nB"
          "<end_of_turn>\n<start_of_turn>user\nC<end_of_turn>\n<start_of_turn>model\n");
}

TEST_CASE("chat format: the variants of one family are told apart by their templates") {
    const Tokenizer tokenizer = make(chat_vocabulary());
    const std::pair<const char*, const char*> cases[] = {
        {"{{ bos_token + '[INST] ' + '<<SYS>>\\n' + s + '\\n<</SYS>>' + content + ' [/INST]' }}", "llama2"},
        {"{{ bos_token }}{{ '[INST] ' + content + ' [/INST]' }}{{ content + eos_token }}", "mistral-v1"},
        {"[AVAILABLE_TOOLS] {{ \"[INST] \" + content + \"[/INST]\" }}", "mistral-v3"},
        {"[AVAILABLE_TOOLS] {{ \"[INST]\" + content + \"[/INST]\" }}", "mistral-v3-tekken"},
        {"{{ '[SYSTEM_PROMPT] ' + s }} {{ '[INST] ' + content }}", "mistral-v7"},
        {"{{ \"[SYSTEM_PROMPT]\" + s }} {{ \"[INST]\" }}", "mistral-v7-tekken"},
        {"{{ '<|im_start|>user<|im_sep|>' + c + '<|im_end|>' }}", "phi4"},
        {"{{ '<|im_start|>' + role + '\\n' + c + '<|im_end|>' }}", "chatml"},
        {"{{ '<|user|>\\n' + c + eos_token }} {{ '<|assistant|>' }}", "zephyr"},
        {"{{'<|user|>\n' + c + '<|end|>\n'}} {{'<|assistant|>\n'}} {{ eos_token }}", "phi3"},
        {"{{ '<|start|>user<|message|>' + c + '<|end|><|start|>assistant<|channel|>final<|message|>' }}",
         "harmony"},
        {"[gMASK]<sop>{% for m in messages %}<|user|>\n{{ c }}<|assistant|>{{ '\n<think></think>' }}",
         "glm4.5"},
        {"[gMASK]<sop>{% for m in messages %}<|user|>\n{{ c }}<|assistant|>\n", "glm4"},
        {"{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{{ '<|assistant|>' }} <|user|>",
         "phi4-mini"},
    };
    for (const auto& sample : cases) {
        CAPTURE(sample.first);
        const Result<ChatFormat> format = ChatFormat::detect(with_template(sample.first), tokenizer);
        REQUIRE(format.ok());
        CHECK(format.value().name() == sample.second);
    }
}

TEST_CASE("chat format: what is not known is an error that names the known ones, never a guess") {
    const Tokenizer tokenizer = make(chat_vocabulary());
    const Result<ChatFormat> unknown =
        ChatFormat::detect(with_template("{{ '<|turn>' + content }}"), tokenizer);
    REQUIRE_FALSE(unknown.ok());
    CHECK(mentions(unknown.error().message, "no built-in format"));
    CHECK(mentions(unknown.error().message,
                   "chatml, command-r, deepseek, deepseek-ocr, deepseek2, deepseek3, exaone-moe"));
    const Result<ChatFormat> base = ChatFormat::detect(Metadata(), make(small_bpe()));
    REQUIRE_FALSE(base.ok());
    CHECK(mentions(base.error().message, "no chat template"));
    CHECK(mentions(base.error().message, "known formats are bailing"));
    const Result<ChatFormat> named = ChatFormat::named("chatmel");
    REQUIRE_FALSE(named.ok());
    CHECK(mentions(named.error().message, "\"chatmel\"; known are bailing"));
    Metadata wrong;
    REQUIRE(wrong.add("tokenizer.chat_template", {int64_t(3), 4, 0}).ok());
    CHECK_FALSE(ChatFormat::detect(wrong, tokenizer).ok());
    for (const std::string& name : ChatFormat::names()) CHECK(ChatFormat::named(name).ok());
}

TEST_CASE("chat format: llama.cpp's names are known, and write what they write there") {
    const std::pair<const char*, const char*> kWritten[] = {
        {"llama4",
         "<s><|header_start|>system<|header_end|>\n\nS<|eot|><|header_start|>user<|header_end|>\n\nA<|eot|>"
         "<|header_start|>assistant<|header_end|>\n\nB<|eot|><|header_start|>user<|header_end|>\n\nC<|eot|>"
         "<|header_start|>assistant<|header_end|>\n\n"},
        {"command-r",
         "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_"
         "TOKEN|>A"
         "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>B<|END_OF_TURN_TOKEN|><|START_OF_TURN_"
         "TOKEN|>"
         "<|USER_TOKEN|>C<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
        {"kimi-k2",
         "<|im_system|>system<|im_middle|>S<|im_end|><|im_user|>user<|im_middle|>A<|im_end|><|im_assistant|>"
         "assistant<|im_middle|>B<|im_end|><|im_user|>user<|im_middle|>C<|im_end|><|im_assistant|>assistant"
         "<|im_middle|>"},
        {"exaone4",
         "[|system|]S[|endofturn|]\n[|user|]A\n[|assistant|]B[|endofturn|]\n[|user|]C\n[|assistant|]"},
        {"megrez",
         "<|role_start|>system<|role_end|>S<|turn_end|><|role_start|>user<|role_end|>A<|turn_end|><|role_"
         "start|>"
         "assistant<|role_end|>B<|turn_end|><|role_start|>user<|role_end|>C<|turn_end|><|role_start|>"
         "assistant"
         "<|role_end|>"},
        {"grok-2",
         "System: S<|separator|>\n\nHuman: A<|separator|>\n\nAssistant: B<|separator|>\n\nHuman: C"
         "<|separator|>\n\nAssistant:"},
        {"bailing2",
         "<role>SYSTEM</role>S<|role_end|><role>HUMAN</role>A<|role_end|><role>ASSISTANT</role>B<|role_end|>"
         "<role>HUMAN</role>C<|role_end|><role>ASSISTANT</role>"},
        {"bailing",
         "<role>SYSTEM</role>S<role>HUMAN</role>A<role>ASSISTANT</role>B<role>HUMAN</role>C"
         "<role>ASSISTANT</role>"},
        {"deepseek2", "<s>S\n\nUser: A\n\nAssistant: B</s>User: C\n\nAssistant:"},
        {"deepseek",
         "<s>S### Instruction:\nA\n### Response:\nB\n<|EOT|>\n### Instruction:\nC\n### Response:\n"}};
    for (const auto& [name, text] : kWritten) CHECK_MESSAGE(rendered(name, kTalk) == text, name);
    const std::pair<const char*, const char*> kAlso[] = {
        {"gpt-oss", "harmony"},       {"chatglm4", "glm4"},           {"llama2-sys", "llama2"},
        {"llama2-sys-bos", "llama2"}, {"llama2-sys-strip", "llama2"}, {"exaone3", "exaone4"}};
    for (const auto& [name, same] : kAlso) CHECK(ChatFormat::named(name).value().name() == same);
    CHECK_FALSE(ChatFormat::named("").ok());
}

TEST_CASE("chat format: each of llama.cpp's built-in templates is known, and writes what it writes there") {
    // Its texts have these ends of sequences, where ours has the model's.
    const std::map<std::string, const char*> kEnds = {{"zephyr", "<|endoftext|>"},
                                                      {"deepseek2", "<｜end▁of▁sentence｜>"}};
    // The models' published templates decide: gpt-oss' system text, GLM-4's and Llama 2's white space, no
    // space before the first [INST], Mistral's system text in the last turn, no empty line behind DeepSeek
    // 3's system text, and one mark before an answer of Hunyuan. YandexGPT's system text, which is left out
    // there, stands before the first question.
    const std::set<std::string> kOthers = {
        "gpt-oss",    "chatglm4",  "llama2",        "llama2-sys", "llama2-sys-bos", "llama2-sys-strip",
        "mistral-v1", "deepseek3", "hunyuan-dense", "yandex",     "mistral-v3",     "mistral-v3-tekken"};
    const Json all = parse_json(read_file(golden("text/named_chats.json")));
    const Json& conversations = all["conversations"];
    CHECK(all["templates"].size() > 50);
    for (const auto& [name, texts] : all["templates"].items()) {
        CAPTURE(name);
        const Result<ChatFormat> format = ChatFormat::named(name);
        REQUIRE(format.ok());
        const auto end = kEnds.find(name);
        const Tokenizer tokenizer = make(chat_vocabulary("<s>", end == kEnds.end() ? "</s>" : end->second));
        size_t same = 0;
        for (size_t i = 0; i < texts.size(); ++i) {
            const std::string want = texts[i];
            std::string got = joined(format.value().render(tokenizer, messages_of(conversations[i])));
            // The tokenizer adds BOS to a text there.
            if (got.starts_with("<s>") && !want.starts_with("<s>")) got.erase(0, 3);
            same += got == want ? 1 : 0;
            if (kOthers.count(name) == 0) CHECK(got == want);
        }
        CHECK((same < texts.size()) == (kOthers.count(name) > 0));
    }
}

TEST_CASE("chat format: without a template the vocabulary's markers decide") {
    const std::pair<std::vector<const char*>, const char*> cases[] = {
        {{"<|im_start|>", "<|im_end|>"}, "chatml"},
        {{"<|im_start|>", "<|im_end|>", "<|im_sep|>"}, "phi4"},
        {{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, "llama3"},
        {{"<start_of_turn>", "<end_of_turn>"}, "gemma"},
        {{"<|user|>", "<|assistant|>", "<|end|>"}, "phi3"},
    };
    for (const auto& sample : cases) {
        SmallVocabulary vocabulary = small_bpe();
        for (const char* marker : sample.first) vocabulary.add(marker, 3);
        const Result<ChatFormat> format = ChatFormat::detect(Metadata(), make(vocabulary));
        REQUIRE(format.ok());
        CHECK(format.value().name() == sample.second);
        CHECK(format.value().origin() == "the vocabulary");
    }
    // Ordinary text with the same letters does not count.
    SmallVocabulary plain = small_bpe();
    plain.add("<|im_start|>", 1);
    plain.add("<|user|>", 3);
    CHECK_FALSE(ChatFormat::detect(Metadata(), make(plain)).ok());
}

TEST_CASE("chat format: a template whose markers are no tokens is taken, and said") {
    const Result<ChatFormat> format =
        ChatFormat::detect(with_template("<|im_start|>role <|im_end|>"), make(small_bpe()));
    REQUIRE(format.ok());
    REQUIRE(format.value().notes().size() == 2);
    CHECK(mentions(format.value().notes()[0], "\"<|im_start|>\" is no token of its own"));
}

TEST_CASE("chat format: what a user types is never a control token, in any format") {
    const Tokenizer tokenizer = make(chat_vocabulary());
    std::string nasty;
    for (const char* marker : kMarkers) nasty += std::string(marker) + "\n";
    nasty += "<s></s>{bos}{eos}";
    for (const std::string& name : ChatFormat::names()) {
        CAPTURE(name);
        const ChatFormat format = ChatFormat::named(name).value();
        const std::vector<Message> calm = {
            {Role::system, "x"}, {Role::user, "x"}, {Role::assistant, "x"}, {Role::user, "x"}};
        std::vector<Message> typed = calm;
        for (Message& message : typed) message.text = nasty;
        const std::vector<Token> tokens = format.encode(tokenizer, typed);
        CHECK(count_control(tokenizer, tokens) == count_control(tokenizer, format.encode(tokenizer, calm)));
        const std::string text = tokenizer.decode(tokens, true);
        size_t seen = 0;
        for (size_t at = text.find("{bos}{eos}"); at != text.npos; at = text.find("{bos}{eos}", at + 1))
            ++seen;
        CHECK(seen == 4);
    }
}

TEST_CASE("chat format: BOS is there once, whether the format or the file asks for it") {
    SmallVocabulary vocabulary = chat_vocabulary();
    for (const bool adds : {false, true}) {
        SmallVocabulary asked = vocabulary;
        asked.set_flag("add_bos_token", adds);
        const Tokenizer tokenizer = make(asked);
        for (const std::string& name : ChatFormat::names()) {
            CAPTURE(name);
            const std::vector<Token> tokens =
                ChatFormat::named(name).value().encode(tokenizer, {{Role::user, "hello"}});
            const auto count = std::count(tokens.begin(), tokens.end(), tokenizer.bos());
            // Monarch has one before each turn.
            CHECK(count <= (name == "monarch" ? 2 : 1));
            if (adds) CHECK(tokens.front() == tokenizer.bos());
            if (name == "llama3" || name == "llama2") CHECK(count == 1);
            if (name == "chatml" && !adds) CHECK(count == 0);
        }
    }
}

TEST_CASE("chat format: SPM puts its space before text, not inside the scaffold") {
    SmallVocabulary vocabulary = small_spm();
    vocabulary.add("<|user|>", 3);
    vocabulary.add("<|assistant|>", 3);
    vocabulary.add("<|end|>", 3);
    const Tokenizer tokenizer = make(vocabulary);
    std::string pieces;
    for (const Token token :
         ChatFormat::named("llama2").value().encode(tokenizer, {{Role::user, "the thing"}}))
        pieces += tokenizer.piece(token, true) + "|";
    CHECK(pieces == "<s>| |[|I|N|S|T|]| the| th|ing| |[|/|I|N|S|T|]|");
}

TEST_CASE("chat format: thinking can be opened or skipped where the template can") {
    const Tokenizer tokenizer = make(chat_vocabulary());
    const std::string start = "'<|im_start|>' '<|im_end|>' add_generation_prompt ";
    const auto make_format = [&](const std::string& rest) {
        return ChatFormat::detect(with_template(start + rest), tokenizer).value();
    };
    const ChatFormat plain = make_format("");
    CHECK_FALSE(plain.opens_thinking());
    CHECK_FALSE(plain.can_skip_thinking());
    const ChatFormat both = make_format("'<think>\\n\\n</think>\\n\\n' '<think>\\n'");
    CHECK(both.opens_thinking());
    CHECK_FALSE(both.opens_thinking({.date = "", .thinking = false}));
    CHECK(both.can_skip_thinking());
    const std::vector<Message> ask = {{Role::user, "?"}};
    CHECK(joined(both.render(tokenizer, ask)).ends_with("assistant\n<think>\n"));
    CHECK(joined(both.render(tokenizer, ask, {.date = "", .thinking = false}))
              .ends_with("<think>\n\n</think>\n\n"));
}

TEST_CASE("chat format: odd conversations are rendered without losing text") {
    CHECK(rendered("chatml", {}) == "<|im_start|>assistant\n");
    CHECK(rendered("gemma", {{Role::system, "S"}}) ==
          "<s><start_of_turn>user\nS\n\n<end_of_turn>\n<start_of_turn>model\n");
    CHECK(rendered("mistral-v3", {{Role::system, "S"}, {Role::system, "T"}, {Role::user, "A"}}) ==
          "<s>[INST] S\n\nT\n\nA[/INST]");
    CHECK(rendered("llama3", {{Role::user, "\u3000 A \n"}, {Role::assistant, ""}}) ==
          "<s><|start_header_id|>user<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>assistant<|end_"
          "header_id|>"
          "\n\n<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
    CHECK(
        rendered("chatml", {{Role::assistant, "<think>\nx\n</think>\n\n\nB"}, {Role::user, "</think>A"}}) ==
        "<|im_start|>assistant\nB<|im_end|>\n<|im_start|>user\n</think>A<|im_end|>\n<|im_start|>assistant\n");
}
