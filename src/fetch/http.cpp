#include "fetch/http.h"

#include "base/os/shared_library.h"

#include <curl/curl.h>

#include <memory>
#include <optional>

namespace redline {

namespace {

constexpr const char* kLibraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

struct Curl {
    decltype(&curl_global_init) global_init = nullptr;
    decltype(&curl_easy_init) init = nullptr;
    decltype(&curl_easy_setopt) set = nullptr;
    decltype(&curl_easy_perform) perform = nullptr;
    decltype(&curl_easy_getinfo) info = nullptr;
    decltype(&curl_easy_cleanup) cleanup = nullptr;
    decltype(&curl_easy_strerror) describe = nullptr;
    decltype(&curl_slist_append) append = nullptr;
    decltype(&curl_slist_free_all) free_list = nullptr;
};

Result<Curl> open_curl() {
    void* library = nullptr;
    os::LibraryFault fault;
    for (const char* name : kLibraries)
        if (!library) library = os::open_library(name, fault);
    if (!library)
        return error(
            "libcurl is not installed (looked for {}); Debian and Ubuntu have it in the package libcurl4",
            fmt::join(kLibraries, ", "));
    Curl curl;
    bool complete = true;
    const auto find = [&](auto& function, const char* name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(os::find_symbol(library, name));
        complete = complete && function;
    };
    find(curl.global_init, "curl_global_init");
    find(curl.init, "curl_easy_init");
    find(curl.set, "curl_easy_setopt");
    find(curl.perform, "curl_easy_perform");
    find(curl.info, "curl_easy_getinfo");
    find(curl.cleanup, "curl_easy_cleanup");
    find(curl.describe, "curl_easy_strerror");
    find(curl.append, "curl_slist_append");
    find(curl.free_list, "curl_slist_free_all");
    if (!complete || curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return error("libcurl is not usable: it lacks functions or does not start");
    return curl;
}

const Result<Curl>& curl() {
    static const Result<Curl> opened = open_curl();
    return opened;
}

struct Transfer {
    HttpResponse response;
    const HttpBody& body;
    const std::atomic<bool>* cancel;
    std::optional<Error> problem = {};  // of the body's receiver
};

size_t on_header(char* bytes, size_t size, size_t count, void* pointer) {
    auto& transfer = *static_cast<Transfer*>(pointer);
    const std::string_view line(bytes, size * count);
    // A new response begins: the headers of a redirect before it are dropped.
    if (line.starts_with("HTTP/")) {
        transfer.response = {};
        const size_t blank = line.find(' ');
        if (blank != std::string_view::npos) transfer.response.status = std::atol(line.data() + blank);
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return line.size();
    std::string name(line.substr(0, colon));
    for (char& c : name)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    const size_t from = line.find_first_not_of(" \t", colon + 1), to = line.find_last_not_of("\r\n \t");
    if (from != std::string_view::npos && to >= from)
        transfer.response.headers[name] = std::string(line.substr(from, to + 1 - from));
    return line.size();
}

size_t on_body(char* bytes, size_t size, size_t count, void* pointer) {
    auto& transfer = *static_cast<Transfer*>(pointer);
    const Status taken = transfer.body(transfer.response, std::as_bytes(std::span(bytes, size * count)));
    if (taken) return size * count;
    transfer.problem = taken.error();
    return 0;  // ends the transfer
}

int on_progress(void* pointer, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const auto& transfer = *static_cast<Transfer*>(pointer);
    return transfer.cancel && *transfer.cancel ? 1 : 0;
}

}  // namespace

Result<HttpResponse> http_get(const HttpRequest& request, const HttpBody& body,
                              const std::atomic<bool>* cancel) {
    if (!curl()) return curl().error();
    const Curl& call = curl().value();
    Transfer transfer{{}, body, cancel};
    const std::unique_ptr<CURL, decltype(call.cleanup)> handle(call.init(), call.cleanup);
    if (!handle) return error("libcurl could not begin a transfer: no memory");
    curl_slist* list = nullptr;
    for (const std::string& header : request.headers) list = call.append(list, header.c_str());
    const std::unique_ptr<curl_slist, decltype(call.free_list)> headers(list, call.free_list);
    const auto set = [&](CURLoption option, auto value) { call.set(handle.get(), option, value); };
    char why[CURL_ERROR_SIZE] = {};
    set(CURLOPT_ERRORBUFFER, static_cast<char*>(why));
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_USERAGENT, "redline");
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, 10L);
    set(CURLOPT_CONNECTTIMEOUT, 30L);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, request.stall_seconds);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_HEADERFUNCTION, on_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
    set(CURLOPT_WRITEFUNCTION, on_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, on_progress);
    set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
    const CURLcode code = call.perform(handle.get());
    if (transfer.problem) return *transfer.problem;
    if (code == CURLE_ABORTED_BY_CALLBACK) return error("interrupted");
    if (code == CURLE_OPERATION_TIMEDOUT && transfer.response.status > 0)
        return error("no byte came for {} seconds", request.stall_seconds);
    if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT)
        return error("{}; is there a network? A proxy is named by https_proxy, a mirror by HF_ENDPOINT",
                     *why ? why : call.describe(code));
    if (code != CURLE_OK) return error("{}", *why ? why : call.describe(code));
    return std::move(transfer.response);
}

}  // namespace redline
