// The delta rule and the state space, compiled for AVX-512.
#include "vec_avx512.h"

#include "delta_loops.h"

namespace redline::cpu {

void delta_avx512(const DeltaToken& token) {
    delta(token);
}
void delta_chunk_avx512(const DeltaChunk& chunk) {
    delta_chunk(chunk);
}
void scan_avx512(const ScanToken& token) {
    scan(token);
}

}  // namespace redline::cpu
