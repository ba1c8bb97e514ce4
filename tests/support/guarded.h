// An array whose end touches an inaccessible page, so that reading or writing past it stops the test; what
// lies before it is watched. Starts as all-ones bytes: NaN for floats and halfs.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

namespace redline::test {

template <typename T>
class Guarded {
public:
    explicit Guarded(size_t count) : count_(count) {
        const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        bytes_ = (count * sizeof(T) + 2 * page - 1) / page * page;
        void* memory =
            mmap(nullptr, bytes_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        base_ = static_cast<unsigned char*>(memory);
        mprotect(base_ + bytes_, page, PROT_NONE);
        mapped_ = bytes_ + page;
        std::memset(base_, 0xFF, bytes_);
    }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;
    ~Guarded() { munmap(base_, mapped_); }

    T* data() { return reinterpret_cast<T*>(base_ + bytes_ - count_ * sizeof(T)); }
    const T* data() const { return const_cast<Guarded*>(this)->data(); }
    T& operator[](size_t i) { return data()[i]; }
    const T& operator[](size_t i) const { return data()[i]; }
    size_t size() const { return count_; }
    T* begin() { return data(); }
    T* end() { return data() + count_; }
    // False after a write before the first element.
    bool intact() const {
        return std::all_of(base_, base_ + bytes_ - count_ * sizeof(T),
                           [](unsigned char b) { return b == 0xFF; });
    }

private:
    size_t count_;
    size_t bytes_ = 0;
    size_t mapped_ = 0;
    unsigned char* base_ = nullptr;
};

}  // namespace redline::test
