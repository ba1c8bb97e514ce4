// redline verify: whether a model computes the same on a device as on the CPU.
#include "cli/commands/verify_batches.h"
#include "cli/demo_model.h"
#include "cli/report.h"
#include "cli/terminal/terminal.h"
#include "cli/user_models.h"
#include "engine/output_check.h"
#include "host/kernel_check.h"
#include "host/load_plan.h"
#include "host/open_device.h"
#include "json/json.h"
#include "measure/agreement.h"
#include "plan/kernel_key.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace redline::cli {

namespace {

struct VerifyOptions {
    ModelOptions model;
    bool json = false;
};

// The results of one device, beside the reference.
struct Verified {
    std::string id, name, detail;
    Agreement agreement;
    BatchReads batches;
    std::set<std::string> put_aside;  // kernels
    std::optional<Parting> parting;
    std::string problem;  // why it could not be looked at

    bool agrees() const { return problem.empty() && agreement.agrees && batches.agrees(); }
};

class Verification {
public:
    explicit Verification(const VerifyOptions& options) : options_(options) {}

    Result<int> run() {
        path_ = RL_TRY(find_user_model(options_.model.model));
        model_ = std::make_unique<Model>(RL_TRY(Model::inspect(path_, options_.model.default_context)));
        const std::vector<DeviceChoice> devices = RL_TRY(choose());
        note_unsplit(options_.model, *model_, devices[0].backend);
        texts_ = check_texts(*model_);
        if (texts_.empty()) return error("{}: the vocabulary writes no text", path_);
        SessionOptions session;
        session.cache = options_.model.cache;
        session.fuse = options_.model.fuse;
        session_ = check_session(texts_, session);
        batches_.emplace(*model_, texts_, session);
        const Status made = compute_reference();
        if (interrupts_.raised()) return fail(error("interrupted"), interrupts_.code());
        RL_TRY(made);
        for (const DeviceChoice& device : devices) {
            const Status done = look_at(device);
            if (interrupts_.raised()) return fail(error("interrupted"), interrupts_.code());
            if (!done && !options_.model.device.empty()) return done.error();
            if (!done) verified_.back().problem = done.error().message;
        }
        return report();
    }

private:
    // One of the CPU is compared with its plain kernels, GPUs with those that are made for this CPU.
    Result<std::vector<DeviceChoice>> choose() {
        std::vector<DeviceChoice> devices;
        if (!options_.model.device.empty()) {
            devices.push_back(RL_TRY(choose_device(options_.model.device)));
        } else {
            for (const UsableDevice& device : usable_devices())
                if (device.choice.backend != "cpu") devices.push_back(device.choice);
            if (devices.empty()) {
                note(
                    "no GPU that can be used is here: the CPU's fast kernels are compared with its plain "
                    "ones");
                devices.push_back({"cpu", "", ""});
            }
        }
        plain_ = devices[0].backend == "cpu";
        return devices;
    }

    Status place(Backend& backend) {
        const MemoryNeed need = RL_TRY(memory_need(*model_, backend, session_));
        RL_TRY(check_fits(need, *model_, backend.device(), session_.context));
        note_demo_model(options_.model);
        ProgressLine progress("loading");
        return model_->place(backend, [&](uint64_t done, uint64_t total) { progress.update(done, total); });
    }

    Result<std::unique_ptr<Backend>> open_reference() {
        HostOptions reference = options_.model;
        reference.memory = 0;
        if (plain_) reference.level = "portable";
        return open_device({"cpu", "", "the reference"}, reference);
    }

    Status compute_reference() {
        const std::unique_ptr<Backend> cpu = RL_TRY(open_reference());
        reference_detail_ = cpu->device().detail;
        RL_TRY(place(*cpu));
        Status done = [&]() -> Status {
            reference_ = RL_TRY(check_logits_of(*model_, texts_, session_, interrupts_.flag()));
            reference_roundings_ = RL_TRY(roundings(*model_, session_));
            for (const std::vector<float>& rows : reference_)
                for (size_t at = 0; at < rows.size(); at += model_->usable_vocab())
                    RL_TRY(check_logits(std::span(rows).subspan(at, model_->usable_vocab()), cpu->device()));
            return batches_->read_reference(interrupts_.flag());
        }();
        model_->unload();
        return done;
    }

    Status look_at(const DeviceChoice& device) {
        Verified& entry = verified_.emplace_back();
        entry.id =
            device.device.find_first_not_of("0123456789") == std::string::npos && !device.device.empty()
                ? device.backend + ":" + device.device
                : device.backend;
        std::unique_ptr<Backend> backend = RL_TRY(open_device(device, options_.model));
        // A session would compute so; --no-self-test looks at all kernels.
        if (!RL_TRY(put_wrong_aside(*model_, *backend, entry.id, options_.model, session_)))
            backend = RL_TRY(open_device(device, options_.model));
        entry.name = backend->device().name;
        entry.detail = backend->device().detail;
        entry.put_aside = backend->refused();
        RL_TRY(place(*backend));
        const Status done = compare_on(entry);
        model_->unload();
        if (!done || entry.agreement.agrees) return done;
        return find_parting(entry);
    }

    Status compare_on(Verified& device) {
        const auto logits = RL_TRY(check_logits_of(*model_, texts_, session_, interrupts_.flag()));
        const double bound = rounding_bound(reference_roundings_, RL_TRY(roundings(*model_, session_)));
        device.agreement =
            compare_logits(reference_, logits, model_->usable_vocab(), bound, model_->config().experts > 0);
        if (!device.agreement.agrees)
            trace_ = RL_TRY(trace_token(*model_, texts_[device.agreement.worst_text],
                                        device.agreement.worst_token, session_));
        device.batches = RL_TRY(batches_->look_at(model_->backend().device(), interrupts_.flag()));
        return {};
    }

    // The worst token is computed again here, with all that lies between.
    Status find_parting(Verified& device) {
        const std::unique_ptr<Backend> cpu = RL_TRY(open_reference());
        RL_TRY(place(*cpu));
        const auto traced =
            trace_token(*model_, texts_[device.agreement.worst_text], device.agreement.worst_token, session_);
        model_->unload();
        if (!traced) return traced.error();
        device.parting = first_parting(traced.value(), trace_, device.agreement.bound);
        return {};
    }

    int report() const {
        Output out;
        out.write(options_.json ? to_text(as_json()) + "\n" : as_text());
        const bool all = std::ranges::all_of(verified_, &Verified::agrees);
        return out.finish(all ? kDone : kFailed);
    }

    std::string reference_name() const {
        return fmt::format("cpu ({}{})", reference_detail_, plain_ ? ", plain kernels" : "");
    }

    std::string as_text() const {
        std::string out =
            fmt::format("{}: {} tokens, beside {}\n{:<12}{:<10}{:>12}{:>11}{:>11}{:>11}{:>13}{:>9}\n", path_,
                        tokens(), reference_name(), "device", "", "same token", "near ties", "KL mean",
                        "KL worst", "error worst", "bound");
        for (const Verified& each : verified_) {
            if (!each.problem.empty())
                out += fmt::format("{:<12}not looked at: {}\n", each.id, each.problem);
            else
                out += agreement_row(each.id, each.agreement.agrees, each.agreement) + each.batches.rows();
        }
        for (const Verified& each : verified_) {
            if (each.parting) out += parting_text(each);
            out += each.batches.text(each.id);
        }
        return out;
    }

    std::string parting_text(const Verified& each) const {
        const Parting& p = *each.parting;
        const bool vulkan = each.id.starts_with("vulkan");
        const std::string remedy = plain_ ? "--cpu-level portable computes as the reference does"
                                          : fmt::format("a newer driver may help; until then --device cpu{}",
                                                        vulkan ? ", or --vulkan-level plain" : "");
        const std::string by = std::isfinite(p.error) ? fmt::format("by {:.2g} of its size", p.error)
                                                      : "which has values that are not finite";
        return fmt::format("{} ({}, {}) parts from the CPU {} layer {}, {}{}, {}: {}\n", each.id, each.name,
                           each.detail, p.beyond ? "first in" : "most in", p.layer, p.op,
                           p.tensors.empty() ? "" : " of " + p.tensors, by, remedy);
    }

    uint64_t tokens() const {
        uint64_t all = 0;
        for (const CheckText& text : texts_) all += text.tokens.size();
        return all;
    }

    Json as_json() const {
        Json devices = Json::array();
        for (const Verified& each : verified_) {
            Json row = {{"id", each.id}, {"name", each.name}, {"detail", each.detail}};
            row["problem"] = each.problem.empty() ? Json(nullptr) : Json(each.problem);
            row["put_aside"] = Json::array();
            for (const std::string& kernel : each.put_aside) row["put_aside"].push_back(kernel_text(kernel));
            if (each.problem.empty()) {
                row.update(agreement_json(each.agreement));
                row["agrees"] = each.agrees();
                row["batches"] = each.batches.as_json();
                row["parting"] = nullptr;
            }
            if (each.parting)
                row["parting"] = {{"layer", each.parting->layer},
                                  {"op", each.parting->op},
                                  {"tensors", each.parting->tensors},
                                  {"error", finite(each.parting->error)},
                                  {"beyond_bound", each.parting->beyond}};
            devices.push_back(std::move(row));
        }
        return {{"model", path_},
                {"reference", {{"device", "cpu"}, {"detail", reference_detail_}, {"plain", plain_}}},
                {"cache_type", cache_types_name(options_.model.cache)},
                {"devices", devices}};
    }

    const VerifyOptions& options_;
    Interrupts interrupts_;
    std::string path_;
    std::unique_ptr<Model> model_;
    std::vector<CheckText> texts_;
    SessionOptions session_;
    bool plain_ = false;
    std::string reference_detail_;
    std::vector<std::vector<float>> reference_;
    std::vector<double> reference_roundings_;
    std::optional<BatchCheck> batches_;
    std::vector<TracedWrite> trace_;  // of the device that was looked at last
    std::vector<Verified> verified_;
};

Options declare(VerifyOptions& verify) {
    Options options("verify", "check that a model computes the same on a device as on the CPU",
                    {"verify [MODEL] [options]"});
    options.group("what");
    options.name("-m --model", "FILE", "model in GGUF form, or part of its name (default: the demo model)",
                 verify.model.model);
    options.common("a model (without: the demo model)");
    add_threads_option(options, "physical core", verify.model.threads);
    options.common("threads (usually one per core)");
    add_cache_options(options, verify.model.cache);
    add_device_options(options, verify.model);
    options.flag("--json", "write one JSON object", verify.json);
    options.common("write one JSON object");
    options.word_is("--model");
    add_voice_options(options);
    options.example("redline verify");
    options.example("redline verify model.gguf --device vulkan");
    options.remark(
        "Three texts are read on the CPU and on each GPU (or the device that is named), most of each in one "
        "step and its end token by token. Then a prompt of 2112 tokens, or as many as the context has, is "
        "read "
        "in steps of 64, of 512 and of 2048 tokens (\"by 64\"), which must give the same. On the CPU that "
        "ends "
        "after 30 s, on a device after 60 s; what is left out by then is said. \"error\" is how far the "
        "logits are apart, in relation to their "
        "spread; the bound is what rounding may move them by. Another likeliest token is a near tie where "
        "the "
        "CPU's own logits of the two are within it. Where they disagree, the first layer and tensor that "
        "does "
        "is named. The CPU itself is compared with its plain kernels. Kernels that the check on first use "
        "finds "
        "wrong are put aside as in a run; --no-self-test looks at all of them. Exit status: 0 all agree, 1 "
        "one does "
        "not, or could not be looked at, 3 the device that was named is not there.");
    return options;
}

int run_verify(const std::vector<std::string>& arguments) {
    VerifyOptions verify;
    Options options = declare(verify);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    Status usage = settle_device(verify.model);
    if (usage) usage = check_one_device(verify.model, "verify");
    if (!usage) return fail(usage.error(), kUsage);
    if (const Status found = take_demo_model(verify.model); !found) return fail(found.error());
    const Result<int> code = Verification(verify).run();
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command verify_command = {"verify", "check that a device computes what the CPU does",
                                       run_verify};

}  // namespace redline::cli
