// Facts about a model file that follow from its tensor directory alone.
#pragma once

#include "gguf/gguf.h"

namespace redline {

struct FormatShare {
    std::string format;  // "Q4_K"
    uint64_t tensors = 0;
    uint64_t bytes = 0;
    uint64_t elements = 0;
};
// The format with the largest share of bytes comes first.
std::vector<FormatShare> format_shares(const Gguf& gguf);
uint64_t parameter_count(const Gguf& gguf);
// The mix of formats that general.file_type states, by llama.cpp's name: "Q4_K_M". Empty where the file
// states none, or an unknown one.
std::string stated_file_type(const Gguf& gguf);
// Explains why the tensors cannot be of the stated mix; empty where they can.
std::string file_type_contradiction(const Gguf& gguf);
// The file's mix of formats: the stated one, or where the tensors contradict it the format with the most
// bytes.
std::string file_type(const Gguf& gguf);
// "1.10 B", "0.26 M".
std::string short_count(uint64_t parameters);

}  // namespace redline
