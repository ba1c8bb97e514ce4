#include "cli/pull_model.h"

#include "cli/command.h"
#include "cli/report.h"
#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"
#include "fetch/download.h"
#include "gguf/check.h"
#include "gguf/gguf.h"
#include "gguf/split.h"
#include "host/find_model.h"
#include "store/model_files.h"

#include <cstdlib>
#include <fstream>

namespace redline::cli {

namespace fs = std::filesystem;

namespace {

constexpr long kStallSeconds = 60;

// The user's token is for the hub alone.
std::vector<std::string> headers_for(const PulledFile& source, const Hub& hub) {
    return source.url.starts_with(hub.endpoint + "/") ? hub.headers() : std::vector<std::string>();
}

bool is_url(const std::string& text) {
    return text.starts_with("http://") || text.starts_with("https://");
}

// Schemes that hubs of others have are no addresses of the web.
bool has_scheme(const std::string& text) {
    return text.find("://") != std::string::npos && !text.starts_with("hf://");
}

Error wrong_address(const std::string& text) {
    return error("{}: an address begins with https:// or http://, and ends with NAME.gguf", text);
}

// "https://hub/USER/REPO/blob/main/FILE", as a browser shows it, is the page about the file.
std::string file_behind(std::string url) {
    const size_t page = url.find("/blob/");
    if (page != std::string::npos) url.replace(page, 6, "/resolve/");
    return url;
}

// The file that a URL names, or all parts of the model that it is a part of.
Result<std::vector<PulledFile>> sources_of(const std::string& url, const fs::path& folder) {
    const size_t end = std::min(url.find_first_of("?#"), url.size());
    const std::string path = url.substr(0, end), rest = url.substr(end);
    const size_t slash = path.rfind('/') + 1;
    const std::string name = path.substr(slash);
    if (!name.ends_with(".gguf") || name.find('%') != std::string::npos)
        return error("{}: the address of a model file ends with NAME.gguf", url);
    const std::optional<SplitName> part = split_name(name);
    std::vector<PulledFile> all;
    for (uint64_t i = 0; i < (part ? part->count : 1); ++i) {
        const std::string file = part ? split_path(part->prefix, i, part->count) : name;
        all.push_back({file_behind(path.substr(0, slash) + file + rest), {file, 0, ""}, folder / file});
    }
    return all;
}

bool is_file_address(const std::string& wanted) {
    return is_url(wanted) && wanted.find(".gguf") != std::string::npos;
}

Result<std::vector<PulledFile>> files_of(const std::string& wanted, const fs::path& folder, const Hub& hub,
                                         const std::atomic<bool>* cancel) {
    if (is_file_address(wanted)) return sources_of(wanted, folder);
    const HubModel model = RL_TRY(parse_hub_model(wanted));
    const std::vector<HubFile> listed = RL_TRY(hub.list(model, cancel));
    std::vector<PulledFile> all;
    for (const HubFile& file : RL_TRY(choose_files(listed, model)))
        all.push_back({hub.file_url(model, file.path), file, folder / model.repository / file.path});
    return all;
}

// True where a file that cannot be read is no GGUF file or cut short. Others are of a form that redline does
// not know, or could not be read this time.
bool is_damaged(const std::string& path) {
    constexpr uint64_t kMostHeader = uint64_t(64) << 20;
    std::error_code unknown;
    const uint64_t bytes = fs::file_size(path, unknown);
    std::vector<std::byte> start(unknown ? 0 : std::min(bytes, kMostHeader));
    std::ifstream in(path, std::ios::binary);
    if (unknown || !in.read(reinterpret_cast<char*>(start.data()), std::streamsize(start.size())))
        return false;
    if (!check_gguf_start(start, path)) return true;
    const auto problem = [&](uint64_t end) {
        const std::span<const std::byte> header = std::span(start).first(std::min(end, start.size()));
        const Result<Gguf> parsed = Gguf::parse(header, end, path);
        return parsed ? std::string() : parsed.error().message;
    };
    // An error that is about the end of the file is another one when that is elsewhere.
    const std::string found = problem(bytes);
    return !found.empty() && found != problem(bytes - 1);
}

// An error unless `path` holds a whole GGUF file, of the part that the source's name says.
Status check_pulled(const PulledFile& source, const std::string& path) {
    const SplitPart part = RL_TRY(check_gguf_file(path));
    const std::optional<SplitName> name = split_name(source.path.filename().string());
    if (part.count == 1 || (name && name->index == part.index && name->count == part.count)) return {};
    return error("{} is part {} of {} of a split model, which its name does not say", path, part.index + 1,
                 part.count);
}

// An error about the file at `path` as one about where it comes from.
Error about_source(const PulledFile& source, const std::string& path, const Error& problem) {
    std::string message = problem.message;
    if (message.starts_with(path)) message.replace(0, path.size(), source.url);
    return error("{}", message);
}

Download download_of(const PulledFile& source, const Hub& hub) {
    Download what{source.url,        headers_for(source, hub), source.path.string(),
                  source.file.bytes, source.file.sha256,       hub.stall_seconds};
    what.check_start = [source](std::span<const std::byte> start) {
        return check_gguf_start(start, source.url);
    };
    what.check = [source](const std::string& part) -> FileCheck {
        const Status sound = check_pulled(source, part);
        if (sound) return {};
        return {about_source(source, part, sound.error()), is_damaged(part)};
    };
    return what;
}

// True where the file need not be fetched, since the one with its name is whole and as large as it should be.
// An error where fetching it would bring the same again.
Result<bool> is_there(const PulledFile& source, const Download& what, const std::atomic<bool>* cancel) {
    std::error_code missing;
    const uint64_t bytes = fs::file_size(source.path, missing);
    if (missing) return false;
    const Status sound = check_pulled(source, what.path);
    const bool damaged = !sound && is_damaged(what.path);
    const uint64_t wanted = what.bytes > 0 || damaged ? what.bytes : size_on_server(what, cancel);
    if (cancel && *cancel) return error("interrupted");
    if (!sound && !damaged && wanted == bytes)
        return error("{}; it is there already, as large as that of {}", sound.error().message, what.url);
    if (!sound) {
        note(fmt::format("what is there is no whole model, and is fetched anew: {}", sound.error().message));
        return false;
    }
    if (wanted == 0 || wanted == bytes) return true;
    if (what.bytes == 0)
        return error(
            "{} is there already, another model of {} bytes, where {} has {}: remove it, or take another "
            "folder with -o",
            what.path, bytes, what.url, wanted);
    note(fmt::format("{} has {} bytes, the hub's file {}: it is fetched anew", what.path, bytes, wanted));
    return false;
}

Status fetch(const PulledFile& source, const Hub& hub, const std::atomic<bool>* cancel) {
    const Download what = download_of(source, hub);
    if (RL_TRY(is_there(source, what, cancel))) {
        say(fmt::format("{} is there already", what.path));
        return {};
    }
    if (what.bytes > 0) say(fmt::format("fetching {} ({})", source.file.path, decimal_size(what.bytes)));
    ProgressLine line("fetching " + source.path.filename().string());
    return download(
        what, [&](uint64_t done, uint64_t total) { line.update(done, total); }, cancel);
}

}  // namespace

Status check_pull(const std::string& wanted) {
    if (is_file_address(wanted)) {
        RL_TRY(sources_of(wanted, {}));
        return {};
    }
    const Result<HubModel> model = parse_hub_model(wanted);
    if (model) return {};
    if (has_scheme(wanted)) return wrong_address(wanted);
    return error("{}, or an address that begins with https:// or http://", model.error().message);
}

Result<std::vector<PulledFile>> pull_model(const std::string& wanted, const PullSettings& settings,
                                           const std::atomic<bool>* cancel) {
    Hub hub = hub_of(environment_variable);
    hub.stall_seconds = settings.stall_seconds;
    if (!settings.token.empty()) hub.token = settings.token;
    const fs::path where =
        settings.folder.empty() ? redline_model_folder(environment_variable) : fs::path(settings.folder);
    const std::vector<PulledFile> all = RL_TRY(files_of(wanted, where, hub, cancel));
    for (const PulledFile& file : all) RL_TRY(fetch(file, hub, cancel));
    if (all.size() > 1) RL_TRY(Gguf::open(all.front().path.string()));  // the parts belong together
    return all;
}

void add_remote_options(Options& options, RemoteModel& remote) {
    options.name("-hf -hfr --hf-repo", "USER/REPO[:QUANT]",
                 "a model of a hub, in place of -m: fetched as redline pull does, unless redline or another "
                 "program has it here already",
                 remote.hub);
    options.name("-hff --hf-file", "FILE", "the file of that repository, in place of QUANT", remote.hub_file);
    options.name("-hft --hf-token", "TOKEN", "access token of the hub (default: that of HF_TOKEN)",
                 remote.token);
    options.name("-mu --model-url", "URL", "a model file by its address, in place of -m", remote.url);
    options.flag("--offline", "fetch nothing: -hf and -mu take what is here", remote.offline);
}

static Error two_models(std::string_view one, const std::string& first, std::string_view other,
                        const std::string& second) {
    return error("{} {} and {} {} both name the model: leave one out", one, first, other, second);
}

// The file of it that is here, found without a network; empty where there is none.
static Result<std::string> find_here(const RemoteModel& remote) {
    if (remote.hub.empty()) {
        if (!is_url(remote.url)) return wrong_address("-mu " + remote.url);
        const std::vector<PulledFile> files =
            RL_TRY(sources_of(remote.url, redline_model_folder(environment_variable)));
        const std::string path = files.front().path.string();
        std::error_code unknown;
        return remote.offline && fs::exists(path, unknown) ? path : std::string();
    }
    HubModel model = RL_TRY(parse_hub_model(remote.hub));
    if (!remote.hub_file.empty()) model.wanted = remote.hub_file;
    std::vector<std::string> faults;
    const std::optional<StoredModel> here = find_hub_model(model, user_model_stores(), faults);
    for (const std::string& fault : faults) note("passed over: " + fault);
    if (!here) return std::string();
    say(fmt::format("model: {} ({})", here->name, here->owner));
    say_detail("its file is " + here->path);
    return here->path;
}

std::optional<int> take_remote_model(ModelOptions& model) {
    const RemoteModel& remote = model.remote;
    if (!remote) {
        if (remote.hub_file.empty()) return {};
        return fail(error("-hff {} names a file of a repository, which -hf names", remote.hub_file), kUsage);
    }
    const std::string_view option = remote.hub.empty() ? "-mu" : "-hf";
    std::string wanted = remote.hub.empty() ? remote.url : remote.hub;
    if (!remote.hub.empty() && !remote.url.empty())
        return fail(two_models("-hf", remote.hub, "-mu", remote.url), kUsage);
    if (!model.model.empty()) return fail(two_models(option, wanted, "-m", model.model), kUsage);
    const Result<std::string> here = find_here(remote);
    if (!here) return fail(here.error(), kUsage);
    model.model = here.value();
    if (!model.model.empty()) return {};
    if (remote.offline)
        return fail(
            error("--offline: no program here has fetched {}; redline models lists what is here", wanted));
    if (!remote.hub_file.empty()) wanted = wanted.substr(0, wanted.find(':')) + ":" + remote.hub_file;
    const Interrupts interrupts;
    const Result<std::vector<PulledFile>> all =
        pull_model(wanted, {"", remote.token, kStallSeconds}, interrupts.flag());
    if (!all && interrupts.raised()) {
        note("interrupted; the same command goes on where it can");
        return interrupts.code();
    }
    if (!all) return fail(all.error());
    model.model = all.value().front().path.string();
    return {};
}

}  // namespace redline::cli
