// The options that every command with a model has.
#pragma once

#include "cli/options/options.h"
#include "host/host_options.h"

namespace redline::cli {

// A model by the name or address from which it is fetched, see take_remote_model().
struct RemoteModel {
    std::string hub;       // USER/REPO[:QUANT]
    std::string hub_file;  // of that repository
    std::string token;     // for the hub; empty: see hub_of()
    std::string url;
    bool offline = false;  // only what is here already is taken
    explicit operator bool() const { return !hub.empty() || !url.empty(); }
};

struct ModelOptions : HostOptions {
    bool unnamed = false;  // the demo model is taken in place of one
    RemoteModel remote;
};

// -m, -c, -t, -b, the cache type, and the two groups below.
void add_model_options(Options& options, ModelOptions& target);
// --device, --cpu-level, --vulkan-level, --no-fuse; they begin with the surroundings of the process.
void add_device_options(Options& options, ModelOptions& target);
// -ngl, --cpu-moe, --n-cpu-moe, -ot, which add_device_options() adds, too.
void add_split_options(Options& options, ModelOptions& target);
// -t, where 0 and -1, llama.cpp's default, are one per core of this kind.
void add_threads_option(Options& options, std::string_view cores, uint32_t& target);
// -v, -q, --no-color.
void add_voice_options(Options& options);
// -ctk, -ctv, --cache-type for both, --no-cache-rotation.
void add_cache_options(Options& options, CacheTypes& target);
// The same of lists, of all pairs of which `target` consists.
void add_cache_lists(Options& options, std::vector<CacheTypes>& target);
// The parts of "A,B"; empty ones are left out.
std::vector<std::string> split_list(const std::string& text);

constexpr const char* kKeysHelp =
    "type of cached keys: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl (default: f16)";
constexpr const char* kValuesHelp = "type of cached values, likewise (default: f16)";
constexpr const char* kBatchHelp = "tokens read at a time (default: 512; on cards of 16 GB or more 1024)";

// Says how to name a model when none was.
Status check_model_given(const std::string& path);

}  // namespace redline::cli
