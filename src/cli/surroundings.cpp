#include "cli/surroundings.h"

#include "cli/job.h"
#include "cli/terminal/terminal.h"
#include "plan/rank_link.h"

#include <cstdlib>
#include <optional>

namespace redline::cli {

namespace {

class TerminalNotes : public Notes {
public:
    void take(NoteKind kind, std::string_view text) override {
        if (kind == NoteKind::note) return cli::note(text);
        if (kind == NoteKind::inform) return say(text);
        say_detail(text);
    }
    bool shows(NoteKind kind) const override {
        return kind == NoteKind::detail ? voice().verbose : !voice().quiet;
    }
    void progress(std::string_view work, uint64_t done, uint64_t total) override {
        if (!line_) line_.emplace(std::string(work));
        if (total > 0) line_->update(done, total);
    }
    void finished(std::string_view) override { line_.reset(); }

private:
    std::optional<ProgressLine> line_;
};

}  // namespace

std::string environment_variable(const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return value ? value : "";
}

Notes& terminal_notes() {
    static TerminalNotes the_notes;
    return the_notes;
}

std::string cache_folder() {
    if (const std::string cache = environment_variable("XDG_CACHE_HOME"); !cache.empty())
        return cache + "/redline";
    const std::string home = environment_variable("HOME");
    return home.empty() ? "" : home + "/.cache/redline";
}

NamedDrivers named_drivers() {
    NamedDrivers named{environment_variable("VK_DRIVER_FILES"), environment_variable("VK_ADD_DRIVER_FILES")};
    if (named.instead.empty()) named.instead = environment_variable("VK_ICD_FILENAMES");
    return named;
}

std::vector<ModelStore> user_model_stores() {
    return model_stores(environment_variable);
}

void take_surroundings(HostOptions& options) {
    options.stores = user_model_stores();
    options.cache_folder = cache_folder();
    options.drivers = named_drivers();
    use_collectives(environment_variable("REDLINE_COLLECTIVES"));
    options.notes = &terminal_notes();
    if (is_in_job()) options.ranks_here = 2;  // until join_job() has counted them
    if (environment_variable("REDLINE_SELF_TEST") == "0") options.kernel_check = KernelCheck::never;
    if (environment_variable("REDLINE_QUICK_TUNE") == "0") options.quick_tune = TuneBefore::never;
}

}  // namespace redline::cli
