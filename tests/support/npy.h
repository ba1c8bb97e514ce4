// Reads a float32 .npy file of two dimensions, as numpy writes it.
#pragma once

#include "base/file.h"

#include <cstring>
#include <vector>

namespace redline::test {

struct Matrix {
    size_t rows = 0, cols = 0;
    std::vector<float> values;
    const float* row(size_t r) const { return values.data() + r * cols; }
};

inline Matrix read_npy(const std::string& path) {
    const std::string text = std::move(read_text_file(path)).value();
    const size_t header = size_t(uint8_t(text[8])) | size_t(uint8_t(text[9])) << 8;
    Matrix m;
    const char* shape = std::strstr(text.c_str() + 10, "'shape': (");
    std::sscanf(shape, "'shape': (%zu, %zu)", &m.rows, &m.cols);
    m.values.resize(m.rows * m.cols);
    std::memcpy(m.values.data(), text.data() + 10 + header, m.values.size() * sizeof(float));
    return m;
}

}  // namespace redline::test
