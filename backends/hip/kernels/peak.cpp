// What the machine's matrix units do when nothing has to be fetched: products of tiles that stay in
// registers, by the instructions of matrix.h and, in int8, of bytes.h (MFMA, WMMA, mma.sync).
#include "kernels/args.h"
#include "kernels/bytes.h"

#if !defined(__HIP__) || defined(__GFX9__) || defined(__GFX11__) || defined(__GFX12__)

namespace redline::hip {

using args::PeakArgs;

// Four rows of tiles with two columns: so many sums at a time hide an instruction's latency.
constexpr uint32_t kPeakRows = 4, kPeakColumns = 2;
constexpr uint32_t kPeakSums = kPeakRows * kPeakColumns;

// Ones, or numbers as good as random: what they are costs power, and so speed.
RL_DEVICE uint32_t bits_of(const PeakArgs& args, uint32_t i) {
    return (i * 2654435761u ^ thread_index() * 2246822519u) * 3266489917u * args.varied;
}
// Halfs of magnitude 1 to 2, of either sign.
RL_DEVICE uint16_t half_of(const PeakArgs& args, uint32_t i) {
    return uint16_t(0x3C00u | (bits_of(args, i) >> 16 & 0x83FFu));
}
RL_DEVICE uint32_t bytes_of(const PeakArgs& args, uint32_t i) {
    return 0x01010101u ^ bits_of(args, i);
}

// The sums of all elements of a thread, by their number: of ones it is what an element should be.
template <typename Sums>
RL_DEVICE void write_sums(const PeakArgs& args, const Sums (&sums)[kPeakSums], uint32_t elements) {
    float all = 0.0f;
    for (uint32_t n = 0; n < kPeakSums; ++n)
        for (uint32_t i = 0; i < elements; ++i) all += float(sums[n].d[i]);
    args.out[size_t(block_index().x) * kTileThreads + thread_index()] = all / float(kPeakSums * elements);
}

RL_DENSE_KERNEL(kTileThreads, 2, peak_halfs, PeakArgs) {
    RL_SHARED uint16_t tiles[(kPeakRows + kPeakColumns) * 256];
    for (uint32_t i = thread_index(); i < (kPeakRows + kPeakColumns) * 256; i += kTileThreads)
        tiles[i] = half_of(args, i);
    sync_block();
    MatrixTile a[kPeakRows], b[kPeakColumns];
    RL_UNROLL
    for (uint32_t i = 0; i < kPeakRows; ++i) a[i] = load_tile(tiles + i * 256, 16);
    RL_UNROLL
    for (uint32_t i = 0; i < kPeakColumns; ++i) b[i] = load_tile(tiles + (kPeakRows + i) * 256, 16);
    MatrixSums sums[kPeakSums] = {};
    for (uint32_t round = 0; round < args.rounds; ++round) {
        RL_UNROLL
        for (uint32_t n = 0; n < kPeakSums; ++n)
            multiply_add(a[n / kPeakColumns], b[n % kPeakColumns], sums[n]);
    }
    write_sums(args, sums, kSumsPerLane);
}

RL_DENSE_KERNEL(kTileThreads, 2, peak_bytes, PeakArgs) {
    ByteTile a[kPeakRows], b[kPeakColumns];
    for (uint32_t i = 0; i < kPeakRows; ++i) RL_UNROLL
    for (uint32_t k = 0; k < kByteWords; ++k) a[i].d[k] = bytes_of(args, i * kByteWords + k);
    for (uint32_t i = 0; i < kPeakColumns; ++i) RL_UNROLL
    for (uint32_t k = 0; k < kByteWords; ++k) b[i].d[k] = bytes_of(args, (kPeakRows + i) * kByteWords + k);
    ByteSums sums[kPeakSums] = {};
    for (uint32_t round = 0; round < args.rounds; ++round) {
        RL_UNROLL
        for (uint32_t n = 0; n < kPeakSums; ++n)
            multiply_add_bytes(a[n / kPeakColumns], b[n % kPeakColumns], sums[n]);
    }
    write_sums(args, sums, kSumsPerLane);
}

}  // namespace redline::hip

#endif
