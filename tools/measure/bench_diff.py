#!/usr/bin/env python3
"""Compare two bench JSON files: a before/after table for a commit message.

Reads what `redline bench -o json` or llama-bench writes (a list of tests, or one test per line), and the files
of compare_peer.py. Tests are matched by model, device, threads, prompt, generated tokens and depth. A change
that the spread of the samples explains is marked as noise.

examples:
  redline bench -m model.gguf -o json > before.json
  bench_diff.py before.json after.json
  bench_diff.py --markdown tools/bench/MACHINE/2026-11-01-speed.json tools/bench/MACHINE/2026-11-20-speed.json
"""

import argparse
import json
import os
import statistics
import sys


class Problem(Exception):
    """Something the user can act on; printed as one line."""


def load(path):
    """{(engine, model, device, threads, test): samples in tokens per second} of one file."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as problem:
        raise Problem(f"{path}: {problem.strerror}") from problem
    try:
        content = json.loads(text)
    except ValueError:
        content = json_lines(path, text)
    entries = content.get("runs", [content]) if isinstance(content, dict) else content
    tests = {}
    for index, entry in enumerate(entries):
        try:
            samples = entry.get("samples_ts") or [entry["avg_ts"]]
            key = (entry.get("engine", ""), os.path.basename(entry["model_filename"]),
                   entry.get("backends", ""), entry.get("n_threads", ""), test_name(entry))
        except (AttributeError, KeyError, TypeError) as problem:
            raise Problem(f"{path}: entry {index} is not a bench result: {problem!r}") from problem
        tests.setdefault(key, []).extend(samples)
    if not tests:
        raise Problem(f"{path}: no bench results")
    return tests


def json_lines(path, text):
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as problem:
        raise Problem(f"{path}: neither JSON nor one JSON object per line: {problem}") from problem


def test_name(entry):
    parts = [f"pp{entry['n_prompt']}"] if entry["n_prompt"] else []
    parts += [f"tg{entry['n_gen']}"] if entry["n_gen"] else []
    return "+".join(parts) + (f" at {entry['n_depth']}" if entry.get("n_depth") else "")


def spread(samples):
    return statistics.stdev(samples) if len(samples) > 1 else 0.0


def compare(before, after):
    """(labels, before, after, change in percent or text) per test, in the order of the second file."""
    rows = []
    for key, samples in after.items():
        old = before.get(key)
        if old is None:
            rows.append((key, "", figure(samples), "new"))
            continue
        first, second = statistics.median(old), statistics.median(samples)
        change = f"{100 * (second / first - 1):+.1f} %" if first else ""
        # A difference of less than twice its deviation.
        noise = 2 * (spread(old) ** 2 / len(old) + spread(samples) ** 2 / len(samples)) ** 0.5
        change += " (noise)" if abs(second - first) < noise else ""
        rows.append((key, figure(old), figure(samples), change))
    rows += [(key, figure(samples), "", "gone") for key, samples in before.items() if key not in after]
    return rows


def figure(samples):
    return f"{statistics.median(samples):.1f} ±{spread(samples):.1f}"


def columns(rows):
    """The table's cells. Labels that are the same in every row are left out and returned as a heading."""
    names = ("engine", "model", "device", "threads", "test")
    varies = [len({row[0][i] for row in rows}) > 1 or name == "test" for i, name in enumerate(names)]
    heading = ", ".join(f"{rows[0][0][i]} {names[i]}" if names[i] == "threads" else str(rows[0][0][i])
                        for i in range(len(names)) if not varies[i] and rows[0][0][i] != "")
    kept = [i for i in range(len(names)) if varies[i]]
    cells = [[names[i] for i in kept] + ["before", "after", "change"]]
    cells += [[str(row[0][i]) for i in kept] + list(row[1:]) for row in rows]
    return heading, cells, len(kept)


def show(rows, markdown):
    heading, cells, labels = columns(rows)
    if markdown:
        print(f"{heading}, tok/s, median ±deviation\n")
        print("| " + " | ".join(cells[0]) + " |")
        print("|" + "---|" * labels + "---:|" * 3)
        for row in cells[1:]:
            print("| " + " | ".join(row) + " |")
        return
    print(f"{heading}, tok/s, median ±deviation")
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        padded = [cell.ljust(width) if i < labels else cell.rjust(width)
                  for i, (cell, width) in enumerate(zip(row, widths))]
        print("  " + "  ".join(padded).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--markdown", action="store_true", help="a markdown table, not a plain one")
    options = parser.parse_args()
    try:
        show(compare(load(options.before), load(options.after)), options.markdown)
    except Problem as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
