#include "fetch/hub.h"

#include "base/file.h"
#include "fetch/download.h"
#include "gguf/split.h"
#include "json/json.h"

#include <algorithm>
#include <map>
#include <set>

namespace redline {

namespace {

constexpr size_t kLargestListing = 64 << 20;  // most bytes of a page of the listing
constexpr int kMostPages = 100;

std::string lower(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return text;
}

bool plain_name(std::string_view text) {
    if (text.empty() || text.front() == '.') return false;
    return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
           std::string_view::npos;
}

// A path from a server must stay below the folder that it is put into.
bool safe_path(const std::string& path) {
    if (path.empty() || path.front() == '/' || path.find('\\') != std::string::npos) return false;
    for (size_t at = 0; at <= path.size();) {
        const size_t end = std::min(path.find('/', at), path.size());
        const std::string_view step = std::string_view(path).substr(at, end - at);
        if (step.empty() || step == "." || step == "..") return false;
        at = end + 1;
    }
    return std::none_of(path.begin(), path.end(), [](char c) { return uint8_t(c) < 0x20; });
}

std::string escaped(const std::string& path) {
    std::string out;
    for (const char c : path) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           std::string_view("-_.~/").find(c) != std::string_view::npos;
        out += plain ? std::string(1, c) : fmt::format("%{:02X}", uint8_t(c));
    }
    return out;
}

// The address of the next page of a listing: "<https://...>; rel=\"next\"".
std::string next_page(const HttpResponse& response) {
    const auto link = response.headers.find("link");
    if (link == response.headers.end() || link->second.find("rel=\"next\"") == std::string::npos) return "";
    const size_t from = link->second.find('<'), to = link->second.find('>');
    if (from == std::string::npos || to == std::string::npos || to < from) return "";
    return link->second.substr(from + 1, to - from - 1);
}

Status take_listing(const std::string& text, std::vector<HubFile>& files) {
    const auto list = read_json(text);
    if (!list.is_array()) return error("the answer is no list of files");
    for (const auto& entry : list) {
        if (!entry.is_object() || !entry.contains("path") || !entry["path"].is_string()) continue;
        if (entry.contains("type") && entry["type"] != "file") continue;
        HubFile file{entry["path"].get<std::string>(), 0, ""};
        const auto count = [](const Json& from) {
            return from.contains("size") && from["size"].is_number_unsigned() ? from["size"].get<uint64_t>()
                                                                              : 0;
        };
        file.bytes = count(entry);
        if (entry.contains("lfs") && entry["lfs"].is_object()) {
            file.bytes = std::max(file.bytes, count(entry["lfs"]));
            if (entry["lfs"].contains("oid") && entry["lfs"]["oid"].is_string())
                file.sha256 = lower(entry["lfs"]["oid"].get<std::string>());
        }
        if (!safe_path(file.path)) return error("a file in the list has an unsafe name");
        files.push_back(std::move(file));
    }
    return {};
}

// The name of a model: its only file, or the first of its parts.
std::string first_file(const std::string& path) {
    const std::optional<SplitName> part = split_name(path);
    return part ? split_path(part->prefix, 0, part->count) : path;
}

// True when `format` stands in the file's name with no letter or digit on either side: Q4_K is not in
// "Q4_K_M".
bool of_format(const std::string& path, const std::string& format) {
    const std::string name = lower(path), wanted = lower(format);
    for (size_t at = name.find(wanted); at != std::string::npos; at = name.find(wanted, at + 1)) {
        const auto inside = [&](size_t i) {
            return i < name.size() && (std::isalnum(uint8_t(name[i])) || name[i] == '_');
        };
        if (!(at > 0 && inside(at - 1)) && !inside(at + wanted.size())) return true;
    }
    return false;
}

// The defaults, by preference: as good as full precision for most users, at a quarter of the size.
constexpr const char* kUsual[] = {"Q4_K_M", "UD-Q4_K_XL", "Q4_K_S", "MXFP4", "IQ4_XS", "Q4_0",
                                  "Q5_K_M", "Q6_K",       "Q8_0",   "BF16",  "F16"};

}  // namespace

Result<HubModel> parse_hub_model(const std::string& text) {
    std::string rest = text;
    for (const std::string_view head : {"https://huggingface.co/", "hf.co/", "huggingface.co/", "hf://"})
        if (rest.starts_with(head)) rest = rest.substr(head.size());
    HubModel model;
    if (const size_t colon = rest.find(':'); colon != std::string::npos) {
        model.wanted = rest.substr(colon + 1);
        rest = rest.substr(0, colon);
        if (model.wanted.empty())
            return error("\"{}\": after the colon stands a format, such as Q4_K_M", text);
    }
    const size_t slash = rest.find('/');
    const bool two =
        slash != std::string::npos && plain_name(rest.substr(0, slash)) && plain_name(rest.substr(slash + 1));
    if (!two)
        return error(
            "\"{}\" is no model's name: USER/REPO or USER/REPO:QUANT, as in "
            "bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M",
            text);
    model.repository = rest;
    return model;
}

std::vector<std::string> Hub::headers() const {
    if (token.empty()) return {};
    return {"Authorization: Bearer " + token};
}

std::string Hub::file_url(const HubModel& model, const std::string& path) const {
    return fmt::format("{}/{}/resolve/main/{}", endpoint, model.repository, escaped(path));
}

Result<std::vector<HubFile>> Hub::list(const HubModel& model, const std::atomic<bool>* cancel) const {
    std::vector<HubFile> files;
    std::string url = fmt::format("{}/api/models/{}/tree/main?recursive=true", endpoint, model.repository);
    for (int page = 0; !url.empty(); ++page) {
        if (page == kMostPages) return error("{}: the list of files does not end", model.repository);
        std::string text;
        const HttpBody take = [&](const HttpResponse&, std::span<const std::byte> bytes) -> Status {
            if (text.size() + bytes.size() > kLargestListing) return error("the list of files is too long");
            text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            return {};
        };
        // The token must not be sent to a next page on another host.
        if (!url.starts_with(endpoint + "/"))
            return error("{}: the list of files continues on another server", url);
        const Result<HttpResponse> response = http_get({url, headers(), stall_seconds}, take, cancel);
        if (!response) return error("{}: {}", endpoint, response.error().message);
        if (response.value().status != 200) return refused_by_server(response.value().status, url);
        if (const Status taken = take_listing(text, files); !taken)
            return error("{}: {}", url, taken.error().message);
        url = next_page(response.value());
    }
    return files;
}

Hub hub_of(const std::function<std::string(const std::string&)>& environment) {
    Hub hub;
    for (const char* name : {"HF_ENDPOINT", "MODEL_ENDPOINT"})
        if (hub.endpoint.empty()) hub.endpoint = environment(name);
    if (hub.endpoint.empty()) hub.endpoint = "https://huggingface.co";
    while (hub.endpoint.ends_with('/')) hub.endpoint.pop_back();
    hub.token = environment("HF_TOKEN");
    if (hub.token.empty()) {
        const std::string home = environment("HF_HOME");
        const std::string folder = home.empty() ? environment("HOME") + "/.cache/huggingface" : home;
        if (const Result<std::string> kept = read_text_file(folder + "/token", 4096))
            hub.token = kept.value();
    }
    std::erase_if(hub.token, [](char c) { return uint8_t(c) <= 0x20; });
    return hub;
}

// The files of each model in a repository, by the name of the first.
static std::map<std::string, std::vector<HubFile>> models_of(const std::vector<HubFile>& files) {
    std::map<std::string, std::vector<HubFile>> models;
    for (const HubFile& file : files) {
        const std::string name = lower(file.path);
        if (name.ends_with(".gguf") && name.find("mmproj") == std::string::npos)
            models[first_file(file.path)].push_back(file);
    }
    for (auto& [first, parts] : models)
        std::sort(parts.begin(), parts.end(),
                  [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
    return models;
}

// Returns the parts in order; an error where some are missing.
static Result<std::vector<HubFile>> whole(const std::string& repository, const std::vector<HubFile>& parts) {
    const std::optional<SplitName> name = split_name(parts.front().path);
    for (uint64_t i = 0; name && i < name->count; ++i)
        if (i >= parts.size() || parts[i].path != split_path(name->prefix, i, name->count))
            return error("{} lacks {}, a part of the model", repository,
                         split_path(name->prefix, i, name->count));
    return parts;
}

Result<std::vector<HubFile>> choose_files(const std::vector<HubFile>& files, const HubModel& model) {
    const std::map<std::string, std::vector<HubFile>> models = models_of(files);
    if (models.empty())
        return error("{} has no GGUF files{}", model.repository,
                     files.empty() ? "" : "; models in other forms must be converted first");
    std::set<std::string> names;
    for (const auto& [first, parts] : models) names.insert(first);
    const auto chosen_of = [&](const std::string& wanted) {
        std::set<std::string> chosen;
        for (const std::string& name : names)
            if (name == first_file(wanted) || of_format(name, wanted)) chosen.insert(name);
        return chosen;
    };
    std::set<std::string> chosen;
    if (!model.wanted.empty())
        chosen = chosen_of(model.wanted);
    else if (names.size() == 1)
        chosen = names;
    else
        for (const char* usual : kUsual)
            if (chosen.empty()) chosen = chosen_of(usual);
    // When two files have one format, such as one with "UD-", the one with the plain name is meant.
    if (chosen.size() > 1) {
        const auto shorter = [](const std::string& a, const std::string& b) { return a.size() < b.size(); };
        const std::string first = *std::min_element(chosen.begin(), chosen.end(), shorter);
        const bool alone = std::count_if(chosen.begin(), chosen.end(), [&](const std::string& name) {
                               return name.size() == first.size();
                           }) == 1;
        if (alone) chosen = {first};
    }
    if (chosen.size() == 1) return whole(model.repository, models.at(*chosen.begin()));
    // Names are offered only if a file exists for them.
    std::vector<std::string> offered;
    for (const std::string& name : chosen.empty() ? names : chosen)
        offered.push_back(models.at(name).front().path);
    return error("{} has {} {}; name one behind a colon: {}", model.repository,
                 chosen.empty() ? "no file" : "several files",
                 model.wanted.empty() ? "of the usual formats" : "of " + model.wanted,
                 fmt::join(offered, ", "));
}

}  // namespace redline
