#include "doctor/vulkan_drivers.h"

#include "base/os/shared_library.h"
#include "base/result.h"
#include "base/system_files.h"
#include "json/json.h"

#include <filesystem>

namespace redline {

namespace fs = std::filesystem;

std::vector<std::string> vulkan_driver_files(const std::string& root) {
    std::vector<std::string> files;
    for (const char* folder :
         {"/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"})
        for (const std::string& name : folder_names(root + folder))
            if (name.ends_with(".json")) files.push_back(root + folder + "/" + name);
    return files;
}

static std::vector<std::string> files_named(const std::string& list) {
    std::vector<std::string> files;
    for (size_t at = 0; at < list.size();) {
        const size_t end = std::min(list.find(':', at), list.size());
        const std::string path = list.substr(at, end - at);
        std::error_code unknown;
        if (fs::is_directory(path, unknown)) {
            for (const std::string& name : folder_names(path))
                if (name.ends_with(".json")) files.push_back(path + "/" + name);
        } else if (!path.empty()) {
            files.push_back(path);
        }
        at = end + 1;
    }
    return files;
}

// Loads the driver as the loader does. A driver for programs of another word size is not broken.
static Status check_loads(const std::string& library) {
    os::LibraryFault fault;
    if (void* const driver = os::open_library(library.c_str(), fault, false)) {
        os::close_library(driver);
        return {};
    }
    if (fault.kind == os::LibraryFault::Kind::other_words) return {};
    return error("names a driver that does not load: {}",
                 fault.message.empty() ? "it cannot be loaded" : fault.message);
}

static Status check_file(const std::string& path, const std::string& root) {
    std::error_code unknown;
    if (!fs::exists(path, unknown)) return error("does not exist");
    const Json file = read_json(text_of(path));
    if (!file.is_object() || !file.contains("ICD") || !file["ICD"].is_object())
        return error("is not the description of a driver");
    const auto library = file["ICD"].find("library_path");
    if (library == file["ICD"].end() || !library->is_string()) return error("names no driver");
    std::string name = library->get<std::string>();
    // A name without a slash is searched for in the folders of libraries.
    if (name.find('/') == std::string::npos) return root.empty() ? check_loads(name) : Status();
    if (!name.starts_with('/'))
        name = (fs::path(path).parent_path() / name).string();
    else
        name = root + name;
    if (!fs::exists(name, unknown)) return error("names {}, which does not exist", name);
    return root.empty() ? check_loads(name) : Status();
}

std::vector<std::string> broken_vulkan_drivers(const NamedDrivers& named, const std::string& root) {
    std::vector<std::string> files = files_named(named.instead), out;
    if (named.instead.empty()) {
        files = files_named(named.beside);
        for (const std::string& path : vulkan_driver_files(root)) files.push_back(path);
    }
    for (const std::string& path : files)
        if (const Status checked = check_file(path, root); !checked)
            out.push_back(fmt::format("Vulkan's driver file {} {}", path, checked.error().message));
    return out;
}

}  // namespace redline
