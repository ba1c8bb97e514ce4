// A model, a session and a sampler of the C interface, and what its tests do with them.
#pragma once

#include "api/redline.h"

#include "support/backends.h"
#include "support/material.h"
#include "support/models.h"
#include "support/program.h"

#include <memory>
#include <string>
#include <vector>

namespace redline::test {

struct Free {
    void operator()(redline_model* model) const { redline_model_free(model); }
    void operator()(redline_session* session) const { redline_session_free(session); }
    void operator()(redline_sampler* sampler) const { redline_sampler_free(sampler); }
};
using OneModel = std::unique_ptr<redline_model, Free>;
using OneSession = std::unique_ptr<redline_session, Free>;
using OneSampler = std::unique_ptr<redline_sampler, Free>;

inline OneModel open_model(const std::string& path, uint64_t context = 0) {
    redline_model_options options = REDLINE_MODEL_OPTIONS;
    options.device = "cpu";
    options.context = context;
    OneModel model(redline_model_load(path.c_str(), &options));
    REQUIRE_MESSAGE(model, redline_error());
    return model;
}

inline std::vector<int32_t> tokens_of(const redline_model* model, const std::string& text, int flags = 0) {
    std::vector<int32_t> tokens(size_t(redline_tokenize(model, text.data(), text.size(), flags, nullptr, 0)));
    CHECK(redline_tokenize(model, text.data(), text.size(), flags, tokens.data(), tokens.size()) ==
          int64_t(tokens.size()));
    return tokens;
}

inline std::string text_of(const redline_model* model, int32_t token) {
    char bytes[64];
    const int64_t count = redline_piece(model, token, 0, bytes, sizeof bytes);
    // Only with encodings that put a space before a text is it another one at the beginning.
    for (const int32_t previous : {-1, token}) {
        char after[64];
        CHECK(redline_piece_after(model, previous, token, 0, after, sizeof after) == count);
        CHECK(std::string(after, size_t(count)) == std::string(bytes, size_t(count)));
    }
    return std::string(bytes, size_t(count));
}

// Generates at most `count` tokens after those that a session has read.
inline std::string continued(const redline_model* model, redline_session* session, redline_sampler* sampler,
                             int count) {
    std::string text;
    for (; count > 0; --count) {
        const int32_t token = redline_sample(sampler, session);
        REQUIRE_MESSAGE(token >= 0, redline_error());
        if (redline_is_end(model, token)) break;
        text += text_of(model, token);
        REQUIRE_MESSAGE(redline_feed(session, &token, 1) == 0, redline_error());
    }
    return text;
}

inline OneSampler greedy(const redline_session* session, const char* grammar = nullptr) {
    redline_sampler_options options = REDLINE_SAMPLER_OPTIONS;
    options.temperature = 0;
    options.grammar = grammar;
    OneSampler sampler(redline_sampler_new(session, &options));
    REQUIRE_MESSAGE(sampler, redline_error());
    return sampler;
}

// Collects what the library tells.
struct Told {
    std::string notes, plan;
    uint64_t done = 0, total = 0;

    static void note(void* user, int kind, const char* text) {
        auto& told = *static_cast<Told*>(user);
        if (kind == REDLINE_NOTE) told.notes += std::string(text) + "\n";
        if (kind == REDLINE_INFORM) told.plan += std::string(text) + "\n";
    }
    static void progress(void* user, const char* work, uint64_t done, uint64_t total) {
        auto& told = *static_cast<Told*>(user);
        if (std::string(work) != "loading") return;
        told.done = done;
        told.total = total;
    }
    void listen(redline_model_options& options) {
        options.note = note;
        options.progress = progress;
        options.user = this;
    }
};

// A device beside the CPU, as the library takes it; empty: there is none.
inline std::string other_device() {
    for (const char* name : {"hip", "vulkan"})
        if (open_wanted(name)) return name;
    return "";
}

inline OneModel load_with(const redline_model_options& options, const std::string& path) {
    OneModel model(redline_model_load(path.c_str(), &options));
    REQUIRE_MESSAGE(model, redline_error());
    return model;
}

// Six tokens of the tiny model behind a prompt of eight, all of which depend on each other.
inline std::vector<int32_t> six_tokens(redline_session* session, redline_sampler* sampler) {
    const std::vector<int32_t> prompt = {3, 17, 5, 40, 8, 21, 33, 2};
    REQUIRE_MESSAGE(redline_feed(session, prompt.data(), prompt.size()) == 0, redline_error());
    std::vector<int32_t> made;
    for (int i = 0; i < 6; ++i) {
        made.push_back(redline_sample(sampler, session));
        REQUIRE_MESSAGE(made.back() >= 0, redline_error());
        REQUIRE_MESSAGE(redline_feed(session, &made.back(), 1) == 0, redline_error());
    }
    return made;
}

inline redline_model_options tiny_options(const char* device) {
    redline_model_options options = REDLINE_MODEL_OPTIONS;
    options.device = device;
    options.context = 64;
    options.batch = 4;
    options.cache_type = "f32";
    options.kernel_check = -1;
    return options;
}

// HIP's double takes a fault from the environment when the call comes.
class Fault {
public:
    explicit Fault(const char* what) { ::setenv("RL_HIP_DOUBLE_FAIL", what, 1); }
    ~Fault() { ::unsetenv("RL_HIP_DOUBLE_FAIL"); }
};

inline bool has_hip_double() {
    const auto hip = open_wanted("hip");
    return hip && has(hip->device().name, "double");
}

}  // namespace redline::test
