#include "quantize/quantize.h"

#include "gguf/writer.h"
#include "quantize/encode.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <new>
#include <thread>

namespace redline {

namespace {

constexpr uint64_t kChunkElements = uint64_t(1) << 22;  // 16 MiB of floats at a time
constexpr uint64_t kChunkBytes = uint64_t(16) << 20;    // of tensors that are only copied

struct Job {
    const GgufTensor* source = nullptr;
    const Format* to = nullptr;  // null: the tensor is copied
    uint64_t bytes = 0;          // of the result
    ColumnWeights importance = {};
};

bool is_float(const Format& format) {
    return format.block == 1;
}

Result<Job> plan_tensor(const GgufTensor& tensor, std::string_view format, bool allow_requantize) {
    Job job = {&tensor, nullptr, tensor.bytes};
    if (format.empty()) return job;
    const Format* to = find_format(format);
    const Format* from = tensor.tensor.format;
    if (!from)
        return error("tensor {} is in {}, which this program cannot decode", tensor.tensor.name,
                     describe_type(tensor.type));
    if (from == to) return job;
    if (!is_float(*from) && !is_float(*to) && !allow_requantize)
        return error(
            "tensor {} is in {} already: quantizing again adds errors up. Start from an F16, BF16 or F32 "
            "file, "
            "or give --allow-requantize",
            tensor.tensor.name, from->name);
    job.to = to;
    job.bytes =
        to->row_bytes(tensor.tensor.shape.cols) * tensor.tensor.shape.rows * tensor.tensor.shape.count;
    return job;
}

Result<std::vector<Job>> plan_tensors(const Gguf& source, const Recipe& recipe,
                                      const QuantizeOptions& options) {
    const MixOptions mix = {.measured = options.importance != nullptr, .pure = options.pure};
    const auto formats = RL_TRY(choose_formats(recipe, source, mix));
    std::vector<Job> jobs;
    bool any = false;
    for (size_t i = 0; i < formats.size(); ++i) {
        Job& job =
            jobs.emplace_back(RL_TRY(plan_tensor(source.tensors()[i], formats[i], options.allow_requantize)));
        if (!options.importance || !job.to || !find_encoder(job.to->name)) continue;
        job.importance = RL_TRY(column_weights(*options.importance, job.source->tensor));
        any = any || !job.importance.weights.empty();
    }
    if (options.importance && !any)
        return error("the importance matrix has data for none of the tensors that are to be quantized");
    return jobs;
}

// The source's metadata, with the new file's type. A split model becomes one file.
std::vector<MetadataEntry> new_metadata(const Metadata& source, const Recipe& recipe) {
    std::vector<MetadataEntry> entries;
    for (const auto& entry : source.entries()) {
        const std::string& key = entry.first;
        if (!key.starts_with("split.") && key != "general.file_type" && key != "general.quantization_version")
            entries.push_back(entry);
    }
    entries.emplace_back("general.quantization_version", metadata_u32(2));
    entries.emplace_back("general.file_type", metadata_u32(recipe.file_type));
    return entries;
}

// Refuses, before any work, a target that could not be written, or not without harm.
Status check_target(const Gguf& source, const std::string& target) {
    std::error_code ignored;
    for (size_t i = 0; i < source.file_count(); ++i)
        if (std::filesystem::equivalent(source.file(uint32_t(i)).path(), target, ignored))
            return error("{} is the source itself; name another file for the result", target);
    if (std::filesystem::is_directory(target, ignored)) return error("{} is a folder, not a file", target);
    if (std::filesystem::exists(target, ignored) && !std::filesystem::is_regular_file(target, ignored))
        return error("{} is not a regular file", target);
    return {};
}

// Rounds to the nearest, ties to even.
uint16_t float_to_bfloat(float value) {
    const uint32_t bits = float_to_bits(value);
    return uint16_t((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}

// Converts rows of one tensor from one format to another.
class RowEncoder {
public:
    RowEncoder(const Job& job, uint32_t threads)
        : job_(job),
          from_(*job.source->tensor.format),
          encoder_(find_encoder(job.to->name)),
          cols_(job.source->tensor.shape.cols),
          threads_(threads) {}

    // `in` and `out` hold `rows` rows in the old and the new format.
    Status encode(std::span<const std::byte> in, std::span<std::byte> out, uint64_t first, uint64_t rows) {
        row_errors_.assign(rows, 0.0);
        row_squares_.assign(rows, 0.0);
        first_ = first;
        const uint64_t share = (rows + threads_ - 1) / threads_;
        std::vector<std::jthread> workers;
        for (uint64_t begin = share; begin < rows; begin += share)
            workers.emplace_back([=, this] { encode_share(in, out, begin, std::min(begin + share, rows)); });
        encode_share(in, out, 0, std::min(share, rows));
        workers.clear();  // joins
        if (short_of_memory_) return error("not enough memory to encode rows of {} elements", cols_);
        for (uint64_t row = 0; row < rows; ++row) {
            if (!std::isfinite(row_squares_[row]))
                return error("tensor {} has a value in row {} that is not finite", job_.source->tensor.name,
                             first + row);
            if (!std::isfinite(row_errors_[row]))
                return error("tensor {} has values in row {} that are too large for {}",
                             job_.source->tensor.name, first + row, job_.to->name);
            error_ += row_errors_[row];
            square_ += row_squares_[row];
        }
        return {};
    }
    double error_sum() const { return error_; }
    double square_sum() const { return square_; }

private:
    // Catches exceptions, since one that left a thread would end the program.
    void encode_share(std::span<const std::byte> in, std::span<std::byte> out, uint64_t begin, uint64_t end) {
        try {
            encode_rows(in, out, begin, end);
        } catch (const std::bad_alloc&) {
            short_of_memory_ = true;
        }
    }
    void encode_rows(std::span<const std::byte> in, std::span<std::byte> out, uint64_t begin, uint64_t end) {
        std::vector<float> values(cols_);
        std::vector<float> decoded(cols_);
        for (uint64_t row = begin; row < end; ++row) {
            from_.decode(in.data() + row * from_.row_bytes(cols_), values.data(), cols_);
            for (const float value : values) row_squares_[row] += double(value) * double(value);
            if (!std::isfinite(row_squares_[row])) continue;
            std::byte* blocks = out.data() + row * job_.to->row_bytes(cols_);
            encode_row(values.data(), weights_of(first_ + row), blocks);
            job_.to->decode(blocks, decoded.data(), cols_);
            for (uint64_t i = 0; i < cols_; ++i) {
                const double difference = double(decoded[i]) - double(values[i]);
                row_errors_[row] += difference * difference;
            }
        }
    }
    // The column weights for a row of the tensor; null without an importance matrix.
    const float* weights_of(uint64_t row) const {
        if (job_.importance.weights.empty()) return nullptr;
        return job_.importance.weights.data() + row / job_.source->tensor.shape.rows * cols_;
    }
    void encode_row(const float* values, const float* weights, std::byte* blocks) const {
        if (encoder_) return encoder_->encode(values, weights, blocks, cols_);
        if (job_.to->name == "F32") {
            std::memcpy(blocks, values, cols_ * sizeof(float));
            return;
        }
        const bool half = job_.to->name == "F16";
        for (uint64_t i = 0; i < cols_; ++i) {
            const uint16_t word = half ? float_to_half(values[i]) : float_to_bfloat(values[i]);
            std::memcpy(blocks + i * sizeof(word), &word, sizeof(word));
        }
    }

    const Job& job_;
    const Format& from_;
    const Encoder* encoder_;  // null: the new format is floats
    uint64_t cols_;
    uint32_t threads_;
    uint64_t first_ = 0;  // row of this call, in the tensor
    std::vector<double> row_errors_,
        row_squares_;  // sums of this call, row by row, so that they do not depend on threads
    double error_ = 0.0, square_ = 0.0;
    std::atomic<bool> short_of_memory_ = false;
};

// Writes the new file, tensor by tensor.
class FileWriter {
public:
    FileWriter(const Gguf& source, AtomicWriter& out, const QuantizeOptions& options)
        : source_(source), out_(out), options_(options) {
        for (const GgufTensor& tensor : source.tensors()) total_ += tensor.bytes;
    }

    // False when cancelled.
    Result<bool> write(const Job& job, QuantizedTensor& report) {
        const bool done = job.to ? RL_TRY(encode(job, report)) : RL_TRY(copy(job));
        const std::vector<std::byte> padding(gguf_padding(job.bytes, source_.alignment()));
        RL_TRY(out_.write(padding));
        return done;
    }

private:
    bool cancelled() const { return options_.cancel && options_.cancel->load(); }
    void advance(uint64_t bytes) {
        done_ += bytes;
        if (options_.progress) options_.progress(done_, total_);
    }

    Result<bool> copy(const Job& job) {
        for (uint64_t at = 0; at < job.bytes; at += kChunkBytes) {
            if (cancelled()) return false;
            in_bytes_.resize(std::min(kChunkBytes, job.bytes - at));
            RL_TRY(source_.read(*job.source, at, in_bytes_));
            RL_TRY(out_.write(in_bytes_));
            advance(in_bytes_.size());
        }
        return true;
    }

    Result<bool> encode(const Job& job, QuantizedTensor& report) {
        const Tensor& tensor = job.source->tensor;
        const uint64_t rows = tensor.shape.rows * tensor.shape.count;
        const uint64_t chunk = std::max<uint64_t>(kChunkElements / tensor.shape.cols, options_.threads);
        RowEncoder encoder(job, options_.threads);
        for (uint64_t row = 0; row < rows; row += chunk) {
            if (cancelled()) return false;
            const uint64_t count = std::min(chunk, rows - row);
            in_bytes_.resize(count * tensor.row_bytes());
            out_bytes_.resize(count * job.to->row_bytes(tensor.shape.cols));
            RL_TRY(source_.read(*job.source, row * tensor.row_bytes(), in_bytes_));
            RL_TRY(encoder.encode(in_bytes_, out_bytes_, row, count));
            RL_TRY(out_.write(out_bytes_));
            advance(in_bytes_.size());
        }
        const double elements = double(tensor.shape.elements());
        report.rmse = std::sqrt(encoder.error_sum() / elements);
        report.rms = std::sqrt(encoder.square_sum() / elements);
        return true;
    }

    const Gguf& source_;
    AtomicWriter& out_;
    const QuantizeOptions& options_;
    uint64_t done_ = 0, total_ = 0;
    std::vector<std::byte> in_bytes_, out_bytes_;
};

}  // namespace

Result<QuantizeReport> quantize(const Gguf& source, const std::string& target, const Recipe& recipe,
                                const QuantizeOptions& options) {
    RL_CHECK(options.threads > 0, "no threads");
    const auto named = [&](Error problem) { return error("{}: {}", source.path(), problem.message); };
    auto jobs = plan_tensors(source, recipe, options);
    if (!jobs) return named(jobs.error());
    RL_TRY(check_target(source, target));

    QuantizeReport report;
    std::vector<NewTensor> directory;
    for (const Job& job : jobs.value()) {
        const GgufTensor& tensor = *job.source;
        directory.push_back(
            {tensor.tensor.name, tensor.dims, job.to ? job.to->gguf_id : tensor.type, job.bytes});
        const std::string_view from = tensor.tensor.format ? tensor.tensor.format->name : "other";
        report.tensors.push_back({tensor.tensor.name, from, job.to ? job.to->name : from, tensor.tensor.shape,
                                  tensor.bytes, job.bytes});
        if (options.importance && job.to && find_encoder(job.to->name)) {
            report.tensors.back().matrices = tensor.tensor.shape.count;
            report.tensors.back().unmeasured = job.importance.unmeasured;
        }
        report.bytes_before += tensor.bytes;
        report.bytes_after += job.bytes;
        report.file_bytes += job.bytes + gguf_padding(job.bytes, source.alignment());
    }
    const auto header = gguf_header(new_metadata(source.metadata(), recipe), directory, source.alignment());
    report.file_bytes += header.size();

    AtomicWriter out = RL_TRY(AtomicWriter::create(target));
    RL_TRY(out.write(header));
    FileWriter writer(source, out, options);
    for (size_t i = 0; i < jobs->size(); ++i) {
        auto written = writer.write(jobs.value()[i], report.tensors[i]);
        if (!written) return named(written.error());
        if (!written.value()) {
            report.cancelled = true;
            return report;
        }
    }
    RL_TRY(out.commit());
    return report;
}

}  // namespace redline
