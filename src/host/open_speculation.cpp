#include "host/open_speculation.h"

#include "host/load_model.h"
#include "speculate/draft_model.h"
#include "speculate/ngram.h"

namespace redline {

namespace {

// Long matches are rarely wrong: llama.cpp's ngram-simple has the same length.
constexpr uint32_t kMatch = 12;

Result<Session> open_draft(const SpeculationOptions& options, HostOptions host, const Session& session,
                           LoadedModel& loaded) {
    host.model = options.draft_model;
    host.context = int64_t(session.context());
    loaded = RL_TRY(inspect_model(host));
    RL_TRY(check_draft_vocabulary(session.model(), *loaded.model));
    RL_TRY(place_model(loaded, host, session.context()));
    Session draft = RL_TRY(open_session(loaded, host, session.context()));
    if (draft.rewinds()) return draft;
    return error("the draft model keeps states or windows, which cannot take tokens back");
}

}  // namespace

Status settle(SpeculationOptions& options) {
    const bool drafts = !options.draft_model.empty();
    if (drafts && options.type == SpeculationType::none) options.type = SpeculationType::automatic;
    if (!drafts && options.type == SpeculationType::draft_simple)
        return error("--spec-type draft-simple wants a draft model: name it with -md");
    if (drafts && options.type == SpeculationType::ngram_simple)
        return error("--spec-type ngram-simple has no use for a draft model: leave out -md, or take auto");
    return {};
}

Result<OpenSpeculation> open_speculation(const SpeculationOptions& options, const HostOptions& host,
                                         const Session& session) {
    OpenSpeculation open;
    if (options.type == SpeculationType::none) return open;
    if (!session.rewinds()) {
        host.notes->note(
            "there is no speculation: this model keeps states or windows, which cannot take tokens "
            "back");
        return open;
    }
    std::vector<std::unique_ptr<Proposer>> methods;
    if (options.type != SpeculationType::draft_simple)
        methods.push_back(std::make_unique<NgramProposer>(kMatch));
    if (!options.draft_model.empty()) {
        open.draft = std::make_unique<LoadedModel>();
        Result<Session> draft = open_draft(options, host, session, *open.draft);
        if (!draft) return error("the draft model {}: {}", options.draft_model, draft.error().message);
        methods.push_back(std::make_unique<DraftModelProposer>(std::move(draft.value())));
    }
    const Speculation::Limits limits = {options.most, options.type != SpeculationType::automatic};
    open.speculation = std::make_unique<Speculation>(std::move(methods), limits);
    return open;
}

}  // namespace redline
