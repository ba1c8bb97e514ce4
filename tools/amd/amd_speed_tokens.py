"""Predicted tokens per second of whole models, beside the fastest figures that users of any program publish.

A token takes its weights' bytes at the bandwidth that the memory gives and the kernels could use, and for each dispatch what an
empty one takes on that card and API plus OP_CYCLES: activations taken over, the first loads' latency, the last blocks. That one
number is measured: an H100 takes 3.2 us per dispatch of a recorded step beyond its bytes (tools/amd/amd-speed nvidia), of which 1.2
are an empty one's. A prompt goes in steps of at most step_rows() rows, each of which takes its operations at the share of the peak that
its kernels could reach, in as many rounds of tiles as fill the card, or its weights' bytes at the bandwidth where that takes longer, and
beside the operations OTHER of the time for attention, preparing and the rest. Rows fall on experts as chance has it. In int8 it takes what the kernels of int8 could
reach of the peak in int8, where the format has such kernels; matrices of others stay in halfs.
"""
import math
import re

import amd_speed_model as model

OP_CYCLES = 3500
OTHER = 0.25
TOKENS = 512  # of the prompt
# Cards whose memory is a CPU's, too, or less than 15 GB: usual_batch() in src/devices/device_choice.cpp.
SHORT_STEPS = ("Steam Deck", "Radeon 780M", "Radeon 8060S", "Radeon 890M", "RX 7600")

# Bytes of a token by format, dispatches of a token as tools' plans have them (attention as three), layers. Matrices of a layer as
# (rows, columns); of experts how many there are, of which each token takes how many, and their matrices. "prompt" has the
# formats of both, with the share of the operations that each has.
MODELS = {
    "Llama-3.1-8B Q4_K_M": {
        "bytes": {"q4_k": 3.39e9, "q6_k": 1.23e9}, "dispatches": 7 * 32 + 3, "layers": 32,
        "prompt": {"dense": {"q4_k": 0.856, "q6_k": 0.144}},
        "matrices": [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]},
    "Qwen3.5-35B-A3B Q4_K_M": {
        "bytes": {"q4_k": 1.2e9, "q6_k": 0.71e9}, "dispatches": 8 * 30 + 10 * 10 + 3, "layers": 40,
        "prompt": {"dense": {"q4_k": 1.0}, "experts": {"q4_k": 0.833, "q6_k": 0.167}},
        "matrices": [(12352, 2048), (2048, 4096), (1024, 2048), (2048, 512)], "experts": (256, 8, [(1024, 2048), (2048, 512)])},
    "Qwen3-30B-A3B Q4_K_M": {
        "bytes": {"q4_k": 1.35e9, "q6_k": 0.52e9}, "dispatches": 6 * 48 + 3, "layers": 48,
        "prompt": {"dense": {"q4_k": 1.0}, "experts": {"q4_k": 0.833, "q6_k": 0.167}},
        "matrices": [(5120, 2048), (2048, 4096)], "experts": (128, 8, [(1536, 2048), (2048, 768)])},
    "gpt-oss-20b MXFP4": {
        "bytes": {"mxfp4": 1.27e9, "q8_0": 1.29e9}, "dispatches": 8 * 24 + 3, "layers": 24,
        "prompt": {"dense": {"q8_0": 1.0}, "experts": {"mxfp4": 1.0}},
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


# The kernels that do most of the work of a phase, by the start of their names.
STEMS = {
    "hip": {"decode": ("linear_dot_own_", "gated_dot_own_"),
            "halfs": {"dense": ("linear_matrix_128_", "gated_matrix_"), "experts": ("expert_matrix_", "expert_gated_matrix_")},
            "int8": {"dense": ("linear_bytes_128_", "gated_bytes_"), "experts": ("expert_bytes_", "expert_gated_bytes_")}},
    "vulkan": {"decode": ("linear_dot_own.", "gated_dot_own."),
               "halfs": {"dense": ("linear_coop.", "gated_coop."), "experts": ("expert_coop.",)},
               "int8": {"dense": ("linear_coop_int8", "gated_coop_int8", "linear_coop_dots", "gated_coop_dots"),
                        "experts": ("expert_coop_int8", "expert_coop_dots")}},
}


def step_rows(card):
    """Rows of a step of a long prompt."""
    return 512 if card["name"] in SHORT_STEPS else 1024


def narrow_places(card):
    """HIP: the most places that each expert has on average where tiles have 32; backends/gpu/defaults.h."""
    return {"gfx9": 32, "gfx10": 0}.get(re.match(r"gfx(9|10)?", card["target"])[0], 28)


def tile_of(api, kind, what, card, tokens, wide=False):
    """Tokens of a tile, and how many of them at a time are left out where they are empty. `wide`: HIP as it was before
    1 December 2026."""
    if kind == "dense":
        return (64, 64) if api == "vulkan" and card["target"].startswith("gfx10") else (128, 128)
    experts, used, _ = what["experts"]
    each = tokens * used / experts
    if api == "vulkan":  # entries_of_tile()
        tile = 32 if int(each) <= 32 else 64 if each < 128 or card["target"].startswith("gfx10") else 128
        return tile, tile
    if wide:
        return 64, 64
    tile = 32 if each <= narrow_places(card) else 64
    return tile, 16 if card["target"].startswith("gfx10") else tile if card["target"].startswith("gfx9") else tile // 2


def shares(got, card, api, form, stems, tokens=0, live=1.0):
    """The share that each kernel of these could reach, of those of experts and of Vulkan's only such with tiles of so many
    tokens."""
    for kernel, of in got.of(card):
        if kernel.api != api or of != form or not kernel.name.startswith(stems):
            continue
        if kernel.decode:
            yield model.decode_share(kernel, card, got.bytes[form])["share"]
        elif kernel.prompt and (("_32_" in kernel.name) == (tokens == 32) if api == "hip" else f"256,128,{tokens}," in kernel.name):
            yield model.prompt_share(kernel, card, live)["share"]


def decode_share(got, card, api, form):
    """The least share of the kernels that do most of the work in a format, or None."""
    return min(shares(got, card, api, form, STEMS[api]["decode"]), default=None)


def decode_speed(got, card, api, what):
    """Tokens per second and the share of the printed bandwidth, or None."""
    seconds = 0.0
    for form, size in what["bytes"].items():
        share = decode_share(got, card, api, form)
        if share is None:
            return None
        seconds += size / (card["bandwidth_gbs"] * 1e9 * min(share, card["memory_share"]))
    gaps = what["dispatches"] * (card["launch_us"][api] * 1e-6 + OP_CYCLES / card["clock_ghz"] * 1e-9)
    return 1.0 / (seconds + gaps), gaps / (seconds + gaps)


def tiles_seconds(card, rows, columns, tiles, tile, each):
    """A product in so many tiles of 128 rows, of which each compute unit does one at a time, in so many seconds per
    operation."""
    return math.ceil(math.ceil(rows / 128) * tiles / card["units"]) * 2.0 * 128 * tile * columns * each


def seconds_per_operation(got, card, api, kind, what, types, tile, live=1.0):
    """A compute unit's, which multiplies formats in the first of these types that they have kernels for, or None."""
    seconds = 0.0
    peaks = next(value for target, value in got.data["peaks"].items() if card["target"].startswith(target))
    for form, part in what["prompt"][kind].items():
        for of in types:
            share = min(shares(got, card, api, form, STEMS[api][of][kind], tile, live), default=None)
            if share is not None:
                seconds += part / (peaks[of] * card["clock_ghz"] * 1e9 * share)
                break
        else:
            return None
    return seconds


def places_by_chance(mean):
    """(places of an expert, how likely so many are)."""
    first = max(0, math.floor(mean - 8 * math.sqrt(mean) - 8))
    for n in range(first, math.ceil(mean + 8 * math.sqrt(mean) + 16)):
        yield n, math.exp(n * math.log(mean) - mean - math.lgamma(n + 1))


def memory_seconds(got, card, kind, what, weights):
    each = sum(part * got.bytes[form] / 32 for form, part in what["prompt"][kind].items())
    return weights * each / (card["bandwidth_gbs"] * 1e9 * card["memory_share"])


def expert_seconds(got, card, api, what, tokens, each_of, tile, left_out):
    """The products of a layer's experts, (their operations, the longer of these and of reading weights). each_of(live): seconds per
    operation of tiles of which so much is multiplied."""
    experts, used, matrices = what["experts"]
    tiles = each = absent = 0.0
    for places, chance in places_by_chance(tokens * used / experts):
        whole, rest = divmod(places, tile)
        tiles += chance * (whole + (rest > 0))
        each += chance * (whole * each_of(1.0) + (each_of(math.ceil(rest / left_out) * left_out / tile) if rest else 0.0))
        absent += chance if places == 0 else 0.0
    return [longer(tiles_seconds(card, rows, columns, tiles * experts, tile, each / tiles),
                   memory_seconds(got, card, "experts", what, (1.0 - absent) * experts * rows * columns)) for rows, columns in matrices]


def longer(operations, memory):
    return operations, max(operations, memory)


def step_seconds(got, card, api, what, types, tokens, wide):
    """None where the card has no kernels for it."""
    dense = seconds_per_operation(got, card, api, "dense", what, types, 128)
    if dense is None:
        return None
    products = [longer(tiles_seconds(card, rows, columns, math.ceil(tokens / 128), min(128, tokens), dense),
                       memory_seconds(got, card, "dense", what, rows * columns)) for rows, columns in what["matrices"]]
    if "experts" in what:
        tile, left_out = tile_of(api, "experts", what, card, tokens, wide)
        lives = {n * left_out / tile for n in range(1, tile // left_out + 1)}
        each = {live: seconds_per_operation(got, card, api, "experts", what, types, tile, live) for live in lives}
        if None in each.values():
            return None
        products += expert_seconds(got, card, api, what, tokens, each.get, tile, left_out)
    operations, bound = map(sum, zip(*products))
    return what["layers"] * (bound + operations * OTHER / (1.0 - OTHER)) + what["dispatches"] * card["launch_us"][api] * 1e-6


def prompt_speed(got, card, api, what, types, tokens=TOKENS, wide=False):
    whole, rest = divmod(tokens, step_rows(card))
    steps = [(whole, step_rows(card))] * (whole > 0) + [(1, rest)] * (rest > 0)
    seconds = [step_seconds(got, card, api, what, types, of, wide) for _, of in steps]
    return None if None in seconds else tokens / sum(times * one for (times, _), one in zip(steps, seconds))


def has_int8(got, card, api, what):
    """True where a format of its prompts has kernels of int8 on the card."""
    return any(True for kind, forms in what["prompt"].items() for form in forms
               for _ in shares(got, card, api, form, STEMS[api]["int8"][kind], tile_of(api, kind, what, card, TOKENS)[0]))


def prompt_rows(got, lengths):
    """Prompts of these lengths: in halfs, and in int8 where there are kernels for it."""
    out = []
    for card in got.cards:
        for name, what in MODELS.items():
            for api in card["launch_us"]:
                of_experts = [("wide", True), ("", False)] if api == "hip" and "experts" in what else [("", False)]
                for tiles, wide in of_experts:
                    for types in (("halfs",), ("int8", "halfs")) if has_int8(got, card, api, what) else (("halfs",),):
                        speeds = [prompt_speed(got, card, api, what, types, length, wide) for length in lengths]
                        if None not in speeds:
                            out.append({"card": card["name"], "model": name, "api": api, "type": types[0], "tiles": tiles} |
                                       {str(length): float(round(speed)) for length, speed in zip(lengths, speeds)})
    return out


def rows(got):
    out = []
    for card in got.cards:
        for name, what in MODELS.items():
            peer = PEERS.get((card["name"], name), (None, None, None))
            for api in card["launch_us"]:
                decode, halfs = decode_speed(got, card, api, what), prompt_speed(got, card, api, what, ("halfs",))
                int8 = prompt_speed(got, card, api, what, ("int8", "halfs")) if has_int8(got, card, api, what) else None
                best = max(filter(None, (halfs, int8)), default=None)
                out.append({"card": card["name"], "model": name, "api": api, "dispatches": what["dispatches"],
                            "us each": card["launch_us"][api] + OP_CYCLES / card["clock_ghz"] * 1e-3,
                            "predicted tok/s": decode and decode[0], "in dispatches %": decode and 100 * decode[1],
                            "published tok/s": peer[1], "ratio": decode and peer[1] and round(decode[0] / peer[1], 2),
                            "prompt in halfs": halfs and float(round(halfs)), "prompt in int8": int8 and float(round(int8)),
                            "published prompt": peer[0], "prompt ratio": best and peer[0] and round(best / peer[0], 2),
                            "published by": peer[2]})
    return out
