// How fast a device gets weights and computes products of many rows, measured in some milliseconds: what a
// choice between two devices for a prompt is made by.
#pragma once

#include "plan/backend.h"

namespace redline {

// Bytes per second of weights in this format, from the host's memory to where refill() puts them. 0: it could
// not be measured.
double upload_rate(Backend& device, const Format& format);
// Operations per second, a multiply-add being two, of the product of a matrix in this format and many rows.
// 0: likewise.
double product_rate(Backend& backend, const Format& format);

}  // namespace redline
