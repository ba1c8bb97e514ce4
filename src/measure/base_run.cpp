#include "measure/base_run.h"

#include <array>
#include <cstring>

namespace redline {

namespace {

constexpr char kMagic[8] = {'R', 'L', 'B', 'A', 'S', 'E', '1', '\n'};  // the version is the digit
constexpr double kDeepest = 32.0;                                      // nats below the largest logit
constexpr double kCodes = 65535.0;

struct Header {
    char magic[8];
    ScoredText text;
};
static_assert(sizeof(Header) == 48);

struct RowHead {
    float right_nll;
    uint32_t best;
};

uint64_t row_bytes(uint32_t vocab) {
    return sizeof(RowHead) + uint64_t(vocab) * 2;
}

// How far below the largest logit a code is, and exp() of minus that.
struct Decoded {
    float depth, weight;
};
const std::array<Decoded, 65536>& decoded_codes() {
    static const std::array<Decoded, 65536> table = [] {
        std::array<Decoded, 65536> made;
        for (size_t code = 0; code < made.size(); ++code) {
            const double root = double(code) / kCodes;
            made[code] = {float(root * root * kDeepest), float(std::exp(-root * root * kDeepest))};
        }
        return made;
    }();
    return table;
}

}  // namespace

ScoredText scored_text(std::span<const Token> tokens, uint64_t chunk, uint64_t scored_of_chunk,
                       uint32_t vocab) {
    const uint64_t chunks = tokens.size() / chunk;
    Hash64 hash;
    hash.add(std::as_bytes(tokens.first(size_t(chunks * chunk))));
    return {hash.value(), chunk, chunks, chunks * scored_of_chunk, vocab};
}

uint64_t base_run_bytes(const ScoredText& text) {
    return sizeof(Header) + text.scored * row_bytes(text.vocab) + sizeof(uint64_t);
}

Result<BaseRunWriter> BaseRunWriter::create(const std::string& path) {
    return BaseRunWriter(RL_TRY(AtomicWriter::create(path)));
}

Status BaseRunWriter::write(std::span<const std::byte> bytes) {
    hash_.add(bytes);
    return file_.write(bytes);
}

Status BaseRunWriter::begin(const ScoredText& text) {
    Header header = {{}, text};
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    row_.resize(size_t(row_bytes(text.vocab)));
    return write(std::as_bytes(std::span(&header, 1)));
}

Status BaseRunWriter::add(std::span<const float> logits, Token right, const LogSoftmax& softmax) {
    const RowHead head = {float(softmax.negative_log(logits[size_t(right)])), uint32_t(softmax.best)};
    std::memcpy(row_.data(), &head, sizeof(head));
    std::byte* to = row_.data() + sizeof(head);
    constexpr float kDepth = float(kDeepest), kScale = float(kCodes);
    for (const float logit : logits) {
        const float root = std::sqrt(std::min((softmax.most - logit) / kDepth, 1.0f));
        const auto code = uint16_t(root * kScale + 0.5f);
        std::memcpy(to, &code, sizeof(code));
        to += sizeof(code);
    }
    return write(row_);
}

Status BaseRunWriter::commit() {
    const uint64_t hash = hash_.value();
    RL_TRY(file_.write(std::as_bytes(std::span(&hash, 1))));
    return file_.commit();
}

Result<BaseRunReader> BaseRunReader::open(const std::string& path) {
    BaseRunReader reader(RL_TRY(File::open(path)));
    const File& file = reader.file_;
    Header header = {};
    const auto bytes = std::as_writable_bytes(std::span(&header, 1));
    if (file.size() >= sizeof(header)) RL_TRY(file.read(0, bytes));
    if (std::memcmp(header.magic, kMagic, 6) != 0)
        return error(
            "{} is not a file that redline eval --kl-divergence-base wrote (llama.cpp's have another form)",
            path);
    if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0)
        return error("{} was written by another version of redline: write it again", path);
    const ScoredText& text = header.text;
    // Divided first: the numbers of a file may be too large to multiply.
    const uint64_t rows = file.size() - sizeof(header);
    if (rows < sizeof(uint64_t) || text.scored > rows / row_bytes(text.vocab) ||
        rows - sizeof(uint64_t) != text.scored * row_bytes(text.vocab))
        return error(
            "{} is not whole: it has {} bytes, {} positions and {} tokens each are {}: write it again", path,
            file.size(), text.scored, text.vocab, base_run_bytes(text));
    reader.text_ = text;
    reader.hash_.add(bytes);
    reader.at_ = sizeof(header);
    reader.bytes_.resize(size_t(row_bytes(text.vocab)));
    reader.row_.codes.resize(text.vocab);
    return reader;
}

Status BaseRunReader::check(const ScoredText& text) const {
    const std::string& path = file_.path();
    if (text_.vocab != text.vocab)
        return error("{} is of a model with a vocabulary of {} tokens, this one has {}", path, text_.vocab,
                     text.vocab);
    if (text_.chunk != text.chunk)
        return error("{} is of chunks of {} tokens, these have {}: -c {} is what it was written with", path,
                     text_.chunk, text.chunk, text_.chunk);
    if (text_.chunks != text.chunks || text_.scored != text.scored)
        return error("{} is of another text: it has {} chunks, this one {}", path, text_.chunks, text.chunks);
    if (text_.hash != text.hash) return error("{} is of another text, whose tokens differ", path);
    return {};
}

Result<const BaseRunReader::Row*> BaseRunReader::next() {
    RL_TRY(file_.read(at_, bytes_));
    hash_.add(bytes_);
    at_ += bytes_.size();
    RowHead head;
    std::memcpy(&head, bytes_.data(), sizeof(head));
    std::memcpy(row_.codes.data(), bytes_.data() + sizeof(head), bytes_.size() - sizeof(head));
    row_.right_nll = head.right_nll;
    row_.best = Token(head.best);
    return &row_;
}

Status BaseRunReader::finish() {
    uint64_t written = 0;
    RL_TRY(file_.read(at_, std::as_writable_bytes(std::span(&written, 1))));
    if (written != hash_.value())
        return error("{} is damaged: its checksum is not that of its bytes; write it again", file_.path());
    return {};
}

Estimate Sums::estimate() const {
    const double variance = mean_square() - mean() * mean();
    return {mean(), variance > 0.0 && count_ > 1 ? std::sqrt(variance / double(count_ - 1)) : 0.0};
}

// With base probabilities w / W, w = exp(-depth), and the run's exp(logit - most - log_sum): the sum over
// tokens of w / W * (-depth - ln W - (logit - most) + log_sum).
void Divergence::add(const BaseRunReader::Row& base, std::span<const float> logits, Token right,
                     const LogSoftmax& softmax) {
    const auto& table = decoded_codes();
    double weights = 0.0, sum = 0.0;
    for (size_t i = 0; i < logits.size(); ++i) {
        const Decoded& token = table[base.codes[i]];
        weights += double(token.weight);
        sum += double(token.weight) * (double(softmax.most - logits[i]) - double(token.depth));
    }
    // It is never below 0 but for roundings of these sums.
    const double kl = std::max(0.0, sum / weights - std::log(weights) + softmax.log_sum);
    const double nll = softmax.negative_log(logits[size_t(right)]);
    const double change = std::exp(-nll) - std::exp(-double(base.right_nll));
    kl_sums_.add(kl);
    change_sums_.add(change);
    change_squares_.add(change * change);
    base_nll_.add(double(base.right_nll));
    ratios_.add(nll - double(base.right_nll));
    same_best_ += softmax.best == base.best ? 1 : 0;
    kl_.push_back(float(kl));
    changes_.push_back(float(change));
}

Estimate Divergence::root_mean_square_change() const {
    const Estimate squares = change_squares_.estimate();
    const double root = std::sqrt(squares.mean);
    return {root, root > 0.0 ? squares.error / (2.0 * root) : 0.0};
}

Estimate Divergence::same_best() const {
    const double count = double(kl_.size()), share = double(same_best_) / count;
    return {share, count > 1.0 ? std::sqrt(share * (1.0 - share) / (count - 1.0)) : 0.0};
}

Estimate Divergence::base_perplexity() const {
    const Estimate nll = base_nll_.estimate();
    return {std::exp(nll.mean), std::exp(nll.mean) * nll.error};
}

static std::vector<float> sorted_values(std::vector<float> values) {
    std::sort(values.begin(), values.end());
    return values;
}

std::vector<float> Divergence::sorted_kl() const {
    return sorted_values(kl_);
}

std::vector<float> Divergence::sorted_changes() const {
    return sorted_values(changes_);
}

double percentile(std::span<const float> sorted, double percent) {
    const double place = percent / 100.0 * double(sorted.size() - 1);
    const auto low = std::min(size_t(place), sorted.size() - 1), high = std::min(low + 1, sorted.size() - 1);
    const double part = place - double(low);
    return (1.0 - part) * double(sorted[low]) + part * double(sorted[high]);
}

}  // namespace redline
