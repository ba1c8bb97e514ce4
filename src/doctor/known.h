// Known GPUs, and firmware with known faults.
#pragma once

#include <cstdint>
#include <string_view>

namespace redline {

// GPUs by PCI id, with the bandwidth of their memory in GB/s: its width times its data rate. Where several
// products share an id, or products can have different memory, it is the slowest one's.
struct KnownGpu {
    uint32_t device;
    std::string_view name;
    double gb_per_second;
};
inline constexpr KnownGpu kKnownGpus[] = {
    {0x163f, "Steam Deck LCD (Van Gogh)", 88},
    {0x1435, "Steam Deck OLED (Sephiroth)", 102},
    {0x15bf, "Radeon 780M (Phoenix)", 83},
    {0x150e, "Radeon 890M (Strix Point)", 89},
    {0x1586, "Radeon 8060S or 8050S (Strix Halo)", 256},
    {0x73bf, "RX 6800 to 6900 XT (Navi 21)", 512},
    {0x744c, "RX 7900 GRE to XTX (Navi 31)", 576},
    {0x7448, "Radeon PRO W7900", 864},
    {0x7480, "RX 7600 (Navi 33)", 288},
    {0x7550, "RX 9070 or 9070 XT (Navi 48)", 640},
    {0x740f, "Instinct MI210", 1638},
    {0x74a1, "Instinct MI300X", 5300},
};

// Firmware versions that give wrong results or hang, with the public report.
struct BadFirmware {
    std::string_view part;
    uint64_t version;
    std::string_view targets;  // the beginning of the targets it runs on
    std::string_view effect;
    std::string_view remedy;
    std::string_view source;
};
inline constexpr BadFirmware kBadFirmware[] = {
    {"mes", 0x83, "gfx11", "page faults and hangs of the GPU under ROCm",
     "install another version of linux-firmware than 20251125 (MES 0x80 is known to work), or use --device "
     "vulkan",
     "ROCm issue 5724"},
};

}  // namespace redline
