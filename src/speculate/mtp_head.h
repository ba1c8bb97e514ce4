// Guesses by the MTP head of the model itself, or of a second file: see Engine::guess().
#pragma once

#include "engine/engine.h"
#include "speculate/proposer.h"

namespace redline {

class MtpProposer : public Proposer {
public:
    // Guesses for this sequence; both have to outlive it.
    MtpProposer(Engine& engine, Sequence& sequence) : engine_(engine), sequence_(sequence) {}

    std::string_view name() const override { return "draft-mtp"; }
    Result<std::vector<Token>> propose(const DraftText& text, size_t most,
                                       const std::atomic<bool>* cancel) override {
        Guess guess{&sequence_, text.last, most};
        RL_TRY(engine_.guess({&guess, 1}, cancel));
        return std::move(guess.tokens);
    }

private:
    Engine& engine_;
    Sequence& sequence_;
};

}  // namespace redline
