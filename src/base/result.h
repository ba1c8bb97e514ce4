// Result<T>: a value or an error sentence. RL_TRY passes an error up; RL_CHECK stops the program on bugs of
// redline. The library reports the world's faults through Result and never prints, throws or exits.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

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
    return Error{fmt::format(format, std::forward<Args>(args)...)};
}

template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    T& value() & { return std::get<0>(state_); }
    const T& value() const& { return std::get<0>(state_); }
    T&& value() && { return std::get<0>(std::move(state_)); }
    Error& error() & { return std::get<1>(state_); }
    const Error& error() const& { return std::get<1>(state_); }
    T* operator->() { return &value(); }
    T& operator*() { return value(); }

private:
    std::variant<T, Error> state_;
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
