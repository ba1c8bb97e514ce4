#include "cli/op_text.h"

namespace redline::cli {

namespace {

// Visits an op: appends what its kind shows of it, and lists its weights.
class Describer {
public:
    explicit Describer(const Plan& plan) : plan_(plan) {}

    void operator()(const Embed& op) { matrix(op.table); }
    void operator()(const RmsNorm& op) {
        text_ += fmt::format(" {}", op.width);
        vector(op.norm.gain);
    }
    void operator()(const Linear& op) {
        matrix(op.w);
        flag(bool(op.norm), " +norm", op.norm.gain);
        flag(bool(op.bias), " +bias", op.bias);
        if (op.accumulate) text_ += " +add";
    }
    void operator()(const AddBias& op) {
        width(op.y);
        vector(op.bias);
    }
    void operator()(const Add& op) { width(op.y); }
    void operator()(const ActMul& op) { width(op.y); }
    void operator()(const Rope& op) { text_ += fmt::format(" {} heads of {}", op.heads, op.head_dim); }
    void operator()(const KvStore& op) { heads(op.shape); }
    void operator()(const Attention& op) {
        heads(op.shape);
        if (op.window > 0) text_ += fmt::format(" window {}", op.window);
        flag(bool(op.sinks), " +sinks", op.sinks);
    }
    void operator()(const Route& op) {
        matrix(op.w);
        text_ += fmt::format(" best {}", op.used);
    }
    void operator()(const ExpertLinear& op) {
        matrix(op.w);
        text_ += fmt::format(" of {} experts", op.used);
        if (op.scales) text_ += " +add";
    }
    void operator()(const SelectRows& op) { width(op.y); }
    void operator()(const LinearGroup& op) {
        for (uint32_t i = 0; i < op.count; ++i) matrix(op.parts[i].w);
        flag(bool(op.norm), " +norm", op.norm.gain);
        for (uint32_t i = 0; i < op.count; ++i)
            if (op.parts[i].bias) flag(true, " +bias", op.parts[i].bias);
    }
    void operator()(const Gated& op) {
        matrix(op.gate);
        matrix(op.up);
        flag(bool(op.norm), " +norm", op.norm.gain);
    }
    void operator()(const RopeStore& op) {
        heads(op.shape);
        flag(bool(op.q_norm) || bool(op.k_norm), " +norm", op.q_norm.gain);
        if (op.k_norm) vector(op.k_norm.gain);
    }
    void operator()(const ExpertGated& op) {
        matrix(op.gate);
        matrix(op.up);
        text_ += fmt::format(" of {} experts", op.used);
    }

    const std::string& text() const { return text_; }
    const std::string& tensors() const { return tensors_; }

private:
    void matrix(Weight w) {
        const Tensor& tensor = plan_.weight(w).tensor;
        text_ += fmt::format("{} {} {} x {}", matrices_++ > 0 ? "," : "", tensor.format->name,
                             tensor.shape.rows, tensor.shape.cols);
        vector(w);
    }
    void vector(Weight w) {
        if (w) tensors_ += (tensors_.empty() ? "" : ", ") + plan_.weight(w).tensor.name;
    }
    void width(Slot slot) { text_ += fmt::format(" {}", plan_.slot(slot).width); }
    void heads(const HeadShape& shape) {
        text_ += fmt::format(" {} heads of {}, {} kv", shape.heads, shape.head_dim, shape.kv_heads);
    }
    void flag(bool on, std::string_view name, Weight w) {
        if (!on) return;
        if (!text_.ends_with(name)) text_ += name;
        vector(w);
    }

    const Plan& plan_;
    std::string text_;
    std::string tensors_;
    int matrices_ = 0;
};

}  // namespace

std::string describe_op(const Op& op, const Plan& plan) {
    Describer describer(plan);
    std::visit(describer, op);
    return std::string(op_name(op)) + describer.text();
}

std::string op_tensors(const Op& op, const Plan& plan) {
    Describer describer(plan);
    std::visit(describer, op);
    return describer.tensors();
}

}  // namespace redline::cli
