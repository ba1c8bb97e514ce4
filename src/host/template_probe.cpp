#include "host/template_probe.h"

#include <optional>

namespace redline {
namespace {

class Probe {
public:
    Probe(const ChatTemplate& parsed, const Tokenizer& tokenizer, const Json& variables)
        : parsed_(parsed), tokenizer_(tokenizer), variables_(variables) {}

    std::optional<std::string> text(const std::string& first_role, const Json& tools = nullptr,
                                    const std::string& name = {}, bool value = false) const {
        TemplateInput input;
        if (!first_role.empty()) input.messages.push_back({{"role", first_role}, {"content", "Be brief."}});
        input.messages.push_back({{"role", "user"}, {"content", "Hello"}});
        input.tools = tools;
        input.variables = variables_;
        if (!name.empty()) input.variables[name] = value;
        return rendered(input);
    }

    bool reads_tools() const {
        const Json tools =
            Json::array({{{"type", "function"},
                          {"function",
                           {{"name", "look"},
                            {"description", "Looks."},
                            {"parameters",
                             {{"type", "object"},
                              {"properties", {{"at", {{"type", "string"}, {"description", "what"}}}}}}}}}}});
        bool told = false;
        for (const char* first : {"", "system"}) {
            const std::optional<std::string> with = text(first, tools), without = text(first);
            if (with != without) return true;
            told = told || with;
        }
        return !told;
    }

    bool switched_by(const std::string& name) const {
        for (const char* first : {"", "system"})
            if (text(first, nullptr, name, true) != text(first, nullptr, name, false)) return true;
        return false;
    }

    // A template that writes any role's name knows none.
    bool reads_developer() const {
        constexpr std::string_view kUnknown = "zzunknownzz", kKnown = "developer";
        const std::optional<std::string> known = text(std::string(kKnown));
        std::optional<std::string> unknown = text(std::string(kUnknown));
        if (!known) return false;
        for (size_t at; unknown && (at = unknown->find(kUnknown)) != unknown->npos;)
            unknown->replace(at, kUnknown.size(), kKnown);
        return known != unknown && known->find("Be brief.") != known->npos;
    }

    // True where a message with these two words is written, and not as a list that is spelled out.
    bool writes(const std::string& role, const Json& content) const {
        TemplateInput input;
        input.variables = variables_;
        const Json message = {{"role", role}, {"content", content}};
        const Json question = {{"role", "user"}, {"content", "Hello"}};
        if (role == "system") input.messages = {message, question};
        if (role == "user") input.messages = {message};
        if (role == "assistant") input.messages = {question, message, question};
        if (role == "tool") {
            const Json call = {{"id", "abcdefghi"},
                               {"type", "function"},
                               {"function", {{"name", "look"}, {"arguments", Json::object()}}}};
            input.messages = {
                question, {{"role", "assistant"}, {"content", ""}, {"tool_calls", {call}}}, message};
            input.messages.back()["tool_call_id"] = "abcdefghi";
            input.messages.back()["name"] = "look";
        }
        const std::optional<std::string> text = rendered(input);
        if (!text) return false;
        const size_t first = text->find(kFirst), second = text->find(kSecond, std::min(first, text->size()));
        if (second == text->npos) return false;
        const std::string between = text->substr(first + kFirst.size(), second - first - kFirst.size());
        return between.find_first_of("'\"{") == between.npos;
    }

    void read_contents(const std::string& role, TemplateReads& reads) const {
        const auto part = [](std::string_view word) { return Json{{"type", "text"}, {"text", word}}; };
        if (!writes(role, {part(kFirst), part(kSecond)})) return;
        reads.parts.push_back(role);
        if (!writes(role, fmt::format("{} {}", kFirst, kSecond))) reads.parts_only.push_back(role);
    }

private:
    static constexpr std::string_view kFirst = "zzfirstzz", kSecond = "zzsecondzz";

    // Nothing: the template refuses it.
    std::optional<std::string> rendered(const TemplateInput& input) const {
        const Result<std::vector<TextPart>> parts = parsed_.render(tokenizer_, input);
        if (!parts) return {};
        std::string out;
        for (const TextPart& part : parts.value()) out += part.text;
        return out;
    }

    const ChatTemplate& parsed_;
    const Tokenizer& tokenizer_;
    const Json& variables_;
};

}  // namespace

TemplateReads probe_template(const ChatTemplate& parsed, const Tokenizer& tokenizer, const Json& variables) {
    const Probe probe(parsed, tokenizer, variables);
    TemplateReads reads;
    for (const char* name : {"enable_thinking", "thinking"})
        if (reads.thinking.empty() && probe.switched_by(name)) reads.thinking = name;
    reads.tools = probe.reads_tools();
    reads.developer = probe.reads_developer();
    for (const char* role : {"system", "user", "assistant", "tool"}) probe.read_contents(role, reads);
    return reads;
}

}  // namespace redline
