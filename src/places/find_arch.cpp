#include "places/find_arch.h"

#include "arch/arch.h"
#include "base/nearest_name.h"
#include "gguf/facts.h"
#include "memory/budget.h"
#include "text/chat/chat_template.h"
#include "text/tokens/tokenizer.h"
#include "version_generated.h"

#include <algorithm>

namespace redline {

namespace {

// Architectures of GGUF files that redline will never run, listed by the beginnings of their names.
struct OtherKind {
    std::string_view names;  // with blanks between
    std::string_view what;
};
constexpr OtherKind kOtherKinds[] = {
    {"bert modern-bert nomic-bert neo-bert jina-bert eurobert t5encoder gemma-embedding llama-embed",
     "an encoder, which makes vectors of texts"},
    {"clip mmproj whisper wavtokenizer", "of vision or sound"},
    {"flux sd1 sd2 sd3 sdxl wan qwen_image lumina2 hidream ltxv cosmos hyvid aura pig", "of images"},
    {"dream llada", "a diffusion model, which does not write token by token"},
};

// Those that guess for another model.
constexpr OtherKind kDrafters[] = {
    {"eagle3", "an EAGLE-3 head"},
    {"dflash", "a DFlash drafter"},
    {"gemma4-assistant gemma4_mtp", "Gemma 4's assistant"},
};

std::string_view kind_of(std::string_view name, std::span<const OtherKind> kinds) {
    for (const OtherKind& kind : kinds)
        for (std::string_view rest = kind.names; !rest.empty();) {
            const std::string_view one = rest.substr(0, rest.find(' '));
            if (name == one || (name.starts_with(one) && name[one.size()] == '-')) return kind.what;
            rest.remove_prefix(std::min(rest.size(), one.size() + 1));
        }
    return {};
}

// The leading letters of a name: "qwen" of "qwen3moe".
std::string_view family(std::string_view name) {
    size_t end = 0;
    while (end < name.size() && name[end] >= 'a' && name[end] <= 'z') ++end;
    return name.substr(0, end);
}

std::string describe_rest(const Gguf& gguf) {
    std::string text = fmt::format("the file is {} of {} parameters", format_bytes(gguf.file_bytes()),
                                   short_count(parameter_count(gguf)));
    const std::vector<FormatShare> shares = format_shares(gguf);
    if (!shares.empty()) text += ", mostly " + shares.front().format;
    const Result<Tokenizer> tokenizer = Tokenizer::create(gguf.metadata());
    text += tokenizer ? ", with tokenizer " + tokenizer.value().description()
                      : ", without a tokenizer that can be read";
    return text +
           (has_chat_template(gguf.metadata()) ? " and a chat template" : " and without a chat template");
}

}  // namespace

std::string nearest_arch(std::string_view wanted, const std::vector<std::string>& names) {
    constexpr size_t kLettersOfFamily = 3;
    std::vector<std::string> relatives;
    for (const std::string& name : names)
        if (family(name) == family(wanted)) relatives.push_back(name);
    if (family(wanted).size() < kLettersOfFamily || relatives.empty()) return nearest_name(wanted, names);
    const std::string nearest = nearest_name(wanted, relatives);
    return nearest.empty() ? relatives.front() : nearest;
}

Error unknown_arch(const Gguf& gguf, const std::string& name) {
    constexpr size_t kShownLetters = 60;
    const std::string shown = name.substr(0, kShownLetters), rest = describe_rest(gguf);
    if (const std::string_view what = kind_of(shown, kDrafters); !what.empty())
        return error(
            "{}: architecture {} is {}, which guesses for another model; redline guesses by MTP heads, by smaller "
            "models and by looking up; {}",
            gguf.path(), shown, what, rest);
    if (const std::string_view what = kind_of(shown, kOtherKinds); !what.empty())
        return error("{}: architecture {} is {}; redline runs models that write text; {}", gguf.path(), shown,
                     what, rest);
    std::vector<std::string> known;
    for (const Arch* arch : all_archs()) known.insert(known.end(), arch->names.begin(), arch->names.end());
    const std::string nearest = nearest_arch(shown, known);
    return error("{}: architecture {} is not known to redline {} (a later version may know it{}); {}",
                 gguf.path(), shown, RL_VERSION, nearest.empty() ? "" : "; nearest by name: " + nearest,
                 rest);
}

Result<const Arch*> find_arch(const Gguf& gguf) {
    const Result<std::string> name = gguf.metadata().text("general.architecture");
    if (!name) return error("{}: {}", gguf.path(), name.error().message);
    for (const Arch* arch : all_archs())
        if (std::find(arch->names.begin(), arch->names.end(), name.value()) != arch->names.end()) return arch;
    return unknown_arch(gguf, name.value());
}

}  // namespace redline
