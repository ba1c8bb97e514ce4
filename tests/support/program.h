// The program under test, models for it, and what its answers are held to.
#pragma once

#include "support/backends.h"
#include "support/chain_model.h"
#include "support/material.h"
#include "support/process.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace redline::test {

struct TemporaryFolder {
    std::filesystem::path path;
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "redline_cli_XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

inline std::string file(const std::string& name) {
    static const TemporaryFolder folder;
    return folder.path / name;
}

inline void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

// The chain model: "a" is followed by "b", "c", ..., "z", the euro sign, "!", and the end.
inline std::string chain_model() {
    static const std::string path = [] {
        ChainModel().build().save(file("chain.gguf"));
        return file("chain.gguf");
    }();
    return path;
}

// Likewise, with experts.
inline std::string mixture_model() {
    static const std::string path = [] {
        ChainModel chain;
        chain.experts = 32;
        chain.build().save(file("mixture.gguf"));
        return file("mixture.gguf");
    }();
    return path;
}

// After "z" comes "a" again, for ever.
inline std::string ring_model() {
    static const std::string path = [] {
        ChainModel chain;
        chain.next[ChainModel::kLetterA + 25] = ChainModel::kLetterA;
        chain.build().save(file("ring.gguf"));
        return file("ring.gguf");
    }();
    return path;
}

inline std::string chat_model() {
    static const std::string path = [] {
        ChainModel chain;
        chain.chat = true;
        chain.build().save(file("chat.gguf"));
        return file("chat.gguf");
    }();
    return path;
}

// Its template opens the reasoning; the model thinks "abc" and answers "xyz".
inline std::string thinking_model() {
    static const std::string path = [] {
        ChainModel chain;
        chain.chat = true;
        chain.chat_template.insert(chain.chat_template.rfind("{% endif %}"),
                                   "{% if enable_thinking|default(true) %}{{ '<think>\n' }}"
                                   "{% else %}{{ '<think>\n\n</think>\n\n' }}{% endif %}");
        const std::string mark = "</think>";
        int32_t last = ChainModel::kLetterA + 2;
        for (const char letter : mark) last = chain.next[last] = ChainModel::kByte0 + letter;
        chain.next[last] = ChainModel::kLetterA + 23;
        chain.next[ChainModel::kLetterA + 25] = ChainModel::kEos;
        chain.build().save(file("thinking.gguf"));
        return file("thinking.gguf");
    }();
    return path;
}

inline std::string program() {
    const char* moved = std::getenv("RL_REDLINE");
    return moved ? moved : RL_REDLINE;
}

// The device for commands that name none: the default depends on the machine.
inline std::string& device() {
    static std::string name = "cpu";
    return name;
}

inline std::string backend() {
    return device().substr(0, device().find(':'));
}

// For what depends on the device: on each that is here.
inline void on_each_device(const std::function<void()>& test) {
    for (const std::string& name : device_names()) {
        INFO("on ", name);
        device() = name;
        test();
    }
    device() = "cpu";
}

// The program's arguments, with the device where the command takes one.
inline Launch command(std::vector<std::string> arguments) {
    const std::string name = arguments.empty() ? "" : arguments[0];
    for (const char* taker : {"run", "chat", "bench", "info", "eval"})
        if (name == taker) arguments.insert(arguments.begin() + 1, {"--device", device()});
    arguments.insert(arguments.begin(), program());
    Launch what;
    what.arguments = std::move(arguments);
    return what;
}

inline Outcome redline_(std::vector<std::string> arguments, std::optional<std::string> input = {}) {
    Launch what = command(std::move(arguments));
    what.input = std::move(input);
    return launch(what);
}

// `run` on the chain model, greedy, on one thread.
inline std::vector<std::string> greedy(std::vector<std::string> more) {
    std::vector<std::string> all = {"run", "-m", chain_model(), "--temp", "0", "-t", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// An error is one line on standard error, nothing on standard output, and an exit code.
inline void check_refused(const std::vector<std::string>& arguments, int code,
                          const std::vector<std::string>& words) {
    const Outcome got = redline_(arguments);
    INFO("redline ", fmt::format("{}", fmt::join(arguments, " ")), "\n", got.err);
    CHECK(got.code == code);
    CHECK(got.out.empty());
    CHECK(got.err.starts_with("redline: "));
    CHECK(std::count(got.err.begin(), got.err.end(), '\n') == 1);
    for (const std::string& word : words) CHECK_MESSAGE(has(got.err, word), "expected: ", word);
}

}  // namespace redline::test
