#include "fragments.h"

#include "args.h"
#include "recorder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

namespace redline::vulkan {

namespace {

constexpr uint32_t kHalf = 32, kNone = 0xFFFF;  // as in show_fragments.comp

// An invocation's part of a factor, whose lines are rows of the weights or tokens.
struct Held {
    uint32_t first;                 // line
    std::vector<uint32_t> columns;  // of each line, in order
};

// The bits of `e` where `mask` has ones, side by side.
uint32_t taken_bits(uint32_t e, uint32_t mask) {
    uint32_t bits = 0;
    for (uint32_t i = 0, next = 0; i < 4; ++i)
        if (mask >> i & 1) bits |= (e >> i & 1) << next++;
    return bits;
}

// One invocation's elements, if they lie as `lines` says.
std::optional<Held> held(std::span<const uint32_t> found, uint32_t k, const Fragments::Lines& lines) {
    const uint32_t columns = uint32_t(found.size()) / lines.each;
    Held out = {found[0] / k, std::vector<uint32_t>(columns)};
    for (uint32_t e = 0; e < found.size(); ++e) {
        const uint32_t line = taken_bits(e, lines.bits), column = taken_bits(e, ~lines.bits);
        if (line == 0) out.columns[column] = found[e] % k;
    }
    for (uint32_t e = 0; e < found.size(); ++e) {
        const uint32_t line = taken_bits(e, lines.bits), column = taken_bits(e, ~lines.bits);
        if (found[e] != (out.first + line * lines.step) * k + out.columns[column]) return {};
    }
    return out;
}

// All invocations' elements, and how they lie; `at`: where each one's numbers begin. Empty where they have no
// such form.
std::vector<Held> all_held(std::span<const uint32_t> found, size_t at, uint32_t k, Fragments::Lines& lines) {
    uint32_t count = 0;
    while (count < kHalf && found[at + count] != kNone) ++count;
    if (count > 16 || !std::has_single_bit(count)) return {};
    for (lines.bits = 0; lines.bits < count; ++lines.bits) {
        lines.each = 1u << std::popcount(lines.bits);
        lines.step = lines.bits ? found[at + (lines.bits & -lines.bits)] / k - found[at] / k : 0;
        std::vector<Held> all;
        for (size_t first = at; first < found.size(); first += 2 * kHalf)
            if (const auto one = held(found.subspan(first, count), k, lines)) all.push_back(*one);
        if (all.size() * 2 * kHalf == found.size()) return all;
    }
    return {};
}

// Shift s and mask m such that values[i] == (i >> s & m).
bool is_field(std::span<const uint32_t> values, uint32_t mask, uint32_t& shift) {
    for (shift = 0; shift < 8; ++shift) {
        bool fits = true;
        for (uint32_t i = 0; i < values.size(); ++i) fits = fits && values[i] == (i >> shift & mask);
        if (fits) return true;
    }
    return false;
}

}  // namespace

const MatrixShape* narrow_shape(const DeviceReport& report) {
    const MatrixShape* best = nullptr;
    for (const MatrixShape& s : report.matrices) {
        const bool wanted = s.a == VK_COMPONENT_TYPE_FLOAT16_KHR && s.b == s.a &&
                            s.c == VK_COMPONENT_TYPE_FLOAT32_KHR && s.result == s.c;
        const bool fits = (s.m == 8 || s.m == 16) && (s.n == 8 || s.n == 16) && (s.k == 8 || s.k == 16);
        const auto rank = [](const MatrixShape& of) { return std::pair(of.m * of.k, 16 - of.n); };
        if (wanted && fits && (!best || rank(s) > rank(*best))) best = &s;
    }
    return best;
}

std::optional<Fragments> fragments_of(const MatrixShape& shape, std::span<const uint32_t> found) {
    Fragments out = {shape, 0, 0, 0, 0, {}, {}};
    const std::vector<Held> rows = all_held(found, 0, shape.k, out.rows),
                            tokens = all_held(found, kHalf, shape.k, out.tokens);
    if (rows.empty() || tokens.empty()) return {};
    std::vector<std::vector<uint32_t>> owned;
    std::vector<uint32_t> owners, places;
    for (size_t i = 0; i < rows.size(); ++i) {
        const std::vector<uint32_t>& columns = tokens[i].columns;
        if (rows[i].columns != columns || rows[i].first != tokens[i].first) return {};
        auto at = std::find(owned.begin(), owned.end(), columns);
        if (at == owned.end()) at = owned.insert(owned.end(), columns);
        owners.push_back(uint32_t(at - owned.begin()));
        places.push_back(rows[i].first);
    }
    out.owners = uint32_t(owned.size());
    std::set<uint32_t> columns;
    for (const auto& some : owned) columns.insert(some.begin(), some.end());
    out.place_mask = *std::max_element(places.begin(), places.end());
    // All is there, and once, but for invocations that have the same.
    const bool whole = out.owners * owned[0].size() == shape.k && columns.size() == shape.k &&
                       32 % owned[0].size() == 0 && (out.place_mask + 1) * out.rows.each == shape.m &&
                       (out.place_mask + 1) * out.tokens.each == shape.n && std::has_single_bit(out.owners) &&
                       std::has_single_bit(out.place_mask + 1);
    return whole && is_field(owners, out.owners - 1, out.owner_shift) &&
                   is_field(places, out.place_mask, out.place_shift)
               ? std::optional(out)
               : std::nullopt;
}

Result<std::optional<Fragments>> ask_fragments(Device& device, Memory& memory, Pipelines& pipelines) {
    constexpr std::string_view kAsking = "asking which elements of matrices invocations hold";
    const MatrixShape* shape = device.use_matrix() ? narrow_shape(device.report()) : nullptr;
    if (!shape || !Pipelines::exists("show_fragments")) return std::optional<Fragments>();
    const uint64_t bytes = uint64_t(device.subgroup()) * 2 * kHalf * 4;
    const Buffer shown = RL_TRY(memory.allocate(bytes, Use::readback, "elements of matrices"));
    Recorder recorder(device, pipelines);
    RL_TRY(recorder.dispatch({"show_fragments", 1, 1, {device.subgroup(), shape->m, shape->n, shape->k}},
                             {shown}, args::ElementArgs{}, {}));
    const Recording recording = RL_TRY(std::move(recorder).finish());
    const VkFence fence = RL_TRY(device.make_fence());
    Status status = device.submit(recording.segments, fence);
    if (status) status = device.wait(fence, kAsking);
    vkDestroyFence(device.handle(), fence, nullptr);
    RL_TRY(std::move(status));
    RL_TRY(shown.invalidate());
    std::vector<uint32_t> found(bytes / 4);
    std::memcpy(found.data(), shown.mapped(), bytes);
    return fragments_of(*shape, found);
}

}  // namespace redline::vulkan
