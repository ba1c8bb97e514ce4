// redline report: what this machine is, and how redline does on it, in one text for the authors.
#include "cli/report.h"
#include "base/os/child_process.h"
#include "cli/anonymous.h"
#include "cli/demo_model.h"
#include "cli/options/model_options.h"
#include "cli/terminal/terminal.h"
#include "cli/user_models.h"
#include "cli/version.h"
#include "json/json.h"
#include "text/tokens/unicode.h"

namespace redline::cli {

namespace {

struct ReportOptions {
    std::string model;
    uint64_t seconds = 180;  // for each part
    bool json = false;
};

struct Part {
    std::string name;
    std::string about;
    std::vector<std::string> arguments;
    std::string json_option;  // makes it write JSON; empty: it has none
    os::ChildOutcome outcome = {};
    std::string problem = {};  // why there is no outcome
};

std::vector<Part> parts_of(const ReportOptions& options) {
    const auto with_model = [&](std::vector<std::string> arguments) {
        if (!options.model.empty()) arguments.insert(arguments.begin() + 1, {"-m", options.model});
        return arguments;
    };
    return {{"version", "the program", {"--version"}, ""},
            {"doctor", "the machine", {"doctor"}, "--json"},
            {"devices", "its devices", {"devices"}, "--json"},
            {"verify", "whether they compute the same", with_model({"verify"}), "--json"},
            {"bench", "how fast", with_model({"bench", "--devices", "-p", "512", "-n", "64", "-r", "3"}),
             "--json"}};
}

// How a part went, where that is not as it should be.
std::string ending(const Part& part, uint64_t seconds) {
    if (!part.problem.empty()) return part.problem;
    if (part.outcome.timed_out) return fmt::format("was ended after {} s", seconds);
    if (part.outcome.code > 128) return fmt::format("was ended by signal {}", part.outcome.code - 128);
    return part.outcome.code == 0 ? "" : fmt::format("exit status {}", part.outcome.code);
}

std::string as_text(const std::vector<Part>& parts, uint64_t seconds) {
    std::string out = fmt::format("report of redline {} ({})\n", version(), commit());
    for (const Part& part : parts) {
        const std::string ended = ending(part, seconds);
        out += fmt::format("\n==== redline {} ({:.1f} s{})\n{}", fmt::join(part.arguments, " "),
                           part.outcome.seconds, ended.empty() ? "" : ", " + ended, part.outcome.out);
        if (!part.outcome.err.empty()) out += "---- standard error\n" + part.outcome.err;
    }
    return out;
}

Json as_json(const std::vector<Part>& parts, uint64_t seconds) {
    Json list = Json::array();
    for (const Part& part : parts) {
        const std::string ended = ending(part, seconds);
        const Json value = part.json_option.empty() ? Json(part.outcome.out) : read_json(part.outcome.out);
        list.push_back({{"part", part.name},
                        {"arguments", part.arguments},
                        {"seconds", part.outcome.seconds},
                        {"exit_status", part.problem.empty() ? Json(part.outcome.code) : Json(nullptr)},
                        {"problem", ended.empty() ? Json(nullptr) : Json(ended)},
                        {"output", value.is_discarded() ? Json(part.outcome.out) : value},
                        {"notes", part.outcome.err}});
    }
    return {{"redline", version()}, {"commit", commit()}, {"parts", list}};
}

Options declare(ReportOptions& report) {
    Options options("report", "collect what helps the authors to make redline run well here",
                    {"report [options]"});
    options.name("-m --model", "FILE", "the model to verify and measure with (default: the demo model)",
                 report.model);
    options.number("--seconds", "seconds after which a part is ended", report.seconds, 1, 86400);
    options.flag("--json", "write one JSON object", report.json);
    add_voice_options(options);
    options.example("redline report > report.txt");
    options.remark(
        "Runs redline doctor, devices, verify and a short bench, each as a separate program, so that one "
        "that "
        "breaks is a part of the report. It takes about a minute with the demo model. Names of the user, the "
        "host and home folders and serial numbers are taken out; read it before you send it.");
    return options;
}

Result<int> collect(const ReportOptions& options) {
    const Interrupts interrupts;
    std::vector<Part> parts = parts_of(options);
    for (size_t i = 0; i < parts.size(); ++i) {
        Part& part = parts[i];
        say(fmt::format("{} of {}: {} ({})", i + 1, parts.size(), part.name, part.about));
        if (options.json && !part.json_option.empty()) part.arguments.push_back(part.json_option);
        Result<os::ChildOutcome> outcome =
            os::run_self(part.arguments, double(options.seconds), interrupts.flag());
        if (outcome)
            part.outcome = std::move(outcome.value());
        else
            part.problem = outcome.error().message;
        if (interrupts.raised()) return fail(error("interrupted; there is no report"), interrupts.code());
    }
    const Result<std::string> demo = find_demo_model();
    const std::string model = options.model.empty() && demo ? demo.value() : options.model;
    const auto clean = [&model, who = this_identity()](std::string text) {
        return anonymous(without_folder(std::move(text), model), who);
    };
    Output out;
    if (options.json) {
        Json all = as_json(parts, options.seconds);
        change_texts(all, clean);
        out.write(to_text(all) + "\n");
    } else {
        out.write(clean(to_valid_utf8(as_text(parts, options.seconds))));
    }
    return out.finish();
}

int run_report(const std::vector<std::string>& arguments) {
    ReportOptions report;
    Options options = declare(report);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (!report.model.empty()) {
        const Result<std::string> path = find_user_model(report.model);
        if (!path) return fail(path.error());
        report.model = path.value();
    }
    const Result<int> code = collect(report);
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command report_command = {"report", "collect in one text what helps the authors", run_report};

}  // namespace redline::cli
