// The options of redline run.
#pragma once

#include "cli/commands/run_fim.h"
#include "cli/options/chat_options.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/options/speculation_options.h"
#include "cli/prompt.h"
#include "engine/generate.h"

namespace redline::cli {

// A prompt goes into the model's chat template or not; automatic: it does if the model file has one.
enum class PromptForm : uint8_t { automatic, chat, raw };

struct RunOptions {
    ModelOptions model;
    SamplingOptions sampling;
    SpeculationOptions speculation;
    PromptSource prompt;
    FimSource fim;
    std::vector<std::string> words;  // without an option: a model's file, a prompt
    std::string messages;            // a file of a conversation; "-": standard input
    std::string tools;
    GenerateOptions generate;
    const Speculation* methods = nullptr;  // the drafter of `generate`
    int64_t keep = 0;                      // -1: the whole prompt
    std::string cache_file;
    bool cache_read_only = false;
    bool display_prompt = false;
    bool show_prompt = false;
    bool parse_special = false;
    bool add_bos = true;
    PromptForm form = PromptForm::automatic;
    std::string system;
    ChatWriterOptions writer;
    ReasoningOptions reasoning;
    bool json = false;
};

Options declare(RunOptions& run);
// Takes the words for the model and the prompt that they are. Where that fails, `code` is the exit status.
Status take_words(RunOptions& run, int& code);
// Refuses what is wrong whatever the model, and sets options that others imply.
Status check_usage(const Options& options, RunOptions& run);

}  // namespace redline::cli
