#include "cli/anonymous.h"

#include "base/os/system.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace redline::cli {

namespace {

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

bool is_hex(char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

// Where `what` stands as a whole word; a path ends at its next step.
std::string with_word(std::string text, const std::string& what, std::string_view by) {
    if (what.empty()) return text;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
        const size_t end = at + what.size();
        const bool whole = (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
        if (!whole) {
            at = end;
            continue;
        }
        text.replace(at, what.size(), by);
        at += by.size();
    }
    return text;
}

// Where `what` begins a path, or anywhere.
std::string with_text(std::string text, const std::string& what, std::string_view by, bool anywhere) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
        const bool begins = at == 0 || (!is_word(text[at - 1]) && text[at - 1] != '/' && text[at - 1] != '.');
        if (begins || anywhere) text.replace(at, what.size(), by);
        at += begins || anywhere ? by.size() : 1;
    }
    return text;
}

// The next step of a path behind each of these.
std::string without_homes(std::string text) {
    for (const std::string_view before : {"/home/", "/Users/", "/run/media/", "/media/", "/run/user/"}) {
        for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
            at += before.size();
            const size_t end = std::min(text.find_first_of("/ \t\n\"':,;)", at), text.size());
            if (end > at) text.replace(at, end - at, "USER");
        }
    }
    return text;
}

// Hexadecimal digits in groups of these lengths, between separators.
std::string without_groups(std::string text, std::initializer_list<size_t> lengths, char between,
                           std::string_view by) {
    const auto length_at = [&](size_t at) -> size_t {
        const size_t begin = at;
        for (const size_t length : lengths) {
            if (at > begin && (at >= text.size() || text[at++] != between)) return 0;
            for (size_t i = 0; i < length; ++i, ++at)
                if (at >= text.size() || !is_hex(text[at])) return 0;
        }
        return at < text.size() && (is_hex(text[at]) || text[at] == between) ? 0 : at - begin;
    };
    for (size_t at = 0; at < text.size(); ++at) {
        const bool within =
            at > 0 && (is_hex(text[at - 1]) || (text[at - 1] == between && at > 1 && is_hex(text[at - 2])));
        if (within) continue;
        if (const size_t length = length_at(at); length > 0) text.replace(at, length, by);
    }
    return text;
}

}  // namespace

Identity this_identity() {
    Identity identity;
    if (const char* home = std::getenv("HOME")) identity.home = home;
    while (identity.home.size() > 1 && identity.home.ends_with('/')) identity.home.pop_back();
    identity.user = os::user_name();
    identity.host = os::host_name();
    return identity;
}

std::string anonymous(std::string text, const Identity& identity) {
    constexpr size_t kShortest = 3;  // a shorter name is an ordinary word in too many places
    if (identity.home.size() > 1) text = with_word(std::move(text), identity.home, "~");
    text = without_homes(std::move(text));
    // root and localhost name nobody.
    if (identity.user.size() >= kShortest && identity.user != "root")
        text = with_word(std::move(text), identity.user, "USER");
    if (identity.host.size() >= kShortest && identity.host != "localhost")
        text = with_word(std::move(text), identity.host, "HOST");
    text = without_groups(std::move(text), {8, 4, 4, 4, 12}, '-', "UUID");
    return without_groups(std::move(text), {2, 2, 2, 2, 2, 2}, ':', "MAC");
}

std::string without_folder(std::string text, const std::string& model) {
    if (model.empty()) return text;
    std::error_code unknown;
    const std::filesystem::path whole = std::filesystem::canonical(model, unknown);
    // The whole path first, which ends with the other.
    for (const std::filesystem::path& path : {whole, std::filesystem::path(model)}) {
        const std::string folder = path.parent_path().string() + "/";
        if (folder.size() < 2) continue;
        const std::string name = path.filename().string();
        text = with_text(std::move(text), folder + name, name, path.is_absolute());
        // A short relative folder may stand in any text.
        if (path.is_absolute()) text = with_text(std::move(text), folder, "", true);
    }
    return text;
}

void change_texts(Json& value, const std::function<std::string(std::string)>& change) {
    if (value.is_string()) value = change(value.get<std::string>());
    if (!value.is_structured()) return;
    for (Json& each : value) change_texts(each, change);
}

}  // namespace redline::cli
