// Models as Hugging Face's hub and its mirrors publish them: which files a repository has, and which of them
// are the model that was asked for.
#pragma once

#include "fetch/http.h"

namespace redline {

struct HubModel {
    std::string repository;  // "USER/REPO"
    std::string wanted;      // a format ("Q4_K_M") or a file; empty: the usual choice
};

// "USER/REPO", "USER/REPO:QUANT", the same behind "hf.co/", "hf://" or the hub's address; nothing else.
Result<HubModel> parse_hub_model(const std::string& text);

struct HubFile {
    std::string path;  // in the repository
    uint64_t bytes = 0;
    std::string sha256;  // empty: the hub does not say
};

struct Hub {
    std::string endpoint;  // "https://huggingface.co", without a slash at the end
    std::string token;     // of the user; may be empty
    long stall_seconds = 60;

    std::vector<std::string> headers() const;
    std::string file_url(const HubModel& model, const std::string& path) const;
    // All files of the repository.
    Result<std::vector<HubFile>> list(const HubModel& model, const std::atomic<bool>* cancel = nullptr) const;
};

// From the environment: $HF_ENDPOINT (or $MODEL_ENDPOINT), $HF_TOKEN, else the token that the hub's own
// program keeps.
Hub hub_of(const std::function<std::string(const std::string&)>& environment);

// The file, or all parts of a split one, in order. Without a wish Q4_K_M, else the nearest to it that there
// is. An error lists what the repository has.
Result<std::vector<HubFile>> choose_files(const std::vector<HubFile>& files, const HubModel& model);

}  // namespace redline
