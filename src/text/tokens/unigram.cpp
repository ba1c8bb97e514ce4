#include "text/tokens/unigram.h"

#include "text/tokens/unicode.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace redline {
namespace {

// The penalty of an unknown character, relative to the least likely token, as in SentencePiece.
constexpr double kUnknownPenalty = 10;
// Longer tokens are ignored, so that a text is read in linear time. SentencePiece makes none over 512
// characters.
constexpr size_t kLongestToken = 2048;  // bytes

double score_of(const Vocabulary& vocabulary, Token token) {
    return vocabulary.type(token) == TokenType::user_defined ? 0 : double(vocabulary.score(token));
}

}  // namespace

// The best way to each place of the text that tokens reach. Where no token crosses a place, all ways pass
// through it: the tokens before it are final, so that few steps are held.
struct Unigram::Path {
    struct Step {
        double score = 0;
        uint32_t bytes = 0;  // of the last token; 0: no token ends here
        Token token = kNoToken;
    };

    const Unigram& owner;
    std::string_view text;
    std::vector<Token>& out;
    size_t begin = 0;  // start of the part that is not final
    size_t reach = 0;
    std::vector<Step> steps = std::vector<Step>(1);  // by the distance from `begin`
    std::vector<Step> decided = {};
    bool after_unknown = false;

    double score_at(size_t at) const { return steps[at - begin].score; }

    void offer(size_t at, size_t bytes, Token token, double score) {
        reach = std::max(reach, at + bytes);
        if (steps.size() <= reach - begin) steps.resize(reach - begin + 1);
        Step& step = steps[at + bytes - begin];
        const double sum = score_at(at) + score;
        // The longest last token wins among equal ones, and it comes first.
        if (step.bytes == 0 || sum > step.score) step = {sum, uint32_t(bytes), token};
    }

    void decide(size_t at) {
        decided.clear();
        for (size_t end = at; end > begin; end -= decided.back().bytes) decided.push_back(steps[end - begin]);
        const Step last{score_at(at)};
        for (size_t i = decided.size(); i-- > 0;) {
            if (decided[i].token == kNoToken)
                put_unknown(text.substr(begin, decided[i].bytes));
            else
                out.push_back(decided[i].token);
            after_unknown = decided[i].token == kNoToken;
            begin += decided[i].bytes;
        }
        steps.assign(1, last);
    }

    void put_unknown(std::string_view bytes) {
        if (owner.has_bytes_)
            for (const char byte : bytes) out.push_back(owner.byte_tokens_[uint8_t(byte)]);
        else if (owner.unknown_ != kNoToken && !after_unknown)
            out.push_back(owner.unknown_);
    }
};

Result<Unigram> Unigram::create(const Vocabulary& vocabulary, Token unknown, UnigramOptions options,
                                std::vector<std::string>& warnings) {
    if (!vocabulary.has_scores())
        return error("tokenizer.ggml.scores is missing: a Unigram tokenizer cannot work without");
    Unigram unigram;
    unigram.options_ = std::move(options);
    unigram.unknown_ = unknown;
    unigram.find_bytes(vocabulary, warnings);
    RL_TRY(unigram.build(vocabulary, warnings));
    double least = 0;
    for (size_t i = 0; i < vocabulary.size(); ++i)
        if (vocabulary.type(Token(i)) == TokenType::normal)
            least = std::min(least, double(vocabulary.score(Token(i))));
    unigram.unknown_score_ = least - kUnknownPenalty;
    return unigram;
}

void Unigram::find_bytes(const Vocabulary& vocabulary, std::vector<std::string>& warnings) {
    size_t missing = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
        byte_tokens_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
        if (byte_tokens_[byte] == kNoToken) ++missing;
    }
    has_bytes_ = missing == 0;
    const char* lost = unknown_ == kNoToken ? "characters that are no token are left out"
                                            : "characters that are no token become the unknown token";
    if (missing > 0 && missing < 256)
        warnings.push_back(fmt::format("{} of the 256 bytes have no token: {}", missing, lost));
    else if (missing > 0 && unknown_ == kNoToken)
        warnings.push_back(fmt::format("there is no unknown token: {}", lost));
}

Status Unigram::build(const Vocabulary& vocabulary, std::vector<std::string>& warnings) {
    // Sorted by text; the first bytes mostly decide the order.
    struct Entry {
        uint64_t first_bytes;
        Token token;
    };
    std::vector<Entry> order;
    size_t total = 0, left_out = 0;
    for (size_t i = 0; i < vocabulary.size(); ++i) {
        const std::string& text = vocabulary.text(Token(i));
        if (vocabulary.find_in_text(text) != Token(i)) continue;
        if (text.size() > kLongestToken || !is_valid_utf8(text)) {
            ++left_out;
            continue;
        }
        uint64_t first_bytes = 0;
        for (size_t at = 0; at < 8; ++at)
            first_bytes = first_bytes << 8 | (at < text.size() ? uint8_t(text[at]) : 0u);
        order.push_back({first_bytes, Token(i)});
        total += text.size();
    }
    if (left_out > 0)
        warnings.push_back(fmt::format("{} tokens are no UTF-8 or longer than {} bytes and match nothing",
                                       left_out, kLongestToken));
    if (total >= std::numeric_limits<uint32_t>::max())
        return error("the texts of the tokens have {} bytes together, 4 GiB at most are supported", total);
    const auto text_at = [&](size_t place) -> const std::string& {
        return vocabulary.text(order[place].token);
    };
    std::sort(order.begin(), order.end(), [&](const Entry& a, const Entry& b) {
        if (a.first_bytes != b.first_bytes) return a.first_bytes < b.first_bytes;
        return vocabulary.text(a.token) < vocabulary.text(b.token);
    });

    // Builds the trie level by level: for each node the tokens that pass through it.
    struct Span {
        size_t begin, end;
    };
    std::vector<Span> level = {{0, order.size()}}, next;
    nodes_.assign(1, {});
    for (size_t depth = 0, parent = 0; !level.empty(); ++depth) {
        next.clear();
        for (Span span : level) {
            if (span.begin < span.end && text_at(span.begin).size() == depth)
                nodes_[parent].token = order[span.begin++].token;
            nodes_[parent].first = uint32_t(nodes_.size());
            for (size_t i = span.begin; i < span.end;) {
                const char byte = text_at(i)[depth];
                const size_t begin = i;
                while (i < span.end && text_at(i)[depth] == byte) ++i;
                next.push_back({begin, i});
                nodes_.push_back({.byte = uint8_t(byte)});
                ++nodes_[parent].children;
            }
            ++parent;
        }
        level.swap(next);
    }
    return {};
}

const Unigram::Node* Unigram::child(const Node& node, uint8_t byte) const {
    const Node* first = nodes_.data() + node.first;
    const Node* end = first + node.children;
    const Node* found =
        std::lower_bound(first, end, byte, [](const Node& a, uint8_t b) { return a.byte < b; });
    return found != end && found->byte == byte ? found : nullptr;
}

// Normalizes as SentencePiece: the rules, the spaces, and the symbol that stands for a space.
std::string Unigram::normalize(std::string_view text) const {
    const auto piece_at = [&](size_t at) -> CharsMap::Rule {
        if (const CharsMap::Rule rule = options_.normalization.find(text, at); rule.bytes > 0) return rule;
        const size_t bytes = utf8_step(text, at).bytes;
        return {bytes, text.substr(at, bytes)};
    };
    size_t at = 0;
    while (options_.remove_extra_spaces && at < text.size() && piece_at(at).replacement == " ")
        at += piece_at(at).bytes;
    std::string out;
    if (at == text.size()) return out;
    out.reserve(text.size() + text.size() / 2);
    if (options_.space_prefix) out += kSpaceSymbol;
    bool after_space = options_.remove_extra_spaces;
    while (at < text.size()) {
        auto [bytes, piece] = piece_at(at);
        at += bytes;
        while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
        for (const char c : piece)
            if (c == ' ')
                out += kSpaceSymbol;
            else
                out += c;
        if (!piece.empty()) after_space = options_.remove_extra_spaces && piece.ends_with(' ');
    }
    while (options_.remove_extra_spaces && out.ends_with(kSpaceSymbol))
        out.resize(out.size() - kSpaceSymbol.size());
    return out;
}

void Unigram::encode(const Vocabulary& vocabulary, std::string_view text, std::vector<Token>& out) const {
    const std::string normal = normalize(text);
    Path path{*this, normal, out};
    for (size_t at = 0; at < normal.size();) {
        if (at == path.reach) path.decide(at);
        const size_t character = utf8_step(normal, at).bytes;
        bool known = false;  // the character alone is a token
        const Node* node = nodes_.data();
        for (size_t end = at; end < normal.size();) {
            node = child(*node, uint8_t(normal[end++]));
            if (!node) break;
            if (node->token == kNoToken) continue;
            path.offer(at, end - at, node->token, score_of(vocabulary, node->token));
            known |= end - at == character;
        }
        if (!known) path.offer(at, character, kNoToken, unknown_score_);
        at += character;
    }
    path.decide(normal.size());
}

bool has_unigram_scores(const Vocabulary& vocabulary) {
    if (!vocabulary.has_scores()) return false;
    size_t normal = 0, logarithms = 0;
    for (size_t i = 0; i < vocabulary.size(); ++i) {
        if (vocabulary.type(Token(i)) != TokenType::normal) continue;
        const float score = vocabulary.score(Token(i));
        ++normal;
        if (score < 0 && std::isfinite(score) && score != std::floor(score)) ++logarithms;
    }
    return logarithms > normal / 10 * 9 && logarithms > 0;
}

}  // namespace redline
