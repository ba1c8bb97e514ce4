#include "host/model_facts.h"

#include "memory/budget.h"
#include "plan/stored_weights.h"

namespace redline {

std::string model_type(const Gguf& gguf) {
    const Result<std::string> arch = gguf.metadata().text("general.architecture", "?");
    return fmt::format("{} {} {}", arch ? arch.value() : "?", short_count(parameter_count(gguf)),
                       file_type(gguf));
}

std::vector<std::string> describe_decoding(std::span<const WeightInfo> weights, const Backend& backend) {
    std::vector<std::string> lines;
    for (const DecodedFormat& d : decoded_formats(weights, backend))
        lines.push_back(fmt::format("{} tensor{} in {} {} decoded to F16 while loading: {} instead of {}",
                                    d.tensors, d.tensors == 1 ? "" : "s", d.format->name,
                                    d.tensors == 1 ? "is" : "are", format_bytes(d.stored_bytes),
                                    format_bytes(d.file_bytes)));
    return lines;
}

}  // namespace redline
