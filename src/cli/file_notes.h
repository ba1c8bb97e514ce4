// Notes about a model file: `redline info` shows them, other commands say once for a file that there are
// some, and -v makes them say all.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

namespace redline::cli {

// Says so, unless the record of files in `cache_folder` has this file, unchanged, with these notes. Where no
// record can be kept it is said each time.
void say_file_notes(const std::string& path, const std::vector<std::string>& notes,
                    const std::string& cache_folder);

// True where a file with these notes is new to the record, which then has it.
bool is_new_to_record(const std::string& path, const std::vector<std::string>& notes,
                      const std::string& cache_folder);

}  // namespace redline::cli
