// A file whose text goes with a message to the model.
#pragma once

#include "base/result.h"

#include <span>
#include <string>

namespace redline::cli {

struct Attachment {
    std::string name;  // as it was given
    std::string text;
    std::string changes;  // made to the text, a phrase for the user; empty: none
};

// Whole texts in UTF-8 only; an error says what is wrong, and how it can be made one.
Result<Attachment> read_attachment(const std::string& path, const std::string& name);
// The files, each by its name and between fences, and the message behind them.
std::string with_attachments(std::span<const Attachment> files, const std::string& message);

}  // namespace redline::cli
