// A device of the runtime: what it reports, and one opened for use with its kernels and stream.
#pragma once

#include "api.h"
#include "memory/budget.h"
#include "objects.h"

#include <map>
#include <mutex>
#include <vector>

namespace redline::hip {

struct DeviceReport {
    int index = 0;
    std::string name;
    std::string arch;     // as the runtime names it, features and all
    std::string target;   // whose kernels it runs; empty when there are none
    std::string missing;  // what it lacks to be used; empty when it can
    bool integrated = false;
    uint32_t multiprocessors = 0;
    uint64_t memory_total = 0;
    uint64_t memory_free = 0;
    std::string pci;  // "0000:c3:00.0"
    uint32_t wave() const { return target.starts_with("gfx9") ? 64 : 32; }
    // gfxhost computes as if it had them.
    bool matrix_units() const { return !target.starts_with("gfx10"); }
    // Tokens of a tile of kernels/few.h: those of a matrix of the units, or half of them where that is
    // faster.
    uint32_t fewest_tokens() const { return target.starts_with("sm_") || target == "gfxhost" ? 8 : 16; }
    // Of a block of the kernels in kernels/dot.h: wide blocks prepare their activations less often.
    uint32_t dot_threads() const { return target.starts_with("sm_") ? 512 : 256; }
    // Copies to shared memory while a kernel goes on, and starts a launch while the one before it ends.
    bool copies_ahead() const;
    // Waves multiply tiles together, as kernels/tile.h does then; a kernel for such tiles wants so much
    // shared memory, in bytes, that its launch says.
    bool wave_groups() const { return target == "sm_90"; }
    uint32_t tile_shared(uint32_t rows, uint32_t tokens) const {
        constexpr uint32_t kTurns = 2, kRowBytes = 144;
        return wave_groups() ? kTurns * (rows + tokens) * kRowBytes : 0;
    }
    // Of a tile of an expert's products that are not gated, as kernels/tile.h has it.
    uint32_t expert_rows() const { return target.starts_with("gfx") && target != "gfxhost" ? 128 : 64; }
    // What can be planned with.
    MemoryBudget budget() const;
};

std::vector<DeviceReport> device_reports(const Runtime& runtime);
// By number or part of the name; empty: the best that can be used, cards before APUs, then by memory. `why`
// says why this one.
Result<DeviceReport> choose_device(const std::vector<DeviceReport>& devices, const std::string& wanted,
                                   std::string& why);

struct Launch {
    uint32_t x = 1, y = 1, z = 1;  // blocks
    uint32_t threads = 128;
    uint32_t shared = 0;   // bytes of shared memory whose size the launch says
    bool strides = false;  // along x: blocks go on by grid_blocks() until all is done, however few they are
    bool early = false;    // may begin while the launch before it ends, where a device knows how
};

class Device {
public:
    static Result<std::unique_ptr<Device>> open(const Runtime& runtime, DeviceReport report);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const DeviceReport& report() const { return report_; }
    const Functions& call() const { return runtime_.call; }
    Stream stream() const { return stream_; }
    // Makes it the calling thread's device: each thread must, before it calls the runtime. An error once it
    // is lost.
    Status use();
    // Turns a code into an error; one after which the device does nothing more is remembered.
    Status checked(Code code, std::string_view doing);
    bool lost() { return !not_lost(); }
    Status synchronize(std::string_view doing) { return checked(call().stream_synchronize(stream_), doing); }

    // Of a launch that strides, along x: more gain nothing. Tests ask for fewer.
    uint32_t most_blocks = 65535;

    // Loaded on first use.
    Result<Function> kernel(const std::string& module, const std::string& name);
    // `args` is copied before this returns.
    Status launch(Function function, const Launch& shape, std::span<const std::byte> args);

private:
    struct Loaded {
        std::vector<std::byte> image;  // which a runtime may read for as long as the module is there
        Module module = nullptr;
    };
    Status not_lost();
    Result<Module> module(const std::string& name);
    Device(const Runtime& runtime, DeviceReport report) : runtime_(runtime), report_(std::move(report)) {}

    const Runtime& runtime_;
    DeviceReport report_;
    Stream stream_ = nullptr;
    std::map<std::string, Loaded> modules_;
    std::map<std::string, Function> functions_;
    std::mutex lost_mutex_;
    std::string lost_;  // the error that the device was lost with
};

}  // namespace redline::hip
