#include "cli/options/speculation_options.h"

namespace redline::cli {

void add_speculation_options(Options& options, SpeculationOptions& speculation) {
    options.group("speculation");
    options.choice(
        "--spec-type", {"none", "auto", "ngram-simple", "draft-simple", "draft-mtp"},
        "guess several tokens and check them in one step: by looking up what followed the same 12 tokens "
        "before, by a smaller model (-md), or by the MTP head of the file or of a second one (-md); auto: by "
        "looking up and by what is there, as long as that pays (default: auto on a CPU and with "
        "--batch-invariant, where texts stay the same, with -md, and for models with an MTP head; else none)",
        [&speculation](size_t i) {
            speculation.type = SpeculationType(i);
            speculation.asked = true;
        });
    options.name("-md --model-draft --spec-draft-model", "FILE",
                 "a smaller model of the same vocabulary, or an MTP head alone, that guesses",
                 speculation.draft_model);
    options.number("--spec-draft-n-max", "tokens of a guess at most", speculation.most, 1, kMostDrafted);
}

}  // namespace redline::cli
