#include "cli/options/foreign.h"

#include <algorithm>
#include <iterator>

namespace redline::cli {

namespace {

constexpr std::string_view kNoDownload = "redline pull USER/REPO fetches a model, which -m NAME then takes";
constexpr std::string_view kNoDraft = "speculation goes without it here: leave it out";
constexpr std::string_view kNoImages = "models read text alone here: leave it out";
constexpr std::string_view kNoRope = "the position encoding is as the model file says: leave it out";
constexpr std::string_view kNoExpertCache =
    "experts stay where they are: leave it out, --cpu-moe says which of them are on the CPU";
constexpr std::string_view kOneHost =
    "the devices are those of this machine: leave it out, --device NAME,NAME shares layers out over several";
constexpr std::string_view kNoServer = "redline serve takes it; redline chat and redline run answer here";
constexpr std::string_view kNoAdapter = "there are no adapters here: give a file that they are merged into";
constexpr std::string_view kNoGrammar = "this command holds answers to no grammar: leave it out";

constexpr ForeignOption kForeign[] = {
    // Threads and cores.
    {"-tb --threads-batch", 1},
    {"-C --cpu-mask -Cr --cpu-range --cpu-strict -Cb --cpu-mask-batch -Crb --cpu-range-batch", 1},
    {"--cpu-strict-batch --prio --prio-batch --poll --poll-batch --numa", 1},
    // Memory. Weights are read once, to where they are computed with.
    {"--mlock --mmap --no-mmap -nommap --no-host -kvo --kv-offload -nkvo --no-kv-offload"},
    {"--repack -nr --no-repack --swa-full --direct-io -dio --no-direct-io "
     "-ndio"},
    {"-lm --load-mode -lzm --lazy-mode -dt --defrag-thold -fitt --fit-target -fitc --fit-ctx", 1},
    {"-ctxcp --ctx-checkpoints --swa-checkpoints -cram --cache-ram -np --parallel", 1},
    {"-fa --flash-attn -fit --fit", kMaybe},
    {"--check-tensors --warmup --no-warmup -bs --backend-sampling --no-kv-unified -kvu --kv-unified"},
    // Where weights are.
    {"--moe-cache-mib", 1, kNoExpertCache},
    {"--rpc", 1, kOneHost},
    {"-ncffn --n-cpu-ffn", 1, "-ot \"blk\\\\.(0|1)\\\\.ffn=CPU\" does that for layers 0 and 1"},
    {"--list-devices", 0, "redline devices lists them"},
    {"--gpu", 1,
     "--device gpu computes on the GPU, --device cpu on the CPU, -ngl N so many layers on the GPU"},
    // The model.
    {"-mu --model-url -dr --docker-repo -hf -hfr --hf-repo -hff --hf-file -hft --hf-token", 1, kNoDownload},
    {"--gpt-oss-20b-default --gpt-oss-120b-default --vision-gemma-4b-default --vision-gemma-12b-default", 0,
     kNoDownload},
    {"-cl --cache-list", 0, "redline models lists the model files of this machine"},
    {"--override-kv", 1, "the model file is taken as it is: leave it out"},
    {"--lora --lora-scaled --control-vector --control-vector-scaled", 1, kNoAdapter},
    {"--control-vector-layer-range", 2, kNoAdapter},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor", 1,
     kNoRope},
    {"--yarn-attn-factor --yarn-beta-slow --yarn-beta-fast -gan --grp-attn-n -gaw --grp-attn-w", 1, kNoRope},
    // Drafts.
    {"--spec-draft-hf -hfd -hfrd --hf-repo-draft --spec-draft-threads -td --threads-draft", 1, kNoDraft},
    {"--spec-draft-threads-batch -tbd --threads-batch-draft --spec-draft-cpu-mask -Cd --cpu-mask-draft", 1,
     kNoDraft},
    {"--spec-draft-cpu-range -Crd --cpu-range-draft --spec-draft-cpu-strict --cpu-strict-draft", 1, kNoDraft},
    {"--spec-draft-prio --prio-draft --spec-draft-poll --poll-draft --spec-draft-cpu-mask-batch -Cbd", 1,
     kNoDraft},
    {"--cpu-mask-batch-draft --spec-draft-cpu-strict-batch --cpu-strict-batch-draft --prio-batch-draft", 1,
     kNoDraft},
    {"--spec-draft-prio-batch --spec-draft-poll-batch --poll-batch-draft --spec-draft-override-tensor -otd",
     1, kNoDraft},
    {"--override-tensor-draft --spec-draft-n-cpu-moe --spec-draft-ncmoe -ncmoed --n-cpu-moe-draft", 1,
     kNoDraft},
    {"--spec-draft-n-min --spec-draft-n-ubatch --spec-synth-len --spec-synth-rates", 1, kNoDraft},
    {"--spec-draft-p-split --draft-p-split --spec-draft-p-min --draft-p-min --spec-draft-sampling", 1,
     kNoDraft},
    {"--spec-draft-device -devd --device-draft --spec-draft-ngl -ngld --gpu-layers-draft", 1, kNoDraft},
    {"--n-gpu-layers-draft --spec-ngram-mod-n-min", 1, kNoDraft},
    {"--spec-ngram-mod-n-max --spec-ngram-mod-n-match --spec-ngram-simple-size-n", 1, kNoDraft},
    {"--spec-ngram-simple-size-m --spec-ngram-simple-min-hits --spec-ngram-map-k-size-n", 1, kNoDraft},
    {"--spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits --spec-ngram-map-k4v-size-n", 1, kNoDraft},
    {"--spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-min-hits --draft --draft-n --draft-max", 1, kNoDraft},
    {"--draft-min --draft-n-min --spec-draft-type-k -ctkd --cache-type-k-draft --spec-draft-type-v -ctvd", 1,
     kNoDraft},
    {"--cache-type-v-draft", 1, kNoDraft},
    {"--spec-draft-cpu-moe -cmoed --cpu-moe-draft --spec-draft-backend-sampling", 0, kNoDraft},
    {"--no-spec-draft-backend-sampling --spec-default", 0, kNoDraft},
    // Images, sound.
    {"-mm --mmproj -mmu --mmproj-url -mmdev --mmproj-device --image --audio --video --image-min-tokens", 1,
     kNoImages},
    {"--image-max-tokens --video-fps --video-timestamp-interval --video-ffmpeg-dir", 1, kNoImages},
    {"--mmproj-auto --no-mmproj --no-mmproj-auto --mmproj-offload --no-mmproj-offload"},
    // Prompts and conversations.
    {"--jinja --simple-io -mli --multiline-input --reasoning-preserve --no-reasoning-preserve"},
    {"--no-jinja", 0, "templates are interpreted: --chat-format NAME writes turns in a built-in format"},
    {"--skip-chat-parsing --no-skip-chat-parsing --nowordwrap --insecure --offline"},
    {"--reasoning-format --keepalive --ttl --identifier", 1},
    {"--reasoning-budget-message", 1, "the reasoning is ended by the model's mark: leave it out"},
    {"-rea --reasoning", kMaybe, "--think on|off|hide does that"},
    {"-bf --binary-file", 1, "-f FILE reads a file, as text"},
    {"-sysf --system-prompt-file", 1, "-sys \"$(cat FILE)\" does the same"},
    {"--verbose-prompt", 0, "redline run --show-prompt prints what the model would read"},
    {"-p --prompt -f --file", 1,
     "redline run answers a prompt; redline chat takes messages at its prompt or from standard input"},
    {"--prompt-cache-all", 0, "--prompt-cache FILE keeps the state after the prompt alone"},
    {"-i --interactive -if --interactive-first", 0, "redline chat has conversations"},
    {"-cnv --conversation"},
    {"-no-cnv --no-conversation", 0, "redline run --raw goes on from a plain text"},
    {"-st --single-turn", 0, "redline run answers once"},
    {"--in-prefix --in-suffix -ptc --print-token-count", 1,
     "the chat template writes the turns: leave it out"},
    {"--in-prefix-bos", 0, "the chat template writes the turns: leave it out"},
    {"-o --output --output-file", 1, "the answer goes to standard output: > FILE keeps it"},
    // Sampling.
    {"--grammar --grammar-file -j --json-schema -jf --json-schema-file --format", 1, kNoGrammar},
    {"--adaptive-target --adaptive-decay", 1, "there is no such sampler: --samplers lists those there are"},
    // The message.
    {"--perf --no-perf --show-timings --no-show-timings --log-disable --log-jsonl --no-log-jsonl "
     "--log-verbose"},
    {"--log-prefix --no-log-prefix --log-timestamps --no-log-timestamps"},
    {"-lv --verbosity --log-verbosity", 1},
    {"--log-colors", kMaybe},
    {"--log-file --log-prompts-dir", 1, "messages go to standard error: 2> FILE keeps them"},
    {"--completion-bash", 0, "redline completion bash writes the script"},
    {"--version", 0, "redline --version says it, without a command"},
    // Servers.
    {"--host --port --api-key --api-key-file --path --server-base -a --alias --slot-save-path", 1, kNoServer},
};

}  // namespace

const ForeignOption* find_foreign(std::string_view name) {
    const auto named = [name](const ForeignOption& option) {
        for (std::string_view rest = option.names; !rest.empty();) {
            const size_t end = std::min(rest.find(' '), rest.size());
            if (rest.substr(0, end) == name) return true;
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        return false;
    };
    const auto* const found = std::find_if(std::begin(kForeign), std::end(kForeign), named);
    return found == std::end(kForeign) ? nullptr : found;
}

size_t foreign_values(const ForeignOption& option, std::span<const std::string> behind) {
    if (option.values == kMaybe) return !behind.empty() && is_switch_word(behind[0]) ? 1 : 0;
    return std::min(size_t(option.values), behind.size());
}

bool is_switch_word(std::string_view word) {
    constexpr std::string_view kWords[] = {"on", "off",  "auto", "true",   "false", "0",
                                           "1",  "hide", "low",  "medium", "high"};
    return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

}  // namespace redline::cli
