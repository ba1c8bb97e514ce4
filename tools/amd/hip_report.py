#!/usr/bin/env python3
"""Reports the compiled HIP kernels: registers, spills, scratch and shared memory of each kernel, and how many
dot product and matrix instructions it has.

usage: tools/amd/hip_report.py BUILD [--summary]
Reads BUILD/hip/TARGET/*.co with llvm-readelf and llvm-objdump, and exits 1 when a kernel spills a register, uses scratch
memory, or lacks the instructions that it is made for.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

FIELDS = {
    "vgpr_count": "vgprs",
    "agpr_count": "agprs",
    "sgpr_count": "sgprs",
    "vgpr_spill_count": "vgpr spills",
    "sgpr_spill_count": "sgpr spills",
    "private_segment_fixed_size": "scratch",
    "group_segment_fixed_size": "shared",
    "wavefront_size": "wave",
}
# Per SIMD: registers of a lane in a wave, what they are handed out in, and the most waves.
REGISTERS = {"gfx9": (512, 8, 8), "gfx10": (1024, 8, 16), "gfx11": (1536, 24, 16), "gfx12": (1536, 24, 16)}

# The instructions that a kernel of this name must have, by family of targets.
MADE_OF = [
    (re.compile(r"(linear|gated|expert|expert_gated)_dot_|expert_(gated_)?own_"), {"": "v_dot4"}),
    (re.compile(r"(linear|gated|expert|expert_gated)_matrix_|attention_many_|peak_"),
     {"gfx9": "v_mfma", "gfx10": "v_dot2", "gfx11": "v_wmma", "gfx12": "v_wmma"}),
    (re.compile(r"(linear|gated|expert|expert_gated)_bytes_"),
     {"gfx9": "v_mfma", "gfx10": "v_dot4", "gfx11": "v_wmma", "gfx12": "v_wmma"}),
]
COUNTED = ("v_dot4", "v_dot2", "v_wmma", "v_mfma")


def made_of(target, kernel):
    """The instruction that a kernel must have, or None."""
    for pattern, by_family in MADE_OF:
        if pattern.match(kernel):
            return next(name for family, name in by_family.items() if target.startswith(family))
    return None


def instructions(objdump, path):
    """The number of each of COUNTED in each kernel."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True).stdout
    found, current = {}, None
    for line in text.splitlines():
        if head := re.match(r"[0-9a-f]+ <(\w+)>:", line):
            current = found.setdefault(head[1], collections.Counter())
        elif current is not None and (used := re.match(r"\s+(v_(?:dot4|dot2|wmma|mfma))", line)):
            current[used[1]] += 1
    return found


def tool(name):
    for version in ("-22", "-21", "-20", ""):
        if path := shutil.which(name + version):
            return path
    sys.exit(f"{name} is not installed")


def kernels(readelf, path):
    """The metadata of each kernel of a code object, by its name."""
    text = subprocess.run([readelf, "--notes", str(path)], capture_output=True, text=True, check=True).stdout
    found = {}
    # A kernel's entries begin with the list of its arguments.
    for part in re.split(r"^ {2}- ", text, flags=re.MULTILINE)[1:]:
        values = dict(re.findall(r"^ {0,4}\.(\w+): +'?([\w.]+)", part, flags=re.MULTILINE))
        if "name" in values:
            found[values["name"]] = {shown: int(values.get(key, 0)) for key, shown in FIELDS.items()}
    return found


def occupancy(target, values):
    """Waves per SIMD as far as vector registers allow."""
    family = next((f for f in REGISTERS if target.startswith(f)), None)
    if not family:
        return 0
    total, unit, most = REGISTERS[family]
    used = max(1, -(-values["vgprs"] // unit) * unit)
    return min(most, total // used)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--summary", action="store_true", help="one line per target, and the kernels at fault")
    options = parser.parse_args()
    readelf, objdump = tool("llvm-readelf"), tool("llvm-objdump")
    objects = sorted(options.build.glob("hip/gfx*/*.co"))
    if not objects:
        sys.exit(f"{options.build} holds no HIP code objects: build it with RL_HIP=ON")
    bad = []
    totals = collections.defaultdict(lambda: [0, 0, 0])
    if not options.summary:
        print("target", "kernel", *FIELDS.values(), "waves", *COUNTED, sep="\t")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        counted = list(pool.map(lambda path: instructions(objdump, path), objects))
    for path, used in zip(objects, counted):
        target = path.parent.name
        for name, values in kernels(readelf, path).items():
            if not options.summary:
                print(target, name, *values.values(), occupancy(target, values), *(used[name][i] for i in COUNTED), sep="\t")
            total = totals[target]
            total[0] += 1
            total[1] = max(total[1], values["vgprs"])
            if values["vgpr spills"] or values["sgpr spills"] or values["scratch"]:
                bad.append(f"spills: {target} {name}: {values}")
            wanted = made_of(target, name)
            if wanted and not used[name][wanted]:
                bad.append(f"no {wanted}: {target} {name}")
        totals[target][2] += path.stat().st_size
    for target, (count, vgprs, size) in totals.items():
        print(f"{target}: {count} kernels, at most {vgprs} vector registers, {size / 1e6:.1f} MB")
    for line in bad:
        print(line)
    return 1 if bad else 0


sys.exit(main())
