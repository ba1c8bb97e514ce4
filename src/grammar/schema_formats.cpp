#include "grammar/schema_formats.h"

#include <algorithm>

namespace redline {
namespace {

std::string either(std::initializer_list<std::string> parts) {
    std::string out;
    for (const std::string& part : parts) out += (out.empty() ? "(?:" : "|") + part;
    return out + ")";
}

std::string ipv4() {
    const std::string octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    return "(?:" + octet + "\\.){3}" + octet;
}

// RFC 4291: eight groups, of which :: stands for one or more; the last two may be an IPv4 address.
std::string ipv6() {
    const std::string group = "[0-9a-fA-F]{1,4}";
    std::string out = fmt::format("(?:(?:{0}:){{7}}{0}|(?:{0}:){{6}}{1}", group, ipv4());
    for (int before = 0; before < 8; ++before) {
        std::string left = before > 0 ? group : "";
        if (before > 1) left += fmt::format("(?::{}){{{}}}", group, before - 1);
        const int after = 7 - before;
        out += "|" + left + "::";
        if (after > 0) out += fmt::format("(?:{0}(?::{0}){{0,{1}}})?", group, after - 1);
        if (after > 1) out += fmt::format("|{}::(?:{}:){{0,{}}}{}", left, group, after - 2, ipv4());
    }
    return out + ")";
}

std::string date() {
    return either({"[0-9]{4}-(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
                   "[0-9]{4}-(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)", "[0-9]{4}-02-(?:0[1-9]|1[0-9]|2[0-8])",
                   "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29"});
}

std::string time() {
    return "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?"
           "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
}

// RFC 3339, appendix A.
std::string duration() {
    const std::string time = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
    const std::string date = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
    return "P" + either({"[0-9]+W", date + "(?:" + time + ")?", time});
}

const std::string kLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

std::string hostname() {
    return kLabel + "(?:\\." + kLabel + ")*";
}

// An everyday address: no quotes, no comments, and a host of at least two labels.
std::string email() {
    const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
    return atom + "(?:\\." + atom + ")*@" + kLabel + "(?:\\." + kLabel + ")+";
}

// RFC 3986; the names are those of its rules.
class Uris {
public:
    std::string absolute() const {
        return scheme() + ":" + either({net_path(), rooted(), segment(":@") + "+" + segments()}) + end();
    }
    std::string relative() const {
        return either({net_path(), rooted(), "(?:" + segment("@") + "+" + segments() + ")?"}) + end();
    }
    std::string of_hosts() const {
        const std::string host = hostname() + "(?::[0-9]{1,5})?";
        return scheme() + "://(?:" + segment(":") + "*@)?" + host + "(?:," + host + ")*" + segments() + end();
    }

private:
    static std::string scheme() { return "[A-Za-z][A-Za-z0-9+.-]*"; }
    static std::string segment(const std::string& more) {
        return "(?:[" + more + "A-Za-z0-9._~!$&'()*+,;=-]|%[0-9a-fA-F]{2})";
    }
    static std::string segments() { return "(?:/" + segment(":@") + "*)*"; }
    static std::string net_path() {
        return "//(?:" + segment(":") + "*@)?" + either({"\\[" + ipv6() + "\\]", segment("") + "*"}) +
               "(?::[0-9]*)?" + segments();
    }
    static std::string rooted() { return "/(?:" + segment(":@") + "+" + segments() + ")?"; }
    static std::string end() { return "(?:\\?" + segment(":@/?") + "*)?(?:#" + segment(":@/?") + "*)?"; }
};

std::string uuid(const std::string& version) {
    const std::string hex = "[0-9a-fA-F]";
    const std::string variant = version == hex ? hex : "[89abAB]";
    return fmt::format("{0}{{8}}-{0}{{4}}-{1}{0}{{3}}-{2}{0}{{3}}-{0}{{12}}", hex, version, variant);
}

std::optional<std::string> address_pattern(std::string_view name) {
    const std::string bits4 = "/(?:3[0-2]|[12]?[0-9])", bits6 = "/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])";
    const std::string with4 = ipv4() + "(?:" + bits4 + ")?", with6 = ipv6() + "(?:" + bits6 + ")?";
    if (name == "ipv4") return ipv4();
    if (name == "ipv6") return ipv6();
    if (name == "ip" || name == "ipvanyaddress") return either({ipv4(), ipv6()});
    if (name == "ipv4interface" || name == "ipv4network") return with4;
    if (name == "ipv6interface" || name == "ipv6network") return with6;
    if (name == "ipvanyinterface" || name == "ipvanynetwork") return either({with4, with6});
    if (name == "cidrv4") return ipv4() + bits4;
    if (name == "cidrv6") return ipv6() + bits6;
    if (name == "hostname" || name == "idn-hostname") return hostname();
    if (name == "email" || name == "idn-email") return email();
    if (name == "name-email")
        return either({"[A-Za-z0-9._-]+(?: [A-Za-z0-9._-]+)* <" + email() + ">", email()});
    if (name == "uri" || name == "url" || name == "iri") return Uris().absolute();
    if (name == "uri-reference" || name == "iri-reference")
        return either({Uris().absolute(), Uris().relative()});
    if (name == "multi-host-uri") return Uris().of_hosts();
    return {};
}

std::optional<std::string> other_pattern(std::string_view name) {
    constexpr std::string_view kPointer = "(?:/(?:[^~/]|~[01])*)*";
    if (name == "date") return date();
    if (name == "time") return time();
    if (name == "date-time") return date() + "T" + time();
    if (name == "duration") return duration();
    if (name == "uuid" || name == "guid") return uuid("[0-9a-fA-F]");
    if (name.size() == 5 && name.starts_with("uuid") && name[4] >= '1' && name[4] <= '8')
        return uuid(std::string(name.substr(4)));
    if (name == "json-pointer") return std::string(kPointer);
    if (name == "relative-json-pointer") return fmt::format("(?:0|[1-9][0-9]*)(?:#|{})", kPointer);
    if (name == "byte" || name == "base64")
        return "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?";
    if (name == "base64url")
        return "(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw](?:==)?|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=?)?";
    if (name == "decimal") return "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?";
    if (name == "e164") return "\\+[1-9][0-9]{6,14}";
    if (name == "ulid") return "[0-7][0-9A-HJKMNP-TV-Z]{25}";
    if (name == "nanoid") return "[a-zA-Z0-9_-]{21}";
    return {};
}

}  // namespace

std::optional<std::string> format_pattern(std::string_view name) {
    std::optional<std::string> found = address_pattern(name);
    if (!found) found = other_pattern(name);
    return found ? std::optional("^(?:" + *found + ")$") : std::nullopt;
}

std::optional<uint64_t> format_most(std::string_view name) {
    const bool host = name == "hostname" || name == "idn-hostname";
    return host ? std::optional<uint64_t>(253) : std::nullopt;
}

std::string_view format_rest(std::string_view name) {
    return name.ends_with("network") ? "bits behind the prefix may be set" : "";
}

bool is_free_format(std::string_view name) {
    constexpr std::string_view kFree[] = {
        "",         "binary",   "password",    "path",    "file-path", "string", "directory-path",
        "textarea", "text",     "json-string", "float",   "double",    "number", "integer",
        "html",     "markdown", "int",         "decimal", "single-int"};
    return std::find(std::begin(kFree), std::end(kFree), name) != std::end(kFree);
}

std::optional<NumberRange> format_range(std::string_view name) {
    const bool is_signed = name.starts_with("int");
    if (!is_signed && !name.starts_with("uint")) return {};
    struct Width {
        std::string_view bits, least, most, most_unsigned;
    };
    constexpr Width kWidths[] = {
        {"8", "128", "127", "255"},
        {"16", "32768", "32767", "65535"},
        {"32", "2147483648", "2147483647", "4294967295"},
        {"64", "9223372036854775808", "9223372036854775807", "18446744073709551615"},
        {"128", "170141183460469231731687303715884105728", "170141183460469231731687303715884105727",
         "340282366920938463463374607431768211455"},
    };
    for (const Width& width : kWidths) {
        if (name.substr(is_signed ? 3 : 4) != width.bits) continue;
        NumberRange out;
        out.low = {Decimal{is_signed, is_signed ? std::string(width.least) : "0", ""}, false};
        out.high = {Decimal{false, std::string(is_signed ? width.most : width.most_unsigned), ""}, false};
        return out;
    }
    return name == "uint" ? std::optional(NumberRange{NumberRange::Bound{}, {}}) : std::nullopt;
}

}  // namespace redline
