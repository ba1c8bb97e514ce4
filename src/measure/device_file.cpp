#include "measure/device_file.h"

#include "base/file.h"
#include "base/file_turn.h"

#include <filesystem>

namespace redline {

static constexpr uint64_t kMostBytes = uint64_t(64) << 20;

std::string device_key(const Backend& backend) {
    const DeviceInfo& device = backend.device();
    return fmt::format("{}; kernels {:016x}",
                       device.identity.empty() ? device.name + "; " + device.detail : device.identity,
                       backend.kernels_hash());
}

DeviceFile::DeviceFile(const std::string& folder, const std::string& name, uint64_t version)
    : folder_(folder), path_(folder + "/" + name), version_(version) {}

Json DeviceFile::all(std::string& problem) const {
    std::error_code absent;
    if (!std::filesystem::exists(path_, absent)) return Json::object();
    const Result<std::string> text = read_text_file(path_, kMostBytes);
    if (!text) {
        problem = text.error().message;
        return Json::object();
    }
    Json file = read_json(text.value());
    const auto part = [&](const char* name) { return file.is_object() ? file.value(name, Json()) : Json(); };
    if (file.is_object() && !file.empty() && part("version") != version_)
        problem = fmt::format("{} is of another version of redline", path_);
    else if (!part("devices").is_object())
        problem = fmt::format("{} is damaged", path_);
    return problem.empty() ? file["devices"] : Json::object();
}

Json DeviceFile::read(const std::string& key, std::string* problem) const {
    std::string ignored;
    const Json devices = all(problem ? *problem : ignored);
    const auto found = devices.find(key);
    return found != devices.end() && found->is_object() ? *found : Json::object();
}

Status DeviceFile::update(const std::string& key, const std::function<void(Json&)>& change) const {
    std::error_code failed;  // ignored: creating the file then reports the cause
    std::filesystem::create_directories(folder_, failed);
    const FileTurn turn = RL_TRY(FileTurn::take(path_));
    std::string damaged;
    Json devices = all(damaged);
    Json& found = devices[key];
    if (!found.is_object()) found = Json::object();
    change(found);
    const Json file = {{"version", version_}, {"devices", devices}};
    const std::string text = file.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    AtomicWriter out = RL_TRY(AtomicWriter::create(path_));
    RL_TRY(out.write(std::as_bytes(std::span(text))));
    return out.commit(false);
}

}  // namespace redline
