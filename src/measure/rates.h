// Measures, in some milliseconds, how fast a device uploads weights, computes products of many rows and runs
// steps of one token. Choices between devices and predictions are based on these rates.
#pragma once

#include "plan/backend.h"

#include <map>
#include <optional>
#include <string>

namespace redline {

// Bytes per second of weights in this format, from the host's memory to where refill() puts them. 0: it could
// not be measured, or exceeded rate_limits().
double upload_rate(Backend& device, const Format& format);
// Operations per second, a multiply-add being two, of the product of a matrix in this format and many rows.
// 0: as for upload_rate().
double product_rate(Backend& backend, const Format& format);

// The parts that the time of a step of one token is summed from, on a device.
struct DecodePace {
    double bytes_per_second = 0.0;  // of the weights of products of one row; 0: not measured
    double step_seconds = 0.0;  // of each step of the lowered plan, in addition to the weights that it reads
    double run_seconds = 0.0;   // of each Executable::run(), in addition to its steps
    double expert_seconds = 0.0;  // of each layer of experts, besides both: choice, small products
    // Used in place of step_seconds, by kernel_key(): see history_seconds().
    std::map<std::string, double> op_seconds = {};
    // Extra seconds of each kernel that a run launches for the first time after the device was idle.
    double first_seconds = 0.0;
};
// The shape of a layer of experts, each of gate, up and down.
struct ExpertLayer {
    const Format* format = nullptr;
    const Format* down = nullptr;  // its rows may be no multiple of the other format's block
    uint32_t count = 0, used = 0;
    uint64_t hidden = 0, dim = 0;
};
// The layer of experts of the model whose weights these are; empty: it has no experts.
std::optional<ExpertLayer> expert_layer(std::span<const WeightInfo> weights, uint32_t used);

// Measures the pace with matrices in this format, larger together than caches, and with such layers of
// experts.
DecodePace decode_pace(Backend& backend, const Format& format, const std::optional<ExpertLayer>& experts);

// The seconds of a lowered plan's steps, without reading weights.
double steps_seconds(const Plan& lowered, const DecodePace& pace);
// The number of different kernels in the plan, by kernel_key().
size_t kernels_of(const Plan& lowered);

// The seconds of an op with a history (an attention, a state) of a lowered plan for one row, near the start
// of a context: there it reads few bytes in long chains of dependent work.
Result<double> history_seconds(Backend& backend, const Op& op, const Plan& plan, const DecodePace& pace);
// The same for all such ops of a plan, by kernel_key(), including the `known` ones; ops that cannot be
// measured are left out.
std::map<std::string, double> history_seconds(Backend& backend, const Plan& plan, const DecodePace& pace,
                                              std::map<std::string, double> known);

// The extra seconds of a kernel, from one step of the plan's ops, when its data is in none of the device's
// caches and the device was idle: DecodePace::first_seconds.
Result<double> first_seconds(Backend& backend, const Plan& plan, const DecodePace& pace);

// Extra seconds each time that a step of one token passes to the other of two places: the rows that are
// passed on lie in no cache, and threads and the device were idle. Measured with products of matrices in this
// format. Empty: it could not be measured.
std::optional<double> crossing_seconds(Backend& cpu, Backend& device, const Format& format);

// The format with the most bytes of matrices; null: there are none.
const Format* main_format(std::span<const WeightInfo> weights);

}  // namespace redline
