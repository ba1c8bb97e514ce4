// This process, its user, and the machine's name and kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace redline::os {

int64_t process_id();
std::string host_name();  // empty where it is not known
std::string user_name();  // likewise
bool is_administrator();
// The names of the user's groups.
std::vector<std::string> user_groups();
// "6.12.9-amd64"; empty where it is not known.
std::string kernel_release();
bool exists(const std::string& path);
// True when this user may read and write what is at the path.
bool can_read_and_write(const std::string& path);
// Lets this process have as many files and connections open as the system allows it, and returns how many.
uint64_t raise_open_files();

}  // namespace redline::os
