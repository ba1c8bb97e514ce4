#include "serve/http/exchange.h"

#include <algorithm>
#include <charconv>
#include <random>

#include <fmt/format.h>

namespace redline::serve {

bool same_name(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view HttpRequest::header(std::string_view name) const {
    for (const HttpHeader& each : headers)
        if (same_name(each.name, name)) return each.value;
    return {};
}

std::string percent_decoded(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        unsigned code = 0;
        const char* const digits = text.data() + i + 1;
        const bool coded = text[i] == '%' && i + 2 < text.size() &&
                           std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
        out += coded ? char(code) : text[i];
        if (coded) i += 2;
    }
    return out;
}

std::string request_id(std::string_view given) {
    constexpr size_t kLongest = 128;
    constexpr std::string_view kKnown =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:+=/@";
    if (!given.empty() && given.size() <= kLongest && given.find_first_not_of(kKnown) == given.npos)
        return std::string(given);
    thread_local std::mt19937_64 random{std::random_device{}()};
    return fmt::format("req-{:016x}", random());
}

std::string_view status_text(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 204:
            return "No Content";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 413:
            return "Content Too Large";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 503:
            return "Service Unavailable";
    }
    return "Status";
}

}  // namespace redline::serve
