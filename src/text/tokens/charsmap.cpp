#include "text/tokens/charsmap.h"

namespace redline {
namespace {

// The units of the double array (format of darts-clone).
uint32_t offset_of(uint32_t unit) {
    return (unit >> 10) << ((unit & 512) >> 6);
}
// A unit with a value has the highest bit set, so it matches no byte's label.
uint32_t label_of(uint32_t unit) {
    return unit & 0x800000FFu;
}
bool has_value(uint32_t unit) {
    return (unit & 256) != 0;
}

uint32_t read_u32(std::string_view bytes, size_t at) {
    uint32_t value = 0;
    for (size_t i = 4; i-- > 0;) value = value << 8 | uint8_t(bytes[at + i]);
    return value;
}

}  // namespace

Result<CharsMap> CharsMap::read(std::string_view stored) {
    CharsMap map;
    if (stored.empty()) return map;
    const size_t trie_bytes = stored.size() < 4 ? 0 : read_u32(stored, 0);
    if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes > stored.size() - 4)
        return error("its {} bytes hold no trie: a size of {} bytes is given", stored.size(), trie_bytes);
    map.trie_.resize(trie_bytes / 4);
    for (size_t i = 0; i < map.trie_.size(); ++i) map.trie_[i] = read_u32(stored, 4 + 4 * i);
    map.replacements_ = stored.substr(4 + trie_bytes);
    return map;
}

CharsMap::Rule CharsMap::find(std::string_view text, size_t at) const {
    Rule rule;
    if (trie_.empty()) return rule;
    size_t node = offset_of(trie_[0]);
    for (size_t i = at; i < text.size(); ++i) {
        node ^= uint8_t(text[i]);
        if (node >= trie_.size() || label_of(trie_[node]) != uint8_t(text[i])) break;
        const uint32_t unit = trie_[node];
        node ^= offset_of(unit);
        if (!has_value(unit) || node >= trie_.size()) continue;
        const size_t begin = trie_[node] & 0x7FFFFFFFu;
        if (begin >= replacements_.size()) continue;
        const std::string_view rest = std::string_view(replacements_).substr(begin);
        rule = {i + 1 - at, rest.substr(0, rest.find('\0'))};
    }
    return rule;
}

}  // namespace redline
