// Element-wise ops: a kernel for each row of src/plan/ops/each.def.
#include "kernels/attention_parts.h"
#include "kernels/reduce.h"
#include "kernels/unit.h"

namespace redline::hip {

using namespace args;

RL_DEVICE float size_of(float a) {
    return __builtin_fabsf(a);
}
RL_DEVICE float where_less(float a, float b, float yes, float no) {
    return a < b ? yes : no;
}

#define V float
#define EACH_VALUE(i) args.values[i]
#define EACH_Y args.y[i]
#define EACH_X args.x[i]
#define EACH_Z args.z[i]
#define EACH_COLUMN args.x[i % args.width]
#define EACH(name, operands, values, holds, statements)                                    \
    RL_KERNEL(128, name, EachArgs) {                                                       \
        values const auto element = [&](size_t i) -> float { READ_##operands statements }; \
        each_element(size_t(rows_in_step(args.step, args.of_outputs)) * args.width,        \
                     [&](size_t i) { args.y[i] = element(i); });                           \
    }
#include "plan/ops/each.def"

}  // namespace redline::hip
