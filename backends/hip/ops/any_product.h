// What the kernels of products with one set of activations have in common.
#pragma once

#include "kernels/few_args.h"
#include "steps.h"

#include <vector>

namespace redline::hip {

// Columns of the parts in which a product of few leaves rows as halfs.
constexpr uint32_t kHandedPart = 16;

// Products of whole rows: how they are launched is chosen alike.
class AnyProduct : public HipKernel {
protected:
    explicit AnyProduct(const Device& device) : report_(device.report()) {}

    const DeviceReport& report() const { return report_; }
    Choices own_choices(uint64_t rows) const {
        return hip::own_choices(rows, report_, "", product_default("streamed", report_));
    }
    Crossovers crossovers() const {
        return {chosen(RowClass::few, "vector_rows", usual_vector_rows(report_).value),
                chosen(RowClass::some, "few_rows", usual_few_rows(report_).value)};
    }
    // How so many rows are multiplied by a matrix.
    Path path_in(const Tensor& tensor, uint64_t rows) const {
        return in_bytes(path_of(*tensor.format, tensor.shape.cols, rows, report_, crossovers()),
                        chosen(row_class_of(rows), "int8", usual_int8().value) != 0);
    }
    static Choice int8_choice() { return choice("int8", usual_int8(), {1}); }
    // Choices of up to how many rows go which way. Steps of 2 to 8 rows that are to be alike all have
    // 8 on matrix units; elsewhere dot products of 2, 4 and 8 rows sum alike, but tiles do not, so that the
    // choice does not apply.
    Choices crossover_choices(RowClass rows, std::span<const Tensor> tensors, bool alike) const {
        const bool whole = std::ranges::all_of(tensors, [&](const Tensor& tensor) {
            return path_of(*tensor.format, tensor.shape.cols, kMostFew + 1, report_) == Path::matrices;
        });
        if (!whole || (rows != RowClass::few && rows != RowClass::some)) return {};
        if (rows == RowClass::some)
            return report_.matrix_units()
                       ? Choices{crossover("few_rows", usual_few_rows(report_), {kFewRows, 16, 32, 64})}
                       : Choices();
        if (alike && !report_.matrix_units()) return {};
        // With matrix units dot products come for two rows at most.
        const bool two = report_.matrix_units() && std::ranges::any_of(tensors, [](const Tensor& tensor) {
                             return weight_layout(*tensor.format)->quantized();
                         });
        return {crossover("vector_rows", usual_vector_rows(report_),
                          two ? std::vector<uint32_t>{2} : std::vector<uint32_t>{1, 2, 4, kFewRows})};
    }
    // True where rows of such a step are taken and left as halfs.
    bool hands(const View& view, std::span<const Tensor> tensors, Slot x) const {
        return hands_rows(view.rows) && std::ranges::all_of(tensors, [&](const Tensor& tensor) {
                   return path_in(tensor, view.rows_of(x)) == Path::few;
               });
    }
    OwnLaunch own_launch() const {
        return {chosen(RowClass::one, "blocks", product_default("blocks", report_).value),
                chosen(RowClass::one, "streamed", product_default("streamed", report_).value) != 0};
    }

private:
    // True where a step of so many rows can hand them on as halfs, as kernels/few.h has it.
    bool hands_rows(uint32_t rows) const {
        return rows > 1 && !report_.copies_ahead() && few_tokens(rows, report_) <= args::kMostHanded;
    }
    static Default usual_int8() { return gpu::default_of(gpu::kProductDefaults, "int8", {.hip = true}); }

    const DeviceReport& report_;
};

}  // namespace redline::hip
