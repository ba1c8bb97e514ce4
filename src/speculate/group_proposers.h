// Guesses for several texts at a time: by the MTP head, and by a smaller model.
#pragma once

#include "speculate/shared_speculation.h"

namespace redline {

class GroupMtp : public GroupProposer {
public:
    explicit GroupMtp(Engine& engine) : engine_(engine) {}

    std::string_view name() const override { return "draft-mtp"; }
    Status propose(std::span<TextDraft* const> drafts, const std::atomic<bool>* cancel) override;

private:
    Engine& engine_;
};

// Each text has a sequence of the smaller model's engine, TextGuesses::reader.
class GroupDraftModel : public GroupProposer {
public:
    explicit GroupDraftModel(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

    std::string_view name() const override { return "draft-simple"; }
    // Reads what the model has not yet read of the texts first.
    Status propose(std::span<TextDraft* const> drafts, const std::atomic<bool>* cancel) override;

private:
    Status catch_up(std::span<TextDraft* const> drafts, const std::atomic<bool>* cancel);
    Token likeliest(size_t row, size_t rows) const;

    std::unique_ptr<Engine> engine_;
};

}  // namespace redline
