// A cursor over an answer from which calls of functions are read. It notes the slips that it mends.
#pragma once

#include "text/chat/loose_value.h"
#include "text/chat/parameter_value.h"
#include "text/chat/tool_calls.h"

#include <algorithm>
#include <optional>

namespace redline {

inline constexpr std::string_view kCallSpaces = " \t\r\n";

inline std::string_view trimmed_text(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(kCallSpaces), text.size()));
    return text.substr(0, text.find_last_not_of(kCallSpaces) + 1);
}

// A value between marks may stand on separate lines; these line ends are no part of it.
inline std::string_view without_outer_lines(std::string_view text) {
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
    return text;
}

class CallCursor {
public:
    CallCursor(std::string_view text, size_t at, const Json& tools) : text_(text), at_(at), tools_(tools) {}

    size_t at() const { return at_; }
    std::vector<ToolCall>& calls() { return calls_; }
    const std::string& problem() const { return problem_; }
    // The slips that were mended, as sentences.
    const std::vector<std::string>& slips() const { return slips_; }
    // True when nothing follows the calls.
    bool ends_answer() {
        take_surplus_brackets({});
        return at_end();
    }
    void slip(std::string what) {
        if (std::find(slips_.begin(), slips_.end(), what) == slips_.end()) slips_.push_back(std::move(what));
    }

protected:
    std::string_view rest() const { return text_.substr(at_); }
    bool at_end() const { return at_ == text_.size(); }
    void skip_spaces() { at_ = std::min(text_.find_first_not_of(kCallSpaces, at_), text_.size()); }

    bool take(std::string_view mark) {
        if (!rest().starts_with(mark)) return false;
        at_ += mark.size();
        return true;
    }

    // The mark, and the same again behind it.
    bool take_all(std::string_view mark) {
        if (!take(mark)) return false;
        for (size_t before = at_;; before = at_) {
            skip_spaces();
            if (!take(mark)) {
                at_ = before;
                return true;
            }
            slip(fmt::format("{} stands twice", mark));
        }
    }

    // Brackets behind a call whose brackets are closed already, up to the mark or the end of the answer.
    void take_surplus_brackets(std::string_view mark) {
        skip_spaces();
        const size_t before = at_;
        while (take("}") || take("]")) skip_spaces();
        if (at_ == before) return;
        if (mark.empty() ? at_end() : rest().starts_with(mark))
            slip("a bracket is closed twice");
        else
            at_ = before;
    }

    // Behind the mark that ends the calls; the end of the answer does, too.
    bool closed(std::string_view mark) {
        take_surplus_brackets(mark);
        return take_all(mark) || at_end() || refuse(fmt::format("has no {} behind it", mark));
    }

    // The text before the mark, with the cursor moved behind it; empty where the mark is not found.
    std::string_view until(std::string_view mark) {
        const size_t end = text_.find(mark, at_);
        if (end == text_.npos) return {};
        const std::string_view before = text_.substr(at_, end - at_);
        at_ = end + mark.size();
        return before;
    }

    // The name of a parameter up to the mark, which a name that the function knows may hold.
    std::optional<std::string_view> key_until(std::string_view mark, const Json* function) {
        const Json* properties = function ? find_properties(*function) : nullptr;
        known_ = {function, properties, mark, {}};
        std::optional<size_t> longest;
        if (properties)
            for (const auto& [name, schema] : properties->items())
                if (rest().starts_with(name) && rest().substr(name.size()).starts_with(mark))
                    longest = std::max(longest.value_or(0), name.size());
        if (!longest) {
            known_.key = until(mark);
            return known_.key.empty() ? std::nullopt : std::optional(known_.key);
        }
        known_.key = rest().substr(0, *longest);
        at_ += *longest + mark.size();
        return known_.key;
    }

    // The marks of a value between marks.
    struct ValueMarks {
        std::string_view close;
        std::string_view next;         // begins another value of the call
        std::string_view parent;       // ends the call
        std::string_view call;         // begins another call
        std::string_view middle = {};  // stands between the name of a value and the value
    };

    // The value up to the mark that closes it. A value may hold that mark itself: more of the call follows
    // the one that is meant. `given`: the arguments so far.
    std::optional<std::string_view> value_until(const ValueMarks& marks, const Json& given) {
        const size_t first = text_.find(marks.close, at_);
        const size_t parent = text_.find(marks.parent, at_);
        const size_t barrier = next_call(marks);
        size_t end = first;
        while (end < barrier && !more_follows(marks, end)) end = text_.find(marks.close, end + 1);
        const bool missing = end >= barrier && parent < first;
        if (end >= barrier) end = std::min(first, parent);
        if (end == text_.npos) return {};
        const std::optional<size_t> next = next_inside(marks, end, given);
        if (!problem_.empty()) return {};
        if (missing || next) {
            slip(fmt::format("{} is missing", marks.close));
            const std::string_view value = text_.substr(at_, next.value_or(end) - at_);
            at_ += value.size();
            // White space before the next mark sets it apart.
            return next ? value.substr(0, value.find_last_not_of(kCallSpaces) + 1) : value;
        }
        std::string_view value = text_.substr(at_, end - at_);
        at_ = end + marks.close.size();
        while (trimmed_text(value).ends_with(marks.close)) {
            slip(fmt::format("{} stands twice", marks.close));
            value = value.substr(0, value.rfind(marks.close));
        }
        return value;
    }

    bool refuse(std::string_view why) {
        if (problem_.empty()) problem_ = why;
        return false;
    }

    std::optional<Json> json() {
        // The prompts of some families show the form of a call so.
        if (rest().starts_with("{{\"")) {
            slip("{ stands twice");
            ++at_;
        }
        const bool nested = rest().starts_with("{") || rest().starts_with("[");
        const size_t end = nested ? json_end(text_, at_) : text_.npos;
        if (end != text_.npos) {
            Json value = read_json(text_.substr(at_, end - at_));
            if (!value.is_discarded()) {
                at_ = end;
                return value;
            }
        }
        Mending mending;
        size_t at = at_;
        std::optional<Json> mended = nested ? read_mended_json(text_, at, mending) : std::nullopt;
        if (!mended) {
            refuse(mending.problem.empty() ? "is no JSON" : mending.problem);
            return {};
        }
        for (std::string& each : mending.slips) slip(std::move(each));
        at_ = at;
        return mended;
    }

    // The arguments of a function that is named already, and whose name is whole.
    std::optional<Json> arguments(std::string_view name) {
        skip_spaces();
        const Json* function = find_function(tools_, name);
        const bool none = at_end() || rest().starts_with("<") || rest().starts_with("```") ||
                          rest().starts_with("[TOOL_CALLS]");
        if (!none || !function || !needs_no_arguments(*function)) return json();
        slip("no arguments are written");
        return Json::object();
    }

    bool add(std::string_view name, Json arguments, std::string id = {}) {
        if (name.empty() || name.find_first_of(" \t\r\n{}<>[]\"") != name.npos)
            return refuse("names no function");
        // Some models write the object as a text that holds it.
        if (arguments.is_string()) arguments = arguments_in(arguments.get<std::string>());
        if (arguments.is_null()) arguments = Json::object();
        if (!arguments.is_object()) return refuse("has arguments that are no object");
        calls_.push_back({std::move(id), std::string(name), std::move(arguments)});
        return true;
    }

    bool add_object(const Json& call) {
        if (!call.is_object()) return refuse("is no object");
        if (call.contains("function") && call["function"].is_object()) return add_object(call["function"]);
        const auto text = [&](const char* key) {
            const auto found = call.find(key);
            return found != call.end() && found->is_string() ? found->get<std::string>() : std::string();
        };
        const auto first = [&](const char* key, const char* fallback) {
            return text(key).empty() ? text(fallback) : text(key);
        };
        const std::string name =
            first("name", "function").empty() ? text("tool_name") : first("name", "function");
        for (const char* key : {"arguments", "parameters"})
            if (call.contains(key)) return add(name, call[key], first("id", "tool_call_id"));
        const Json* function = find_function(tools_, name);
        if (!function || !needs_no_arguments(*function) || has_further_members(call))
            return refuse("has neither arguments nor parameters");
        slip("no arguments are written");
        return add(name, Json::object(), first("id", "tool_call_id"));
    }

private:
    // Where the call ends that another one follows.
    size_t next_call(const ValueMarks& marks) const {
        for (size_t at = text_.find(marks.parent, at_); at != text_.npos;
             at = text_.find(marks.parent, at + 1)) {
            CallCursor behind(text_, at + marks.parent.size(), tools_);
            behind.skip_spaces();
            // Qwen3-Coder has each call in further marks.
            if (marks.call == "<function=" && behind.take("</tool_call>")) {
                behind.skip_spaces();
                behind.take("<tool_call>");
                behind.skip_spaces();
            }
            if (behind.rest().starts_with(marks.call)) return at;
        }
        return text_.npos;
    }

    // Where a value ends before `end`, for another parameter of the function begins there and the mark that
    // closes this one is missing. Where it may be so or not, the call is refused.
    std::optional<size_t> next_inside(const ValueMarks& marks, size_t end, const Json& given) {
        constexpr size_t kMostMarks = 100;  // of which each is looked for in the rest
        if (!known_.properties) return {};
        size_t looked_at = 0;
        for (size_t at = text_.find(marks.next, at_); at < end; at = text_.find(marks.next, at + 1)) {
            const std::string_view before = text_.substr(at_, at - at_);
            const size_t last = before.find_last_not_of(" \t\r\n,;");
            // A value that begins with a mark shows it; nothing is missing before.
            if (last == before.npos) continue;
            const std::optional<std::string> name = name_at(at + marks.next.size());
            if (!name) continue;
            if (++looked_at > kMostMarks) {
                refuse(fmt::format("has a value that holds more than {} marks of parameters", kMostMarks));
                return {};
            }
            const bool closes = before.substr(0, last + 1).ends_with(marks.close);
            const bool own_line = before[before.find_last_not_of(" \t")] == '\n';
            const bool begins = !closes && may_begin(marks, *name, at, end, given);
            if (begins && !may_hold(marks, *name, end, given)) return at;
            if (!begins && !closes && !own_line) continue;
            refuse(
                fmt::format("has a value that holds {}{}, which may begin another one", marks.next, *name));
            return {};
        }
        return {};
    }

    // The parameter of the function whose name, with the mark behind it, stands at a place.
    std::optional<std::string> name_at(size_t at) const {
        const std::string_view behind = text_.substr(at);
        for (const auto& [name, schema] : known_.properties->items())
            if (behind.starts_with(name) && behind.substr(name.size()).starts_with(known_.end)) return name;
        return {};
    }

    bool comes_later(const ValueMarks& marks, const std::string& name, size_t end) const {
        const size_t later = text_.find(fmt::format("{}{}{}", marks.next, name, known_.end), end);
        return later < text_.find(marks.parent, end);
    }

    // True when a value may end at a mark, and the parameter that is named there begin.
    bool may_begin(const ValueMarks& marks, const std::string& name, size_t at, size_t end,
                   const Json& given) const {
        if (name == known_.key || given.contains(name) || comes_later(marks, name, end)) return false;
        size_t begin = at + marks.next.size() + name.size() + known_.end.size();
        if (!marks.middle.empty()) begin = text_.find(marks.middle, begin);
        if (begin >= end) return false;
        begin += marks.middle.size();
        const size_t value_end =
            std::min({text_.find(marks.close, begin), text_.find(marks.next, begin), end});
        const std::string_view value = text_.substr(begin, std::max(begin, value_end) - begin);
        return fits_parameter(known_.function, known_.key, text_.substr(at_, at - at_)) &&
               fits_parameter(known_.function, name, value);
    }

    // True when all up to `end` may be one value, which holds the name of a parameter.
    bool may_hold(const ValueMarks& marks, const std::string& name, size_t end, const Json& given) const {
        const bool needed =
            is_required(*known_.function, name) && !given.contains(name) && !comes_later(marks, name, end);
        return !needed && fits_parameter(known_.function, known_.key, text_.substr(at_, end - at_));
    }

    // Behind the mark at this place.
    bool more_follows(const ValueMarks& marks, size_t at) const {
        const size_t behind = text_.find_first_not_of(kCallSpaces, at + marks.close.size());
        const std::string_view following = text_.substr(std::min(behind, text_.size()));
        return following.starts_with(marks.next) || following.starts_with(marks.parent);
    }

    // Beside the name, the kind and the id.
    static bool has_further_members(const Json& call) {
        for (const auto& [key, value] : call.items())
            if (key != "name" && key != "function" && key != "tool_name" && key != "type" && key != "id" &&
                key != "tool_call_id")
                return true;
        return false;
    }

    Json arguments_in(const std::string& text) {
        if (trimmed_text(text).empty()) return Json::object();
        CallCursor inner(text, 0, tools_);
        inner.skip_spaces();
        std::optional<Json> read = inner.json();
        inner.skip_spaces();
        if (!read || !inner.at_end()) return Json(Json::value_t::discarded);
        for (const std::string& each : inner.slips()) slip(each);
        return std::move(*read);
    }

protected:
    std::string_view text_;
    size_t at_;
    const Json& tools_;
    std::vector<ToolCall> calls_;

private:
    // The function whose call is read, the names of its parameters, the mark behind each, and the name that
    // was read last.
    struct Known {
        const Json* function = nullptr;
        const Json* properties = nullptr;
        std::string_view end;
        std::string_view key;
    };
    Known known_;
    std::string problem_;
    std::vector<std::string> slips_;
};

}  // namespace redline
