// Where a chat's conversation comes from, and where it is kept.
#pragma once

#include "cli/file_claim.h"
#include "cli/terminal/line_reader.h"

#include <optional>

namespace redline::cli {

struct SessionPlace {
    std::string from;               // read at the start, with its journal; empty, or not there: a new one
    std::optional<FileClaim> kept;  // none: the conversation is not kept
};

// The messages are kept beside the session's file from answer to answer, and until that is written.
std::string journal_of(const std::string& session);

// A file that is no saved conversation may be one that the user cares about.
Status check_replaceable(const std::string& path);

// The place of --session FILE. Where another chat keeps that file a user at a terminal chooses what to do,
// and nothing is returned to who leaves; elsewhere it is an error.
Result<std::optional<SessionPlace>> find_session_place(const std::string& path, LineReader& reader);

}  // namespace redline::cli
