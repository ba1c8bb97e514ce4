// Models as Hugging Face's hub and its mirrors publish them: lists a repository's files, and chooses those of
// the wanted model.
#pragma once

#include "fetch/http.h"

namespace redline {

struct HubModel {
    std::string repository;  // "USER/REPO"
    std::string wanted;      // a format ("Q4_K_M") or a file; empty: the default choice
};

// Parses "USER/REPO", "USER/REPO:QUANT", and these with "hf.co/", "hf://" or the hub's address before them.
Result<HubModel> parse_hub_model(const std::string& text);

struct HubFile {
    std::string path;  // in the repository
    uint64_t bytes = 0;
    std::string sha256;  // empty: the hub does not state it
};

struct Hub {
    std::string endpoint;  // "https://huggingface.co", without a slash at the end
    std::string token;     // the user's token; may be empty
    long stall_seconds = 60;

    std::vector<std::string> headers() const;
    std::string file_url(const HubModel& model, const std::string& path) const;
    // All files of the repository.
    Result<std::vector<HubFile>> list(const HubModel& model, const std::atomic<bool>* cancel = nullptr) const;
};

// A hub by the environment: $HF_ENDPOINT (or $MODEL_ENDPOINT), and $HF_TOKEN, or the token that the hub's
// program keeps.
Hub hub_of(const std::function<std::string(const std::string&)>& environment);

// The file, or all parts of a split one, in order. When no format is named it is Q4_K_M, or the nearest to
// it. An error lists the repository's formats.
Result<std::vector<HubFile>> choose_files(const std::vector<HubFile>& files, const HubModel& model);

}  // namespace redline
