// Measures, while prompts are read, whether streamed prefill is as fast as predicted. Where the CPU turns out
// to be faster, it computes its layers itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace redline {

// The prediction for layers that are streamed, from the code that decided to stream them.
struct StreamExpectation {
    // Seconds per row if the CPU computed these layers. 0: weights are streamed in any case.
    double cpu_row_seconds = 0.0;
    // Called once, when the CPU computes the layers from then on.
    std::function<void(const std::string&)> tell = {};
    std::function<double()> clock = {};  // in seconds; empty: the system's
};

// After two steps in a row that took longer than predicted for the CPU, the next one is computed there. The
// faster of both ways, as measured, is kept for steps of up to that many rows.
class StreamWatch {
public:
    StreamWatch(uint32_t least, StreamExpectation expected);

    double now() const;
    // True when weights are to be streamed in the coming step of so many rows.
    bool begin(uint32_t rows);
    // True when steps of up to so many rows will never stream weights again.
    bool is_over(uint32_t most_rows) const { return least_ > most_rows; }
    // Reports the seconds of one streamed layer; then streamed() those of the whole step.
    void add_layer(double seconds) { layers_ += seconds; }
    void streamed(uint32_t rows, double seconds);
    // Reports a step that the CPU computed.
    void computed(uint32_t rows, double seconds);

private:
    uint32_t least_;           // fewest rows for which weights are streamed
    const uint32_t smallest_;  // the initial value of least_
    StreamExpectation expected_;
    // Slow steps in a row so far: their number, the most rows of one, and the seconds per row of the fastest.
    uint32_t slow_ = 0, slow_rows_ = 0;
    double slow_row_seconds_ = 0.0;
    double layers_ = 0.0;  // seconds of streamed layers in this step so far
    bool settled_ = false, told_ = false;
};

}  // namespace redline
