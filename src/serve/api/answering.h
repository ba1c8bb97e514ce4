// The part of a scheduler that requests see, so that tests answer in its place.
#pragma once

#include "serve/batch/scheduler.h"

namespace redline::serve {

// One of several schedulers behind an address.
struct ReplicaState {
    std::string device;  // in words
    Health health = Health::serving;
    Statistics statistics;
};

class Answering {
public:
    virtual ~Answering() = default;
    virtual Submission submit(AnswerRequest request) = 0;
    virtual Health health() const = 0;
    virtual Statistics statistics() const = 0;
    // Empty: there is one scheduler.
    virtual std::vector<ReplicaState> replicas() const { return {}; }
};

}  // namespace redline::serve
