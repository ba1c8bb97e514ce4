#include "products.h"

#include <algorithm>

namespace redline {

const Product* rows_product(const Op& op, const Plan& plan) {
    const Product* product = product_by(By::row, op);
    const auto known = [&](const Product::Part& part) { return has_layout(plan, part.w); };
    if (!product || !std::ranges::all_of(product->all(), known)) return nullptr;
    return !product->act || has_layout(plan, product->w(0), product->w(1)) ? product : nullptr;
}

std::vector<Tensor> tensors_of(const Product& product, const Plan& plan) {
    std::vector<Tensor> tensors;
    for (const Product::Part& part : product.all()) tensors.push_back(plan.weight(part.w).tensor);
    return tensors;
}

}  // namespace redline
