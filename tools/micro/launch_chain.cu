// What a chain of dependent kernels costs, and what one kernel that stays on the device costs instead: the
// matrix-vector products of one token of a mixture of experts (Qwen3-30B-A3B's shapes, four-bit weights,
// random bytes), a layer as seven stages of which each needs all results of the one before it.
//
//   nvcc -O3 -arch=sm_90 tools/micro/launch_chain.cu -o launch_chain
//   ./launch_chain [LAYERS]
//
// Ways: a captured graph of launches; the same with launches that begin early; one cooperative kernel whose
// blocks meet at a counter after each stage, without and with weights of the next stage brought to the cache
// before they meet. All ways end with the same checksum.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                            \
    do {                                                                                       \
        const auto result = call;                                                              \
        if (result != cudaSuccess) {                                                           \
            std::fprintf(stderr, "launch_chain: %s: %s\n", #call, cudaGetErrorString(result)); \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)

constexpr uint32_t kThreads = 256;

// A product of rows x cols; `known` where the weights to be read do not depend on the stage before (a
// router's choice).
struct Stage {
    const uint4* weights;
    uint32_t rows, cols, known;
};
struct Chain {
    Stage stages[8];
    uint32_t stage_count;
    float* values[2];   // results of even and odd stages
    uint32_t* arrived;  // how many blocks have come to a meeting, ever
    uint32_t layers;
    size_t layer_vectors;  // units of 16 bytes between the weights of two layers
};

__device__ int dot4(uint32_t a, uint32_t b, int sum) {
    return __dp4a(int(a), int(b), sum);
}
__device__ void bring_near(const void* line) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}

// The activations as bytes, in shared memory.
__device__ void quantize(const float* from, uint32_t cols, uint32_t* shared) {
    for (uint32_t i = threadIdx.x; i < cols / 4; i += blockDim.x) {
        uint32_t word = 0;
        for (uint32_t e = 0; e < 4; ++e) {
            const float value = __ldcg(from + i * 4 + e);
            word |= (uint32_t(int(value)) & 0xff) << 8 * e;
        }
        shared[i] = word;
    }
    __syncthreads();
}

__device__ int dot_unit(uint4 unit, const uint32_t* x) {
    const uint32_t words[4] = {unit.x, unit.y, unit.z, unit.w};
    int sum = 0;
    for (uint32_t w = 0; w < 4; ++w) {
        sum = dot4(words[w] & 0x0f0f0f0fu, x[2 * w], sum);
        sum = dot4(words[w] >> 4 & 0x0f0f0f0fu, x[2 * w + 1], sum);
    }
    return sum;
}

// Rows of a stage, a subgroup of 32 lanes each: those that (block, blocks) has. `first` is the first row's
// first units.
__device__ void product(const Stage& s, const uint4* weights, const uint32_t* x, float* to, uint32_t block,
                        uint32_t blocks, const uint4* first) {
    const uint32_t lane = threadIdx.x % 32, wave = threadIdx.x / 32, waves = kThreads / 32;
    const uint32_t units = s.cols / 32;
    bool is_first = first != nullptr;
    for (uint32_t row = wave * blocks + block; row < s.rows; row += waves * blocks, is_first = false) {
        const uint4* from = weights + size_t(row) * units;
        int sum = 0;
        for (uint32_t u = lane, n = 0; u < units; u += 32, ++n)
            sum += dot_unit(is_first && n < 2 ? (n ? first[1] : first[0]) : from[u], x + u * 8);
        for (uint32_t step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0) to[row] = float(uint32_t(sum + (1 << 24)) % 101) - 50;
    }
}

// The first units of the first row of a lane.
__device__ void first_units(const Stage& s, const uint4* weights, uint32_t block, uint32_t blocks,
                            uint4* first) {
    const uint32_t lane = threadIdx.x % 32, row = threadIdx.x / 32 * blocks + block, units = s.cols / 32;
    if (row >= s.rows) return;
    for (uint32_t n = 0; n < 2; ++n)
        if (lane + n * 32 < units) first[n] = weights[size_t(row) * units + lane + n * 32];
}
// Further rows of a block to the cache.
__device__ void rows_near(const Stage& s, const uint4* weights, uint32_t block, uint32_t blocks) {
    const uint32_t lane = threadIdx.x % 32, wave = threadIdx.x / 32, waves = kThreads / 32,
                   units = s.cols / 32;
    for (uint32_t row = (wave + waves) * blocks + block; row < s.rows; row += waves * blocks)
        for (uint32_t u = lane * 8; u < units; u += 256) bring_near(weights + size_t(row) * units + u);
}

template <bool kEarly>
__global__ void __launch_bounds__(kThreads) one_stage(Chain c, uint32_t layer, uint32_t stage) {
    __shared__ uint32_t x[4096 / 4 + 8];
    const Stage& s = c.stages[stage];
    const uint4* weights = s.weights + layer * c.layer_vectors;
    uint4 first[2] = {};
    if (kEarly) {
        asm volatile("griddepcontrol.launch_dependents;");
        if (s.known) first_units(s, weights, blockIdx.x, gridDim.x, first);
        asm volatile("griddepcontrol.wait;" ::: "memory");
    }
    quantize(c.values[(stage + c.stage_count * layer) % 2], s.cols, x);
    product(s, weights, x, c.values[(stage + c.stage_count * layer + 1) % 2], blockIdx.x, gridDim.x,
            kEarly && s.known ? first : nullptr);
}

__device__ void meet(uint32_t* arrived, uint32_t target) {
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
        uint32_t seen;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
        while (int32_t(seen - target) < 0);
    }
    __syncthreads();
}

// kAhead: 0 nothing, 1 the first row of each subgroup to registers, 2 all further rows to the cache, too; 3
// no products at all (meetings alone).
template <int kAhead>
__global__ void __launch_bounds__(kThreads) all_stages(Chain c, uint32_t start) {
    __shared__ uint32_t x[4096 / 4 + 8];
    uint32_t target = start;
    uint4 first[2] = {};
    for (uint32_t layer = 0; layer < c.layers; ++layer)
        for (uint32_t stage = 0; stage < c.stage_count; ++stage) {
            const Stage& s = c.stages[stage];
            const uint32_t at = stage + c.stage_count * layer;
            if (kAhead < 3) {
                const bool has_first = (kAhead == 1 || kAhead == 2) && s.known && at > 0;
                quantize(c.values[at % 2], s.cols, x);
                product(s, s.weights + layer * c.layer_vectors, x, c.values[(at + 1) % 2], blockIdx.x,
                        gridDim.x, has_first ? first : nullptr);
            }
            const uint32_t next = (stage + 1) % c.stage_count, next_layer = layer + (next == 0);
            if ((kAhead == 1 || kAhead == 2) && next_layer < c.layers && c.stages[next].known) {
                const uint4* weights = c.stages[next].weights + next_layer * c.layer_vectors;
                first_units(c.stages[next], weights, blockIdx.x, gridDim.x, first);
                if (kAhead == 2) rows_near(c.stages[next], weights, blockIdx.x, gridDim.x);
            }
            target += gridDim.x;
            meet(c.arrived, target);
        }
}

__global__ void fill(uint32_t* words, size_t count) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
         i += size_t(gridDim.x) * blockDim.x)
        words[i] = uint32_t(i * 2654435761u) ^ uint32_t(i >> 7);
}

struct Program {
    Chain chain{};
    cudaStream_t stream{};
    uint32_t units = 0, met = 0;
    size_t layer_bytes = 0;

    void make(uint32_t layers) {
        struct {
            uint32_t rows, cols, known;
        } const shapes[7] = {{5120, 2048, 1}, {4096, 512, 1},   {2048, 4096, 1}, {1024, 2048, 1},
                             {256, 1024, 1},  {12288, 2048, 0}, {16384, 768, 1}};
        chain.stage_count = 7;
        chain.layers = layers;
        size_t vectors = 0;
        for (auto& shape : shapes) vectors += size_t(shape.rows) * (shape.cols / 32);
        layer_bytes = vectors * 16;
        chain.layer_vectors = vectors;
        uint8_t* weights;
        CHECK(cudaMalloc((void**)&weights, layer_bytes * layers));
        fill<<<1024, 256>>>((uint32_t*)weights, layer_bytes * layers / 4);
        size_t at = 0;
        for (int i = 0; i < 7; ++i) {
            chain.stages[i] = {(const uint4*)weights + at, shapes[i].rows, shapes[i].cols, shapes[i].known};
            at += size_t(shapes[i].rows) * (shapes[i].cols / 32);
        }
        for (auto& values : chain.values) CHECK(cudaMalloc((void**)&values, 16384 * 4));
        CHECK(cudaMalloc((void**)&chain.arrived, 256));
        CHECK(cudaMemset(chain.arrived, 0, 256));
        cudaDeviceProp properties;
        CHECK(cudaGetDeviceProperties(&properties, 0));
        units = properties.multiProcessorCount;
        std::printf("%s, %u units, %u layers of 7 stages, %.1f MB a layer\n", properties.name, units, layers,
                    layer_bytes * 1e-6);
        CHECK(cudaStreamCreate(&stream));
    }
    void launch(bool early, uint32_t layer, uint32_t stage, uint32_t per_unit) {
        const uint32_t blocks = std::min(units * per_unit, (chain.stages[stage].rows + 7) / 8);
        cudaLaunchConfig_t config{};
        config.gridDim = blocks;
        config.blockDim = kThreads;
        config.stream = stream;
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        config.attrs = &attribute;
        config.numAttrs = early;
        CHECK(early ? cudaLaunchKernelEx(&config, one_stage<true>, chain, layer, stage)
                    : cudaLaunchKernelEx(&config, one_stage<false>, chain, layer, stage));
    }
    cudaGraphExec_t capture(bool early, uint32_t per_unit) {
        cudaGraph_t graph;
        cudaGraphExec_t whole;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (uint32_t layer = 0; layer < chain.layers; ++layer)
            for (uint32_t stage = 0; stage < chain.stage_count; ++stage)
                launch(early, layer, stage, per_unit);
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&whole, graph, 0));
        return whole;
    }
    void stay(const void* kernel, uint32_t blocks) {
        void* arguments[] = {&chain, &met};
        CHECK(cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(kThreads), arguments, 0, stream));
        met += blocks * chain.layers * chain.stage_count;
    }
    template <typename Run>
    void time(const char* name, uint32_t per_unit, Run&& run) {
        std::vector<float> start(16384, 1.0f);
        for (auto& values : chain.values)
            CHECK(cudaMemcpy(values, start.data(), start.size() * 4, cudaMemcpyHostToDevice));
        cudaEvent_t from, to;
        CHECK(cudaEventCreate(&from));
        CHECK(cudaEventCreate(&to));
        std::vector<float> times;
        double sum = 0;
        for (int i = 0; i < 30; ++i) {
            CHECK(cudaMemcpy(chain.values[0], start.data(), start.size() * 4, cudaMemcpyHostToDevice));
            CHECK(cudaEventRecord(from, stream));
            run();
            CHECK(cudaEventRecord(to, stream));
            CHECK(cudaEventSynchronize(to));
            float milliseconds;
            CHECK(cudaEventElapsedTime(&milliseconds, from, to));
            times.push_back(milliseconds);
        }
        std::vector<float> end(2048);
        CHECK(cudaMemcpy(end.data(), chain.values[chain.layers * 7 % 2], end.size() * 4,
                         cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < end.size(); ++i) sum += end[i] * double(i % 7 + 1);
        std::sort(times.begin(), times.end());
        const float usual = times[times.size() / 2];
        std::printf("%-44s %u a unit  %8.3f ms  %6.2f us a layer  %5.2f us a stage  %5.0f GB/s  sum %.0f\n",
                    name, per_unit, usual, usual * 1000 / chain.layers, usual * 1000 / chain.layers / 7,
                    layer_bytes * chain.layers / usual * 1e-6, sum);
    }
};

int main(int count, char** words) {
    Program program;
    program.make(count > 1 ? std::atoi(words[1]) : 48);
    for (uint32_t per_unit : {1, 2, 4, 8}) {
        auto graph = program.capture(false, per_unit);
        program.time("graph", per_unit, [&] { CHECK(cudaGraphLaunch(graph, program.stream)); });
    }
    for (uint32_t per_unit : {1, 2, 4, 8}) {
        auto graph = program.capture(true, per_unit);
        program.time("graph, launches begin early", per_unit,
                     [&] { CHECK(cudaGraphLaunch(graph, program.stream)); });
    }
    for (uint32_t per_unit : {1, 2, 4}) {
        const uint32_t blocks = program.units * per_unit;
        program.time("one kernel", per_unit, [&] { program.stay((const void*)all_stages<0>, blocks); });
        program.time("one kernel, first rows ahead", per_unit,
                     [&] { program.stay((const void*)all_stages<1>, blocks); });
        program.time("one kernel, all rows ahead", per_unit,
                     [&] { program.stay((const void*)all_stages<2>, blocks); });
        program.time("one kernel, meetings alone", per_unit,
                     [&] { program.stay((const void*)all_stages<3>, blocks); });
    }
}
