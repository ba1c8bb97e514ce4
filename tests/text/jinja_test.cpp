#include "json/json.h"
#include "support/material.h"
#include "support/text_support.h"
#include "text/jinja/template.h"

using namespace redline;
using namespace redline::test;

namespace {

// 21 November 2026, the day of the goldens.
std::tm golden_day() {
    std::tm day = {};
    day.tm_year = 126;
    day.tm_mon = 10;
    day.tm_mday = 21;
    day.tm_wday = 6;
    day.tm_yday = 324;
    return day;
}

Result<std::vector<TextPart>> render_parts(std::string_view source, const Json& variables,
                                           const jinja::Limits& limits = {}) {
    jinja::Template parsed = RL_TRY(jinja::Template::parse(source));
    jinja::Store store(limits);
    const jinja::Value values = RL_TRY(jinja::value_of(store, variables));
    return parsed.render(store, values.dict(), golden_day());
}

// The text, or "error: ...".
std::string render(std::string_view source, const Json& variables = Json::object(),
                   const jinja::Limits& limits = {}) {
    const auto parts = render_parts(source, variables, limits);
    if (!parts) return "error: " + parts.error().message;
    std::string text;
    for (const TextPart& part : parts.value()) text += part.text;
    return text;
}

// With what is given in angle brackets: "a<user>b".
std::string marked(std::string_view source, const Json& variables) {
    const auto parts = render_parts(source, variables);
    if (!parts) return "error: " + parts.error().message;
    std::string text;
    for (const TextPart& part : parts.value()) text += part.scaffold ? part.text : "<" + part.text + ">";
    return text;
}

std::string repeated(const std::string& text, size_t times) {
    std::string all;
    for (size_t i = 0; i < times; ++i) all += text;
    return all;
}

}  // namespace

TEST_CASE("jinja: every feature of the language gives what jinja2 gives, and refuses what it refuses") {
    const Json all = parse_json(read_file(golden("text/jinja_language.json")));
    CHECK(all["cases"].size() > 200);
    for (const Json& sample : all["cases"]) {
        const std::string source = sample["source"];
        CAPTURE(source);
        const std::string got = render(source, all["variables"]);
        if (sample["text"].is_null())
            CHECK(got.starts_with("error: line "));
        else
            CHECK(got == sample["text"].get<std::string>());
    }
}

TEST_CASE("jinja: errors say line and column and what") {
    CHECK(render("a\nb {{ x.y }}") == "error: line 2, column 8: 'x' is undefined and has no attribute \"y\"");
    CHECK(render("{% for x in [1] %}\n{{ x + 'a' }}{% endfor %}") ==
          "error: line 2, column 6: \"+\" is not defined between values of the types int and str");
    CHECK(render("{{ 'äöü' | nothing }}") == "error: line 1, column 12: there is no filter \"nothing\"");
    CHECK(render("{% include 'x' %}") ==
          "error: line 1, column 4: \"include\" is no statement that chat templates know");
    CHECK(render("{{ raise_exception('roles must alternate') }}") ==
          "error: line 1, column 4: the template refuses the conversation: roles must alternate");
}

TEST_CASE("jinja: what was given stays marked through every operation") {
    const Json v = {{"u", "User"}, {"l", {"a", "b"}}, {"d", {{"k", "w"}}}};
    CHECK(marked("[{{ u }}]", v) == "[<User>]");
    CHECK(marked("{{ '[' + u + ']' }}{{ 'x' ~ u ~ 1 }}", v) == "[<User>]x<User>1");
    CHECK(marked("{{ ('[' + u + ']')[1:3] }}{{ ('[' + u + ']')[0] }}", v) == "<Us>[");
    CHECK(marked("{{ (' ' + u + ' ')|trim }}{{ ('(' + u)|upper }}", v) == "<User>(<USER>");
    CHECK(marked("{{ u|replace('s', '-') }}{{ 'a.b'|replace('.', u) }}", v) == "<U>-<er>a<User>b");
    CHECK(marked("{{ l|join('|') }}{{ u.split('s')[1] }}{{ u|list|join }}", v) == "<a>|<berUser>");
    CHECK(marked("{{ u|tojson }}{{ d|tojson }}", v) == "<\"User\"{\"k\": \"w\"}>");
    CHECK(marked("{{ '%s!' % u }}{{ '<%s>'|format(u) }}{{ '{}.'.format(u) }}", v) ==
          "<User>!<<User>><User>.");
    CHECK(marked("{{ d }}|{{ l }}", v) == "<{'k': 'w'}>|<['a', 'b']>");
    CHECK(marked("{% set x %}({{ u }}){% endset %}{{ x }}", v) == "(<User>)");
    CHECK(marked("{% macro m(a) %}<{{ a }}{% endmacro %}{{ m(u) }}{% filter upper %}a{{ u }}{% endfilter %}",
                 v) == "<<User>A<USER>");
    CHECK(marked("{% for k in d %}{{ k }}{% endfor %}{{ u|title }}{{ u|indent }}", v) == "<kUserUser>");
    CHECK(marked("{{ u|first }}{{ u|reverse }}{{ u|center(8) }}{{ (u ~ '.')|truncate(5, true, '', 0) }}",
                 v) == "<UresU>  <User>  <User>.");
}

TEST_CASE("jinja: a template that would take for ever, fill the memory or the stack ends with an error") {
    const std::string loops = repeated("{% for a in range(100000) %}", 4) + "x" + repeated("{% endfor %}", 4);
    CHECK(mentions(render(loops, Json::object(), {.steps = 1'000'000}), "takes more than 1 million steps"));
    const jinja::Limits small = {.bytes = uint64_t(1) << 20};
    CHECK(mentions(render("{{ 'x' * 1000000000000 }}", Json::object(), small), "more than 1 MiB"));
    CHECK(mentions(render("{{ [0] * 1000000000000 }}", Json::object(), small), "more than 1 MiB"));
    CHECK(mentions(render("{% set ns = namespace(s='x') %}{% for i in range(99) %}"
                          "{% set ns.s = ns.s + ns.s %}{% endfor %}",
                          Json::object(), small),
                   "more than 1 MiB"));
    CHECK(mentions(render("{{ ('a' * 9999)|replace('', 'b' * 9999) }}", Json::object(), small),
                   "more than 1 MiB"));
    CHECK(
        mentions(render("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
                        "{% endfor %}{{ ns.l }}",
                        Json::object(), small),
                 "more than 1 MiB"));
    CHECK(mentions(render("{{ 'x'.ljust(1000000000) }}", Json::object(), small), "more than 1 MiB"));
    CHECK(mentions(render("{% for i in range(100000) %}{{ 'abcdefghijklmnop' }}{% endfor %}", Json::object(),
                          {.output = 1 << 20}),
                   "writes more than 1 MiB"));
    CHECK(mentions(render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
                   "nested deeper than 1000 levels"));
}

TEST_CASE("jinja: looking through long texts counts as steps") {
    const std::string text = "{% set a = 'aaaaaaaaaa' * 400000 %}{% set b = 'aaaaaaaaaa' * 200000 ~ 'b' %}";
    const std::string again = "{% for i in range(100000) %}";
    const jinja::Limits limits = {.steps = 1'000'000};
    for (const char* use : {"{{ b in a }}", "{{ a.find(b) }}", "{{ a.rfind(b) }}", "{{ a.count(b) }}",
                            "{{ a.split(b) }}", "{{ a.partition(b) }}", "{{ a|replace(b, '') }}"})
        CHECK_MESSAGE(mentions(render(text + use, Json::object(), limits), "more than 1 million steps"), use);
    for (const char* use : {"{{ a|length }}", "{{ a|wordcount }}", "{{ a|int }}", "{{ a.strip('b') }}"})
        CHECK_MESSAGE(mentions(render(text + again + use + "{% endfor %}", Json::object(), limits),
                               "more than 1 million steps"),
                      use);
    // Templates typically search for short markers in long texts.
    CHECK(render(text + "{{ a.split('</think>')|length }}{{ '<tool>' in a }}{{ a.rfind('</s>') }}",
                 Json::object(), {.steps = 2'000'000}) == "1False-1");
}

TEST_CASE("jinja: integers at the ends of what 64 bits hold") {
    CHECK(render("{{ range(-9223372036854775807, 9223372036854775807, 9223372036854775807) }}") ==
          "range(-9223372036854775807, 9223372036854775807, 9223372036854775807)");
    CHECK(render("{{ range(-9223372036854775807, 9223372036854775807, 4000000000000000000)[::4]|list }}") ==
          "[-9223372036854775807, 6776627963145224193]");
    CHECK(render("{{ range(-9223372036854775807, 9223372036854775807, 4000000000000000000)[::4] }}")
              .ends_with(", 16000000000000000000)"));
    CHECK(mentions(render("{{ 9223372036854775807|round(-1) }}"), "more than 64 bits"));
    CHECK(render("{{ 1234|round(-2) }}") == "1200");
}

TEST_CASE("jinja: sources that are nested deeply or broken are refused, not run into") {
    for (const char* open : {"(", "[", "{1:", "-", "not ", "a(", "a[", "a if b else ", "x|f("})
        CHECK(render("{{ " + repeated(open, 100000) + "1").starts_with("error: line 1"));
    for (const char* link : {".a", "[0]", "()", "|f", "+1", " is t", "**2", " and 1", " or 1"})
        CHECK(render("{{ a" + repeated(link, 100000) + " }}").starts_with("error: "));
    CHECK(render(repeated("{% if 1 %}", 100000)).starts_with("error: line 1"));
    CHECK(render(repeated("{% for x in y %}", 1000)).starts_with("error: line 1"));
    CHECK(render("{{ 99999999999999999999 }}").starts_with("error: line 1, column 4"));
    CHECK(render("{{ 9223372036854775807 + 1 }}").starts_with("error: line 1"));
    CHECK(render("{{ '%' % 1 }}{{ '%99999999999s' % 1 }}{{ '%(' % {} }}").starts_with("error: line 1"));
    CHECK(render("\xFF{{ '\xC3' }}\xE2\x82").size() == 9);
    // Lists that contain themselves: nothing is gone through without end.
    CHECK(mentions(render("{% set a = [] %}{% set _ = a.append(a) %}{{ a }}"), "[[[[["));
    CHECK(mentions(render("{% set a = [] %}{% set _ = a.append(a) %}{{ a|tojson }}"), "nested deeper"));
    CHECK(render("{% set a = [] %}{% set b = [] %}{% set _ = a.append(b) %}{% set _ = b.append(a) %}{{ a == "
                 "b }}") == "False");
}

TEST_CASE("jinja: a chain of a million lists is freed without recursion") {
    CHECK(render("{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% for j in range(200) %}"
                 "{% set ns.l = [ns.l] %}{% endfor %}{% endfor %}ok") == "ok");
}
