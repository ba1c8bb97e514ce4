#!/usr/bin/env python3
"""Run every test on each GPU that redline finds here, and say in a table what ran where.

Without --build the tree is built first, with HIP kernels for the card where the compiler for them is installed. With
it the programs of a finished build are run as they are: nothing but Python is needed, and the tree may have been moved
since."""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CPU_DRIVER = "Vulkan on the CPU"  # the type that `redline devices` gives such a device
# Tests whose cases can be shared by several processes, with the variable that says which of them one takes.
SHARED = {"op_test": "RL_TEST_EVERY", "model_test": "RL_TEST_MODELS"}


def fail(text):
    sys.exit(f"tools/test --gpu: {text}")


def make_build():
    """Builds into build/gpu."""
    hip = ["-DRL_HIP=OFF"]
    if shutil.which("nvcc"):
        hip = ["-DRL_HIP=ON", "-DRL_HIP_TARGETS=", "-DRL_HIP_PLATFORM=nvidia"]
    elif shutil.which("clang++-22") and shutil.which("lld-22"):
        hip = ["-DRL_HIP=ON", "-DRL_HIP_TARGETS=", "-DRL_HIP_PLATFORM=amd"]
    build = os.path.join(ROOT, "build/gpu")
    for command in (["cmake", "--preset", "ci", "-B", build, "--log-level=WARNING", *hip],
                    ["cmake", "--build", build, "--parallel", str(os.cpu_count())]):
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            fail(f"{' '.join(command)} ended with an error, see above")
    return build


def gpus(program, drivers_on_cpu):
    """What --device takes for each usable GPU, with its name, and a line for each that is left out."""
    listing = subprocess.run([program, "devices", "--json"], capture_output=True, text=True)
    if listing.returncode != 0:
        fail(f"{program} devices ended with {listing.returncode}: {listing.stderr.strip()}")
    found, left_out = [], []
    for backend in json.loads(listing.stdout)["backends"]:
        if backend["error"]:
            left_out.append(f"{backend['backend']}: {backend['error']}")
        for device in backend["devices"]:
            on_cpu = backend["backend"] == "cpu" or device["facts"].get("type") == CPU_DRIVER
            if not device["usable"]:
                left_out.append(f"{device['id']}: {device['name']} lacks {device['missing']}")
            elif not on_cpu or (drivers_on_cpu and backend["backend"] != "cpu"):
                found.append((device["id"], device["name"]))
            elif backend["backend"] != "cpu":
                left_out.append(f"{device['id']}: {device['name']} computes on the CPU")
    return found, left_out


def counts(output, what):
    """All, passed and failed, of doctest's summary line."""
    line = re.search(rf"\[doctest\] {what}: *(\d+) *\| *(\d+) passed *\| *(\d+) failed", output)
    return [int(number) for number in line.groups()] if line else [0, 0, 0]


def tests_of(build, wanted):
    """The command of each test, by its name: a folder of tests/ is one program. HIP's double has tests of its own, of ctest."""
    tests = {}
    for source in sorted(glob.glob(os.path.join(ROOT, "tests/*/*_test.cpp"))):
        folder, name = os.path.basename(os.path.dirname(source)), os.path.basename(source).removesuffix(".cpp")
        program = os.path.join(build, "tests", folder + "_tests")
        if folder != "hip" and os.path.exists(program) and re.search(wanted, name):
            tests[name] = [program, f"-sf=*/{name}.cpp"]
    return tests


def run_test(name, command, share, device, options, build):
    """`share`: which of options.shares of its cases; None: all of them."""
    environment = dict(os.environ, RL_TEST_BACKENDS=device, RL_SOURCE_DIR=ROOT,
                       RL_REDLINE=os.path.join(build, "redline"))
    if share is not None:
        environment[SHARED[name]] = f"{options.shares}:{share}"
    if not options.short:
        environment["RL_TEST_LONG"] = "1"
    begin = time.monotonic()
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=options.timeout)
        # 77: all cases were skipped, which the counts say.
        code, output = done.returncode if done.returncode != 77 else 0, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        code, output = f"stopped after {options.timeout} s", (late.stdout or b"").decode(errors="replace")
    lines = re.findall(r"^\[redline\] (.*)$", output, re.MULTILINE)
    return {"test": name, "device": device, "code": code, "output": output,
            "seconds": time.monotonic() - begin, "cases": counts(output, "test cases"),
            "assertions": counts(output, "assertions"),
            "tested": [line[len("tested on "):] for line in lines if line.startswith("tested on ")],
            "skipped": [line[len("not tested: "):] for line in lines if line.startswith("not tested: ")]}


def merged(shares):
    """The row of a program from those of its shares; a case that all of them ran counts each time."""
    row = dict(shares[0])
    for other in shares[1:]:
        row["code"] = row["code"] or other["code"]
        row["seconds"] = max(row["seconds"], other["seconds"])
        for what in ("cases", "assertions"):
            row[what] = [a + b for a, b in zip(row[what], other[what])]
        for what in ("tested", "skipped"):
            row[what] = sorted({*row[what], *other[what]})
    return row


def shares_of(name, options):
    return range(options.shares) if options.shares > 1 and name in SHARED else [None]


def run_all(tests, devices, options, build):
    """A test that uses no device is run once."""
    rows, on_host = [], set()

    def run_one(number, device, name, share):
        row = run_test(name, tests[name], share, device, options, build)
        if not row["tested"] and row["code"] == 0:
            # One that only wants other devices ran nothing here.
            if number > 0:
                return
            on_host.add(name)
            row["device"] = "host"
        rows.append(row)
        part = "" if share is None else f", share {share + 1} of {options.shares}"
        text = f"{row['test']} on {row['device']}{part}: {verdict(row)}, {row['seconds']:.1f} s\n"
        print(text + (row["output"][-options.tail:] if row["code"] != 0 else ""), end="", flush=True)

    for number, (device, _) in enumerate(devices):
        with ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(run_one, number, device, name, share)
                         for name in tests if name not in on_host for share in shares_of(name, options)]:
                done.result()
    by_test = {}
    for row in rows:
        by_test.setdefault((row["device"], row["test"]), []).append(row)
    return [merged(shares) for shares in by_test.values()]


def verdict(row):
    if row["code"] == 0:
        return "passed"
    return "FAILED" if row["code"] == 1 else f"FAILED ({row['code']})"


def table(rows, devices, left_out):
    out = ["| test | on | result | assertions | cases passed | failed | not tested | s |",
           "|---|---|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        cells = (row["test"], row["device"], verdict(row), row["assertions"][0], row["cases"][1], row["cases"][2],
                 len(row["skipped"]), f"{row['seconds']:.1f}")
        out.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    out.append("")
    for device, name in devices:
        mine = [row for row in rows if row["device"] == device]
        out.append(f"{device}: {name}, {len(mine)} tests, {sum(row['code'] != 0 for row in mine)} failed")
    levels = sorted({line for row in rows for line in row["tested"]})
    out += [f"tested: {line}" for line in levels]
    out += [f"not tested: {line}" for line in left_out]
    for reason in sorted({reason for row in rows for reason in row["skipped"]}):
        names = sorted({f"{row['test']} on {row['device']}" for row in rows if reason in row["skipped"]})
        out.append(f"not tested: {reason} ({', '.join(names)})")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="tools/test --gpu", description=__doc__)
    parser.add_argument("--build", metavar="DIR", help="a finished build, run as it is")
    parser.add_argument("--only", metavar="REGEX", default="", help="only tests whose name has this")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the table there as well")
    parser.add_argument("--drivers-on-cpu", action="store_true", help="also Vulkan drivers that compute on the CPU")
    parser.add_argument("--jobs", type=int, default=1, help="tests at a time (default: 1)")
    parser.add_argument("--shares", type=int, default=1, metavar="N",
                        help="processes that share the cases of each of " + ", ".join(SHARED) + " (default: 1)")
    parser.add_argument("--device", action="append", help="only this one, as --device of redline names it; may be repeated")
    parser.add_argument("--short", action="store_true", help="no case repeated twenty times")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds for one test (default: 1200)")
    parser.add_argument("--tail", type=int, default=4000, help="characters shown of a failed test's output")
    options = parser.parse_args()
    build = os.path.abspath(options.build) if options.build else make_build()
    tests = tests_of(build, options.only)
    if not tests:
        fail(f"{build} has no test programs; --build takes the folder of a build with RL_TESTS=ON")
    devices, left_out = gpus(os.path.join(build, "redline"), options.drivers_on_cpu)
    if options.device:
        devices = [found for found in devices if found[0] in options.device]
    if not devices:
        fail("no GPU that redline can use: " + "; ".join(left_out))
    rows = run_all(tests, devices, options, build)
    text = table(rows, devices, left_out)
    print("\n" + text, end="")
    if options.output:
        with open(options.output, "w") as out:
            out.write(text)
    sys.exit(1 if any(row["code"] != 0 for row in rows) else 0)


if __name__ == "__main__":
    main()
