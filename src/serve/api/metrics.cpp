// GET /metrics: counters in Prometheus' text form, under llama-server's names and vLLM's.
#include "serve/api/native.h"

#include <algorithm>
#include <array>

namespace redline::serve {

namespace {

// Values of one name stand together, below one head, whichever model they are of.
class MetricsText {
public:
    // The values that follow are of this model. `several`: all values have its name as a label.
    void model(const std::string& name, bool several) {
        model_.clear();
        for (const char c : name)
            if (c == '\\' || c == '"')
                model_ += {'\\', c};
            else if (c != '\n')
                model_ += c;
        plain_label_ = several ? fmt::format("{{model=\"{}\"}}", model_) : "";
    }

    void plain(std::string_view name, std::string_view type, std::string_view help, double value) {
        below("llamacpp:", name, type, help) += fmt::format("llamacpp:{}{} {}\n", name, plain_label_, value);
    }
    void labelled(std::string_view name, std::string_view type, std::string_view help, double value,
                  std::string_view label = {}) {
        below("vllm:", name, type, help) +=
            fmt::format("vllm:{}{{model_name=\"{}\"{}}} {}\n", name, model_, label, value);
    }
    void replica(std::string_view name, std::string_view help, const ReplicaState& replica, size_t index,
                 double value) {
        std::string device;
        for (const char c : replica.device)
            if (c != '\\' && c != '"' && c != '\n') device += c;
        below("redline:", name, name.ends_with("_total") ? "counter" : "gauge", help) +=
            fmt::format("redline:{}{{model_name=\"{}\",replica=\"{}\",device=\"{}\"}} {}\n", name, model_,
                        index, device, value);
    }
    void histogram(std::string_view name, std::string_view help, const Histogram& values) {
        std::string& text = below("vllm:", name, "histogram", help);
        uint64_t sum = 0;
        const auto line = [&](const std::string& bound) {
            text +=
                fmt::format("vllm:{}_bucket{{model_name=\"{}\",le=\"{}\"}} {}\n", name, model_, bound, sum);
        };
        for (size_t i = 0; i < values.counts().size(); ++i) {
            sum += values.counts()[i];
            line(i < values.bounds().size() ? fmt::format("{}", values.bounds()[i]) : "+Inf");
        }
        text +=
            fmt::format("vllm:{0}_sum{{model_name=\"{1}\"}} {2}\nvllm:{0}_count{{model_name=\"{1}\"}} {3}\n",
                        name, model_, values.sum(), values.count());
    }
    std::string text() const {
        std::string all;
        for (const auto& [name, lines] : families_) all += lines;
        return all;
    }

private:
    std::string& below(std::string_view space, std::string_view name, std::string_view type,
                       std::string_view help) {
        const std::string full = fmt::format("{}{}", space, name);
        const auto found = std::ranges::find(families_, full, &std::pair<std::string, std::string>::first);
        if (found != families_.end()) return found->second;
        families_.emplace_back(full, fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", full, help, type));
        return families_.back().second;
    }

    std::string model_;
    std::string plain_label_;
    std::vector<std::pair<std::string, std::string>> families_;  // by their names
};

double ratio(double part, double whole) {
    return whole > 0.0 ? part / whole : 0.0;
}

double usage_of_pages(const Statistics& s) {
    return ratio(double(s.pages - std::min(s.pages, s.pages_free + s.pages_kept)), double(s.pages));
}

struct Counter {
    const char* name;
    const char* help;
    double value;
};

// llama-server and vLLM call them alike.
std::array<Counter, 3> speculation_counters(const Statistics& s) {
    return {{{"spec_decode_num_drafts_total", "Guesses that steps have checked.", double(s.drafts)},
             {"spec_decode_num_draft_tokens_total", "Tokens that were guessed.", double(s.drafted)},
             {"spec_decode_num_accepted_tokens_total", "Guessed tokens that the model chose, too.",
              double(s.accepted)}}};
}

void write_llama_names(MetricsText& out, const Statistics& s) {
    const uint64_t read = s.prompt_tokens - std::min(s.prompt_tokens, s.cached_tokens);
    out.plain("prompt_tokens_total", "counter", "Tokens of prompts that were computed.", double(read));
    out.plain("prompt_tokens_cached_total", "counter", "Tokens of prompts found in the cache.",
              double(s.cached_tokens));
    out.plain("prompt_seconds_total", "counter", "Time of steps that read prompts.", s.prompt_seconds);
    out.plain("tokens_predicted_total", "counter", "Tokens that were generated.", double(s.generated_tokens));
    out.plain("tokens_predicted_seconds_total", "counter", "Time of steps that generated.",
              s.generation_seconds);
    out.plain("n_decode_total", "counter", "Steps of the model.", double(s.steps));
    out.plain("n_tokens_max", "counter", "Most tokens of a request.", double(s.most_tokens));
    out.plain("n_busy_slots_per_decode", "counter", "Answers in a step that generates, on average.",
              ratio(double(s.generating_rows), double(s.generating_steps)));
    out.plain("prompt_tokens_seconds", "gauge", "Tokens of prompts per second.",
              ratio(double(read), s.prompt_seconds));
    out.plain("predicted_tokens_seconds", "gauge", "Generated tokens per second.",
              ratio(double(s.generated_tokens), s.generation_seconds));
    out.plain("requests_processing", "gauge", "Requests that run.", s.running());
    out.plain("requests_deferred", "gauge", "Requests that wait.", s.waiting);
    for (const auto& [name, help, value] : speculation_counters(s)) out.plain(name, "counter", help, value);
}

void write_vllm_names(MetricsText& out, const Statistics& s) {
    out.labelled("num_requests_running", "gauge", "Requests that run.", s.running());
    out.labelled("num_requests_waiting", "gauge", "Requests that wait.", s.waiting);
    out.labelled("kv_cache_usage_perc", "gauge", "Share of the caches in use; 1 is all.", usage_of_pages(s));
    out.labelled("prefix_cache_queries_total", "counter", "Tokens looked for in the cache.",
                 double(s.prompt_tokens));
    out.labelled("prefix_cache_hits_total", "counter", "Tokens found there.", double(s.cached_tokens));
    out.labelled("prompt_tokens_total", "counter", "Tokens of prompts.", double(s.prompt_tokens));
    out.labelled("prompt_tokens_cached_total", "counter", "Tokens of prompts found in the cache.",
                 double(s.cached_tokens));
    out.labelled("generation_tokens_total", "counter", "Tokens that were generated.",
                 double(s.generated_tokens));
    out.labelled("num_preemptions_total", "counter", "Requests whose pages were taken for others.",
                 double(s.preemptions));
    for (const auto& [name, help, value] : speculation_counters(s))
        out.labelled(name, "counter", help, value);
    for (size_t i = 0; i < s.accepted_at.size(); ++i)
        out.labelled("spec_decode_num_accepted_tokens_per_pos_total", "counter",
                     "Guessed tokens that the model chose, too, by their place in the guess.",
                     double(s.accepted_at[i]), fmt::format(",position=\"{}\"", i));
    const auto ended = [&](const char* reason, uint64_t count) {
        out.labelled("request_success_total", "counter", "Requests by the reason of their end.",
                     double(count), fmt::format(",finished_reason=\"{}\"", reason));
    };
    ended("stop", s.ended_stop);
    ended("length", s.ended_length);
    ended("abort", s.ended_cancelled);
    ended("error", s.ended_error);
    out.histogram("time_to_first_token_seconds", "From the request to the first token.", s.first_token);
    out.histogram("inter_token_latency_seconds", "Between two tokens of an answer.", s.inter_token);
    out.histogram("e2e_request_latency_seconds", "From the request to its end.", s.whole);
    out.histogram("request_queue_time_seconds", "Waiting.", s.queued);
    out.histogram("request_prefill_time_seconds", "Reading the prompt.", s.prompt);
    out.histogram("request_decode_time_seconds", "Generating.", s.generation);
    out.histogram("iteration_tokens_total", "Tokens of a step.", s.step_tokens);
    out.labelled("cache_config_info", "gauge", "The caches.", 1,
                 fmt::format(",block_size=\"{}\",num_gpu_blocks=\"{}\"", s.page_tokens, s.pages));
}

void write_replicas(MetricsText& out, std::span<const ReplicaState> replicas) {
    for (size_t i = 0; i < replicas.size(); ++i) {
        const ReplicaState& one = replicas[i];
        const Statistics& s = one.statistics;
        out.replica("replica_up", "1 where the replica serves.", one, i, one.health == Health::serving);
        out.replica("replica_requests_running", "Requests that run there.", one, i, s.running());
        out.replica("replica_requests_waiting", "Requests that wait there.", one, i, s.waiting);
        out.replica("replica_kv_cache_usage_perc", "Share of its caches in use; 1 is all.", one, i,
                    usage_of_pages(s));
        out.replica("replica_generation_tokens_total", "Tokens that were generated there.", one, i,
                    double(s.generated_tokens));
        out.replica("replica_prefix_cache_hits_total", "Tokens of prompts found in its cache.", one, i,
                    double(s.cached_tokens));
    }
}

void write_metrics(MetricsText& out, Service& service, bool several) {
    const Statistics statistics = service.answers.statistics();
    out.model(service.served.name, several);
    write_llama_names(out, statistics);
    write_vllm_names(out, statistics);
    write_replicas(out, service.answers.replicas());
}

HttpReply metrics_reply(const MetricsText& text) {
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = text.text()};
}

}  // namespace

void answer_metrics(Service& service, const ExchangePtr& exchange) {
    MetricsText out;
    write_metrics(out, service, false);
    exchange->reply(metrics_reply(out));
}

HttpReply metrics_of(std::span<const std::shared_ptr<Service>> models) {
    MetricsText out;
    for (const std::shared_ptr<Service>& model : models) write_metrics(out, *model, true);
    return metrics_reply(out);
}

}  // namespace redline::serve
