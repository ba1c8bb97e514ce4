#include "cli/npy.h"

#include <bit>

namespace redline::cli {

static_assert(std::endian::native == std::endian::little, "values are written as they are, under '<f4'");

Result<NpyWriter> NpyWriter::create(const std::string& path) {
    return NpyWriter(RL_TRY(AtomicWriter::create(path)));
}

Status NpyWriter::write_shape(uint64_t rows, uint64_t cols) {
    std::string header =
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
    // Magic, version and length are 10 bytes; the whole is a multiple of 64 and ends with a line end.
    const size_t whole = (10 + header.size() + 1 + 63) / 64 * 64;
    header.resize(whole - 11, ' ');
    header += '\n';
    std::string start = "\x93NUMPY";
    start += {1, 0, char(header.size() & 0xFF), char(header.size() >> 8)};
    RL_TRY(file_.write(std::as_bytes(std::span(start))));
    return file_.write(std::as_bytes(std::span(header)));
}

}  // namespace redline::cli
