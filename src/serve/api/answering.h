// The part of a scheduler that requests see, so that tests answer in its place.
#pragma once

#include "serve/batch/scheduler.h"

namespace redline::serve {

class Answering {
public:
    virtual ~Answering() = default;
    virtual Submission submit(AnswerRequest request) = 0;
    virtual Health health() const = 0;
    virtual Statistics statistics() const = 0;
};

}  // namespace redline::serve
