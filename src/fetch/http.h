// HTTP by libcurl, which is loaded at its first use: nothing is ever fetched unless asked for. Proxies are
// taken from the environment, as by curl.
#pragma once

#include "base/result.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace redline {

struct HttpRequest {
    std::string url;                   // http or https; redirects are followed
    std::vector<std::string> headers;  // "Name: value"; not sent to another host after a redirect
    long stall_seconds = 60;           // an error after so long without a byte
};

struct HttpResponse {
    long status = 0;
    std::map<std::string, std::string> headers;  // of the last response; names in lower case
};

// Receives the body piece by piece, after the headers; an error ends the transfer.
using HttpBody = std::function<Status(const HttpResponse& response, std::span<const std::byte> bytes)>;

// An error when no response came: no network, unknown host, refused, stalled, cancelled. Other statuses are
// for the caller to judge, who gets the body in any case.
Result<HttpResponse> http_get(const HttpRequest& request, const HttpBody& body,
                              const std::atomic<bool>* cancel = nullptr);

}  // namespace redline
