#include "serve/batch/zero_mq.h"

#include "base/os/shared_library.h"

namespace redline::serve {

namespace {

constexpr const char* kLibrary = "libzmq.so.5";
// Constants of zmq.h.
constexpr int kPublisher = 1, kMore = 2, kLinger = 17, kSendLimit = 23, kIpv6 = 42;
constexpr int kLingerMilliseconds = 1000, kWaitingMessages = 100000;

struct Library {
    void* (*context)() = nullptr;
    int (*end_context)(void*) = nullptr;
    void* (*socket)(void*, int) = nullptr;
    int (*close)(void*) = nullptr;
    int (*set)(void*, int, const void*, size_t) = nullptr;
    int (*bind)(void*, const char*) = nullptr;
    int (*connect)(void*, const char*) = nullptr;
    int (*send)(void*, const void*, size_t, int) = nullptr;
    int (*fault)() = nullptr;
    const char* (*fault_text)(int) = nullptr;

    std::string last_fault() const { return fault_text(fault()); }
};

// Stays open. Null where it cannot be opened, with the reason.
const Library* library(std::string& why) {
    struct Opened {
        Library calls;
        std::string why;
    };
    static const Opened opened = [] {
        Opened out;
        os::LibraryFault fault;
        void* const file = os::open_library(kLibrary, fault);
        if (!file) {
            out.why = fault.kind == os::LibraryFault::Kind::missing || fault.message.empty()
                          ? "it is not installed"
                          : fault.message;
            return out;
        }
        const auto find = [&](auto& call, const char* name) {
            call = reinterpret_cast<std::decay_t<decltype(call)>>(os::find_symbol(file, name));
            if (!call && out.why.empty()) out.why = std::string("it has no ") + name;
        };
        Library& calls = out.calls;
        find(calls.context, "zmq_ctx_new");
        find(calls.end_context, "zmq_ctx_term");
        find(calls.socket, "zmq_socket");
        find(calls.close, "zmq_close");
        find(calls.set, "zmq_setsockopt");
        find(calls.bind, "zmq_bind");
        find(calls.connect, "zmq_connect");
        find(calls.send, "zmq_send");
        find(calls.fault, "zmq_errno");
        find(calls.fault_text, "zmq_strerror");
        return out;
    }();
    why = opened.why;
    return why.empty() ? &opened.calls : nullptr;
}

// The rule is vLLM's.
bool is_to_bind(const std::string& endpoint) {
    for (const char* word : {"*", "::", "0.0.0.0", "ipc://"})
        if (endpoint.find(word) != endpoint.npos) return true;
    return false;
}

const Library& opened_library() {
    std::string unused;
    return *library(unused);
}

}  // namespace

Result<std::unique_ptr<ZeroMq>> ZeroMq::publisher(const std::string& endpoint) {
    std::string why;
    const Library* const calls = library(why);
    if (!calls)
        return error(
            "--kv-events needs ZeroMQ's library {}: {}; the package libzmq5 of Debian and Ubuntu has it",
            kLibrary, why);
    std::unique_ptr<ZeroMq> made(new ZeroMq);
    made->context_ = calls->context();
    if (made->context_) made->socket_ = calls->socket(made->context_, kPublisher);
    if (!made->socket_) return error("--kv-events: ZeroMQ opens no socket: {}", calls->last_fault());
    const int on = 1;
    calls->set(made->socket_, kLinger, &kLingerMilliseconds, sizeof(int));
    calls->set(made->socket_, kSendLimit, &kWaitingMessages, sizeof(int));
    if (endpoint.find('[') != endpoint.npos) calls->set(made->socket_, kIpv6, &on, sizeof(int));
    const bool binds = is_to_bind(endpoint);
    if ((binds ? calls->bind : calls->connect)(made->socket_, endpoint.c_str()) != 0)
        return error("--kv-events cannot {} {}: {}; it takes tcp://*:PORT, tcp://HOST:PORT or ipc://PATH",
                     binds ? "listen on" : "connect to", endpoint, calls->last_fault());
    return made;
}

ZeroMq::~ZeroMq() {
    if (socket_) opened_library().close(socket_);
    if (context_) opened_library().end_context(context_);
}

void ZeroMq::send(std::span<const std::string> parts) {
    for (size_t i = 0; i < parts.size(); ++i)
        opened_library().send(socket_, parts[i].data(), parts[i].size(), i + 1 < parts.size() ? kMore : 0);
}

}  // namespace redline::serve
