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
    f.that(x != y || streams == 1, "y must be a slot of its own");
    f.that(weights != y, "y must be a slot of its own");
    f.note(streams_note(streams, width));
    if (one_each) f.note(" by stream");
}

void StreamAdd::list(OpFacts& f) const {
    f.that(streams > 0, "there are no streams");
    f.slot("weights", weights, streams);
    f.slot("y", y, streams * f.width(x));
    f.that(x != y && weights != y, "y must be a slot of its own");
    f.note(streams_note(streams, f.width(x)));
    if (replaces) f.note(" replacing");
}

void StreamDot::list(OpFacts& f) const {
    const uint64_t streams = f.width(y);
    f.slot("b", b, f.width(a));
    f.that(streams > 0 && f.width(a) % streams == 0, "the row is not a multiple of the streams");
    f.that(a != y && b != y, "y must be a slot of its own");
    f.note(streams_note(uint32_t(streams), streams > 0 ? f.width(a) / streams : 0));
}

}  // namespace redline
