#include "base/os/system.h"

#include <algorithm>
#include <utility>

#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace redline::os {

int64_t process_id() {
    return int64_t(::getpid());
}

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

std::string user_name() {
    const struct passwd* const user = ::getpwuid(::getuid());
    return user ? user->pw_name : "";
}

bool is_administrator() {
    return ::geteuid() == 0;
}

std::vector<std::string> user_groups() {
    std::vector<gid_t> ids(size_t(std::max(0, ::getgroups(0, nullptr))));
    ids.resize(size_t(std::max(0, ::getgroups(int(ids.size()), ids.data()))));
    ids.push_back(::getegid());
    std::vector<std::string> names;
    for (const gid_t id : ids)
        if (const struct group* const found = ::getgrgid(id)) names.emplace_back(found->gr_name);
    return names;
}

std::string kernel_release() {
    utsname names = {};
    return ::uname(&names) == 0 ? names.release : "";
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

bool can_read_and_write(const std::string& path) {
    return ::access(path.c_str(), R_OK | W_OK) == 0;
}

uint64_t raise_open_files() {
    rlimit files = {};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
    const rlim_t before = std::exchange(files.rlim_cur, files.rlim_max);
    return ::setrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : before;
}

}  // namespace redline::os
