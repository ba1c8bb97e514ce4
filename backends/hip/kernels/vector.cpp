// The kernels that know neither a weight's format nor the cache's type: work per row or per element.
#include "kernels/args.h"
#include "kernels/attention_parts.h"
#include "kernels/best.h"
#include "kernels/block_args.h"
#include "kernels/dot.h"
#include "kernels/halfs.h"
#include "kernels/latent_merge.h"
#include "kernels/norms.h"
#include "kernels/route.h"

namespace redline::hip {

using namespace args;

constexpr uint32_t kMostStreams = 8;     // as in src/plan/ops/streams.h
constexpr uint32_t kMostHadamard = 512;  // as in src/plan/ops/rows.h

// y = factor * x / sqrt(mean(x^2) + eps) * gain over `width` elements: the row, or a head; y may be x.
RL_KERNEL(128, rms_norm, NormArgs) {
    RL_SHARED float parts[kWaves];
    norm_groups(args, OfX{}, AsItIs{}, parts);
}

// The same, added to y.
RL_KERNEL(128, rms_norm_add, NormArgs) {
    RL_SHARED float parts[kWaves];
    norm_groups(args, OfX{}, AddTo{args.y}, parts);
}

// The same, times act(gate).
RL_KERNEL(128, rms_norm_gated, NormArgs) {
    RL_SHARED float parts[kWaves];
    norm_groups(args, OfX{}, ActGate{args.gate, args.act}, parts);
}

// Of act(gate) * x in place of x.
RL_KERNEL(128, rms_norm_of_gated, NormArgs) {
    RL_SHARED float parts[kWaves];
    norm_groups(args, ActGate{args.gate, args.act}, AsItIs{}, parts);
}

// See kernels/norms.h.
RL_KERNEL(kTileThreads, normed_sum, NormedSumArgs) {
    RL_SHARED float parts[kTileThreads / kWave];
    normed_sum_rows(args, parts);
}

// y = x less its mean over `width` elements. A block per group; y may be x.
RL_KERNEL(128, center, NormArgs) {
    RL_SHARED float parts[kWaves];
    const size_t groups = size_t(rows_in_step(args.step, args.of_outputs)) * args.groups;
    for (size_t group = block_index().x; group < groups; group += grid_blocks()) {
        const float* x = args.x + group * args.width;
        float sum = 0.0f;
        for (uint32_t i = thread_index(); i < args.width; i += kThreads) sum += x[i];
        const float mean = block_sum(sum, parts) / float(args.width);
        for (uint32_t i = thread_index(); i < args.width; i += kThreads)
            args.y[group * args.width + i] = x[i] - mean;
    }
}

// y = x times a normed Walsh-Hadamard matrix, of `width` elements. A block per group; y may be x.
RL_KERNEL(128, hadamard, NormArgs) {
    RL_SHARED float sums[kMostHadamard];
    const size_t groups = size_t(rows_in_step(args.step, args.of_outputs)) * args.groups;
    for (size_t group = block_index().x; group < groups; group += grid_blocks()) {
        const size_t base = group * args.width;
        for (uint32_t i = thread_index(); i < args.width; i += kThreads) sums[i] = args.x[base + i];
        for (uint32_t half = 1; half < args.width; half *= 2) {
            sync_block();
            for (uint32_t pair = thread_index(); pair < args.width / 2; pair += kThreads) {
                const uint32_t i = pair / half * 2 * half + pair % half;
                const float a = sums[i], b = sums[i + half];
                sums[i] = a + b;
                sums[i + half] = a - b;
            }
        }
        sync_block();
        const float scale = 1.0f / __builtin_sqrtf(float(args.width));
        for (uint32_t i = thread_index(); i < args.width; i += kThreads) args.y[base + i] = sums[i] * scale;
        sync_block();
    }
}

// y = max(y - mean - deviations * standard deviation, 0), of a row. A block per row. The comparison lets NaN
// through.
RL_KERNEL(128, sparsify, SparsifyArgs) {
    RL_SHARED float parts[kWaves];
    const size_t rows = rows_in_step(args.step, args.of_outputs);
    for (size_t row = block_index().x; row < rows; row += grid_blocks()) {
        float* y = args.y + row * args.width;
        float sum = 0.0f;
        for (uint32_t i = thread_index(); i < args.width; i += kThreads) sum += y[i];
        const float mean = block_sum(sum, parts) / float(args.width);
        float squares = 0.0f;
        for (uint32_t i = thread_index(); i < args.width; i += kThreads)
            squares = fused(y[i] - mean, y[i] - mean, squares);
        const float variance = block_sum(squares, parts) / float(args.width);
        const float least = mean + args.deviations * root_of(variance);
        for (uint32_t i = thread_index(); i < args.width; i += kThreads)
            y[i] = y[i] < least ? 0.0f : y[i] - least;
    }
}

// Rows in int8, normed where there is a gain. A block per row.
RL_KERNEL(128, prepare_dots, PrepareArgs) {
    RL_SHARED float parts[kWaves];
    const uint32_t row = block_index().x, units = args.cols / 32;
    if (row >= rows_in_step(args.step, args.of_outputs) * args.per_token) return;
    const float* x = args.x + size_t(row) * args.cols;
    const float scale = args.gain ? norm_scale<kThreads>(x, units, args.eps, parts) : 1.0f;
    auto* to = static_cast<Words4*>(args.to) + size_t(row) * units * 3;
    quantize_halves<kThreads>(x, args.gain, scale, 0, 2 * units, to, to + 1,
                              reinterpret_cast<Float4*>(to + 2), 3);
}

// Rows as halfs. A block per row.
RL_KERNEL(128, prepare_halves, PrepareArgs) {
    RL_SHARED float parts[kWaves];
    const uint32_t row = block_index().x;
    if (row >= rows_in_step(args.step, args.of_outputs) * args.per_token) return;
    const float* x = args.x + size_t(row) * args.cols;
    const HalfScale scale = half_scale<kThreads>(args, x, parts);
    auto* to = static_cast<Words2*>(args.to) + size_t(row) * args.cols / 4;
    for (uint32_t i = thread_index(); i < args.cols / 4; i += kThreads)
        to[i] = four_halfs(args, x, i, scale.up);
    if (thread_index() == 0) args.row_scales[row] = scale.down;
}

// Rows in int8 for kernels/byte_tile.h. A block per row.
RL_KERNEL(128, prepare_bytes, PrepareArgs) {
    RL_SHARED float parts[kWaves];
    const uint32_t row = block_index().x, units = args.cols / 32;
    if (row >= rows_in_step(args.step, args.of_outputs) * args.per_token) return;
    const float* x = args.x + size_t(row) * args.cols;
    const float scale = args.gain ? norm_scale<kThreads>(x, units, args.eps, parts) : 1.0f;
    quantize_units<kThreads>(x, args.gain, scale, units,
                             static_cast<uint32_t*>(args.to) + size_t(row) * units * 8,
                             reinterpret_cast<Words2*>(args.row_scales) + size_t(row) * units);
}

#ifdef RL_FACTORS
// Rows as halfs for kernels/few.h.
RL_EARLY_KERNEL(kDotThreads, 2, prepare_few, PrepareArgs) {
    RL_SHARED float parts[2 * kDotThreads / kWave];
    using Held = HeldRow<kDotThreads>;
    const uint32_t row = block_index().x;
    let_next_start();
    if (args.cols > Held::kMostCols) {
        wait_for_inputs();
        if (row >= rows_in_step(args.step, args.of_outputs)) return;
        const float down = prepare_few_row<kDotThreads>(args, row, parts);
        if (thread_index() == 0) args.row_scales[row] = down;
        return;
    }
    Held held;
    held.read_gains(args);
    wait_for_inputs();
    held.read(args, args.x + size_t(row) * args.cols);  // there is room for as many rows as blocks
    if (row >= rows_in_step(args.step, args.of_outputs)) return;
    const HalfScale scale = held.scale(args, parts);
    held.put(args, row, scale.up);
    if (thread_index() == 0) args.row_scales[row] = scale.down;
}
#endif

// y[t][place] += bias[expert], or, weighted, y[t] += the sum over places of scale * bias[expert]. An id that
// is no expert counts as expert 0.
RL_KERNEL(128, add_expert_bias, ExpertBiasArgs) {
    const uint32_t places = args.scales ? 1 : args.used;
    each_element(size_t(args.step->rows) * places * args.width, [&](size_t i) {
        const size_t group = i / args.width, column = i % args.width;
        const auto bias = [&](size_t entry) {
            const uint32_t id = uint32_t(args.ids[entry]);
            return args.bias[size_t(id < args.experts ? id : 0) * args.width + column];
        };
        float y = args.y[i];
        if (!args.scales) y += bias(group);
        for (uint32_t place = 0; args.scales && place < args.used; ++place)
            y = fused(args.scales[group * args.used + place], bias(group * args.used + place), y);
        args.y[i] = y;
    });
}

// y[t] += the table's row at the token's position.
RL_KERNEL(128, add_position, PositionArgs) {
    each_element(size_t(args.step->rows) * args.width, [&](size_t i) {
        const uint32_t row = uint32_t(i / args.width);
        const uint32_t position = args.places ? args.places[row].position : args.step->position + row;
        args.y[i] += args.table[size_t(lesser(position, args.last)) * args.width + i % args.width];
    });
}

// y = scale * the sum over streams of weights * x. Weights are of elements, or with `flag` of streams.
RL_KERNEL(128, stream_mix, StreamArgs) {
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * args.width, [&](size_t i) {
        const size_t stream = i / args.width * args.streams, column = i % args.width;
        float sum = 0.0f;
        for (size_t s = stream; s < stream + args.streams; ++s)
            sum =
                fused(args.x[s * args.width + column], args.w[args.flag ? s : s * args.width + column], sum);
        args.y[i] = args.scale * sum;
    });
}

// Each stream of y += scale * (its weight + offset) * x; with `flag` it is not read.
RL_KERNEL(128, stream_add, StreamArgs) {
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * args.streams * args.width, [&](size_t i) {
        const size_t stream = i / args.width;
        if (stream % args.streams < args.first) return;
        const float weight = args.scale * ((args.w ? args.w[stream] : 0.0f) + args.offset);
        const float added = weight * args.x[stream / args.streams * args.width + i % args.width];
        args.y[i] = args.flag ? added : args.y[i] + added;
    });
}

// Stream i of y = that of x + the sum over j of weight i * streams + j * stream j of x.
RL_KERNEL(128, stream_turn, StreamArgs) {
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * args.streams * args.width, [&](size_t i) {
        const size_t stream = i / args.width, first = stream - stream % args.streams;
        float sum = args.x[i];
        for (uint32_t s = 0; s < args.streams; ++s)
            sum = fused(args.w[stream * args.streams + s], args.x[(first + s) * args.width + i % args.width],
                        sum);
        args.y[i] = sum;
    });
}

// What all threads of a block divide and sum: the mixing of a row's streams.
struct StreamMixing {
    float weights[kMostStreams * kMostStreams];
    float sums[kMostStreams];

    // Divides each element by the sum of its row, or of its column, and `eps`.
    RL_DEVICE void divide(uint32_t n, bool rows, float eps) {
        const uint32_t line = rows ? n : 1, apart = rows ? 1 : n;
        sync_block();
        for (uint32_t l = thread_index(); l < n; l += kThreads) {
            float sum = eps;
            for (uint32_t i = 0; i < n; ++i) sum += weights[l * line + i * apart];
            sums[l] = sum;
        }
        sync_block();
        for (uint32_t i = thread_index(); i < n * n; i += kThreads) weights[i] /= sums[rows ? i / n : i % n];
    }
};

// The weights of a row's streams: see StreamWeights in plan/ops/streams.h. A block per row.
RL_KERNEL(128, stream_weights, StreamWeightsArgs) {
    RL_SHARED StreamMixing mixing;
    // As they are: so a thread has one of n * n at most.
    const uint32_t n = lesser(args.streams, kMostStreams), rows = rows_in_step(args.step, args.of_outputs);
    for (uint32_t row = block_index().x; row < rows; row += grid_blocks()) {
        const float* x = args.x + size_t(row) * args.width;
        const auto z = [&](uint32_t part, uint32_t i) {
            return fused(x[part * n + i], args.scale[part], args.base[part * n + i]);
        };
        const auto sigmoid = [](float value) { return 1.0f / (1.0f + exp_of(-value)); };
        for (uint32_t i = thread_index(); i < n; i += kThreads) {
            args.read[size_t(row) * n + i] = sigmoid(z(0, i)) + args.eps;
            if (args.add) args.add[size_t(row) * n + i] = 2.0f * sigmoid(z(1, i));
        }
        if (!args.add) continue;
        sync_block();  // the row before is done
        for (uint32_t i = thread_index(); i < n * n; i += kThreads) {
            float top = -kInfinity;
            for (uint32_t j = 0; j < n; ++j) top = larger(z(2, i / n * n + j), top);
            mixing.weights[i] = exp_of(z(2, i) - top);
        }
        mixing.divide(n, true, 0.0f);
        for (uint32_t i = thread_index(); i < n * n; i += kThreads) mixing.weights[i] += args.eps;
        for (uint32_t round = 0; round < args.rounds; ++round) {
            if (round > 0) mixing.divide(n, true, args.eps);
            mixing.divide(n, false, args.eps);
        }
        for (uint32_t i = thread_index(); i < n * n; i += kThreads)
            args.mix[size_t(row) * n * n + i] = mixing.weights[i];
    }
}

// Stream j of y = its weight * x + the sum over streams i of mix[i][j] * stream i of `from`.
RL_KERNEL(128, stream_blend, StreamBlendArgs) {
    const uint32_t n = args.streams;
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * n * args.width, [&](size_t i) {
        const size_t stream = i / args.width, row = stream / n, j = stream % n, column = i % args.width;
        float sum = args.w[stream] * args.x[row * args.width + column];
        for (uint32_t s = 0; s < n; ++s)
            sum = fused(args.mix[(row * n + s) * n + j], args.from[(row * n + s) * args.width + column], sum);
        args.y[i] = sum;
    });
}

// y[i] = scale * the product of stream i of both factors. A block per stream.
RL_KERNEL(128, stream_dot, StreamArgs) {
    RL_SHARED float parts[kWaves];
    const size_t count = size_t(rows_in_step(args.step, args.of_outputs)) * args.streams;
    for (size_t stream = block_index().x; stream < count; stream += grid_blocks()) {
        float sum = 0.0f;
        for (uint32_t i = thread_index(); i < args.width; i += kThreads)
            sum = fused(args.x[stream * args.width + i], args.w[stream * args.width + i], sum);
        const float product = block_sum(sum, parts);
        if (thread_index() == 0) args.y[stream] = args.scale * product;
    }
}

// The weight of each chosen expert times its factor. An id that is no expert counts as expert 0.
RL_KERNEL(128, scale_by_expert, ExpertFactorArgs) {
    each_element(size_t(args.step->rows) * args.used, [&](size_t i) {
        const uint32_t id = uint32_t(args.ids[i]);
        args.scales[i] *= args.factor[id < args.experts ? id : 0];
    });
}

// y = x.
RL_KERNEL(128, copy_rows, ElementArgs) {
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * args.width,
                 [&](size_t i) { args.y[i] = args.x[i]; });
}

// y = the rows of x whose output is wanted.
RL_KERNEL(128, select_rows, ElementArgs) {
    const args::Step& step = *args.step;
    const auto* words = reinterpret_cast<const uint32_t*>(args.step);
    const size_t from = size_t(step.first_output) * args.width;
    each_element(size_t(step.outputs) * args.width, [&](size_t i) {
        const size_t listed = step.output_rows > 0 ? words[step.output_rows + i / args.width] : 0;
        args.y[i] = args.x[step.output_rows > 0 ? listed * args.width + i % args.width : from + i];
    });
}

// Rotates each head in place. Cosines and sines come from the host, which has the doubles that far positions
// need.
RL_KERNEL(128, rope, RopeArgs) {
    each_element(size_t(args.step->rows) * args.heads * args.pairs, [&](size_t i) {
        const size_t pair = i % args.pairs, head = i / args.pairs, row = head / args.heads;
        float* first = args.x + head * args.head_dim + args.first + (args.half_split ? pair : 2 * pair);
        float* second = first + (args.half_split ? args.pairs : 1);
        const float* turn = args.table + row * 2 * args.pairs + pair;
        const float cosine = turn[0], sine = turn[args.pairs], x = *first, y = *second;
        *first = x * cosine - y * sine;
        *second = x * sine + y * cosine;
    });
}

// Lists an expert's places in their order. A block per expert. An id that is no expert counts as expert 0.
RL_KERNEL(128, group_places, GroupArgs) {
    RL_SHARED float parts[kWaves];
    RL_SHARED uint32_t flags[kThreads];
    const uint32_t expert = block_index().x, places = args.step->rows * args.used;
    const auto expert_of = [&](uint32_t place) {
        const uint32_t id = uint32_t(args.ids[place]);
        return id < args.experts ? id : 0;
    };
    uint32_t before = 0, own = 0;
    for (uint32_t place = thread_index(); place < places; place += kThreads) {
        const uint32_t id = expert_of(place);
        before += id < expert ? 1 : 0;
        own += id == expert ? 1 : 0;
    }
    // Exact: there are fewer than 2^24 places.
    uint32_t at = uint32_t(block_sum(float(before), parts));
    const uint32_t count = uint32_t(block_sum(float(own), parts));
    if (thread_index() == 0) {
        args.groups.begin[expert] = at;
        args.groups.counts[expert] = count;
    }
    for (uint32_t base = 0; base < places; base += kThreads) {
        const uint32_t place = base + thread_index();
        const uint32_t mine = place < places && expert_of(place) == expert ? 1 : 0;
        flags[thread_index()] = mine;
        const uint32_t all = uint32_t(block_sum(float(mine), parts));
        if (mine) {
            uint32_t rank = 0;
            for (uint32_t i = 0; i < thread_index(); ++i) rank += flags[i];
            args.groups.places[at + rank] = int32_t(place);
        }
        at += all;
        sync_block();
    }
}

RL_KERNEL(128, gather_places, GatherArgs) {
    each_element(size_t(args.step->rows) * args.width, [&](size_t i) {
        const size_t token = i / args.width, column = i % args.width;
        float sum = 0.0f;
        for (uint32_t place = 0; place < args.used; ++place) {
            const size_t row = token * args.used + place;
            sum = fused(args.scales[row], args.x[row * args.width + column], sum);
        }
        args.y[i] += sum;
    });
}

// The `used` best experts of each row by its logits, best first, and their weights. A block per row.
RL_KERNEL(128, route, RouteArgs) {
    const uint32_t row = block_index().x;
    if (row < args.step->rows) choose_and_write(args, row);
}

RL_KERNEL(kTileThreads, latent_merge, LatentMergeArgs) {
    merge_latents(args);
}

RL_KERNEL(kTileThreads, best, BestArgs) {
    RL_SHARED BestShared shared;
    pick_best(args, shared);
}

}  // namespace redline::hip
