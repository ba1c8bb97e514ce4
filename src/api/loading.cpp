#include "api/loading.h"

namespace redline::api {

namespace {

// The members of redline_model_options, as callers write them.
constexpr SettingNames kMembers = {.device = "device",
                                   .main_gpu = "main_gpu",
                                   .split_mode = "split_mode",
                                   .context = "context",
                                   .gpu_layers = "gpu_layers",
                                   .cpu_experts = "cpu_experts",
                                   .cpu_experts_auto = "cpu_experts = REDLINE_AS_NEEDED",
                                   .tensors = "tensors",
                                   .small_cache = "cache_type = \"q8_0\"",
                                   .memory = "memory",
                                   .stream = "stream = 1",
                                   .cpu_level = "cpu_level",
                                   .vulkan_level = "vulkan_level",
                                   .check_again = "kernel_check = 1",
                                   .unchecked = "kernel_check = -1",
                                   .untuned = "tune = -1",
                                   .chat_format = "a chat format",
                                   .chat_template = "a chat template",
                                   .template_variables = "variables of the template",
                                   .tools = "functions",
                                   .between = " = "};

// A number of the options that has to lie within these.
Status check_range(const char* name, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return {};
    return error("{} is a number from {} to {}, not {}", name, low, high, value);
}

Status check_ranges(const redline_model_options& given) {
    constexpr int64_t kMostLayers = std::numeric_limits<int32_t>::max();
    RL_TRY(check_range("context", int64_t(std::min<uint64_t>(given.context, INT64_MAX)), 0,
                       given.context == REDLINE_LARGEST ? INT64_MAX : kMostContext));
    RL_TRY(check_range("threads", given.threads, 0, kMostThreads));
    RL_TRY(check_range("batch", given.batch, 0, kMostBatch));
    RL_TRY(check_range("gpu_layers", given.gpu_layers, -1, kMostLayers));
    RL_TRY(check_range("cpu_experts", given.cpu_experts, REDLINE_AS_NEEDED, kMostLayers));
    RL_TRY(check_range("main_gpu", given.main_gpu, -1, 63));
    RL_TRY(check_range("kernel_check", given.kernel_check, -1, 1));
    RL_TRY(check_range("cache_rotation", given.cache_rotation, -1, 0));
    RL_TRY(check_range("stream", given.stream, -1, 1));
    return check_range("tune", given.tune, -1, 1);
}

// "MEMBER: what is wrong with it", of a parser whose message begins with "takes".
template <typename T>
Result<T> parsed(const char* member, Result<T> result) {
    if (!result) return error("{} {}", member, result.error().message);
    return result;
}

std::string text_of(const char* text) {
    return text ? text : "";
}

Status take_cache(const redline_model_options& given, CacheTypes& types) {
    if (given.cache_type) types = RL_TRY(parsed("cache_type", parse_cache_type(given.cache_type)));
    if (given.cache_type_k) types.keys = RL_TRY(parsed("cache_type_k", parse_cache_type(given.cache_type_k)));
    if (given.cache_type_v)
        types.values = RL_TRY(parsed("cache_type_v", parse_cache_type(given.cache_type_v)));
    types.rotate = given.cache_rotation >= 0;
    return {};
}

Result<HostOptions> host_options(const std::string& path, const redline_model_options& given, Notes& notes) {
    RL_TRY(check_ranges(given));
    HostOptions options;
    options.names = &kMembers;
    options.notes = &notes;
    options.model = path;
    options.cache_folder = text_of(given.cache_folder);
    options.context = given.context == REDLINE_LARGEST ? 0 : given.context == 0 ? -1 : int64_t(given.context);
    options.threads = given.threads;
    options.batch = given.batch;
    if (given.device && *given.device)
        if (const Status taken = take_devices(given.device, options); !taken)
            return error("device {}", taken.error().message);
    if (given.split_mode)
        options.split_mode = RL_TRY(parsed("split_mode", parse_split_mode(given.split_mode)));
    RL_TRY(take_cache(given, options.cache));
    options.gpu_layers = given.gpu_layers;
    if (given.cpu_experts != -1) options.cpu_experts = given.cpu_experts;
    if (given.tensors) options.tensors = RL_TRY(parsed("tensors", parse_tensor_places(given.tensors)));
    options.memory = given.memory;
    if (given.stream != 0) options.streams = given.stream > 0;
    options.main_gpu = given.main_gpu;
    constexpr KernelCheck kChecks[] = {KernelCheck::never, KernelCheck::first_use, KernelCheck::always};
    options.kernel_check = kChecks[given.kernel_check + 1];
    options.tuned = given.tune >= 0;
    options.quick_tune = given.tune > 0 ? TuneBefore::first_use : TuneBefore::never;
    RL_TRY(settle_device(options));
    return options;
}

}  // namespace

void CallerNotes::take(NoteKind kind, std::string_view text) {
    const std::string line(text);
    if (keeps_ && kind == NoteKind::note) kept_ += line + "\n";
    if (note_) note_(user_, int(kind), line.c_str());
}

void CallerNotes::progress(std::string_view work, uint64_t done, uint64_t total) {
    total_ = total;
    if (progress_) progress_(user_, std::string(work).c_str(), done, total);
}

void CallerNotes::finished(std::string_view work) {
    progress(work, total_, total_);
}

const std::string& CallerNotes::kept() {
    keeps_ = false;
    return kept_;
}

Result<std::vector<Token>> Loaded::write_chat(Json messages) {
    const std::lock_guard lock(writing_);
    if (!writer_) {
        ChatWriterOptions writing;
        writing.names = options.names;
        writing.notes = &notes;
        writer_ = RL_TRY(ChatWriter::create(*loaded.model, writing));
    }
    ChatWriter once = *writer_;  // a conversation that the template refuses does not change the next
    return RL_TRY(once.write(std::move(messages), {})).tokens;
}

Result<std::shared_ptr<Loaded>> load(const std::string& path, const redline_model_options& given) {
    auto made = std::make_shared<Loaded>(given);
    made->options = RL_TRY(host_options(path, given, made->notes));
    LoadedModel& loaded = made->loaded;
    loaded = RL_TRY(inspect_model(made->options));
    made->context = RL_TRY(choose_context(loaded, made->options));
    RL_TRY(place_model(loaded, made->options, made->context));
    made->device = loaded.device.backend->device().name;
    made->group.emplace(loaded, made->options);
    made->notes.kept();
    return made;
}

Result<Session> new_session(Loaded& made) {
    if (!made.group->has_device())
        return error("{} was lost, and could not be opened again: load the model anew", made.device);
    if (made.loaded.split && made.group->size() > 0)
        return error(
            "a model that is split has one session at a time, with which its weights are loaded: free "
            "the other one, or choose a model that fits into one device");
    return open_session(made.loaded, made.options, made.context);
}

}  // namespace redline::api
