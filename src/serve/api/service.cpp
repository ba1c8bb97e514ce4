#include "serve/api/service.h"

#include <chrono>
#include <ctime>
#include <random>

namespace redline::serve {

Result<ChatWriter> Service::writer(std::optional<bool> thinking, const Json& variables) {
    constexpr size_t kMostKept = 16;
    const std::string key = fmt::format("{} {}", thinking ? int(*thinking) : -1, variables.dump());
    {
        const std::lock_guard lock(mutex_);
        const auto found = writers_.find(key);
        if (found != writers_.end()) return found->second;
    }
    ChatWriterOptions options = served.writer;
    if (thinking) options.thinking = thinking;
    for (const auto& [name, value] : variables.items()) options.variables[name] = value;
    ChatWriter made = RL_TRY(ChatWriter::create(*served.model, options));
    const std::lock_guard lock(mutex_);
    if (writers_.size() >= kMostKept) writers_.clear();
    writers_.emplace(key, made);
    return made;
}

Result<std::shared_ptr<Constraint>> Service::constraint(const std::string& grammar) {
    constexpr size_t kMostKept = 16;
    std::unique_ptr<Constraint> made;
    {
        const std::lock_guard lock(constraints_->mutex);
        if (const auto found = constraints_->kept.find(grammar); found != constraints_->kept.end())
            made = std::move(constraints_->kept.extract(found).mapped());
    }
    if (!made) {
        Grammar parsed = RL_TRY(Grammar::parse(grammar));
        made = RL_TRY(Constraint::create(std::move(parsed), tokenizer(), served.model->usable_vocab()));
    }
    made->expect_reasoning({}, {}, false);
    return std::shared_ptr<Constraint>(made.release(), [store = constraints_, grammar](Constraint* used) {
        std::unique_ptr<Constraint> back(used);
        const std::lock_guard lock(store->mutex);
        if (store->kept.size() < kMostKept) store->kept.emplace(grammar, std::move(back));
    });
}

std::string new_id(std::string_view prefix) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    thread_local std::mt19937_64 random{std::random_device{}()};
    std::string id(prefix);
    for (int i = 0; i < 24; ++i) id += kLetters[random() % kLetters.size()];
    return id;
}

int64_t seconds_now() {
    using namespace std::chrono;
    return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

std::string rfc3339(int64_t seconds) {
    const std::time_t time = seconds;
    std::tm parts = {};
    ::gmtime_r(&time, &parts);
    char text[32];
    return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace redline::serve
