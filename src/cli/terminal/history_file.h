// The messages that a user typed, kept from one chat to the next.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

namespace redline::cli {

class HistoryFile {
public:
    // $XDG_STATE_HOME/redline/history, else ~/.local/state/redline/history; no file where neither is known.
    static HistoryFile of_user();
    explicit HistoryFile(std::string path) : path_(std::move(path)) {}

    // The oldest first. A line that is none of ours is left out; no file is no history.
    Result<std::vector<std::string>> load();
    // At the end of the file, which is made with its folders where it is missing, for its owner only.
    Status add(const std::string& message);
    const std::string& path() const { return path_; }

private:
    std::string path_;  // empty: nothing is kept
};

}  // namespace redline::cli
