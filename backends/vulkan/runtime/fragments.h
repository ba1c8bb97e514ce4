// Which elements of cooperative matrices an invocation holds. Vulkan leaves that to the device, so a device
// is asked: a kernel loads matrices whose elements are numbered. Kernels over few_fragments.glsl then fill
// matrices element by element, where the answer has the form below; other devices go without them.
#pragma once

#include "device.h"

#include <span>

namespace redline::vulkan {

class Memory;
class Pipelines;

// The shape that few tokens waste least of; null where the device has none.
const MatrixShape* narrow_shape(const DeviceReport& report);
// `found`: 64 numbers of each invocation of a subgroup, as show_fragments.comp leaves them. Empty where they
// have another form.
std::optional<Fragments> fragments_of(const MatrixShape& shape, std::span<const uint32_t> found);
// Asks the device, if its matrices may be used.
Result<std::optional<Fragments>> ask_fragments(Device& device, Memory& memory, Pipelines& pipelines);

}  // namespace redline::vulkan
