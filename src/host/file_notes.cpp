#include "host/file_notes.h"

#include "base/hash.h"
#include "measure/device_file.h"

#include <filesystem>

#include <sys/stat.h>

namespace redline {

namespace {

constexpr const char* kRecord = "noted.json";
constexpr uint64_t kVersion = 1;  // of the record
constexpr const char* kKey = "model files";
constexpr size_t kMostFiles = 200;

// The file as it is now, and what is said of it.
std::string state_of(const std::string& path, const std::vector<std::string>& notes) {
    struct stat file = {};
    if (::stat(path.c_str(), &file) != 0) return "";
    Hash64 hash;
    for (const std::string& each : notes) hash.add(std::as_bytes(std::span(each)));
    return fmt::format("{} bytes of {}.{:09}; {:016x}", uint64_t(file.st_size), int64_t(file.st_mtim.tv_sec),
                       int64_t(file.st_mtim.tv_nsec), hash.value());
}

bool has(const Json& known, const std::string& path, const std::string& state) {
    const auto found = known.find(path);
    return found != known.end() && found->is_array() &&
           std::find(found->begin(), found->end(), state) != found->end();
}

// A file that changed begins anew; on another device other formats may be decoded, which adds a state.
void add(Json& known, const std::string& path, const std::string& state) {
    Json states = known.contains(path) && known[path].is_array() ? known[path] : Json::array();
    const std::string file = state.substr(0, state.find(';'));
    const bool same =
        !states.empty() && states[0].is_string() && states[0].get<std::string>().starts_with(file + ";");
    if (!same) states = Json::array();
    states.push_back(state);
    known.erase(path);  // the last added is the last to be forgotten
    known[path] = states;
    while (known.size() > kMostFiles) known.erase(known.begin());
}

}  // namespace

bool is_new_to_record(const std::string& path, const std::vector<std::string>& notes,
                      const std::string& cache_folder) {
    std::error_code unknown;
    const std::filesystem::path whole = std::filesystem::canonical(path, unknown);
    const std::string state = state_of(path, notes);
    if (unknown || state.empty() || cache_folder.empty()) return true;
    const DeviceFile record(cache_folder, kRecord, kVersion);
    if (has(record.read(kKey), whole.string(), state)) return false;
    bool fresh = true;
    const Status kept = record.update(kKey, [&](Json& known) {
        fresh = !has(known, whole.string(), state);  // another process may have been first
        if (fresh) add(known, whole.string(), state);
    });
    return !kept || fresh;
}

void say_file_notes(const std::string& path, const std::vector<std::string>& notes,
                    const std::string& cache_folder, Notes& sink) {
    if (notes.empty()) return;
    if (sink.shows(NoteKind::detail)) {
        for (const std::string& each : notes) sink.note(each);
        return;
    }
    if (!sink.shows(NoteKind::note) || !is_new_to_record(path, notes, cache_folder)) return;
    sink.note(fmt::format(
        "there is something to know about this file: redline info {} shows it; this line comes once", path));
}

}  // namespace redline
