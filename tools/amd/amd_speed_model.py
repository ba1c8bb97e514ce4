"""The speed that a card could reach with a kernel, from its machine code and public figures. The model is written down so
that it can be checked:

1. A SIMD issues one vector instruction per slot (amd_speed_isa.Rates: a cycle for a wave of 32 on RDNA, four cycles for a wave
   of 64 on CDNA) and beside it one scalar, one memory and one LDS instruction of other waves. RDNA has two SIMDs per compute
   unit, CDNA four. A pair of VOPD is one instruction.
2. LDS gives 128 bytes per cycle to a compute unit, the vector cache 128 (RDNA) or 64 (CDNA), whatever lanes share of them.
3. A loop that reads weights waits for memory once per iteration: between its last wait and its next loads nothing is on its way
   for that wave. Waves of a SIMD hide each other's waits: by Little's law a compute unit moves at most
   waves * bytes per turn / (latency + the work of a turn). Latency is the card's assumed one, under load.
4. Around the loop, per result or two, stand addresses, sums over lanes and stores: they count per turn of the loop around as
   often as they would run if branches went either way as often, for rows of COLUMNS weights; each wait for loads there costs
   HIT of a memory latency (arguments and sums are in caches).
5. Waves: as many as registers, LDS and the launch allow. Decode launches 1024 invocations per multiprocessor (HIP counts a pair
   of compute units as one on RDNA), prompts as many as fit.
6. The share of bandwidth is the smallest of what 1, 2 and 3 allow, at most all of what the memory gives: how much of the
   printed bandwidth that is depends on the memory (80 to 95 %), not on the kernel.
7. Prompts: of a turn of the tile's loop, the matrix instructions' time over all that the turn takes. A wave alone reads LDS
   while it multiplies, then decodes and writes LDS, and waits BARRIERS cycles at two barriers. WMMA takes the slots of vector
   instructions (RDNA), MFMA leaves them to other waves. With N waves on a SIMD a turn takes what its busiest part (issue, LDS,
   cache) takes, and an N-th of what a wave alone takes beyond that. Kernels of int8 are held to the peak in int8. Where a turn
   has a loop over its units of 32 columns, that runs UNITS times. RDNA 2 has no matrix units: its dot products are meant.
"""
import dataclasses
import re

import amd_speed_isa as isa

COLUMNS = 4096
HIT = 0.3
BARRIERS = 300
UNITS = 2  # of 32 columns, that a tile's turn multiplies

# The code objects that a card's target can use; the nearest first.
OBJECTS = {
    "gfx90a": ("gfx90a",),
    "gfx942": ("gfx942", "gfx9-4-generic"),
    "gfx1033": ("gfx1033", "gfx1030", "gfx10-3-generic"),
    "gfx1100": ("gfx1100", "gfx11-generic"),
    "gfx1102": ("gfx1102", "gfx11-generic", "gfx1100"),
    "gfx1103": ("gfx1103", "gfx11-generic", "gfx1102", "gfx1100"),
    "gfx1150": ("gfx1150", "gfx11-generic", "gfx1151"),
    "gfx1151": ("gfx1151", "gfx11-generic"),
    "gfx1200": ("gfx1200", "gfx12-generic", "gfx1201"),
    "gfx1201": ("gfx1201", "gfx12-generic"),
}
# Streams of weights that one turn of the loop around goes through: results at a time, times matrices.
DECODE = ((r"linear_(dot_)?own_", 2), (r"gated_(dot_)?own_", 2), (r"(expert|shared)_gated_own_", 2), (r"(expert|shared)_own_", 4))
# Tiles of 64 rows have units for half of the waves; the others jump over decoding.
HALF_DECODES = ("linear_matrix_wide_", "linear_matrix_64_", "linear_bytes_wide_", "linear_bytes_64_")
PROMPT = r"(linear|gated|expert|expert_gated)_(matrix|bytes)_"


@dataclasses.dataclass
class Decode:
    """A decode kernel's loop."""
    loop: dict           # counts of one turn
    around: dict         # counts of one turn of the loop around, without the loops within it
    units: float         # of 32 weights per turn and lane
    in_flight: int       # bytes per lane
    waits_around: int


@dataclasses.dataclass
class Kernel:
    """A compiled kernel: what the driver says of it, and what was counted in its code."""
    name: str
    target: str      # what it was compiled for
    wave: int
    vgprs: int
    lds: int         # bytes of a work-group
    threads: int     # of a work-group
    api: str = "hip"
    streams: int = 0         # of weights that a turn of the loop around the loop goes through
    waves_per_simd: int = 0  # as registers allow; 0: by the table
    decode: Decode = None
    prompt: dict = None      # counts of one turn of a tile's loop

    def rates(self):
        return isa.Rates(self.target, self.wave)

    def counted(self, code):
        """Itself, with what its code has."""
        if re.match(PROMPT, self.name):
            self.prompt = prompt_loop(code, self.rates(), self.name.startswith(HALF_DECODES))
        else:
            self.streams = self.streams or streams_of(self.name)
            self.decode = decode_loop(code, self.rates())
        return self

    def per_unit(self, key):
        """A count of the loop, per 32 weights of a lane."""
        return self.decode.loop[key] / self.decode.units

    def around_per_unit(self, key, columns):
        return self.decode.around[key] / (self.streams * columns / 32 / self.wave)


def registers_allow(kernel):
    """Waves per SIMD."""
    if kernel.waves_per_simd:
        return kernel.waves_per_simd
    if kernel.target.startswith("gfx9"):
        total, unit, most = 512, 8, 8
    elif kernel.target.startswith("gfx10"):
        total, unit, most = 1024, 8, 16
    else:
        total, unit, most = 1536, 24, 16
    if kernel.wave == 64 and not kernel.target.startswith("gfx9"):
        total, unit = total // 2, unit // 2
    return max(1, min(most, total // (-(-max(kernel.vgprs, 1) // unit) * unit)))


def waves_of(kernel, card, launched, lds):
    """Waves per SIMD: by registers, shared memory, and a launch of so many invocations per compute unit (0: enough)."""
    rates = kernel.rates()
    per_group = max(1, kernel.threads // kernel.wave)
    by_registers = registers_allow(kernel)
    by_lds = card["lds_kb"] * 1024 * 2 // max(lds, 1) * per_group / 2 / rates.simds if lds else 64
    if kernel.target.startswith("gfx9"):
        by_lds = card["lds_kb"] * 1024 // max(lds, 1) * per_group / rates.simds if lds else 64
    by_launch = launched / kernel.wave / rates.simds if launched else 64
    return max(1.0 / rates.simds, min(by_registers, by_lds, by_launch))


# --- loops -----------------------------------------------------------------------------------------------------------------

def weights_in(got):
    """Weights that a lane multiplies: four per 8-bit dot product, else one per multiply-add of floats."""
    return got["dot4"] * 4 if got["dot4"] else got["dot2"] * 2 if got["dot2"] and not got["fma"] else got["fma"]


def inner_loop(code, loops, rates):
    """The loop that reads and multiplies most weights per turn, or None."""
    best = None
    for loop in loops:
        if loop.inner:
            continue
        got = isa.count(code, loop.body, rates)
        if not got["vmem"] or not weights_in(got):
            continue
        if best is None or (weights_in(got), got["slots"]) > (weights_in(best[1]), best[1]["slots"]):
            best = (loop, got)
    return best


def outstanding(code, body):
    """The most bytes per lane of vector loads that are on their way at once, in two turns of a loop."""
    queue, most = [], 0
    for i in sorted(body) * 2:
        name, operands = code[i].name, code[i].operands
        if isa.kind_of(name) == "vmem":
            queue.append(isa.width_of(name))
            most = max(most, sum(queue))
        left = waited(name, operands)
        if left is not None:
            queue = queue[len(queue) - left:] if left else []
    return most


def waited(name, operands):
    """The number of vector loads that may be pending after a wait; None: it does not wait for loads."""
    if name == "s_waitcnt":
        found = re.search(r"vmcnt\((\d+)\)", operands)
        return int(found[1]) if found else 0 if operands.strip() == "0" else None
    if name == "s_wait_loadcnt" or name == "s_wait_loadcnt_dscnt":
        value = int(operands.strip() or "0", 0)
        return value & 63 if name == "s_wait_loadcnt" else value >> 8 & 63
    return None


def waits_in(code, body):
    """Waits for vector loads that were sent since the one before, of instructions that run so often."""
    waits, sent = 0, False
    for i in sorted(body):
        sent = sent or isa.kind_of(code[i].name) == "vmem"
        if waited(code[i].name, code[i].operands) is not None and sent:
            waits, sent = waits + body[i], False
    return waits


# --- decode ----------------------------------------------------------------------------------------------------------------

def streams_of(name):
    return next((streams for pattern, streams in DECODE if re.match(pattern, name)), 0)


def decode_loop(code, rates):
    """None where there is no loop of products."""
    found = inner_loop(code, isa.loops_of(code), rates)
    if found is None:
        return None
    loop, got = found
    around = isa.odds(code, loop.parent) if loop.parent else {}
    return Decode(got, isa.count(code, around, rates), weights_in(got) / 32, outstanding(code, loop.body), waits_in(code, around))


def decode_share(kernel, card, unit_bytes, columns=COLUMNS):
    """The share of the card's bandwidth that the kernel could reach, and the limit: issue, LDS, cache, latency. A
    dict."""
    found = kernel.decode
    rates, wave = kernel.rates(), kernel.wave
    clock, simds = card["clock_ghz"], rates.simds
    activations = columns // 32 * 48 if "dot" in kernel.name or "expert" in kernel.name else 0
    lds = kernel.lds + (activations if kernel.api == "hip" else 0)
    launched = 1024 if rates.gfx9 or kernel.api == "vulkan" else 512
    waves = waves_of(kernel, card, launched, lds)
    lane_units = columns / 32 / wave * kernel.streams   # per turn of the loop around
    turns = max(1.0, lane_units / found.units)

    def total(key):
        return found.loop[key] * turns + found.around[key]

    issue = max(total("slots"), total("salu") * rates.passes, total("vmem"), total("lds")) * rates.cycles
    trans = total("trans slots") * rates.cycles
    lds_time = total("lds bytes") * wave / (128 / simds)
    cache = total("vmem bytes") * wave / ((64 if rates.gfx9 else 128) / simds)
    latency = card["latency_ns"] * clock
    alone = turns * latency + found.waits_around * HIT * latency + issue
    bytes_moved = lane_units * unit_bytes * wave
    wanted = card["bandwidth_gbs"] / clock / card["units"] / simds  # bytes per cycle and SIMD
    bounds = {
        "issue": bytes_moved / max(issue, trans) / wanted,
        "lds": bytes_moved / lds_time / wanted if lds_time else 99.0,
        "cache": bytes_moved / cache / wanted if cache else 99.0,
        "latency": waves * bytes_moved / alone / wanted,
    }
    by = min(bounds, key=bounds.get)
    loop_only = found.units * unit_bytes * wave / (found.loop["slots"] * rates.cycles) / wanted
    return {"share": min(1.0, bounds[by]), "by": by if bounds[by] < 1.0 else "memory", "bounds": bounds, "waves": waves,
            "loop": loop_only, "wave bytes": found.in_flight * wave, "unit bytes": found.in_flight * wave * waves * simds}


# --- prompts ---------------------------------------------------------------------------------------------------------------

def skipped(code, body):
    """Instructions of a loop that waves without lanes for them jump over: up to where they jump to, or to a jump there."""
    found = set()
    for i in body:
        if code[i].name != "s_cbranch_execz":
            continue
        for n in range(i + 1, len(code)):
            if n not in body or code[n].address == code[i].target:
                break
            found.add(n)
            if code[n].name == "s_branch" and code[n].target == code[i].target:
                break
    return found


def products(got):
    """Slots of matrix instructions, or where a card has none, dot products."""
    return got["matrix slots"] or got["dot2"] or got["dot4"]


def prompt_loop(code, rates, half_decodes):
    """Counts of the loop over tiles: of those with most products the smallest that also reads the next tile. A loop of
    products within it is one over the units of its columns."""
    best = None
    for loop in isa.loops_of(code):
        got = isa.count(code, loop.body, rates)
        for inner in loop.inner:
            units = isa.count(code, inner.body, rates)
            if products(units) and not units["vmem"]:
                for key, value in units.items():
                    got[key] += value * (UNITS - 1)
        work = products(got)
        if work and got["vmem"] and (best is None or (work, -len(loop.body)) > best[0]):
            best = ((work, -len(loop.body)), got, loop)
    if best is None:
        return None
    if half_decodes:
        for key, value in isa.count(code, skipped(code, best[2].body), rates).items():
            best[1][key] -= value / 2
    return best[1]


def prompt_share(kernel, card, live=1.0):
    """The share of the matrix peak (dot peak where there are no matrix units) that the tile's loop could reach: of halfs
    or of int8, whatever it multiplies. Where `live` of a tile's products are made, as the tile's are counted. A dict."""
    got = kernel.prompt
    rates = kernel.rates()
    waves = max(1.0, waves_of(kernel, card, 0, kernel.lds))
    matrix = (got["matrix slots"] or products(got) * rates.passes) * rates.cycles
    vector = got["slots"] * rates.cycles - matrix
    per_cycle = 128 / rates.simds / kernel.wave
    write, read = got["lds write bytes"] / per_cycle, live * (got["lds bytes"] - got["lds write bytes"]) / per_cycle
    cache = got["vmem bytes"] * kernel.wave / ((64 if rates.gfx9 else 128) / rates.simds)
    made = live * matrix
    parts = {"issue": max(made, vector) if rates.gfx9 else made + vector, "lds": read + write, "cache": cache}
    busiest = max(parts.values())
    alone = max(made, read) + max(vector, write) + BARRIERS
    turn = busiest + max(0.0, alone - busiest) / waves
    by = max(parts, key=parts.get) if busiest > 0.8 * turn else "waves"
    return {"share": matrix / turn, "by": by, "waves": waves, "matrix": matrix, "vector": vector, "lds": read + write,
            "cache": cache, "turn": turn}
