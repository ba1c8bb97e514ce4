#include "cli/commands/eval_divergence.h"

#include <fmt/format.h>

namespace redline::cli {

namespace {

constexpr double kPercents[] = {99.9, 99.0, 95.0, 90.0, 50.0, 10.0, 5.0, 1.0};

Json estimate_json(const Estimate& of) {
    return {{"mean", of.mean}, {"error", of.error}};
}

Json percentiles_json(std::span<const float> sorted) {
    Json all = Json::object();
    for (const double percent : kPercents) all[fmt::format("{}", percent)] = percentile(sorted, percent);
    return all;
}

// A column of percentiles beside another.
std::string percentile_lines(std::span<const float> kl, std::span<const float> changes) {
    std::string text = fmt::format("{:<18}{:>14}{:>22}\n", "", "KL divergence", "change of p(right)");
    const auto line = [&](const std::string& name, double one, double other) {
        text += fmt::format("{:<18}{:>14.6f}{:>20.3f} %\n", name, one, 100.0 * other);
    };
    line("maximum", double(kl.back()), double(changes.back()));
    for (const double percent : kPercents)
        line(percent == 50.0 ? "median" : fmt::format("{} %", percent), percentile(kl, percent),
             percentile(changes, percent));
    line("minimum", double(kl.front()), double(changes.front()));
    return text;
}

}  // namespace

std::string divergence_text(const Divergence& divergence) {
    const Estimate base = divergence.base_perplexity(), logs = divergence.log_ratio();
    const Estimate kl = divergence.kl(), change = divergence.change();
    const Estimate squares = divergence.root_mean_square_change(), same = divergence.same_best();
    const double ratio = std::exp(logs.mean);
    std::string text = fmt::format("PPL of the base        {:.4f} +/- {:.5f}\n", base.mean, base.error);
    text += fmt::format("PPL / PPL of the base  {:.6f} +/- {:.6f}, ln {:.6f} +/- {:.6f}\n", ratio,
                        ratio * logs.error, logs.mean, logs.error);
    text += fmt::format("mean KL divergence     {:.6f} +/- {:.6f} nats\n", kl.mean, kl.error);
    text +=
        fmt::format("change of p(right)     mean {:.3f} +/- {:.3f} %, RMS {:.3f} +/- {:.3f} %\n",
                    100.0 * change.mean, 100.0 * change.error, 100.0 * squares.mean, 100.0 * squares.error);
    text +=
        fmt::format("same best token        {:.3f} +/- {:.3f} %\n", 100.0 * same.mean, 100.0 * same.error);
    return text + percentile_lines(divergence.sorted_kl(), divergence.sorted_changes());
}

Json divergence_json(const Divergence& divergence) {
    const std::vector<float> kl = divergence.sorted_kl(), changes = divergence.sorted_changes();
    const Estimate base = divergence.base_perplexity(), logs = divergence.log_ratio();
    const Estimate squares = divergence.root_mean_square_change();
    Json of_kl = estimate_json(divergence.kl()), of_changes = estimate_json(divergence.change());
    of_kl["maximum"] = kl.back();
    of_kl["minimum"] = kl.front();
    of_kl["percentiles"] = percentiles_json(kl);
    of_changes["root_mean_square"] = squares.mean;
    of_changes["root_mean_square_error"] = squares.error;
    of_changes["maximum"] = changes.back();
    of_changes["minimum"] = changes.front();
    of_changes["percentiles"] = percentiles_json(changes);
    return {{"base_perplexity", base.mean},
            {"base_uncertainty", base.error},
            {"ratio", std::exp(logs.mean)},
            {"ratio_error", std::exp(logs.mean) * logs.error},
            {"log_ratio", estimate_json(logs)},
            {"kl", std::move(of_kl)},
            {"right_token_change", std::move(of_changes)},
            {"same_best", estimate_json(divergence.same_best())}};
}

}  // namespace redline::cli
