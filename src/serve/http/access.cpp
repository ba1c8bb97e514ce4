#include "serve/http/access.h"

#include "base/file.h"

#include <algorithm>

namespace redline::serve {

namespace {

// The name without the port, "[::1]:80" as "::1".
std::string_view host_name(std::string_view host) {
    if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
    if (std::ranges::count(host, ':') > 1) return host;
    return host.substr(0, host.find(':'));
}

bool is_address(std::string_view name) {
    if (name.find(':') != name.npos) return name.find_first_not_of("0123456789abcdefABCDEF:.%") == name.npos;
    return name.find_first_not_of("0123456789.") == name.npos;
}

bool ends_with(std::string_view name, std::string_view end) {
    return name.size() > end.size() && same_name(name.substr(name.size() - end.size()), end);
}

bool is_this_machine(std::string_view name) {
    return same_name(name, "localhost") || ends_with(name, ".localhost") || name.starts_with("127.") ||
           name == "::1" || name == "0.0.0.0";
}

bool equal_in_constant_time(std::string_view given, std::string_view key) {
    size_t different = given.size() ^ key.size();
    for (size_t i = 0; i < key.size(); ++i)
        different |= size_t(uint8_t(i < given.size() ? given[i] : 0) ^ uint8_t(key[i]));
    return different == 0;
}

}  // namespace

bool is_trusted_host(std::string_view host, const AccessOptions& options) {
    const std::string_view name = host_name(host);
    // Clients of HTTP/1.0 name none.
    if (name.empty() || is_address(name) || name.find('.') == name.npos || is_this_machine(name)) return true;
    for (const char* end : {".local", ".internal", ".lan", ".home.arpa"})
        if (ends_with(name, end)) return true;
    return std::ranges::any_of(options.hosts, [&](const std::string& each) { return same_name(each, name); });
}

bool is_trusted_origin(std::string_view origin, std::string_view host, const AccessOptions& options) {
    for (const std::string& each : options.origins)
        if (each == "*" || same_name(each, origin)) return true;
    const size_t scheme = origin.find("://");
    if (scheme == origin.npos) return false;
    const std::string_view rest = origin.substr(scheme + 3);
    return same_name(rest, host) || is_this_machine(host_name(rest));
}

bool has_key(const HttpRequest& request, const AccessOptions& options) {
    if (options.keys.empty()) return true;
    constexpr std::string_view kBearer = "Bearer ";
    std::string_view given = request.header("X-Api-Key");
    const std::string_view authorization = request.header("Authorization");
    if (authorization.size() > kBearer.size() && same_name(authorization.substr(0, kBearer.size()), kBearer))
        given = authorization.substr(kBearer.size());
    bool found = false;
    for (const std::string& key : options.keys) found |= equal_in_constant_time(given, key);
    return found;
}

Result<std::vector<std::string>> read_keys(const std::string& path) {
    constexpr uint64_t kMostBytes = 1 << 20;
    const std::string text = RL_TRY(read_text_file(path, kMostBytes));
    std::vector<std::string> keys;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        std::string key = text.substr(at, end - at);
        key.erase(key.find_last_not_of(" \t\r") + 1);
        key.erase(0, key.find_first_not_of(" \t"));
        if (!key.empty() && key[0] != '#') keys.push_back(std::move(key));
        at = end + 1;
    }
    if (keys.empty()) return error("{} has no keys: each line is one", path);
    return keys;
}

}  // namespace redline::serve
