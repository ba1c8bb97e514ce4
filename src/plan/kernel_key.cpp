#include "plan/kernel_key.h"

#include "base/hash.h"
#include "plan/backend.h"
#include "plan/ops/fields.h"
#include "plan/plan.h"

#include <algorithm>
#include <cmath>

namespace redline {

namespace {

// The slot of an op, if any, whose width follows the context, so that it must not tell kernels apart.
template <typename T>
constexpr Slot T::*kOfContext = nullptr;
template <>
constexpr Slot BlockScores::*kOfContext<BlockScores> = &BlockScores::y;
template <>
constexpr Slot ChooseBlocks::*kOfContext<ChooseBlocks> = &ChooseBlocks::scores;

// A fingerprint of all fields of an op, since any may select a kernel or change how it computes. A field of a
// type that is not known here does not compile.
class KeyHash {
public:
    explicit KeyHash(const Plan& plan) : plan_(plan) {}

    void add_op(Op op) {
        const auto all = [this](auto& o) {
            o.visit_indices([&](auto&... indices) { (note_rope(indices), ...); });
            add(o);
        };
        std::visit(all, op);
        ropes_.clear();
    }
    uint64_t value() const { return hash_.value(); }

private:
    template <typename T>
    void add(const T& value) {
        if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
            hash_.add(uint64_t(value));
        } else {
            static_assert(std::is_aggregate_v<T>, "the comparison of such fields is not defined here");
            visit_fields(value, [&](const auto&... fields) { (add_field(value, fields), ...); });
        }
    }
    template <typename T, typename Field>
    void add_field(const T& of, const Field& field) {
        if constexpr (std::is_same_v<Field, Slot>)
            add(field, kOfContext<T> && &field == &(of.*kOfContext<T>));
        else if constexpr (std::is_same_v<Field, uint32_t>)
            add_number(field);
        else
            add(field);
    }

    // Layers differ in their factors, which are arguments of the same kernel; only special values select
    // other code.
    void add(const float& value) {
        const int size = value == 0.0f ? 0 : std::abs(value) == 1.0f ? 1 : std::isfinite(value) ? 2 : 3;
        add(value < 0.0f ? -size : size);
    }
    // Slot numbers do not matter, only which fields name the same slot.
    void add(const Slot& slot, bool of_context) {
        add(place_of(slot));
        if (!slot) return;
        const SlotInfo& info = plan_.slot(slot);
        add(of_context ? 0 : info.width);
        add(info.of_outputs);
    }
    void add(const Weight& weight) {
        add(bool(weight));
        if (!weight) return;
        const WeightInfo& info = plan_.weight(weight);
        hash_.add(info.tensor.format->name);
        add(info.role);
        add(info.tensor.shape);
    }
    // Kernels are tried with a context of another length, so the number of rows is left out.
    void add(const Cache& cache) {
        add(bool(cache));
        if (!cache) return;
        const CacheInfo& info = plan_.cache(cache);
        add(info.types.keys);
        if (!info.types.are(info.types.keys)) add(info.types.values);
        add(info.kv_heads);
        add(info.head_dim);
        add(info.window);
        add(info.state_floats);
        add(info.rank);
        add(info.ratio);
    }
    // A set of all keys has no parts.
    void add(const KeySet& keys) {
        if (keys.kind == Keys::all) return;
        visit_fields(keys, [&](const auto&... fields) { (add_field(keys, fields), ...); });
    }
    template <typename T>
    void add(const std::optional<T>& value) {
        add(value.has_value());
        if (value) add(*value);
    }
    template <typename T, size_t kSize>
    void add(const std::array<T, kSize>& values) {
        for (const T& value : values) add(value);
    }

    // A rope's index stands for its kind; the angles are numbers in a table.
    void add_number(const uint32_t& number) {
        if (std::find(ropes_.begin(), ropes_.end(), &number) == ropes_.end()) return add(number);
        const RopeSpec& rope = plan_.ropes[number];
        add(rope.half_split);
        add(rope.inverse_frequency.size());
    }
    // The only uint32_t fields that visit_indices() visits are ropes.
    void note_rope(const uint32_t& rope) { ropes_.push_back(&rope); }
    void note_rope(const auto&) {}

    // The place among the slots seen so far, from 1; 0: no slot.
    size_t place_of(Slot slot) {
        if (!slot) return 0;
        const auto found = std::find(met_.begin(), met_.end(), slot);
        const size_t place = size_t(found - met_.begin()) + 1;
        if (found == met_.end()) met_.push_back(slot);
        return place;
    }

    const Plan& plan_;
    Hash64 hash_;
    std::vector<Slot> met_;
    std::vector<const uint32_t*> ropes_;  // fields of the op
};

// True when kernels of the op need to know which sequence a row belongs to, or its position.
bool knows_sequences(const Op& op) {
    const Access uses = access(op);
    return uses.reads_cache || uses.writes_cache || std::holds_alternative<SelectRows>(op) ||
           std::holds_alternative<AddPosition>(op) || std::holds_alternative<ChooseBlocks>(op);
}

// The types of the caches that an op names, states left out.
std::string cache_notes(const Op& op, const Plan& plan) {
    std::string notes;
    const auto add = [&](const auto& index) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(index)>, Cache>)
            if (index && !plan.cache(index).is_state())
                notes += fmt::format(", cache {}", cache_types_name(plan.cache(index).types));
    };
    std::visit([&](auto o) { o.visit_indices([&](auto&... indices) { (add(indices), ...); }); }, Op(op));
    return notes;
}

// The class of a plan's number of rows: only kernels for that class are tried with it.
std::string_view rows_note(const Plan& plan) {
    switch (row_class_of(plan.max_rows)) {
        case RowClass::one:
            return ", one row";
        case RowClass::few:
            return ", up to 8 rows";
        case RowClass::some:
            return ", up to 128 rows";
        case RowClass::many:
            return ", rows";
    }
    return "";
}

constexpr std::string_view kBeforeFingerprint = "; ";
constexpr size_t kFingerprintDigits = 16;
constexpr std::string_view kBeforeVariant = " in the variant ";

}  // namespace

std::string kernel_key(const Op& op, const Plan& plan) {
    KeyHash hash(plan);
    hash.add_op(op);
    return fmt::format("{}{}{}{}{}{:016x}", op_text(op, plan), cache_notes(op, plan),
                       plan.sizing.pages > 0 && knows_sequences(op) ? ", pages" : "", rows_note(plan),
                       kBeforeFingerprint, hash.value());
}

std::string handed_key(const Op& from, const Op& to, const Plan& plan) {
    KeyHash hash(plan);
    hash.add_op(from);
    hash.add_op(to);
    return fmt::format("the {} from {} to {}{}{:016x}", plan.max_rows > 1 ? "rows handed" : "row in int8",
                       op_text(from, plan), op_text(to, plan), kBeforeFingerprint, hash.value());
}

std::string verdict_key(std::string_view key, std::string_view taken) {
    return taken.empty() ? std::string(key) : fmt::format("{}{}{}", key, kBeforeVariant, taken);
}
std::string_view kernel_of_verdict(std::string_view key) {
    return key.substr(0, key.find(kBeforeVariant));
}

std::string kernel_text(std::string_view key) {
    const size_t tail = kBeforeFingerprint.size() + kFingerprintDigits;
    const std::string_view kernel = kernel_of_verdict(key), variant = key.substr(kernel.size());
    if (kernel.size() < tail) return std::string(key);
    const std::string_view end = kernel.substr(kernel.size() - tail),
                           digits = end.substr(kBeforeFingerprint.size());
    const bool is_tail = end.starts_with(kBeforeFingerprint) &&
                         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return is_tail ? fmt::format("{}{}", kernel.substr(0, kernel.size() - tail), variant) : std::string(key);
}

}  // namespace redline
