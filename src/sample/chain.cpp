#include "sample/chain.h"

#include <algorithm>

namespace redline {
namespace {

// Other names that llama.cpp takes, beside dashes in place of underscores.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"temp", "temperature"}, {"typ", "typ_p"},     {"typical", "typ_p"},
    {"typical_p", "typ_p"},  {"nucleus", "top_p"}, {"top_nsigma", "top_n_sigma"}};

const SamplerStep* find_step(std::string_view name) {
    const auto steps = sampler_steps();
    const auto found = std::ranges::find(steps, name, &SamplerStep::name);
    return found == steps.end() ? nullptr : &*found;
}

const SamplerStep* find_name(std::string_view text) {
    std::string name(text);
    std::replace(name.begin(), name.end(), '-', '_');
    for (const auto& [other, usual] : kOtherNames)
        if (name == other) name = usual;
    return find_step(name);
}

const SamplerStep* find_letter(char letter) {
    const auto steps = sampler_steps();
    const auto found = std::ranges::find(steps, letter, &SamplerStep::letter);
    return found == steps.end() ? nullptr : &*found;
}

std::string known_names() {
    std::string names;
    for (const SamplerStep& s : sampler_steps())
        names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", s.name, s.letter);
    return names;
}

std::string_view trim(std::string_view text) {
    const size_t from = text.find_first_not_of(" \t");
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

bool is_letters(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return find_letter(c) != nullptr; });
}

Status append(std::vector<const SamplerStep*>& chain, const SamplerStep& step) {
    if (std::ranges::find(chain, &step) != chain.end()) return error("samplers names {} twice", step.name);
    chain.push_back(&step);
    return {};
}

}  // namespace

const SamplerStep& sampler_step(std::string_view name) {
    const SamplerStep* found = find_step(name);
    RL_CHECK(found, "no step of the sampler is called {}", name);
    return *found;
}

Result<std::vector<const SamplerStep*>> parse_chain(std::string_view text) {
    text = trim(text);
    std::vector<const SamplerStep*> chain;
    if (find_name(text) == nullptr && is_letters(text)) {
        for (const char c : text) RL_TRY(append(chain, *find_letter(c)));
        return chain;
    }
    while (!text.empty()) {
        const size_t end = std::min(text.find(';'), text.size());
        const std::string_view name = trim(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (name.empty()) continue;
        const SamplerStep* found = find_name(name);
        if (found == nullptr)
            return error("samplers names \"{}\"; known are {}, by name separated by ';' or by letter", name,
                         known_names());
        RL_TRY(append(chain, *found));
    }
    return chain;
}

}  // namespace redline
