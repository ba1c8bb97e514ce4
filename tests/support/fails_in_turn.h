// Each call of a device fails in turn while a session reads a text: what is left behind.
#pragma once

#include "engine/session.h"
#include "support/failing_device.h"
#include "support/must.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace redline::test {

// `plain` has the device itself where `failing` has a FailingDevice of these calls. A failed read stops
// between chunks, goes on from there to the same logits, and the device's memory is back.
template <typename Options>
void fails_in_turn(const Model& model, const Options& plain, const Options& failing, Calls& calls,
                   Backend& device, std::span<const Token> text, uint64_t chunk) {
    std::vector<float> want;
    {
        Session session = must(Session::create(model, plain));
        must(session.feed(text));
        want.assign(session.logits().begin(), session.logits().end());
    }
    const uint64_t before = device.allocated();
    bool failed = true;
    for (int64_t call = 0; failed; ++call) {
        REQUIRE(call < 200);
        CAPTURE(call);
        calls.left = call;
        const auto run = [&]() -> Status {
            Session session = RL_TRY(Session::create(model, failing));
            const Status fed = session.feed(text);
            if (!fed) {
                CHECK(session.position() % chunk == 0);
                must(session.feed(text.subspan(session.position())));
            }
            CHECK(std::ranges::equal(session.logits(), want));
            return fed;
        };
        const Status done = run();
        failed = calls.failed();
        CHECK(done.ok() == !failed);
        if (!done) CHECK(done.error().message.ends_with("injected"));
        CHECK(device.allocated() == before);
    }
}

}  // namespace redline::test
