// redline pull: fetches a model file, when asked to.
#include "cli/options/model_options.h"
#include "cli/pull_model.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "json/json.h"

namespace redline::cli {

namespace fs = std::filesystem;

namespace {

struct PullOptions {
    std::vector<std::string> words;
    std::string folder;
    std::string token;
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
    options.name("-hft --hf-token", "TOKEN", "access token of the hub (default: that of HF_TOKEN)",
                 pull.token);
    options.number("--stall", "seconds without a byte after which to give up", pull.stall_seconds, 1, 3600);
    options.flag("--json", "print one JSON object at the end", pull.json);
    add_voice_options(options);
    options.example("redline pull bartowski/Llama-3.2-1B-Instruct-GGUF");
    options.example("redline pull bartowski/Llama-3.2-1B-Instruct-GGUF:Q8_0");
    options.example("redline pull https://example.org/models/small.gguf");
    options.remark(
        "A file that is there already, whole and of the right size, is not fetched again; one that was "
        "interrupted goes on where it ended, where the server can tell that it is still the same. Of a split "
        "model all parts are fetched, whichever is named. What is no whole GGUF file never gets the name of "
        "one. Without a QUANT it is Q4_K_M, or the nearest to it. HF_TOKEN gives access to gated "
        "models, HF_ENDPOINT names a mirror, https_proxy a proxy. Nothing is ever sent or fetched but by "
        "this command and by -hf.");
    return options;
}

int report(const std::vector<PulledFile>& all, bool json) {
    Output out;
    if (json) {
        Json files = Json::array();
        for (const PulledFile& source : all)
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

int run_pull(const std::vector<std::string>& arguments) {
    PullOptions pull;
    Options options = declare(pull);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (pull.words.size() != 1)
        return fail(
            error("pull takes one model, USER/REPO[:QUANT] or a URL, and {} were given", pull.words.size()),
            kUsage);
    if (const Status named = check_pull(pull.words[0]); !named) return fail(named.error(), kUsage);
    const Interrupts interrupts;
    const Result<std::vector<PulledFile>> all =
        pull_model(pull.words[0], {pull.folder, pull.token, long(pull.stall_seconds)}, interrupts.flag());
    if (!all && interrupts.raised()) {
        note("interrupted; the same command goes on where it can");
        return interrupts.code();
    }
    return all ? report(all.value(), pull.json) : fail(all.error());
}

}  // namespace

extern const Command pull_command = {"pull", "fetch a model file", run_pull};

}  // namespace redline::cli
