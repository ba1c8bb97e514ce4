// The messages that chat templates read, found out by rendering: short templates, and the published ones.
#include "host/template_probe.h"

#include "support/material.h"
#include "support/text_support.h"

using namespace redline;
using namespace redline::test;
using redline::probe_template;
using redline::TemplateReads;

namespace {

// "thinking|tools|developer", as far as they are there.
std::string reads(const std::string& source) {
    const Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    REQUIRE_MESSAGE(parsed.ok(), (parsed.ok() ? "" : parsed.error().message));
    static const Tokenizer tokenizer = make(small_bpe());
    const TemplateReads found = probe_template(parsed.value(), tokenizer, Json::object());
    return found.thinking + "|" + (found.tools ? "tools" : "") + "|" + (found.developer ? "developer" : "");
}

}  // namespace

TEST_CASE("template probe: words in a comment are nothing that a template reads") {
    CHECK(reads("{# tools, developer, enable_thinking #}{{ messages[0].content }}") == "||");
    CHECK(reads("{{ messages[0].role }}: {{ messages[0].content }}") == "||");
    CHECK(reads("{% for t in tools %}{{ t.function.name }}{% endfor %}") == "|tools|");
    CHECK(reads("{% if thinking %}<think>{% endif %}") == "thinking||");
    CHECK(reads("{% if enable_thinking is not defined or enable_thinking %}<think>{% endif %}") ==
          "enable_thinking||");
    CHECK(reads("{% if messages[0].role == 'developer' %}{{ messages[0].content }}{% endif %}") ==
          "||developer");
    CHECK(reads("{% for m in messages %}{% if m.role == 'developer' %}{{ raise_exception('no') }}{% endif %}"
                "{{ m.role }}{% endfor %}") == "||");
    // One that refuses every conversation may offer functions.
    CHECK(reads("{{ raise_exception('no') }}") == "|tools|");
}

TEST_CASE("template probe: roles whose contents may be lists of parts") {
    RL_NEED_MATERIAL(folder, "templates");
    const auto parts = [&](const std::string& name) {
        const Result<ChatTemplate> parsed = ChatTemplate::parse(read_file(folder + "/" + name + ".jinja"));
        REQUIRE(parsed.ok());
        const TemplateReads found = probe_template(parsed.value(), make(small_bpe()), Json::object());
        CHECK(found.parts_only.empty());
        return fmt::format("{}", fmt::join(found.parts, " "));
    };
    CHECK(parts("Qwen3.5-4B") == "system user assistant tool");
    CHECK(parts("GLM-4.6") == "system user assistant");
    CHECK(parts("google-gemma-4-31B-it") == "user assistant tool");
    // It takes the first part alone of a system text that is a list.
    CHECK(parts("Mistral-Small-3.2-24B-Instruct-2506") == "user assistant");
    for (const char* name :
         {"Qwen-Qwen2.5-7B-Instruct", "Qwen3-Coder", "LFM2-8B-A1B", "HuggingFaceTB-SmolLM3-3B",
          "meta-llama-Llama-3.1-8B-Instruct", "openai-gpt-oss-120b"})
        CHECK_MESSAGE(parts(name).empty(), name);
}

TEST_CASE("template probe: what the published templates read") {
    RL_NEED_MATERIAL(folder, "templates");
    const std::pair<std::string, std::string> kReads[] = {
        {"GLM-4.6", "enable_thinking|tools|"},
        {"HuggingFaceTB-SmolLM3-3B", "enable_thinking||"},
        {"LFM2-8B-A1B", "|tools|"},
        {"Mistral-Small-3.2-24B-Instruct-2506", "|tools|"},
        {"Qwen-Qwen2.5-7B-Instruct", "|tools|"},
        {"Qwen-Qwen3-0.6B", "enable_thinking|tools|"},
        {"Qwen3-Coder", "|tools|"},
        {"Qwen3.5-4B", "enable_thinking|tools|"},
        {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "enable_thinking||"},
        {"google-gemma-2-2b-it", "||"},
        {"google-gemma-4-31B-it", "enable_thinking|tools|developer"},
        {"ibm-granite-granite-3.3-2B-Instruct", "thinking|tools|"},
        {"meta-llama-Llama-3.1-8B-Instruct", "|tools|"},
        {"microsoft-Phi-3.5-mini-instruct", "||"},
        {"mistralai-Mistral-Nemo-Instruct-2407", "|tools|"},
        {"openai-gpt-oss-120b", "|tools|developer"}};
    for (const auto& [name, expected] : kReads) {
        CAPTURE(name);
        CHECK(reads(read_file(folder + "/" + name + ".jinja")) == expected);
    }
}
