#include "plan/ops/streams.h"

#include "plan/plan.h"

namespace redline {

static std::string streams_note(uint32_t streams, uint64_t width) {
    return fmt::format(" {} of {}", streams, width);
}

std::string_view StreamProduct::name() const {
    static constexpr std::string_view kNames[] = {"stream_mix", "stream_add", "stream_dot", "stream_turn"};
    return kNames[size_t(kind)];
}

uint64_t StreamProduct::width(const Plan& plan) const {
    if (kind == StreamKind::mix) return plan.slot(y).width;
    return kind == StreamKind::add ? plan.slot(x).width : plan.slot(x).width / streams;
}

bool StreamProduct::by_stream(const Plan& plan) const {
    return kind == StreamKind::mix && plan.slot(weights).width == streams && width(plan) > 1;
}

void StreamProduct::list(OpFacts& f) const {
    const bool mixes = kind == StreamKind::mix, adds = kind == StreamKind::add,
               dots = kind == StreamKind::dot;
    f.that(streams > 0, "there are no streams");
    const uint64_t n = streams,
                   all = adds    ? n * f.width(x)
                         : mixes ? n * f.width(y)
                                 : f.width(x),
                   width = n > 0 ? all / n : 0;
    const bool one_each = adds || (mixes && f.width(weights) == n);
    f.that(n * width == all, "the row is not a multiple of the streams");
    f.slot("x", x, adds ? width : all);
    if (weights || !adds) f.slot("weights", weights, one_each ? n : kind == StreamKind::turn ? n * n : all);
    f.slot("y", y, mixes ? width : dots ? n : all);
    f.that(weights != y && (x != y || (mixes && streams == 1)), "y must be a separate slot");
    f.that(kind != StreamKind::turn || scale == 1.0f, "such a product has no scale");
    f.that(adds || (!replaces && offset == 0.0f && first == 0), "no streams are added to");
    f.that(n == 0 || (first < n && (first == 0 || !replaces)),
           "no stream is left, or those before it are not set");
    f.note(streams_note(streams, width));
    if (mixes && one_each) f.note(" by stream");
    if (replaces) f.note(" replacing");
    if (adds && !weights) f.note(" alike");
    if (offset != 0.0f) f.note(" +offset");
    if (first > 0) f.note(fmt::format(" from {} on", first));
}

void StreamWeights::list(OpFacts& f) const {
    const uint64_t streams = f.width(read);
    f.that(streams > 0 && streams <= kMostStreams, "the number of streams is not supported");
    const bool reads_only = !add;
    f.slot("x", x, reads_only ? streams : (2 + streams) * streams);
    f.vector("scale", scale, reads_only ? 1 : 3);
    f.vector("base", base, f.width(x));
    f.that(scale && base, "scale or base is missing");
    f.that(read != x && add != x && mix != x, "results must be in separate slots");
    f.note(fmt::format(" {}", streams));
    if (reads_only) return;
    f.slot("add", add, streams);
    f.slot("mix", mix, streams * streams);
    f.that(rounds > 0, "there are no rounds");
    f.note(fmt::format(", {} rounds", rounds));
}

void StreamBlend::list(OpFacts& f) const {
    f.that(streams > 0 && streams <= kMostStreams, "the number of streams is not supported");
    f.slot("weights", weights, streams);
    f.slot("mix", mix, uint64_t(streams) * streams);
    f.slot("from", from, streams * f.width(x));
    f.slot("y", y, streams * f.width(x));
    f.that(y != x && y != weights && y != mix && y != from, "y must be a separate slot");
    f.note(streams_note(streams, f.width(x)));
}

}  // namespace redline
