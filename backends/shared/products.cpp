#include "products.h"

namespace redline {

std::optional<Products> products_of(const Op& op, const Plan& plan) {
    Products products;
    if (const auto* one = std::get_if<Linear>(&op))
        products = {one->x, one->norm, {{one->w, one->bias, one->y}}, one->accumulate, {}, one->function};
    else if (const auto* group = std::get_if<LinearGroup>(&op))
        products = {group->x, group->norm, {&group->parts[0], &group->parts[0] + group->count}};
    else
        return {};
    for (const LinearGroup::Part& part : products.parts) {
        if (!has_layout(plan, part.w)) return {};
        products.tensors.push_back(plan.weight(part.w).tensor);
    }
    return products;
}

}  // namespace redline
