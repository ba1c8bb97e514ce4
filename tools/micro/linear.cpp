// Measures the matrix kernels alone: GB/s with one activation row, GOP/s with many, and their share of what
// this machine reads and multiplies at best. Needs no model file.
//   micro_linear [--format Q4_K] [--isa avx512] [--threads 2] [--rows 5632] [--cols 2048] [--x-rows 1,512]
// Times are thread CPU times, the best of many short runs: other programs on the machine then disturb less.
#include "backends/cpu/kernels/linear.h"

#include <fmt/format.h>

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cxxopts.hpp>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace redline;
using namespace redline::cpu;

namespace {

double thread_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// Runs work(thread, turn) on all threads at once, `turns` times; the slowest thread's seconds in the best
// turn.
double best_seconds(unsigned threads, int turns, const std::function<void(unsigned, int)>& work) {
    std::vector<double> slowest(size_t(turns), 0.0);
    std::vector<std::vector<double>> seconds(threads, slowest);
    std::atomic<unsigned> arrived{0};
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < threads; ++t)
        pool.emplace_back([&, t] {
            for (int turn = 0; turn < turns; ++turn) {
                arrived.fetch_add(1);
                while (arrived.load() < threads * unsigned(turn + 1)) std::this_thread::yield();
                const double begin = thread_seconds();
                work(t, turn);
                seconds[t][size_t(turn)] = thread_seconds() - begin;
            }
        });
    for (std::thread& thread : pool) thread.join();
    double best = 1e9;
    for (int turn = 0; turn < turns; ++turn) {
        double worst = 0.0;
        for (unsigned t = 0; t < threads; ++t) worst = std::max(worst, seconds[t][size_t(turn)]);
        best = std::min(best, worst);
    }
    return best;
}

// Zeroed memory in huge pages where the system has them.
std::byte* allocate(size_t bytes) {
    constexpr size_t kHuge = size_t(2) << 20;
    bytes = (bytes + kHuge - 1) / kHuge * kHuge;
    void* memory = std::aligned_alloc(kHuge, bytes);
    if (!memory) std::abort();
    madvise(memory, bytes, MADV_HUGEPAGE);
    std::fill_n(static_cast<std::byte*>(memory), bytes, std::byte(0));
    return static_cast<std::byte*>(memory);
}

#if defined(__x86_64__)
// Four streams with a prefetch 2 KB ahead.
__attribute__((target("avx512f"))) void read_all(const std::byte* data, size_t bytes) {
    const size_t part = bytes / 4 / 256 * 256;
    __m512i sum[4] = {};
    for (size_t at = 0; at < part; at += 256)
        for (size_t s = 0; s < 4; ++s)
            for (size_t line = 0; line < 256; line += 64) {
                const std::byte* p = data + s * part + at + line;
                _mm_prefetch(reinterpret_cast<const char*>(p + 2048), _MM_HINT_T0);
                sum[s] = _mm512_or_si512(sum[s], _mm512_loadu_si512(p));
            }
    const __m512i all = _mm512_or_si512(_mm512_or_si512(sum[0], sum[1]), _mm512_or_si512(sum[2], sum[3]));
    asm volatile("" ::"v"(all));
}

// Byte dot products on registers alone; returns the operations done.
__attribute__((target("avx512f,avx512vnni"))) double multiply_registers(int turns) {
    for (int i = 0; i < turns; ++i)
        asm volatile(
            "vpdpbusd %%zmm12,%%zmm0,%%zmm0\n vpdpbusd %%zmm12,%%zmm1,%%zmm1\n vpdpbusd "
            "%%zmm12,%%zmm2,%%zmm2\n"
            "vpdpbusd %%zmm12,%%zmm3,%%zmm3\n vpdpbusd %%zmm12,%%zmm4,%%zmm4\n vpdpbusd "
            "%%zmm12,%%zmm5,%%zmm5\n"
            "vpdpbusd %%zmm12,%%zmm6,%%zmm6\n vpdpbusd %%zmm12,%%zmm7,%%zmm7\n vpdpbusd "
            "%%zmm12,%%zmm8,%%zmm8\n"
            "vpdpbusd %%zmm12,%%zmm9,%%zmm9\n vpdpbusd %%zmm12,%%zmm10,%%zmm10\n vpdpbusd "
            "%%zmm12,%%zmm11,%%zmm11"
            :
            :
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
              "xmm11");
    return double(turns) * 12 * 128;
}
#endif

struct Setup {
    unsigned threads;
    bool cached;  // one matrix over and over
    size_t rows, cols;
    double bandwidth, peak;  // bytes and operations per second
};

void measure(const Setup& setup, const Format& format, Isa isa, size_t x_rows) {
    const size_t cols = setup.cols / format.block * format.block;
    PackedMatrix matrix{&format, setup.rows, cols, nullptr};
    // Together far more than the last-level cache, when the time is that of reading.
    const size_t count =
        x_rows <= 64 && !setup.cached ? std::max<size_t>(2, (size_t(400) << 20) / matrix.bytes()) : 1;
    std::byte* data = allocate(count * matrix.bytes());
    std::mt19937 random(1);
    // Bytes of 0x20 to 0x3F: as floats, halves and exponents they are small but normal, for subnormals are
    // slow.
    std::vector<std::byte> block_row(kPanelRows * format.row_bytes(cols));
    for (std::byte& byte : block_row) byte = std::byte(0x20 | (random() & 0x1F));
    pack_panel(format, block_row.data(), kPanelRows, cols, data);
    for (size_t p = 1; p < count * matrix.panels(); ++p)
        std::copy_n(data, matrix.panel_bytes(), data + p * matrix.panel_bytes());

    const LinearKernel& kernel = linear_kernel(isa, format, x_rows);
    const size_t stride = kernel.activation_bytes(cols);
    std::byte* x = allocate(x_rows * stride);
    std::vector<float> row(cols);
    for (float& value : row) value = float(random() % 2001) / 1000.0f - 1.0f;
    for (size_t t = 0; t < x_rows; ++t) kernel.prepare(row.data(), cols, x, t, x_rows);
    auto* y = reinterpret_cast<float*>(allocate(x_rows * setup.rows * sizeof(float)));

    const double operations = 2.0 * double(setup.rows) * double(cols) * double(x_rows);
    const int turns = std::clamp(int(4e10 / operations), 6, 300);
    const double seconds = best_seconds(setup.threads, turns, [&](unsigned t, int turn) {
        PackedMatrix w = matrix;
        w.data = data + size_t(turn) % count * matrix.bytes();
        const uint64_t begin = w.panels() * t / setup.threads, end = w.panels() * (t + 1) / setup.threads;
        kernel.multiply(w, begin, end, x, stride, x_rows, y, setup.rows, false);
    });
    const double prepare =
        best_seconds(1, turns, [&](unsigned, int) { kernel.prepare(row.data(), cols, x, 0, x_rows); });
    const double bytes = double(matrix.bytes());
    fmt::print(
        "{:8} {:8} {:4} rows  {:9.3f} ms  {:7.2f} GB/s {:4.0f} %  {:8.1f} GOP/s {:4.0f} %  prepare {:.2f} "
        "us\n",
        format.name, isa_name(isa), x_rows, seconds * 1e3, bytes / seconds * 1e-9,
        100.0 * bytes / seconds / setup.bandwidth, operations / seconds * 1e-9,
        100.0 * operations / seconds / setup.peak, prepare * 1e6);
    std::free(data);
    std::free(x);
    std::free(y);
}

void measure_machine(Setup& setup) {
    setup.bandwidth = setup.peak = 1e9;
#if defined(__x86_64__)
    if (best_isa() < Isa::avx512) return;
    constexpr size_t kBytes = size_t(512) << 20, kSlice = size_t(64) << 20;
    std::byte* data = allocate(kBytes);
    const double reading = best_seconds(setup.threads, 40, [&](unsigned t, int turn) {
        const size_t share = kSlice / setup.threads;
        read_all(data + size_t(turn) % (kBytes / kSlice) * kSlice + t * share, share);
    });
    std::free(data);
    setup.bandwidth = double(kSlice) / reading;
    double operations = 0.0;
    const double multiplying = best_seconds(setup.threads, 40, [&](unsigned t, int) {
        const double done = multiply_registers(100000);
        if (t == 0) operations = done;
    });
    setup.peak = operations * setup.threads / multiplying;
#endif
    fmt::print("{} threads: reads {:.1f} GB/s, byte dot products {:.0f} GOP/s\n", setup.threads,
               setup.bandwidth * 1e-9, setup.peak * 1e-9);
}

}  // namespace

int main(int argc, char** argv) {
    cxxopts::Options options("micro_linear", "Measures the CPU matrix kernels");
    options.add_options()("format", "names, comma separated; all without",
                          cxxopts::value<std::vector<std::string>>())(
        "isa", "levels, comma separated", cxxopts::value<std::vector<std::string>>())(
        "threads", "", cxxopts::value<unsigned>()->default_value("2"))(
        "rows", "of the matrix", cxxopts::value<size_t>()->default_value("5632"))(
        "cols", "of the matrix", cxxopts::value<size_t>()->default_value("2048"))(
        "cached", "multiply by one matrix again and again")(
        "x-rows", "activation rows", cxxopts::value<std::vector<size_t>>()->default_value("1,512"));
    try {
        const auto given = options.parse(argc, argv);
        Setup setup{given["threads"].as<unsigned>(),
                    given.count("cached") > 0,
                    given["rows"].as<size_t>(),
                    given["cols"].as<size_t>(),
                    0,
                    0};
        measure_machine(setup);
        std::vector<const Format*> formats(all_formats().begin(), all_formats().end());
        if (given.count("format")) {
            formats.clear();
            for (const std::string& name : given["format"].as<std::vector<std::string>>())
                if (const Format* format = find_format(name)) formats.push_back(format);
        }
        std::erase_if(formats, [](const Format* f) { return panel_fields(f->gguf_id).empty(); });
        for (const Format* format : formats)
            for (const Isa isa : kIsaLevels) {
                if (!has_isa(isa)) continue;
                if (given.count("isa")) {
                    const auto wanted = given["isa"].as<std::vector<std::string>>();
                    if (std::find(wanted.begin(), wanted.end(), isa_name(isa)) == wanted.end()) continue;
                } else if (isa == Isa::portable) {
                    continue;
                }
                for (const size_t x_rows : given["x-rows"].as<std::vector<size_t>>())
                    measure(setup, *format, isa, x_rows);
            }
    } catch (const cxxopts::exceptions::exception& wrong) {
        fmt::print(stderr, "micro_linear: {}\n", wrong.what());
        return 1;
    }
    return 0;
}
