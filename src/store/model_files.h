// Finds the GGUF files that this machine already has: in redline's folder, and in those of other programs.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace redline {

// The layout of a store.
enum class StoreKind : uint8_t {
    folder,        // any folders of GGUF files: redline's, LM Studio's, llama.cpp's
    hugging_face,  // models--USER--REPO/snapshots/REVISION/FILE
    ollama,        // manifests/HOST/NAMESPACE/MODEL/TAG, which name files in blobs/
};

struct ModelStore {
    std::string owner;  // "redline", "hugging face", "llama.cpp", "lm studio", "ollama"
    StoreKind kind;
    std::filesystem::path path;
};

// Returns an environment variable; empty when it is not set.
using Environment = std::function<std::string(const std::string&)>;

// The folders to search, existing or not. The first is redline's: $REDLINE_MODELS, or redline/models in the
// user's data folder.
std::vector<ModelStore> model_stores(const Environment& environment);
std::filesystem::path redline_model_folder(const Environment& environment);

struct StoredModel {
    std::string name;    // for users: the path below the store, without .gguf; for Ollama MODEL:TAG
    std::string path;    // the first part of a split model
    std::string owner;   // of the store
    uint64_t bytes = 0;  // of all parts
    uint32_t parts = 1;  // parts that exist
    uint32_t of = 1;     // parts that should exist
    std::vector<std::string> aliases = {};  // other names of the same file, such as tags of Ollama
};

struct StoredModels {
    // Sorted by name; a file that two stores share is listed once. When several stores, or revisions, have
    // the same name, the first is preferred.
    std::vector<StoredModel> files;
    std::vector<std::string> faults;  // a sentence for each folder or manifest that cannot be read
};
StoredModels find_model_files(const std::vector<ModelStore>& stores);

// The files with a name that contains `part`, ignoring case; when the name of one, or of its file, equals
// `part`, only that one. Each has the matching name, and the others as its aliases.
std::vector<StoredModel> named(const std::vector<StoredModel>& files, const std::string& part);
// The files that have exactly this name.
std::vector<StoredModel> called(const std::vector<StoredModel>& files, const std::string& name);

}  // namespace redline
