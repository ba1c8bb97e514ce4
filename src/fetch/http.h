// HTTP by libcurl, which is opened when it is first needed: nothing is ever fetched unless asked for. Proxies
// are taken from the environment, as by curl.
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
    std::vector<std::string> headers;  // "Name: value"; a redirect to another host does not get them
    long stall_seconds = 60;           // with no byte for so long it is an error
};

struct HttpResponse {
    long status = 0;
    std::map<std::string, std::string> headers;  // of the last response, names in small letters
};

// Gets the body piece by piece, after the headers are known; an error ends the transfer.
using HttpBody = std::function<Status(const HttpResponse& response, std::span<const std::byte> bytes)>;

// An error when no response came: no network, unknown host, refused, stalled, cancelled. Whatever the status
// says is for the caller, who gets the body in any case.
Result<HttpResponse> http_get(const HttpRequest& request, const HttpBody& body,
                              const std::atomic<bool>* cancel = nullptr);

}  // namespace redline
