// Speed of the attention kernels: GB/s of cache read while decoding, GFLOP/s over a prompt of 512.
// usage: micro_attention [level [word ...]]; only cases whose label has all the words, such as `decode f16
// d=64`
#include "backends/cpu/kernels/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using redline::CacheInfo;
using redline::CacheType;
using namespace redline::cpu;

namespace {

double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

struct Shape {
    CacheType format;
    uint32_t kv_heads;
    uint32_t group;
    uint32_t dims;
};

const char* name(CacheType format) {
    return format == CacheType::f16 ? "f16" : "q8_0";
}

// Calls work(thread) on each of `threads` threads, several times; the least seconds of processor time that
// the busiest thread took. Not the clock on the wall: other programs may be running.
double best_seconds(unsigned threads, int runs, const std::function<void(unsigned)>& work) {
    double best = 1e30;
    for (int run = 0; run < runs; ++run) {
        std::vector<double> seconds(threads);
        const auto timed = [&](unsigned thread) {
            const double start = thread_seconds();
            work(thread);
            seconds[thread] = thread_seconds() - start;
        };
        std::vector<std::thread> others;
        for (unsigned i = 1; i < threads; ++i) others.emplace_back(timed, i);
        timed(0);
        for (std::thread& t : others) t.join();
        best = std::min(best, *std::max_element(seconds.begin(), seconds.end()));
    }
    return best;
}

// The plain reading speed that decoding is held against.
double read_gigabytes(unsigned threads) {
    const size_t words = size_t{64} << 20;
    const std::vector<uint64_t> memory(words, 1);
    std::atomic<uint64_t> sink = 0;
    const double seconds = best_seconds(threads, 5, [&](unsigned thread) {
        uint64_t sums[8] = {};
        for (size_t i = words * thread / threads; i + 8 <= words * (thread + 1) / threads; i += 8)
            for (size_t j = 0; j < 8; ++j) sums[j] += memory[i + j];
        for (const uint64_t s : sums) sink += s;
    });
    return double(words) * 8 / seconds * 1e-9;
}

// Enough layers of caches that no cache of the CPU holds them.
struct Caches {
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    std::vector<std::vector<Line>> memory;  // [layer * kv_heads + head]
    std::vector<KvHead> heads;

    Caches(const Shape& shape, Isa isa, uint64_t tokens, size_t total_bytes) {
        std::mt19937 random(1);
        std::normal_distribution<float> normal;
        std::vector<float> x(size_t{shape.dims} * 97);
        for (float& v : x) v = normal(random);
        const size_t bytes = kv_head_bytes(shape.format, shape.dims, tokens);
        const size_t layers = std::max<size_t>(1, total_bytes / (bytes * shape.kv_heads));
        memory.resize(layers * shape.kv_heads);
        for (std::vector<Line>& m : memory) {
            m.resize(bytes / sizeof(Line) + 1);
            heads.push_back({shape.format, shape.dims, tokens, m[0].bytes});
            for (uint64_t p = 0; p < tokens; ++p)
                attention_kernels(isa).kv_store(heads.back(), p, &x[p % 97 * shape.dims],
                                                &x[p % 89 * shape.dims]);
        }
    }
};

Attend base_work(const Shape& shape, const std::vector<float>& q, std::vector<float>& out) {
    Attend work;
    work.q = q.data();
    work.out = out.data();
    work.q_stride = work.out_stride = size_t{shape.kv_heads} * shape.group * shape.dims;
    work.group = shape.group;
    work.scale = 1.0f / std::sqrt(float(shape.dims));
    return work;
}

std::vector<float> random_floats(size_t count) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    std::vector<float> x(count);
    for (float& v : x) v = normal(random);
    return x;
}

void bench_decode(const std::string& label, Isa isa, const Shape& shape, uint64_t depth, const double* peak) {
    const Caches caches(shape, isa, depth, size_t{512} << 20);
    const size_t width = size_t{shape.kv_heads} * shape.group * shape.dims;
    const std::vector<float> q = random_floats(width);
    std::vector<float> out(width);
    fmt::print("{}", label);
    for (const unsigned threads : {1u, 2u}) {
        const double seconds = best_seconds(threads, 5, [&](unsigned thread) {
            std::vector<std::byte> scratch(attend_scratch_bytes(1, shape.group, shape.dims));
            for (size_t i = thread; i < caches.heads.size(); i += threads) {
                const size_t head = i % shape.kv_heads * shape.group * shape.dims;
                Attend work = base_work(shape, q, out);
                work.q += head;
                work.out += head;
                work.rows = 1;
                work.kv = caches.heads[i];
                work.first_position = depth - 1;
                work.key_end = depth;
                work.scratch = scratch.data();
                attention_kernels(isa).attend(work);
            }
        });
        const double bytes = double(caches.heads.size()) *
                             double(depth * CacheInfo{1, shape.dims, 1, shape.format}.row_bytes());
        const double rate = bytes / seconds * 1e-9;
        fmt::print("  {} threads {:6.2f} GB/s ({:3.0f} % of reading)", threads, rate,
                   100 * rate / peak[threads - 1]);
    }
    fmt::print("\n");
}

void bench_prefill(const std::string& label, Isa isa, const Shape& shape, uint64_t depth) {
    constexpr uint32_t kRows = 512, kCallRows = 64;
    const Caches caches(shape, isa, depth + kRows, 1);
    const size_t width = size_t{shape.kv_heads} * shape.group * shape.dims;
    const std::vector<float> q = random_floats(width * kRows);
    std::vector<float> out(q.size());
    fmt::print("{}", label);
    for (const unsigned threads : {1u, 2u}) {
        const double seconds = best_seconds(threads, depth == 0 ? 7 : 3, [&](unsigned thread) {
            std::vector<std::byte> scratch(attend_scratch_bytes(kCallRows, shape.group, shape.dims));
            const uint32_t calls = kRows / kCallRows * shape.kv_heads;
            for (uint32_t i = thread; i < calls; i += threads) {
                const uint32_t row = i / shape.kv_heads * kCallRows;
                const size_t at = row * width + size_t{i % shape.kv_heads} * shape.group * shape.dims;
                Attend work = base_work(shape, q, out);
                work.q += at;
                work.out += at;
                work.rows = kCallRows;
                work.kv = caches.heads[i % shape.kv_heads];
                work.first_position = depth + row;
                work.key_end = depth + kRows;
                work.scratch = scratch.data();
                attention_kernels(isa).attend(work);
            }
        });
        const double pairs = double(kRows) * double(depth) + 0.5 * double(kRows) * (kRows + 1);
        const double flops = 4.0 * pairs * double(width);
        fmt::print("  {} threads {:7.1f} GFLOP/s", threads, flops / seconds * 1e-9);
    }
    fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
    Isa isa = best_isa();
    for (const Isa level : kIsaLevels)
        if (argc > 1 && std::string_view(argv[1]) == isa_name(level)) isa = std::min(level, isa);
    const double peak[] = {read_gigabytes(1), read_gigabytes(2)};
    fmt::print("{}; reading: {:.1f} GB/s with 1 thread, {:.1f} with 2\n", isa_name(isa), peak[0], peak[1]);
    const auto wanted = [argc, argv](const std::string& label) {
        return std::all_of(argv + std::min(argc, 2), argv + argc,
                           [&](const char* word) { return label.find(word) != std::string::npos; });
    };
    for (const CacheType format : {CacheType::f16, CacheType::q8_0})
        for (const Shape& shape :
             {Shape{format, 4, 8, 64}, Shape{format, 8, 4, 128}, Shape{format, 8, 1, 128}})
            for (const char* phase : {"decode", "prefill"})
                for (const uint64_t depth : {0, 4096, 8192, 32768}) {
                    const bool decode = phase[0] == 'd';
                    if (decode ? depth % 8192 == 0 && depth != 32768 : depth % 8192 != 0 || depth == 32768)
                        continue;
                    const std::string label =
                        fmt::format("{:7} {:4} kv={} group={} d={:<3} depth={:<5}", phase, name(format),
                                    shape.kv_heads, shape.group, shape.dims, depth);
                    if (!wanted(label)) continue;
                    if (decode)
                        bench_decode(label, isa, shape, depth, peak);
                    else
                        bench_prefill(label, isa, shape, depth);
                }
}
