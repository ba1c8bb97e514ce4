// redline info: what is in a model file, what it needs of this machine, and how it would run.
#include "cli/demo_model.h"
#include "cli/job.h"
#include "cli/options/model_options.h"
#include "cli/report.h"
#include "cli/split_report.h"
#include "cli/terminal/terminal.h"
#include "cli/user_models.h"
#include "host/device_list.h"
#include "host/load_model.h"
#include "host/model_facts.h"
#include "host/open_device.h"
#include "host/open_speculation.h"
#include "host/rank_job.h"
#include "host/wide_keys.h"
#include "json/json.h"
#include "memory/budget.h"
#include "text/chat/chat_template.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::cli {

namespace {

constexpr size_t kShortText = 120;  // bytes of a metadata text that are shown without --all
constexpr size_t kShortArray = 4;   // elements of an array

struct InfoOptions {
    ModelOptions model;
    bool all = false;
    bool tensors = false;
    bool plan = false;
    bool chat_template = false;
    bool json = false;
};

Options declare(InfoOptions& info) {
    Options options("info", "say what is in a model file and whether it fits here",
                    {"info [MODEL] [options]"});
    options.group("what");
    options.flag("--all", "metadata in full length", info.all);
    options.common("metadata in full length");
    options.flag("--tensors", "list the tensors", info.tensors);
    options.common("list the tensors");
    options.flag("--plan", "list the operations of a step, with their bytes", info.plan);
    options.common("list the operations of a step");
    options.flag("--template", "print the chat template and nothing else", info.chat_template);
    options.common("print the chat template alone");
    options.flag("--json", "print one JSON object", info.json);
    options.common("print one JSON object");
    add_model_options(options, info.model);
    options.word_is("--model");
    add_voice_options(options);
    options.example("redline info model.gguf -c 32768");
    options.example("redline info model.gguf --tensors --json | jq '.tensors[].name'");
    return options;
}

std::string shortened(const std::string& text, bool all) {
    if (all || text.size() <= kShortText) return text;
    return to_valid_utf8(text.substr(0, kShortText)) + "...";
}

Json value_json(const MetadataValue& value, bool all) {
    return std::visit(
        [all](const auto& held) -> Json {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<T, std::string>) {
                return shortened(held, all);
            } else if constexpr (std::is_same_v<T, double>) {
                return real_json(held);
            } else if constexpr (std::is_arithmetic_v<T>) {
                return held;
            } else {
                Json list = Json::array();
                const size_t shown = all ? held.size() : std::min(held.size(), kShortArray);
                for (size_t i = 0; i < shown; ++i)
                    if constexpr (std::is_same_v<T, MetadataValue::Strings>)
                        list.push_back(shortened(held[i], all));
                    else if constexpr (std::is_same_v<T, MetadataValue::Floats>)
                        list.push_back(real_json(double(held[i])));
                    else
                        list.push_back(typename T::value_type(held[i]));
                if (shown == held.size()) return list;
                return Json{{"count", held.size()}, {"first", list}};
            }
        },
        value.value);
}

Json metadata_json(const Gguf& gguf, bool all) {
    Json keys = Json::object();
    for (const auto& [key, value] : gguf.metadata().entries()) keys[key] = value_json(value, all);
    return keys;
}

Json tensors_json(const Gguf& gguf) {
    Json list = Json::array();
    for (const GgufTensor& t : gguf.tensors()) {
        const auto known = find_type(t.type);
        list.push_back({{"name", t.tensor.name},
                        {"dims", t.dims},
                        {"format", known ? std::string(known->name) : describe_type(t.type)},
                        {"bytes", t.bytes},
                        {"file", t.file},
                        {"offset", t.offset}});
    }
    return list;
}

Json file_json(const Gguf& gguf) {
    const auto text = [&](std::string_view key) {
        const Result<std::string> value = gguf.metadata().text(key, "");
        return value ? value.value() : "";
    };
    const std::string contradiction = file_type_contradiction(gguf);
    Json shares = Json::array();
    for (const FormatShare& share : format_shares(gguf))
        shares.push_back({{"format", share.format},
                          {"tensors", share.tensors},
                          {"bytes", share.bytes},
                          {"bits_per_weight", 8.0 * double(share.bytes) / double(share.elements)}});
    return {{"path", gguf.path()},
            {"gguf_version", gguf.version()},
            {"files", gguf.file_count()},
            {"file_bytes", gguf.file_bytes()},
            {"name", text("general.name")},
            {"architecture", text("general.architecture")},
            {"parameters", parameter_count(gguf)},
            {"file_type", stated_file_type(gguf).empty() ? Json(nullptr) : Json(stated_file_type(gguf))},
            {"file_type_contradiction", contradiction.empty() ? Json(nullptr) : Json(contradiction)},
            {"formats", shares}};
}

Json shape_json(const Config& c) {
    Json shape = {{"layers", c.layers},           {"width", c.dim},
                  {"heads", c.heads.heads},       {"kv_heads", c.heads.kv_heads},
                  {"head_dim", c.heads.head_dim}, {"ffn_width", c.ffn_dim},
                  {"vocabulary", c.vocab},        {"trained_context", c.train_context}};
    if (c.experts > 0) {
        shape["experts"] = c.experts;
        shape["experts_used"] = c.experts_used;
        shape["expert_ffn_width"] = c.expert_ffn_dim;
    }
    return shape;
}

Json tokenizer_json(const Tokenizer& t) {
    const auto token = [&](Token id) -> Json {
        if (id == kNoToken) return nullptr;
        return {{"id", id}, {"text", std::string(t.raw_text(id))}};
    };
    Json ends = Json::array();
    for (const Token id : t.end_of_generation()) ends.push_back(token(id));
    return {{"kind", t.description()}, {"tokens", t.size()},       {"bos", token(t.bos())},
            {"eos", token(t.eos())},   {"adds_bos", t.adds_bos()}, {"end_of_generation", ends},
            {"warnings", t.warnings()}};
}

// The same of several devices together.
Result<Json> shared_memory_json(LoadedModel& loaded, const ModelOptions& options, uint64_t context) {
    const Model& model = *loaded.model;
    const SessionOptions session = session_options(options, loaded.device.backend->device(), context);
    const SessionNeed need = RL_TRY(session_need(loaded, session));
    Json memory = {{"context", context},
                   {"cache_type", cache_types_name(options.cache)},
                   {"weights", need.need.weights},
                   {"decoded", describe_decoding(model.file_weights(), *loaded.device.backend)},
                   {"cache", need.need.cache},
                   {"scratch", need.need.scratch},
                   {"staging", need.need.staging},
                   {"total", need.need.total()},
                   {"available", need.budget},
                   {"limit", format_bytes(need.budget)},
                   {"fits", need.fits},
                   {"largest_context", RL_TRY(split_context(loaded, options, model.config().train_context))}};
    add_decision(loaded, options, session, memory);
    return memory;
}

// The room that the device has which is open, and how `run` would use it.
Result<Json> memory_json(LoadedModel& loaded, const ModelOptions& options, uint64_t context) {
    if (loaded.is_shared()) return shared_memory_json(loaded, options, context);
    const Model& model = *loaded.model;
    Backend& backend = *loaded.device.backend;
    const DeviceInfo& device = backend.device();
    const SessionOptions session = session_options(options, device, context);
    const MemoryNeed need = RL_TRY(memory_need(model, backend, session));
    const uint64_t budget = device.memory.bytes;
    Json memory = {
        {"context", context},
        {"cache_type", cache_types_name(options.cache)},
        {"weights", need.weights},
        {"decoded", describe_decoding(model.file_weights(), backend)},
        {"cache", need.cache},
        {"scratch", need.scratch},
        {"staging", need.staging},
        {"total", need.total()},
        {"available", budget},
        {"limit", device.memory.text()},
        {"fits", need.total() <= budget},
        {"largest_context", RL_TRY(largest_context(model, backend, session, model.config().train_context))}};
    add_decision(loaded, options, session, memory);
    return memory;
}

// For each device at hand: whether the model fits there, and with how much context at most; where it does
// not, what `run` would do there. `loaded` is left without a device.
Json devices_json(LoadedModel& loaded, const ModelOptions& options, uint64_t context) {
    Json list = Json::array();
    const DeviceChoice taken = loaded.device.choice;
    bool found = false;
    for (const UsableDevice& device : usable_devices()) {
        const bool is_taken = !found && device.choice.backend == taken.backend &&
                              (taken.device.empty() || device.choice.device == taken.device);
        found |= is_taken;
        Json row = {{"id", device.listing.id}, {"name", device.listing.name}, {"default", is_taken}};
        const auto fill = [&]() -> Status {
            loaded.device.backend.reset();
            loaded.device.choice = {device.choice.backend, device.choice.device, ""};
            loaded.device.backend = RL_TRY(open_device(device.choice, options));
            const Json memory = RL_TRY(memory_json(loaded, options, context));
            for (const char* key : {"total", "available", "limit", "fits", "largest_context"})
                row[key] = memory[key];
            for (const char* key :
                 {"split", "refusal", "expected_tokens_per_second", "most_tokens_per_second"})
                if (memory.contains(key)) row[key] = memory[key];
            return {};
        };
        if (const Status filled = fill(); !filled) row["problem"] = filled.error().message;
        list.push_back(std::move(row));
    }
    loaded.device.backend.reset();
    return list;
}

// The MTP heads of a file, and what they take of the device that is open beside the model.
Result<Json> heads_json(const LoadedModel& loaded, const ModelOptions& options, uint64_t context) {
    const Model with = RL_TRY(Model::inspect(options.model, context, ReadHead::required));
    SessionOptions session = session_options(options, loaded.device.backend->device(), context);
    session.drafts = SpeculationOptions{.type = SpeculationType::automatic}.drafts(with);
    if (with.heads() > 1) session.drafts = std::min(session.drafts, uint32_t(with.heads()));
    const Backend& backend = *loaded.device.backend;
    const MemoryNeed both = RL_TRY(memory_need(with, *loaded.device.backend, session)),
                     model = RL_TRY(memory_need(*loaded.model, *loaded.device.backend, session));
    const std::vector<Plan> plans = RL_TRY(engine_plans(with, session)),
                            plain = RL_TRY(engine_plans(*loaded.model, session));
    const Config& first = with.head_config(0);
    return Json{{"heads", with.heads()},
                {"first_layer", first.first_layer},
                {"layers", with.head_config(with.heads() - 1).layers - first.first_layer},
                {"experts", first.has_experts(first.first_layer)},
                {"draft_n", session.drafts},
                {"weights", with.weight_bytes(backend) - loaded.model->weight_bytes(backend)},
                {"cache", cache_bytes(plans[0].caches) - cache_bytes(plain[0].caches)},
                {"scratch", both.scratch - std::min(both.scratch, model.scratch)}};
}

// By what a conversation is written: the file's template, or a built-in format.
void add_chat(const Metadata& metadata, const Tokenizer& tokenizer, Json& all) {
    const Result<std::optional<ChatTemplate>> parsed = ChatTemplate::of(metadata);
    const Result<ChatFormat> format = ChatFormat::detect(metadata, tokenizer);
    const bool has_template = parsed.ok() && parsed.value().has_value();
    all["chat_template"] = has_template;
    all["chat_templates"] = chat_template_names(metadata);
    all["chat_format"] = format ? Json(format.value().name()) : Json(nullptr);
    if (!parsed)
        all["chat_problem"] = parsed.error().message;
    else if (!format && !has_template)
        all["chat_problem"] = format.error().message;
}

// All that can be known: of a file that cannot run here, why not.
Result<Json> gather(const InfoOptions& info) {
    const Gguf gguf = RL_TRY(Gguf::open(info.model.model));
    Json all = file_json(gguf);
    Result<Model> model = Model::inspect(
        info.model.model, info.model.context < 0 ? info.model.default_context : uint64_t(info.model.context));
    if (model) {
        LoadedModel loaded;
        loaded.model = std::make_unique<Model>(std::move(model.value()));
        const Model& m = *loaded.model;
        all["notes"] = m.notes();
        if (const std::string wide = wide_keys_note(m, info.model.cache); !wide.empty())
            all["notes"].push_back(wide);
        all["mtp_head"] = m.offers_head();
        all["shape"] = shape_json(m.config());
        all["tokenizer"] = tokenizer_json(m.tokenizer());
        add_chat(gguf.metadata(), m.tokenizer(), all);
        RL_TRY(choose_devices(loaded, info.model));
        if (info.model.job) RL_TRY(info.model.job->check_same(m, info.model));
        loaded.device.choice.why.clear();
        loaded.cache = info.model.cache;
        RL_TRY(open_for(loaded, info.model));
        // A model that does not fit is shown with the context that it was trained for.
        const Result<uint64_t> chosen = choose_context(loaded, info.model);
        const uint64_t context = chosen ? chosen.value() : m.config().train_context;
        all["memory"] = RL_TRY(memory_json(loaded, info.model, context));
        all["memory"]["device"] = loaded.labels();
        if (m.offers_head()) all["mtp"] = RL_TRY(heads_json(loaded, info.model, context));
        if (info.plan) all["plan"] = RL_TRY(plan_json(loaded, info.model, context));
        if (info.model.device.empty() && !loaded.is_shared())
            all["devices"] = devices_json(loaded, info.model, context);
    }
    all["runs"] = model.ok();
    if (!model) {
        all["problem"] = model.error().message;
        const Result<Tokenizer> tokenizer = Tokenizer::create(gguf.metadata());
        if (tokenizer) {
            all["tokenizer"] = tokenizer_json(tokenizer.value());
            add_chat(gguf.metadata(), tokenizer.value(), all);
        }
    }
    all["metadata"] = metadata_json(gguf, info.all);
    if (info.tensors) all["tensors"] = tensors_json(gguf);
    return all;
}

// ---- as text ----

std::string line(std::string_view title, const std::string& text) {
    return fmt::format("{:<14}{}\n", title, text);
}
std::string shown(const Json& text) {
    return printable(text.get<std::string>());
}
std::string bytes(const Json& count) {
    return format_bytes(count.get<uint64_t>());
}
uint64_t number(const Json& value) {
    return value.get<uint64_t>();
}

std::string file_text(const Json& all) {
    std::string out = line(
        "file", fmt::format("{} ({}, GGUF {}{})", shown(all["path"]), bytes(all["file_bytes"]),
                            number(all["gguf_version"]),
                            number(all["files"]) > 1 ? fmt::format(", {} files", number(all["files"])) : ""));
    if (!shown(all["name"]).empty()) out += line("name", shown(all["name"]));
    out += line("architecture", shown(all["architecture"]));
    out += line("parameters", short_count(number(all["parameters"])));
    if (!all["file_type"].is_null()) {
        out += line("file type", shown(all["file_type"]));
        if (!all["file_type_contradiction"].is_null())
            out += line("", "note: that cannot be: " + shown(all["file_type_contradiction"]));
    }
    std::string title = "formats";
    for (const Json& share : all["formats"]) {
        out += line(title, fmt::format("{:<8}{:>5} tensors {:>12}  {:.2f} bits per weight",
                                       shown(share["format"]), number(share["tensors"]),
                                       bytes(share["bytes"]), share["bits_per_weight"].get<double>()));
        title = "";
    }
    return out;
}

std::string context_text(const Json& largest) {
    return largest == 0 ? "no context does" : fmt::format("contexts of up to {} tokens do", number(largest));
}

std::string token_text(const Json& token) {
    if (token.is_null()) return "none";
    return fmt::format("{} \"{}\"", token["id"].get<int64_t>(), shown(token["text"]));
}

std::string shape_text(const Json& all) {
    const Json& s = all["shape"];
    std::string shape =
        fmt::format("{} layers of {}, {} heads of {} ({} for keys and values), ", number(s["layers"]),
                    number(s["width"]), number(s["heads"]), number(s["head_dim"]), number(s["kv_heads"]));
    if (s.contains("experts"))
        shape += fmt::format("{} of {} experts of {}", number(s["experts_used"]), number(s["experts"]),
                             number(s["expert_ffn_width"]));
    else
        shape += fmt::format("feed-forward {}", number(s["ffn_width"]));
    std::string out = line("shape", shape);
    out += line("context", fmt::format("trained for {} tokens", number(s["trained_context"])));
    if (all.contains("mtp")) {
        const Json& mtp = all["mtp"];
        const uint64_t layer = mtp["first_layer"], layers = mtp["layers"];
        const std::string which = layers > 1 ? fmt::format("layers {} to {}", layer, layer + layers - 1)
                                             : fmt::format("layer {}", layer);
        out += line("MTP head", fmt::format("{}, {}: guesses up to {} token{} in turn{}, where it has room "
                                            "(--spec-type draft-mtp)",
                                            which, mtp["experts"].get<bool>() ? "with experts" : "dense",
                                            number(mtp["draft_n"]), mtp["draft_n"] == 1 ? "" : "s",
                                            mtp["heads"] > 1 ? ", each of its heads one" : ""));
        out += line("", fmt::format("takes weights {}, cache {}, scratch {} beside the model",
                                    bytes(mtp["weights"]), bytes(mtp["cache"]), bytes(mtp["scratch"])));
    }
    for (const Json& each : all["notes"]) out += line("", "note: " + shown(each));
    return out;
}

std::string tokenizer_text(const Json& all) {
    std::string out;
    const Json& t = all["tokenizer"];
    std::vector<std::string> ends;
    for (const Json& token : t["end_of_generation"]) ends.push_back(token_text(token));
    out +=
        line("tokenizer", fmt::format("{}, {} tokens, BOS {}{}, EOS {}", shown(t["kind"]),
                                      number(t["tokens"]), token_text(t["bos"]),
                                      t["adds_bos"].get<bool>() ? "" : " (not added)", token_text(t["eos"])));
    out += line("", fmt::format("a text ends with {}",
                                ends.empty() ? "none" : fmt::format("{}", fmt::join(ends, ", "))));
    for (const Json& warning : t["warnings"]) out += line("", "note: " + shown(warning));
    out += line("chat", all["chat_template"].get<bool>() ? "the file's own template (--template prints it)"
                        : !all["chat_format"].is_null()  ? "the built-in format " + shown(all["chat_format"])
                                                         : "none");
    std::vector<std::string> named;
    for (const Json& name : all["chat_templates"])
        if (name != kUsualTemplate) named.push_back(shown(name));
    if (!named.empty())
        out += line("", fmt::format("other templates of the file: {} (run --chat-template NAME)",
                                    fmt::join(named, ", ")));
    if (all.contains("chat_problem")) out += line("", "note: " + shown(all["chat_problem"]));
    return out;
}

std::string memory_text(const Json& all) {
    const Json& m = all["memory"];
    std::string out =
        line("memory", fmt::format("about {} for a context of {}: weights {}, {} cache {}, scratch {}",
                                   bytes(m["total"]), number(m["context"]), bytes(m["weights"]),
                                   shown(m["cache_type"]), bytes(m["cache"]), bytes(m["scratch"])));
    for (const Json& decoded : m["decoded"]) out += line("", "note: " + shown(decoded));
    // The lines of the devices say it of the default one as well, unless it is one that computes on the CPU.
    const Json devices = all.value("devices", Json::array());
    const auto is_default = [](const Json& device) {
        return device["default"].get<bool>() && !device.contains("problem");
    };
    if (std::none_of(devices.begin(), devices.end(), is_default)) {
        out +=
            line("", fmt::format("{} the {} of {}{}; {}",
                                 m["fits"].get<bool>() ? "fits into" : "does not fit into", shown(m["limit"]),
                                 shown(m["device"]), speed_text(m), context_text(m["largest_context"])));
        for (const std::string& split : split_lines(m)) out += line("", split);
    }
    for (const Json& device : devices) {
        if (device.contains("problem")) {
            out += line(shown(device["id"]), "cannot be asked: " + shown(device["problem"]));
            continue;
        }
        out += line(
            shown(device["id"]),
            fmt::format("{}{}: {} of {}{}; {}",
                        devices.size() > 1 && is_default(device) ? "taken by default; " : "",
                        device["fits"].get<bool>() ? "fits" : "does not fit", bytes(device["total"]),
                        shown(device["limit"]), speed_text(device), context_text(device["largest_context"])));
        for (const std::string& split : split_lines(device)) out += line("", split);
    }
    return out;
}

std::string metadata_text(const Json& keys) {
    std::string out = "\nmetadata\n";
    for (const auto& [key, value] : keys.items()) {
        std::string text;
        if (value.is_object())
            text = fmt::format("{} elements: {}", number(value["count"]), to_text(value["first"], false));
        else
            text = to_text(value, false);
        out += fmt::format("  {} = {}\n", printable(key), printable(text));
    }
    return out;
}

std::string tensors_text(const Json& tensors) {
    std::string out = "\ntensors\n";
    for (const Json& t : tensors)
        out += fmt::format("  {:<40} {:<8} {:>12}  {}\n", shown(t["name"]), shown(t["format"]),
                           bytes(t["bytes"]), to_text(t["dims"], false));
    return out;
}

std::string as_text(const Json& all) {
    std::string out = file_text(all);
    if (all.contains("shape")) out += shape_text(all);
    if (all.contains("tokenizer")) out += tokenizer_text(all);
    if (all.contains("memory")) out += memory_text(all);
    if (!all["runs"].get<bool>()) out += line("cannot run", shown(all["problem"]));
    out += metadata_text(all["metadata"]);
    if (all.contains("tensors")) out += tensors_text(all["tensors"]);
    if (all.contains("plan")) out += plan_text(all["plan"]);
    return out;
}

int print_template(const ModelOptions& options) {
    const std::string& path = options.model;
    const Result<Gguf> gguf = Gguf::open(path);
    if (!gguf) return fail(gguf.error());
    const Metadata& metadata = gguf.value().metadata();
    const Result<std::string> source = chat_template_source(metadata);
    if (!source) return fail(source.error());
    if (source.value().empty()) return fail(error("{} has no chat template", path));
    note_demo_model(options);
    Output out;
    out.write(is_terminal(os::kStandardOutput) ? for_terminal(source.value()) + "\n" : source.value());
    return out.finish();
}

int run_info(const std::vector<std::string>& arguments) {
    InfoOptions info;
    Options options = declare(info);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (const Status usage = settle_device(info.model); !usage) return fail(usage.error(), kUsage);
    if (const Status found = take_demo_model(info.model); !found) return fail(found.error());
    const Result<std::string> path = find_user_model(info.model.model);
    if (!path) return fail(path.error());
    info.model.model = path.value();
    if (info.chat_template) return print_template(info.model);
    if (const std::optional<int> code = join_job(info.model)) return *code;
    const Result<Json> all = gather(info);
    if (!all) return fail(all.error());
    note_demo_model(info.model);
    Output out;
    out.write(info.json ? to_text(all.value()) + "\n" : as_text(all.value()));
    return out.finish();
}

}  // namespace

extern const Command info_command = {"info", "say what is in a model file and whether it fits here",
                                     run_info};

}  // namespace redline::cli
