#include "text/chat/tool_calls.h"

#include "text/chat/chat_family.h"
#include "text/chat/reasoning.h"

#include <algorithm>
#include <iterator>

namespace redline {

namespace {

// The first mark at or behind `at`; of two at one place the longer.
const CallForm* find_form(std::string_view text, size_t& at) {
    const CallForm* first = nullptr;
    size_t where = text.npos;
    for (const ChatFamily& family : chat_families())
        for (const CallForm& form : family.calls.forms) {
            const size_t found = form.read ? text.find(form.mark, at) : text.npos;
            if (found > where || found == text.npos) continue;
            if (found == where && first && form.mark.size() < first->mark.size()) continue;
            where = found;
            first = &form;
        }
    at = where;
    return first;
}

// The beginnings of answers that read_bare() may take for calls.
constexpr std::string_view kBareBeginnings[] = {"{", "[", "Action:", "```"};

void note_slips(const CallReader& reader, ParsedAnswer& out) {
    if (!reader.slips().empty())
        out.notes.push_back(
            fmt::format("a call in the answer is mended: {}", fmt::join(reader.slips(), "; ")));
}

// The text in a block of code that is all of the answer. Qwen2.5-Coder writes its calls so.
std::optional<std::string_view> fenced(std::string_view text) {
    constexpr std::string_view kFence = "```";
    const size_t line = text.find('\n');
    if (!text.starts_with(kFence) || !text.ends_with(kFence) || line >= text.size() - kFence.size())
        return {};
    const std::string_view language = trimmed_text(text.substr(kFence.size(), line - kFence.size()));
    if (!language.empty() && language != "json") return {};
    return trimmed_text(text.substr(line, text.size() - kFence.size() - line));
}

// Llama 3.1 writes nothing but JSON, Llama 4 a list as in Python, Command R a list of actions; so may a model
// that was asked for such a text, hence the names.
bool read_bare(std::string_view answer, const Json& tools, ParsedAnswer& out) {
    std::string_view text = trimmed_text(answer);
    const std::optional<std::string_view> inner = fenced(text);
    if (inner) text = *inner;
    bool (CallReader::*read)() = nullptr;
    if (text.starts_with("{") || text.starts_with("[{")) {
        read = &CallReader::json_calls;
    } else if (text.starts_with("[")) {
        read = &CallReader::pythonic;
    } else if (text.starts_with("Action:")) {
        text.remove_prefix(7);
        read = &CallReader::action;
    } else {
        return false;
    }
    CallReader reader(text, 0, tools);
    if (inner) reader.slip("it stands in a block of code");
    if (!(reader.*read)() || !reader.ends_answer()) return false;
    const auto offered = [&](const ToolCall& call) { return find_function(tools, call.name) != nullptr; };
    if (!std::all_of(reader.calls().begin(), reader.calls().end(), offered)) return false;
    note_slips(reader, out);
    out.calls = std::move(reader.calls());
    return true;
}

}  // namespace

ParsedAnswer parse_tool_calls(std::string_view answer, const Json& tools) {
    ParsedAnswer out;
    size_t at = 0;
    size_t copied = 0;
    if (read_bare(answer, tools, out)) at = copied = answer.size();
    while (const CallForm* form = find_form(answer, at)) {
        CallReader reader(answer, form->keeps_mark ? at : at + form->mark.size(), tools);
        if (!(reader.*form->read)()) {
            out.notes.push_back(fmt::format("a call in the answer is left as text: what follows {} {}",
                                            form->mark, reader.problem()));
            at += form->mark.size();
            continue;
        }
        out.content += answer.substr(copied, at - copied);
        at = copied = reader.at();
        note_slips(reader, out);
        std::move(reader.calls().begin(), reader.calls().end(), std::back_inserter(out.calls));
    }
    out.content += answer.substr(copied);
    if (!out.calls.empty()) out.content = trimmed_text(out.content);
    for (size_t i = 0; i < out.calls.size(); ++i)
        if (out.calls[i].id.empty()) out.calls[i].id = fmt::format("call_{}", i + 1);
    return out;
}

std::string CallWatch::push(std::string_view text) {
    waiting_ += text;
    if (state_ == State::start) {
        const std::string_view seen = std::string_view(waiting_).substr(
            std::min(waiting_.find_first_not_of(kCallSpaces), waiting_.size()));
        if (seen.empty()) return {};
        bool may_be = false;
        for (const std::string_view bare : kBareBeginnings) {
            if (seen.starts_with(bare)) state_ = State::held;
            may_be = may_be || bare.starts_with(seen);
        }
        if (state_ == State::start && may_be) return {};
        if (state_ == State::start) state_ = State::text;
    }
    if (state_ == State::held) return {};
    size_t at = 0;
    if (find_form(waiting_, at)) state_ = State::held;
    // The longest end that may still become a mark.
    if (state_ != State::held) {
        at = waiting_.size();
        for (const ChatFamily& family : chat_families())
            for (const CallForm& form : family.calls.forms)
                for (size_t length = std::min(waiting_.size(), form.mark.size()); length > 0; --length)
                    if (waiting_.ends_with(form.mark.substr(0, length))) {
                        at = std::min(at, waiting_.size() - length);
                        break;
                    }
    }
    std::string certain = waiting_.substr(0, at);
    waiting_.erase(0, at);
    return certain;
}

std::vector<Token> tool_call_tokens(const Tokenizer& tokenizer) {
    std::vector<std::string_view> marks;
    for (const ChatFamily& family : chat_families())
        marks.insert(marks.end(), family.calls.tokens.begin(), family.calls.tokens.end());
    return control_tokens_of(tokenizer, marks);
}

Json tool_calls_json(const std::vector<ToolCall>& calls) {
    Json all = Json::array();
    for (const ToolCall& call : calls)
        all.push_back(
            {{"id", call.id},
             {"type", "function"},
             {"function",
              {{"name", call.name},
               {"arguments", call.arguments.dump(-1, ' ', false, Json::error_handler_t::replace)}}}});
    return all;
}

}  // namespace redline
