// How fast a model should generate on a device by the bandwidth that was measured there, and what may be
// wrong when it does not.
#pragma once

#include "cli/options/model_options.h"
#include "doctor/machine.h"
#include "engine/generate.h"
#include "host/split.h"

namespace redline::cli {

// Bytes per second that the device reads, measured now, which takes about a second, and kept in a file of the
// cache folder, if there is one, for the same device, driver and threads. 0: it could not be measured, or is
// more than the device can have, which is noted once for each.
double measured_bandwidth(Backend& backend, const std::string& cache_folder);
// What is kept there, or else measured. 0: it could not be, or there is no cache folder.
double known_bandwidth(Backend& backend, const std::string& cache_folder);

// Why a rate cannot be the device's: it is none, or more than any of its class has. Empty: it may be.
std::string explain_rate(const DeviceInfo& device, double bytes_per_second);

// Likewise, for the format of most of a model's weights and its layers of experts, by this build's kernels.
DecodePace measured_pace(Backend& backend, const Model& model, CacheType cache,
                         const std::string& cache_folder);
DecodePace known_pace(Backend& backend, const Model& model, CacheType cache, const std::string& cache_folder);
// DecodePace::first_seconds of a device that waits for the CPU, likewise, which takes half a second. 0: it
// could not be measured.
double find_first(Backend& device, const Model& model, CacheType cache, const DecodePace& pace,
                  const std::string& cache_folder, bool anew);
// What a step takes to go on at the other place, see crossing_seconds(): what is kept there or, with `anew`,
// what is measured now.
std::optional<double> find_crossing(Backend& cpu, Backend& device, const Model& model,
                                    const std::string& cache_folder, bool anew);
// All of the model's device and of its CPU, if it has one: what is kept or, with `anew`, what is measured
// now. Nothing for what has no bandwidth, or for a small model, which is bound by other things and would wait
// longer for this than for a token.
void measure_paces(LoadedModel& loaded, const std::string& cache_folder, bool anew);
// The bandwidths and the paces that are kept, likewise.
void measure_speeds(LoadedModel& loaded, const std::string& cache_folder);

// Of the model's device and the CPU, as they were measured for it.
Bandwidth bandwidth_of(const LoadedModel& loaded);
PaceOf pace_of(const LoadedModel& loaded);

// The most tokens per second that the bandwidth allows, `position` tokens into the context: each reads all
// weights that it uses and the cache. 0: unknown.
double most_tokens_per_second(const LoadedModel& loaded, uint64_t context, uint64_t position);
// What is to be expected, likewise: with each step's own time, and at the rate at which products really read.
double expected_tokens_per_second(const LoadedModel& loaded, uint64_t context, uint64_t position);

// One line, when the device is kept awake; else empty.
std::string explain_kept_awake(const LoadedModel& loaded);
// One line, when some threads of the CPU were left out since other programs use it; else empty.
std::string explain_shared_cpu(const LoadedModel& loaded);
// One line of what is wrong, or may be, when a generation of 16 tokens or more reached less than a quarter of
// what was expected; else empty.
std::string explain_slow(const LoadedModel& loaded, uint64_t context, const Generation& generation);
// How that line ends, by what the machine tells.
std::string likely_causes(const Machine& machine);

}  // namespace redline::cli
