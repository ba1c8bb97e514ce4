#include "plan/ops/streams.h"

#include "plan/plan.h"

namespace redline {

static std::string streams_note(uint32_t streams, uint64_t width) {
    return fmt::format(" {} of {}", streams, width);
}

void StreamMix::list(OpFacts& f) const {
    const uint64_t width = f.width(y);
    f.that(streams > 0, "there are no streams");
    f.slot("x", x, streams * width);
    const bool one_each = f.width(weights) == streams;
    f.slot("weights", weights, one_each ? streams : streams * width);
    f.that(x != y || streams == 1, "y must be a separate slot");
    f.that(weights != y, "y must be a separate slot");
    f.note(streams_note(streams, width));
    if (one_each) f.note(" by stream");
}

void StreamAdd::list(OpFacts& f) const {
    f.that(streams > 0, "there are no streams");
    if (weights) f.slot("weights", weights, streams);
    f.slot("y", y, streams * f.width(x));
    f.that(x != y && weights != y, "y must be a separate slot");
    f.that(first < streams && (first == 0 || !replaces), "no stream is left, or those before it are not set");
    f.note(streams_note(streams, f.width(x)));
    if (replaces) f.note(" replacing");
    if (!weights) f.note(" alike");
    if (offset != 0.0f) f.note(" +offset");
    if (first > 0) f.note(fmt::format(" from {} on", first));
}

void StreamTurn::list(OpFacts& f) const {
    f.that(streams > 0 && f.width(x) % streams == 0, "the row is not a multiple of the streams");
    f.slot("weights", weights, uint64_t(streams) * streams);
    f.slot("y", y, f.width(x));
    f.that(x != y && weights != y, "y must be a separate slot");
    f.note(streams_note(streams, streams > 0 ? f.width(x) / streams : 0));
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

void StreamDot::list(OpFacts& f) const {
    const uint64_t streams = f.width(y);
    f.slot("b", b, f.width(a));
    f.that(streams > 0 && f.width(a) % streams == 0, "the row is not a multiple of the streams");
    f.that(a != y && b != y, "y must be a separate slot");
    f.note(streams_note(uint32_t(streams), streams > 0 ? f.width(a) / streams : 0));
}

}  // namespace redline
