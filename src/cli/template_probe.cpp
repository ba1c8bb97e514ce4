#include "cli/template_probe.h"

#include <optional>

namespace redline::cli {
namespace {

class Probe {
public:
    Probe(const ChatTemplate& parsed, const Tokenizer& tokenizer, const Json& variables)
        : parsed_(parsed), tokenizer_(tokenizer), variables_(variables) {}

    // Nothing: the template refuses it.
    std::optional<std::string> text(const std::string& first_role, const Json& tools = nullptr,
                                    const std::string& name = {}, bool value = false) const {
        TemplateInput input;
        if (!first_role.empty()) input.messages.push_back({{"role", first_role}, {"content", "Be brief."}});
        input.messages.push_back({{"role", "user"}, {"content", "Hello"}});
        input.tools = tools;
        input.variables = variables_;
        if (!name.empty()) input.variables[name] = value;
        const Result<std::vector<TextPart>> parts = parsed_.render(tokenizer_, input);
        if (!parts) return {};
        std::string out;
        for (const TextPart& part : parts.value()) out += part.text;
        return out;
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

private:
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
    return reads;
}

}  // namespace redline::cli
