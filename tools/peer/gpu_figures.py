#!/usr/bin/env python3
"""Measure redline and llama.cpp on a GPU: tokens per second of several models with real shapes and random weights.

Models are made by make_random_model.py, while nothing is measured, and removed afterwards unless --keep is given.
A card's clock may take a second to rise and differ from sample to sample until then: of each test's samples the median
of the second half counts, of either program. Results are written after each model: DATE-LABEL.json with every sample and
DATE-LABEL.md with the table, in a folder named after the machine. Rows: """

import argparse
import concurrent.futures
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

from compare_peer import TOOLS, bytes_per_token, test_name
from peer_programs import Problem, Programs, run

# name -> (shape, mix, [(prompt, generated, depth)], layers if fewer than the model has)
ROWS = {
    "8b-q4_k_m": ("llama-3.1-8b", "Q4_K_M", [(512, 128, 0), (4096, 0, 0), (0, 64, 8192), (0, 64, 32768)]),
    "1b-q4_k_m": ("llama-3.2-1b", "Q4_K_M", [(512, 128, 0)]),
    "7b-q4_0": ("llama-2-7b", "Q4_0", [(512, 128, 0)]),
    "8b-q8_0": ("llama-3.1-8b", "Q8_0", [(512, 128, 0)]),
    "8b-f16": ("llama-3.1-8b", "F16", [(512, 128, 0)]),
    "30b-a3b-q4_k_m": ("qwen3-30b-a3b", "Q4_K_M", [(512, 128, 0)]),
    "70b-q4_k_m": ("llama-3.1-70b", "Q4_K_M", [(512, 64, 0)]),
}
# Models of many kinds, most of them cut short, so that all of them fit and are made in seconds: mix, layers if fewer, and
# how many tokens are behind those that are generated in further tests.
KINDS = {
    "qwen3.5-35b-a3b": ("Q4_K_M", 16, [32768]), "gemma-4-26b-a4b": ("Q4_K_M", 12, []),
    "qwen3.5-9b": ("Q4_K_M", 16, [32768]), "gpt-oss-20b": ("MXFP4_MOE", 12, []), "gpt-oss-120b": ("MXFP4_MOE", 8, []),
    "glm-4.7-flash": ("Q4_K_M", 12, []), "nemotron-3-nano-30b-a3b": ("Q4_K_M", 18, [32768]),
    "llm-jp-4-32b-a3b": ("Q4_K_M", 8, []),
    "lfm2-8b-a1b": ("Q4_K_M", None, [32768]), "qwen3.8-flash-next": ("Q4_K_M", 8, [4096, 65536]),
    "deepseek-v4-flash": ("MXFP4_MOE", 8, [4096, 65536]),
    "muse-glimmer-30b": ("Q4_K_M", 8, []), "minimax-m2.7": ("Q4_K_M", 6, []), "laguna-xs-2.1": ("Q4_K_M", 12, []),
    "step-3.5-flash": ("Q4_K_M", 8, []), "llama-4-scout": ("Q4_K_M", 6, []), "hunyuan-a13b": ("Q4_K_M", 8, []),
}
ROWS |= {name: (name, mix, [(512, 64, 0), *((0, 32, depth) for depth in depths)], layers)
         for name, (mix, layers, depths) in KINDS.items()}

# Samples for each repetition of tests without earlier tokens: prompts are the shortest.
SAMPLES = {"prompt": 10, "generation": 4}
PEER = "llama.cpp"
CPU_TEST = (128, 16, 0)


def make(options, name):
    """The path of a row's model, made when it is not there."""
    shape, mix, _, *layers = ROWS[name]
    path = os.path.join(options.work, f"{name}.gguf")
    if not os.path.exists(path):
        more = ["--layers", str(layers[0])] if layers and layers[0] else []
        if options.list_weights:
            more += ["--list-weights", options.list_weights]
        run([sys.executable, os.path.join(TOOLS, "measure", "make_random_model.py"), shape, mix,
             "-o", path + ".part", *more])
        os.rename(path + ".part", path)
    return path


def entries(options, programs, side, model, prompt, generate, depth, cpu=False):
    """The result of a side's bench command for one test, or the reason why there is none. Sides: PEER, or a device of
    redline. `cpu`: the peer computes on the CPU."""
    try:
        found = []
        for kind, tokens in (("prompt", ["-p", prompt, "-n", 0]), ("generation", ["-p", 0, "-n", generate])):
            if not (prompt if kind == "prompt" else generate):
                continue
            samples = options.repetitions * (1 if cpu or depth else SAMPLES[kind])
            common = ["-m", model, *tokens, "-d", depth, "-r", samples, "-o", "json"]
            if side == PEER:
                device = ["-dev", "none", "-t", len(os.sched_getaffinity(0))] if cpu else ["-ngl", 99]
                text = run(programs.peer("llama-bench", *common, *device, "-fa", 1))
            else:
                text = run(programs.redline("bench", *common, "--device", side))
            found += json.loads(text)
        for entry in found:
            entry.update(engine=side, test=("CPU " if cpu else "") + test_name(entry))
            entry["samples_ts"]
            if side == PEER and not cpu and not entry.get("gpu_info"):
                raise Problem("llama.cpp found no GPU and would be measured on the CPU")
        return found, None
    except (Problem, ValueError, KeyError, TypeError) as problem:
        return [], str(problem)


def device_facts(options, programs):
    """(name, driver) as reported by the driver's tool or redline."""
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        name, driver = run(query).strip().splitlines()[0].split(", ")
        return name, f"NVIDIA {driver}"
    except (OSError, Problem, ValueError):
        return run(programs.redline("devices")).strip(), "see the device"


def peaks(programs, sides, model):
    """Lines that say what the card reaches when nothing else is done, by each side's measure and by PyTorch's."""
    lines = []
    for side in sides:
        said = json.loads(run(programs.redline("bench", "-m", model, "--ops", "-r", 1, "-o", "json", "--device", side)))
        line = f"{side}: memory {said['bandwidth_gb_per_s']:.0f} GB/s"
        halfs, octets = said["matrix_f16_tflop_per_s"], said["matrix_int8_top_per_s"]
        if halfs is None:
            line += "; matrix units not measured"
        elif halfs == 0:
            line += "; no matrix units"
        else:
            line += f"; matrix units by {said['matrix_instruction']} {halfs:.0f} TFLOP/s in halfs, {octets:.0f} TOP/s in int8"
        lines.append(line)
    try:
        said = json.loads(run([sys.executable, os.path.join(TOOLS, "measure", "matrix_yardstick.py"), "--json"]))
        lines.append(f"PyTorch {said['torch']}: " + "; ".join(
            f"{one['name']} {one['value']:.0f} {one['unit']}" for one in said["yardsticks"]))
    except Problem as problem:
        lines.append("not measured by PyTorch: " + str(problem).splitlines()[-1].split(": ", 1)[-1])
    return lines


def settled(samples):
    """The median of the second half."""
    return statistics.median(samples[len(samples) // 2:])


def cell(samples):
    return f"{settled(samples):.1f}" if samples else "-"


def table(options, facts, done, skipped):
    sides = " and ".join(options.device)
    peer = "" if options.no_peer else f", llama.cpp's Vulkan backend ({facts['peer']}) with flash attention"
    ratios = [] if options.no_peer else [f"{side} / {PEER}" for side in options.device]
    lines = [f"# {facts['device']}, {facts['driver']}, {facts['date']}", "",
             f"Tokens per second, median of the second half of the samples; random weights with real shapes; redline "
             f"{facts['redline']} on {sides}{peer}. GB/s: weights read per generated token, times tokens per second.", "",
             "| " + " | ".join(["model", "test", *options.device, *([] if options.no_peer else [PEER]), *ratios,
                                *(f"{side} GB/s" for side in options.device)]) + " |"]
    lines.append("|---|---|" + "---:|" * (lines[-1].count("|") - 3))
    for row in done:
        samples = {}
        for entry in row["entries"]:
            samples.setdefault(entry["test"], {}).setdefault(entry["engine"], []).extend(entry["samples_ts"])
        for test, found in samples.items():
            shown = [cell(found.get(side, [])) for side in options.device]
            theirs = found.get(PEER, [])
            if not options.no_peer:
                shown.append(cell(theirs))
                shown += [f"{settled(found[side]) / settled(theirs):.2f}" if found.get(side) and theirs
                          else "" for side in options.device]
            shown += [f"{settled(found[side]) * row['bytes'] / 1e9:.0f}" if found.get(side) and
                      test.startswith("tg") else "" for side in options.device]
            lines.append("| " + " | ".join([row["name"], test, *shown]) + " |")
    for row in done:
        if "peaks" in row:
            lines += ["", "What the card reaches when nothing else is done:", ""] + [f"- {line}" for line in row["peaks"]]
    problems = [f"{row['name']}: {problem}" for row in done for problem in row["problems"]] + skipped
    if problems:
        lines += ["", "Not measured:", ""] + [f"- {problem}" for problem in problems]
    for row in done:
        for text in row.get("ops", []):
            lines += ["", f"## {row['name']}, operation by operation", "", "```", text.strip(), "```"]
    return "\n".join(lines) + "\n"


def save(options, facts, done, skipped):
    folder = os.path.join(options.results, options.machine)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{facts['date']}-{options.label}")
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump({**facts, "rows": done, "skipped": skipped}, file, indent=1)
        file.write("\n")
    text = table(options, facts, done, skipped)
    with open(path + ".md", "w", encoding="utf-8") as file:
        file.write(text)
    return text


def measure(options, programs, name, model):
    row = {"name": name, "bytes": bytes_per_token(model), "entries": [], "problems": []}
    for test in ROWS[name][2]:
        for side in [*options.device, *([] if options.no_peer else [PEER])]:
            found, problem = entries(options, programs, side, model, *test)
            row["entries"] += found
            if problem:
                row["problems"].append(f"{side} {test}: {problem}")
    if options.cpu:
        for engine, side in ((options.device[0], "cpu"), (PEER, PEER)):
            found, problem = entries(options, programs, side, model, *CPU_TEST, cpu=True)
            row["entries"] += [{**entry, "engine": engine} for entry in found]
            if problem:
                row["problems"].append(f"{side} on the CPU: {problem}")
    if options.ops and name == options.rows[0]:
        row["peaks"] = peaks(programs, options.device, model)
        row["ops"] = [run(programs.redline("bench", "-m", model, "--ops", "--device", side)) for side in options.device]
    return row


def figures(options):
    programs = Programs(options.redline, options.peer)
    end = time.monotonic() + options.seconds
    device, driver = device_facts(options, programs)
    facts = {"device": device, "driver": driver, "date": options.date or datetime.date.today().isoformat(),
             "redline": run(programs.redline("--version")).splitlines()[0].split(" ")[1],
             "peer": "not run"}
    done, skipped, text = [], [], ""
    with concurrent.futures.ThreadPoolExecutor(1) as maker:
        for index, name in enumerate(options.rows):
            coming = maker.submit(make, options, name)
            try:
                model = coming.result(timeout=max(0.0, end - time.monotonic()))
            except concurrent.futures.TimeoutError:
                skipped += [f"{later}: no time was left" for later in options.rows[index:]]
                text = save(options, facts, done, skipped)
                print(text, flush=True)
                os._exit(0)  # the model that is being made is not waited for
            except Problem as problem:
                skipped.append(f"{name}: {problem}")
                text = save(options, facts, done, skipped)
                print(f"{name}: {problem}", file=sys.stderr, flush=True)
                model = None
            if not model:
                continue
            done.append(measure(options, programs, name, model))
            for entry in done[-1]["entries"]:
                if entry["engine"] == PEER and "build_number" in entry:
                    facts["peer"] = f"build {entry['build_number']}"
            text = save(options, facts, done, skipped)
            print(f"{name}: measured", file=sys.stderr, flush=True)
            if not options.keep:
                os.remove(model)
    print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__ + ", ".join(ROWS),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redline", default="redline", metavar="PROGRAM")
    parser.add_argument("--peer", metavar="FOLDER_OR_WRAPPER", help="llama.cpp's tools; default: those in PATH")
    parser.add_argument("--no-peer", action="store_true", help="measure redline alone")
    parser.add_argument("--device", nargs="+", default=["vulkan"], help="redline's devices (default: vulkan)")
    parser.add_argument("--rows", nargs="+", choices=ROWS, metavar="ROW",
                        default=[name for name in ROWS if name not in KINDS and not name.startswith("70b")],
                        help="default: those of Llama and Qwen3-30B-A3B, but 70b")
    parser.add_argument("--repetitions", type=int, default=6,
                        help="samples of generation at a depth, and on the CPU; of prompts 10, of generation 4 times as many")
    parser.add_argument("--seconds", type=float, default=3600, help="begin no model after so long (default: 3600)")
    parser.add_argument("--cpu", action="store_true", help="measure both on the CPU as well; in the first device's column")
    parser.add_argument("--list-weights", metavar="PROGRAM", help="see make_random_model.py")
    parser.add_argument("--ops", action="store_true", help="time the operations of the first row's model too")
    parser.add_argument("--work", default=".", metavar="FOLDER", help="for models, up to 20 GB each")
    parser.add_argument("--keep", action="store_true", help="leave the models there")
    parser.add_argument("--results", default=os.path.join(TOOLS, "bench"), metavar="FOLDER")
    parser.add_argument("--machine", required=True, help="name of the folder for results")
    parser.add_argument("--label", help="end of the results' file names; default: the devices")
    parser.add_argument("--date", help="default: today")
    options = parser.parse_args()
    options.label = options.label or "-".join(options.device)
    try:
        figures(options)
    except Problem as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
