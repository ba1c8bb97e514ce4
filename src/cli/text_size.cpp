#include "cli/text_size.h"

#include "cli/terminal/progress.h"
#include "text/tokens/tokenizer.h"

#include <algorithm>

namespace redline::cli {

static constexpr uint64_t kUsualBytes = 4;             // of a token in most texts
static constexpr uint64_t kQuick = uint64_t(4) << 20;  // bytes whose tokens are soon counted

static uint64_t longest_token(const Tokenizer& tokenizer) {
    uint64_t longest = 1;
    for (size_t id = 0; id < tokenizer.size(); ++id)
        longest = std::max<uint64_t>(longest, tokenizer.raw_text(Token(id)).size());
    return longest;
}

Status check_text_size(const Model& model, std::string_view what, uint64_t bytes, uint64_t context) {
    if (bytes <= std::max(context, kQuick)) return {};
    const uint64_t longest = longest_token(model.tokenizer());
    if (bytes / longest <= context) return {};
    const uint64_t trained = model.config().train_context, wanted = bytes / kUsualBytes;
    const std::string remedy =
        wanted <= trained
            ? fmt::format("-c {} may make room", std::min(trained, wanted + wanted / 4))
            : fmt::format("the model was trained for {} tokens, usually some {}: give it a part of the text",
                          trained, decimal_size(trained * kUsualBytes));
    return error("{} has {}, and the context of {} tokens takes {} at the very most, usually some {}: {}",
                 what, decimal_size(bytes), context, decimal_size(context * longest),
                 decimal_size(context * kUsualBytes), remedy);
}

}  // namespace redline::cli
