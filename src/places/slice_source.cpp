#include "places/slice_source.h"

#include <algorithm>
#include <cstring>

namespace redline {

namespace {

// Where number `index` of those in the runs lies, and how many follow it there.
Run place_in(const Runs& runs, uint64_t index, uint64_t whole) {
    if (runs.empty()) return {index, whole - index};
    for (const Run& run : runs) {
        if (index < run.count) return {run.first + index, run.count - index};
        index -= run.count;
    }
    return {};
}

// Rows of a slice, one after another, in the rows of all matrices of the whole weight.
class SliceRows {
public:
    SliceRows(const Tensor& whole, const WeightSlice& slice)
        : whole_(whole), slice_(slice), shape_(slice.shape(whole.shape)) {}

    uint64_t row_bytes() const { return whole_.format->row_bytes(shape_.cols); }
    // A run of rows of the whole weight that begins with this row of the slice.
    Run rows_from(uint64_t row) const {
        const Run matrix = place_in(slice_.matrices, row / shape_.rows, whole_.shape.count);
        const Run in_matrix = place_in(slice_.rows, row % shape_.rows, whole_.shape.rows);
        const uint64_t further = slice_.rows.empty() ? (matrix.count - 1) * whole_.shape.rows : 0;
        return {matrix.first * whole_.shape.rows + in_matrix.first, in_matrix.count + further};
    }
    // Copies bytes [at, at + out.size()) of a row of the slice.
    void copy(const std::byte* row, uint64_t at, std::span<std::byte> out) const {
        const Format& format = *whole_.format;
        uint64_t begin = 0;
        for (const Run& run : slice_.cols) {
            const uint64_t bytes = format.row_bytes(run.count), end = begin + bytes;
            const uint64_t from = std::max(begin, at), to = std::min<uint64_t>(end, at + out.size());
            if (from < to)
                std::memcpy(out.data() + (from - at), row + format.row_bytes(run.first) + (from - begin),
                            to - from);
            begin = end;
        }
    }

private:
    const Tensor& whole_;
    const WeightSlice& slice_;
    Shape shape_;
};

constexpr uint64_t kReadAtATime = uint64_t(1) << 20;

}  // namespace

// Columns are taken out of whole rows, of which many are read at a time.
Status SliceSource::read(size_t tensor, uint64_t offset, std::span<std::byte> out) {
    const Tensor& whole = whole_[tensor].tensor;
    const SliceRows rows(whole, slices_[tensor]);
    const uint64_t row_bytes = rows.row_bytes(), whole_bytes = whole.row_bytes();
    std::vector<std::byte> buffer;
    while (!out.empty()) {
        const uint64_t at = offset % row_bytes;
        const Run run = rows.rows_from(offset / row_bytes);
        uint64_t done = std::min<uint64_t>(out.size(), run.count * row_bytes - at);
        if (slices_[tensor].cols.empty()) {
            RL_TRY(source_.read(tensor, run.first * whole_bytes + at, out.first(done)));
        } else {
            const uint64_t most = std::max<uint64_t>(1, kReadAtATime / whole_bytes);
            const uint64_t count = std::min(most, (at + done + row_bytes - 1) / row_bytes);
            done = std::min(done, count * row_bytes - at);
            buffer.resize(count * whole_bytes);
            RL_TRY(source_.read(tensor, run.first * whole_bytes, buffer));
            for (uint64_t row = 0, put = 0; put < done; ++row) {
                const uint64_t from = row == 0 ? at : 0, bytes = std::min(row_bytes - from, done - put);
                rows.copy(buffer.data() + row * whole_bytes, from, out.subspan(put, bytes));
                put += bytes;
            }
        }
        out = out.subspan(done);
        offset += done;
    }
    return {};
}

}  // namespace redline
