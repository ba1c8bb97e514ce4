#include "text/tokens/spm.h"

#include "text/tokens/piece_cache.h"
#include "text/tokens/unicode.h"

namespace redline {
namespace {

constexpr size_t kLongestText = size_t(1) << 31;  // bytes; a longer one is cut, so that indices fit 32 bits

// The length that a lead byte announces, cut at the end of the text. Malformed bytes are separate symbols, or
// parts of one: their tokens are the bytes either way.
size_t character_bytes(std::string_view text, size_t at) {
    static constexpr uint8_t kLengths[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    return std::min<size_t>(kLengths[uint8_t(text[at]) >> 4], text.size() - at);
}

// True when a space symbol stands behind another character.
bool has_inner_space(std::string_view text) {
    for (size_t at = text.find(kSpaceSymbol); at != text.npos; at = text.find(kSpaceSymbol, at + 1))
        if (at > 0 && !text.substr(0, at).ends_with(kSpaceSymbol)) return true;
    return false;
}

}  // namespace

Result<Spm> Spm::create(const Vocabulary& vocabulary, Token unknown, bool space_prefix,
                        std::vector<std::string>& warnings) {
    if (!vocabulary.has_scores())
        return error("tokenizer.ggml.scores is missing: an SPM tokenizer cannot work without");
    Spm spm;
    spm.space_prefix_ = space_prefix;
    size_t missing = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
        Token token = vocabulary.find(fmt::format("<0x{:02X}>", byte));
        if (token == kNoToken) token = vocabulary.find_in_text(std::string(1, char(byte)));
        if (token == kNoToken) ++missing;
        spm.byte_tokens_[byte] = token == kNoToken ? unknown : token;
    }
    if (missing > 0)
        warnings.push_back(
            fmt::format("{} of the 256 bytes have no token: they become the unknown token", missing));
    for (size_t i = 0; i < vocabulary.size() && spm.by_words_; ++i)
        if (vocabulary.find_in_text(vocabulary.text(Token(i))) == Token(i))
            spm.by_words_ = !has_inner_space(vocabulary.text(Token(i)));
    return spm;
}

void Spm::encode(const Vocabulary& vocabulary, std::string_view text, std::vector<Token>& out) const {
    if (text.empty()) return;
    std::string spaced;
    spaced.reserve(text.size() + text.size() / 2);
    if (space_prefix_) spaced += kSpaceSymbol;
    for (const char c : text)
        if (c == ' ')
            spaced += kSpaceSymbol;
        else
            spaced += c;

    Merger<float> merger;
    PieceCache cache;
    const auto piece = [&](std::string_view bytes) { encode_piece(vocabulary, bytes, merger, out); };
    for (size_t begin = 0; begin < spaced.size();) {
        size_t end = spaced.size();
        if (by_words_) {
            // A word consists of spaces and the characters up to the next space.
            size_t at = begin;
            while (spaced.compare(at, kSpaceSymbol.size(), kSpaceSymbol) == 0) at += kSpaceSymbol.size();
            end = std::min(end, spaced.find(kSpaceSymbol, at));
        }
        end = std::min(end, begin + kLongestText);
        cache.append(std::string_view(spaced).substr(begin, end - begin), out, piece);
        begin = end;
    }
}

void Spm::encode_piece(const Vocabulary& vocabulary, std::string_view piece, Merger<float>& merger,
                       std::vector<Token>& out) const {
    merger.clear();
    for (size_t at = 0; at < piece.size();) {
        const size_t bytes = character_bytes(piece, at);
        merger.add(at, bytes, vocabulary.find_in_text(piece.substr(at, bytes)));
        at += bytes;
    }
    merger.run([&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merge<float>> {
        const Token token =
            vocabulary.find_in_text(piece.substr(left.begin, size_t(left.bytes) + right.bytes));
        if (token == kNoToken) return std::nullopt;
        return Merge<float>{-vocabulary.score(token), token};
    });
    merger.each([&](const MergeSymbol& symbol) {
        if (symbol.id != kNoToken) return out.push_back(symbol.id);
        for (const char byte : piece.substr(symbol.begin, symbol.bytes))
            if (const Token token = byte_tokens_[uint8_t(byte)]; token != kNoToken) out.push_back(token);
    });
}

}  // namespace redline
