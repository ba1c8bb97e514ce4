#include "cli/pull_model.h"

#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "fetch/download.h"
#include "memory/budget.h"
#include "store/model_files.h"

#include <cstdlib>

namespace redline::cli {

namespace fs = std::filesystem;

namespace {

constexpr long kStallSeconds = 60;

std::string variable(const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return value ? value : "";
}

bool is_url(const std::string& text) {
    return text.starts_with("http://") || text.starts_with("https://");
}

// "https://hub/USER/REPO/blob/main/FILE", as a browser shows it, is the page about the file.
std::string file_behind(std::string url) {
    const size_t page = url.find("/blob/");
    if (page != std::string::npos) url.replace(page, 6, "/resolve/");
    return url;
}

Result<PulledFile> source_of(const std::string& url, const fs::path& folder) {
    const std::string path = url.substr(0, url.find_first_of("?#"));
    const std::string name = path.substr(path.rfind('/') + 1);
    if (!name.ends_with(".gguf") || name.find('%') != std::string::npos)
        return error("{}: the address of a model file ends with NAME.gguf", url);
    return PulledFile{file_behind(url), {name, 0, ""}, folder / name};
}

Result<std::vector<PulledFile>> files_of(const std::string& wanted, const fs::path& folder, const Hub& hub,
                                         const std::atomic<bool>* cancel) {
    if (is_url(wanted) && wanted.find(".gguf") != std::string::npos) {
        PulledFile one = RL_TRY(source_of(wanted, folder));
        return std::vector<PulledFile>{std::move(one)};
    }
    const HubModel model = RL_TRY(parse_hub_model(wanted));
    const std::vector<HubFile> listed = RL_TRY(hub.list(model, cancel));
    std::vector<PulledFile> all;
    for (const HubFile& file : RL_TRY(choose_files(listed, model)))
        all.push_back({hub.file_url(model, file.path), file, folder / model.repository / file.path});
    return all;
}

bool is_there(const PulledFile& source) {
    std::error_code missing;
    const uint64_t bytes = fs::file_size(source.path, missing);
    return !missing && (source.file.bytes == 0 || bytes == source.file.bytes);
}

Status fetch(const PulledFile& source, const Hub& hub, const std::atomic<bool>* cancel) {
    if (is_there(source)) {
        say(fmt::format("{} is there already", source.path.string()));
        return {};
    }
    if (source.file.bytes > 0)
        say(fmt::format("fetching {} ({})", source.file.path, format_bytes(source.file.bytes)));
    ProgressLine line("fetching " + source.path.filename().string());
    const bool ours = source.url.starts_with(hub.endpoint + "/");
    const Download what{source.url,           ours ? hub.headers() : std::vector<std::string>{},
                        source.path.string(), source.file.bytes,
                        source.file.sha256,   hub.stall_seconds};
    RL_TRY(download(
        what, [&](uint64_t done, uint64_t total) { line.update(done, total); }, cancel));
    return {};
}

// The model's files among those in its own folder; none unless all parts are there.
std::vector<std::string> files_here(const HubModel& model) {
    const fs::path folder = own_model_folder(variable) / model.repository;
    std::vector<HubFile> here;
    std::error_code problem;
    for (fs::recursive_directory_iterator at(folder, problem), end; !problem && at != end;
         at.increment(problem))
        if (at->path().extension() == ".gguf")
            here.push_back({at->path().lexically_relative(folder).string(), 1, ""});
    const Result<std::vector<HubFile>> chosen = choose_files(here, model);
    if (!chosen) return {};
    std::vector<std::string> paths;
    for (const HubFile& file : chosen.value()) paths.push_back((folder / file.path).string());
    const size_t of = paths[0].rfind("-of-");
    const bool split = of != std::string::npos && paths[0].size() == of + 14;  // -of-00002.gguf
    if (split && paths[0].substr(of + 4, 5) != fmt::format("{:05}", paths.size())) return {};
    return paths;
}

}  // namespace

Result<std::vector<PulledFile>> pull_model(const std::string& wanted, const std::string& folder,
                                           long stall_seconds, const std::atomic<bool>* cancel) {
    Hub hub = hub_of(variable);
    hub.stall_seconds = stall_seconds;
    const fs::path where = folder.empty() ? own_model_folder(variable) : fs::path(folder);
    const std::vector<PulledFile> all = RL_TRY(files_of(wanted, where, hub, cancel));
    for (const PulledFile& file : all) RL_TRY(fetch(file, hub, cancel));
    return all;
}

void add_hub_option(Options& options, std::string& wanted) {
    options.name("-hf -hfr --hf-repo", "USER/REPO[:QUANT]",
                 "a model of a hub, in place of -m: fetched as redline pull does unless it is there already",
                 wanted);
}

std::optional<int> take_hub_model(const std::string& wanted, std::string& path) {
    if (wanted.empty()) return {};
    if (!path.empty())
        return fail(error("-hf {} and -m {} both name the model: leave one out", wanted, path), kUsage);
    const Result<HubModel> model = parse_hub_model(wanted);
    if (!model) return fail(model.error(), kUsage);
    if (const std::vector<std::string> here = files_here(model.value()); !here.empty()) {
        path = here[0];
        say("model: " + path);
        return {};
    }
    const Interrupts interrupts;
    const Result<std::vector<PulledFile>> all = pull_model(wanted, "", kStallSeconds, interrupts.flag());
    if (!all && interrupts.raised()) {
        note("interrupted; the same command goes on where it can");
        return interrupts.code();
    }
    if (!all) return fail(all.error());
    path = all.value().front().path.string();
    return {};
}

}  // namespace redline::cli
