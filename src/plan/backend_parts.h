// Parts of a backend that not every one has. A backend that has one derives from it, too; Backend's functions
// of the same names ask for it, and say what holds without it.
#pragma once

#include "plan/backend.h"

namespace redline {

// Kernels that the build has embedded for a device.
class EmbeddedKernels {
public:
    virtual ~EmbeddedKernels() = default;
    virtual uint64_t kernels_hash() const = 0;
};

// Weights whose content can be replaced while steps run that do not use them.
class RefillsWeights {
public:
    virtual ~RefillsWeights() = default;
    // `weights` are in formats that the backend has kernels for.
    virtual Status refill_stored(WeightStore& store, std::span<const uint32_t> at,
                                 std::span<const WeightInfo> weights, ByteSource& source) = 0;
};

// Steps that are compiled into pipelines and submitted to a queue of the device.
class SubmitsSteps {
public:
    virtual ~SubmitsSteps() = default;
    virtual bool overlaps() const = 0;
    virtual Status prepare(std::span<Executable* const> executables, std::span<const uint32_t> rows) = 0;
    virtual double take_longest_submission() = 0;
    virtual bool kept_awake() const = 0;
};

// Matrix units whose peak is measured.
class MatrixUnits {
public:
    virtual ~MatrixUnits() = default;
    virtual Result<std::optional<MatrixPeak>> measure_matrix_peak() = 0;
};

// Threads on processors that other programs use, too.
class SharesProcessors {
public:
    virtual ~SharesProcessors() = default;
    virtual uint32_t fewest_threads() const = 0;
};

}  // namespace redline
