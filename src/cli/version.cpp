#include "cli/version.h"

#include "version_generated.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace redline::cli {

std::string version() {
    return RL_VERSION;
}
std::string commit() {
    return RL_COMMIT;
}

std::string compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "an unknown compiler";
#endif
}

// "gfx1151" is of gfx11, "gfx90a" of gfx9, "gfx10-3-generic" of gfx10.
static std::string family_of(std::string_view target) {
    const size_t dash = target.find('-');
    return std::string(target.substr(0, dash != target.npos ? dash : target.size() - 2));
}

std::string short_lacks(std::string_view lacks) {
    constexpr size_t kFew = 4;
    constexpr std::string_view kTarget = "gfx", kBetween = ", ";
    const size_t begin = lacks.find(kTarget);
    size_t end = begin, count = 0;
    std::vector<std::string> families;
    while (end < lacks.size() && lacks.substr(end).starts_with(kTarget)) {
        const size_t behind = std::min(lacks.find_first_of(", ", end), lacks.size());
        const std::string family = family_of(lacks.substr(end, behind - end));
        if (std::find(families.begin(), families.end(), family) == families.end()) families.push_back(family);
        ++count;
        end = behind;
        if (!lacks.substr(behind).starts_with(fmt::format("{}{}", kBetween, kTarget))) break;
        end += kBetween.size();
    }
    if (count <= kFew) return std::string(lacks);
    return fmt::format("{}{} kinds of AMD GPU ({}){}", lacks.substr(0, begin), count,
                       fmt::join(families, ", "), lacks.substr(end));
}

}  // namespace redline::cli
