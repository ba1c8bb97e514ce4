#include "places/remote_ping.h"

#include "places/remote_messages.h"
#include "places/timing.h"

#include <chrono>
#include <thread>

namespace redline {

bool RemotePing::took(uint32_t from, std::span<const std::byte> message) {
    Unpacker in(message);
    const auto kind = in.next<RemoteKind>();
    if (kind == RemoteKind::ping) {
        WireMessage back(message.begin(), message.end());
        back[0] = std::byte(RemoteKind::pong);
        wire_.send(from, std::move(back));
        return true;
    }
    if (kind != RemoteKind::pong) return false;
    const std::lock_guard lock(mutex_);
    answered_ = std::max(answered_, in.next<uint64_t>());
    came_.notify_all();
    return true;
}

double RemotePing::seconds(uint32_t rank, uint64_t bytes) {
    using Clock = std::chrono::steady_clock;
    constexpr int kTries = 15;
    constexpr std::chrono::milliseconds kApart(2);
    constexpr std::chrono::seconds kMost(2);
    const std::lock_guard one(measuring_);
    const std::vector<std::byte> load(bytes);
    std::vector<double> all;
    for (int i = 0; i < kTries; ++i) {
        std::this_thread::sleep_for(kApart);
        std::unique_lock lock(mutex_);
        const uint64_t number = ++sent_;
        lock.unlock();
        const auto begin = Clock::now();
        wire_.send(rank, Packer().add(RemoteKind::ping, number, load).take());
        lock.lock();
        const Expecting expecting(wire_);
        if (!came_.wait_for(lock, kMost, [&] { return answered_ >= number; })) return 0.0;
        all.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / 2);
    }
    return median(std::move(all));
}

}  // namespace redline
