"""The time that a launch could take on a card, from the machine code of its kernel, its grid and the weights that it reads: what
tools/amd/amd-speed widths adds up. Beside the rules at the head of amd_speed_model.py:

8. A loop's turn multiplies so many weights as its instructions do products (a matrix instruction MxNxK, a dot product its
   factors, a multiply-add one, times lanes), over the tokens that the kernel computes whether they are there or not. So a launch
   takes weights * tokens / products turns. What stands around the loop runs once for each set of rows that a wave has.
9. A wave alone takes what its instructions take and what it waits for loads: the loop is run in order, with weights that come back
   a memory latency later, and activations HIT of one, so that what is read a turn ahead is hidden by the turn. With N waves on a
   SIMD a turn takes what the busiest of issue, LDS, cache and L2 takes, at least an N-th of what a wave alone does.
10. L2 gives a compute unit l2_bytes per cycle. It sends weights once, and activations to each work-group, or to each wave where
    waves of a work-group read different columns. Where lanes read different rows, a line of 128 bytes holds more of a row than a
    turn takes: it is sent again in each turn if waves that share the vector cache touch more than that holds in between; and that
    cache gives a row's line in a cycle.
11. Work-groups are whole: where there are few for each compute unit, the last one has more than the mean.
12. Work and memory overlap: a launch takes the longer of both, and what the launch itself does (amd_speed_tokens.OP_CYCLES).
"""
import dataclasses
import math
import re

import amd_speed_isa as isa
import amd_speed_model as model
import amd_speed_tokens as tokens

LINE = 128
LDS_CYCLES = 64  # from an address to its value
PRODUCTS = re.compile(r"_(\d+)x(\d+)x(\d+)")


@dataclasses.dataclass
class Code:
    """A compiled kernel as it is run: counts of a turn of its loop, and of what a wave does once for its rows."""
    name: str
    target: str
    wave: int
    vgprs: int
    lds: int
    threads: int
    waves_per_simd: int
    loop: dict
    around: dict
    products: float   # of a turn of a wave
    alone: tuple      # cycles of a wave's turn without latency, and how often it waits for all of it
    spills: bool = False
    api: str = "hip"

    def rates(self):
        return isa.Rates(self.target, self.wave)


@dataclasses.dataclass
class Work:
    """The weights and tokens that a launch multiplies, and how they are shared out."""
    bytes: float          # of weights
    weights: float        # how many
    tokens: int           # of a tile
    sets: float           # of rows that a wave has
    groups: float         # work-groups, or of striding ones those that there would be
    row_bytes: float = 0  # of a row's weights, where lanes read different rows
    apart: int = 0        # how many rows those are
    sharing: float = 1.0  # rows that activations are read for once
    beside: float = 1.0   # sets of so many rows whose waves read the same ones at the same time
    activation: float = 2.0  # bytes of one


# --- code ------------------------------------------------------------------------------------------------------------------

def products_of(one, wave):
    kind = isa.kind_of(one.name)
    if kind == "matrix":
        m, n, k = map(int, PRODUCTS.search(one.name).groups())
        return m * n * k * (16 if (m, n) == (4, 4) else 1)
    if kind == "dot":
        return wave * (4 if "dot4" in one.name else 2)
    return wave * isa.costs(one, isa.Rates("gfx1100", 32))["fma"]


def products_in(code, indices, wave):
    """Products of a turn: of the strongest kind that is there, as scales are multiplied, too."""
    sums = {}
    for i in indices:
        kind = isa.kind_of(code[i].name)
        strength = "matrix" if kind == "matrix" else "dot" if kind == "dot" else "fma"
        sums[strength] = sums.get(strength, 0) + products_of(code[i], wave)
    return next((sums[kind] for kind in ("matrix", "dot", "fma") if sums.get(kind)), 0), \
        next((rank for rank, kind in enumerate(("fma", "dot", "matrix")[::-1]) if sums.get(kind)), 3)


def main_loop(code, wave):
    """The loop that reads and has most products, of the strongest kind; it has no loop within that does, too."""
    found = {}
    for loop in isa.loops_of(code):
        got, rank = products_in(code, loop.body, wave)
        if got and any(isa.kind_of(code[i].name) == "vmem" for i in loop.body):
            found[loop] = (-rank, got, -len(loop.body))
    leaves = [loop for loop in found if not any(inner in found for inner in loop.inner)]
    best = max(leaves, key=found.get, default=None)
    return best and (best, found[best][1])


def in_run_order(code, loop):
    """The instructions of a turn: blocks that a jump joins follow those that it comes from, wherever they lie."""
    blocks, following = isa.blocks_of(code)
    inside = {n for n, (first, _) in enumerate(blocks) if first in loop.body}
    entry = min((t for n in range(len(blocks)) if n not in inside for t in following[n] if t in inside), default=min(inside))
    order, seen, work = [], {entry}, [(entry, iter(sorted(following[entry])))]
    while work:
        node, rest = work[-1]
        step = next((t for t in rest if t in inside and t not in seen), None)
        if step is None:
            order.append(node)
            work.pop()
        else:
            seen.add(step)
            work.append((step, iter(sorted(following[step]))))
    return [i for n in reversed(order) for i in range(*blocks[n])]


def source_of(one):
    """Tells loads from different buffers apart: the scalar registers that say where the buffer is, else the address."""
    scalar = re.findall(r"s\[\d+:\d+\]", one.operands)
    return scalar[0] if scalar else one.operands.split(",")[1].strip()


def turn_alone(code, loop, rates):
    """For alone_cycles(): each instruction's kind, its cycles, how many loads and LDS operations may be pending behind it, and of a
    load where it is from and its bytes."""
    def cycles(name):
        if name.startswith("s_barrier"):
            return model.BARRIERS / 2
        vector = isa.kind_of(name) in ("valu", "vopd", "dot", "trans", "matrix")
        return (rates.slots(name) if vector else 1) * rates.cycles

    def load(one):
        return (source_of(one), isa.width_of(one.name)) if isa.kind_of(one.name) == "vmem" else None

    return [(isa.kind_of(code[i].name), cycles(code[i].name), model.waited(code[i].name, code[i].operands), waited_lds(code[i]),
             load(code[i])) for i in in_run_order(code, loop)]


def waited_lds(one):
    """The number of LDS operations that may be pending after a wait; None: it does not wait for them."""
    if one.name == "s_waitcnt":
        found = re.search(r"lgkmcnt\((\d+)\)", one.operands)
        return int(found[1]) if found else 0 if one.operands.strip() == "0" else None
    if one.name == "s_wait_dscnt":
        return int(one.operands.strip() or "0", 0)
    if one.name == "s_wait_loadcnt_dscnt":
        return int(one.operands.strip() or "0", 0) & 63
    return None


def activations_in(turn, bytes_of_weights):
    """Where a turn's activations are loaded from: the buffer whose bytes come nearest to those that are no weights."""
    sizes = {}
    for _, _, _, _, load in turn:
        if load:
            sizes[load[0]] = sizes.get(load[0], 0) + load[1]
    rest = sum(sizes.values()) - bytes_of_weights
    return min(sizes, key=lambda source: abs(sizes[source] - rest), default=None) if len(sizes) > 1 else None


def alone_cycles(turn, latency, near):
    """The cycles of a turn of a wave that is alone on its SIMD, once it runs evenly. Loads from `near` come from a cache."""
    now, loads, shared, begins = 0.0, [], [], []
    for _ in range(4):
        begins.append(now)
        for kind, cycles, left, left_lds, load in turn:
            if left is not None and len(loads) > left:
                now = max(now, max(loads[:len(loads) - left]))
                loads = loads[len(loads) - left:] if left else []
            if left_lds is not None and len(shared) > left_lds:
                now = max(now, shared[len(shared) - left_lds - 1] + LDS_CYCLES)
                shared = shared[len(shared) - left_lds:] if left_lds else []
            now += cycles
            if load:
                loads.append(now + (model.HIT if load[0] == near else 1.0) * latency)
            elif kind == "lds":
                shared.append(now)
    return (now - begins[1]) / 3


def read(code, name, target, wave, vgprs, lds, threads, waves_per_simd=0, api="hip", spills=False):
    """None where there is no loop of products."""
    found = main_loop(code, wave)
    if found is None:
        return None
    loop, products = found
    rates = isa.Rates(target, wave)
    if loop.parent:
        around = isa.odds(code, loop.parent)
    else:
        whole = isa.Loop(set(range(len(code))))
        whole.inner = [other for other in isa.loops_of(code) if other.parent is None]
        around = isa.odds(code, whole)
    return Code(name, target, wave, vgprs, lds, threads, waves_per_simd, isa.count(code, loop.body, rates),
                isa.count(code, around, rates), products, turn_alone(code, loop, rates), spills, api)


# --- time ------------------------------------------------------------------------------------------------------------------

def resident(kernel, card, work, lds):
    """Waves per SIMD: by registers, shared memory and how many work-groups there are."""
    rates = kernel.rates()
    made = model.Kernel(kernel.name, kernel.target, kernel.wave, kernel.vgprs, lds, kernel.threads, kernel.api,
                        waves_per_simd=kernel.waves_per_simd)
    most = model.waves_of(made, card, 0, lds)
    return min(most, work.groups * kernel.threads / kernel.wave / rates.simds / card["units"])


def uneven(groups, units):
    """How much longer the unit with most work-groups works than the mean."""
    each = groups / units
    return math.ceil(each) / each if each < 16 else 1.0


def lines_apart(kernel, near, apart):
    """Cycles of the vector cache, for a SIMD and a turn, beyond those of the bytes: a line of each row for a load of weights."""
    rates = kernel.rates()
    each = (64 if rates.gfx9 else 128)
    return sum(max(0.0, apart - load[1] * kernel.wave / each) for *_, load in kernel.alone if load and load[0] != near) * rates.simds


def lines_again(kernel, card, work, turns_of_row, waves):
    """How often L2 sends a line of weights."""
    if not work.apart or not work.row_bytes:
        return 1.0
    per_turn = work.row_bytes / turns_of_row  # of a row
    touched = waves * kernel.rates().simds * (work.apart * LINE + kernel.loop["vmem bytes"] * kernel.wave)
    return max(1.0, min(LINE / per_turn, LINE / per_turn if touched > card["l0_kb"] * 1024 else 1.0))


def launch_seconds(kernel, card, work, lds):
    """Seconds of a launch beyond what every launch takes, and what bounds it. A dict."""
    rates, clock = kernel.rates(), card["clock_ghz"] * 1e9
    simds = card["units"] * rates.simds
    turns = work.weights * work.tokens / kernel.products
    waves = resident(kernel, card, work, lds)
    loop, around = kernel.loop, kernel.around

    def total(key):
        return (loop[key] * turns + around[key] * work.sets) / simds

    # The documented rate of matrix instructions, whatever the size of waves.
    peak = next(value for target, value in tokens.PEAK.items() if card["target"].startswith(target)) / rates.simds
    vector = (total("slots") - total("matrix slots")) * rates.cycles
    matrix = turns * kernel.products * 2 / peak / simds if loop["matrix slots"] else 0.0
    issue = max(matrix, vector) if rates.gfx9 else matrix + vector
    issue = max(issue, (total("salu") + total("smem")) * rates.passes * rates.cycles)
    lds_time = total("lds bytes") * kernel.wave / (128 / rates.simds)
    weights_loaded = kernel.products / work.tokens * work.bytes / max(1.0, work.weights) / kernel.wave
    near = activations_in(kernel.alone, weights_loaded)
    cache = total("vmem bytes") * kernel.wave / ((64 if rates.gfx9 else 128) / rates.simds)
    if work.apart:
        cache += turns / simds * lines_apart(kernel, near, work.apart)
    again = lines_again(kernel, card, work, turns / max(1.0, work.sets), waves)
    read_bytes = work.bytes * again + work.weights / (work.sharing * work.beside) * work.tokens * work.activation
    l2 = read_bytes / (card["l2_bytes"] * card["units"])
    alone = alone_cycles(kernel.alone, card["latency_ns"] * card["clock_ghz"], near)
    latency = (turns * alone + work.sets * card["latency_ns"] * card["clock_ghz"] * 2) / simds / max(waves, 1e-9)
    bounds = {"issue": issue, "lds": lds_time, "cache": cache, "l2": l2, "latency": latency}
    factor = uneven(work.groups, card["units"])
    bounds = {name: cycles * factor / clock for name, cycles in bounds.items()}
    bounds["memory"] = work.bytes / (card["bandwidth_gbs"] * 1e9 * card["memory_share"])
    by = max(bounds, key=bounds.get)
    return {"seconds": bounds[by], "by": by, "bounds": bounds, "waves": waves, "spills": kernel.spills}


def every_launch(card, api):
    return card["launch_us"][api] * 1e-6 + tokens.OP_CYCLES / card["clock_ghz"] * 1e-9
