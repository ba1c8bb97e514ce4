// Measures the read bandwidth of main memory with a number of threads: the ceiling for decoding, which reads
// every weight once per token. Prints GB/s, best of several passes over 2 GB. Each thread reads several
// streams at once with software prefetch: on some machines (Sapphire Rapids in a virtual machine, 2026-11)
// one plain stream per thread reaches only half of what the memory gives. build: c++ -O3 -march=native
// -std=c++20 -pthread read_bandwidth.cpp -o read_bandwidth      run: read_bandwidth 2

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace {

using Words = uint64_t __attribute__((vector_size(64), aligned(64)));
constexpr size_t kTotalBytes = size_t(2) << 30;
constexpr size_t kLine = 64;
constexpr size_t kRun = 256;  // bytes read from one stream before the next one's turn

// Sums `bytes` at `data` as `streams` equal parts read side by side. The sum keeps the loads alive.
template <size_t streams>
uint64_t sum(const char* data, size_t bytes, size_t ahead) {
    Words total[4] = {};
    const size_t part = bytes / streams / kRun * kRun;
    for (size_t at = 0; at < part; at += kRun)
        for (size_t stream = 0; stream < streams; ++stream)
            for (size_t line = 0; line < kRun / kLine; ++line) {
                const char* source = data + stream * part + at + line * kLine;
                if (ahead > 0) __builtin_prefetch(source + ahead);
                total[line % 4] += *reinterpret_cast<const Words*>(source);
            }
    const Words all = total[0] + total[1] + total[2] + total[3];
    uint64_t result = 0;
    for (int i = 0; i < 8; ++i) result += all[i];
    return result;
}

double pass(const char* data, size_t threads, uint64_t (*reader)(const char*, size_t, size_t), size_t ahead) {
    const size_t share = kTotalBytes / threads / 4096 * 4096;
    std::vector<uint64_t> sums(threads);
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (size_t i = 0; i < threads; ++i)
        workers.emplace_back([&, i] { sums[i] = reader(data + i * share, share, ahead); });
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    for (const uint64_t value : sums)
        if (value == 0) std::fprintf(stderr, "impossible sum\n");
    return double(share * threads) / time.count() / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
    const size_t threads =
        argc > 1 ? size_t(std::atol(argv[1])) : std::max(1u, std::thread::hardware_concurrency());
    if (threads == 0 || threads > 4096) {
        std::fprintf(stderr, "usage: read_bandwidth [threads]\n");
        return 1;
    }
    void* memory = std::aligned_alloc(size_t(2) << 20, kTotalBytes + (size_t(2) << 20));
    if (memory == nullptr) {
        std::fprintf(stderr, "no memory for a buffer of 2 GB\n");
        return 1;
    }
    char* data = static_cast<char*>(memory);
#ifdef __linux__
    madvise(data, kTotalBytes, MADV_HUGEPAGE);
#endif
    std::fill(data, data + kTotalBytes, char(1));
    double best = 0;
    for (int repeat = 0; repeat < 3; ++repeat)
        for (const size_t ahead : {size_t(0), size_t(2048), size_t(8192)}) {
            best = std::max(best, pass(data, threads, sum<1>, ahead));
            best = std::max(best, pass(data, threads, sum<4>, ahead));
        }
    std::printf("%.1f\n", best);
    std::free(memory);
    return 0;
}
