"""Kernels of HIP code objects, as tools/amd/amd-speed wants them."""
import concurrent.futures
import pathlib
import re
import subprocess

import amd_speed_isa as isa
import amd_speed_model as model

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def unit_bytes(formats_folder=ROOT / "backends/hip/kernels/formats"):
    """Bytes that 32 weights of each format take."""
    found = {}
    for path in formats_folder.glob("*.h"):
        text = path.read_text(encoding="utf-8")
        if planes := re.search(r"kPlanes = \{\{([\d, ]+)\}\}", text):
            found[path.stem] = sum(map(int, planes[1].split(","))) / 8
        elif floats := re.search(r": Floats<\w+, (\w+)>", text):
            found[path.stem] = {"uint16_t": 64, "float": 128}.get(floats[1], 128)
    return found


def format_of(name, formats):
    """The format at the end of a kernel's name; of a pair the first."""
    any_of = "|".join(sorted(formats, key=len, reverse=True))
    fits = re.search(rf"_({any_of})(_({any_of}))?$", name)  # of two the first
    return fits and fits[1]


def notes(readelf, path):
    """The metadata of each kernel for the driver."""
    text = subprocess.run([readelf, "--notes", str(path)], capture_output=True, text=True, check=True).stdout
    found = {}
    for part in re.split(r"^ {2}- ", text, flags=re.MULTILINE)[1:]:
        values = dict(re.findall(r"^ {0,4}\.(\w+): +'?([\w.]+)", part, flags=re.MULTILINE))
        if "name" in values:
            found[values["name"]] = values
    return found


def wanted(name):
    return bool(model.streams_of(name) or re.match(model.PROMPT, name))


def kernels_in(path, target, readelf, objdump):
    """The kernels of decode and of prompts that a code object has."""
    said, code = notes(readelf, path), isa.disassemble(objdump, path, wanted)
    return [model.Kernel(name, target, int(v["wavefront_size"]), int(v["vgpr_count"]), int(v["group_segment_fixed_size"]),
                         int(v["max_flat_workgroup_size"])).counted(code[name]) for name, v in said.items() if name in code]


def changed():
    """When a source of kernels was written last."""
    return max(path.stat().st_mtime for name in ("kernels", "kernels/formats") for path in (ROOT / "backends/hip" / name).iterdir())


def folders(builds, target, since):
    """Code objects of builds for a card's target, not such of earlier sources: (target they were made for, folder)."""
    for made_for in model.OBJECTS[target]:
        for build in builds:
            folder = build / "hip" / made_for
            if min((path.stat().st_mtime for path in folder.glob("*.co")), default=0.0) > since:
                return made_for, folder
    return None, None


def read(builds, targets, readelf, objdump, formats):
    """Kernels of those formats by the target that they were made for; and for each card's target which that is."""
    serves, jobs, since = {}, [], changed()
    for target in targets:
        made_for, folder = folders(builds, target, since)
        if made_for and made_for not in serves.values():
            jobs += [(folder / f"{f}.co", made_for) for f in formats if (folder / f"{f}.co").exists()]
        serves[target] = made_for
    kernels = {}
    with concurrent.futures.ProcessPoolExecutor() as pool:
        running = [(made_for, pool.submit(kernels_in, path, made_for, readelf, objdump)) for path, made_for in jobs]
        for made_for, future in running:
            kernels.setdefault(made_for, []).extend(future.result())
    return kernels, serves
