#include "serve/api/wishes.h"

#include "grammar/json_schema.h"

namespace redline::serve {

namespace {

constexpr int64_t kMostTokens = int64_t(1) << 40;
constexpr int64_t kMostAnswers = 64;
constexpr int64_t kMostLogprobs = 100;
constexpr size_t kMostStops = 64;

// "top_logprobs" of a chat; "logprobs" is true or false there, and a number in completions.
Status read_logprobs(const Fields& fields, Wishes& wishes) {
    const Json* wanted = fields.find("logprobs");
    const Json* top = fields.find("top_logprobs");
    if (wanted && wanted->is_boolean()) {
        if (*wanted == true)
            wishes.logprobs = int32_t(RL_TRY(fields.integer("top_logprobs", 0, 0, kMostLogprobs)));
        if (*wanted == false && top && *top != 0) return error("top_logprobs needs logprobs to be true");
        return {};
    }
    if (wanted) wishes.logprobs = int32_t(RL_TRY(fields.integer("logprobs", -1, 0, kMostLogprobs)));
    if (!wanted && top && *top != 0) return error("top_logprobs needs logprobs to be true");
    const int64_t native = RL_TRY(fields.integer("n_probs", 0, 0, kMostLogprobs));
    if (native > 0) wishes.logprobs = int32_t(native);
    return {};
}

// The first of these names that the request has.
Result<int64_t> first_of(const Fields& fields, std::initializer_list<const char*> names, int64_t least) {
    for (const char* name : names)
        if (fields.has(name)) return fields.integer(name, -1, least, kMostTokens);
    return int64_t(-1);
}

// {"type": "json_schema", "json_schema": {"schema": ..., "strict": true}}; llama-server has the schema beside
// the type, too.
Status read_response_format(const Fields& fields, Wishes& wishes) {
    const Json* format = fields.find("response_format");
    if (!format) return {};
    if (!format->is_object()) return error("response_format is {}; it has to be an object", excerpt(*format));
    const Fields inner(*format, "response_format.");
    const std::string type = RL_TRY(inner.text("type"));
    if (type == "text" || type.empty()) return {};
    if (type == "json_object") {
        const Json* schema = inner.find("schema");
        return hold_to_schema(wishes, schema ? *schema : Json::object(), false, "response_format.schema");
    }
    if (type != "json_schema")
        return error("response_format.type is \"{}\"; it has to be text, json_object or json_schema", type);
    const Json* holder = inner.find("json_schema");
    const Json* schema = inner.find("schema");
    bool strict = false;
    if (holder && holder->is_object()) {
        const Fields named(*holder, "response_format.json_schema.");
        if (!schema) schema = named.find("schema");
        strict = RL_TRY(named.flag("strict", false));
    }
    if (!schema) return error("response_format.json_schema has no schema");
    return hold_to_schema(wishes, *schema, strict, "response_format.json_schema.schema");
}

Status read_grammar(const Fields& fields, Wishes& wishes) {
    std::vector<std::string> given;
    const auto take = [&](const char* name, bool schema) -> Status {
        const Json* value = fields.find(name);
        if (!value || *value == "") return {};
        given.emplace_back(name);
        if (schema) return hold_to_schema(wishes, *value, false, name);
        wishes.grammar = RL_TRY(fields.text(name));
        return {};
    };
    RL_TRY(take("grammar", false));
    RL_TRY(take("guided_grammar", false));
    RL_TRY(take("json_schema", true));
    RL_TRY(take("guided_json", true));
    Wishes by_format;
    RL_TRY(read_response_format(fields, by_format));
    if (!by_format.grammar.empty()) given.emplace_back("response_format");
    if (given.size() > 1) return error("{} and {} are two grammars; give one", given[0], given[1]);
    if (!by_format.grammar.empty()) {
        wishes.grammar = by_format.grammar;
        wishes.schema = by_format.schema;
    }
    if (wishes.grammar.empty()) return {};
    const Result<Grammar> parsed = Grammar::parse(wishes.grammar);
    if (!parsed) return error("{}: {}", given[0], parsed.error().message);
    return {};
}

}  // namespace

Result<std::string> grammar_of(const Json& schema, bool strict, const std::string& where) {
    std::vector<std::string> notes;
    Result<std::string> grammar = grammar_of_schema(json_text(schema), {&notes, strict});
    if (!grammar) return error("{}: {}", where, grammar.error().message);
    return grammar;
}

Status hold_to_schema(Wishes& wishes, const Json& schema, bool strict, const std::string& where) {
    wishes.schema = schema == Json(true) ? Json::object() : schema;
    if (schema.is_string()) {
        Result<Json> written = parse_body(schema.get_ref<const std::string&>());
        if (!written) return error("{} is a text that is no schema: {}", where, written.error().message);
        wishes.schema = std::move(written).value();
    }
    wishes.grammar = RL_TRY(grammar_of(wishes.schema, strict, where));
    return {};
}

Status read_stops(const Fields& fields, std::string_view name, std::vector<std::string>& stops) {
    for (std::string& stop : RL_TRY(fields.texts(name)))
        if (!stop.empty()) stops.push_back(std::move(stop));
    if (stops.size() > kMostStops)
        return error("{} has {} texts; {} are possible", fields.path(name), stops.size(), kMostStops);
    return {};
}

Status read_sampling(const Fields& fields, SamplerOptions& sampling) {
    const auto take = [&](std::string_view member, const Parameter& parameter) -> Status {
        const Json* value = fields.find(member);
        if (!value) return {};
        const Status set = set_parameter(sampling, parameter, *value);
        if (!set) return error("{}{}", fields.path(""), set.error().message);
        return {};
    };
    for (const Parameter& parameter : sampler_parameters()) RL_TRY(take(parameter.name, parameter));
    // vLLM's name.
    return take("repetition_penalty", *find_parameter("repeat_penalty"));
}

Status refuse_unknown_wishes(const Fields& fields) {
    struct Refused {
        const char* name;
        const char* why;
    };
    constexpr Refused kRefused[] = {
        {"echo", "the prompt is not repeated in the answer"},
        {"suffix", "POST /infill writes what belongs between two texts"},
        {"functions", "this older form is called tools now"},
        {"function_call", "this older form is called tool_choice now"},
        {"audio", "models write text alone here"},
        {"web_search_options", "this server searches nothing; a tool can"},
        {"use_beam_search", "answers are sampled"},
        {"prompt_logprobs", "only tokens of the answer have probabilities"},
        {"truncate_prompt_tokens", "a prompt is never cut"},
        {"guided_regex", "grammar, in GBNF, can say the same"},
        {"guided_choice", "grammar, in GBNF, can say the same: root ::= \"a\" | \"b\""},
        {"structured_outputs", "response_format or grammar can say the same"},
        {"return_progress", "the progress of prompts is not told"},
        {"post_sampling_probs", "probabilities are those before the samplers"},
        {"n_indent", "lines are not counted"},
        {"t_max_predict_ms", "max_tokens limits an answer"},
        {"response_fields", "answers are whole"},
        {"lora", "adapters are not loaded by requests"},
        {"return_tokens", "logprobs tell tokens"},
        {"logits_processors", "code is not taken from requests"},
    };
    for (const Refused& each : kRefused) RL_TRY(fields.refuse(each.name, each.why));
    if (const Json* modalities = fields.find("modalities");
        modalities && *modalities != Json::array({"text"}))
        return error("modalities is {}; models write text alone here: [\"text\"]", excerpt(*modalities));
    const int64_t best = RL_TRY(fields.integer("best_of", 1, 1, kMostAnswers));
    if (best != RL_TRY(fields.integer("n", 1, 1, kMostAnswers)) && best != 1)
        return error("best_of is not supported: all {} answers of n are returned", best);
    return {};
}

Result<Wishes> read_wishes(const Fields& fields, const Service& service) {
    RL_TRY(refuse_unknown_wishes(fields));
    Wishes wishes{.sampling = service.served.sampling};
    RL_TRY(read_sampling(fields, wishes.sampling));
    const size_t usable = service.served.model->usable_vocab();
    RL_TRY(check_bias(wishes.sampling, int32_t(usable)));
    wishes.max_tokens = RL_TRY(first_of(fields, {"max_completion_tokens", "max_tokens", "n_predict"}, -1));
    wishes.min_tokens = uint64_t(RL_TRY(fields.integer("min_tokens", 0, 0, kMostTokens)));
    if (wishes.max_tokens >= 0 && wishes.min_tokens > uint64_t(wishes.max_tokens))
        return error("min_tokens is {}, which is more than max_tokens, {}", wishes.min_tokens,
                     wishes.max_tokens);
    RL_TRY(read_stops(fields, "stop", wishes.stops));
    wishes.stop_tokens = RL_TRY(fields.tokens("stop_token_ids", usable));
    wishes.ignore_eos = RL_TRY(fields.flag("ignore_eos", false));
    wishes.count = uint32_t(RL_TRY(fields.integer("n", 1, 1, kMostAnswers)));
    wishes.cache_prompt = RL_TRY(fields.flag("cache_prompt", true));
    wishes.stream = RL_TRY(fields.flag("stream", false));
    if (const Json* options = fields.find("stream_options")) {
        if (!options->is_object())
            return error("stream_options is {}; it has to be an object", excerpt(*options));
        if (!wishes.stream) return error("stream_options needs stream to be true");
        wishes.usage_in_stream = RL_TRY(Fields(*options, "stream_options.").flag("include_usage", false));
    }
    RL_TRY(read_logprobs(fields, wishes));
    RL_TRY(read_grammar(fields, wishes));
    // Nothing of context is shifted out, but a number that cannot be meant is told (CVE-2026-21869).
    RL_TRY(fields.integer("n_keep", 0, -1, kMostTokens));
    RL_TRY(fields.integer("n_discard", 0, 0, kMostTokens));
    return wishes;
}

}  // namespace redline::serve
