#include "text/chat/reasoning.h"
#include "support/material.h"
#include "support/text_support.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

namespace {

Tokenizer with_tokens(std::initializer_list<const char*> marks, int64_t type = 3) {
    SmallVocabulary vocabulary = small_bpe();
    vocabulary.pre = "qwen2";
    for (const char* mark : marks) vocabulary.add(mark, type);
    return make(vocabulary);
}

ReasoningMarks marks_of(std::string_view template_source) {
    const std::optional<ReasoningMarks> marks = ReasoningMarks::find(template_source, with_tokens({}));
    REQUIRE(marks.has_value());
    return *marks;
}

std::string family(std::string_view template_source, const Tokenizer& tokenizer) {
    const std::optional<ReasoningMarks> marks = ReasoningMarks::find(template_source, tokenizer);
    return marks ? std::string(marks->name()) : "none";
}

// "[reasoning]answer", whole and in pieces of every size up to that of the text.
std::string split(const ReasoningMarks& marks, std::string_view scaffold, std::string_view text) {
    const SplitAnswer whole = split_answer(marks, scaffold, text);
    for (size_t size = 1; size < text.size(); ++size) {
        ReasoningSplitter splitter(marks, scaffold);
        SplitAnswer parts;
        const auto add = [&](const std::vector<AnswerPiece>& pieces) {
            for (const AnswerPiece& piece : pieces) {
                CHECK_FALSE(piece.text.empty());
                (piece.reasoning ? parts.reasoning : parts.content) += piece.text;
            }
        };
        for (size_t at = 0; at < text.size(); at += size) add(splitter.push(text.substr(at, size)));
        add(splitter.finish());
        CAPTURE(size);
        CHECK(parts.content == whole.content);
        CHECK(parts.reasoning == whole.reasoning);
    }
    return "[" + whole.reasoning + "]" + whole.content;
}

constexpr std::string_view kThink = "{{ '<think>' }}{{ '</think>' }}";

}  // namespace

TEST_CASE("reasoning: the marks between <think> and </think> are left out with the white space around them") {
    const ReasoningMarks think = marks_of(kThink);
    CHECK(split(think, "", "<think>\nOne and one\n\nis two.\n</think>\n\nTwo.\n") ==
          "[One and one\n\nis two.]Two.\n");
    CHECK(split(think, "", "\n<think>a</think>b") == "[a]b");
    CHECK(split(think, "", "<think></think>b") == "[]b");
    CHECK(split(think, "", "<think>\n\n</think>\n\nb") == "[]b");
    CHECK(split(think, "", "  Two.") == "[]  Two.");
    CHECK(split(think, "", " <thin") == "[] <thin");
    CHECK(split(think, "", "") == "[]");
    CHECK(split(think, "", " \n") == "[] \n");
}

TEST_CASE("reasoning: a text that ends in the reasoning has no answer") {
    const ReasoningMarks think = marks_of(kThink);
    CHECK(split(think, "", "<think>still at it </th") == "[still at it </th]");
    CHECK(split(think, "", "<think>\n still \n\n") == "[still]");
    CHECK(split(think, "", "<think>done</think>\n") == "[done]");
}

TEST_CASE("reasoning: marks in the midst of an answer are a part of it") {
    const ReasoningMarks think = marks_of(kThink);
    CHECK(split(think, "", "Write <think>a</think>.") == "[]Write <think>a</think>.");
    CHECK(split(think, "", "<think>a</think>Close it with </think>, open with <think>.") ==
          "[a]Close it with </think>, open with <think>.");
}

TEST_CASE("reasoning: a prompt that opened it makes the text begin inside") {
    const ReasoningMarks think = marks_of(kThink);
    CHECK(think.opened_by("<|im_end|>\n<|im_start|>assistant\n<think>\n"));
    CHECK_FALSE(think.opened_by("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
    CHECK_FALSE(think.opened_by("<|im_start|>assistant\n"));
    CHECK(split(think, "<|im_start|>assistant\n<think>\n", "Hm.\n</think>\n\nTwo.") == "[Hm.]Two.");
    CHECK(split(think, "<think>\n\n</think>\n\n", "Two.") == "[]Two.");
    const TextPart typed{"<think>", false};
    CHECK(last_scaffold({&typed, 1}).empty());
}

TEST_CASE("reasoning: the marks of Gemma 4, Mistral and others") {
    const ReasoningMarks gemma = marks_of("<|channel>thought\n<channel|>");
    CHECK(gemma.name() == "gemma4");
    CHECK(split(gemma, "<|turn>model\n", "<|channel>thought\nHm.\n<channel|>Two.") == "[Hm.]Two.");
    CHECK(split(gemma, "", "<|channel>thought\n<channel|>a<|channel>thought\nb<channel|>c") == "[b]ac");
    CHECK(split(gemma, "<|turn>model\n<|channel>thought\n<channel|>", "Two.") == "[]Two.");
    CHECK(split(*ReasoningMarks::named("mistral"), "", "[THINK]Hm.[/THINK]Two.") == "[Hm.]Two.");
    CHECK(split(*ReasoningMarks::named("seed"), "", "<seed:think>Hm.</seed:think>Two.") == "[Hm.]Two.");
    CHECK(split(*ReasoningMarks::named("granite"), "",
                "Here is my thought process:\n\nHm.\n\nHere is my response:\n\nTwo.") == "[Hm.]Two.");
    const ReasoningMarks apriel =
        marks_of("Here are my reasoning steps:\n [BEGIN FINAL RESPONSE] [END FINAL RESPONSE]");
    CHECK(split(apriel, "<|assistant|>\nHere are my reasoning steps:\n",
                "Hm.\n[BEGIN FINAL RESPONSE]\nTwo.[END FINAL RESPONSE]") == "[Hm.]Two.");
    CHECK_FALSE(ReasoningMarks::named("nothing").has_value());
}

TEST_CASE("reasoning: the marks around an answer go where the template has them") {
    const ReasoningMarks granite = marks_of("<think></think> and <response></response>");
    CHECK(split(granite, "", "<think>Hm.</think>\n<response>Two.</response>") == "[Hm.]Two.");
    CHECK(split(granite, "", "<think>Hm.</think>Two, no </response>.") == "[Hm.]Two, no </response>.");
    CHECK(split(marks_of(kThink), "", "<think>a</think><response>b</response>") ==
          "[a]<response>b</response>");
}

TEST_CASE("reasoning: the channels of harmony") {
    const ReasoningMarks harmony = marks_of("<|start|><|channel|><|message|>");
    const std::string_view start = "<|end|><|start|>assistant";
    CHECK(
        split(harmony, start,
              "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Two.") ==
        "[Hm.]Two.");
    CHECK(split(harmony, start, "<|channel|>final<|message|>Two.<|return|>") == "[]Two.");
    CHECK(split(harmony, "<|start|>assistant<|channel|>final<|message|>", "Two.") == "[]Two.");
    CHECK(split(harmony, "<|start|>assistant<|channel|>analysis<|message|>", "Hm.<|end|>") == "[Hm.]");
    CHECK(split(harmony, start, "No format, this one.") == "[]No format, this one.");
    CHECK(split(harmony, start, "<|channel|>anal") == "[]");
    CHECK(
        split(harmony, start,
              "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>"
              "<|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>"
              "final<|message|>c") == "[a\nb]I look.\nc");
}

TEST_CASE("reasoning: a harmony message to a function stays whole in the answer") {
    const ReasoningMarks harmony = marks_of("<|start|><|channel|><|message|>");
    const std::string call =
        "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\":\"Kiel\"}";
    CHECK(split(harmony, "<|start|>assistant", call) == "[]" + call);
    CHECK(split(harmony, "<|start|>assistant",
                "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + call + "<|call|>") ==
          "[Hm.]<|start|>assistant" + call + "<|call|>");
    CHECK(split(harmony, "<|start|>assistant", " to=functions.f<|channel|>commentary<|message|>{}<|call|>") ==
          "[]to=functions.f<|channel|>commentary<|message|>{}<|call|>");
}

TEST_CASE("reasoning: messages of Muse-Glimmer are to itself, to the user or to a function") {
    const ReasoningMarks muse = marks_of("<|start|>assistant to=self<|message|><|eom|><|eot|>");
    CHECK(muse.name() == "muse");
    const std::string start = "<|start|>assistant";
    CHECK(split(muse, start,
                " to=self<|message|>One and one.<|eom|><|start|>assistant to=user<|message|>Two.<|eot|>") ==
          "[One and one.]Two.");
    CHECK(split(muse, start, " to=user<|message|>Two.<|eot|>") == "[]Two.");
    CHECK(split(muse, start, "<|message|>Two.<|eot|>") == "[]Two.");
    CHECK(split(muse, start + " to=self<|message|>", "Hm.<|eom|>") == "[Hm.]");
    CHECK(split(muse, start + " to=user<|message|>", "Two.") == "[]Two.");
    CHECK(
        split(muse, start, " to=self<|message|>Look.<|eom|><|start|>assistant to=now<|message|>{}<|eot|>") ==
        "[Look.]<|start|>assistant to=now<|message|>{}<|eot|>");
    CHECK(split(muse, start, " to=now<|message|>{}<|eot|>") ==
          "[]<|start|>assistant to=now<|message|>{}<|eot|>");
}

TEST_CASE("reasoning: marks of Solar Open say what a message is") {
    const ReasoningMarks solar = marks_of("<|begin|>assistant<|think|><|end|>");
    CHECK(solar.name() == "solar");
    const std::string start = "<|begin|>assistant";
    CHECK(split(solar, start, "<|think|>One and one.<|end|><|begin|>assistant<|content|>Two.<|end|>") ==
          "[One and one.]Two.");
    CHECK(split(solar, start, "<|content|>Two.<|end|>") == "[]Two.");
    CHECK(split(solar, start + "<|think|>", "Hm.<|end|>") == "[Hm.]");
    CHECK(split(solar, start + "<|think|><|end|>" + start + "<|content|>", "Two.") == "[]Two.");
    CHECK(split(solar, start, "No format, this one.") == "[]No format, this one.");
    CHECK(split(solar, start,
                "<|think|>Look.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>1<|calls|>") ==
          "[Look.]<|tool_calls|><|tool_call:begin|>1<|calls|>");
}

TEST_CASE("reasoning: what cannot be a mark any more is given at once") {
    ReasoningSplitter splitter(marks_of(kThink), "<think>\n");
    CHECK(splitter.push("One ") == std::vector<AnswerPiece>{{true, "One"}});
    CHECK(splitter.push("<") == std::vector<AnswerPiece>{});
    CHECK(splitter.push("b>.") == std::vector<AnswerPiece>{{true, " <b>."}});
    CHECK(splitter.reasoning());
    CHECK(splitter.push("</think>\n") == std::vector<AnswerPiece>{});
    CHECK_FALSE(splitter.reasoning());
    CHECK(splitter.push("\nTwo ") == std::vector<AnswerPiece>{{false, "Two "}});
    CHECK(splitter.push(" \n") == std::vector<AnswerPiece>{{false, " \n"}});
}

TEST_CASE("reasoning: the family is read from the template, and without marks there from the vocabulary") {
    const Tokenizer none = with_tokens({});
    const Tokenizer qwen = with_tokens({"<think>", "</think>"}, 4);
    const Tokenizer mistral = with_tokens({"[THINK]", "[/THINK]"});
    CHECK(family("{{ messages }}", none) == "none");
    CHECK(family("{{ content.split('</think>')[-1] }}", none) == "think");
    CHECK(family("{{ messages }}", qwen) == "think");
    CHECK(family("", mistral) == "mistral");
    // Words of a text are no marks.
    CHECK(family("", with_tokens({"<think>", "</think>"}, 1)) == "none");
}

TEST_CASE("reasoning: the control tokens among the marks are known") {
    const Tokenizer mistral = with_tokens({"[THINK]", "[/THINK]"});
    const std::vector<Token> shown = ReasoningMarks::named("mistral")->control_tokens(mistral);
    CHECK(shown == std::vector<Token>{mistral.find("[THINK]"), mistral.find("[/THINK]")});
    const Tokenizer qwen = with_tokens({"<think>", "</think>"}, 4);
    CHECK(ReasoningMarks::named("think")->control_tokens(qwen).empty());
}

TEST_CASE("reasoning: the published templates are of the families that their models are") {
    RL_NEED_MATERIAL(folder, "templates");
    const std::pair<const char*, const char*> kFamilies[] = {
        {"Qwen-Qwen3-0.6B", "think"},
        {"Qwen3.5-4B", "think"},
        {"GLM-4.6", "think"},
        {"HuggingFaceTB-SmolLM3-3B", "think"},
        {"google-gemma-4-31B-it", "gemma4"},
        {"openai-gpt-oss-120b", "harmony"},
        {"Qwen-Qwen2.5-7B-Instruct", "none"},
        {"meta-llama-Llama-3.1-8B-Instruct", "none"},
        {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "think"},
        {"ibm-granite-granite-3.3-2B-Instruct", "think"}};
    for (const auto& [name, expected] : kFamilies) {
        CAPTURE(name);
        const std::string source = read_file(folder + "/" + name + ".jinja");
        CHECK(family(source, with_tokens({})) == expected);
    }
}
