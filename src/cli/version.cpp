#include "cli/version.h"

#include "version_generated.h"

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

}  // namespace redline::cli
