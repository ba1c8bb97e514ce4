"""The model tried on a card that was measured: an H100's decode, from SASS counted by the same rules.

A multiprocessor issues four instructions per cycle for waves of 32. The kernels of one token there copy weights ahead into
shared memory (kernels/stream.h), so that latency does not show; what could be slower than memory is issue. Instructions are
those of the loop over stages per 32 weights of a lane, which are eight dot products (formats of floats: 32 multiply-adds).
Beside that a dispatch takes what an empty one takes and amd_speed_tokens.OP_CYCLES; an operation alone also waits for its
submission.

Steps of several rows are those of an H200, of the same multiprocessors: the kernels that the program plans for it, issue and matrix
instructions as counted in them, and L2 at as many bytes per cycle and unit as amd_cards.json assumes of RDNA.
"""
import re

import amd_speed_isa as isa
import amd_speed_tokens as tokens
import amd_speed_widths as widths

UNITS, CLOCK, ISSUE = 132, 1.755, 4  # multiprocessors, GHz under load, instructions per cycle of one
BANDWIDTH = 2985e9                   # copied, in tools/bench/h100-80gb/2026-11-21-hip-vulkan.md
LAUNCH_US = 1.2                      # of an empty dispatch in a graph
ALONE_US = 13.0                      # an operation submitted alone, with its waiting; fitted to the first row below

# Whole tokens, tools/bench/h100-80gb/2026-11-21-hip-vulkan.md: bytes by format, dispatches, measured GB/s.
TOKENS = (
    ("8B Q4_K_M", {"q4_k": 3.39e9, "q6_k": 1.23e9}, 7 * 32 + 3, 2012),
    ("8B Q8_0", {"q8_0": 7.975e9}, 7 * 32 + 3, 2370),
    ("8B F16", {"f16": 15.01e9}, 7 * 32 + 3, 2506),
    ("7B Q4_0", {"q4_0": 3.75e9}, 7 * 32 + 3, 1945),
    ("1B Q4_K_M", {"q4_k": 0.55e9, "q6_k": 0.25e9}, 7 * 22 + 3, 1214),
    ("70B Q4_K_M", {"q4_k": 31.0e9, "q6_k": 10.9e9}, 7 * 80 + 3, 2509),
)
# Formats that take instructions rather than bytes, as they were then: listings of the sources of commit 984bcad. 2026-11-23-splits-
# formats.md has their shares.
TOKENS += tuple((f"8B {name} of 984bcad", {name.lower(): share * BANDWIDTH / rate}, 7 * 32 + 3, share * BANDWIDTH / 1e9)
                for name, share, rate in (("IQ3_S", 0.43, 375), ("TQ2_0", 0.45, 596), ("IQ1_M", 0.25, 381), ("IQ2_XXS", 0.29, 382)))
GATED = 0.54  # of a model's bytes are read by gated products
# Operations alone, 2026-11-21-streams.md: kernel, format, rows, columns, matrices, measured GB/s.
OPS = (
    ("gated_stream", "q4_k", 14336, 4096, 2, 1779.65),
    ("linear_stream", "q6_k", 128256, 4096, 1, 2616.90),
    ("linear_stream", "q4_k", 4096, 14336, 1, 1334.27),
    ("linear_stream", "q6_k", 4096, 14336, 1, 1567.24),
    ("linear_stream", "q4_k", 4096, 4096, 1, 580.47),
)


# Steps of an H200, tools/bench/h200/2026-11-29-rows-by-format.md: ms of one row, and multiples of it.
STEPS = {
    "Q4_K_M": (1.853, {2: 1.46, 4: 1.40, 8: 1.42, 9: 1.64, 16: 1.68, 32: 2.36, 64: 3.29}),
    "Q8_0": (2.532, {2: 1.22, 4: 1.23, 8: 1.25, 9: 1.33, 16: 1.37, 32: 1.84, 64: 2.46}),
    "F16": (4.877, {2: 1.04, 4: 1.05, 8: 1.06, 9: 1.68, 16: 1.70, 32: 1.41, 64: 2.11}),
}
H200 = {"name": "H200", "target": "sm_90", "units": 2 * UNITS, "mesa": None}  # plans halve units, as HIP does of RDNA
H200_BANDWIDTH, MATRIX, L2_BYTES = 4130e9, 653e12, 32  # measured there, and on an H100; assumed
MULTIPLIES = {"HMMA.16816": 2048, "HMMA.1688": 1024}


def counted(listings):
    """Instructions per 32 weights of a lane, by kernel."""
    found = {}
    for path in listings:
        for name, code in isa.read_sass(path.read_text(encoding="utf-8")).items():
            if "_stream_" in name and (per := per_unit(code)):
                found[name] = per
    return found


def per_unit(code):
    """The instructions of the loop that copies ahead and multiplies. Where it has a loop for the rests of rows, these are
    the instructions of that loop per unit, and half of all others once per stage, as most of them exist in two forms."""
    best = None
    for loop in isa.loops_of(code):
        names = [code[i].name for i in loop.body]
        work = sum(name.startswith(("IDP", "FFMA")) for name in names)
        if any(name.startswith("LDGSTS") for name in names) and (best is None or work > best[1]):
            best = (loop, work)
    if best is None:
        return None
    names = [code[i].name for i in best[0].outside_inner_loops()]
    dots = sum(name.startswith("IDP") for name in names) // 8
    inner = [[code[i].name for i in loop.body] for loop in best[0].inner]
    rest = max(inner, key=lambda names: sum(name.startswith("IDP") for name in names), default=[])
    units = sum(name.startswith("IDP") for name in rest) // 8
    if not units:
        return len(names) / (sum(name.startswith("FFMA") for name in names) / 32)
    product = len(rest) / units
    return product + max(0.0, len(names) - dots * product) / 2 / dots


def rate(found, kernel, unit_bytes):
    """Bytes per second that issue allows."""
    return unit_bytes * 32 / found[kernel] * ISSUE * UNITS * CLOCK * 1e9


def seconds_of(found, form, size, unit_bytes):
    """The seconds that a format's bytes of a token take."""
    gated = found.get(f"gated_stream_{form}") and rate(found, f"gated_stream_{form}", unit_bytes)
    linear = rate(found, f"linear_stream_{form}", unit_bytes)
    return size * (GATED / min(BANDWIDTH, gated or linear) + (1.0 - GATED) / min(BANDWIDTH, linear))


def rows(listings, formats):
    found = counted(listings)
    out = []
    for name, sizes, dispatches, measured in TOKENS:
        if any(f"linear_stream_{form}" not in found for form in sizes):
            continue
        seconds = sum(seconds_of(found, form, size, formats[form]) for form, size in sizes.items())
        seconds += dispatches * (LAUNCH_US * 1e-6 + tokens.OP_CYCLES / CLOCK * 1e-9)
        share = sum(sizes.values()) / seconds / BANDWIDTH
        out.append(row(f"tokens of {name}", found[f"linear_stream_{next(iter(sizes))}"], share, measured))
    for kernel, form, height, columns, matrices, measured in OPS:
        if f"{kernel}_{form}" not in found:
            continue
        size = height * columns / 32 * formats[form] * matrices
        seconds = size / min(BANDWIDTH, rate(found, f"{kernel}_{form}", formats[form])) + ALONE_US * 1e-6
        share = size / seconds / BANDWIDTH
        out.append(row(f"{kernel}_{form} {height} x {columns} alone", found[f"{kernel}_{form}"], share, measured))
    return out


def row(what, instructions, share, measured):
    return {"what": what, "instructions per 32 weights": instructions, "predicted %": 100 * share,
            "measured %": 100 * measured * 1e9 / BANDWIDTH, "off by": 100 * (share - measured * 1e9 / BANDWIDTH)}


def few_loops(listings):
    """Instructions and products of a turn, of kernels of few rows."""
    found = {}
    for path in listings:
        for name, code in isa.read_sass(path.read_text(encoding="utf-8")).items():
            if not re.match(r"(linear|gated)_(copied|few)_", name):
                continue
            best = (0, 0)
            for loop in isa.loops_of(code):
                products = sum(count for i in loop.body for start, count in MULTIPLIES.items() if code[i].name.startswith(start))
                best = max(best, (products, -len(loop.body)))
            if best[0]:
                found[name] = (-best[1], best[0])
    return found


def launch_seconds(launch, loops):
    """The longest of memory, L2, issue and matrix instructions."""
    memory = launch.bytes / H200_BANDWIDTH
    if launch.kernel not in loops:
        return memory
    work = widths.few_work(launch, 32)
    instructions, products = loops[launch.kernel]
    turns = work.weights * work.tokens / products
    rate = UNITS * CLOCK * 1e9
    l2 = launch.bytes + work.weights / (work.sharing * work.beside) * work.tokens * work.activation
    return max(memory, l2 / L2_BYTES / rate, turns * instructions / ISSUE / rate, turns * products * 2 / MATRIX)


def step_rows(listings, plans):
    """Steps of several rows beside what was measured; none where the kernels' listings are not there."""
    loops, out = few_loops(listings), []
    for form, (one_ms, multiples) in STEPS.items():
        mix, layers = widths.FORMATS[form]
        made, _ = plans.plan(H200, "hip", "llama-3.1-8b", mix, layers)
        first = None
        for step in made["steps"]:
            planned = {one["kernel"] for op in step["ops"] for one in op["launches"] if re.search(r"_(copied|few)_\d", one["kernel"])}
            if any(kernel.startswith(("linear", "gated")) and kernel not in loops for kernel in planned):
                continue
            seconds = widths.step_seconds(step, "hip", widths.MODELS["llama-3.1-8b"] / layers, lambda launch: launch_seconds(launch, loops),
                                          LAUNCH_US * 1e-6 + tokens.OP_CYCLES / CLOCK * 1e-9)
            first = first or seconds
            measured = multiples.get(step["rows"])
            if step["rows"] == 1 or measured:
                out.append({"format": form, "rows": step["rows"], "predicted ms": seconds * 1e3,
                            "measured ms": one_ms * (measured or 1.0), "predicted multiple": seconds / first,
                            "measured multiple": measured or 1.0})
    return out
