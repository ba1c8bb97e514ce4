// Lists the tensors that an architecture wants, given a file that has its metadata and perhaps none of them:
// what make_random_model.py fills with random weights.
//   list_weights FILE.gguf
// Each line is a tensor: matrix or vector, required or optional, its name, and its shape (count, rows, cols).
#include "arch/arch.h"
#include "places/find_arch.h"

#include <fmt/format.h>

#include <set>

using namespace redline;

namespace {

Status list(const char* path) {
    const Gguf gguf = RL_TRY(Gguf::open(path));
    const Arch* arch = RL_TRY(find_arch(gguf));
    const std::string name = RL_TRY(gguf.metadata().text("general.architecture"));
    const std::shared_ptr<const Config> config = RL_TRY(arch->config({gguf, name, 4096}));
    WeightList weights(*config);
    arch->weights(*config, weights);
    std::set<std::string> listed;
    for (const WeightSpec& spec : weights.specs()) {
        const std::string tensor = spec.tensor();
        if (!listed.insert(tensor).second) continue;
        const Shape shape = spec.file_shape();
        fmt::print("{} {} {} {} {} {}\n", spec.role == WeightRole::matrix ? "matrix" : "vector",
                   spec.optional ? "optional" : "required", tensor, shape.count, shape.rows, shape.cols);
    }
    return {};
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        fmt::print(stderr, "usage: list_weights FILE.gguf\n");
        return 2;
    }
    if (const Status listed = list(arguments[1]); !listed.ok()) {
        fmt::print(stderr, "{}\n", listed.error().message);
        return 1;
    }
    return 0;
}
