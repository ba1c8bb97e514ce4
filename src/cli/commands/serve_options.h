// The options of redline serve, for the command line and for files of presets.
#pragma once

#include "cli/options/chat_options.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/options/speculation_options.h"
#include "serve/http/server.h"
#include "serve/pool/hosted_model.h"

namespace redline::cli {

struct ServeOptions {
    ModelOptions model;
    SamplingOptions sampling;
    ChatWriterOptions writer;
    ReasoningOptions reasoning;
    serve::HttpOptions http;
    serve::AccessOptions access;
    std::string key_file;
    std::string alias;
    serve::SchedulerOptions scheduler;
    uint32_t replicas = 1;
    std::string kv_events, kv_topic;  // an endpoint of ZeroMQ; empty: nobody is told
    bool kv_lists = false;            // events are lists in place of maps
    int64_t drain_seconds = 30;
    int64_t body_mib = 64, all_bodies_mib = 1024;
    size_t reasoning_fields = 0;
    std::string log_file;
    bool log_json = false;
    std::string models;  // a folder with several models, or a file of presets
    uint32_t models_most = 1;
    int64_t idle_seconds = 0;
};

Options declare_serve(ServeOptions& serve);
// False for an option that holds for the whole server, and not for one of its models.
bool is_of_model(const Options::Option& option);
// The rules between options, of the command line or of a preset.
Status settle_serve(ServeOptions& serve);
// Options that need others, or go without each other, as those of one model and of several do.
Status check_together(const ServeOptions& serve, const Options& options);

// Messages about conversations speak to those who send requests.
void say_to_requests(ChatWriterOptions& writer);
// The facts that hold for each model that is served.
serve::ServedModel served_by(const ServeOptions& serve);

}  // namespace redline::cli
