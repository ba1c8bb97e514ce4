// The CPU's inner kernels: one table of functions per instruction-set level. The portable table fills every
// slot; each higher level replaces what it does faster. Kernels know no threads, no plan and no model: they
// work on the range that they are given. Every slot is tested at every level that the machine has.
#pragma once

#include "formats/format.h"
#include "plan/types.h"

#include <cstddef>
#include <cstdint>

namespace redline::cpu {

enum class Isa : uint8_t { portable, avx2, avx512, amx };  // avx512 includes VNNI; amx includes avx512
constexpr Isa kIsaLevels[] = {Isa::portable, Isa::avx2, Isa::avx512, Isa::amx};
const char* isa_name(Isa isa);
// True for a level that this machine has, and whose CPUs this build has all kernels for.
bool has_isa(Isa isa);
// The highest such level; where a build for other CPUs has none, the machine's.
Isa best_isa();

// ---- Matrix times vectors ----

constexpr size_t kPanelRows = 16;
// With one activation row, kernels read so many panels side by side: hand them multiples, one after the
// other.
constexpr size_t kStreamPanels = 4;

// Bytes that a block of the file takes when packed: as many as there, or up to 1.42 times as many where
// kernels would have to look each entry of a code book up.
size_t packed_block_bytes(const Format& format);

// A weight matrix repacked for the kernels: panels of 16 rows, each panel contiguous, zero rows filling up
// the last. One layout for all levels. Made by pack_panel.
struct PackedMatrix {
    const Format* format = nullptr;
    uint64_t rows = 0;
    uint64_t cols = 0;
    const std::byte* data = nullptr;
    // What is read after the panels of a product, for its prefetches; null: the panel that follows them.
    const std::byte* next = nullptr;

    uint64_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
    uint64_t panel_bytes() const { return kPanelRows * (cols / format->block * packed_block_bytes(*format)); }
    uint64_t bytes() const { return panels() * panel_bytes(); }
};

// Repacks `rows` (1 to 16) consecutive rows as they stand in the file into one panel of panel_bytes().
void pack_panel(const Format& format, const std::byte* file_rows, size_t rows, size_t cols, std::byte* panel);
// Decodes one row of a packed matrix to floats, bit for bit as Format::decode does.
void unpack_row(const PackedMatrix& matrix, uint64_t row, float* out);

// How a product treats its activations, which decides what its result may be held to (tests,
// Kernel::precision).
enum class Activations : uint8_t { f32, bf16, int8_block32 };

struct LinearKernel {
    Activations activations;
    // Bytes of one prepared activation row; a multiple of 64. A set of rows takes that many times `rows`; how
    // the rows share it is the kernel's own matter, and a set is multiplied as a whole.
    size_t (*activation_bytes)(size_t cols);
    void (*prepare)(const float* x, size_t cols, std::byte* set, size_t row, size_t rows);
    // y[t * y_stride + r] = (or +=) sum_c w[r][c] x[t][c] for rows r of panels [panel_begin, panel_end), t in
    // [0, x_rows). x is a set of prepared rows, x_stride its activation_bytes.
    void (*multiply)(const PackedMatrix& w, uint64_t panel_begin, uint64_t panel_end, const std::byte* x,
                     size_t x_stride, size_t x_rows, float* y, size_t y_stride, bool accumulate);
    // A row's sums are those that it has alone, bit for bit, whatever few rows are beside it.
    bool alike = false;
};

// The kernel for a product of `format` with this many activation rows (few rows: bound by bandwidth; many: by
// arithmetic; the two may prepare activations differently).
const LinearKernel& linear_kernel(Isa isa, const Format& format, size_t x_rows);

// ---- Attention ----

// One key-value head of one layer, for one sequence. Layout private to kv_store/kv_load/attend. Quantized
// types need head_dim % 32 == 0.
struct KvHead {
    CacheTypes format = {};
    uint32_t head_dim = 0;
    uint64_t capacity = 0;      // rows
    std::byte* data = nullptr;  // best at a multiple of 64
    // Token p lies in row p % sequence_rows (0: capacity) of its sequence's, which are in these pages, or are
    // the first.
    uint64_t sequence_rows = 0;
    const uint32_t* pages = nullptr;
    uint32_t rank = 0;  // > 0: values are the first `rank` elements of keys

    uint32_t value_dim() const { return rank > 0 ? rank : head_dim; }
};
uint64_t kv_head_bytes(CacheTypes format, uint32_t head_dim, uint64_t capacity, uint32_t rank = 0);

// `group` query heads that share one key-value head, for `rows` consecutive tokens. Query (r, h) stands at
// q + r * q_stride + h * head_dim, what it sees likewise with value_dim in `out`. Row r (at position
// first_position + r) sees the keys p in [key_begin, key_end) with p <= its position and, when window > 0,
// position - p < window, or with `chunks` p / window == position / window.
struct Attend {
    const float* q = nullptr;
    size_t q_stride = 0;
    uint32_t rows = 0;
    uint32_t group = 0;
    KvHead kv;
    uint64_t first_position = 0;
    uint64_t key_begin = 0;
    uint64_t key_end = 0;
    float scale = 1.0f;
    float softcap = 0.0f;  // > 0: c * tanh(score / c)
    uint64_t window = 0;   // 0: none
    bool chunks = false;
    const float* sinks =
        nullptr;           // (group), an extra logit per head whose probability is dropped; may be null
    float* out = nullptr;  // as q, out_stride floats per row; null when only `partial` is wanted
    size_t out_stride = 0;
    bool few = false;              // each row is computed as if it were alone, bit for bit
    float* partial = nullptr;      // (rows, group, value_dim + 2): sum of exp * value, max score, sum of exp
    std::byte* scratch = nullptr;  // attend_scratch_bytes(); needs no alignment
};

struct AttentionKernels {
    // Writes the key and value of one token (head_dim floats each; of latents there is no value) into a row.
    void (*kv_store)(const KvHead& head, uint64_t row, const float* key, const float* value);
    void (*attend)(const Attend& work);
    // Merges `parts` partial results (each (rows, group, value_dim + 2), part_stride floats apart) into out.
    void (*combine)(const float* partials, size_t parts, size_t part_stride, const Attend& work);
    // Merges a partial result of `queries` queries into that of the keys before, as combine() does.
    void (*merge)(const float* part, float* into, size_t queries, size_t value_dim);
    // How attend() treats its operands with so many queries, rows times group.
    Activations (*activations)(size_t queries, uint32_t head_dim);
};
size_t attend_scratch_bytes(uint32_t rows, uint32_t group, uint32_t head_dim);
// Rows [first, first + count) as CacheStore::read() gives them for one head.
void kv_export(const KvHead& head, uint64_t first, uint64_t count, std::byte* out);
void kv_import(const KvHead& head, uint64_t first, uint64_t count, const std::byte* in);

// ---- Vectors ----

struct VectorKernels {
    // y = x / sqrt(mean(x^2) + eps) * gain; gain may be null (ones); y may be x.
    void (*rms_norm)(const float* x, const float* gain, float eps, size_t n, float* y);
    // y = act(gate) * up, as Act has it; y may be gate or up.
    void (*act_mul)(Act act, const float* gate, const float* up, size_t n, float* y);
    void (*add)(float* y, const float* x, size_t n);                  // y += x
    void (*add_scaled)(float* y, const float* x, float s, size_t n);  // y += s * x
    // Rotates the first 2 * pairs elements of a head: pair i is (2i, 2i+1), or (i, i + pairs) when
    // half_split.
    void (*rope)(float* head, const float* cosines, const float* sines, size_t pairs, bool half_split);
};

// Reads `count` words as fast as one thread can; the sum keeps the reads alive.
uint64_t read_words(const uint64_t* words, size_t count);

const AttentionKernels& attention_kernels(Isa isa);
const VectorKernels& vector_kernels(Isa isa);

}  // namespace redline::cpu
