#include "plan/backend_parts.h"

namespace redline {

template <typename Part>
static const Part* part_of(const Backend& backend) {
    return dynamic_cast<const Part*>(&backend);
}
template <typename Part>
static Part* part_of(Backend& backend) {
    return dynamic_cast<Part*>(&backend);
}

bool Backend::overlaps() const {
    const auto* steps = part_of<SubmitsSteps>(*this);
    return steps && steps->overlaps();
}

Status Backend::prepare(std::span<Executable* const> executables, std::span<const uint32_t> rows) {
    auto* steps = part_of<SubmitsSteps>(*this);
    return steps ? steps->prepare(executables, rows) : Status();
}

double Backend::take_longest_submission() {
    auto* steps = part_of<SubmitsSteps>(*this);
    return steps ? steps->take_longest_submission() : 0.0;
}

bool Backend::kept_awake() const {
    const auto* steps = part_of<SubmitsSteps>(*this);
    return steps && steps->kept_awake();
}

uint64_t Backend::kernels_hash() const {
    const auto* kernels = part_of<EmbeddedKernels>(*this);
    return kernels ? kernels->kernels_hash() : 0;
}

bool Backend::refills() const {
    return part_of<RefillsWeights>(*this) != nullptr;
}

Status Backend::refill_stored(WeightStore& store, std::span<const uint32_t> at,
                              std::span<const WeightInfo> weights, ByteSource& source) {
    auto* stores = part_of<RefillsWeights>(*this);
    if (!stores) return error("weights of {} keep their content", device().name);
    return stores->refill_stored(store, at, weights, source);
}

Result<std::optional<MatrixPeak>> Backend::measure_matrix_peak() {
    auto* units = part_of<MatrixUnits>(*this);
    return units ? units->measure_matrix_peak() : std::optional<MatrixPeak>();
}

uint32_t Backend::fewest_threads() const {
    const auto* threads = part_of<SharesProcessors>(*this);
    return threads ? threads->fewest_threads() : 0;
}

}  // namespace redline
