// Visits all fields of a struct without a hand-written list that could miss one: structured bindings name
// every field, or do not compile.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace redline {

template <typename T>
constexpr bool kIsOptional = false;
template <typename T>
constexpr bool kIsOptional<std::optional<T>> = true;

// Converts to a field of any type. An optional is made from its value, since two conversions would be
// ambiguous.
struct AnyField {
    template <typename T, typename = std::enable_if_t<!kIsOptional<T>>>
    operator T() const;
};

constexpr size_t kMostFields = 16;

// The number of fields of a struct: the most initializers that compile.
template <typename T, size_t kTried = kMostFields>
constexpr size_t field_count() {
    constexpr auto takes = []<size_t... kAt>(std::index_sequence<kAt...>) {
        return requires {
            T{((void)kAt, AnyField())...};
        };
    };
    static_assert(!takes(std::make_index_sequence<kMostFields + 1>()), "visit_fields() takes fewer fields");
    if constexpr (takes(std::make_index_sequence<kTried>()))
        return kTried;
    else
        return field_count<T, kTried - 1>();
}

// Calls `visit` once, with all fields of `of` in the order of their declaration.
template <typename T, typename Visit>
constexpr void visit_fields(T& of, Visit&& visit) {
    constexpr size_t kCount = field_count<std::remove_const_t<T>>();
    if constexpr (kCount == 1) {
        auto& [a] = of;
        visit(a);
    } else if constexpr (kCount == 2) {
        auto& [a, b] = of;
        visit(a, b);
    } else if constexpr (kCount == 3) {
        auto& [a, b, c] = of;
        visit(a, b, c);
    } else if constexpr (kCount == 4) {
        auto& [a, b, c, d] = of;
        visit(a, b, c, d);
    } else if constexpr (kCount == 5) {
        auto& [a, b, c, d, e] = of;
        visit(a, b, c, d, e);
    } else if constexpr (kCount == 6) {
        auto& [a, b, c, d, e, f] = of;
        visit(a, b, c, d, e, f);
    } else if constexpr (kCount == 7) {
        auto& [a, b, c, d, e, f, g] = of;
        visit(a, b, c, d, e, f, g);
    } else if constexpr (kCount == 8) {
        auto& [a, b, c, d, e, f, g, h] = of;
        visit(a, b, c, d, e, f, g, h);
    } else if constexpr (kCount == 9) {
        auto& [a, b, c, d, e, f, g, h, i] = of;
        visit(a, b, c, d, e, f, g, h, i);
    } else if constexpr (kCount == 10) {
        auto& [a, b, c, d, e, f, g, h, i, j] = of;
        visit(a, b, c, d, e, f, g, h, i, j);
    } else if constexpr (kCount == 11) {
        auto& [a, b, c, d, e, f, g, h, i, j, k] = of;
        visit(a, b, c, d, e, f, g, h, i, j, k);
    } else if constexpr (kCount == 12) {
        auto& [a, b, c, d, e, f, g, h, i, j, k, l] = of;
        visit(a, b, c, d, e, f, g, h, i, j, k, l);
    } else if constexpr (kCount == 13) {
        auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = of;
        visit(a, b, c, d, e, f, g, h, i, j, k, l, m);
    } else if constexpr (kCount == 14) {
        auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = of;
        visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
    } else if constexpr (kCount == 15) {
        auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = of;
        visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
    } else if constexpr (kCount == 16) {
        auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = of;
        visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
    }
}

}  // namespace redline
