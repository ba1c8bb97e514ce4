#!/usr/bin/env python3
"""Plans, scratch, and lists of launches or dispatches of models on cards that are not there, as texts that can be compared.

`write` runs build/ci/tools/step_kernels for each model and device, and writes FOLDER/MODEL/DEVICE/plans.txt (slots, and per
step what it writes, its scratch, choices and precision) and a file for each number of rows (per launch: kernel, grid, barriers
before it, and a hash of its arguments). A change of code that is to change nothing leaves all of them the same: `compare` says
where two folders differ, and ends with 1 if they do. Nothing is computed; the kernels of Vulkan are not compiled.

Between members of HIP's arguments lie bytes that are any, as a rule of addresses of the host: words that differ between two
runs, or look like a half of such an address, count as zeros. Where a build leaves another number there, a hash differs although
the launch does not.

examples:
  tools/build ci --target step_kernels list_weights && tools/vulkan/vulkan-lab setup
  tools/measure/step_lists.py write before
  tools/measure/step_lists.py write after --models tiny
  tools/measure/step_lists.py compare before after
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOST_ADDRESSES = {*range(0x5500, 0x5800), *range(0x7E00, 0x8000)}  # their upper words
SHOWN = 8  # lists of those that differ
ROWS = (1, 2, 8, 9, 17, 64, 128, 512)
# (interface, target or stand-in, units as the runtime counts them). Few units have launches cut into slices.
DEVICES = {"hip-gfx1100": ("hip", "gfx1100", 48), "hip-gfx1201": ("hip", "gfx1201", 32), "hip-gfx942": ("hip", "gfx942", 304),
           "hip-sm_90": ("hip", "sm_90", 132), "hip-gfx1033": ("hip", "gfx1033", 4), "vulkan-navi31": ("vulkan", "navi31", 96),
           "vulkan-gfx1201": ("vulkan", "gfx1201", 64), "vulkan-vangogh": ("vulkan", "vangogh", 8)}
# Shape and mix of models of real shapes and few layers, without content: see make_random_model.py.
SHAPES = {"llama-3.1-8b": ("Q4_K_M", 2), "qwen3-30b-a3b": ("Q4_K_M", 2), "qwen3.5-35b-a3b": ("Q4_K_M", 4),
          "gpt-oss-20b": ("MXFP4_MOE", 2), "glm-4.7-flash": ("Q4_K_M", 2)}
TINY = ("llama3", "gemma3n", "gemma4-moe", "deepseek2-v3", "deepseek4", "qwen35moe", "qwen3next", "falcon-h1", "mamba2", "lfm2moe",
        "qwen4exp", "nemotron-h-moe", "llama4", "gpt-oss", "mixtral", "starcoder2")


def fail(text):
    sys.exit(f"tools/measure/step_lists.py: {text}")


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-800:]}")
    return done.stdout


def model_file(name, build):
    if name in TINY:
        return ROOT / f"tests/golden/models/{name}.gguf"
    mix, layers = SHAPES[name]
    path = build / f"step_lists/{name}-{mix}-{layers}.gguf"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        run([sys.executable, ROOT / "tools/measure/make_random_model.py", name, mix, "--layers", layers, "--hollow", "--list-weights",
             build / "tools/list_weights", *(["--pure"] if mix == "MXFP4_MOE" else []), "-o", path])
    return path


def hash_arguments(runs):
    """Puts hashes in the place of words of arguments: of those that are the same in all runs, wherever the kernel is launched.
    Upper halves of addresses on the stack and the heap often are, by chance."""
    together = list(zip(*([launch for step in run["launches"] for launch in step["launches"]] for run in runs)))
    varying = collections.defaultdict(set)
    for launches in together:
        for at, words in enumerate(zip(*(launch["arguments"] for launch in launches))):
            if len(set(words)) > 1:
                varying[launches[0]["kernel"]].add(at)
    for first, *_ in together:
        words = [0 if at in varying[first["kernel"]] or word in HOST_ADDRESSES else word
                 for at, word in enumerate(first["arguments"])]
        first["arguments"] = hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]


def write_one(folder, model, path, device, build):
    api, target, units = DEVICES[device]
    rows, program = ",".join(map(str, ROWS)), build / "tools/step_kernels"
    if api == "hip":
        double = {**os.environ, "LD_LIBRARY_PATH": str(build / "hip/double")}
        runs = [json.loads(run([program, api, path, rows, target, units, "plans"], env=double)) for _ in range(2)]
        found = runs[0]
        hash_arguments(runs)
    else:
        found = json.loads(run([ROOT / "tools/vulkan/vulkan-lab", "run", target, program, api, path, rows, "-", units, "plans"]))
    files = {"plans.txt": [found["detail"], *found["memory"]]}
    for plan in found["plans"]:
        files["plans.txt"] += [{key: plan[key] for key in ("rows", "sequences", "arena")}, *plan["slots"], *plan["steps"]]
    for step in found["launches"]:
        lines = files.setdefault(f"rows-{step['rows']}.txt", [])
        lines += [{key: step[key] for key in ("sequences", "best")}, *step["launches"]]
    here = folder / model / device
    here.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (here / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def write(folder, models, devices, build, jobs):
    paths = {model: model_file(model, build) for model in models}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        under_way = [pool.submit(write_one, folder, model, paths[model], device, build) for model in models for device in devices]
        for one in under_way:
            one.result()


def compare(before, after):
    files = [{path.relative_to(folder): path for path in sorted(folder.rglob("*.txt"))} for folder in (before, after)]
    if not files[1]:
        fail(f"{after} has no lists")
    differing = 0
    for name in files[1]:  # there may be fewer of them
        if name not in files[0]:
            fail(f"{name} is not in {before}")
        lines = [found[name].read_text(encoding="utf-8").splitlines() for found in files]
        if lines[0] == lines[1]:
            continue
        differing += 1
        if differing > SHOWN:
            continue
        at = next((i for i, pair in enumerate(zip(*lines)) if pair[0] != pair[1]), min(map(len, lines)))
        print(f"{name}: line {at + 1}, of {len(lines[0])} and {len(lines[1])}")
        for sign, found in zip("-+", lines):
            print(f"  {sign} {found[at] if at < len(found) else '(no more)'}")
    print(f"{differing} of {len(files[1])} lists differ")
    return 1 if differing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="writes the lists of models on devices")
    writing.add_argument("folder", type=pathlib.Path)
    writing.add_argument("--models", nargs="+", default=[*SHAPES, *TINY], metavar="NAME", help="tiny: those of tests/golden; default: all")
    writing.add_argument("--devices", nargs="+", default=list(DEVICES), choices=DEVICES, metavar="NAME", help=", ".join(DEVICES))
    writing.add_argument("--build", type=pathlib.Path, default=ROOT / "build/ci")
    writing.add_argument("--jobs", type=int, default=os.cpu_count())
    comparing = commands.add_parser("compare", help="says where the lists of the second folder differ from those of the first")
    comparing.add_argument("before", type=pathlib.Path)
    comparing.add_argument("after", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "compare":
        sys.exit(compare(options.before, options.after))
    models = [name for given in options.models for name in (TINY if given == "tiny" else [given])]
    for name in models:
        if name not in SHAPES and name not in TINY:
            fail(f"{name} is none of {', '.join([*SHAPES, *TINY])}")
    write(options.folder, models, options.devices, options.build, options.jobs)


if __name__ == "__main__":
    main()
