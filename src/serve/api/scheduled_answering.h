// A scheduler as requests see it.
#pragma once

#include "serve/api/answering.h"

namespace redline::serve {

class ScheduledAnswering final : public Answering {
public:
    explicit ScheduledAnswering(Scheduler& scheduler) : scheduler_(scheduler) {}
    Submission submit(AnswerRequest request) override { return scheduler_.submit(std::move(request)); }
    Health health() const override { return scheduler_.health(); }
    Statistics statistics() const override { return scheduler_.statistics(); }

private:
    Scheduler& scheduler_;
};

}  // namespace redline::serve
