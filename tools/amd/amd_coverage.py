"""The instructions of AMD kernels that a run of tests executed."""

import os
import re

import amd_emulator

WANTED = 0.95  # of a kernel's instructions
# They measure what a card can do: `redline bench` launches them, and nothing depends on what they compute.
MEASURE = ("peak_halfs", "peak_bytes")
# The compiler divides integers of 64 bits in two ways: in straight code of many products of 32 bits with carries and borrows,
# or, where neither number reaches 2^32, as those of 32 bits. They count elements: a step would need 16 GB of them before the
# long way is taken. A block of it that nothing executes does not count.
PRODUCT, BORROW, PRODUCTS = re.compile(r"[sv]_mul_hi_u32|v_mad_u64_u32"), re.compile(r"s_subb_u32|v_sub(rev)?b?_co(_ci)?_u32"), 6
BRANCH = re.compile(r"s_(cbranch|branch|endpgm|setpc)")


def blocks_of(folder):
    """The kernels in disassemblies there: of each its blocks of straight code, lists of (address, text)."""
    kernels = {}
    for listing in sorted(os.listdir(folder)):
        code = None
        with open(os.path.join(folder, listing)) as lines:
            for line in lines:
                if head := re.match(r"([0-9a-f]+) <(\w+)>:", line):
                    code = kernels[head[2]] = (int(head[1], 16), [])
                elif code and "// " in line:
                    text, rest = line.strip().split("// ", 1)
                    code[1].append((int(rest.split(":")[0], 16), text, re.search(r"<\w+(?:\+(0x[0-9a-f]+))?>$", rest)))
    return {kernel: straight(begin, code) for kernel, (begin, code) in kernels.items()}


def straight(begin, code):
    targets = {begin + int(target[1] or "0", 16) for _, text, target in code if target and BRANCH.match(text)}
    blocks, ended = [], True
    for address, text, _ in code:
        if ended or address in targets:
            blocks.append([])
        blocks[-1].append((address, text))
        ended = BRANCH.match(text)
    return blocks


def unreachable(blocks, missed):
    """Addresses of a kernel's missed instructions that divide numbers from 2^32 on."""
    found = set()
    for block in blocks:
        texts = [text for _, text in block]
        if block[0][0] in missed and any(map(BORROW.match, texts)) and sum(map(bool, map(PRODUCT.match, texts))) >= PRODUCTS:
            found.update(address for address, _ in block)
    return found


def covered(rows, target):
    """The launches on a target, by kernel."""
    cover = {}
    for row in rows:
        if row.target == target:
            amd_emulator.merge(cover, row.run.cover)
    return cover


def report(rows, compiled, each, listings):
    """The text of tables, and whether every kernel was launched. `each`: a table of kernels, too."""
    out = ["| target | kernels | launched | instructions of those | executed | out of reach | kernels under 95 % |",
           "|---|---:|---:|---:|---:|---:|---:|"]
    missing, low = {}, {}
    for target, kernels in compiled.items():
        cover = covered(rows, target)
        blocks = blocks_of(os.path.join(listings, target))
        of_all, executed, out_of_reach, under = 0, 0, 0, 0
        for kernel in kernels:
            if kernel not in cover:
                if kernel not in MEASURE:
                    missing.setdefault(kernel, []).append(target)
                continue
            of, missed = cover[kernel]
            beyond = len(unreachable(blocks[kernel], missed))
            share = (of - len(missed)) / (of - beyond)
            of_all, executed, out_of_reach = of_all + of, executed + of - len(missed), out_of_reach + beyond
            if share < WANTED:
                low.setdefault(kernel, {})[target] = share
                under += 1
        launched = sum(kernel in cover for kernel in kernels)
        out.append(f"| {target} | {len(kernels)} | {launched} | {of_all} | {100 * executed / max(1, of_all):.1f} % "
                   f"| {100 * out_of_reach / max(1, of_all):.1f} % | {under} |")
    if each and low:
        out += ["", "| kernel | " + " | ".join(compiled) + " |", "|---|" + "---:|" * len(compiled)]
        for kernel in sorted(low):
            shares = [f"{100 * low[kernel][t]:.0f} %" if t in low[kernel] else "" for t in compiled]
            out.append(f"| {kernel} | " + " | ".join(shares) + " |")
    for kernel in sorted(missing):
        where = "all targets" if len(missing[kernel]) == len(compiled) else ", ".join(missing[kernel])
        out.append(f"not launched: {kernel} on {where}")
    return "\n".join(out), not missing
