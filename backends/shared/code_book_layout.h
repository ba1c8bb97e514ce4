// How blocks of the formats with code books are taken apart into planes: see layout.h.
#pragma once

#include "layout.h"

namespace redline {

using Planes = std::array<std::byte*, 4>;

void pack_iq1_s(const std::byte* file, uint64_t blocks, const Planes& out);
void pack_iq1_m(const std::byte* file, uint64_t blocks, const Planes& out);
void pack_iq2_xxs(const std::byte* file, uint64_t blocks, const Planes& out);
void pack_iq2_xs(const std::byte* file, uint64_t blocks, const Planes& out);
void pack_iq2_s(const std::byte* file, uint64_t blocks, const Planes& out);
void pack_iq3_xxs(const std::byte* file, uint64_t blocks, const Planes& out);
void pack_iq3_s(const std::byte* file, uint64_t blocks, const Planes& out);

}  // namespace redline
