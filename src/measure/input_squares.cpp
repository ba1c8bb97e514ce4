#include "measure/input_squares.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace redline {

// A step cannot be interrupted, so that pieces have this many tokens at most.
static constexpr uint32_t kMostPiece = 256;

Result<InputMeter> InputMeter::create(const Model& model, CacheTypes cache, uint64_t context, uint32_t batch,
                                      bool with_output) {
    SessionOptions options;
    options.context = context;
    options.batch = uint32_t(std::min<uint64_t>({batch, context, kMostPiece}));
    options.outputs = with_output ? options.batch : 1;
    options.cache = cache;
    options.fuse = false;  // fusion would skip writes between ops
    InputMeter meter(model, options, RL_TRY(Session::create(model, options)));
    meter.choose_tensors(with_output);
    meter.many_ = RL_TRY(meter.watch(options.batch));
    meter.single_ = RL_TRY(meter.watch(1));
    return meter;
}

// When rows of a tensor are several weights, as with fused queries, keys and values, they share one input,
// and the first weight counts. A weight that is a tensor transposed is skipped, since its columns are the
// tensor's rows.
void InputMeter::choose_tensors(bool with_output) {
    const auto weights = model_->file_weights();
    const auto sources = model_->weight_sources();
    sums_of_.assign(weights.size(), -1);
    std::map<uint32_t, size_t> first;  // weight of each tensor of the file
    for (size_t i = 0; i < weights.size(); ++i) {
        const GgufTensor& tensor = model_->gguf().tensors()[sources[i].tensor];
        if (weights[i].role != WeightRole::matrix || sources[i].transposed) continue;
        if (!with_output && !tensor.tensor.name.starts_with("blk.")) continue;
        const auto [found, is_new] = first.try_emplace(sources[i].tensor, i);
        if (!is_new && sources[i].first_byte < sources[found->second].first_byte) found->second = i;
    }
    for (const auto& [tensor, weight] : first) {
        const Tensor& source = model_->gguf().tensors()[tensor].tensor;
        sums_of_[weight] = int32_t(sums_.size());
        sums_.push_back({source.name, source.shape.cols,
                         std::vector<double>(source.shape.count * source.shape.cols),
                         std::vector<uint64_t>(source.shape.count)});
    }
}

std::vector<InputMeter::Product> InputMeter::products_of(const Op& op) {
    if (const auto* o = std::get_if<redline::Product>(&op))
        return {{o->x, o->w(), o->experts.ids, o->experts.used, o->experts.per_expert, o->strides.x}};
    if (const auto* route = std::get_if<Route>(&op)) return {{route->x, route->w}};
    return {};
}

// Plans the measurements for the steps as the session runs them.
Result<InputMeter::Watch> InputMeter::watch(uint32_t rows) const {
    const CacheSizing sizing{options_.context, options_.batch, options_.cache};
    const Plan recorded = RL_TRY(model_->plan(rows, std::min(rows, options_.outputs), sizing));
    const BoundPlan bound = RL_TRY(lower(recorded, model_->backend(), false));
    Watch out;
    out.steps.resize(bound.plan.steps.size());
    // Walks backwards, to know which slots a later product reads before they are written again.
    std::set<int32_t> wanted;
    for (size_t i = bound.plan.steps.size(); i-- > 0;) {
        const Op& op = bound.plan.steps[i].op;
        Watch::At& at = out.steps[i];
        for (const Slot slot : access(op).writes) at.keeps.push_back(wanted.erase(slot.index) > 0);
        for (const Product& product : products_of(op)) {
            if (sums_of_[size_t(product.w.index)] < 0) continue;
            at.products.push_back(product);
            for (const Slot slot : {product.x, product.ids})
                if (slot && wanted.insert(slot.index).second) at.done.push_back(slot);
        }
    }
    return out;
}

Status InputMeter::read(std::span<const Token> tokens, const std::atomic<bool>* cancel) {
    session_.rewind(0);
    while (!tokens.empty()) {
        if (cancel && cancel->load()) return error("interrupted");
        const auto piece = tokens.first(std::min<size_t>(tokens.size(), session_.batch()));
        const Watch& watch = piece.size() == 1 ? *single_ : *many_;
        step_ = 0;
        kept_.clear();
        RL_TRY(
            session_.feed_traced(piece, [&](const TraceStep& traced) { take(traced, watch, piece.size()); }));
        tokens = tokens.subspan(piece.size());
    }
    for (const InputSquares& sums : sums_)
        for (const double square : sums.squares)
            if (!std::isfinite(square)) return error("{} has inputs that are not finite", sums.tensor);
    return {};
}

void InputMeter::take(const TraceStep& traced, const Watch& watch, size_t rows) {
    RL_CHECK(step_ < watch.steps.size(), "a trace of more steps than the plan has");
    const Watch::At& at = watch.steps[step_++];
    for (const Product& product : at.products) add(product, rows);
    for (const Slot slot : at.done) kept_.erase(slot.index);
    const std::vector<Slot> writes = access(traced.step->op).writes;
    for (size_t i = 0; i < writes.size(); ++i)
        if (at.keeps[i]) kept_[writes[i].index].assign(traced.written[i].begin(), traced.written[i].end());
}

void InputMeter::add(const Product& product, size_t rows) {
    InputSquares& sums = sums_[size_t(sums_of_[size_t(product.w.index)])];
    const std::vector<float>& x = kept_.at(product.x.index);
    if (product.stride > 0) {
        const size_t width = x.size() / rows,
                     heads = model_->file_weights()[size_t(product.w.index)].tensor.shape.count;
        for (size_t row = 0; row < rows; ++row)
            for (size_t head = 0; head < heads; ++head)
                add_row(sums, head, x.data() + row * width + head * product.stride);
    } else if (product.ids) {
        const std::vector<float>& ids = kept_.at(product.ids.index);
        for (size_t i = 0; i < ids.size(); ++i) {
            const uint32_t expert = float_to_bits(ids[i]);
            const size_t at = product.per_expert ? i : i / product.used;
            add_row(sums, expert, x.data() + at * sums.cols);
        }
    } else {
        for (size_t at = 0; at < x.size(); at += sums.cols) add_row(sums, 0, x.data() + at);
    }
}

// A tensor that is one matrix may be used by several products: all of them count.
void InputMeter::add_row(InputSquares& sums, uint64_t matrix, const float* x) {
    if (sums.counts.size() == 1) matrix = 0;
    RL_CHECK(matrix < sums.counts.size(), "{} has no matrix {}", sums.tensor, matrix);
    double* squares = sums.squares.data() + matrix * sums.cols;
    for (uint64_t i = 0; i < sums.cols; ++i) squares[i] += double(x[i]) * double(x[i]);
    ++sums.counts[matrix];
}

}  // namespace redline
