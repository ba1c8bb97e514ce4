// What formats with code books share. A book stands in the module, where kernels read it, but for those of
// one token: a block of theirs copies it to shared memory (see own_form in unit.h), which 32 lanes read in
// the time of a few.
#pragma once

#include "kernels/unit.h"

#include "backends/shared/code_books.h"

namespace redline::hip {

RL_TABLE kIq3XxsBook = levels_to_62(formats::kIq3XxsGrid);
RL_TABLE kIq3SBook = levels_to_15(formats::kIq3SGrid);
RL_TABLE kIq2XxsBook = spread_eights(formats::kIq2XxsGrid);
RL_TABLE kIq2XsBook = spread_eights(formats::kIq2XsGrid);
RL_TABLE kIq2SBook = spread_eights(formats::kIq2SGrid);
RL_TABLE kIq1Book = ternary_pairs(formats::kIq1Grid);

template <uint32_t kWords>
RL_DEVICE uint32_t* shared_book() {
    RL_SHARED uint32_t words[kWords];
    return words;
}
template <uint32_t kBlockThreads, uint32_t kWords>
RL_DEVICE void share_book(const Book<kWords>& book) {
    for (uint32_t i = thread_index(); i < kWords; i += kBlockThreads) shared_book<kWords>()[i] = book.d[i];
}
// The word so many bytes behind a book's beginning.
template <bool kShared, uint32_t kWords>
RL_DEVICE uint32_t book_word(const Book<kWords>& book, uint32_t bytes) {
    const uint32_t* words = book.d;
    if constexpr (kShared) words = shared_book<kWords>();
    return *reinterpret_cast<const uint32_t*>(reinterpret_cast<const uint8_t*>(words) + bytes);
}
// Four times the field of kBits from bit kFirst on: where that word of a book is.
template <uint32_t kFirst, uint32_t kBits>
RL_DEVICE uint32_t entry_bytes(uint32_t word) {
    constexpr uint32_t kMask = ((1u << kBits) - 1) << 2;
    if constexpr (kBits == 8 && kFirst % 8 == 0 && kFirst > 0)
        return byte_dot4(word, 4u << kFirst, 0);  // one instruction in place of two
    else if constexpr (kFirst < 2)
        return (word << (2 - kFirst)) & kMask;
    else
        return (word >> (kFirst - 2)) & kMask;
}

// A unit of most has a word of signs: where bit l of nibble 2j is set, element 8l + j is negative, of nibble
// 2j + 1 element 8l + 4 + j.

// Of a word whose eights have an even number of minus signs each, so that the first of each follows from the
// other seven: its bit, in the lowest nibble, is another field's.
RL_DEVICE uint32_t even_signs(uint32_t word) {
    uint32_t parity = word ^ word >> 16;
    parity ^= parity >> 8;
    parity ^= parity >> 4;
    return word ^ (parity & 15u);
}

// The levels of word k with their signs. None is zero, so that no byte carries into the next.
RL_DEVICE uint32_t signed_levels(uint32_t levels, uint32_t signs, uint32_t k) {
    const uint32_t minus = (signs >> (k / 2 + k % 2 * 4)) & 0x01010101u;
    return (levels ^ full_bytes(minus)) + minus;
}
// Words 2l and 2l + 1 of a unit whose entry l is this one, with nibbles of three levels, and of four with a
// sign.
RL_DEVICE void put_eight(uint32_t entry, uint32_t signs, uint32_t l, uint32_t (&words)[8]) {
    const uint32_t upper = l < 2 ? signs << (2 - l) : signs >> (l - 2);
    const TwoWords both = pick_eight(entry | (upper & 0x44444444u), 0x002B1908u, 0x00D5E7F8u);
    words[l * 2] = both.below;
    words[l * 2 + 1] = both.above;
}

// Words 2l and 2l + 1 of a unit whose entry l is this one of kIq1Book: eight times each number, and 2 unless
// it is moved down.
RL_DEVICE void put_ternary(uint32_t entry, uint32_t down, uint32_t l, uint32_t (&words)[8]) {
    const uint32_t pair = kIq1Book.d[entry / 2] >> (entry % 2 * 4), up = (down - 1) & 0x02020202u;
    words[l * 2] = (pair & 0x03030303u) * 8 + up;
    words[l * 2 + 1] = ((pair >> 2) & 0x03030303u) * 8 + up;
}
// In shared memory an entry has a word: nibbles of four times each number.
constexpr uint32_t kTernaryEntries = 2048;
template <uint32_t kBlockThreads>
RL_DEVICE void share_ternary_book() {
    for (uint32_t i = thread_index(); i < kTernaryEntries / 2; i += kBlockThreads) {
        const uint32_t pair = kIq1Book.d[i];
        RL_UNROLL
        for (uint32_t e = 0; e < 2; ++e)
            shared_book<kTernaryEntries>()[i * 2 + e] =
                (((pair >> (4 * e)) & 0x03030303u) << 2) | (((pair >> (4 * e)) & 0x0C0C0C0Cu) << 4);
    }
}
// Words 2l and 2l + 1 of a unit whose entry l is so many bytes behind its beginning.
RL_DEVICE void put_shared_ternary(uint32_t bytes, uint32_t ones, uint32_t l, uint32_t (&words)[8]) {
    const auto* book = reinterpret_cast<const uint8_t*>(shared_book<kTernaryEntries>());
    const uint32_t entry = *reinterpret_cast<const uint32_t*>(book + bytes) | ones;
    words[l * 2] = entry & 0x0F0F0F0Fu;
    words[l * 2 + 1] = (entry >> 4) & 0x0F0F0F0Fu;
}

}  // namespace redline::hip
