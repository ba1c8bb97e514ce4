#include "grammar/schema_refs.h"

#include "grammar/json_rules.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace redline {
namespace {

std::string percent_decoded(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        uint8_t byte = 0;
        const char* const hex = text.data() + i + 1;
        const bool coded =
            text[i] == '%' && i + 2 < text.size() && std::from_chars(hex, hex + 2, byte, 16).ptr == hex + 2;
        out += coded ? char(byte) : text[i];
        if (coded) i += 2;
    }
    return out;
}

// Resolves an address without its fragment against a base, as far as names within one document need it.
std::string joined(const std::string& base, const std::string& address) {
    const size_t scheme = address.find(':');
    if (address.empty()) return base;
    if (scheme != address.npos && scheme < address.find('/')) return address;
    const size_t host = base.find("://");
    const size_t path = base.find('/', host == base.npos ? 0 : host + 3);
    if (address[0] == '/') return base.substr(0, std::min(path, base.size())) + address;
    const size_t folder = base.rfind('/');
    const bool in_folder = folder != base.npos && (host == base.npos || folder >= host + 3);
    return (in_folder ? base.substr(0, folder + 1) : "") + address;
}

struct Address {
    std::string document;
    std::string fragment;
};

Address split(const std::string& base, const std::string& text) {
    const size_t mark = std::min(text.find('#'), text.size());
    return {joined(base, text.substr(0, mark)),
            mark < text.size() ? percent_decoded(std::string_view(text).substr(mark + 1)) : ""};
}

class Resolver {
public:
    explicit Resolver(Json& root) : root_(root) {}

    void run() {
        documents_[""] = "";
        walk(root_, "", "", [this](Json& schema, const std::string& base, const std::string& at) {
            note(schema, base, at);
        });
        walk(root_, "", "",
             [this](Json& schema, const std::string& base, const std::string&) { rewrite(schema, base); });
    }

private:
    static const std::string* text_at(const Json& schema, const char* key) {
        const auto found = schema.find(key);
        return found != schema.end() && found->is_string() ? found->get_ptr<const std::string*>() : nullptr;
    }

    static const std::string* id_of(const Json& schema) {
        const std::string* const id = text_at(schema, "$id");
        return id ? id : text_at(schema, "id");
    }

    // Visits all objects except those that are data, or hold schemas under arbitrary names.
    template <typename Visit>
    void walk(Json& value, std::string base, const std::string& at, const Visit& visit,
              bool by_name = false) {
        constexpr std::string_view kData[] = {"const", "enum", "default", "example", "examples"};
        constexpr std::string_view kByName[] = {"properties", "patternProperties", "dependentSchemas",
                                                "$defs",      "definitions",       "schemas"};
        const auto is_in = [](const auto& list, const std::string& key) {
            return std::find(std::begin(list), std::end(list), key) != std::end(list);
        };
        if (value.is_array())
            for (size_t i = 0; i < value.size(); ++i)
                walk(value[i], base, fmt::format("{}/{}", at, i), visit);
        if (!value.is_object()) return;
        if (!by_name) {
            if (const std::string* const id = id_of(value); id && !id->starts_with("#"))
                base = split(base, *id).document;
            visit(value, base, at);
        }
        for (auto& [key, inner] : value.items())
            if (by_name || !is_in(kData, key))
                walk(inner, base, member_pointer(at, key), visit, !by_name && is_in(kByName, key));
    }

    void note(const Json& schema, const std::string& base, const std::string& at) {
        if (const std::string* const id = id_of(schema)) {
            if (id->starts_with("#"))
                anchors_.try_emplace({base, id->substr(1)}, at);
            else
                documents_.try_emplace(base, at);
        }
        for (const char* key : {"$anchor", "$dynamicAnchor"})
            if (const std::string* const name = text_at(schema, key)) {
                anchors_.try_emplace({base, *name}, at);
                if (key == std::string_view("$dynamicAnchor")) dynamic_[*name].push_back(at);
            }
    }

    void rewrite(Json& schema, const std::string& base) {
        if (const std::string* const ref = text_at(schema, "$ref"))
            if (const auto found = find(base, *ref)) schema["$ref"] = "#" + *found;
        const std::string* dynamic = text_at(schema, "$dynamicRef");
        if (!dynamic) dynamic = text_at(schema, "$recursiveRef");
        if (!dynamic || schema.contains("$ref")) return;
        const auto places = dynamic_.find(split(base, *dynamic).fragment);
        if (places != dynamic_.end() && places->second.size() > 1) return;
        const auto found = find(base, *dynamic);
        if (!found) return;
        schema.erase("$dynamicRef");
        schema.erase("$recursiveRef");
        schema["$ref"] = "#" + *found;
    }

    // The pointer to the target of a reference.
    std::optional<std::string> find(const std::string& base, const std::string& ref) const {
        const Address address = split(base, ref);
        const auto document = documents_.find(address.document);
        if (!address.fragment.empty() && address.fragment[0] != '/') {
            const auto anchor = anchors_.find({address.document, address.fragment});
            return anchor != anchors_.end() ? std::optional(anchor->second) : std::nullopt;
        }
        // A pointer is relative to its document; generators nevertheless count from the root.
        if (document != documents_.end() && is_there(document->second + address.fragment))
            return document->second + address.fragment;
        if (ref.starts_with("#") && is_there(address.fragment)) return address.fragment;
        return {};
    }

    bool is_there(const std::string& pointer) const {
        try {
            return root_.contains(nlohmann::json_pointer<std::string>(pointer));
        } catch (const Json::exception&) {
            return false;
        }
    }

    Json& root_;
    std::map<std::string, std::string> documents_;  // pointers by address
    std::map<std::pair<std::string, std::string>, std::string> anchors_;
    std::map<std::string, std::vector<std::string>> dynamic_;
};

}  // namespace

void resolve_references(Json& root) {
    Resolver(root).run();
}

}  // namespace redline
