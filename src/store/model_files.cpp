#include "store/model_files.h"

#include "base/file.h"
#include "gguf/split.h"
#include "json/json.h"

#include <algorithm>
#include <map>

namespace redline {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kLargestManifest = 1 << 20;
constexpr int kDeepest = 6;  // most levels of folders below a store

std::string lower(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return text;
}

// Vision and audio projectors lie beside their models and cannot run alone.
bool is_model(const std::string& file) {
    const std::string name = lower(file);
    return name.ends_with(".gguf") && name.size() > 5 && name.find("mmproj") == std::string::npos;
}

class Search {
public:
    void look_into(const ModelStore& store) {
        std::error_code fault;
        if (!fs::exists(store.path, fault)) return;
        store_ = &store;
        if (store.kind == StoreKind::ollama)
            look_into_manifests(store.path / "manifests", 0);
        else
            look_into_folder(store.path, 0);
        for (auto& [key, file] : split_) add(std::move(file));
        split_.clear();
    }

    StoredModels result() && {
        std::stable_sort(
            found_.files.begin(), found_.files.end(),
            [](const StoredModel& a, const StoredModel& b) { return lower(a.name) < lower(b.name); });
        return std::move(found_);
    }

private:
    void fault(const fs::path& where, const std::string& what) {
        found_.faults.push_back(fmt::format("{}: {}", where.string(), what));
    }

    // The entries of a folder by name; a folder that cannot be read is a fault.
    std::vector<fs::directory_entry> entries(const fs::path& folder) {
        std::vector<fs::directory_entry> all;
        std::error_code problem;
        for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem))
            all.push_back(*at);
        if (problem) fault(folder, problem.message());
        std::sort(all.begin(), all.end());
        return all;
    }

    // The revision that the hub's program uses precedes the others, whose files have the same names.
    static void put_main_first(const fs::path& snapshots, std::vector<fs::directory_entry>& revisions) {
        constexpr uint64_t kLongest = 256;
        const Result<std::string> main =
            read_text_file((snapshots.parent_path() / "refs/main").string(), kLongest);
        if (!main) return;
        std::stable_partition(revisions.begin(), revisions.end(), [&](const fs::directory_entry& revision) {
            return main.value().starts_with(revision.path().filename().string());
        });
    }

    void look_into_folder(const fs::path& folder, int depth) {
        std::vector<fs::directory_entry> all = entries(folder);
        if (store_->kind == StoreKind::hugging_face && depth == 2) put_main_first(folder, all);
        for (const fs::directory_entry& entry : all) {
            const std::string name = entry.path().filename().string();
            std::error_code unreadable;
            // Links to folders are not followed: they may form a cycle.
            if (entry.is_directory(unreadable) && !entry.is_symlink(unreadable)) {
                const bool blobs = store_->kind == StoreKind::hugging_face && depth == 1 && name == "blobs";
                if (depth < kDeepest && !blobs) look_into_folder(entry.path(), depth + 1);
            } else if (entry.is_regular_file(unreadable) && is_model(name)) {
                take(entry.path(), entry.file_size(unreadable));
            }
        }
    }

    void take(const fs::path& path, uint64_t bytes) {
        const std::optional<SplitName> part = split_name(path.filename().string());
        const fs::path beside = path.parent_path() / (part ? part->prefix : path.stem().string());
        StoredModel file{name_of(beside), path.string(), store_->owner, bytes};
        if (!part) return add(std::move(file));
        file.of = uint32_t(part->count);
        const auto [at, fresh] = split_.try_emplace(beside.string(), file);
        if (fresh) return;
        at->second.bytes += bytes;
        ++at->second.parts;
    }

    // The path below the store; for Hugging Face USER/REPO/FILE, without the revision.
    std::string name_of(const fs::path& path) const {
        const fs::path below = path.lexically_relative(store_->path);
        if (store_->kind != StoreKind::hugging_face) return below.string();
        std::string repository = below.begin()->string();
        if (repository.starts_with("models--")) repository = repository.substr(8);
        for (size_t at; (at = repository.find("--")) != std::string::npos;) repository.replace(at, 2, "/");
        fs::path name = repository;
        int skipped = 0;  // the repository, "snapshots" and the revision
        for (const fs::path& step : below)
            if (skipped++ >= 3) name /= step;
        return name.string();
    }

    void look_into_manifests(const fs::path& folder, int depth) {
        for (const fs::directory_entry& entry : entries(folder)) {
            std::error_code unreadable;
            if (entry.is_directory(unreadable) && depth < kDeepest)
                look_into_manifests(entry.path(), depth + 1);
            else if (entry.is_regular_file(unreadable) && depth > 0)
                take_manifest(entry.path());
        }
    }

    void take_manifest(const fs::path& path) {
        const Result<std::string> text = read_text_file(path.string(), kLargestManifest);
        if (!text) return fault(path, text.error().message);
        const auto manifest = read_json(text.value());
        if (!manifest.is_object() || !manifest.contains("layers") || !manifest["layers"].is_array())
            return fault(path, "is no manifest of Ollama");
        for (const auto& layer : manifest["layers"]) {
            if (!layer.is_object() || layer.value("mediaType", "") != "application/vnd.ollama.image.model")
                continue;
            std::string digest = layer.value("digest", "");
            if (!digest.starts_with("sha256:") || digest.find('/') != std::string::npos)
                return fault(path, "names a model without a digest");
            digest[6] = '-';
            const fs::path blob = store_->path / "blobs" / digest;
            std::error_code missing;
            const uint64_t bytes = fs::file_size(blob, missing);
            if (missing) return fault(path, fmt::format("its file blobs/{} is missing", digest));
            return add({manifest_name(path), blob.string(), store_->owner, bytes});
        }
    }

    // MODEL:TAG for Ollama's default library, NAMESPACE/MODEL:TAG, or with another host before it.
    std::string manifest_name(const fs::path& path) const {
        const fs::path model = path.lexically_relative(store_->path / "manifests").parent_path();
        std::string name = model.generic_string();
        for (const std::string_view usual : {"registry.ollama.ai/", "library/"})
            if (name.starts_with(usual)) name = name.substr(usual.size());
        return name + ":" + path.filename().string();
    }

    void add(StoredModel file) {
        std::error_code ignored;
        const fs::path real = fs::canonical(file.path, ignored);
        const auto [at, fresh] = known_.try_emplace(ignored ? file.path : real.string(), found_.files.size());
        if (fresh) return found_.files.push_back(std::move(file));
        StoredModel& same = found_.files[at->second];
        std::vector<std::string>& names = same.aliases;
        if (file.name != same.name && std::find(names.begin(), names.end(), file.name) == names.end())
            names.push_back(std::move(file.name));
    }

    const ModelStore* store_ = nullptr;
    std::map<std::string, StoredModel> split_;  // of this store, by folder and name without the part
    std::map<std::string, size_t> known_;       // indices into found_.files, by path
    StoredModels found_;
};

}  // namespace

static fs::path home_folder(const Environment& environment, const char* variable, const char* below) {
    const std::string given = environment(variable);
    return given.empty() ? fs::path(environment("HOME")) / below : fs::path(given);
}

fs::path redline_model_folder(const Environment& environment) {
    const std::string given = environment("REDLINE_MODELS");
    return given.empty() ? home_folder(environment, "XDG_DATA_HOME", ".local/share") / "redline/models"
                         : fs::path(given);
}

std::vector<ModelStore> model_stores(const Environment& environment) {
    const fs::path home = environment("HOME");
    const fs::path caches = home_folder(environment, "XDG_CACHE_HOME", ".cache");
    const auto either = [&](const char* variable, fs::path usual) {
        const std::string given = environment(variable);
        return given.empty() ? usual : fs::path(given);
    };
    const fs::path hub = either("HF_HUB_CACHE", either("HF_HOME", caches / "huggingface") / "hub");
    std::vector<ModelStore> stores = {
        {"redline", StoreKind::folder, redline_model_folder(environment)},
        {"hugging face", StoreKind::hugging_face, hub},
        {"llama.cpp", StoreKind::folder, either("LLAMA_CACHE", caches / "llama.cpp")},
        {"lm studio", StoreKind::folder, home / ".lmstudio/models"},
        {"lm studio", StoreKind::folder, home / ".cache/lm-studio/models"},
        {"ollama", StoreKind::ollama, either("OLLAMA_MODELS", home / ".ollama/models")},
        // Ollama's folder when it runs as a service.
        {"ollama", StoreKind::ollama, "/usr/share/ollama/.ollama/models"}};
    // Without a home folder these paths would be relative.
    if (home.empty()) std::erase_if(stores, [](const ModelStore& s) { return s.path.is_relative(); });
    return stores;
}

StoredModels find_model_files(const std::vector<ModelStore>& stores) {
    Search search;
    for (const ModelStore& store : stores) search.look_into(store);
    return std::move(search).result();
}

// The name or alias of the file that equals `wanted`, or, unless `whole`, contains it; null where none does.
static const std::string* name_found(const StoredModel& file, const std::string& wanted, bool whole) {
    const auto fits = [&](const std::string& given) {
        const std::string name = lower(given);
        const std::string last = name.substr(name.rfind('/') + 1);
        if (name == wanted || last == wanted || last + ".gguf" == wanted || name == wanted + ":latest")
            return true;
        return !whole && name.find(wanted) != std::string::npos;
    };
    if (fits(file.name)) return &file.name;
    const auto found = std::find_if(file.aliases.begin(), file.aliases.end(), fits);
    return found == file.aliases.end() ? nullptr : &*found;
}

static StoredModel under_name(const StoredModel& file, const std::string& name) {
    StoredModel out = file;
    const auto place = std::find(out.aliases.begin(), out.aliases.end(), name);
    if (place != out.aliases.end()) std::swap(*place, out.name);
    return out;
}

std::vector<StoredModel> called(const std::vector<StoredModel>& files, const std::string& name) {
    std::vector<StoredModel> out;
    for (const StoredModel& file : files)
        if (const std::string* found = name_found(file, lower(name), true))
            out.push_back(under_name(file, *found));
    return out;
}

std::vector<StoredModel> named(const std::vector<StoredModel>& files, const std::string& part) {
    std::vector<StoredModel> out = called(files, part);
    if (out.size() == 1) return out;
    for (const StoredModel& file : files) {
        if (name_found(file, lower(part), true)) continue;
        if (const std::string* found = name_found(file, lower(part), false))
            out.push_back(under_name(file, *found));
    }
    return out;
}

}  // namespace redline
