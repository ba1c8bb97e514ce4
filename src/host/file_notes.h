// Notes about a model file. A sink that shows details gets all of them, another one is told once per file
// that there are some, and that `redline info` shows them.
#pragma once

#include "base/result.h"
#include "host/notes.h"

#include <string>
#include <vector>

namespace redline {

// Reports them so, where once means: unless the record of files in `cache_folder` has this file, unchanged,
// with these notes. Where no record can be kept the sink is told each time.
void say_file_notes(const std::string& path, const std::vector<std::string>& notes,
                    const std::string& cache_folder, Notes& sink);

// True where a file with these notes is new to the record, which then has it.
bool is_new_to_record(const std::string& path, const std::vector<std::string>& notes,
                      const std::string& cache_folder);

}  // namespace redline
