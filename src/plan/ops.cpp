#include "plan/ops.h"

#include "plan/plan.h"

#include <cmath>

namespace redline {

namespace {

template <typename... Cases>
struct Overload : Cases... {
    using Cases::operator()...;
};
template <typename... Cases>
Overload(Cases...) -> Overload<Cases...>;

// Collects the first mismatch of an op's slots and weights.
class Checker {
public:
    Checker(const Plan& plan, std::string_view op) : plan_(plan), op_(op) {}

    void slot(const char* what, Slot s, uint64_t width) {
        if (!found(what, s)) return;
        if (plan_.slot(s).width != width)
            fail("{} is {} wide, {} expected", what, plan_.slot(s).width, width);
    }
    void matrix(const char* what, Weight w, uint64_t rows, uint64_t cols, uint64_t count = 1) {
        if (!found(what, w)) return;
        const Shape& have = plan_.weight(w).tensor.shape;
        const Shape want{count, rows, cols};
        if (have != want)
            fail("{} {} is ({}, {}, {}), ({}, {}, {}) expected", what, plan_.weight(w).tensor.name,
                 have.count, have.rows, have.cols, want.count, want.rows, want.cols);
    }
    void vector(const char* what, Weight w, uint64_t width) {
        if (!w) return;
        const WeightInfo& info = plan_.weight(w);
        if (info.role != WeightRole::vector) fail("{} {} is not a vector", what, info.tensor.name);
        if (info.tensor.shape.elements() != width)
            fail("{} {} has {} elements, {} expected", what, info.tensor.name, info.tensor.shape.elements(),
                 width);
    }
    const Plan& plan() const { return plan_; }
    uint64_t width(Slot s) const { return s ? plan_.slot(s).width : 0; }
    Shape shape(Weight w) const { return w ? plan_.weight(w).tensor.shape : Shape{0, 0, 0}; }
    void that(bool holds, const char* what) {
        if (!holds) fail("{}", what);
    }
    Status status() const { return first_ ? Status(*first_) : Status(); }

private:
    bool found(const char* what, Slot s) {
        if (s && size_t(s.index) < plan_.slots.size()) return true;
        fail("{} is missing", what);
        return false;
    }
    bool found(const char* what, Weight w) {
        if (w && size_t(w.index) < plan_.weights.size()) return true;
        fail("{} is missing", what);
        return false;
    }
    template <typename... Args>
    void fail(fmt::format_string<Args...> format, Args&&... args) {
        if (!first_) first_ = error("{}: {}", op_, fmt::format(format, std::forward<Args>(args)...));
    }

    const Plan& plan_;
    std::string_view op_;
    std::optional<Error> first_;
};

void check_heads(Checker& c, const HeadShape& s, Cache index) {
    const auto& caches = c.plan().caches;
    c.that(s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0, "head counts must not be zero");
    c.that(s.kv_heads == 0 || s.heads % s.kv_heads == 0, "heads must be a multiple of kv heads");
    if (!index || size_t(index.index) >= caches.size()) return c.that(false, "no such cache");
    const CacheInfo& cache = c.plan().cache(index);
    c.that(s.kv_heads == cache.kv_heads && s.head_dim == cache.head_dim, "the cache has other heads");
}

void check_rope(Checker& c, uint32_t rope, uint64_t head_dim) {
    const auto& ropes = c.plan().ropes;
    c.that(rope < ropes.size(), "no such rope");
    c.that(rope >= ropes.size() || ropes[rope].inverse_frequency.size() * 2 <= head_dim,
           "the rope turns more dimensions than a head has");
}

void check_op(Checker& c, const Embed& o) {
    c.slot("y", o.y, c.shape(o.table).cols);
}

void check_op(Checker& c, const RmsNorm& o) {
    c.slot("y", o.y, c.width(o.x));
    c.that(o.width > 0 && c.width(o.x) % o.width == 0, "the row is not a multiple of the norm's width");
    c.vector("gain", o.norm.gain, o.width);
}

void check_op(Checker& c, const Linear& o) {
    c.matrix("w", o.w, c.width(o.y), c.width(o.x));
    c.vector("gain", o.norm.gain, c.width(o.x));
    c.vector("bias", o.bias, c.width(o.y));
}

void check_op(Checker& c, const AddBias& o) {
    c.vector("bias", o.bias, c.width(o.y));
}

void check_op(Checker& c, const Add& o) {
    c.slot("x", o.x, c.width(o.y));
}

void check_op(Checker& c, const ActMul& o) {
    c.slot("gate", o.gate, c.width(o.y));
    c.slot("up", o.up, c.width(o.y));
}

void check_op(Checker& c, const Rope& o) {
    c.slot("x", o.x, uint64_t(o.heads) * o.head_dim);
    check_rope(c, o.rope, o.head_dim);
}

void check_op(Checker& c, const KvStore& o) {
    check_heads(c, o.shape, o.cache);
    c.slot("k", o.k, uint64_t(o.shape.kv_heads) * o.shape.head_dim);
    c.slot("v", o.v, uint64_t(o.shape.kv_heads) * o.shape.head_dim);
}

void check_op(Checker& c, const Attention& o) {
    check_heads(c, o.shape, o.cache);
    const bool known = o.cache && size_t(o.cache.index) < c.plan().caches.size();
    const uint64_t kept = known ? c.plan().cache(o.cache).window : 0;
    c.that(kept == 0 || (o.window > 0 && o.window <= kept), "the cache keeps less than the window");
    c.slot("q", o.q, uint64_t(o.shape.heads) * o.shape.head_dim);
    c.slot("y", o.y, uint64_t(o.shape.heads) * o.shape.head_dim);
    c.vector("sinks", o.sinks, o.shape.heads);
}

void check_op(Checker& c, const Route& o) {
    const Shape w = c.shape(o.w);
    c.matrix("w", o.w, w.rows, c.width(o.x));
    c.that(o.used > 0 && o.used <= w.rows, "experts used must be between 1 and the experts there are");
    c.slot("ids", o.ids, o.used);
    c.slot("scales", o.scales, o.used);
    c.vector("selection bias", o.selection_bias, w.rows);
}

void check_op(Checker& c, const ExpertLinear& o) {
    const Shape w = c.shape(o.w);
    c.slot("x", o.x, w.cols * (o.per_expert ? o.used : 1));
    c.slot("y", o.y, w.rows * (o.scales ? 1 : o.used));
    c.slot("ids", o.ids, o.used);
    if (o.scales) c.slot("scales", o.scales, o.used);
}

void check_op(Checker& c, const SelectRows& o) {
    c.slot("y", o.y, c.width(o.x));
    c.that(o.y && c.plan().slot(o.y).of_outputs, "y must be a slot of outputs");
}

void check_op(Checker& c, const LinearGroup& o) {
    c.that(o.count >= 1 && o.count <= o.parts.size(), "a group has 1 to 3 parts");
    c.vector("gain", o.norm.gain, c.width(o.x));
    for (uint32_t i = 0; i < o.count && i < o.parts.size(); ++i) {
        c.matrix("w", o.parts[i].w, c.width(o.parts[i].y), c.width(o.x));
        c.vector("bias", o.parts[i].bias, c.width(o.parts[i].y));
    }
}

void check_op(Checker& c, const Gated& o) {
    c.matrix("gate", o.gate, c.width(o.y), c.width(o.x));
    c.matrix("up", o.up, c.width(o.y), c.width(o.x));
    c.vector("gain", o.norm.gain, c.width(o.x));
}

void check_op(Checker& c, const RopeStore& o) {
    check_heads(c, o.shape, o.cache);
    c.slot("q", o.q, uint64_t(o.shape.heads) * o.shape.head_dim);
    c.slot("k", o.k, uint64_t(o.shape.kv_heads) * o.shape.head_dim);
    c.slot("v", o.v, uint64_t(o.shape.kv_heads) * o.shape.head_dim);
    c.vector("q norm", o.q_norm.gain, o.shape.head_dim);
    c.vector("k norm", o.k_norm.gain, o.shape.head_dim);
    check_rope(c, o.rope, o.shape.head_dim);
}

void check_op(Checker& c, const ExpertGated& o) {
    const Shape w = c.shape(o.gate);
    c.matrix("up", o.up, w.rows, w.cols, w.count);
    c.slot("x", o.x, w.cols);
    c.slot("ids", o.ids, o.used);
    c.slot("y", o.y, w.rows * o.used);
}

uint64_t matrix_flops(const Shape& w, uint64_t rows) {
    return 2 * rows * w.rows * w.cols;
}

// Experts that at least one of `rows` tokens picks, when each picks `used` of `count` evenly.
double experts_touched(uint64_t count, uint64_t used, uint64_t rows) {
    return double(count) * (1.0 - std::pow(1.0 - double(used) / double(count), double(rows)));
}

Cost expert_cost(const Tensor& w, uint64_t used, uint64_t rows) {
    const uint64_t one = w.bytes() / w.shape.count;
    return {uint64_t(double(one) * experts_touched(w.shape.count, used, rows)), 0,
            2 * rows * used * w.shape.rows * w.shape.cols};
}

}  // namespace

std::string_view op_name(const Op& op) {
    static constexpr std::string_view kNames[] = {
        "embed",        "rms_norm", "linear",     "add_bias",    "add",           "act_mul",
        "rope",         "kv_store", "attention",  "route",       "expert_linear", "select_rows",
        "linear_group", "gated",    "rope_store", "expert_gated"};
    static_assert(std::size(kNames) == std::variant_size_v<Op>);
    return kNames[op.index()];
}

Access access(const Op& op) {
    return std::visit(Overload{
                          [](const Embed& o) {
                              return Access{{}, {o.y}};
                          },
                          [](const RmsNorm& o) {
                              return Access{{o.x}, {o.y}};
                          },
                          [](const Linear& o) {
                              return o.accumulate ? Access{{o.x, o.y}, {o.y}} : Access{{o.x}, {o.y}};
                          },
                          [](const AddBias& o) {
                              return Access{{o.y}, {o.y}};
                          },
                          [](const Add& o) {
                              return Access{{o.x, o.y}, {o.y}};
                          },
                          [](const ActMul& o) {
                              return Access{{o.gate, o.up}, {o.y}};
                          },
                          [](const Rope& o) {
                              return Access{{o.x}, {o.x}};
                          },
                          [](const KvStore& o) {
                              return Access{{o.k, o.v}, {}, false, true};
                          },
                          [](const Attention& o) {
                              return Access{{o.q}, {o.y}, true, false};
                          },
                          [](const Route& o) {
                              return Access{{o.x}, {o.ids, o.scales}};
                          },
                          [](const ExpertLinear& o) {
                              if (!o.scales) return Access{{o.x, o.ids}, {o.y}};
                              return Access{{o.x, o.ids, o.scales, o.y}, {o.y}};
                          },
                          [](const SelectRows& o) {
                              return Access{{o.x}, {o.y}};
                          },
                          [](const LinearGroup& o) {
                              Access a{{o.x}, {}};
                              for (uint32_t i = 0; i < o.count; ++i) a.writes.push_back(o.parts[i].y);
                              return a;
                          },
                          [](const Gated& o) {
                              return Access{{o.x}, {o.y}};
                          },
                          [](const RopeStore& o) {
                              return Access{{o.q, o.k, o.v}, {o.q, o.k}, false, true};
                          },
                          [](const ExpertGated& o) {
                              return Access{{o.x, o.ids}, {o.y}};
                          },
                      },
                      op);
}

Status check(const Op& op, const Plan& plan) {
    Checker c(plan, op_name(op));
    std::visit([&](const auto& o) { check_op(c, o); }, op);
    return c.status();
}

Cost cost(const Op& op, const Plan& plan, const StepShape& shape) {
    const auto tensor = [&](Weight w) -> const Tensor& { return plan.weight(w).tensor; };
    const auto rows_of = [&](Slot s) { return plan.slot(s).of_outputs ? shape.outputs : shape.rows; };
    const auto product = [&](Weight w, uint64_t rows) {
        return Cost{tensor(w).bytes(), 0, matrix_flops(tensor(w).shape, rows)};
    };
    return std::visit(Overload{
                          [&](const Embed& o) {
                              return Cost{tensor(o.table).row_bytes() * shape.rows, 0, 0};
                          },
                          [&](const Linear& o) { return product(o.w, rows_of(o.y)); },
                          [&](const LinearGroup& o) {
                              Cost sum;
                              for (uint32_t i = 0; i < o.count; ++i) {
                                  const Cost one = product(o.parts[i].w, shape.rows);
                                  sum.weight_bytes += one.weight_bytes;
                                  sum.flops += one.flops;
                              }
                              return sum;
                          },
                          [&](const Gated& o) {
                              const Cost gate = product(o.gate, shape.rows), up = product(o.up, shape.rows);
                              return Cost{gate.weight_bytes + up.weight_bytes, 0, gate.flops + up.flops};
                          },
                          [&](const Route& o) { return product(o.w, shape.rows); },
                          [&](const ExpertLinear& o) { return expert_cost(tensor(o.w), o.used, shape.rows); },
                          [&](const ExpertGated& o) {
                              const Cost gate = expert_cost(tensor(o.gate), o.used, shape.rows);
                              const Cost up = expert_cost(tensor(o.up), o.used, shape.rows);
                              return Cost{gate.weight_bytes + up.weight_bytes, 0, gate.flops + up.flops};
                          },
                          [&](const Attention& o) {
                              // Row r sees kv_len - rows + r + 1 keys, at most `window`.
                              const uint64_t keys =
                                  o.window > 0 ? std::min<uint64_t>(o.window, shape.kv_len) : shape.kv_len;
                              const uint64_t skipped = o.window > 0 ? 0 : shape.rows * (shape.rows - 1) / 2;
                              const uint64_t scores =
                                  shape.rows * keys - std::min(skipped, shape.rows * keys);
                              return Cost{0, plan.cache(o.cache).row_bytes() * o.shape.kv_heads * keys,
                                          4 * scores * o.shape.heads * o.shape.head_dim};
                          },
                          [](const auto&) { return Cost{}; },
                      },
                      op);
}

}  // namespace redline
