// A weight without its data: a name, a format and a shape.
#pragma once

#include "base/result.h"
#include "formats/format.h"

#include <string>

namespace redline {

// (count, rows, cols), slowest first: y[r] = sum_c w[r][c] x[c]. `count` is the number of experts, else 1.
struct Shape {
    uint64_t count = 1;
    uint64_t rows = 1;
    uint64_t cols = 1;

    uint64_t elements() const { return count * rows * cols; }
    bool operator==(const Shape&) const = default;
};

struct Tensor {
    std::string name;
    const Format* format = nullptr;
    Shape shape;

    uint64_t row_bytes() const { return format->row_bytes(shape.cols); }
    uint64_t bytes() const { return row_bytes() * shape.rows * shape.count; }
};

// A source of weights, read by position: backends never get a pointer into a mapped file (drivers stall on
// those).
class ByteSource {
public:
    virtual ~ByteSource() = default;
    // Fills `out` with bytes of `tensor` (an index into the list given to Backend::load) from `offset` on.
    virtual Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) = 0;
};

}  // namespace redline
