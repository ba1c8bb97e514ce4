#include "places/remote_team.h"

#include <chrono>

namespace redline {

RemoteTeam::RemoteTeam(std::unique_ptr<Wire> wire) : wire_(std::move(wire)), ping_(*wire_), sums_(*wire_) {
    wire_->listen([this](uint32_t from, WireMessage message) { take(from, message); },
                  [this](uint32_t rank, const std::string& why) { take_loss(rank, why); });
}

RemoteTeam::~RemoteTeam() {
    end(0);
}

void RemoteTeam::end(int status) {
    if (std::exchange(ended_, true)) return;
    const bool broken = !problem().empty();
    {
        const std::lock_guard lock(mutex_);
        if (problem_.empty()) problem_ = "the job has ended";
    }
    sums_.stop();
    for (uint32_t rank = 1; rank < ranks(); ++rank) wire_->send(rank, Packer().add(RemoteKind::end).take());
    if (broken && status != 0) wire_->abort(status);
    wire_->finish();
}

void RemoteTeam::take(uint32_t from, const WireMessage& message) {
    if (ping_.took(from, message) || sums_.took(from, message)) return;
    Unpacker in(message);
    switch (in.next<RemoteKind>()) {
        case RemoteKind::hello: {
            auto hello = in.next<RemoteHello>();
            if (!in.status()) hello.problem = "it is of another build of redline";
            const std::lock_guard lock(mutex_);
            hellos_[from] = std::move(hello);
            break;
        }
        case RemoteKind::answer:
            take_answer(from, in);
            break;
        case RemoteKind::rows: {
            const auto chain = in.next<uint64_t>(), number = in.next<uint64_t>();
            auto rows = in.next<RemoteRows>();
            if (!in.status()) break;
            const std::lock_guard lock(mutex_);
            rows_[{chain, number}] = std::move(rows);
            break;
        }
        case RemoteKind::loss: {
            const auto rank = in.next<uint32_t>();
            const auto why = in.next<std::string>();
            if (in.status() && rank < ranks())
                take_loss(rank, fmt::format("{} says: {}", name_of(from), why));
            break;
        }
        default:
            break;
    }
    came_.notify_all();
}

void RemoteTeam::take_answer(uint32_t from, Unpacker& in) {
    const auto number = in.next<uint64_t>();
    const bool lost = in.next<bool>();
    Answer answer;
    in.get(answer.problem, answer.bytes);
    if (!in.status()) return;
    const std::lock_guard lock(mutex_);
    if (lost && lost_devices_.insert(from).second && problem_.empty())
        problem_ = fmt::format("{} has lost its device{}{}", name_of(from),
                               answer.problem.empty() ? "" : ": ", answer.problem);
    if (number > 0) answers_[number] = std::move(answer);
}

void RemoteTeam::take_loss(uint32_t rank, const std::string& why) {
    {
        const std::lock_guard lock(mutex_);
        if (problem_.empty()) problem_ = fmt::format("{} is lost: {}", name_of(rank), why);
    }
    sums_.stop();
    came_.notify_all();
}

std::string RemoteTeam::problem() const {
    const std::lock_guard lock(mutex_);
    return problem_;
}

bool RemoteTeam::lost_device(uint32_t rank) const {
    const std::lock_guard lock(mutex_);
    return lost_devices_.contains(rank);
}

Error RemoteTeam::failure() const {
    return error("{}", problem_);
}

Result<std::vector<RemoteHello>> RemoteTeam::hellos() {
    const Expecting expecting(*wire_);
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return hellos_.size() + 1 == ranks() || !problem_.empty(); });
    std::vector<RemoteHello> all;
    for (uint32_t rank = 1; rank < ranks(); ++rank) {
        const auto found = hellos_.find(rank);
        if (found != hellos_.end() && !found->second.problem.empty())
            return error("{}: {}", name_of(rank), found->second.problem);
    }
    if (!problem_.empty()) return failure();
    for (auto& [rank, hello] : hellos_) all.push_back(std::move(hello));
    return all;
}

uint64_t RemoteTeam::begin(uint32_t rank, RemoteCall what, Packer arguments) {
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = ++calls_;
    }
    wire_->send(rank, Packer().add(RemoteKind::call, number, what, arguments.take()).take());
    return number;
}

Result<std::vector<std::byte>> RemoteTeam::finish(uint32_t rank, uint64_t number) {
    const Expecting expecting(*wire_);
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return answers_.contains(number) || !problem_.empty(); });
    const auto found = answers_.find(number);
    if (found == answers_.end()) return failure();
    const Answer answer = std::move(found->second);
    answers_.erase(found);
    if (!answer.problem.empty()) return error("{}: {}", name_of(rank), answer.problem);
    return answer.bytes;
}

Result<std::vector<std::byte>> RemoteTeam::call(uint32_t rank, RemoteCall what, Packer arguments) {
    return finish(rank, begin(rank, what, std::move(arguments)));
}

void RemoteTeam::post(uint32_t rank, RemoteCall what, Packer arguments) {
    wire_->send(rank, Packer().add(RemoteKind::call, uint64_t(0), what, arguments.take()).take());
}

Result<RemoteRows> RemoteTeam::rows(uint64_t chain, uint64_t number, const std::atomic<bool>* cancel) {
    constexpr std::chrono::milliseconds kLook(2);
    const Expecting expecting(*wire_);
    const std::pair key(chain, number);
    std::unique_lock lock(mutex_);
    bool told = false;
    const auto over = [&] { return rows_.contains(key) || !problem_.empty(); };
    while (!over()) {
        if (cancel && !told)
            came_.wait_for(lock, kLook, over);
        else
            came_.wait(lock, over);
        if (!cancel || told || !cancel->load()) continue;
        told = true;
        for (uint32_t other = 1; other < ranks(); ++other)
            wire_->send(other, Packer().add(RemoteKind::cancel, chain, number).take());
    }
    // Steps before this one that were given up may have left rows.
    rows_.erase(rows_.lower_bound({chain, 0}), rows_.lower_bound(key));
    const auto found = rows_.find(key);
    if (found == rows_.end()) return failure();
    RemoteRows rows = std::move(found->second);
    rows_.erase(found);
    if (!rows.problem.empty()) return error("{}", rows.problem);  // it names its rank
    return rows;
}

double RemoteTeam::hop_seconds(uint32_t from, uint32_t to, uint64_t bytes) {
    if (from == 0 || to == 0) return ping_.seconds(std::max(from, to), bytes);
    const Result<std::vector<std::byte>> answer =
        call(from, RemoteCall::hop, std::move(Packer().add(to, bytes)));
    return answer ? Unpacker(answer.value()).next<double>() : 0.0;
}

double RemoteTeam::sum_seconds(const std::vector<uint32_t>& ranks, uint64_t floats) {
    const uint64_t chain = new_chain();
    std::vector<std::pair<uint32_t, uint64_t>> calls;
    for (const uint32_t rank : ranks)
        if (rank != wire_->rank())
            calls.emplace_back(rank,
                               begin(rank, RemoteCall::sums, std::move(Packer().add(chain, ranks, floats))));
    const double seconds = sums_.seconds(chain, ranks, floats);
    for (const auto& [rank, call] : calls)
        if (!finish(rank, call)) return 0.0;
    return seconds;
}

}  // namespace redline
