#!/usr/bin/env python3
"""Predicted and measured tokens per second of models on a device and split between it and the CPU.

For each model and split `redline bench` measures a prompt and a text. What the text should reach is predicted
by bench in the same run, from the pace of each device's kernels; `ratio` is measured / predicted. With --peer
llama-bench measures the same split. A split is a number of layers on the GPU, a share of them (1/2), `all`, or
`cpu-moe` (all layers there, all experts on the CPU). With 0 and --device prompts are computed on that GPU, as llama.cpp
does.

--redline is the program (default: redline, looked up in PATH). --peer says where llama.cpp's tools are: a
folder that contains llama-bench, or a wrapper program whose first argument is the tool's name. --seconds
bounds the whole run: what does not fit is left out and named. Standard output has the table, as Markdown.

examples:
  predictions.py 8b-q4_k_m.gguf 30b-a3b-q4_k_m.gguf --peer ~/llama.cpp/build/bin --seconds 240
  predictions.py model.gguf --splits all 24 1/2 0 -p 1024 -n 32 --device hip --json result.json
"""

import argparse
import json
import sys
import time
from fractions import Fraction

from peer_programs import Problem, Programs, run

COLUMNS = ("model", "split", "device", "plan tok/s", "tok/s", "ratio", "peer tok/s", "x peer", "prompt tok/s",
           "peer prompt", "x peer", "check s")


def facts(programs, model):
    """(layers, whether there are experts) of a file."""
    info = json.loads(run(programs.redline("info", "-m", model, "--json")))
    shape = info.get("shape") or info.get("model", {}).get("shape") or {}
    return int(shape["layers"]), bool(shape.get("experts"))


def split_options(split, layers, experts):
    """The options of both programs for a number of layers; None: the model has no such split."""
    if split == "cpu-moe":
        return ["-ngl", layers, "--n-cpu-moe", layers] if experts else None
    if split == "all":
        return ["-ngl", layers]
    return ["-ngl", int(Fraction(split) * layers) if "/" in split else int(split)]


def measured(command):
    """The entries of a prompt and of a text, of one run of a bench program that writes JSON."""
    entries = json.loads(run(command))
    prompt = next((entry for entry in entries if entry["n_prompt"] and not entry["n_gen"]), None)
    text = next((entry for entry in entries if entry["n_gen"] and not entry["n_prompt"]), None)
    return prompt, text


def peer_layers(options):
    """llama.cpp counts the output as a layer: all of them are one more."""
    at = options.index("-ngl") + 1
    return options[:at] + [options[at] + (1 if options[at] > 0 else 0)] + options[at + 1:]


def number(value, digits=1):
    return "" if value is None else f"{value:.{digits}f}"


def ratio(one, other):
    return one / other if one and other else None


def measure(programs, arguments, model, split, options):
    """A row of the table, by name."""
    common = ["-m", model, "-p", arguments.prompt, "-n", arguments.generate, "-r", arguments.repetitions, "-o", "json"]
    device = ["--device", arguments.device] if arguments.device else []
    # Like llama.cpp, where there is a GPU: it computes prompts, though no layer is there.
    device += ["--op-offload"] if device and options[1] == 0 else []
    prompt, text = measured(programs.redline("bench", *common, *options, *device))
    row = {
        "model": text["model_type"],
        "split": split,
        "device": text["device"],
        "measured": text["avg_ts"],
        "predicted": text["expected_ts"] or None,
        "prompt": prompt["avg_ts"],
        "kernels_checked": text["kernels_checked"],
        "kernel_check_seconds": text["kernel_check_seconds"],
    }
    if arguments.peer:
        try:
            peer_prompt, peer_text = measured(programs.peer("llama-bench", *common, *peer_layers(options)))
            row.update(peer=peer_text["avg_ts"], peer_prompt=peer_prompt["avg_ts"])
        except Problem as problem:
            print(f"the peer at {split}: {problem}", file=sys.stderr)
    return row


def line(row):
    cells = (row["model"], row["split"], row["device"], number(row["predicted"]), number(row["measured"]),
             number(ratio(row["measured"], row["predicted"]), 2), number(row.get("peer")),
             number(ratio(row["measured"], row.get("peer")), 2), number(row["prompt"]),
             number(row.get("peer_prompt")), number(ratio(row["prompt"], row.get("peer_prompt")), 2),
             number(row["kernel_check_seconds"], 2) if row["kernels_checked"] else "")
    return "| " + " | ".join(cells) + " |"


def measure_all(programs, arguments):
    begin, longest, rows = time.monotonic(), 0.0, []
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * 3 + "---:|" * (len(COLUMNS) - 3), flush=True)
    for model in arguments.models:
        layers, experts = facts(programs, model)
        for split in arguments.splits:
            options = split_options(split, layers, experts)
            if options is None:
                continue
            start = time.monotonic()
            if start - begin + longest > arguments.seconds:
                print(f"left out, {arguments.seconds:.0f} s are over: {model} at {split}", file=sys.stderr)
                continue
            rows.append(measure(programs, arguments, model, split, options))
            print(line(rows[-1]), flush=True)
            longest = max(longest, time.monotonic() - start)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="GGUF")
    parser.add_argument("--splits", nargs="+", default=["all", "3/4", "1/2", "1/4", "0", "cpu-moe"],
                        help="default: all 3/4 1/2 1/4 0 cpu-moe, the last of mixtures")
    parser.add_argument("-p", "--prompt", type=int, default=512, help="tokens of the prompt (default: 512)")
    parser.add_argument("-n", "--generate", type=int, default=32, help="tokens of the text (default: 32)")
    parser.add_argument("-r", "--repetitions", type=int, default=2, help="of each (default: 2)")
    parser.add_argument("--device", help="as redline takes it (default: the best)")
    parser.add_argument("--seconds", type=float, default=240.0, help="for all of it (default: 240)")
    parser.add_argument("--redline", default="redline")
    parser.add_argument("--peer")
    parser.add_argument("--json", metavar="FILE", help="write the rows there, too")
    arguments = parser.parse_args()
    try:
        rows = measure_all(Programs(arguments.redline, arguments.peer), arguments)
    except (Problem, KeyError, ValueError) as problem:
        sys.exit(f"predictions: {problem!r}" if not isinstance(problem, Problem) else f"predictions: {problem}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
    near = [ratio(row["measured"], row["predicted"]) for row in rows if row["predicted"]]
    if near:
        within = sum(abs(r - 1.0) <= 0.25 for r in near)
        print(f"\n{within} of {len(near)} predictions are within 25 % of what was measured", flush=True)


if __name__ == "__main__":
    main()
