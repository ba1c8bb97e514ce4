// Products of many rows on matrix units.
#include "steps.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

// Of a weight that is unpacked at a time: as much as gives a large device a work-group for each of its
// processors, and as a rule still is in its caches when it is multiplied.
constexpr uint64_t kFewestUnpacked = uint64_t(32) << 20, kMostUnpacked = uint64_t(256) << 20;
constexpr uint64_t kWorkGroups = 128;
constexpr uint64_t kTileRows = 128;  // of one or of two matrices
constexpr uint32_t kUnpackThreads = 256;
constexpr uint64_t kMostUnpackGroups = 4096;

// Rows of one wave, of all its matrices together; `rows` there are.
uint64_t wave_rows(const Device& device, uint64_t rows, uint64_t cols, uint64_t tokens) {
    const uint64_t tiles = (tokens + kMostTileTokens - 1) / kMostTileTokens;
    const uint64_t filling = (kWorkGroups + tiles - 1) / tiles * kTileRows * cols * 2;
    uint64_t bytes = std::clamp(filling, kFewestUnpacked, kMostUnpacked);
    if (device.unpacked_bytes > 0) bytes = device.unpacked_bytes;
    const uint64_t whole = (rows + kTileRows - 1) / kTileRows;
    return std::min(whole, std::max<uint64_t>(1, bytes / (cols * 2) / kTileRows)) * kTileRows;
}

// Of a part of a weight.
struct Piece {
    const UnpackedProduct* of;
    size_t part;
    uint64_t first, rows;
    uint64_t at, up_at;  // in the scratch
};
using Wave = std::vector<Piece>;

// Rows of one matrix up to the end of their last tile: pieces of so many begin aligned.
uint64_t piece_rows(uint64_t rows, uint64_t matrices) {
    const uint64_t tile = kTileRows / matrices;
    return (rows + tile - 1) / tile * tile;
}

uint64_t wave_bytes(uint64_t rows, uint64_t cols) {
    return aligned(rows * cols * 2);
}

std::vector<Wave> cut_waves(std::span<const UnpackedProduct> products, uint64_t most_rows, uint64_t at,
                            uint64_t bytes) {
    std::vector<Wave> waves;
    uint64_t room = 0, here = 0;
    for (const UnpackedProduct& product : products) {
        const uint64_t matrices = product.up ? 2 : 1;
        for (size_t part = 0; part < product.w->parts.size(); ++part)
            for (uint64_t first = 0; first < product.w->parts[part].rows;) {
                if (room < kTileRows) {
                    here = at + waves.size() % 2 * bytes;
                    waves.emplace_back();
                    room = most_rows;
                }
                const uint64_t rows = std::min(product.w->parts[part].rows - first, room / matrices),
                               size = piece_rows(rows, matrices) * product.w->cols * 2;
                waves.back().push_back({&product, part, first, rows, here, here + size});
                here += matrices * size;
                room -= piece_rows(rows, matrices) * matrices;
                first += rows;
            }
    }
    return waves;
}

Status unpack(Recorder& recorder, const View& view, const PlacedWeight& w, const Piece& piece, uint64_t at) {
    const WeightPart& part = w.parts[piece.part];
    const uint64_t units = w.cols / 32, count = piece.rows * units;
    const args::UnpackArgs push = {w.units(part), uint32_t(piece.first * units), uint32_t(count)};
    return recorder.dispatch(
        {fmt::format("unpack.{}", w.layout->name), 2, 1, {kUnpackThreads}},
        {part.buffer, view.scratch_at(at, piece.rows * w.cols * 2)}, push,
        striding(std::min((count + kUnpackThreads - 1) / kUnpackThreads, kMostUnpackGroups)));
}

Status unpack_all(Recorder& recorder, const View& view, const Wave& wave) {
    for (const Piece& piece : wave) {
        RL_TRY(unpack(recorder, view, *piece.of->w, piece, piece.at));
        if (piece.of->up) RL_TRY(unpack(recorder, view, *piece.of->up, piece, piece.up_at));
    }
    return {};
}

// Of a tile: fewer where the wave's large tiles, which are worked at side by side, would leave most of a
// large device idle.
uint32_t tile_tokens(const Wave& wave) {
    uint64_t high = 0;
    for (const Piece& piece : wave) {
        const uint64_t matrices = piece.of->up ? 2 : 1;
        high += piece_rows(piece.rows, matrices) * matrices / kTileRows;
    }
    const uint64_t tokens = wave.front().of->product.rows;
    uint32_t size = kMostTileTokens;
    while (size > 32 && high * ((tokens + size - 1) / size) <= kWorkGroups / 2) size /= 2;
    return size;
}

Status multiply_all(Recorder& recorder, const View& view, const Wave& wave, const Activations& x) {
    const WeightLayout& halves = *weight_layout(*find_format("F16"));
    for (const Piece& piece : wave) {
        const PlacedWeight& w = *piece.of->w;
        const MatrixProduct& product = piece.of->product;
        const bool gated = piece.of->up != nullptr;
        const uint64_t rows_there = piece_rows(piece.rows, gated ? 2 : 1), bytes = rows_there * w.cols * 2;
        args::LinearArgs push = linear_args(w, w.parts[piece.part], product, {});
        push.act = uint32_t(product.act);
        push.first_row += uint32_t(piece.first);
        push.rows = uint32_t(piece.rows);
        const Tiles tiles = coop_tiles(
            recorder.device(), Path::unpacked, gated ? "gated_coop" : "linear_coop", halves,
            product.cut.tile_tokens > 0 ? product.cut.tile_tokens : tile_tokens(wave), gated, product.cut);
        const Binding up = view.scratch_at(piece.up_at, bytes);
        RL_TRY(record_matrices(recorder, view, tiles, view.scratch_at(piece.at, bytes), gated ? &up : nullptr,
                               push, product, x, rows_there));
    }
    return {};
}

}  // namespace

Status record_matrices(Recorder& recorder, const View& view, const Tiles& tiles, Binding w, const Binding* up,
                       args::LinearArgs args, const MatrixProduct& product, const Activations& x,
                       uint64_t rows_there) {
    const uint64_t high = (args.rows + tiles.rows - 1) / tiles.rows;
    std::vector<uint32_t> constants = tiles.constants;
    constants[Tiles::kWhole] = rows_there >= high * tiles.rows && args.cols % tiles.depth == 0;
    const double per_token = (up ? 4.0 : 2.0) * double(args.rows) * double(args.cols);
    const Binding bias = view.vector(product.bias, view.step);
    return in_slices(recorder, product.rows, per_token, tiles.tokens, [&](uint32_t first, uint32_t tokens) {
        args.first_token = first;
        // Tokens along x: see linear_coop.comp.
        const Groups groups = {(tokens + tiles.tokens - 1) / tiles.tokens, high};
        if (up)
            return recorder.dispatch({tiles.shader, 5, 2, constants},
                                     {w, *up, x.prepared(), product.y, view.step, x.scales()}, args, groups,
                                     per_token * tokens);
        return recorder.dispatch({tiles.shader, 6, 1, constants},
                                 {w, x.prepared(), product.y, view.step, bias, x.scales()}, args, groups,
                                 per_token * tokens);
    });
}

// The fewer tokens, the more of the weight: of the fewest that steps are recorded for.
uint64_t unpacked_scratch(const Device& device, uint64_t rows, uint64_t cols, uint64_t most_tokens) {
    if (most_tokens <= kFewTileRows) return 0;
    const uint64_t tokens = std::min<uint64_t>(most_tokens, kRowClasses.back());
    return 2 * wave_bytes(wave_rows(device, rows, cols, tokens), cols);
}

Status record_unpacked(Recorder& recorder, const View& view, std::span<const UnpackedProduct> products,
                       const Activations& x, uint64_t at) {
    uint64_t all = 0;
    for (const UnpackedProduct& product : products)
        for (const WeightPart& part : product.w->parts) all += part.rows * (product.up ? 2 : 1);
    const uint64_t cols = products.front().w->cols,
                   rows = wave_rows(recorder.device(), all, cols, products.front().product.rows);
    const std::vector<Wave> waves = cut_waves(products, rows, at, wave_bytes(rows, cols));
    // The first beside the preparation of activations.
    const bool waits = recorder.take_barrier();
    RL_TRY(unpack_all(recorder, view, waves.front()));
    if (waits) recorder.barrier();
    for (size_t i = 0; i < waves.size(); ++i) {
        recorder.barrier();
        RL_TRY(multiply_all(recorder, view, waves[i], x));
        if (i + 1 < waves.size()) RL_TRY(unpack_all(recorder, view, waves[i + 1]));
    }
    return {};
}

}  // namespace redline::vulkan
