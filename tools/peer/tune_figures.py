#!/usr/bin/env python3
"""Tune a GPU's kernels for models with real shapes and random weights, and measure what that gained.

For each row and device `redline tune` runs with a separate folder, then `redline bench` with its findings and with
--no-tune, in turn. DATE-LABEL.json has every sample and what was tuned, DATE-LABEL.md the tables, in a folder named after
the machine. Nothing may be slower: exit status 1 if a median is by more than 1 %. Rows: """

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
import time

from compare_peer import TOOLS, test_name
from gpu_figures import KINDS, ROWS, device_facts, make
from peer_programs import Problem, Programs, run

MOST_SLOWER = 0.01


def tune(options, programs, model, device):
    """The output of redline tune for one device."""
    more = ["--seconds", options.tune_seconds] if options.tune_seconds else []
    said = json.loads(run(programs.redline("tune", "-m", model, "--device", device, "--json", *more)))
    return said["devices"][0]


def samples(options, programs, model, device, test, tuned):
    prompt, generate, depth = test
    more = [] if tuned else ["--no-tune"]
    found = json.loads(run(programs.redline("bench", "-m", model, "--device", device, "-p", prompt, "-n", generate,
                                            "-d", depth, "-r", 1, "-o", "json", *more)))
    return {test_name(entry): entry["samples_ts"] for entry in found}, found[0]["tuned_kernels"]


def measure(options, programs, name, device, model):
    row = {"name": name, "device": device, "tests": {}, "tuning": tune(options, programs, model, device)}
    for test in ROWS[name][2]:
        for turn in range(options.repetitions):
            # Whoever is first in a turn is second in the next: the card's clocks drift.
            for tuned in (True, False) if turn % 2 == 0 else (False, True):
                found, used = samples(options, programs, model, device, test, tuned)
                if tuned:
                    row["used"] = used
                for label, values in found.items():
                    row["tests"].setdefault(label, {"tuned": [], "default": []})["tuned" if tuned else "default"] += values
    return row


def ratio(found):
    return statistics.median(found["tuned"]) / statistics.median(found["default"])


def table(options, facts, done, problems):
    lines = [f"# {facts['device']}, {facts['driver']}, {facts['date']}: tuned beside defaults", "",
             f"Tokens per second, median of {options.repetitions} in turn; random weights with real shapes; redline "
             f"{facts['redline']}.", "",
             "| model | device | test | default | tuned | ratio |", "|---|---|---|---:|---:|---:|"]
    for row in done:
        for label, found in row["tests"].items():
            lines.append(f"| {row['name']} | {row['device']} | {label} | {statistics.median(found['default']):.1f} | "
                         f"{statistics.median(found['tuned']):.1f} | {ratio(found):.3f} |")
    lines += ["", "| model | device | op | rows | default us | best us | gain | variant |", "|---|---|---|---|---:|---:|---:|---|"]
    for row in done:
        for kernel in row["tuning"]["kernels"]:
            if kernel["variant"]:
                variant = ", ".join(f"{name} {value}" for name, value in kernel["variant"].items())
                lines.append(f"| {row['name']} | {row['device']} | {kernel['op']} | {kernel['rows']} | "
                             f"{kernel['default_us']:.1f} | {kernel['best_us']:.1f} | {100 * kernel['gain']:.1f} % | {variant} |")
    wrong = [f"{row['name']}, {row['device']}, {kernel['op']}, {kernel['rows']}: {what}"
             for row in done for kernel in row["tuning"]["kernels"] for what in kernel["wrong"]]
    for title, list_of in (("Wrong variants, not taken:", wrong), ("Not measured:", problems)):
        if list_of:
            lines += ["", title, ""] + [f"- {one}" for one in list_of]
    return "\n".join(lines) + "\n"


def save(options, facts, done, problems):
    folder = os.path.join(options.results, options.machine)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{facts['date']}-{options.label}")
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump({**facts, "rows": done, "problems": problems}, file, indent=1)
        file.write("\n")
    text = table(options, facts, done, problems)
    with open(path + ".md", "w", encoding="utf-8") as file:
        file.write(text)
    return text


def figures(options):
    programs = Programs(options.redline, None)
    end = time.monotonic() + options.seconds
    device, driver = device_facts(options, programs)
    facts = {"device": device, "driver": driver, "date": options.date or datetime.date.today().isoformat(),
             "redline": run(programs.redline("--version")).splitlines()[0].split(" ")[1]}
    done, problems, text = [], [], ""
    for name in options.rows:
        if time.monotonic() > end:
            problems.append(f"{name}: no time was left")
            continue
        model = make(options, name)
        for side in options.device:
            try:
                done.append(measure(options, programs, name, side, model))
            except (Problem, ValueError, KeyError) as problem:
                problems.append(f"{name} on {side}: {problem}")
            text = save(options, facts, done, problems)
        if not options.keep:
            os.remove(model)
    print(text)
    slower = [f"{row['name']} on {row['device']}, {label}: {ratio(found):.3f}" for row in done
              for label, found in row["tests"].items() if ratio(found) < 1 - MOST_SLOWER]
    if slower:
        sys.exit("slower than with defaults: " + "; ".join(slower))


def main():
    parser = argparse.ArgumentParser(description=__doc__ + ", ".join(ROWS),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redline", default="redline", metavar="PROGRAM")
    parser.add_argument("--device", nargs="+", default=["vulkan"], help="redline's devices (default: vulkan)")
    parser.add_argument("--rows", nargs="+", choices=ROWS, metavar="ROW",
                        default=[name for name in ROWS if name not in KINDS and not name.startswith("70b")],
                        help="default: those of Llama and Qwen3-30B-A3B, but 70b")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--tune-seconds", type=int, default=0, help="for each tuning (default: as long as it takes)")
    parser.add_argument("--seconds", type=float, default=3600, help="begin no model after so long (default: 3600)")
    parser.add_argument("--list-weights", metavar="PROGRAM", help="see make_random_model.py")
    parser.add_argument("--work", default=".", metavar="FOLDER", help="for models, up to 20 GB each")
    parser.add_argument("--keep", action="store_true", help="leave the models there")
    parser.add_argument("--results", default=os.path.join(TOOLS, "bench"), metavar="FOLDER")
    parser.add_argument("--machine", required=True, help="name of the folder for results")
    parser.add_argument("--label", help="end of the results' file names; default: the devices")
    parser.add_argument("--date", help="default: today")
    options = parser.parse_args()
    options.label = options.label or "tuned-" + "-".join(options.device)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        try:
            figures(options)
        except Problem as problem:
            sys.exit(str(problem))


if __name__ == "__main__":
    main()
