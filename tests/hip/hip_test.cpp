// The host side of the HIP backend on the test double: which kernels a card gets, memory that runs out, a
// device that is lost, replay.
#include "backends/gpu/paths.h"
#include "backends/hip/kernels/few_args.h"
#include "backends/hip/runtime/device.h"
#include "backends/hip/runtime/memory.h"
#include "backends/shared/layout.h"
#include "cases/kernel_cases.h"
#include "devices/device_choice.h"
#include "plan/backend.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>

using namespace redline;

namespace {

// A variable of the double for as long as a test runs.
class Setting {
public:
    Setting(const char* name, const std::string& value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before;
        ::setenv(name, value.c_str(), 1);
    }
    ~Setting() {
        if (before_)
            ::setenv(name_, before_->c_str(), 1);
        else
            ::unsetenv(name_);
    }

private:
    const char* name_;
    std::optional<std::string> before_;
};

template <typename Function>
Function* of_double(const char* name) {
    void* library = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(library);
    return reinterpret_cast<Function*>(dlsym(library, name));
}
// Bytes of device memory that the double has given out.
size_t in_use() {
    return of_double<size_t()>("rl_hip_double_allocated")();
}
// Launches with such arguments in which this pointer was not null.
template <typename Args>
size_t launches_with(size_t offset) {
    return of_double<size_t(size_t, size_t)>("rl_hip_double_launches")(sizeof(Args), offset);
}
// The number of int8 products.
size_t dots_with(size_t offset) {
    return launches_with<hip::args::DotArgs>(offset);
}
// The number of products whose activations were prepared as halfs.
size_t products_in_tiles() {
    return launches_with<hip::args::FewArgs>(offsetof(hip::args::TileArgs, halves));
}

// A case recorded on the backend, as op_test does it.
struct Recorded {
    Fixture fixture;
    Plan plan;
    std::unique_ptr<WeightStore> weights;
    std::unique_ptr<CacheStore> cache;
    std::unique_ptr<Executable> executable;
};

Result<std::unique_ptr<Recorded>> record(Backend& backend, const OpCase& c, Record mode) {
    std::unique_ptr<Recorded> made(new Recorded{Fixture(7, c.position + c.rows), {}, {}, {}, {}});
    made->plan = RL_TRY(case_plan(c, made->fixture, c.rows, c.rows));
    made->weights = RL_TRY(backend.load(made->fixture.weights(), made->fixture, {}));
    made->cache = RL_TRY(backend.make_caches(made->plan.caches));
    BoundPlan bound = RL_TRY(lower(made->plan, backend));
    made->executable = RL_TRY(backend.record(std::move(bound), *made->weights, *made->cache, mode));
    return made;
}

Result<std::vector<float>> step(Recorded& recorded, uint32_t rows, uint64_t position = 0) {
    std::vector<int32_t> tokens(rows);
    for (uint32_t i = 0; i < rows; ++i) tokens[i] = int32_t(position + i);
    const SequenceStep sent(tokens, position, rows);
    StepParams params = sent;
    const std::vector<float> lookups = case_lookups(recorded.plan, rows);
    params.lookups = lookups;
    RL_TRY(recorded.executable->run(params));
    const auto out = recorded.executable->output();
    return std::vector<float>(out.begin(), out.end());
}

std::unique_ptr<Backend> open_hip() {
    return std::move(open_backend("hip", {})).value();
}

OpCase small_case(uint32_t rows) {
    return linear_case(*find_format("Q4_K"), rows, 40, 512, {true, true, false});
}

bool mentions(const Error& error, std::string_view text) {
    return error.message.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a card gets kernels for its target, or for its family, or a refusal that names it") {
    const std::string_view built[] = {"gfx90a", "gfx1030", "gfx1151", "gfx10-3-generic", "gfx11-generic"};
    const int rocm5 = 50700000, rocm63 = 60300000;
    const auto chosen = [&](std::string_view arch, int version) {
        const Result<std::string_view> target = hip::choose_target(arch, version, built);
        return target ? std::string(target.value()) : target.error().message;
    };
    CHECK(chosen("gfx90a:sramecc+:xnack-", rocm5) == "gfx90a");
    CHECK(chosen("gfx1151", rocm5) == "gfx1151");
    CHECK(chosen("gfx1030", rocm63) == "gfx1030");
    for (const char* sibling : {"gfx1031", "gfx1032", "gfx1034", "gfx1035", "gfx1036"})
        CHECK(chosen(sibling, rocm63) == "gfx10-3-generic");
    CHECK(chosen("gfx1152", rocm63) == "gfx11-generic");
    CHECK(chosen("gfx1031", rocm5).find("ROCm 6.3") != std::string::npos);
    for (const char* refused : {"gfx906", "gfx950", "gfx1201"}) {
        const std::string why = chosen(refused, rocm63);
        CHECK(why.find(refused) != std::string::npos);
        CHECK(why.find("vulkan") != std::string::npos);
    }
}

TEST_CASE("every target has every kernel that one of them has") {
    size_t modules = 0;
    for (const hip::CodeObject& object : hip::all_objects()) {
        CHECK(hip::unpack(object).ok());
        if (object.target == hip::built_targets()[0]) ++modules;
        for (const std::string_view target : hip::built_targets())
            CHECK(hip::find_object(target, object.name));
    }
    const auto has_kernels = [](const Format* format) { return weight_layout(*format) != nullptr; };
    const auto formats = std::count_if(all_formats().begin(), all_formats().end(), has_kernels);
    CHECK(modules == size_t(formats) + 9);  // caches, states, ranks, rates, element-wise ops, the rest
}

TEST_CASE("kernels that are damaged in the program are an error that names them, not code to load") {
    const hip::CodeObject& whole = hip::all_objects()[0];
    REQUIRE(hip::unpack(whole).ok());
    const auto why = [&](size_t bytes, size_t broken) {
        std::vector<std::byte> packed(whole.packed.begin(), whole.packed.end());
        packed.resize(bytes, std::byte(0));
        if (broken < bytes) packed[broken] ^= std::byte(0x55);
        const auto unpacked = hip::unpack({whole.target, whole.name, packed});
        CAPTURE(bytes);
        CAPTURE(broken);
        REQUIRE(!unpacked.ok());
        CHECK(mentions(unpacked.error(), fmt::format("kernels {} for {}", whole.name, whole.target)));
        CHECK(mentions(unpacked.error(), "damaged"));
        return unpacked.error().message;
    };
    const size_t all = whole.packed.size();
    why(0, all);
    why(all / 2, all);
    why(all + 7, all);
    CHECK(why(all, 0).find("not compressed") != std::string::npos);
    for (const size_t broken : {size_t(4), size_t(5), all / 2, all - 1}) why(all, broken);
}

TEST_CASE("a device without kernels is listed with the reason and refused") {
    const Setting arch("RL_HIP_DOUBLE_ARCH", "gfx906:sramecc+");
    const hip::Runtime& runtime = *hip::Runtime::get().value();
    const auto reports = hip::device_reports(runtime);
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].arch == "gfx906:sramecc+");
    CHECK(reports[0].missing.find("gfx906") != std::string::npos);
    const Result<std::unique_ptr<Backend>> opened = open_backend("hip", {});
    REQUIRE(!opened.ok());
    CHECK(mentions(opened.error(), "gfx906"));
}

TEST_CASE("replayed, direct and repeated steps give the same, bit for bit") {
    const std::unique_ptr<Backend> backend = open_hip();
    for (const uint32_t rows : {1u, 5u, 40u}) {
        const auto replayed = std::move(record(*backend, small_case(rows), Record::replay)).value();
        const auto direct = std::move(record(*backend, small_case(rows), Record::direct)).value();
        const std::vector<float> first = step(*replayed, rows).value();
        CHECK(first == step(*direct, rows).value());
        for (int i = 0; i < 5; ++i) CHECK(first == step(*replayed, rows).value());
    }
}

// Products of few rows that leave theirs to the next, or take what was left.
size_t few_leaving() {
    return launches_with<hip::args::FewArgs>(sizeof(hip::args::TileArgs) +
                                             offsetof(hip::args::LeftHalfs, halfs));
}
size_t few_taking() {
    return launches_with<hip::args::FewArgs>(sizeof(hip::args::TileArgs) + sizeof(hip::args::LeftHalfs) +
                                             offsetof(hip::args::TakenHalfs, reaches));
}

TEST_CASE("products take rows from the kernel that computed them: one in int8, few as halfs") {
    const std::unique_ptr<Backend> backend = open_hip();
    for (const uint32_t rows : {1u, 2u}) {
        CAPTURE(rows);
        constexpr size_t kGiven = offsetof(hip::args::DotArgs, hand.row),
                         kTaken = offsetof(hip::args::DotArgs, prepared);
        const size_t given = dots_with(kGiven), taken = dots_with(kTaken), tiled = products_in_tiles(),
                     left = few_leaving(), got = few_taking();
        const auto made =
            std::move(record(*backend, layer_case(*find_format("Q4_K"), rows), Record::replay)).value();
        REQUIRE(step(*made, rows).ok());
        // The first product has a separate input.
        CHECK(dots_with(kGiven) - given == (rows == 1 ? 3 : 0));
        CHECK(dots_with(kTaken) - taken == (rows == 1 ? 3 : 0));
        CHECK(products_in_tiles() - tiled == (rows == 1 ? 0 : 4));
        CHECK(few_leaving() - left == (rows == 1 ? 0 : 3));
        CHECK(few_taking() - got == (rows == 1 ? 0 : 3));
    }
}

TEST_CASE(
    "a group of two is one launch, and of two groups behind a product the first takes its row in int8") {
    const std::unique_ptr<Backend> backend = open_hip();
    const Format &q4k = *find_format("Q4_K"), &q8 = *find_format("Q8_0");
    for (const uint32_t rows : {1u, 2u}) {
        CAPTURE(rows);
        constexpr size_t kAll = offsetof(hip::args::DotArgs, step),
                         kGiven = offsetof(hip::args::DotArgs, hand.row),
                         kTaken = offsetof(hip::args::DotArgs, prepared);
        const size_t all = dots_with(kAll), given = dots_with(kGiven), taken = dots_with(kTaken),
                     tiled = products_in_tiles();
        const auto made = std::move(record(*backend, pairs_case(q4k, q8, rows), Record::replay)).value();
        REQUIRE(step(*made, rows).ok());
        CHECK(dots_with(kAll) - all == (rows == 1 ? 3 : 0));
        CHECK(products_in_tiles() - tiled == (rows == 1 ? 0 : 3));
        CHECK(dots_with(kGiven) - given == (rows == 1 ? 1 : 0));
        CHECK(dots_with(kTaken) - taken == (rows == 1 ? 1 : 0));
    }
}

TEST_CASE("attention does rope and store of one row by itself") {
    const std::unique_ptr<Backend> backend = open_hip();
    const auto stores = [] {
        return launches_with<hip::args::RopeStoreArgs>(offsetof(hip::args::RopeStoreArgs, step));
    };
    for (const uint32_t rows : {1u, 2u}) {
        const size_t before = stores();
        const OpCase c = attention_case({4, 2, 64}, rows, 0, {});
        const auto made = std::move(record(*backend, c, Record::replay)).value();
        REQUIRE(step(*made, rows).ok());
        CHECK(stores() - before == (rows == 1 ? 0 : 1));
    }
}

TEST_CASE("experts of few rows read and write them as int8, and no separate launch norms them") {
    const std::unique_ptr<Backend> backend = open_hip();
    for (const bool far : {false, true})
        for (const uint32_t rows : {1u, 2u}) {
            CAPTURE(rows);
            CAPTURE(far);
            constexpr size_t kGiven = offsetof(hip::args::DotArgs, hand.row),
                             kTaken = offsetof(hip::args::DotArgs, prepared);
            const auto norms = [] {
                return of_double<size_t(size_t, size_t)>("rl_hip_double_launches")(
                    sizeof(hip::args::NormArgs), offsetof(hip::args::NormArgs, of_outputs));
            };
            const size_t given = dots_with(kGiven), taken = dots_with(kTaken), normed = norms();
            const OpCase c = experts_layer_case(*find_format("Q4_K"), {16, 8, 256, 256}, rows, far);
            const auto made = std::move(record(*backend, c, Record::replay)).value();
            REQUIRE(step(*made, rows).ok());
            // Normed by its launch, the row is quantized by the experts themselves; of another sum's, too.
            // With two rows only the experts' first products are left so, for their second.
            const size_t wanted = far ? (rows == 2 ? 0 : 1) : rows == 2 ? 1 : 3;
            CHECK(dots_with(kGiven) - given == wanted);
            CHECK(dots_with(kTaken) - taken == wanted);
            if (!far) CHECK(norms() == normed);
        }
}

TEST_CASE("a shared expert goes along with the launches of those that are chosen") {
    const std::unique_ptr<Backend> backend = open_hip();
    constexpr size_t kShared = offsetof(hip::args::DotArgs, shared.w);
    const Format& q4k = *find_format("Q4_K");
    for (const bool weighted : {false, true})
        for (const char* beside : {"Q4_K", "Q8_0", "Q6_K", "Q5_0"}) {
            CAPTURE(beside);
            for (const uint32_t rows : {1u, 3u}) {
                CAPTURE(rows);
                const size_t before = dots_with(kShared);
                const OpCase c = shared_expert_case(q4k, {16, 8, 256, 256}, {256, beside, weighted}, rows);
                const auto made = std::move(record(*backend, c, Record::replay)).value();
                REQUIRE(step(*made, rows).ok());
                // A format that no kernel combines with Q4_K gets separate steps.
                CHECK(dots_with(kShared) - before == (std::string_view(beside) == "Q5_0" ? 0 : 2));
            }
        }
}

TEST_CASE("attention reads no keys but those that are there, and gives the same each time, bit for bit") {
    const std::unique_ptr<Backend> backend = open_hip();
    constexpr CacheTypes kTypes[] = {CacheType::f16,
                                     CacheType::q8_0,
                                     CacheType::f32,
                                     {CacheType::q4_0, CacheType::q5_1},
                                     {CacheType::bf16, CacheType::iq4_nl}};
    for (const CacheTypes types : kTypes)
        for (const uint32_t rows : {1u, 3u, 20u, 300u}) {
            CAPTURE(cache_types_name(types));
            AttentionFlags flags;
            flags.cache = types;
            OpCase c = attention_case({4, 1, 64}, rows, 1, flags);
            c.context = 400;
            const auto clean = std::move(record(*backend, c, Record::replay)).value();
            const auto dirty = std::move(record(*backend, c, Record::replay)).value();
            const CacheInfo cache{1, 64, c.context, types};
            const std::vector<std::byte> nan(cache.bytes(), std::byte(0xFF));
            REQUIRE(dirty->cache->write({0}, 0, c.context, nan).ok());
            const std::vector<float> first = step(*clean, rows).value();
            CHECK(first == step(*dirty, rows).value());
            CHECK(first == step(*dirty, rows).value());
            const std::vector<float> next = step(*clean, 1, rows).value();
            for (int i = 0; i < 3; ++i) CHECK(next == step(*dirty, 1, rows).value());
        }
}

TEST_CASE("grids of three blocks give what long ones give, bit for bit, where kernels stride") {
    const std::unique_ptr<Backend> longer = open_hip();
    const std::unique_ptr<Backend> three = std::move(open_backend("hip", {.most_groups = 3})).value();
    for (const OpCase& c : op_cases()) {
        if (c.cpu_only || c.rows > 21) continue;  // the double is slow
        CAPTURE(c.name);
        const auto want = std::move(record(*longer, c, Record::direct)).value();
        const auto got = std::move(record(*three, c, Record::direct)).value();
        CHECK(step(*got, c.rows).value() == step(*want, c.rows).value());
    }
}

TEST_CASE("the peak of matrix units is measured with products that are checked") {
    const std::unique_ptr<Backend> backend = open_hip();
    const std::optional<MatrixPeak> peak = backend->measure_matrix_peak().value();
    REQUIRE(peak);
    const bool has_units = backend->device().detail.find("gfx10") == std::string::npos;
    CHECK((peak->halfs > 0.0) == has_units);
    CHECK((peak->bytes > 0.0) == has_units);
    CHECK(backend->measure_matrix_peak().value()->halfs == peak->halfs);
}

// All ops of a case for which a backend offers to compute many rows in int8 do so.
void choose_int8(Backend& backend, const OpCase& c) {
    Fixture fixture(7, c.rows);
    const Plan plan = std::move(case_plan(c, fixture, c.rows, c.rows)).value();
    Variants all;
    for (const Step& step : plan.steps)
        for (const RowClass rows : {RowClass::some, RowClass::many})
            for (const Choice& choice : backend.choices_for(step.op, plan, rows))
                if (choice.name == "int8") {
                    CHECK(choice.values == std::vector<uint32_t>{0, 1});
                    all[{kernel_key(step.op, plan), rows}]["int8"] = 1;
                }
    backend.use(std::move(all));
}

TEST_CASE("many rows go to matrix units in int8 by choice, with formats whose scales are of 32 elements") {
    const std::unique_ptr<Backend> backend = open_hip();
    // Q6_K has a scale for every 16 elements.
    for (const auto& [format, offered] :
         {std::pair{"Q4_K", true}, {"Q8_0", true}, {"Q6_K", false}, {"F16", false}})
        for (const OpCase& c : {linear_case(*find_format(format), 130, 40, 512, {true, true, false}),
                                gated_case(*find_format(format), Act::silu, true, 130, 40, 512),
                                long_expert_case(*find_format(format), 130, 512, false)}) {
            CAPTURE(c.name);
            const auto precision = [&] {
                Fixture fixture(7, c.rows);
                const Plan plan = std::move(case_plan(c, fixture, c.rows, c.rows)).value();
                const BoundPlan bound = std::move(lower(plan, *backend)).value();
                Precision all;
                for (const auto& kernel : bound.kernels) all = loosest(all, kernel->precision(c.rows));
                return all;
            };
            CHECK(precision().activations == to_half(9));
            const auto halfs = std::move(record(*backend, c, Record::replay)).value();
            const std::vector<float> want = step(*halfs, c.rows).value();
            choose_int8(*backend, c);
            CHECK(precision().activations == (offered ? to_int8(32) : to_half(9)));
            const auto made = std::move(record(*backend, c, Record::replay)).value();
            CHECK((step(*made, c.rows).value() == want) == !offered);
            backend->use({});
        }
}

TEST_CASE("rows that are not finite have no finite results in int8") {
    const std::unique_ptr<Backend> backend = open_hip();
    for (const float size : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
        OpCase c;
        c.rows = 70;
        c.declare = [size](Fixture& f) -> OpCase::Build {
            const Weight x = f.input(256), w = f.matrix(*find_format("Q4_K"), 40, 256);
            return [=](PlanBuilder& p) { return p.linear(p.embed(x, size), w); };
        };
        choose_int8(*backend, c);
        const auto made = std::move(record(*backend, c, Record::replay)).value();
        CHECK(std::ranges::all_of(step(*made, c.rows).value(), [](float y) { return std::isnan(y); }));
    }
}

TEST_CASE("memory that runs out is an error with numbers, and leaves the device usable") {
    const std::unique_ptr<Backend> backend = open_hip();
    const size_t before = in_use();
    for (int call = 1; call <= 12; ++call) {
        const Setting fail("RL_HIP_DOUBLE_FAIL", fmt::format("hipMalloc {} 2", call));
        const auto made = record(*backend, small_case(3), Record::replay);
        if (made.ok()) break;
        CHECK(mentions(made.error(), "cannot allocate"));
        CHECK(mentions(made.error(), "are free"));
        CHECK(in_use() == before);
        CHECK(call < 12);
    }
    CHECK(step(*record(*backend, small_case(3), Record::replay).value(), 3).ok());
    CHECK(in_use() == before);
}

TEST_CASE("on an APU weights go on into host memory when the device's share is full, on a card they do not") {
    const Setting memory("RL_HIP_DOUBLE_MEMORY", "0");
    for (const char* apu : {"1", "0"}) {
        const Setting integrated("RL_HIP_DOUBLE_APU", apu);
        const hip::Runtime& runtime = *hip::Runtime::get().value();
        const auto device = std::move(hip::Device::open(runtime, hip::device_reports(runtime)[0])).value();
        hip::Memory pool(*device);
        const bool is_apu = *apu == '1' || device->report().integrated;
        CHECK(pool.allocate(1 << 20, hip::Use::weights, "a tensor").ok() == is_apu);
        CHECK(!pool.allocate(1 << 20, hip::Use::scratch, "activations").ok());
        CHECK(pool.allocated() == 0);
    }
}

TEST_CASE("a failure of any call is an error, and a lost device stays lost") {
    for (const char* function :
         {"hipModuleLoadData", "hipMemcpyHtoDAsync", "hipHostMalloc", "hipStreamBeginCapture",
          "hipGraphInstantiateWithFlags", "hipGraphLaunch", "hipMemcpyDtoHAsync"}) {
        CAPTURE(function);
        const std::unique_ptr<Backend> backend = open_hip();
        {
            const Setting fail("RL_HIP_DOUBLE_FAIL", fmt::format("{} 1 999", function));
            const auto made = record(*backend, small_case(1), Record::replay);
            CHECK((!made.ok() || !step(*made.value(), 1).ok()));
        }
        CHECK(step(*record(*backend, small_case(1), Record::replay).value(), 1).ok());
    }
    const std::unique_ptr<Backend> backend = open_hip();
    const auto made = std::move(record(*backend, small_case(1), Record::replay)).value();
    {
        const Setting fail("RL_HIP_DOUBLE_FAIL", "hipStreamSynchronize 1 719");
        const Result<std::vector<float>> lost = step(*made, 1);
        REQUIRE(!lost.ok());
        CHECK(mentions(lost.error(), "was lost"));
    }
    const Result<std::vector<float>> again = step(*made, 1);
    REQUIRE(!again.ok());
    CHECK(mentions(again.error(), "open it again"));
}

TEST_CASE("a step that is cancelled ends with an error and the next one runs") {
    const std::unique_ptr<Backend> backend = open_hip();
    const auto made = std::move(record(*backend, small_case(1), Record::replay)).value();
    const std::atomic<bool> cancel = true;
    const int32_t token = 0;
    const SequenceStep alone({&token, 1}, 0, 1);
    StepParams params = alone;
    params.cancel = &cancel;
    const Status cancelled = made->executable->run(params);
    REQUIRE(!cancelled.ok());
    CHECK(mentions(cancelled.error(), "interrupted"));
    CHECK(step(*made, 1).ok());
}

TEST_CASE("defaults: each row says for which devices, where from and since when; found by properties") {
    const std::span<const gpu::DefaultRow> tables[] = {gpu::kProductDefaults, gpu::kExpertDefaults,
                                                       gpu::kAttentionDefaults, gpu::kLatentDefaults,
                                                       gpu::kRecurrentDefaults};
    for (const auto table : tables)
        for (const gpu::DefaultRow& row : table) {
            INFO(row.choice, ", ", row.usual.devices);
            CHECK(row.usual.devices != "");
            CHECK(row.usual.source != "");
            CHECK(row.usual.date.starts_with("2026-"));
            CHECK((!row.rule || row.usual.value == 0));
            CHECK(choice_meaning(row.choice) != "");
        }
    const auto products = [](std::string_view choice, const gpu::DeviceClass& device,
                             std::string_view format) {
        return gpu::default_of(gpu::kProductDefaults, choice, device, {.format = format}).value;
    };
    const gpu::DeviceClass cdna{.hip = true, .wave = 64, .matrix_units = true},
        rdna3{.hip = true, .matrix_units = true}, rdna2{.hip = true}, vulkan{.matrix_units = true},
        apart{.matrix_units = true, .fragments = true, .fragments_apart = true};
    CHECK(products("few_rows", cdna, "Q4_K") == 16);
    CHECK(products("few_rows", rdna3, "Q4_K") == 64);
    CHECK(products("vector_rows", rdna3, "F16") == 1);
    CHECK(products("vector_rows", rdna2, "Q4_K") == 8);
    CHECK(products("vector_rows", vulkan, "F16") == 2);
    CHECK(products("vector_rows", vulkan, "Q8_0") == 4);
    CHECK(products("vector_rows", vulkan, "Q4_K") == 8);
    CHECK(products("vector_rows", apart, "Q4_K") == 1);
    CHECK(products("fragments", vulkan, "Q4_K") == 0);
    CHECK(products("fragments", apart, "Q4_K") == 1);
    const auto latents = [](const gpu::DeviceClass& device, RowClass rows) {
        const gpu::Work work = {.rows = rows, .matrices = true};
        return gpu::default_of(gpu::kLatentDefaults, "queries", device, work).value;
    };
    CHECK(latents({.hip = true, .held_twice = true}, RowClass::many) == 16);
    CHECK(latents({.hip = true, .one_wide = true}, RowClass::some) == 16);
    CHECK(latents({.hip = true, .one_wide = true}, RowClass::many) == 32);
    CHECK(latents({.hip = true}, RowClass::one) == 32);
    const auto lanes = [](uint32_t units, uint64_t groups, uint32_t dims) {
        const gpu::Work work = {.groups = groups, .dims = dims, .most = 16};
        return gpu::default_of(gpu::kRecurrentDefaults, "lanes", {.hip = true, .units = units}, work).value;
    };
    CHECK(lanes(48, 64, 128) == 8);
    CHECK(lanes(96, 64, 128) == 16);
    CHECK(lanes(48, 64, 256) == 16);
    CHECK(gpu::unsorted_rows(rdna3, 128, 8).value == 8);
    CHECK(gpu::unsorted_rows(vulkan, 128, 8).value == 15);
    CHECK(gpu::unsorted_rows(vulkan, 256, 1).value == 255);
    CHECK(gpu::some_unsorted_rows(vulkan, 256, 1).value == 128);
    CHECK(gpu::rows_alone(rdna3, 128, 8).value == 16);
    CHECK(gpu::rows_alone(rdna3, 512, 8).value == 32);
    CHECK(gpu::rows_alone(vulkan, 8, 2).value == 8);
    const auto narrow = [](const gpu::DeviceClass& device) {
        return gpu::default_of(gpu::kExpertDefaults, "tile_tokens", device);
    };
    const gpu::DeviceClass hopper{.hip = true, .matrix_units = true, .overlaps = true};
    // 512 rows of 35B-A3B, 30B-A3B and gpt-oss-20b.
    for (const auto& [experts, used, on_cdna, on_rdna3] :
         {std::tuple{256u, 8u, 32u, 32u}, {128u, 8u, 32u, 64u}, {32u, 4u, 64u, 64u}}) {
        CHECK(gpu::tile_places(0, narrow(cdna), 512 * used, experts) == on_cdna);
        CHECK(gpu::tile_places(0, narrow(rdna3), 512 * used, experts) == on_rdna3);
        for (const gpu::DeviceClass& device : {rdna2, hopper})
            CHECK(gpu::tile_places(0, narrow(device), 512 * used, experts) == 64);
        CHECK(gpu::tile_places(64, narrow(cdna), 512 * used, experts) == 64);
    }
}
