// The delta rule and the state space, compiled for AVX2 with FMA.
#include "vec_avx2.h"

#include "delta_loops.h"

namespace redline::cpu {

void delta_avx2(const DeltaToken& token) {
    delta(token);
}
void delta_chunk_avx2(const DeltaChunk& chunk) {
    delta_chunk(chunk);
}
void scan_avx2(const ScanToken& token) {
    scan(token);
}

}  // namespace redline::cpu
