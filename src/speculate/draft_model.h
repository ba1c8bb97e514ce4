// Guesses by a smaller model of the same vocabulary: its likeliest tokens.
#pragma once

#include "engine/session.h"
#include "speculate/proposer.h"

#include <memory>

namespace redline {

// An error that says in what the vocabularies differ, unless they are of the same kind, end alike, differ by
// 128 tokens at most, and have the same texts from token 5 on.
Status check_draft_vocabulary(const Model& model, const Model& draft);

class DraftModelProposer : public Proposer {
public:
    explicit DraftModelProposer(Session session) : session_(std::move(session)) {}

    std::string_view name() const override { return "draft-simple"; }
    // Reads what the session has not yet read of the text first.
    Result<std::vector<Token>> propose(const DraftText& text, size_t most,
                                       const std::atomic<bool>* cancel) override;

private:
    Token likeliest() const;

    Session session_;
};

}  // namespace redline
