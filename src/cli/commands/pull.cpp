// redline pull: fetches a model file, when asked to.
#include "cli/find_model.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "fetch/download.h"
#include "fetch/hub.h"
#include "memory/budget.h"

#include <nlohmann/json.hpp>

#include <cstdlib>

namespace redline::cli {

namespace fs = std::filesystem;

namespace {

struct PullOptions {
    std::vector<std::string> words;
    std::string folder;
    uint32_t stall_seconds = 60;
    bool json = false;
};

Options declare(PullOptions& pull) {
    Options options("pull", "fetch a model file", {"pull USER/REPO[:QUANT] [options]", "pull URL [options]"});
    const auto take = [&pull](const std::string& name) -> Status {
        pull.words.push_back(name);
        return {};
    };
    options.words(take);
    options.each("-hf -hfr --hf-repo", "USER/REPO[:QUANT]", "the model, as llama.cpp's users name it", take);
    options.name("-o --folder", "FOLDER",
                 "where to put it (default: $REDLINE_MODELS, or ~/.local/share/redline/models)", pull.folder);
    options.number("--stall", "seconds without a byte after which to give up", pull.stall_seconds, 1, 3600);
    options.flag("--json", "print one JSON object at the end", pull.json);
    add_voice_options(options);
    options.example("redline pull bartowski/Llama-3.2-1B-Instruct-GGUF");
    options.example("redline pull bartowski/Llama-3.2-1B-Instruct-GGUF:Q8_0");
    options.example("redline pull https://example.org/models/small.gguf");
    options.remark(
        "A file that is there already is not fetched again; one of a hub that was interrupted goes on where "
        "it ended. Without a QUANT it is Q4_K_M, or the nearest to it. HF_TOKEN gives access to gated "
        "models, HF_ENDPOINT names a mirror, https_proxy a proxy. Nothing is ever sent or fetched but by "
        "this command.");
    return options;
}

std::string variable(const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return value ? value : "";
}

struct Source {
    std::string url;
    HubFile file;
    fs::path path;
};

bool is_url(const std::string& text) {
    return text.starts_with("http://") || text.starts_with("https://");
}

// "https://hub/USER/REPO/blob/main/FILE", as a browser shows it, is the page about the file.
std::string file_behind(std::string url) {
    const size_t page = url.find("/blob/");
    if (page != std::string::npos) url.replace(page, 6, "/resolve/");
    return url;
}

Result<Source> source_of(const std::string& url, const fs::path& folder) {
    const std::string path = url.substr(0, url.find_first_of("?#"));
    const std::string name = path.substr(path.rfind('/') + 1);
    if (!name.ends_with(".gguf") || name.find('%') != std::string::npos)
        return error("{}: the address of a model file ends with NAME.gguf", url);
    return Source{file_behind(url), {name, 0, ""}, folder / name};
}

Result<std::vector<Source>> sources(const PullOptions& pull, const Hub& hub,
                                    const std::atomic<bool>* cancel) {
    const std::string& wanted = pull.words[0];
    const fs::path folder = pull.folder.empty() ? own_model_folder(variable) : fs::path(pull.folder);
    if (is_url(wanted) && wanted.find(".gguf") != std::string::npos) {
        Source one = RL_TRY(source_of(wanted, folder));
        return std::vector<Source>{std::move(one)};
    }
    const HubModel model = RL_TRY(parse_hub_model(wanted));
    const std::vector<HubFile> listed = RL_TRY(hub.list(model, cancel));
    std::vector<Source> all;
    for (const HubFile& file : RL_TRY(choose_files(listed, model)))
        all.push_back({hub.file_url(model, file.path), file, folder / model.repository / file.path});
    return all;
}

bool is_there(const Source& source) {
    std::error_code missing;
    const uint64_t bytes = fs::file_size(source.path, missing);
    return !missing && (source.file.bytes == 0 || bytes == source.file.bytes);
}

Status fetch(const Source& source, const Hub& hub, const std::atomic<bool>* cancel) {
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

Result<std::vector<Source>> pull_all(const PullOptions& pull, const std::atomic<bool>* cancel) {
    Hub hub = hub_of(variable);
    hub.stall_seconds = long(pull.stall_seconds);
    const std::vector<Source> all = RL_TRY(sources(pull, hub, cancel));
    for (const Source& source : all) RL_TRY(fetch(source, hub, cancel));
    return all;
}

int report(const std::vector<Source>& all, bool json) {
    Output out;
    if (json) {
        Json files = Json::array();
        for (const Source& source : all)
            files.push_back(
                {{"path", source.path.string()},
                 {"url", source.url},
                 {"bytes", fs::file_size(source.path)},
                 {"sha256", source.file.sha256.empty() ? Json(nullptr) : Json(source.file.sha256)}});
        out.write(to_text(Json{{"files", files}}) + "\n");
    } else {
        out.write(all.front().path.string() + "\n");
    }
    say("redline chat -m " + all.front().path.string());
    return out.finish();
}

int run(const std::vector<std::string>& arguments) {
    PullOptions pull;
    Options options = declare(pull);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (pull.words.size() != 1)
        return fail(
            error("pull takes one model, USER/REPO[:QUANT] or a URL, and {} were given", pull.words.size()),
            kUsage);
    const Interrupts interrupts;
    const Result<std::vector<Source>> all = pull_all(pull, interrupts.flag());
    if (!all && interrupts.raised()) {
        note("interrupted; the same command goes on where it can");
        return interrupts.code();
    }
    return all ? report(all.value(), pull.json) : fail(all.error());
}

}  // namespace

extern const Command pull_command = {"pull", "fetch a model file", run};

}  // namespace redline::cli
