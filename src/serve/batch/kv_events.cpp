#include "serve/batch/kv_events.h"

#include "serve/batch/zero_mq.h"

#include <bit>
#include <chrono>

namespace redline::serve {

namespace {

// Batches that wait for the thread that sends; older ones are dropped.
constexpr size_t kMostBatches = 10000;

// Writes msgpack, whose numbers are big-endian.
class Msgpack {
public:
    void list(size_t count) { sized(count, 0x90, 15, 0xDC); }
    void map(size_t count) { sized(count, 0x80, 15, 0xDE); }
    void nothing() { out_ += char(0xC0); }
    void number(uint64_t value) {
        if (value < 0x80) return bytes(value, 1);
        const int width = value <= UINT8_MAX ? 1 : value <= UINT16_MAX ? 2 : value <= UINT32_MAX ? 4 : 8;
        out_ += char(0xCC + std::countr_zero(unsigned(width)));
        bytes(value, width);
    }
    void real(double value) {
        out_ += char(0xCB);
        bytes(std::bit_cast<uint64_t>(value), 8);
    }
    void text(std::string_view value) {
        // Names here are short.
        out_ += char(0xA0 | (value.size() & 31));
        out_ += value;
    }
    std::string take() { return std::move(out_); }

private:
    void bytes(uint64_t value, int width) {
        for (int shift = 8 * (width - 1); shift >= 0; shift -= 8) out_ += char(uint8_t(value >> shift));
    }
    void sized(size_t count, uint8_t small, size_t most, uint8_t large) {
        if (count <= most) {
            out_ += char(small | count);
        } else {
            const bool wide = count > UINT16_MAX;
            out_ += char(large + (wide ? 1 : 0));
            bytes(count, wide ? 4 : 2);
        }
    }
    std::string out_;
};

template <typename Number>
void write_numbers(Msgpack& out, const std::vector<Number>& numbers) {
    out.list(numbers.size());
    for (const Number number : numbers) out.number(uint64_t(number));
}

// Members in vLLM's order, which lists go by.
class EventWriter {
public:
    EventWriter(Msgpack& out, EventForm form) : out_(out), form_(form) {}
    void begin(std::string_view type, size_t members) {
        form_ == EventForm::maps ? out_.map(members + 1) : out_.list(members + 1);
        member("type");
        out_.text(type);
    }
    Msgpack& member(std::string_view name) {
        if (form_ == EventForm::maps) out_.text(name);
        return out_;
    }

private:
    Msgpack& out_;
    const EventForm form_;
};

void write_event(Msgpack& out, EventForm form, const HeldBlocks::Change& change) {
    EventWriter event(out, form);
    switch (change.kind) {
        case HeldBlocks::Change::Kind::stored:
            event.begin("BlockStored", 7);
            write_numbers(event.member("block_hashes"), change.blocks);
            event.member("parent_block_hash");
            change.parent ? out.number(*change.parent) : out.nothing();
            write_numbers(event.member("token_ids"), change.tokens);
            event.member("block_size").number(HeldBlocks::kTokens);
            event.member("lora_id").nothing();
            event.member("medium").text("GPU");  // the fastest that a worker has, in the words of vLLM
            event.member("lora_name").nothing();
            break;
        case HeldBlocks::Change::Kind::removed:
            event.begin("BlockRemoved", 2);
            write_numbers(event.member("block_hashes"), change.blocks);
            event.member("medium").text("GPU");
            break;
        case HeldBlocks::Change::Kind::cleared:
            event.begin("AllBlocksCleared", 0);
            break;
    }
}

}  // namespace

std::string event_batch(std::span<const HeldBlocks::Change> changes, double seconds, uint32_t rank,
                        EventForm form) {
    Msgpack out;
    out.list(3);
    out.real(seconds);
    out.list(changes.size());
    for (const HeldBlocks::Change& change : changes) write_event(out, form, change);
    out.number(rank);
    return out.take();
}

Result<std::unique_ptr<KvEvents>> KvEvents::open(const Options& options) {
    std::unique_ptr<ZeroMq> socket = RL_TRY(ZeroMq::publisher(options.endpoint));
    return std::unique_ptr<KvEvents>(new KvEvents(std::move(socket), options));
}

KvEvents::KvEvents(std::unique_ptr<ZeroMq> socket, Options options)
    : options_(std::move(options)), socket_(std::move(socket)) {
    sender_ = std::thread([this] { run(); });
}

KvEvents::~KvEvents() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    sender_.join();
}

void KvEvents::publish(std::vector<HeldBlocks::Change> changes, uint32_t rank) {
    using namespace std::chrono;
    const double seconds = duration<double>(system_clock::now().time_since_epoch()).count();
    {
        const std::lock_guard lock(mutex_);
        if (waiting_.size() >= kMostBatches) waiting_.pop_front();
        waiting_.push_back({number_++, seconds, rank, std::move(changes)});
    }
    changed_.notify_one();
}

void KvEvents::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        const Batch batch = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        std::string number;
        for (int shift = 56; shift >= 0; shift -= 8) number += char(uint8_t(batch.number >> shift));
        const std::string parts[] = {options_.topic, number,
                                     event_batch(batch.changes, batch.seconds, batch.rank, options_.form)};
        socket_->send(parts);
        lock.lock();
    }
}

}  // namespace redline::serve
