// The options of run and chat that say how conversations are written, and how a model reasons.
#pragma once

#include "cli/options/options.h"
#include "host/chat_writer.h"

namespace redline::cli {

// --chat-format, --chat-template and --chat-template-kwargs.
void add_template_options(Options& options, ChatWriterOptions& writer);

// The user's wishes for a model's reasoning, beside those that the template is told.
struct ReasoningOptions {
    bool hide = false;
    int64_t budget = -1;  // tokens; -1: no limit
};
// --think, --reasoning-budget and their relatives.
void add_reasoning_options(Options& options, ChatWriterOptions& writer, ReasoningOptions& reasoning);
// "on", "off", "hide", or an effort that the template may know.
Status take_thinking(const std::string& text, ChatWriterOptions& writer, ReasoningOptions& reasoning);

}  // namespace redline::cli
