// Measures the inputs of a model's matrices on a text: for each column the sum of squares, for importance
// matrices. The inputs come from traced steps, so any backend will do.
#pragma once

#include "engine/session.h"

#include <map>

namespace redline {

struct InputSquares {
    std::string tensor;  // its name in the file
    uint64_t cols = 0;
    std::vector<double> squares;   // (matrices of the tensor, cols)
    std::vector<uint64_t> counts;  // number of inputs of each matrix
};

class InputMeter {
public:
    // For sequences of up to `context` tokens. `with_output` includes the output matrix; without it only
    // matrices of layers are measured, as by llama-imatrix.
    static Result<InputMeter> create(const Model& model, CacheTypes cache, uint64_t context, uint32_t batch,
                                     bool with_output);

    // Reads a sequence from its start. When cancelled, it returns an error.
    Status read(std::span<const Token> tokens, const std::atomic<bool>* cancel);
    // In the order of the file's tensors.
    const std::vector<InputSquares>& sums() const { return sums_; }

private:
    // A product of a step: its input and its matrix.
    struct Product {
        Slot x;
        Weight w;
        Slot ids = {};  // with experts
        uint32_t used = 0;
        bool per_expert = false;
        uint32_t stride = 0;  // from a head's part of x to the next; 0: x is not divided by heads
    };
    // The actions at each step of a plan.
    struct Watch {
        struct At {
            std::vector<Product> products;  // to be added up before the step's writes are kept
            std::vector<bool> keeps;        // for each write of the step: a later product reads it
            std::vector<Slot> done;         // slots that no later product reads
        };
        std::vector<At> steps;
    };

    InputMeter(const Model& model, const SessionOptions& options, Session session)
        : model_(&model), options_(options), session_(std::move(session)) {}
    static std::vector<Product> products_of(const Op& op);
    void choose_tensors(bool with_output);
    Result<Watch> watch(uint32_t rows) const;
    void take(const TraceStep& traced, const Watch& watch, size_t rows);
    void add(const Product& product, size_t rows);
    void add_row(InputSquares& sums, uint64_t matrix, const float* x);

    const Model* model_;
    SessionOptions options_;
    Session session_;
    std::vector<InputSquares> sums_;
    std::vector<int32_t> sums_of_;        // for each weight of the plan an index into sums_; -1: none
    std::optional<Watch> single_, many_;  // for plans of one row, and of several
    size_t step_ = 0;
    std::map<int32_t, std::vector<float>> kept_;  // rows of slots, by slot index
};

}  // namespace redline
