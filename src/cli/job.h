// The ranks of a job that mpirun or another launcher of MPI has started: which one this is, and its part.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

// True where a launcher has started several ranks.
bool is_in_job();
// Refuses a command that has no part for several ranks: its exit status, after rank 0 has said so.
std::optional<int> refuse_in_job(std::string_view command);
// Joins the job, if there is one. On rank 0 the options get the other ranks; on others this computes until
// the job is over, and returns the exit status.
std::optional<int> join_job(ModelOptions& options);
// At the end of the program: ends the job. Returns `code`, or does not, where other ranks are lost.
int end_job(int code);

}  // namespace redline::cli
