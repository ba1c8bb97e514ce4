// Who may use a server: the names by which it is called, the pages of browsers that may read its answers, and
// keys.
#pragma once

#include "base/result.h"
#include "serve/http/exchange.h"

namespace redline::serve {

struct AccessOptions {
    std::vector<std::string> keys = {};     // one of them comes with each request; empty: none is needed
    std::vector<std::string> hosts = {};    // names of this server beside those that nobody else can have
    std::vector<std::string> origins = {};  // of pages that may use it, beside this machine's; "*": all
};

// The header Host names this server. Addresses, names without a dot, localhost and the names of networks
// without a registry always do. Others may belong to a page whose name leads here, which a browser then takes
// for this server.
bool is_trusted_host(std::string_view host, const AccessOptions& options);

// A page of this origin may use the server.
bool is_trusted_origin(std::string_view origin, std::string_view host, const AccessOptions& options);

// "Authorization: Bearer KEY" or "X-Api-Key: KEY" has one of the keys. The time this takes does not depend on
// how much of a key is right.
bool has_key(const HttpRequest& request, const AccessOptions& options);

// The keys in a file, one in a line; empty lines and those that begin with # are none.
Result<std::vector<std::string>> read_keys(const std::string& path);

}  // namespace redline::serve
