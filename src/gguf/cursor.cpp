#include "gguf/cursor.h"

#include <algorithm>
#include <bit>

namespace redline {

static_assert(std::endian::native == std::endian::little, "numbers are copied as the file stores them");

// Large enough that reading is negligible beside parsing, small enough for the many small files of a split
// model.
static constexpr uint64_t kWindow = uint64_t(1) << 20;

Cursor::Cursor(const File& file)
    : file_(&file), name_(file.path()), file_size_(file.size()), limit_(std::min(file.size(), kMaxHeader)) {}

Cursor::Cursor(std::span<const std::byte> header, uint64_t file_size, std::string name)
    : name_(std::move(name)),
      file_size_(file_size),
      limit_(std::min({uint64_t(header.size()), file_size, kMaxHeader})) {
    window_ = header.first(size_t(limit_));
}

Status Cursor::fill(uint64_t bytes) {
    if (bytes > remaining()) {
        if (limit_ == kMaxHeader)
            return fail("reaches past byte {}, more than any real header: the file is damaged", kMaxHeader);
        return fail("needs {} bytes at byte {} but {} remain: the file is cut short or damaged", bytes,
                    position(), remaining());
    }
    // A header in memory is in the window from the start, so `bytes` was more than the rest.
    RL_CHECK(file_, "a header in memory has no more to read");
    const size_t kept = window_.size() - at_;
    const uint64_t start = position();
    const uint64_t wanted = std::min(std::max(bytes, kWindow), limit_ - start);
    std::vector<std::byte> next(size_t(wanted), std::byte{});
    std::copy_n(window_.begin() + std::ptrdiff_t(at_), kept, next.begin());
    RL_TRY(file_->read(start + kept, std::span(next).subspan(kept)));
    buffer_ = std::move(next);
    window_ = buffer_;
    base_ = start;
    at_ = 0;
    return {};
}

Result<std::string_view> Cursor::string(uint64_t limit) {
    const uint64_t length = RL_TRY(number<uint64_t>());
    if (length > remaining())
        return fail("claims a string of {} bytes at byte {} but {} remain", length, position(), remaining());
    if (length > limit)
        return fail("has a string of {} bytes at byte {}, the most accepted here is {}", length, position(),
                    limit);
    const auto bytes = RL_TRY(take(length));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace redline
