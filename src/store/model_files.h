// The GGUF files that this machine already has: in redline's own folder, and where other programs keep
// theirs.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace redline {

// How a folder is laid out.
enum class StoreKind : uint8_t {
    folder,        // any folders of GGUF files: redline's own, LM Studio's, llama.cpp's
    hugging_face,  // models--USER--REPO/snapshots/REVISION/FILE
    ollama,        // manifests/HOST/NAMESPACE/MODEL/TAG, which name files in blobs/
};

struct ModelStore {
    std::string owner;  // "redline", "hugging face", "llama.cpp", "lm studio", "ollama"
    StoreKind kind;
    std::filesystem::path path;
};

// A variable of the environment; empty when it is not set.
using Environment = std::function<std::string(const std::string&)>;

// Where to look, existing or not: redline's own folder first. It is $REDLINE_MODELS, or redline/models in the
// user's data folder.
std::vector<ModelStore> model_stores(const Environment& environment);
std::filesystem::path own_model_folder(const Environment& environment);

struct StoredModel {
    std::string
        name;  // as one would ask for it: the path below the store, without .gguf; of Ollama MODEL:TAG
    std::string path;                       // of a split model the first part
    std::string owner;                      // of the store
    uint64_t bytes = 0;                     // of all parts
    uint32_t parts = 1;                     // that are there
    uint32_t of = 1;                        // that there should be
    std::vector<std::string> aliases = {};  // other names of the same file, such as tags of Ollama
};

struct StoredModels {
    // By name; a file that two stores share is listed once. Of one name in several stores, or revisions, the
    // first is the one to take.
    std::vector<StoredModel> files;
    std::vector<std::string> faults;  // folders and manifests that cannot be read, a sentence each
};
StoredModels find_model_files(const std::vector<ModelStore>& stores);

// Those of which a name holds `part`, whatever the case of letters; when one is called exactly so, or its
// file is, it alone. Each has the name that was found, and the others as its aliases.
std::vector<StoredModel> named(const std::vector<StoredModel>& files, const std::string& part);
// Those that are called exactly so.
std::vector<StoredModel> called(const std::vector<StoredModel>& files, const std::string& name);

}  // namespace redline
