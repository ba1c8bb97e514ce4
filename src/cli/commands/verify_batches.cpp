#include "cli/commands/verify_batches.h"

#include "cli/terminal/terminal.h"

#include <algorithm>
#include <cmath>

namespace redline::cli {

namespace {

// A large model on a CPU reads a part of the prompt in it, a GPU all of it in every size.
constexpr std::chrono::seconds kReferenceTime(30), kDeviceTime(60);

std::string numbers(std::span<const uint32_t> all) {
    std::string text;
    for (size_t i = 0; i < all.size(); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : i + 1 < all.size() ? ", " : " and ", all[i]);
    return text;
}

}  // namespace

std::string agreement_row(const std::string& id, bool agrees, const Agreement& a) {
    return fmt::format("{:<12}{:<10}{:>12}{:>11}{:>11.2g}{:>11.2g}{:>13.2g}{:>9.2g}\n", id,
                       agrees ? "agrees" : "DISAGREES", fmt::format("{}/{}", a.same, a.tokens), a.near_ties,
                       a.mean_kl, a.worst_kl, a.worst_error, a.bound);
}

Json finite(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json agreement_json(const Agreement& a) {
    return {{"agrees", a.agrees},
            {"tokens", a.tokens},
            {"same_top", a.same},
            {"near_ties", a.near_ties},
            {"kl_mean", finite(a.mean_kl)},
            {"kl_worst", finite(a.worst_kl)},
            {"error_median", finite(a.median_error)},
            {"error_worst", finite(a.worst_error)},
            {"worst", {{"text", a.worst_text}, {"token", a.worst_token}}},
            {"bound", a.bound}};
}

bool BatchReads::agrees() const {
    return std::ranges::all_of(sizes, &BatchRead::agrees);
}

std::string BatchReads::rows() const {
    std::string out;
    for (const BatchRead& size : sizes) {
        const std::string name = fmt::format("  by {}", size.batch);
        if (size.beside_reference)
            out += agreement_row(name, size.agrees(), *size.beside_reference);
        else if (sizes.size() > 1)
            out += fmt::format("{:<12}{:<10}{:>58.2g}{:>9.2g}\n", name, size.odd ? "DIFFERS" : "is alike",
                               size.error, size.bound);
    }
    return out;
}

std::string BatchReads::text(const std::string& device) const {
    std::vector<uint32_t> wrong, right;
    for (const BatchRead& size : sizes) (size.agrees() ? right : wrong).push_back(size.batch);
    std::string out;
    for (const std::string& what : left_out) out += fmt::format("left out on {}: {}\n", device, what);
    if (wrong.empty()) return out;
    out += fmt::format("{}: a prompt that is read in steps of {} tokens gives other logits ", device,
                       numbers(wrong));
    if (right.empty()) return out + "than the CPU; a newer driver may help, until then --device cpu\n";
    return out + fmt::format("than in steps of {}; until a newer driver helps, --batch-size {}\n",
                             numbers(right), right.back());
}

Json BatchReads::as_json() const {
    Json rows = Json::array();
    for (const BatchRead& size : sizes)
        rows.push_back(
            {{"batch", size.batch},
             {"read", size.read.read},
             {"agrees", size.agrees()},
             {"beside_reference",
              size.beside_reference ? agreement_json(*size.beside_reference) : Json(nullptr)},
             {"beside_others",
              {{"agrees", !size.odd}, {"error_worst", finite(size.error)}, {"bound", size.bound}}}});
    return {{"agrees", agrees()}, {"sizes", rows}, {"left_out", left_out}};
}

Result<BatchRead> BatchCheck::read(uint32_t batch, Deadline deadline, const std::atomic<bool>* cancel) const {
    const SessionOptions options = long_session(prompt_, batch, options_);
    ProgressLine progress(fmt::format("reading in steps of {}", batch), Counted::tokens);
    BatchRead out;
    out.batch = batch;
    out.roundings = RL_TRY(roundings(model_, options));
    out.read = RL_TRY(read_long(
        model_, prompt_, options, deadline,
        [&](uint64_t done, uint64_t total) { progress.update(done, total); }, cancel));
    return out;
}

Status BatchCheck::read_reference(const std::atomic<bool>* cancel) {
    if (prompt_.batches.empty()) return {};
    const SessionOptions options = long_session(prompt_, prompt_.batches[0], options_);
    const MemoryNeed need = RL_TRY(memory_need(model_, model_.backend(), options));
    if (const Status fits = check_fits(need, model_, model_.backend().device(), options.context); !fits) {
        reference_left_out_ = "the CPU has no memory for a long prompt";
        return {};
    }
    reference_ = RL_TRY(read(options.batch, std::chrono::steady_clock::now() + kReferenceTime, cancel));
    const size_t got = reference_->read.read, all = prompt_.tokens.size();
    if (got < all)
        reference_left_out_ = fmt::format("the CPU has read {} of the prompt's {} tokens within {} s", got,
                                          all, kReferenceTime.count());
    return {};
}

Result<BatchReads> BatchCheck::look_at(const DeviceInfo& device, const std::atomic<bool>* cancel) const {
    BatchReads all;
    if (prompt_.batches.empty())
        all.left_out.push_back(
            fmt::format("a context of {} tokens has no room for a prompt of more than one step",
                        model_.config().train_context));
    if (!reference_left_out_.empty()) all.left_out.push_back(reference_left_out_);
    const auto start = std::chrono::steady_clock::now();
    auto longest = start - start;
    for (const uint32_t batch : prompt_.batches) {
        const auto before = std::chrono::steady_clock::now();
        const MemoryNeed need =
            RL_TRY(memory_need(model_, model_.backend(), long_session(prompt_, batch, options_)));
        if (need.total() > device.memory.bytes) {
            all.left_out.push_back(fmt::format("steps of {} tokens: {} are needed, it offers {}", batch,
                                               format_bytes(need.total()), device.memory.text()));
        } else if (before + longest > start + kDeviceTime) {
            all.left_out.push_back(fmt::format("steps of {} tokens, which would take more than {} s", batch,
                                               kDeviceTime.count()));
        } else {
            all.sizes.push_back(RL_TRY(read(batch, start + kDeviceTime, cancel)));
            longest = std::max(longest, std::chrono::steady_clock::now() - before);
            const size_t got = all.sizes.back().read.read;
            if (got < prompt_.tokens.size())
                all.left_out.push_back(
                    fmt::format("steps of {} tokens: {} of {} tokens were read within {} s", batch, got,
                                prompt_.tokens.size(), kDeviceTime.count()));
        }
    }
    compare(all);
    return all;
}

void BatchCheck::compare(BatchReads& all) const {
    const bool has_experts = model_.config().experts > 0;
    const auto beside = [&](const BatchRead& one, const BatchRead& other) {
        return compare_reads(one.read, other.read, rounding_bound(one.roundings, other.roundings),
                             has_experts);
    };
    const auto agree = [&](size_t a, size_t b) {
        BatchRead &one = all.sizes[a], &other = all.sizes[b];
        const Agreement found = beside(one, other);
        for (BatchRead* each : {&one, &other})
            if (each->bound == 0.0 || found.worst_error > each->error) {
                each->error = found.worst_error;
                each->bound = found.bound;
            }
        return found.tokens == 0 || found.agrees;
    };
    for (const size_t i : odd_reads(all.sizes.size(), agree)) all.sizes[i].odd = true;
    if (!reference_) return;
    for (BatchRead& size : all.sizes)
        if (const Agreement found = beside(*reference_, size); found.tokens > 0)
            size.beside_reference = found;
    // Two sizes that differ are both odd: where the reference parts from one of them, the other is right.
    const auto parts = [](const BatchRead& size) {
        return size.beside_reference && !size.beside_reference->agrees;
    };
    if (std::none_of(all.sizes.begin(), all.sizes.end(), parts)) return;
    for (BatchRead& size : all.sizes)
        if (size.beside_reference && size.beside_reference->agrees) size.odd = false;
}

}  // namespace redline::cli
