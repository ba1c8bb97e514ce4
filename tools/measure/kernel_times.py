#!/usr/bin/env python3
"""Measures the time of each kernel in a step on an NVIDIA card, in recorded steps and with launches that overlap.

Builds micro/kernel_times.c with CUPTI (the package nvidia-cuda-cupti, of a CUDA no newer than the driver's), runs a
program with it, and prints for the last whole steps that begin with an embedding, for each kernel and grid: the number
of launches in a step, the time from start to end, and the time that it adds to the step, from the end of the kernel
before to its end. `--file` reads a recording made elsewhere. The program runs some percent slower than without."""
import argparse
import collections
import pathlib
import statistics
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parent.parent


def made(cupti: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    library = next((cupti / "lib").glob("libcupti.so.*"), None)
    if not library or not (cupti / "include" / "cupti.h").exists():
        sys.exit(f"kernel_times: {cupti} has no lib/libcupti.so.* and include/cupti.h, as CUPTI's package has them")
    out = folder / "kernel_times.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-I", cupti / "include", "-o", out,
                    TOOLS / "micro" / "kernel_times.c", library, f"-Wl,-rpath,{library.parent.resolve()}"], check=True)
    return out


def steps_of(path: pathlib.Path) -> list:
    kernels = []
    try:
        for line in path.read_text().splitlines():
            begin, end, x, y, z, threads, name = line.split(None, 6)
            kernels.append((int(begin), int(end), f"{x}x{y}x{z} of {threads}", name))
    except OSError as error:
        sys.exit(f"kernel_times: cannot read {path}: {error.strerror}")
    except ValueError:
        sys.exit(f"kernel_times: {path} is not what kernel_times.c writes: begin, end, grid, threads and name per line")
    kernels.sort()
    begins = [i for i, kernel in enumerate(kernels) if kernel[3].startswith("embed")]
    return [kernels[a:b] for a, b in zip(begins, begins[1:])]


def table(steps: list, last: int) -> str:
    if not steps:
        sys.exit("kernel_times: no two embeddings were launched: nothing is known to be a whole step")
    usual = statistics.mode(len(step) for step in steps[-4 * last:])
    chosen = [step for step in steps if len(step) == usual][-last:]
    there, grown = collections.defaultdict(list), collections.defaultdict(list)
    for step in chosen:
        for before, kernel in zip([None] + step, step):
            there[kernel[2:]].append((kernel[1] - kernel[0]) / 1e3)
            grown[kernel[2:]].append((kernel[1] - (before[1] if before else kernel[0])) / 1e3)
    whole = statistics.median((step[-1][1] - step[0][0]) / 1e3 for step in chosen)
    lines = [f"{len(chosen)} steps of {usual} kernels, {whole:.1f} us each by the device", "",
             "| kernel | grid | in a step | there, us | adds, us | all of it, us | share |",
             "|---|---|---:|---:|---:|---:|---:|"]
    for key in there:
        adds = sum(grown[key]) / len(chosen)
        lines.append(f"| {key[1]} | {key[0]} | {len(there[key]) / len(chosen):g} | {statistics.mean(there[key]):.2f} | "
                     f"{statistics.mean(grown[key]):.2f} | {adds:.1f} | {adds / whole:.1%} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cupti", type=pathlib.Path, help="folder with CUPTI's include and lib")
    parser.add_argument("--file", type=pathlib.Path, help="what was recorded")
    parser.add_argument("--steps", type=int, default=8, help="so many steps count (default: %(default)s)")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="for example: redline bench -m F -dev hip -p 0 -n 16")
    options = parser.parse_args()
    if options.file:
        print(table(steps_of(options.file), options.steps))
        return
    if not options.cupti or not options.program:
        parser.error("a program and --cupti, or --file")
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder) / "records"
        library = made(options.cupti, pathlib.Path(folder))
        settings = ["env", f"CUDA_INJECTION64_PATH={library}", f"KERNEL_TIMES={records}"]
        done = subprocess.run([*settings, *options.program])
        if not records.exists():
            sys.exit("kernel_times: the program launched nothing by CUDA")
        print(table(steps_of(records), options.steps))
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
