#include "base/nearest_name.h"

#include <algorithm>
#include <utility>

namespace redline {

// The number of letters to change, add, remove, or swap with a neighbour.
static size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> before, last, now(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) now[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        before = std::exchange(last, now);
        now[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            now[j] = std::min({last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), last[j] + 1, now[j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = std::min(now[j], before[j - 2] + 1);
        }
    }
    return now.back();
}

std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names) {
    const size_t letters = wanted.size() - std::min(wanted.find_first_not_of("-/"), wanted.size());
    std::string best;
    size_t least = letters / 3 + 1;  // more edits than a third of the letters make another word
    for (const std::string& name : names) {
        const size_t edits = edit_distance(wanted, name);
        if (edits >= least) continue;
        least = edits;
        best = name;
    }
    if (!best.empty() || letters < 2) return best;
    for (const std::string& name : names)
        if (name.starts_with(wanted) && (best.empty() || name.size() < best.size())) best = name;
    return best;
}

}  // namespace redline
