#!/usr/bin/env python3
"""Measure redline on a CPU that other programs use, too: beside none, one, two, ... busy processes.

For each number of them and each model, rounds of: redline with one thread, with all, with all of an earlier
build (--before), and llama.cpp's llama-bench with all (--peer, as tools/peer/compare_peer.py takes it). The busy
processes compute without end, at the priority of redline, and are gone when the measurement ends, however it ends.

The table has medians of tokens per second. "share" is redline with all threads beside the best of one thread and
the earlier build's all: a team that takes the right number of threads reaches 1. Each value's range is in the JSON.
A JSON file that is there is added to, so that a long measurement can be done in pieces.

examples:
  cpu_load.py -m model.gguf --peer ~/llama.cpp/build/bin
  cpu_load.py -m dense.gguf -m mixture.gguf --neighbours 0 4 --rounds 5 --json 2026-11-28-cpu-load.json
  cpu_load.py --table 2026-11-28-cpu-load.json
"""

import argparse
import contextlib
import datetime
import json
import multiprocessing
import os
import signal
import statistics
import sys
import time

from compare_peer import cpu_name, test_name
from peer_programs import Problem, Programs, run


def compute(until, parent):
    while time.monotonic() < until and os.getppid() == parent:
        for _ in range(100000):
            pass


@contextlib.contextmanager
def neighbours(count, most_seconds):
    """So many busy processes, which end by themselves after most_seconds or with this program."""
    context = multiprocessing.get_context("fork")
    until = time.monotonic() + most_seconds
    busy = [context.Process(target=compute, args=(until, os.getpid()), daemon=True) for _ in range(count)]
    try:
        for process in busy:
            process.start()
        if busy:
            time.sleep(0.2)
        yield
        if busy and time.monotonic() >= until:
            raise Problem(f"the busy processes ended before the measurement: more than {most_seconds} s")
    finally:
        for process in busy:
            if process.pid:
                process.kill()
                process.join()


def sides(options):
    """(name, the command of a bench run without model and sizes) of what is compared."""
    threads = options.threads or os.cpu_count()
    ours = Programs(options.redline, options.peer)
    found = [("1 thread", ours.redline("bench", "-t", 1)), (f"{threads} threads", ours.redline("bench", "-t", threads))]
    if options.before:
        found.append(("before", Programs(options.before, None).redline("bench", "-t", threads)))
    if options.peer:
        found.append(("llama.cpp", ours.peer("llama-bench", "-t", threads)))
    return found


def measure(options, save):
    for count in options.neighbours:
        for model in options.model:
            for number in range(options.rounds):
                for side, command in sides(options):
                    print(f"{count} neighbours, {os.path.basename(model)}, round {number + 1}: {side}", file=sys.stderr)
                    with neighbours(count, options.most_seconds):
                        text = run([*command, "-m", model, "-p", str(options.prompt), "-n", str(options.generate),
                                    "-r", str(options.repetitions), "-o", "json"])
                    for entry in json.loads(text):
                        save({"neighbours": count, "model": os.path.basename(model), "test": test_name(entry),
                              "side": side, "tokens_per_second": list(entry["samples_ts"]),
                              "logits_hash": entry.get("logits_hash"), "load_average": os.getloadavg()[0],
                              "time": datetime.datetime.now().isoformat(timespec="seconds")})


def table(record):
    medians, order = {}, []
    for each in record["runs"]:
        medians.setdefault((each["model"], each["test"], each["neighbours"]), {}).setdefault(each["side"], []).append(
            statistics.median(each["tokens_per_second"]))
        if each["side"] not in order:
            order.append(each["side"])
    order.sort(key=lambda side: (side == "llama.cpp", side == "before", side != "1 thread"))
    lines = [f"{record['cpu']}, {record['processors']} processors, {record['date']}. Tokens per second, medians of rounds.",
             "", "| model | test | neighbours | " + " | ".join(order) + " | share |",
             "|---|---|---:|" + "---:|" * (len(order) + 1)]
    for (model, test, count), found in sorted(medians.items()):
        value = {side: statistics.median(samples) for side, samples in found.items()}
        fixed = [value[side] for side in ("1 thread", "before") if side in value]
        all_threads = next((value[side] for side in order if side.endswith(" threads") and side in value), None)
        share = f"{all_threads / max(fixed):.2f}" if fixed and all_threads else ""
        figures = [f"{value[side]:.1f}" if side in value else "" for side in order]
        lines.append(f"| {model} | {test} | {count} | " + " | ".join(figures) + f" | {share} |")
    return "\n".join(lines)


def load_record(path):
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return {"cpu": cpu_name(), "processors": os.cpu_count(), "date": datetime.date.today().isoformat(), "runs": []}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", action="append", default=[], help="may be repeated")
    parser.add_argument("--neighbours", type=int, nargs="+", default=[0, 1, 2, 4, 30], metavar="N")
    parser.add_argument("-t", "--threads", type=int, help="default: one per processor")
    parser.add_argument("-p", "--prompt", type=int, default=128)
    parser.add_argument("-n", "--generate", type=int, default=64)
    parser.add_argument("-r", "--repetitions", type=int, default=2, help="samples in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--redline", default="redline", metavar="PROGRAM")
    parser.add_argument("--before", metavar="PROGRAM", help="redline of another build")
    parser.add_argument("--peer", metavar="FOLDER_OR_WRAPPER", help="llama.cpp's tools")
    parser.add_argument("--most-seconds", type=float, default=120, help="that busy processes live")
    parser.add_argument("--json", metavar="FILE", help="write every sample; added to one that is there")
    parser.add_argument("--table", metavar="FILE", help="only print the table of such a file")
    return parser.parse_args()


def main():
    options = parse()
    record = load_record(options.table or options.json)
    if not options.table:
        if not options.model:
            raise Problem("no model; say -m FILE")

        def save(found):
            record["runs"].append(found)
            if options.json:
                with open(options.json, "w", encoding="utf-8") as out:
                    json.dump(record, out, indent=1)
                    out.write("\n")

        measure(options, save)
    print(table(record))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the busy processes and the bench are ended
    try:
        main()
    except Problem as problem:
        sys.exit(f"cpu_load.py: {problem}")
