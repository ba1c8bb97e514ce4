"""Predicted tokens per second of whole models, beside the fastest figures that users of any program publish.

A token takes its weights' bytes at the bandwidth that the memory gives and the kernels could use, and for each dispatch what an
empty one takes on that card and API plus OP_CYCLES: activations taken over, the first loads' latency, the last blocks. That one
number is measured: an H100 takes 3.2 us per dispatch of a recorded step beyond its bytes (tools/amd/amd-speed nvidia), of which 1.2
are an empty one's. A prompt takes its operations at the share of the peak that its kernels could reach, in as many rounds of
tiles as fill the card, and OTHER of the time for attention, preparing and the rest.
"""
import math

import amd_speed_model as model

OP_CYCLES = 3500
OTHER = 0.25
TOKENS = 512  # of the prompt
PEAK = {"gfx10": 256, "gfx11": 512, "gfx12": 1024, "gfx90a": 1024, "gfx942": 2048}  # FLOP per cycle and unit, halfs

# Bytes of a token by format, dispatches of a token as tools' plans have them (attention as three), matrices of a layer as (rows,
# columns, how many experts share the prompt's tokens, of which how many each takes), layers.
MODELS = {
    "Llama-3.1-8B Q4_K_M": {
        "bytes": {"q4_k": 3.39e9, "q6_k": 1.23e9}, "dispatches": 7 * 32 + 3, "layers": 32, "prompt": "q4_k",
        "matrices": [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]},
    "Qwen3.5-35B-A3B Q4_K_M": {
        "bytes": {"q4_k": 1.2e9, "q6_k": 0.71e9}, "dispatches": 8 * 30 + 10 * 10 + 3, "layers": 40, "prompt": "q4_k",
        "matrices": [(12352, 2048), (2048, 4096), (1024, 2048), (2048, 512)], "experts": (256, 8, [(1024, 2048), (2048, 512)])},
    "gpt-oss-20b MXFP4": {
        "bytes": {"mxfp4": 1.27e9, "q8_0": 1.29e9}, "dispatches": 8 * 24 + 3, "layers": 24, "prompt": "mxfp4",
        "matrices": [(5120, 2880), (2880, 4096)], "experts": (32, 4, [(5760, 2880), (2880, 2880)])},
}
# (card, model): prompt and generation, tokens per second, and where they were published: the fastest of any program, with the
# prompt's length where it is not 512. Similar models are named; hipfire's files have private formats of 4.3 bits.
PEERS = {
    ("RX 7900 XTX", "Llama-3.1-8B Q4_K_M"): (3391, 105.8, "ROCm, llama.cpp PR 26284; Vulkan 7B Q4_0 167 to 177, issue 20934"),
    ("RX 7900 XTX", "Qwen3.5-35B-A3B Q4_K_M"): (2105, 253.0, "hipfire, Qwen3.6; prompt Vulkan, Q4_0, ubergarm on Hugging Face"),
    ("Radeon 8060S", "Llama-3.1-8B Q4_K_M"): (833, 41.6, "Vulkan, strixhalo-homelab 11"),
    ("Radeon 8060S", "Qwen3.5-35B-A3B Q4_K_M"): (
        3400, 115.1, "hipfire, Qwen3.6; prompt Halo Box 1.0; llama.cpp 1604 at 2048 with ROCm 7.14, 62.8 with Vulkan b10269"),
    ("Radeon 8060S", "gpt-oss-20b MXFP4"): (564, 45.0, "Vulkan of August 2025, F16 file, geerlingguy/ai-benchmarks 21"),
    ("Steam Deck", "Llama-3.1-8B Q4_K_M"): (69, 11.0, "Vulkan, a 7B in Q4"),
    ("RX 9070 XT", "Llama-3.1-8B Q4_K_M"): (4802, 119.6, "Vulkan, maeddesg/vulkanforge; Qwen3-8B on Windows 4199 HIP, 104.3 Vulkan"),
    ("RX 9070 XT", "gpt-oss-20b MXFP4"): (None, 132.0, "Vulkan, LM Studio 574"),
    ("Radeon AI PRO R9700", "Qwen3.5-35B-A3B Q4_K_M"): (11589, 203.9, "hipfire, Qwen3.6; prompt 20035 at 8192"),
    ("Instinct MI300X", "Llama-3.1-8B Q4_K_M"): (5839, 161.0, "ROCm, Qwen3-8B, discussion 14640"),
}


def kernels_share(got, card, api, form, phase):
    """The least share of the kernels that do most of the work in a format, or None."""
    stems = {"hip": {"decode": ("linear_dot_own_", "gated_dot_own_"), "prompt": ("linear_matrix_128_", "gated_matrix_"),
                     "experts": ("expert_matrix_", "expert_gated_matrix_")},
             "vulkan": {"decode": ("linear_dot_own.", "gated_dot_own."), "prompt": ("linear_coop.", "gated_coop."),
                        "experts": ("expert_coop.",)}}[api][phase]
    shares = []
    for kernel, of in got.of(card):
        if kernel.api != api or of != form or not kernel.name.startswith(stems):
            continue
        if phase == "decode" and kernel.decode:
            shares.append(model.decode_share(kernel, card, got.bytes[form])["share"])
        elif phase != "decode" and kernel.prompt and "128,128" in kernel.name + ("128,128" if api == "hip" else ""):
            shares.append(model.prompt_share(kernel, card)["share"])
    return min(shares, default=None)


def decode_speed(got, card, api, what):
    """Tokens per second and the share of the printed bandwidth, or None."""
    seconds = 0.0
    for form, size in what["bytes"].items():
        share = kernels_share(got, card, api, form, "decode")
        if share is None:
            return None
        seconds += size / (card["bandwidth_gbs"] * 1e9 * min(share, card["memory_share"]))
    gaps = what["dispatches"] * (card["launch_us"][api] * 1e-6 + OP_CYCLES / card["clock_ghz"] * 1e-9)
    return 1.0 / (seconds + gaps), gaps / (seconds + gaps)


def tiles_seconds(card, rows, columns, tokens, tokens_of_tile, copies, rate):
    """A product in tiles of 128 rows, of which each compute unit does one at a time."""
    tiles = math.ceil(rows / 128) * math.ceil(tokens / tokens_of_tile) * copies
    rounds = math.ceil(tiles / card["units"])
    return rounds * 2.0 * 128 * tokens_of_tile * columns / rate


def prompt_speed(got, card, api, what):
    per_cycle = next(value for target, value in PEAK.items() if card["target"].startswith(target))
    peak = per_cycle * card["clock_ghz"] * 1e9  # of a unit
    share = kernels_share(got, card, api, what["prompt"], "prompt")
    if share is None:
        return None
    seconds = sum(tiles_seconds(card, rows, columns, TOKENS, 128, 1, peak * share) for rows, columns in what["matrices"])
    if "experts" in what:
        experts, used, matrices = what["experts"]
        each = kernels_share(got, card, api, what["prompt"], "experts") or share
        seconds += sum(tiles_seconds(card, rows, columns, max(1, TOKENS * used // experts), 64, experts, peak * each)
                       for rows, columns in matrices)
    return TOKENS / (seconds * what["layers"] / (1.0 - OTHER) + what["dispatches"] * card["launch_us"][api] * 1e-6)


def rows(got):
    out = []
    for card in got.cards:
        for name, what in MODELS.items():
            peer = PEERS.get((card["name"], name), (None, None, None))
            for api in card["launch_us"]:
                decode, prompt = decode_speed(got, card, api, what), prompt_speed(got, card, api, what)
                out.append({"card": card["name"], "model": name, "api": api, "dispatches": what["dispatches"],
                            "us each": card["launch_us"][api] + OP_CYCLES / card["clock_ghz"] * 1e-3,
                            "predicted tok/s": decode and decode[0], "in dispatches %": decode and 100 * decode[1],
                            "published tok/s": peer[1], "ratio": decode and peer[1] and round(decode[0] / peer[1], 2),
                            "predicted prompt": prompt and float(round(prompt)), "published prompt": peer[0],
                            "prompt ratio": prompt and peer[0] and round(prompt / peer[0], 2), "published by": peer[2]})
    return out
