#include "text/tokens/bpe.h"

#include "text/tokens/piece_cache.h"
#include "text/tokens/unicode.h"

#include <bit>

namespace redline {
namespace {

constexpr size_t kLongestPiece = size_t(1) << 31;  // bytes; a longer one is cut, so that indices fit 32 bits

std::string mapped(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) append_utf8(text, byte_alphabet().character[uint8_t(byte)]);
    return text;
}

// Control tokens must not be symbols of running text.
Token text_token(const Vocabulary& vocabulary, Token token) {
    const TokenType type = vocabulary.type(token);
    return type == TokenType::control || type == TokenType::unknown ? kNoToken : token;
}

// Cuts into runs of line ends and runs of anything else.
template <typename Piece>
void split_lines(std::string_view text, const Piece& piece) {
    for (size_t begin = 0; begin < text.size();) {
        const bool line_ends = text[begin] == '\n';
        size_t end = line_ends ? text.find_first_not_of('\n', begin) : text.find('\n', begin);
        end = std::min(end, text.size());
        piece(text.substr(begin, end - begin));
        begin = end;
    }
}

}  // namespace

MergeTable::MergeTable(size_t count) : entries_(std::bit_ceil(2 * count + 2)) {}

size_t MergeTable::place(uint64_t pair) const {
    const size_t mask = entries_.size() - 1;
    size_t at = size_t((pair * 0x9E3779B97F4A7C15u) >> 32) & mask;
    while (entries_[at].pair != kEmpty && entries_[at].pair != pair) at = (at + 1) & mask;
    return at;
}

void MergeTable::add(int32_t left, int32_t right, uint32_t rank, int32_t merged) {
    const uint64_t pair = uint64_t(uint32_t(left)) << 32 | uint32_t(right);
    Entry& entry = entries_[place(pair)];
    if (entry.pair == kEmpty) entry = {pair, rank, merged};
}

const MergeTable::Entry* MergeTable::find(int32_t left, int32_t right) const {
    if (left < 0 || right < 0) return nullptr;
    const Entry& entry = entries_[place(uint64_t(uint32_t(left)) << 32 | uint32_t(right))];
    return entry.pair == kEmpty ? nullptr : &entry;
}

Result<Bpe> Bpe::create(const Vocabulary& vocabulary, std::span<const std::string> merges, Alphabet alphabet,
                        std::optional<Pretokenizer> pretokenizer, std::vector<std::string>& warnings) {
    RL_CHECK(pretokenizer.has_value() == (alphabet == Alphabet::bytes),
             "one alphabet goes with pre-tokenizers");
    if (merges.size() > size_t(INT32_MAX) / 4)
        return error("tokenizer.ggml.merges has {} entries, {} at most are supported", merges.size(),
                     INT32_MAX / 4);
    Bpe bpe(vocabulary, merges.size(), alphabet);
    bpe.pretokenizer_ = std::move(pretokenizer);
    bpe.find_byte_tokens(vocabulary, warnings);
    bpe.add_merges(vocabulary, merges, warnings);
    return bpe;
}

int32_t Bpe::symbol_of(const Vocabulary& vocabulary, std::string_view text) const {
    if (const Token token = vocabulary.find(text); token != kNoToken) return token;
    if (extra_symbols_.empty()) return -1;
    const auto known = extra_symbols_.find(std::string(text));
    return known == extra_symbols_.end() ? -1 : known->second;
}

int32_t Bpe::new_symbol(const Vocabulary& vocabulary, std::string_view text) {
    if (const Token token = vocabulary.find(text); token != kNoToken) return token;
    const auto next = int32_t(tokens_ + extra_symbols_.size());
    return extra_symbols_.try_emplace(std::string(text), next).first->second;
}

void Bpe::find_byte_tokens(const Vocabulary& vocabulary, std::vector<std::string>& warnings) {
    size_t missing = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
        const std::string character = mapped(std::string(1, char(byte)));
        const bool as_bytes = alphabet_ == Alphabet::bytes;
        byte_symbols_[byte] = as_bytes ? new_symbol(vocabulary, character) : -1;
        const Token token = vocabulary.find(as_bytes ? character : fmt::format("<0x{:02X}>", byte));
        byte_tokens_[byte] = token == kNoToken ? kNoToken : text_token(vocabulary, token);
        if (byte_tokens_[byte] == kNoToken) ++missing;
    }
    // Bytes that never occur in valid UTF-8 often have no token: 0xC0, 0xC1 and 0xF5 to 0xFF.
    if (missing > 13)
        warnings.push_back(
            fmt::format("{} of the 256 bytes have no token: text with them may lose them", missing));
}

void Bpe::add_merges(const Vocabulary& vocabulary, std::span<const std::string> merges,
                     std::vector<std::string>& warnings) {
    size_t malformed = 0;
    size_t hidden = 0;
    std::string both;
    for (size_t rank = 0; rank < merges.size(); ++rank) {
        const std::string_view merge = merges[rank];
        const size_t space = merge.find(' ', 1);
        if (space == merge.npos || space + 1 == merge.size()) {
            ++malformed;
            continue;
        }
        const std::string_view left = merge.substr(0, space);
        const std::string_view right = merge.substr(space + 1);
        both.assign(left).append(right);
        const int32_t merged = new_symbol(vocabulary, both);
        const bool is_token = size_t(merged) < tokens_;
        if (is_token && text_token(vocabulary, merged) == kNoToken) {
            ++hidden;
            continue;
        }
        if (is_token) merged_[size_t(merged)] = true;
        table_.add(new_symbol(vocabulary, left), new_symbol(vocabulary, right), uint32_t(rank), merged);
    }
    if (malformed > 0)
        warnings.push_back(fmt::format("{} merges are not of the form \"left right\": left out", malformed));
    if (hidden > 0)
        warnings.push_back(
            fmt::format("{} merges give a control token: left out, text cannot become one", hidden));
}

void Bpe::encode(const Vocabulary& vocabulary, std::string_view text, std::vector<Token>& out) const {
    std::string buffer;
    if (!is_valid_utf8(text)) text = buffer = to_valid_utf8(text);
    Merger<uint32_t> merger;
    PieceCache cache;
    const auto piece = [&](std::string_view bytes) {
        cache.append(bytes, out, [&](std::string_view new_bytes) {
            for (size_t at = 0; at < new_bytes.size(); at += kLongestPiece)
                encode_piece(vocabulary, new_bytes.substr(at, kLongestPiece), merger, out);
        });
    };
    if (pretokenizer_) return pretokenizer_->split(text, piece);
    std::string spaced;
    for (const char c : text)
        if (c == ' ')
            spaced += kSpaceSymbol;
        else
            spaced += c;
    split_lines(spaced, piece);
}

void Bpe::encode_piece(const Vocabulary& vocabulary, std::string_view piece, Merger<uint32_t>& merger,
                       std::vector<Token>& out) const {
    const bool as_bytes = alphabet_ == Alphabet::bytes;
    if (as_bytes ? pretokenizer_->traits().whole_pieces : piece[0] == '\n') {
        const Token whole = vocabulary.find_in_text(as_bytes ? mapped(piece) : piece);
        if (whole != kNoToken) return out.push_back(whole);
    }
    merger.clear();
    for (size_t at = 0; at < piece.size();) {
        const size_t bytes = as_bytes ? 1 : utf8_step(piece, at).bytes;
        const std::string_view text = piece.substr(at, bytes);
        merger.add(at, bytes, as_bytes ? byte_symbols_[uint8_t(text[0])] : symbol_of(vocabulary, text));
        at += bytes;
    }
    merger.run([&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merge<uint32_t>> {
        const MergeTable::Entry* entry = table_.find(left.id, right.id);
        if (!entry) return std::nullopt;
        return Merge<uint32_t>{entry->rank, entry->merged};
    });
    merger.each([&](const MergeSymbol& symbol) {
        if (symbol.id >= 0 && size_t(symbol.id) < tokens_ && text_token(vocabulary, symbol.id) != kNoToken)
            return out.push_back(symbol.id);
        for (const char byte : piece.substr(symbol.begin, symbol.bytes))
            if (const Token token = byte_tokens_[uint8_t(byte)]; token != kNoToken) out.push_back(token);
    });
}

}  // namespace redline
