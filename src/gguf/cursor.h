// Reads the header of a GGUF file front to back, through a window on the file or straight from memory. Every
// take is checked against the bytes that remain before anything is allocated. Nothing is mapped: the file may
// shrink meanwhile.
#pragma once

#include "base/file.h"

#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

namespace redline {

class Cursor {
public:
    // More than any real header (250 k tokens and their merges are about 20 MB), so that a hostile one is
    // bounded.
    static constexpr uint64_t kMaxHeader = uint64_t(256) << 20;

    explicit Cursor(const File& file);
    Cursor(std::span<const std::byte> header, uint64_t file_size, std::string name);
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    const std::string& name() const { return name_; }
    uint64_t file_size() const { return file_size_; }
    uint64_t position() const { return base_ + at_; }
    uint64_t remaining() const { return limit_ - position(); }

    // Sets the item being read, for messages: "key general.name".
    void set_context(std::string context) { context_ = std::move(context); }
    // An error that names the file and the context.
    template <typename... Args>
    Error fail(fmt::format_string<Args...> format, Args&&... args) const {
        const std::string message = fmt::format(format, std::forward<Args>(args)...);
        if (context_.empty()) return error("{} {}", name_, message);
        return error("{}: {} {}", name_, context_, message);
    }

    // Takes the next `bytes` bytes, which stay valid until the next take.
    Result<std::span<const std::byte>> take(uint64_t bytes) {
        if (bytes > window_.size() - at_) RL_TRY(fill(bytes));
        const auto taken = window_.subspan(at_, size_t(bytes));
        at_ += size_t(bytes);
        return taken;
    }
    // Returns the next bytes without taking them: `most`, or fewer where the file ends.
    Result<std::span<const std::byte>> peek(uint64_t most) {
        const auto seen = RL_TRY(take(most < remaining() ? most : remaining()));
        at_ -= seen.size();
        return seen;
    }
    // Takes a little-endian number.
    template <typename T>
    Result<T> number() {
        static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
        T value;
        std::memcpy(&value, RL_TRY(take(sizeof(T))).data(), sizeof(T));
        return value;
    }
    // Takes a length and that many bytes, at most `limit`; valid until the next take.
    Result<std::string_view> string(uint64_t limit);

private:
    Status fill(uint64_t bytes);  // makes `bytes` unread bytes available in the window

    const File* file_ = nullptr;  // null: the window holds everything
    std::string name_;
    std::string context_;
    uint64_t file_size_ = 0;
    uint64_t limit_ = 0;  // readable bytes: the least of the file, the given header and kMaxHeader
    uint64_t base_ = 0;   // position of the window in the file
    size_t at_ = 0;       // read position in the window
    std::span<const std::byte> window_;
    std::vector<std::byte> buffer_;
};

}  // namespace redline
