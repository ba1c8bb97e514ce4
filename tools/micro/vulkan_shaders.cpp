// Reports the result of a Vulkan driver's compiler for every pipeline that the op cases need: registers,
// spills, shared memory, occupancy, and the number of dot product and matrix instructions. Nothing is run, so
// stand-in devices will do: tools/vulkan/vulkan-lab run navi31 build/ci/tools/vulkan_shaders. Exit code 1
// when a pipeline spills, or on AMD lacks the instructions that it exists for. With CODE the machine code of
// products goes to that file, for tools/amd/amd-speed. usage: vulkan_shaders [DEVICE [PART_OF_A_CASE [CODE]]]
#include "amd_pipelines.h"
#include "backends/vulkan/vulkan_backend.h"
#include "cases/op_cases.h"

#include <cstdio>

using namespace redline;
using namespace redline::vulkan;

namespace {

Status compile(const OpCase& c, VulkanBackend& backend) {
    Fixture fixture(1, c.position + c.rows);
    const Plan plan = RL_TRY(case_plan(c, fixture, c.rows, c.rows));
    const auto weights = RL_TRY(backend.load(fixture.weights(), fixture, {}));
    const auto cache = RL_TRY(backend.make_caches(plan.caches));
    for (const bool fuse : {true, false}) {
        BoundPlan bound = RL_TRY(lower(plan, backend, fuse));
        RL_TRY(backend.record(std::move(bound), *weights, *cache, Record::replay));
    }
    // The kernels that are a choice on some cards.
    Device& device = backend.opened();
    for (bool Device::*chosen : {&Device::always_fragments, &Device::always_int8}) {
        device.*chosen = true;
        BoundPlan bound = RL_TRY(lower(plan, backend, true));
        RL_TRY(backend.record(std::move(bound), *weights, *cache, Record::replay));
        device.*chosen = false;
    }
    return {};
}

// Cases of real sizes, besides the small ones of the tests.
std::vector<OpCase> all_cases() {
    std::vector<OpCase> cases = op_cases();
    std::erase_if(cases, [](const OpCase& c) { return c.cpu_only; });
    for (const Format* format : all_formats())
        for (const uint32_t rows : {1u, 4u, 8u, 16u, 64u}) {
            cases.push_back(linear_case(*format, rows, 1024, 4096, {true, false, false}));
            cases.push_back(gated_case(*format, Act::silu, true, rows, 1024, 4096));
        }
    // Experts with rows so long that a lane reads as many units ahead as it may, in subgroups of 64, too.
    for (const Format* format : all_formats()) {
        cases.push_back(experts_layer_case(*format, {2, 2, 2304, 256}, 1));
        cases.push_back(experts_layer_case(*format, {8, 8, 256, 1024}, 1));
        cases.push_back(shared_expert_case(*format, {8, 8, 256, 1024}, {1024, format->name}, 1));
    }
    // So many rows of a weight that the largest tiles fill any card.
    for (const Format* format : all_formats()) {
        cases.push_back(linear_case(*format, 512, 16384, 256, {true, false, false}));
        cases.push_back(gated_case(*format, Act::silu, true, 512, 8192, 256));
    }
    // Tiles with room for 64 and 128 entries of an expert; the cases of tests have few.
    for (const Format* format : all_formats())
        for (const uint32_t rows : {128u, 256u})
            cases.push_back(many_rows_case(*format, {4, 2, 256, 256}, rows));
    const CacheTypes all_types[] = {CacheType::f16,
                                    CacheType::q8_0,
                                    CacheType::q4_0,
                                    {CacheType::q8_0, CacheType::f16},
                                    {CacheType::q5_1, CacheType::iq4_nl}};
    for (const CacheTypes type : all_types)
        for (const uint32_t dims : {64u, 128u, 256u, 512u})
            for (const uint32_t rows : {1u, 64u, 1024u})
                cases.push_back(attention_case({32, 8, dims}, rows, 512, {true, true, false, 0, 0.0f, type}));
    for (const CacheType type : {CacheType::f16, CacheType::q8_0})
        for (const uint32_t heads : {16u, 20u, 128u})
            for (const uint32_t rows : {1u, 64u})
                cases.push_back(latent_case({512, 64, heads, type}, rows, 512));
    return cases;
}

size_t count(const std::string& text, const char* word) {
    size_t n = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
}

struct Faults {
    bool spills = false;
    std::string lacks;  // the instruction that the pipeline's name promises
};

// One line per pipeline; the code of products goes to `listing`, when there is one.
Faults print_line(const Device& device, const Pipeline& pipeline, std::FILE* listing) {
    const auto [facts, code, spills] = facts_of(device, pipeline);
    std::string line = facts;
    Faults faults;
    faults.spills = spills;
    const auto is = [&](const char* kind) { return pipeline.name.find(kind) != std::string::npos; };
    for (const auto& [of_kind, instruction] :
         {std::pair{is("_dot.") || is("_own.") || is("_coop_dots"), "v_dot4"},
          std::pair{is("_coop.") || is("r_few.") || is("d_few.") || is("_fragments."), "v_wmma"},
          std::pair{is("_bfloat."), "v_wmma_f32_16x16x16_bf16"},
          std::pair{is("_coop_int8"), "v_wmma_i32_16x16x16_iu8"}}) {
        const size_t n = count(code, instruction);
        if (n > 0) line += fmt::format("  {} x{}", instruction, n);
        if (device.report().vendor == kAmd && of_kind && n == 0) faults.lacks = instruction;
    }
    if (listing && (is("_own.") || is("_coop.") || is("_coop_int8") || is("_coop_dots") || is("r_vec.f") ||
                    is("d_vec.f")))
        std::fprintf(listing, "== %s%s\n%s\n", pipeline.name.c_str(), line.c_str(), code.c_str());
    if (faults.spills) line += "  SPILLS";
    if (!faults.lacks.empty()) line += "  LACKS " + faults.lacks;
    std::printf("%-64s%s\n", pipeline.name.c_str(), line.c_str());
    return faults;
}

Status compile_all(const std::string& cases, VulkanBackend& backend) {
    for (const OpCase& c : all_cases()) {
        if (c.name.find(cases) == std::string::npos) continue;
        if (const Status made = compile(c, backend); !made)
            return error("{}: {}", c.name, made.error().message);
    }
    return {};
}

Result<int> report(const std::string& wanted, const std::string& cases, std::FILE* listing) {
    BackendOptions options;
    options.device = wanted;
    const std::unique_ptr<VulkanBackend> backend = RL_TRY(open_vulkan_backend(options));
    const DeviceReport& device = backend->opened().report();
    if (!device.pipeline_facts) return error("{} says nothing about its pipelines", device.name);
    backend->pipelines().keep_facts();
    Device& opened = backend->opened();
    if (device.vendor == kAmd && opened.use_matrix() && narrow_shape(device))
        opened.fragments = fragments_of_amd(opened);
    RL_TRY(compile_all(cases, *backend));
    // A driver that has the elements of matrices elsewhere, and the tuner, take other kernels for few rows.
    if (opened.fragments) {
        opened.fragments.reset();
        RL_TRY(compile_all(cases, *backend));
    }
    if (KeepBusy::possible(device)) RL_TRY(backend->pipelines().get(KeepBusy::pipeline(backend->opened())));
    std::printf("%s, %s\n", device.name.c_str(), device.driver.c_str());
    size_t spilling = 0, lacking = 0;
    for (const auto& [name, pipeline] : backend->pipelines().all()) {
        // Made when the device was opened, before facts were kept.
        if (name.starts_with("show_fragments")) continue;
        const Faults faults = print_line(backend->opened(), pipeline, listing);
        spilling += faults.spills;
        lacking += !faults.lacks.empty();
    }
    std::printf("%zu pipelines, %zu of them spill, %zu lack their instruction\n",
                backend->pipelines().all().size(), spilling, lacking);
    return spilling + lacking > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::FILE* listing = argc > 3 ? std::fopen(argv[3], "w") : nullptr;
    if (argc > 3 && !listing) {
        std::fprintf(stderr, "vulkan_shaders: cannot write %s\n", argv[3]);
        return 1;
    }
    const Result<int> code = report(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "", listing);
    if (listing) std::fclose(listing);
    if (!code) std::fprintf(stderr, "vulkan_shaders: %s\n", code.error().message.c_str());
    return code ? code.value() : 1;
}
