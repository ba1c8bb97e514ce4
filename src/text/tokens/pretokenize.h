// Cuts a text into the pieces that byte-level BPE merges within, by the patterns that a model was trained
// with. GGUF files name them in tokenizer.ggml.pre. Adding a name is adding a row to the table in
// pretokenize.cpp.
#pragma once

#include "base/result.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

// Further properties that a value of tokenizer.ggml.pre implies.
struct PretokenizerTraits {
    bool whole_pieces = false;  // a piece that is itself a token is not merged ("ignore_merges")
    bool add_bos = false;       // the default where the file does not say
    bool no_bos = false;        // the model has no BOS even if the file gives one
};

class Pretokenizer {
public:
    // An unknown name is an error that lists the known ones.
    static Result<Pretokenizer> create(std::string_view pre);
    static std::vector<std::string> names();
    // Every pattern set by name, for tests.
    static std::vector<std::string> pattern_names();
    static Result<Pretokenizer> of_pattern(std::string_view name);
    Pretokenizer(Pretokenizer&&) noexcept;
    Pretokenizer& operator=(Pretokenizer&&) noexcept;
    ~Pretokenizer();

    const PretokenizerTraits& traits() const { return traits_; }
    // Calls `piece` for the pieces of `text`, in order; together they are the text. `text` must be valid
    // UTF-8. Takes time linear in the length of the text.
    void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

private:
    struct Step;
    class Run;
    Pretokenizer();

    std::vector<Step> steps_;
    PretokenizerTraits traits_;
};

}  // namespace redline
