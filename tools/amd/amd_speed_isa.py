"""Machine code of kernels: instructions, their classes and what each costs, and the loops that they form.

Reads llvm-objdump's listings of AMD code objects, the listings that Mesa's AMD compiler gives of its shaders, and nvdisasm's of
NVIDIA's cubins.
"""
import collections
import re
import subprocess


class Instruction:
    __slots__ = ("name", "operands", "address", "target")

    def __init__(self, name, operands, address, target=None):
        self.name, self.operands, self.address, self.target = name, operands, address, target


# --- listings --------------------------------------------------------------------------------------------------------------

def read_objdump(text, wanted=lambda name: True):
    """The instructions of each kernel of llvm-objdump -d."""
    kernels, current, base = {}, None, 0
    line_of = re.compile(r"\s+([a-z]\w+)\s*(.*?)\s*//\s*([0-9A-F]+):.*?(?:<\w+\+0x([0-9a-f]+)>|<\w+>)?\s*$")
    for line in text.splitlines():
        if head := re.match(r"([0-9a-f]+) <(\w+)>:", line):
            base = int(head[1], 16)
            current = kernels.setdefault(head[2], []) if wanted(head[2]) else None
        elif current is not None and (found := line_of.match(line)):
            target = None
            if "branch" in found[1]:
                target = base + int(found[4] or "0", 16)
            current.append(Instruction(found[1], found[2], int(found[3], 16), target))
    # Behind a kernel's end lie instructions for the prefetcher.
    return {name: until_end(code) for name, code in kernels.items()}


def until_end(code):
    last = max((i for i, one in enumerate(code) if one.name == "s_endpgm"), default=len(code) - 1)
    return code[:last + 1]


def read_mesa(text):
    """The instructions of one shader, whose blocks are named BB0, BB1, ..."""
    code, starts, wanted = [], {}, []
    for line in text.splitlines():
        line = line.split(";")[0].rstrip()
        if block := re.match(r"\s*(BB\d+):", line):
            starts[block[1]] = len(code)
        elif found := re.match(r"\s+([a-z]\w+)\s*(.*)$", line):
            if "branch" in found[1] and (to := re.search(r"BB\d+", found[2])):
                wanted.append((len(code), to[0]))
            code.append(Instruction(found[1], found[2], len(code)))
    for i, block in wanted:
        code[i].target = starts.get(block)
    return code


SASS_LINE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(@!?\w+ )?\s*([A-Z][\w.]*)\s*(.*?);")


def read_sass(text):
    """The instructions of each kernel of nvdisasm or cuobjdump -sass."""
    kernels, current, labels, pending = {}, None, {}, []
    for line in text.splitlines():
        if head := re.search(r"Function : (\w+)|^\.text\.(\w+):", line.strip()):
            current = kernels.setdefault(head[1] or head[2], [])
            labels, pending = {}, []
        elif label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = None
            pending.append(label[1])
        elif current is not None and (found := SASS_LINE.match(line)):
            address = int(found[1], 16)
            for name in pending:
                labels[name] = address
            pending = []
            target = None
            if found[3].split(".")[0] in ("BRA", "BRX"):
                to = re.search(r"0x([0-9a-f]+)\s*$|`\((\.L_x_\d+)\)", found[4])
                target = to and (int(to[1], 16) if to[1] else (to[2], labels))
            current.append(Instruction(found[3], (found[2] or "") + found[4], address, target))
    for code in kernels.values():
        for one in code:
            if isinstance(one.target, tuple):
                one.target = one.target[1].get(one.target[0])
    return kernels


def disassemble(objdump, path, wanted):
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True).stdout
    return read_objdump(text, wanted)


# --- loops -----------------------------------------------------------------------------------------------------------------

ENDS = ("s_endpgm", "s_setpc_b64", "EXIT", "RET")
ALWAYS = ("s_branch", "BRA", "BRX")


class Loop:
    """Instructions of a natural loop by their index, those of the loops within it, and the loop around it."""

    def __init__(self, body):
        self.body, self.parent, self.inner = body, None, []

    def outside_inner_loops(self):
        """Instructions that are in no loop within this one."""
        return self.body.difference(*(loop.body for loop in self.inner))


def predicated(one):
    return one.operands.startswith("@") or (one.name == "BRA" and re.match(r"!?U?P\d", one.operands))


def successors(code):
    at = {one.address: i for i, one in enumerate(code)}
    following = []
    for i, one in enumerate(code):
        next_ones = []
        if one.target is not None and one.target in at:
            next_ones.append(at[one.target])
        base = one.name.split(".")[0]
        if base not in ENDS and not (base in ALWAYS and one.target is not None and not predicated(one)) and i + 1 < len(code):
            next_ones.append(i + 1)
        following.append(next_ones)
    return following


def blocks_of(code):
    """Basic blocks as (first, last + 1), and their successors."""
    following = successors(code)
    starts = {0}
    for i, to in enumerate(following):
        if to != [i + 1]:
            starts.update(to)
            starts.add(i + 1)
    starts = sorted(s for s in starts if s < len(code))
    number = {s: n for n, s in enumerate(starts)}
    ends = starts[1:] + [len(code)]
    return list(zip(starts, ends)), [[number[t] for t in following[e - 1]] for e in ends]


def loops_of(code):
    """All loops of a kernel, as strongly connected parts of its graph, and again of each without its entry."""
    if not code:
        return []
    blocks, following = blocks_of(code)
    found = []

    def split(nodes, parent):
        for part in connected(nodes, following):
            if len(part) == 1 and next(iter(part)) not in following[next(iter(part))]:
                continue
            loop = Loop({i for n in part for i in range(*blocks[n])})
            loop.parent = parent
            if parent:
                parent.inner.append(loop)
            found.append(loop)
            entered = {t for n in range(len(blocks)) if n not in part for t in following[n] if t in part} or {min(part)}
            split(part - entered, loop)

    split(set(range(len(blocks))), None)
    return found


def connected(nodes, following):
    """Tarjan's algorithm without recursion."""
    index, low, stack, on, out, count = {}, {}, [], set(), [], 0
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(following[root]))]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        on.add(root)
        while work:
            node, to = work[-1]
            for t in to:
                if t not in nodes:
                    continue
                if t not in index:
                    index[t] = low[t] = count
                    count += 1
                    stack.append(t)
                    on.add(t)
                    work.append((t, iter(following[t])))
                    break
                if t in on:
                    low[node] = min(low[node], index[t])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = set()
                    while True:
                        t = stack.pop()
                        on.discard(t)
                        part.add(t)
                        if t == node:
                            break
                    out.append(part)
    return out


def odds(code, loop):
    """The executions of each instruction of a loop, outside of loops within it, per iteration, by index. Branches are
    assumed to go either way equally often, and none leaves the loop."""
    blocks, following = blocks_of(code)
    inside = [n for n, (first, _) in enumerate(blocks) if first in loop.body]
    group = {n: n for n in inside}
    for inner in loop.inner:
        members = [n for n in inside if blocks[n][0] in inner.body]
        group.update((n, members[0]) for n in members)
    to = {}
    for n in inside:
        to.setdefault(group[n], set()).update(group[t] for t in following[n] if t in group and group[t] != group[n])
    outside = {t for n in range(len(blocks)) if n not in group for t in following[n] if t in group}
    entry = group[min(outside, default=inside[0])]
    order, seen = [], {entry}
    work = [(entry, iter(sorted(to[entry])))]
    while work:
        node, rest = work[-1]
        step = next((t for t in rest if t not in seen), None)
        if step is None:
            order.append(node)
            work.pop()
        else:
            seen.add(step)
            work.append((step, iter(sorted(to[step]))))
    place = {node: i for i, node in enumerate(order)}
    chance = dict.fromkeys(order, 0.0)
    chance[entry] = 1.0
    for node in reversed(order):  # those behind come last; edges back end the turn
        ahead = [t for t in to[node] if place[t] < place[node]]
        for t in ahead:
            chance[t] += chance[node] / len(ahead)
    within = set().union(*(inner.body for inner in loop.inner))
    return {i: chance[group[n]] for n in inside if group[n] in chance for i in range(*blocks[n]) if i not in within}


# --- classes of AMD's instructions -----------------------------------------------------------------------------------------

TRANSCENDENTAL = re.compile(r"v_(s_)?(exp|log|rcp|rsq|sqrt|sin|cos)_")
QUARTER = re.compile(r"v_(mul_lo_[ui]32|mul_hi_[ui]32|mad_[ui]64_[ui]32|mad_co_[ui]64_[ui]32)")
DOUBLE = re.compile(r"v_(lshlrev|lshrrev|ashrrev|lshl|mul|add|fma|cmpx?_\w+)_[buif]64")
CONVERT = re.compile(r"v_cvt_(?!f32_ubyte)")
DOT = re.compile(r"v_dot\d")
MATRIX = re.compile(r"v_s?(wmma|mfma|swmmac)_")


def width_of(name):
    """Bytes that a lane moves."""
    for end, width in (("x16", 64), ("x8", 32), ("x4", 16), ("b128", 16), ("x3", 12), ("b96", 12), ("x2", 8), ("b64", 8),
                       ("xyzw", 16), ("_xy", 8)):
        if end in name:
            return width
    if re.search(r"byte|[ui]8", name):
        return 1
    if re.search(r"short|[ui]16|b16", name):
        return 2
    return 4


def kind_of(name):
    """valu, vopd, dot, trans, matrix, vmem, store, lds, smem, salu, wait, branch, or other."""
    if name.startswith("v_dual_"):
        return "vopd"
    if name.startswith("v_"):
        if MATRIX.match(name):
            return "matrix"
        if DOT.match(name):
            return "dot"
        return "trans" if TRANSCENDENTAL.match(name) else "valu"
    if re.match(r"(global|buffer|flat|scratch|tbuffer|image)_", name):
        if "load" in name:
            return "vmem"
        return "store" if "store" in name or "atomic" in name else "other"
    if name.startswith("ds_"):
        return "lds"
    if name.startswith("s_"):
        if re.match(r"s_(buffer_)?load", name):
            return "smem"
        if re.match(r"s_(wait|nop|delay|sleep|clause|inst_prefetch|set_inst|sched|barrier|setprio|set_vgpr)", name):
            return "wait"
        return "branch" if "branch" in name or name == "s_endpgm" else "salu"
    return "other"


def lds_bytes(name):
    """Bytes that a lane moves between its registers and shared memory."""
    if "permute" in name or "swizzle" in name:
        return 4
    return width_of(name) * (2 if re.match(r"ds_(load|read|write|store)(2|_2)", name) else 1)


class Rates:
    """The costs of a target's instructions, in issue slots of a SIMD: a slot is the time of one plain vector instruction.

    From the tables of two compilers: Mesa's aco_statistics.cpp (get_perf_info), and LLVM's SISchedule.td as llvm-mca shows it
    for gfx90a and gfx942. RDNA (wave32): 32-bit multiplication 4, 64-bit shifts 2, transcendentals 1 while their unit is
    busy for 4, WMMA 32 cycles (RDNA 4: 16, of int8 8, after its peaks). Wave64 doubles all of these; pairs that RDNA 3 could
    do at once in wave64 are not counted on. CDNA (wave64, 4 cycles a slot): 32-bit multiplication, transcendentals and
    conversions but those of bytes 4, 64-bit shifts 2; 16x16x16 MFMA of halfs 8 on gfx90a, 4 on gfx942, after their peaks.
    """

    def __init__(self, target, wave):
        self.target, self.wave = target, wave
        self.gfx9 = target.startswith("gfx9")
        self.passes = 1 if self.gfx9 or wave == 32 else 2
        self.cycles = 4 if self.gfx9 else 1  # of a slot
        self.simds = 4 if self.gfx9 else 2
        self.matrix = {"gfx90a": 8, "gfx942": 4, "gfx9-4-generic": 4}.get(target, 16 if target.startswith("gfx12") else 32)

    def slots(self, name):
        kind = kind_of(name)
        if kind == "matrix":
            matrix = self.matrix // 2 if self.target.startswith("gfx12") and name.endswith("_iu8") else self.matrix
            return matrix * (1 if self.gfx9 else self.passes)
        if kind == "trans":
            return 4 if self.gfx9 else self.passes
        if QUARTER.match(name):
            return 4 * self.passes
        if DOUBLE.match(name):
            return 2 * self.passes
        if self.gfx9 and CONVERT.match(name):
            return 4
        return self.passes


def count(code, indices, rates):
    """Instructions of a part of a kernel by class, and what they cost and move. `indices` may say how often each runs."""
    got = collections.Counter()
    for i in indices:
        for key, value in costs(code[i], rates).items():
            got[key] += value * (indices[i] if isinstance(indices, dict) else 1)
    return got


def costs(one, rates):
    """The same for one instruction."""
    name, kind = one.name, kind_of(one.name)
    got = collections.Counter({kind: 1})
    if kind in ("valu", "vopd", "dot", "trans", "matrix"):
        got["slots"] += rates.slots(name)
    if kind == "matrix":
        got["matrix slots"] += rates.slots(name)
    if kind == "trans":
        got["trans slots"] += 4 * rates.passes
    if kind == "vmem":
        got[f"vmem {width_of(name)}"] += 1
        got["vmem bytes"] += width_of(name)
    if kind == "lds":
        got["lds bytes"] += lds_bytes(name)
        if re.match(r"ds_(write|store)", name):
            got["lds write bytes"] += lds_bytes(name)
    if kind == "dot":
        got["dot4" if "v_dot4" in name else "dot2"] += 1
    if re.match(r"v_(dual_)?(fma|fmac|pk_fma|fmaak|fmamk|mad|mac)_", name):
        got["fma"] += 2 if name.startswith("v_pk") or "fmac" in one.operands else 1
    return got
