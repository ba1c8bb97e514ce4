#!/usr/bin/env python3
"""Measure speculation where text comes twice: a model rewrites pieces of source code with a small change.

Starts a server for each side and each kind of speculation in turn, asks for the same edits greedily, one at a time,
and compares tokens per second with those of the same server without speculation. "kept" is the share of the guessed
tokens that the model agreed with. "same" counts the answers that are byte for byte those without speculation.

example:
  edits.py -m qwen2.5-coder-1.5b-q4_k_m.gguf --peer ~/llama.cpp/build/bin --json 2026-11-30-edits.json
"""

import argparse
import json
import os
import statistics
import sys
import time

from compare_peer import cpu_name
from peer_programs import LocalServer, Problem, Programs, version_line

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
# (file, first line, last line, what is asked)
EDITS = [
    ("tools/peer/peer_programs.py", 15, 60, "Rename the class Problem to Failure everywhere."),
    ("tools/peer/cpu_load.py", 31, 57, "Rename the variable `busy` to `processes` everywhere."),
    ("src/places/find_arch.cpp", 1, 60, "Make each `std::string_view` parameter a `const std::string&`."),
    ("tools/peer/cpu_load.py", 108, 135, "Add a short docstring to each function that has none."),
]
KINDS = {"redline": ["none", "ngram-simple", "auto"], "llama.cpp": ["none", "ngram-mod", "ngram-simple"]}


def question(file, first, last, wish):
    with open(os.path.join(ROOT, file), encoding="utf-8") as source:
        text = "".join(source.readlines()[first - 1:last])
    return f"{wish} Answer with the whole code and nothing else.\n\n```\n{text}```"


def answer(server, text, tokens):
    """(the answer, tokens per second, guessed tokens, those that were kept)"""
    said = server.ask("/v1/chat/completions",
                      {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": tokens, "seed": 1,
                       "repeat_penalty": 1.0, "cache_prompt": False})
    timings = said["timings"]
    return (said["choices"][0]["message"]["content"], timings["predicted_per_second"], timings.get("draft_n", 0),
            timings.get("draft_n_accepted", 0))


def kinds_of(options):
    """For each program the kinds of speculation that are measured, none first."""
    return {side: [kind for kind in kinds if kind == "none" or not options.kinds or kind in options.kinds]
            for side, kinds in KINDS.items()}


def measure(options):
    programs = Programs(options.redline, options.peer)
    record = {"cpu": cpu_name(), "date": time.strftime("%Y-%m-%d"), "model": os.path.basename(options.model),
              "versions": version_line(programs), "threads": options.threads, "runs": []}
    for side, kinds in kinds_of(options).items():
        plain = {}
        for kind in kinds:
            arguments = ["-m", options.model, "-t", options.threads, "-c", 4096, "--spec-type", kind]
            command = (programs.redline("serve", "--device", "cpu", *arguments) if side == "redline"
                       else programs.peer("llama-server", *arguments, "-np", 1))
            with LocalServer(command) as server:
                answer(server, "Say hello.", 8)
                for number, edit in enumerate(EDITS):
                    print(f"{side}, {kind}: edit {number + 1} of {len(EDITS)}", file=sys.stderr)
                    text, speed, guessed, kept = answer(server, question(*edit), options.tokens)
                    plain.setdefault(number, text)
                    record["runs"].append({"side": side, "kind": kind, "edit": number, "tokens_per_second": speed,
                                           "guessed": guessed, "kept": kept, "same": text == plain[number]})
    return record


def table(record):
    lines = [f"{record['cpu']}, {record['threads']} threads, {record['date']}, {record['model']}; {record['versions']}.", "",
             "| program | speculation | tok/s | beside none | edits apart | kept | same |", "|---|---|---:|---:|---|---:|---:|"]
    plain = {}
    for side, kinds in KINDS.items():
        for kind in kinds:
            runs = [run for run in record["runs"] if (run["side"], run["kind"]) == (side, kind)]
            if not runs:
                continue
            speeds = [run["tokens_per_second"] for run in runs]
            plain.setdefault(side, speeds)
            gains = [speed / before for speed, before in zip(speeds, plain[side])]
            guessed = sum(run["guessed"] for run in runs)
            kept = f"{sum(run['kept'] for run in runs) / guessed:.2f}" if guessed else ""
            lines.append(f"| {side} | {kind} | {statistics.harmonic_mean(speeds):.1f} | {statistics.geometric_mean(gains):.2f} | "
                         + " ".join(f"{gain:.2f}" for gain in gains)
                         + f" | {kept} | {sum(run['same'] for run in runs)} of {len(runs)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("-n", "--tokens", type=int, default=700, help="of an answer at most")
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help="of those that are compared, none apart; default: all")
    parser.add_argument("--redline", default="redline", metavar="PROGRAM")
    parser.add_argument("--peer", metavar="FOLDER_OR_WRAPPER", help="llama.cpp's tools")
    parser.add_argument("--json", metavar="FILE", help="write every figure")
    options = parser.parse_args()
    record = measure(options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(record, out, indent=1)
            out.write("\n")
    print(table(record))


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(f"edits.py: {problem}")
