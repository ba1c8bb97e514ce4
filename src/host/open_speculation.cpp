#include "host/open_speculation.h"

#include "host/load_model.h"
#include "host/open_device.h"
#include "plan/alike_rows.h"
#include "plan/row_costs.h"
#include "speculate/draft_model.h"
#include "speculate/group_proposers.h"
#include "speculate/mtp_head.h"
#include "speculate/ngram.h"

namespace redline {

namespace {

// Long matches are rarely wrong: llama.cpp's ngram-simple has the same length.
constexpr uint32_t kMatch = 12;
// States are large, and each draft has some.
constexpr uint32_t kUsual = 8, kUsualWithStates = 4;

Error of_draft(const SpeculationOptions& options, const Error& problem) {
    return error("the draft model {}: {}", options.draft_model, problem.message);
}

HostOptions draft_options(const SpeculationOptions& options, HostOptions host) {
    host.model = options.draft_model;
    // A small model is as a whole on the first device.
    host.others.clear();
    host.job = nullptr;
    host.shares.clear();
    host.split_mode = SplitMode::none;
    host.head = ReadHead::no;
    host.second_head = nullptr;
    host.drafts = 0;
    host.kept = 0;
    host.pages = 0;
    return host;
}

Status check_head(const Model& head, const Model& model) {
    RL_TRY(check_draft_vocabulary(model, head));
    const uint32_t reads = head.config().hidden_dim(), leaves = model.config().hidden_dim();
    if (reads == leaves) return {};
    return error("its MTP head reads hidden rows of {}, and the model leaves rows of {}", reads, leaves);
}

// The second file, whichever it is, without its weights.
Result<LoadedModel> inspect_draft(const SpeculationOptions& options, const HostOptions& host,
                                  const Model& model) {
    HostOptions draft = draft_options(options, host);
    if (options.type != SpeculationType::draft_simple) draft.head = ReadHead::if_any;
    LoadedModel loaded = RL_TRY(inspect_model(draft));
    const bool head = loaded.model->is_head();
    if (options.type == SpeculationType::draft_mtp && !head)
        return error("it is no MTP head alone: --spec-type draft-simple has models guess");
    RL_TRY(head ? check_head(*loaded.model, model) : check_draft_vocabulary(model, *loaded.model));
    return loaded;
}

Result<std::unique_ptr<Engine>> open_draft(const SpeculationOptions& options, const HostOptions& host,
                                           uint64_t context, LoadedModel& loaded) {
    HostOptions draft = draft_options(options, host);
    draft.context = int64_t(context);
    RL_TRY(place_model(loaded, draft, context, draft.sequences));
    std::unique_ptr<Engine> engine = RL_TRY(open_engine(loaded, draft, context, draft.sequences));
    if (engine->rewinds()) return engine;
    return error("it keeps states or windows, which cannot take tokens back");
}

bool on_gpu(const LoadedModel& loaded) {
    const auto is_gpu = [](const OpenDevice* one) { return one->name() != "cpu"; };
    return is_gpu(&loaded.device) ||
           (loaded.device.rank > 0 && std::ranges::any_of(loaded.devices(), is_gpu));
}

// The most rows of a step that are each as they would be alone: 1 on a GPU, unless that was asked for, and
// on a CPU whose kernels for the model are of another kind. A device is opened for the question alone, as
// models that are loaded later want all memory.
Result<uint32_t> most_alike(const LoadedModel& loaded, const HostOptions& host) {
    if (on_gpu(loaded) && !host.alike_rows) return 1;
    HostOptions small = host;
    small.threads = 1;
    const std::unique_ptr<Backend> backend = RL_TRY(open_device(loaded.device.choice, small));
    small.batch = kAlikeRows;
    const EngineOptions engine = session_options(small, backend->device(), kAlikeRows, kAlikeRows);
    const std::vector<Plan> plans = RL_TRY(engine_plans(*loaded.model, engine));
    uint32_t least = kAlikeRows;
    for (const Plan& plan : plans)
        least = std::min(least, alike_rows(*backend, RL_TRY(lower(plan, *backend, host.fuse))));
    return least;
}

// Decides about speculation that nobody asked for: where it changes no text, and on a GPU where the file has
// a head, which is there to guess. Where rows are alike, guesses are no longer than that.
Status settle_default(SpeculationOptions& options, const HostOptions& host, LoadedModel& loaded) {
    Model& model = *loaded.model;
    if (!options.by_default && !host.alike_rows) return {};
    const uint32_t alike = RL_TRY(most_alike(loaded, host));
    if (host.alike_rows && alike == 1)
        host.notes->note(fmt::format("{}: its rows are not the same bit for bit alone and beside others",
                                     model.gguf().path()));
    if (host.alike_rows && alike > 1) options.most_alike = alike - 1;
    if (!options.by_default || alike > 1) return {};
    options.assumes = on_gpu(loaded) && model.has_head();
    if (options.assumes) return {};
    options.type = SpeculationType::none;
    return model.has_head() ? model.leave_out_head() : Status();
}

// The cost of a step of so many rows that all read the same weights, in steps of one row, by what a backend
// knows of its device.
double row_cost(const Backend& backend, uint32_t rows) {
    const auto* known = dynamic_cast<const RowCosts*>(&backend);
    return known ? known->row_cost(rows) : 1.0 + 0.15 * (rows - 1);
}

// The costs by the bytes of weights that steps read, and by the place of the model that gains least by few
// rows.
Result<AssumedCosts> assumed_costs(const Engine& engine, uint32_t drafts) {
    AssumedCosts costs;
    const Model& model = engine.model();
    const std::vector<Plan> plans = RL_TRY(engine_plans(model, engine.options()));
    const auto bytes = [](const Plan& plan, uint64_t rows) {
        uint64_t all = 0;
        for (const Step& step : plan.steps) all += cost(step.op, plan, {rows, rows, 1}).weight_bytes;
        return double(std::max<uint64_t>(all, 1));
    };
    std::vector<Backend*> places = backends_of(with_steps(engine.options().placements));
    if (places.empty()) places.push_back(&model.backend());
    const double one = bytes(plans.front(), 1);
    for (uint32_t rows = 1; rows <= drafts + 1; ++rows) {
        double most = 0.0;
        for (const Backend* place : places) most = std::max(most, row_cost(*place, rows));
        costs.steps.push_back(most * bytes(plans.front(), rows) / one);
    }
    if (engine.guesses() && model.has_head()) costs.guess = bytes(plans[plans.size() / 2], 1) / one;
    return costs;
}

bool looks_up(const SpeculationOptions& options) {
    return options.type == SpeculationType::automatic || options.type == SpeculationType::ngram_simple;
}

// Reads the tokens one by one, since steps of several have to be taken back.
bool reads_one(uint64_t most, const SpeculationOptions& options, const HostOptions& host) {
    if (most >= 2) return false;
    if (options.by_default) return true;
    host.notes->note("there is no speculation: steps of this session read one token, as -b has it");
    return true;
}

}  // namespace

uint32_t SpeculationOptions::drafts(const Model& model) const {
    if (type == SpeculationType::none) return 0;
    const std::vector<bool>& recurrent = model.config().recurrent;
    const bool states = std::find(recurrent.begin(), recurrent.end(), true) != recurrent.end();
    return std::min(most > 0 ? most : states ? kUsualWithStates : kUsual, most_alike);
}

ReadHead SpeculationOptions::head() const {
    if (!draft_model.empty()) return ReadHead::no;
    if (type == SpeculationType::draft_mtp) return ReadHead::required;
    return type == SpeculationType::automatic ? ReadHead::if_any : ReadHead::no;
}

Status settle(SpeculationOptions& options) {
    const bool drafts = !options.draft_model.empty();
    options.by_default = !options.asked && !drafts;
    if (options.by_default) options.type = SpeculationType::automatic;
    if (drafts && options.type == SpeculationType::none) options.type = SpeculationType::automatic;
    if (!drafts && options.type == SpeculationType::draft_simple)
        return error("--spec-type draft-simple wants a draft model: name it with -md");
    if (drafts && options.type == SpeculationType::ngram_simple)
        return error("--spec-type ngram-simple has no use for a draft model: leave out -md, or take auto");
    return {};
}

Result<OpenSpeculation> inspect_speculation(SpeculationOptions& options, HostOptions& host,
                                            LoadedModel& loaded) {
    OpenSpeculation open;
    Model& model = *loaded.model;
    if (model.is_head())
        return error("{} holds an MTP head alone, which guesses for a model: name it with -md",
                     model.gguf().path());
    RL_TRY(settle_default(options, host, loaded));
    host.drafts = options.drafts(model);
    host.second_head = nullptr;
    if (options.draft_model.empty()) return open;
    Result<LoadedModel> draft = inspect_draft(options, host, model);
    if (!draft) return of_draft(options, draft.error());
    auto second = std::make_unique<LoadedModel>(std::move(draft.value()));
    if (second->model->is_head()) {
        host.second_head = second->model.get();
        open.head = std::move(second);
    } else {
        open.draft = std::move(second);
    }
    return open;
}

Status open_speculation(OpenSpeculation& open, const SpeculationOptions& options, const HostOptions& host,
                        Session& session) {
    if (options.type == SpeculationType::none || reads_one(session.most_rows(), options, host)) return {};
    std::vector<std::unique_ptr<Proposer>> methods;
    if (looks_up(options)) methods.push_back(std::make_unique<NgramProposer>(kMatch));
    if (session.guesses())
        methods.push_back(std::make_unique<MtpProposer>(session.engine(), session.sequence()));
    if (open.draft) {
        Result<std::unique_ptr<Engine>> draft = open_draft(options, host, session.context(), *open.draft);
        if (!draft) return of_draft(options, draft.error());
        methods.push_back(
            std::make_unique<DraftModelProposer>(RL_TRY(Session::create(std::move(draft.value())))));
    }
    if (methods.empty() || (options.assumes && !session.guesses())) return {};
    Speculation::Limits limits = {host.drafts, options.type != SpeculationType::automatic};
    if (options.assumes) limits.assumed = RL_TRY(assumed_costs(session.engine(), host.drafts));
    open.speculation = std::make_unique<Speculation>(std::move(methods), std::move(limits));
    return {};
}

Result<std::unique_ptr<SharedSpeculation>> open_shared_speculation(OpenSpeculation& open,
                                                                   const SpeculationOptions& options,
                                                                   const HostOptions& host, Engine& engine) {
    std::unique_ptr<SharedSpeculation> made;
    const EngineOptions& sized = engine.options();
    if (options.type == SpeculationType::none ||
        reads_one(std::min(sized.outputs, engine.most_rewound()), options, host))
        return made;
    std::unique_ptr<GroupProposer> model;
    if (engine.guesses()) model = std::make_unique<GroupMtp>(engine);
    if (open.draft) {
        Result<std::unique_ptr<Engine>> draft = open_draft(options, host, sized.context, *open.draft);
        if (!draft) return of_draft(options, draft.error());
        model = std::make_unique<GroupDraftModel>(std::move(draft.value()));
    }
    if (!model && (!looks_up(options) || options.assumes)) return made;
    const uint64_t most = std::min<uint64_t>(host.drafts, sized.batch - 1);
    made = std::make_unique<SharedSpeculation>(
        looks_up(options) ? kMatch : 0, std::move(model),
        SharedSpeculation::Limits{most, options.type != SpeculationType::automatic});
    return made;
}

}  // namespace redline
