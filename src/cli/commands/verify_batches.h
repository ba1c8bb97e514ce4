// The part of redline verify that reads a long prompt in steps of several sizes.
#pragma once

#include "json/json.h"
#include "measure/batch_agreement.h"

#include <memory>

namespace redline::cli {

// A prompt read in steps of one size on a device.
struct BatchRead {
    uint32_t batch = 0;
    LongRead read;
    std::vector<double> roundings;
    std::optional<Agreement> beside_reference;  // none: the reference has no logits of the same tokens
    bool odd = false;                           // beside the other sizes
    double error = 0.0, bound = 0.0;            // beside the other size that it is farthest from

    bool agrees() const { return !odd && (!beside_reference || beside_reference->agrees); }
};

struct BatchReads {
    std::vector<BatchRead> sizes;
    std::vector<std::string> left_out;  // and why

    bool agrees() const;
    // Rows below a device's in the table of verify.
    std::string rows() const;
    // Names the differences, and what helps; empty: there are none.
    std::string text(const std::string& device) const;
    Json as_json() const;
};

class BatchCheck {
public:
    // Options of a session, but for its size.
    BatchCheck(const Model& model, std::span<const CheckText> texts, const SessionOptions& options)
        : model_(model), prompt_(long_prompt(model, texts)), options_(options) {}

    // While the model is placed there.
    Status read_reference(const std::atomic<bool>* cancel);
    Result<BatchReads> look_at(const DeviceInfo& device, const std::atomic<bool>* cancel) const;

private:
    Result<BatchRead> read(uint32_t batch, Deadline deadline, const std::atomic<bool>* cancel) const;
    void compare(BatchReads& all) const;

    const Model& model_;
    LongPrompt prompt_;
    SessionOptions options_;
    std::optional<BatchRead> reference_;
    std::string reference_left_out_;
};

// One row of verify's table.
std::string agreement_row(const std::string& id, bool agrees, const Agreement& agreement);
// An agreement as JSON: numbers that are not finite are null.
Json agreement_json(const Agreement& agreement);
Json finite(double value);

}  // namespace redline::cli
