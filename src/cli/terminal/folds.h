// Long texts that stand as a few words in a line that is edited, "[pasted 120 lines]", and open when the line
// is sent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::cli {

class Folds {
public:
    // A mark that stands for the text, or the text itself where it is short. `how` begins the mark.
    static bool is_long(const std::string& text);
    std::string fold(const std::string& text, std::string_view how);
    // The line with the texts in place of their marks.
    std::string open(std::string_view line) const;
    // The mark that ends a line, where one does.
    std::optional<std::string> mark_at_end(std::string_view line) const;
    // Forgets the oldest texts whose marks are not in this line. The latest stay, for a mark that was deleted
    // can be brought back.
    void forget_old(std::string_view line);

private:
    struct Fold {
        std::string mark, text;
    };
    std::vector<Fold> all_;
};

// A text on its way into a line, from a paste. Line ends of other systems become ours, and control characters
// but tabs the signs that picture them, so that none is taken for a key.
struct PastedText {
    std::string text;
    size_t replaced = 0;  // control characters
};
PastedText take_paste(std::string_view bytes);

}  // namespace redline::cli
