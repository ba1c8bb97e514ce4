// The HIP backend of a build without it: says so.
#include "plan/backend.h"

namespace redline {

static Error absent() {
    return error("this build has no HIP backend: " RL_HIP_ABSENT);
}
static Result<std::unique_ptr<Backend>> open_hip(const BackendOptions&) {
    return absent();
}
static Result<std::vector<DeviceListing>> list_hip() {
    return absent();
}

extern const BackendEntry hip_backend;
const BackendEntry hip_backend = {"hip", 5, open_hip, list_hip};

}  // namespace redline
