// How fast a device gets weights, computes products of many rows and makes steps of one token, measured in
// some milliseconds: what choices between devices and predictions are made by.
#pragma once

#include "plan/backend.h"

#include <map>
#include <optional>
#include <string>

namespace redline {

// Bytes per second of weights in this format, from the host's memory to where refill() puts them. 0: it could
// not be measured, or was more than rate_limits().
double upload_rate(Backend& device, const Format& format);
// Operations per second, a multiply-add being two, of the product of a matrix in this format and many rows.
// 0: likewise.
double product_rate(Backend& backend, const Format& format);

// What the time of a step of one token adds up from, on a device.
struct DecodePace {
    double bytes_per_second =
        0.0;                      // of the weights that products of one row read; 0: it could not be measured
    double step_seconds = 0.0;    // of each step of the lowered plan, beside what it reads
    double run_seconds = 0.0;     // of each Executable::run(), beside its steps
    double expert_seconds = 0.0;  // of each layer of experts, beside both: their choice, and small products
    // In place of step_seconds, by kernel_key(): see history_seconds().
    std::map<std::string, double> op_seconds = {};
    // Of each kernel that a run launches for the first time, beside both, where the device has waited before.
    double first_seconds = 0.0;
};
// A layer of experts, each of gate, up and down.
struct ExpertLayer {
    const Format* format = nullptr;
    const Format* down = nullptr;  // of down, whose rows may be no multiple of the other's blocks
    uint32_t count = 0, used = 0;
    uint64_t hidden = 0, dim = 0;
};
// That of the model's plan whose weights these are; none: they have no experts.
std::optional<ExpertLayer> expert_layer(std::span<const WeightInfo> weights, uint32_t used);

// With matrices in this format, of more bytes together than caches hold, and layers like this.
DecodePace decode_pace(Backend& backend, const Format& format, const std::optional<ExpertLayer>& experts);

// Of a lowered plan's steps, beside what they read.
double steps_seconds(const Plan& lowered, const DecodePace& pace);
// How many different kernels they have, by kernel_key().
size_t kernels_of(const Plan& lowered);

// Seconds that an op with a history (an attention, a state) of a lowered plan for one row takes, beside what
// it reads of far behind: these are few bytes and long chains of dependent work.
Result<double> history_seconds(Backend& backend, const Op& op, const Plan& plan, const DecodePace& pace);
// Of each of them, by kernel_key(), those that are `known` with what is known; what cannot be measured is
// left out.
std::map<std::string, double> history_seconds(Backend& backend, const Plan& plan, const DecodePace& pace,
                                              std::map<std::string, double> known);

// What a kernel takes more, by one step of the plan's ops, when nothing of it is left in the device's caches
// and the device has waited: DecodePace::first_seconds.
Result<double> first_seconds(Backend& backend, const Plan& plan, const DecodePace& pace);

// Seconds that a step of one token takes each time that it goes on at the other of two places, beside what
// its runs there take: what is handed over lies in no cache, and threads and the device have waited. With
// products of matrices in this format. Nothing: it could not be measured.
std::optional<double> crossing_seconds(Backend& cpu, Backend& device, const Format& format);

// The format that most of the bytes of matrices are in; null: there are none.
const Format* main_format(std::span<const WeightInfo> weights);

}  // namespace redline
