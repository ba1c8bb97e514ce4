// redline quantize: a model file again, with its matrices in fewer bits.
#include "quantize/quantize.h"
#include "json/json.h"

#include "base/control_group.h"
#include "cli/options/model_options.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "cli/user_models.h"
#include "memory/budget.h"

#include <filesystem>
#include <map>

namespace redline::cli {

namespace {

struct QuantizeCommand {
    std::vector<std::string> words;  // IN, OUT and TYPE
    std::string importance;
    uint32_t threads = 0;
    bool allow_requantize = false;
    bool pure = false;
    bool overwrite = false;
    bool json = false;
};

Options declare(QuantizeCommand& command) {
    Options options("quantize", "write a model again in fewer bits",
                    {"quantize IN.gguf OUT.gguf TYPE [options]"});
    options.words([&command](const std::string& word) -> Status {
        command.words.push_back(word);
        return {};
    });
    options.group("how");
    options.name("--imatrix", "FILE",
                 "importance matrix, of redline imatrix or llama-imatrix: errors count as much as it says",
                 command.importance);
    add_threads_option(options, "core", command.threads);
    options.flag("--allow-requantize", "take a file that is quantized already, though errors add up",
                 command.allow_requantize);
    options.flag("--pure", "the type's own format for every matrix, in place of its mix", command.pure);
    options.flag("--overwrite", "replace OUT.gguf if it exists", command.overwrite);
    options.flag("--json", "print a report with the error of each tensor as one JSON object", command.json);
    add_voice_options(options);
    options.example("redline quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M");
    options.example("redline quantize --imatrix imatrix.gguf f16.gguf q3_k_m.gguf Q3_K_M");
    options.example("redline quantize bf16.gguf q8_0.gguf Q8_0 --json | jq '.tensors[0]'");
    std::string types;
    for (const Recipe& recipe : recipes()) types += fmt::format(" {} ({});", recipe.name, recipe.summary);
    types.back() = '.';
    options.remark("TYPE is one of:" + types);
    options.remark(
        "Types are llama.cpp's, with its mixes: some matrices get more bits than the name says. Vectors, "
        "norms "
        "and routers stay as they are; rows that do not divide into the blocks of a format get the format "
        "that "
        "llama.cpp takes then, which is larger. The source holds F32, F16 or BF16. The metadata are kept, "
        "and a "
        "split model becomes one file. OUT appears when it is complete; -v lists the tensors.");
    return options;
}

Result<const Recipe*> check_usage(const QuantizeCommand& command) {
    if (command.words.size() != 3)
        return error(
            "quantize takes IN.gguf OUT.gguf TYPE, and {} {} given; redline quantize --help shows how",
            command.words.size(), command.words.size() == 1 ? "word was" : "words were");
    std::vector<std::string> names;
    for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
    const Recipe* recipe = find_recipe(command.words[2]);
    if (!recipe) return error("the type \"{}\" is not one of {}", command.words[2], fmt::join(names, ", "));
    return recipe;
}

Json describe(const QuantizeCommand& command, const Recipe& recipe, const QuantizeReport& report,
              double seconds) {
    Json tensors = Json::array();
    for (const QuantizedTensor& t : report.tensors)
        tensors.push_back({{"name", t.name},
                           {"from", t.from},
                           {"to", t.to},
                           {"rows", t.shape.rows * t.shape.count},
                           {"cols", t.shape.cols},
                           {"bytes_before", t.bytes_before},
                           {"bytes_after", t.bytes_after},
                           {"rmse", t.rmse},
                           {"rms", t.rms},
                           {"matrices", t.matrices},
                           {"unmeasured", t.unmeasured}});
    return {{"source", command.words[0]},
            {"target", command.words[1]},
            {"type", recipe.name},
            {"imatrix", command.importance.empty() ? Json(nullptr) : Json(command.importance)},
            {"bytes_before", report.bytes_before},
            {"bytes_after", report.bytes_after},
            {"file_bytes", report.file_bytes},
            {"seconds", seconds},
            {"tensors", std::move(tensors)}};
}

void say_report(const std::string& target, const QuantizeReport& report, double seconds) {
    std::map<std::string_view, size_t> counts;
    const QuantizedTensor* worst = nullptr;
    uint64_t elements = 0;
    const auto relative = [](const QuantizedTensor& t) { return t.rms > 0.0 ? t.rmse / t.rms : 0.0; };
    for (const QuantizedTensor& t : report.tensors) {
        say_detail(fmt::format("{:<32} {:>5} -> {:<5} {:>10}  rmse {:.3e} ({:.2f} %)", t.name, t.from, t.to,
                               format_bytes(t.bytes_after), t.rmse, 100.0 * relative(t)));
        ++counts[t.to];
        elements += t.shape.elements();
        if (!worst || relative(t) > relative(*worst)) worst = &t;
    }
    std::string formats;
    for (const auto& [name, count] : counts)
        formats += fmt::format("{}{} {}", formats.empty() ? "" : ", ", count, name);
    say(fmt::format(
        "{}: {} ({:.2f} bits per weight), tensors: {}, in {:.1f} s", target, format_bytes(report.file_bytes),
        8.0 * double(report.bytes_after) / double(std::max<uint64_t>(elements, 1)), formats, seconds));
    if (worst && worst->rmse > 0.0)
        say(fmt::format("largest error: {:.2f} % of the weights' size, in {}", 100.0 * relative(*worst),
                        worst->name));
}

// Notes the tensors of which an importance matrix says nothing.
void say_unmeasured(const QuantizeReport& report) {
    std::vector<std::string_view> whole;
    uint64_t experts = 0;
    for (const QuantizedTensor& t : report.tensors) {
        if (t.unmeasured == 0) continue;
        say_detail(fmt::format("{}: {} of {} matrices without data", t.name, t.unmeasured, t.matrices));
        if (t.unmeasured == t.matrices)
            whole.push_back(t.name);
        else
            experts += t.unmeasured;
    }
    if (!whole.empty())
        note(fmt::format("the importance matrix has no data for {} of the quantized tensors: {}{}",
                         whole.size(),
                         fmt::join(std::span(whole).first(std::min<size_t>(whole.size(), 3)), ", "),
                         whole.size() > 3 ? ", ...; -v lists them" : ""));
    if (experts > 0)
        note(fmt::format("the importance matrix has no data for {} matrices of experts; -v lists them",
                         experts));
}

Result<int> quantize_file(const QuantizeCommand& command, const Recipe& recipe) {
    const std::string& target = command.words[1];
    const std::string path = RL_TRY(find_user_model(command.words[0]));
    const Gguf source = RL_TRY(Gguf::open(path));
    std::optional<Importance> importance;
    if (!command.importance.empty()) importance = RL_TRY(read_importance(command.importance));
    QuantizeOptions options;
    options.importance = importance ? &*importance : nullptr;
    options.threads = command.threads > 0 ? command.threads : usable_cpus();
    options.allow_requantize = command.allow_requantize;
    options.pure = command.pure;
    const Interrupts interrupts;
    options.cancel = interrupts.flag();
    ProgressLine progress("quantizing");
    options.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    if (!command.overwrite && std::filesystem::exists(target)) {
        std::error_code ignored;
        if (!std::filesystem::equivalent(path, target, ignored))
            return error("{} exists; remove it, name another file or give --overwrite", target);
    }
    const auto start = std::chrono::steady_clock::now();
    const QuantizeReport report = RL_TRY(quantize(source, target, recipe, options));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (report.cancelled) {
        note(fmt::format("interrupted; {} was not written", target));
        return interrupts.code();
    }
    say_report(target, report, seconds);
    if (importance) say_unmeasured(report);
    Output out;
    if (command.json) out.write(to_text(describe(command, recipe, report, seconds)) + "\n");
    return out.finish();
}

int run_quantize(const std::vector<std::string>& arguments) {
    QuantizeCommand command;
    Options options = declare(command);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    const Result<const Recipe*> recipe = check_usage(command);
    if (!recipe) return fail(recipe.error(), kUsage);
    const Result<int> code = quantize_file(command, *recipe.value());
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command quantize_command = {"quantize", "write a model again in fewer bits", run_quantize};

}  // namespace redline::cli
