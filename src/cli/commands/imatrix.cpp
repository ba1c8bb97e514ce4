// redline imatrix: how large the inputs of a model's matrices are on a text, for quantize --imatrix.
#include "cli/demo_model.h"
#include "cli/options/model_options.h"
#include "cli/prompt.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "host/load_model.h"
#include "host/load_plan.h"
#include "json/json.h"
#include "measure/input_squares.h"
#include "quantize/importance.h"

#include <filesystem>

namespace redline::cli {

namespace {

struct ImatrixOptions {
    ModelOptions model;
    PromptSource text;
    std::string output = "imatrix.gguf";
    uint32_t chunks = 0;  // 0: all
    bool with_output = false;
    bool overwrite = false;
    bool json = false;
};

constexpr uint32_t kMostChunks = 1u << 30;

Options declare(ImatrixOptions& imatrix) {
    Options options("imatrix", "measure which weights matter, for quantize --imatrix",
                    {"imatrix MODEL -f TEXT -o OUT.gguf [options]"});
    options.group("text");
    options.name("-f --file", "FILE", "the text; - is standard input", imatrix.text.file);
    options.common("the text; - is standard input");
    options.number("--chunks", "chunks of -c tokens to read; 0: all that the text has", imatrix.chunks, 0,
                   kMostChunks);
    options.common("chunks to read (usually all)");
    options.group("result");
    options.name("-o --output", "OUT.gguf", "the file to write (default: imatrix.gguf)", imatrix.output);
    options.common("the file to write");
    options.flag("--process-output", "measure the output matrix, too", imatrix.with_output);
    options.common("measure the output matrix, too");
    options.flag("--overwrite", "replace OUT.gguf if it exists", imatrix.overwrite);
    options.common("replace OUT.gguf if it exists");
    options.flag("--json", "print one JSON object at the end", imatrix.json);
    options.common("print one JSON object at the end");
    add_model_options(options, imatrix.model);
    options.word_is("--model");
    add_voice_options(options);
    options.example("redline imatrix model-f16.gguf -f calibration.txt -o imatrix.gguf");
    options.example("redline quantize --imatrix imatrix.gguf model-f16.gguf iq4_xs.gguf IQ4_XS");
    options.remark(
        "The text is read in chunks of -c tokens (512), each from an empty cache and with the first token "
        "replaced by BOS if the model has one, as llama-imatrix does, and the file is of its GGUF form. "
        "Hundreds of chunks of varied text are usual. The model has to fit on one device.");
    return options;
}

Status check_target(const ImatrixOptions& imatrix) {
    std::error_code ignored;
    if (std::filesystem::is_directory(imatrix.output, ignored))
        return error("{} is a folder, not a file", imatrix.output);
    if (!imatrix.overwrite && std::filesystem::exists(imatrix.output, ignored))
        return error("{} exists; remove it, name another file or give --overwrite", imatrix.output);
    // A file that cannot be written is better known before the model is loaded.
    RL_TRY(AtomicWriter::create(imatrix.output));
    return {};
}

Result<std::vector<Token>> read_tokens(const ImatrixOptions& imatrix, const Model& model, uint64_t chunk) {
    const auto text = RL_TRY(gather_prompt(imatrix.text));
    if (!text || text->empty()) return error("there is no text to read");
    std::vector<Token> tokens = model.tokenizer().encode(*text);
    const uint64_t chunks = tokens.size() / chunk;
    if (chunks == 0)
        return error(
            "the text has {} tokens, which is less than one chunk of {}: take a longer text or a smaller -c",
            tokens.size(), chunk);
    if (imatrix.chunks > chunks)
        note(fmt::format("the text has {} chunks of {} tokens, fewer than --chunks {}", chunks, chunk,
                         imatrix.chunks));
    tokens.resize(chunk * (imatrix.chunks > 0 ? std::min<uint64_t>(imatrix.chunks, chunks) : chunks));
    return tokens;
}

Importance as_importance(const std::vector<InputSquares>& sums) {
    Importance out;
    for (const InputSquares& each : sums) {
        TensorImportance tensor;
        for (const double square : each.squares) tensor.squares.push_back(float(square));
        for (const uint64_t count : each.counts) tensor.counts.push_back(float(count));
        const bool any =
            std::any_of(tensor.counts.begin(), tensor.counts.end(), [](float n) { return n > 0; });
        if (any) out.tensors.emplace(each.tensor, std::move(tensor));
    }
    return out;
}

// Matrices of experts that no token went to.
uint64_t unmeasured(const Importance& importance) {
    uint64_t all = 0;
    for (const auto& [name, tensor] : importance.tensors)
        all += uint64_t(std::count(tensor.counts.begin(), tensor.counts.end(), 0.0f));
    return all;
}

void say_result(const ImatrixOptions& imatrix, const Importance& importance, double seconds) {
    for (const auto& [name, tensor] : importance.tensors) {
        double sum = 0.0, count = 0.0;
        for (const float square : tensor.squares) sum += double(square);
        for (const float each : tensor.counts) count += double(each);
        const double cols = double(tensor.squares.size() / tensor.counts.size());
        say_detail(
            fmt::format("{:<36} {:>9.0f} inputs, rms {:.4g}", name, count, std::sqrt(sum / (count * cols))));
    }
    say(fmt::format("{}: {} tensors over {} chunks of {} tokens, in {:.1f} s", imatrix.output,
                    importance.tensors.size(), importance.chunks, importance.chunk_tokens, seconds));
    if (const uint64_t none = unmeasured(importance))
        note(
            fmt::format("{} matrices of experts had no token of this text: quantize gives them no weights; "
                        "a longer or more varied text may reach them",
                        none));
}

Json describe(const ImatrixOptions& imatrix, const LoadedModel& loaded, const Importance& importance,
              double seconds) {
    Json tensors = Json::array();
    for (const auto& [name, tensor] : importance.tensors)
        tensors.push_back({{"name", name},
                           {"cols", tensor.squares.size() / tensor.counts.size()},
                           {"matrices", tensor.counts.size()},
                           {"unmeasured", std::count(tensor.counts.begin(), tensor.counts.end(), 0.0f)}});
    return {{"output", imatrix.output},
            {"chunks", importance.chunks},
            {"chunk_tokens", importance.chunk_tokens},
            {"seconds", seconds},
            {"tensors", std::move(tensors)},
            {"model", model_json(loaded)},
            {"device", device_json(loaded)}};
}

// The sums over the chunks; fewer when it was interrupted.
Status read_chunks(InputMeter& meter, std::vector<Token> tokens, uint64_t chunk, const Tokenizer& tokenizer,
                   const std::atomic<bool>* cancel) {
    ProgressLine progress("reading", Counted::tokens);
    for (uint64_t at = 0; at < tokens.size(); at += chunk) {
        const auto chunk_tokens = std::span(tokens).subspan(at, chunk);
        if (tokenizer.adds_bos()) chunk_tokens[0] = tokenizer.bos();
        RL_TRY(meter.read(chunk_tokens, cancel));
        progress.update(at + chunk_tokens.size(), tokens.size());
    }
    return {};
}

Result<int> measure(ImatrixOptions& imatrix) {
    RL_TRY(check_target(imatrix));
    LoadedModel loaded = RL_TRY(inspect_model(imatrix.model));
    note_unsplit(imatrix.model, *loaded.model, loaded.device.name());
    if (loaded.device.name() != "cpu") {
        imatrix.model.gpu_layers = int64_t(loaded.model->config().layers) + 1;
        imatrix.model.cpu_experts = 0;
    }
    imatrix.model.fuse = false;  // as it will be run: what is planned is then what is taken
    const uint64_t chunk = RL_TRY(choose_context(loaded, imatrix.model));
    if (!loaded.device.backend) RL_TRY(open_for(loaded, imatrix.model));
    const std::vector<Token> tokens = RL_TRY(read_tokens(imatrix, *loaded.model, chunk));
    const uint32_t batch = batch_of(imatrix.model, loaded.device.backend->device());
    note_demo_model(imatrix.model);
    RL_TRY(place_model(loaded, imatrix.model, chunk, imatrix.with_output ? batch : 1));

    const Interrupts interrupts;
    const auto start = std::chrono::steady_clock::now();
    InputMeter meter =
        RL_TRY(InputMeter::create(*loaded.model, imatrix.model.cache, chunk, batch, imatrix.with_output));
    const Status read = read_chunks(meter, tokens, chunk, loaded.model->tokenizer(), interrupts.flag());
    if (interrupts.raised())
        return fail(error("interrupted; {} is not written", imatrix.output), interrupts.code());
    RL_TRY(read);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    Importance importance = as_importance(meter.sums());
    importance.datasets = {imatrix.text.file};
    importance.chunks = tokens.size() / chunk;
    importance.chunk_tokens = chunk;
    RL_TRY(write_importance(imatrix.output, importance));
    say_result(imatrix, importance, seconds);
    Output out;
    if (imatrix.json) out.write(to_text(describe(imatrix, loaded, importance, seconds)) + "\n");
    return out.finish();
}

int run_imatrix(const std::vector<std::string>& arguments) {
    ImatrixOptions imatrix;
    imatrix.model.default_context = 512;
    Options options = declare(imatrix);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (imatrix.text.file.empty()) return fail(error("name a text with -f FILE"), kUsage);
    Status usage = check_model_given(imatrix.model.model);
    if (usage) usage = settle_device(imatrix.model);
    if (usage) usage = check_one_device(imatrix.model, "imatrix");
    if (!usage) return fail(usage.error(), kUsage);
    const Result<int> code = measure(imatrix);
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command imatrix_command = {"imatrix", "measure which weights matter to a model", run_imatrix};

}  // namespace redline::cli
