// How fast a model should generate on a device by the bandwidth that was measured there, and what may be
// wrong when it does not.
#pragma once

#include "doctor/machine.h"
#include "engine/generate.h"
#include "host/host_options.h"
#include "host/loaded_model.h"

namespace redline {

// The bytes that one step reads and the work that it computes.
Cost step_cost(const Plan& plan, const StepShape& shape);

// Bytes per second that the device reads, measured now, which takes about a second. A file of the cache
// folder, if there is one, keeps it for the same device, driver and threads. 0: it could not be measured, or
// is more than the device can have, which is noted once per device.
double measured_bandwidth(Backend& backend, const std::string& cache_folder, Notes& notes = silent_notes());
// The bandwidth that the file has, or a measured one. 0: it could not be measured, or there is no cache
// folder.
double known_bandwidth(Backend& backend, const std::string& cache_folder, Notes& notes = silent_notes());

// Why a rate cannot be the device's: it is none, or more than any of its class has. Empty: it may be.
std::string explain_rate(const DeviceInfo& device, double bytes_per_second);

// The times of this build's kernels in steps of one token, for the format of most of a model's weights and
// for its layers of experts: measured now, or as the file of the cache folder has them.
DecodePace measured_pace(Backend& backend, const Model& model, CacheTypes cache,
                         const std::string& cache_folder, Notes& notes = silent_notes());
DecodePace known_pace(Backend& backend, const Model& model, CacheTypes cache, const std::string& cache_folder,
                      Notes& notes = silent_notes());
// DecodePace::first_seconds of a device that waits for the CPU: from the file or, with `anew`, measured in
// half a second. 0: it could not be measured.
double find_first(Backend& device, const Model& model, CacheTypes cache, const DecodePace& pace,
                  const std::string& cache_folder, bool anew);
// Seconds that a step takes to go on at the other of two places, see crossing_seconds(): from the file or,
// with `anew`, measured now.
std::optional<double> find_crossing(Backend& first, Backend& second, const Model& model,
                                    const std::string& cache_folder, bool anew);
// Sets the paces of the model's places, and of going on at others: from the file or, with `anew`, measured
// now. Devices of unknown bandwidth have none, and small models neither: they are bound by other things, and
// would wait longer for this than for a token.
void measure_paces(LoadedModel& loaded, const HostOptions& options, bool anew);
// Sets the bandwidths and the paces from the file; bandwidths that it lacks are measured. Several devices
// have bandwidths for small models, too, since layers are shared out by them.
void measure_speeds(LoadedModel& loaded, const HostOptions& options);

// Look up the rates of the model's places.
Bandwidth bandwidth_of(const LoadedModel& loaded);
PaceOf pace_of(const LoadedModel& loaded);
CrossingOf crossing_of(const LoadedModel& loaded);

// The most tokens per second that the bandwidth allows, `position` tokens into the context: each reads all
// weights that it uses and the cache. 0: unknown.
double most_tokens_per_second(const LoadedModel& loaded, uint64_t context, uint64_t position);
// The tokens per second to expect there, by the time of each step and the rate at which products really read.
double expected_tokens_per_second(const LoadedModel& loaded, uint64_t context, uint64_t position);

// One line where the device is kept awake; empty where it is not.
std::string explain_kept_awake(const LoadedModel& loaded);
// One line where some threads of the CPU were left out since other programs use it; else empty.
std::string explain_shared_cpu(const LoadedModel& loaded);
// One line that names what is or may be wrong, when a generation of 16 tokens or more reached less than a
// quarter of what was expected; else empty.
std::string explain_slow(const LoadedModel& loaded, uint64_t context, const Generation& generation);
// The end of that line: causes that the state of the machine suggests.
std::string likely_causes(const Machine& machine);

}  // namespace redline
