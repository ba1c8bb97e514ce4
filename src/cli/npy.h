// Writes a matrix of floats as NumPy reads it (format version 1.0), row by row, whole or not at all.
#pragma once

#include "base/file.h"

namespace redline::cli {

class NpyWriter {
public:
    static Result<NpyWriter> create(const std::string& path);
    // Goes before the values.
    Status write_shape(uint64_t rows, uint64_t cols);
    // The next values, in row order.
    Status write(std::span<const float> values) { return file_.write(std::as_bytes(values)); }
    Status commit() { return file_.commit(); }

private:
    explicit NpyWriter(AtomicWriter file) : file_(std::move(file)) {}

    AtomicWriter file_;
};

}  // namespace redline::cli
