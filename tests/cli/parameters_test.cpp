// The table of the sampler's parameters: every way to set one leads to the same value and the same messages.
#include "sample/parameters.h"

#include "cli/commands/chat_settings.h"
#include "cli/commands/run_options.h"
#include "sample/sampler.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

using namespace redline;
using namespace redline::cli;

namespace {

// A value of the parameter that is not its default, as a text and as JSON.
struct Value {
    std::string text;
    Json json;
};
Value other_value(const Parameter& p) {
    if (p.name == "samplers") return {"top_k;temperature", Json::array({"top_k", "temperature"})};
    if (p.name == "logit_bias") return {"3+2", {{"3", 2.0}}};
    if (p.name == "dry_sequence_breakers") return {"x", Json::array({"x"})};
    if (std::holds_alternative<float SamplerOptions::*>(p.member)) return {"0.5", 0.5};
    return {"1", 1};
}

// A value that the parameter refuses; null: it takes all numbers.
Json wrong_value(const Parameter& p) {
    if (p.name == "samplers") return "nonsense";
    if (std::holds_alternative<int32_t SamplerOptions::*>(p.member) && p.least >= -1) return -2;
    if (std::holds_alternative<float SamplerOptions::*>(p.member) && p.least >= 0) return -1.5;
    return nullptr;
}

bool same(const SamplerOptions& a, const SamplerOptions& b) {
    for (const Parameter& p : sampler_parameters())
        if (std::visit([&](auto member) { return a.*member != b.*member; }, p.member)) return false;
    return true;
}

Metadata metadata_of(const std::string& key, const MetadataValue& value) {
    Metadata metadata;
    REQUIRE(metadata.add(key, value).ok());
    return metadata;
}

// The values of `run` behind its options.
RunOptions parsed(const std::vector<std::string>& arguments) {
    RunOptions run;
    Options options = declare(run);
    CAPTURE(arguments.front());
    CHECK_FALSE(options.parse(arguments).has_value());
    return run;
}

}  // namespace

TEST_CASE("parameters: each has a name, and none has that of another") {
    std::set<std::string_view> names, settings, keys;
    std::set<std::string> options;
    for (const Parameter& p : sampler_parameters()) {
        CAPTURE(p.name);
        CHECK(names.insert(p.name).second);
        CHECK(find_parameter(p.name) == &p);
        if (!p.setting.empty()) CHECK(settings.insert(p.setting).second);
        if (!p.file_key.empty()) CHECK(keys.insert(p.file_key).second);
        for (const std::string& option : split_words(p.options)) CHECK(options.insert(option).second);
        // An option can be changed between two answers, too, and both say what they do.
        CHECK(p.setting.empty() == p.options.empty());
        CHECK(p.options.empty() == p.help.empty());
    }
    CHECK(find_parameter("warmth") == nullptr);
}

TEST_CASE("parameters: each is set to the same value by every name of its option, by /set and by a request") {
    for (const Parameter& p : sampler_parameters()) {
        CAPTURE(p.name);
        const Value value = other_value(p);
        SamplerOptions wanted;
        REQUIRE(set_parameter(wanted, p, value.json).ok());
        CHECK(!same(wanted, SamplerOptions()));
        for (const std::string& option : split_words(p.options))
            CHECK(same(parsed({option, value.text}).sampling.sampler, wanted));
        if (p.setting.empty()) continue;
        std::vector<std::string> names{std::string(p.setting)};
        for (const std::string& option : split_words(p.options))
            if (option.starts_with("--")) names.push_back(option);
        for (const std::string& name : names) {
            ConversationOptions chat;
            REQUIRE(change_setting(chat, name, value.text).ok());
            CHECK(same(chat.sampling.sampler, wanted));
        }
        // The text that is shown sets the same again.
        ConversationOptions again;
        REQUIRE(change_setting(again, std::string(p.setting), parameter_text(wanted, p)).ok());
        CHECK(same(again.sampling.sampler, wanted));
    }
}

TEST_CASE("parameters: each key of a file's defaults sets its parameter, and yields to the option") {
    for (const Parameter& p : sampler_parameters()) {
        if (p.file_key.empty()) continue;
        CAPTURE(p.name);
        const std::string key = fmt::format("general.sampling.{}", p.file_key);
        const Value value = other_value(p);
        MetadataValue stored{value.text, 8};
        if (std::holds_alternative<float SamplerOptions::*>(p.member)) stored = MetadataValue{0.5, 6};
        if (std::holds_alternative<int32_t SamplerOptions::*>(p.member))
            stored = MetadataValue{int64_t(1), 5};
        const Metadata metadata = metadata_of(key, stored);
        SamplerOptions wanted;
        REQUIRE(set_parameter(wanted, p, value.json).ok());
        RunOptions run;
        Options none = declare(run);
        SamplerOptions got;
        REQUIRE(take_file_defaults(none, metadata, got).ok());
        CHECK(same(got, wanted));
        CHECK(recommended_sampling(metadata).value() == fmt::format("{} {}", p.file_key, value.text));

        const std::string option = split_words(p.options).front();
        const std::string usual = parameter_text(SamplerOptions(), p);
        Options given = declare(run);
        CHECK_FALSE(given.parse({option, usual}).has_value());
        got = {};
        REQUIRE(take_file_defaults(given, metadata, got).ok());
        CHECK(same(got, SamplerOptions()));
    }
    const Metadata wrong = metadata_of("general.sampling.top_p", MetadataValue{7.0, 6});
    SamplerOptions options;
    CHECK(recommended_sampling(wrong).error().message ==
          "key general.sampling.top_p: top_p is 7; it must be between 0 and 1 (1 turns it off)");
}

TEST_CASE("parameters: a value out of range is refused with the same message everywhere") {
    for (const Parameter& p : sampler_parameters()) {
        const Json wrong = wrong_value(p);
        if (wrong.is_null()) continue;
        CAPTURE(p.name);
        SamplerOptions options;
        const Status request = set_parameter(options, p, wrong);
        REQUIRE_FALSE(request.ok());
        CHECK(same(options, SamplerOptions()));
        CHECK(request.error().message.starts_with(p.name));
        if (p.setting.empty()) continue;
        const std::string text = wrong.is_string() ? wrong.get<std::string>() : wrong.dump();
        ConversationOptions chat;
        CHECK(change_setting(chat, std::string(p.setting), text).error().message == request.error().message);
        RunOptions run;
        Options command = declare(run);
        CHECK_FALSE(command.parse({split_words(p.options).front(), text}).has_value());
        CHECK(check_options(run.sampling.sampler).error().message == request.error().message);
        CHECK(Sampler::create(run.sampling.sampler, {10, 10, {}}).error().message == request.error().message);
    }
}

TEST_CASE("parameters: a request's value of another kind is refused and changes nothing") {
    const auto refused = [](std::string_view name, const Json& value) {
        SamplerOptions options;
        const Status set = set_parameter(options, *find_parameter(name), value);
        CHECK(same(options, SamplerOptions()));
        return set ? "accepted" : set.error().message;
    };
    CHECK(refused("temperature", "hot") == "temperature takes a number, not \"hot\"");
    CHECK(refused("top_k", 1.5) == "top_k takes a whole number, not 1.5");
    CHECK(refused("top_k", 1e10) == "top_k takes a whole number, not 10000000000.0");
    CHECK(refused("seed", -2) == "seed is -2; it must be -1 or more");
    CHECK(refused("samplers", 5) == "samplers takes a text or a list of texts, not 5");
    CHECK(refused("dry_sequence_breakers", Json::array({1})) ==
          "dry_sequence_breakers takes a list of texts, not [1]");
    CHECK(refused("logit_bias", {{"a", 1}}).starts_with("logit_bias takes numbers by token"));
    SamplerOptions options;
    REQUIRE(set_parameter(options, *find_parameter("logit_bias"), Json::array({{5, false}, {6, -1}})).ok());
    CHECK(options.logit_bias ==
          std::vector<std::pair<int32_t, float>>{{5, -std::numeric_limits<float>::infinity()}, {6, -1.0f}});
    REQUIRE(set_parameter(options, *find_parameter("seed"), -1).ok());
    CHECK(options.seed == kRandomSeed);
}
