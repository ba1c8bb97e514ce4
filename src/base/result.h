// Result<T>: a value or an error sentence. RL_TRY passes an error up; RL_CHECK stops the program on bugs of
// redline. The library reports the world's faults through Result and never prints, throws or exits.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace redline {

// The causes of errors that callers treat differently.
enum class Cause : uint8_t {
    other,
    no_device  // the wanted device does not exist, or cannot be opened
};

// One lower-case sentence without a final stop, which says what is wrong, where, and what would work.
struct Error {
    std::string message;
    Cause cause = Cause::other;
};

template <typename... Args>
Error error(fmt::format_string<Args...> format, Args&&... args) {
    return Error{fmt::vformat(format, fmt::make_format_args(args...))};
}

// Throws std::bad_variant_access: the end of value() and error() in a Result that holds the other.
[[noreturn]] void wrong_result();

// Written out: a std::variant in its place would be a fifth of a build.
template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)), ok_(true) {}
    Result(Error error) : error_(std::move(error)), ok_(false) {}
    Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : ok_(other.ok_) {
        take(std::move(other));
    }
    Result(const Result& other) requires std::is_copy_constructible_v<T> : ok_(other.ok_) { take(other); }
    Result& operator=(Result other) noexcept(std::is_nothrow_move_constructible_v<T>) {
        clear();
        ok_ = other.ok_;
        take(std::move(other));
        return *this;
    }
    ~Result() { clear(); }

    bool ok() const { return ok_; }
    explicit operator bool() const { return ok_; }
    T& value() & { return ok_ ? value_ : (wrong_result(), value_); }
    const T& value() const& { return ok_ ? value_ : (wrong_result(), value_); }
    T&& value() && { return std::move(value()); }
    Error& error() & { return ok_ ? (wrong_result(), error_) : error_; }
    const Error& error() const& { return ok_ ? (wrong_result(), error_) : error_; }
    T* operator->() { return &value(); }
    T& operator*() { return value(); }

private:
    template <typename Other>
    void take(Other&& other) {
        if (ok_)
            new (&value_) T(std::forward<Other>(other).value_);
        else
            new (&error_) Error(std::forward<Other>(other).error_);
    }
    void clear() {
        if (ok_)
            value_.~T();
        else
            error_.~Error();
    }

    union {
        T value_;
        Error error_;
    };
    bool ok_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    void value() const {}
    Error& error() & { return *error_; }
    const Error& error() const& { return *error_; }

private:
    std::optional<Error> error_;
};

using Status = Result<void>;

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace redline

// Yields the value, or returns the error from the enclosing function.
#define RL_TRY(expression)                                                          \
    __extension__({                                                                 \
        auto rl_result = (expression);                                              \
        if (!rl_result.ok()) return ::redline::Error(std::move(rl_result.error())); \
        std::move(rl_result).value();                                               \
    })

// Checks our invariants, in release builds too: RL_CHECK(condition, "format", args...).
#define RL_CHECK(condition, ...)                                                                 \
    do {                                                                                         \
        if (!(condition)) [[unlikely]]                                                           \
            ::redline::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
    } while (false)
