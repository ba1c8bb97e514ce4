#include "text/tokens/text_stream.h"

#include "text/tokens/unicode.h"

#include <algorithm>
#include <utility>

namespace redline {

std::string TextStream::push(std::string_view bytes) {
    held_ += bytes;
    std::string out;
    size_t at = 0;
    while (at < held_.size()) {
        const Utf8Step step = utf8_step(held_, at);
        if (step.kind == Utf8Step::Kind::cut) break;
        if (step.kind == Utf8Step::Kind::character)
            out.append(held_, at, step.bytes);
        else
            out += kReplacement;
        at += step.bytes;
    }
    held_.erase(0, at);
    return out;
}

std::string TextStream::finish() {
    std::string out = held_.empty() ? std::string() : std::string(kReplacement);
    held_.clear();
    return out;
}

StopMatcher::StopMatcher(const std::vector<std::string>& stops) {
    for (const std::string& text : stops) {
        if (text.empty()) continue;
        Stop stop{text, std::vector<size_t>(text.size(), 0), 0};
        for (size_t i = 1, length = 0; i < text.size(); ++i) {
            while (length > 0 && text[i] != text[length]) length = stop.border[length - 1];
            if (text[i] == text[length]) ++length;
            stop.border[i] = length;
        }
        stops_.push_back(std::move(stop));
    }
}

// Knuth-Morris-Pratt: amortised one comparison per character. True when the stop string is complete.
bool StopMatcher::advance(Stop& stop, char next) {
    while (stop.seen > 0 && stop.text[stop.seen] != next) stop.seen = stop.border[stop.seen - 1];
    if (stop.text[stop.seen] == next) ++stop.seen;
    return stop.seen == stop.text.size();
}

std::string StopMatcher::push(std::string_view text) {
    if (matched()) return {};
    for (size_t i = 0; i < text.size(); ++i) {
        const Stop* longest = nullptr;
        for (Stop& stop : stops_)
            if (advance(stop, text[i]) && (!longest || stop.text.size() > longest->text.size()))
                longest = &stop;
        if (!longest) continue;
        held_ += text.substr(0, i + 1);
        held_.resize(held_.size() - longest->text.size());
        match_ = longest->text;
        return std::exchange(held_, {});
    }
    held_ += text;
    size_t keep = 0;
    for (const Stop& stop : stops_) keep = std::max(keep, stop.seen);
    std::string out = held_.substr(0, held_.size() - keep);
    held_.erase(0, out.size());
    return out;
}

std::string StopMatcher::finish() {
    return std::exchange(held_, {});
}

}  // namespace redline
