"""The launches of redline on a card in steps of several numbers of rows, as the program itself says it (tools/micro/step_kernels.cpp),
and the machine code of the kernels that it names. Plans and code are kept in BUILD/widths, by hashes of what they follow from."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import amd_speed_hip
import amd_speed_isa as isa
import amd_speed_steps as steps

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNELS = ROOT / "backends/hip"
# The target that a card's kernels are compiled for here: those of a family differ in little.
COMPILED = {"gfx90a": "gfx90a", "gfx942": "gfx942", "gfx1033": "gfx1030", "gfx1100": "gfx1100", "gfx1102": "gfx1100",
            "gfx1103": "gfx1100", "gfx1150": "gfx1100", "gfx1151": "gfx1100", "gfx1200": "gfx1201", "gfx1201": "gfx1201"}
# Tiles for prompts take most of the compiler's time.
REDUCED = """#include "kernels/format_kernels.h"
#undef RL_COMMON_KERNELS
#define RL_COMMON_KERNELS(format)
"""


def fail(text):
    sys.exit(f"tools/amd/amd-speed: {text}")


def hash_of(*parts):
    """A hash of texts and of the contents of files."""
    got = hashlib.sha256()
    for part in parts:
        got.update(part.read_bytes() if isinstance(part, pathlib.Path) else str(part).encode())
    return got.hexdigest()[:16]


def run(command, doing, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        fail(f"{doing}: {(done.stderr or done.stdout).strip()[-800:]}")
    return done.stdout


class Plans:
    """Plans of models for cards."""

    def __init__(self, build, widths, fragments):
        self.build, self.widths, self.fragments = build, widths, fragments
        self.folder = build / "widths"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program = build / "tools/step_kernels"
        if not self.program.exists():
            fail(f"{self.program} is not there: tools/build ci --target step_kernels makes it")
        self.stamp = hash_of(self.program)

    def model(self, shape, mix, layers):
        """A hollow file of few layers."""
        path = self.folder / f"{shape}-{mix}-{layers}.gguf"
        if not path.exists():
            more = ["--pure"] if mix == "MXFP4_MOE" else []
            run([sys.executable, ROOT / "tools/measure/make_random_model.py", shape, mix, "--layers", layers, "--hollow",
                 *more, "-o", path], f"writing a model of {shape}'s shapes")
        return path

    def plan(self, card, api, shape, mix, layers):
        """(plan, listing of machine code or None)."""
        file = self.model(shape, mix, layers)
        rows = ",".join(map(str, self.widths))
        units = card["units"] if api == "vulkan" or card["target"].startswith("gfx9") else card["units"] // 2  # WGPs
        device = card["mesa"] if api == "vulkan" else card["target"]
        key = hash_of(self.stamp, file.name, rows, units, device, api, self.fragments if api == "vulkan" else "")
        path, code = self.folder / f"{key}.json", self.folder / f"{key}.code"
        if not path.exists():
            if api == "vulkan":
                command = [ROOT / "tools/vulkan/vulkan-lab", "run", device, self.program, "vulkan", file, rows, code, units,
                           *(["fragments"] if self.fragments else [])]
                text = run(command, f"planning {shape} for {card['name']} with Vulkan")
            else:
                double = {**os.environ, "LD_LIBRARY_PATH": str(self.build / "hip/double")}
                text = run([self.program, "hip", file, rows, device, units], f"planning {shape} for {card['name']} with HIP",
                           env=double)
            path.write_text(text, encoding="utf-8")
        return json.loads(path.read_text(encoding="utf-8")), code if api == "vulkan" else None


# --- machine code ----------------------------------------------------------------------------------------------------------

def read_listing(path, device):
    """Kernels of a listing of Mesa's by their names."""
    found = {}
    for part in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, listing = part.partition("\n")
        name = head.split("  ")[0].strip()
        numbers = name_numbers(name)
        stem = name.split(".")[0]
        fact = {key: int(value) for key, value in re.findall(r"(VGPRs|LDS size|Subgroups per SIMD) (\d+)", head)}
        wave = wave_of(name, stem, numbers)
        found[name] = steps.read(isa.read_mesa(listing), name, device, wave, fact["VGPRs"], fact["LDS size"],
                                 numbers[0] if numbers else 64, fact["Subgroups per SIMD"] * 32 // wave, "vulkan",
                                 bool(re.search(r"pill|Scratch", head)))
    return found


def name_numbers(name):
    """The specialisation constants of a pipeline, which its name ends with."""
    parts = name.split("/")
    return [int(n) for n in parts[3].split(",") if n] if len(parts) > 3 else []


def wave_of(name, stem, numbers):
    """Lanes of a subgroup: a constant of most kernels, or behind them where one is required."""
    at = {"linear_dot_own": 5, "gated_dot_own": 5, "linear_dot": 4, "gated_dot": 4, "linear_few": 9, "gated_few": 9, "linear_coop": 9,
          "gated_coop": 9, "expert_coop": 9, "linear_fragments": 7, "gated_fragments": 7}.get(stem)
    if at is not None and len(numbers) > at:
        return numbers[at]
    parts = name.split("/")
    return int(parts[4]) if len(parts) > 4 and parts[4] else 64


def compiled(build, target, form, pairs, tiles, clang):
    """The code object with the products of a format."""
    folder = build / "widths/co"
    folder.mkdir(parents=True, exist_ok=True)
    floats = re.search(r": Floats<", (KERNELS / f"kernels/formats/{form}.h").read_text(encoding="utf-8"))
    text = REDUCED
    for kind in ("MATRIX", "EXPERT_MATRIX"):
        if kind not in tiles:
            text += f"#undef RL_{kind}_KERNELS\n#define RL_{kind}_KERNELS(format)\n"
    text += f'#include "kernels/formats/{form}.h"\nRL_{"FLOAT" if floats else "QUANTIZED"}_KERNELS({form})\n'
    if floats:
        text += f"RL_FLOAT_MATRIX_KERNELS({form})\n"
    for other in pairs:
        text += f'#include "kernels/formats/{other}.h"\nRL_PAIR_KERNEL({form}, {other})\n'
    headers = sorted([*(KERNELS / "kernels").glob("*.h"), *(KERNELS / "kernels/formats").glob("*.h")])
    path = folder / f"{target}-{form}-{hash_of(text, clang, *headers)}.co"
    if not path.exists():
        source = path.with_suffix(".cpp")
        source.write_text(text, encoding="utf-8")
        run([clang, "-x", "hip", f"--offload-arch={target}", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc",
             "-nogpulib", "-O3", "-std=c++20", "-ffp-contract=off", "-Wno-pass-failed", f"-I{KERNELS}", f"-I{ROOT}",
             f"-I{ROOT / 'src'}", source, "-o", path.with_suffix(".part")], f"compiling {form} for {target}")
        path.with_suffix(".part").rename(path)
    return path


def read_objects(build, target, names, tools):
    """Kernels of these names, compiled for a target."""
    forms = amd_speed_hip.unit_bytes()
    wanted, pairs = {}, {}
    any_of = "|".join(sorted(forms, key=len, reverse=True))
    for name in names:
        fits = re.search(rf"_({any_of})(?:_({any_of}))?$", name)
        if not fits:
            continue
        wanted.setdefault(fits[1], set()).add(name)
        if fits[2]:
            pairs.setdefault(fits[1], set()).add(fits[2])
    found = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        paths = pool.map(lambda form: compiled(build, target, form, sorted(pairs.get(form, ())), {
            "EXPERT_MATRIX" if "expert" in name else "MATRIX" for name in wanted[form] if "_matrix_" in name}, tools["clang"]), wanted)
        for form, path in zip(list(wanted), paths):
            said = amd_speed_hip.notes(tools["readelf"], path)
            code = isa.disassemble(tools["objdump"], path, lambda name: name in wanted[form])
            for name, instructions in code.items():
                v = said[name]
                found[name] = steps.read(instructions, name, target, int(v["wavefront_size"]), int(v["vgpr_count"]),
                                         int(v["group_segment_fixed_size"]), int(v["max_flat_workgroup_size"]),
                                         spills=v.get("vgpr_spill_count", "0") != "0")
    return found
