// Whether weights flow through a device as fast as was predicted: measured while prompts are read. Where the
// CPU turns out to be faster, its layers are computed there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace redline {

// What was predicted of layers whose weights flow through the device, by who chose that.
struct StreamExpectation {
    // Of a row, were these layers computed on the CPU. 0: weights flow in any case.
    double cpu_row_seconds = 0.0;
    // Is told once when the CPU computes them from then on.
    std::function<void(const std::string&)> tell = {};
    std::function<double()> clock = {};  // in seconds; none: the system's
};

// Two steps in a row that took longer than predicted for the CPU have the next one computed there. The faster
// of both ways, as measured, is kept for steps of so many rows and less.
class StreamWatch {
public:
    StreamWatch(uint32_t least, StreamExpectation expected);

    double now() const;
    // Whether the weights flow in the step of so many rows that comes next.
    bool begin(uint32_t rows);
    // Whether they never will again in steps of so many rows or less.
    bool is_over(uint32_t most_rows) const { return least_ > most_rows; }
    // Of a step in which they do, what a layer took whose weights flow; then all of the step.
    void add_layer(double seconds) { layers_ += seconds; }
    void streamed(uint32_t rows, double seconds);
    // One in which they did not.
    void computed(uint32_t rows, double seconds);

private:
    uint32_t least_;           // rows from which on weights flow
    const uint32_t smallest_;  // of these, as it was chosen
    StreamExpectation expected_;
    // Of the slow steps in a row: how many, the most rows, and the seconds of a row of the faster one.
    uint32_t slow_ = 0, slow_rows_ = 0;
    double slow_row_seconds_ = 0.0;
    double layers_ = 0.0;  // of this step, so far
    bool settled_ = false, told_ = false;
};

}  // namespace redline
