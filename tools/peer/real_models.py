#!/usr/bin/env python3
"""Real trained models on the devices of this machine: perplexity, greedy text, conversations, calls of functions.

Random weights prove neither text nor outliers. This runs three small models as their publishers ship them:
SmolLM2-135M-Instruct Q4_1, Gemma 3 270M Q4_K_M and Qwen2.5-Coder-1.5B-Instruct Q4_K_M. Those that are in the folder
--models are tried, the others are named as skipped. What is expected stands in tests/golden/real/expected.json: the
perplexity with the file's weights as floats, which --floats measures anew with redline and, where --peer names
llama.cpp's tools, with llama.cpp, and texts of which the beginning must be the same on every device. They end before
the first token whose likeliest rival is less than 0.15 nats behind: kernels that are right may differ there.

Devices: those of `redline devices`. A driver that computes on the CPU and the double of HIP's runtime (LD_LIBRARY_PATH)
are slow: they try the smallest model alone, read a shorter text and answer less. The exit status is 1 when something
differs.

examples:
  real_models.py --build build/ci --models ~/models
  real_models.py --redline build/release/redline --device vulkan:0 -o table.md
  real_models.py --floats --peer ~/llama.cpp/build/bin
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from peer_programs import Problem, Programs, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(ROOT, "tests/golden/real")
# The perplexity of one device may differ so much from that with the weights as floats: kernels round activations to
# 8 bits, which is worth up to 1.5 % on these texts.
BOUND = 0.02
SHORT_BOUND = 0.05  # of 32 tokens, on which the CPU's kernels are 2.1 % off
SHORT = 64  # tokens that a slow device reads
SMALL = 128 << 20  # bytes of a file that one is tried with, at most


class Tried:
    """One model on one device."""

    def __init__(self, options, model, path, device, slow):
        self.options, self.model, self.path, self.device, self.slow = options, model, path, device, slow
        self.problems = []
        self.perplexity = self.reference = None

    def redline(self, command, *arguments, text=None):
        line = [self.options.redline, command, "-m", self.path, "--device", self.device, *map(str, arguments)]
        done = subprocess.run(line, input=text, capture_output=True, text=True, timeout=self.options.timeout)
        if done.returncode != 0:
            end = done.stderr.strip().splitlines()[-1:] or ["no message"]
            raise Problem(f"{command} ended with {done.returncode}: {end[0]}")
        return done.stdout

    def check_perplexity(self):
        length = "short" if self.slow else "whole"
        self.reference = self.model["perplexity"][length]["floats"]
        extra = ["-c", SHORT // 2] if self.slow else []
        with tempfile.TemporaryDirectory() as folder:
            text = beginning(self, folder) if self.slow else ["-f", os.path.join(GOLDEN, "text.txt")]
            self.perplexity = json.loads(self.redline("eval", *text, *extra, "--json"))["perplexity"]
        off = self.perplexity / self.reference - 1.0
        if not abs(off) <= (SHORT_BOUND if self.slow else BOUND):
            self.problems.append(f"perplexity {self.perplexity:.3f} is {off:+.1%} off {self.reference:.3f}")

    def check_greedy(self):
        for each in self.model["greedy"][: 1 if self.slow else None]:
            tokens = 8 if self.slow else 24
            got = self.redline("run", "--raw", "--temp", "0", "-n", tokens, "-p", each["prompt"])
            want = each["text"]
            if not (got and (got.startswith(want) or want.startswith(got))):
                self.problems.append(f"{each['prompt']!r} goes on with {got!r}, not {want!r}")

    def check_chat(self):
        for each in self.model.get("chats", []):
            turns = "\n".join(each["turns"]) + "\n"
            got = self.redline("chat", "--temp", "0", "-n", "60", text=turns)
            if not re.search(each["answer"], got):
                self.problems.append(f"{each['turns']!r} is answered with {got!r}, without {each['answer']!r}")

    def check_calls(self):
        for each in self.model.get("calls", []):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as tools:
                json.dump(each["tools"], tools)
                tools.flush()
                got = self.redline("run", "--temp", "0", "-n", "100", "--tools", tools.name, "--json", "-p", each["prompt"])
            calls = [[c["function"]["name"], json.loads(c["function"]["arguments"])] for c in json.loads(got)["tool_calls"]]
            if calls != each["calls"]:
                self.problems.append(f"{each['prompt']!r} calls {calls!r}, not {each['calls']!r}")

    def run(self):
        checks = [self.check_perplexity, self.check_greedy]
        if not self.slow:
            checks += [self.check_chat, self.check_calls]
        for check in checks:
            try:
                check()
            except (Problem, subprocess.TimeoutExpired, ValueError, KeyError) as problem:
                self.problems.append(f"{check.__name__.removeprefix('check_')}: {problem}")


def beginning(tried, folder):
    """The first tokens of the text, as a file of ids."""
    tokens = run([tried.options.redline, "tokenize", "-m", tried.path, "-f", os.path.join(GOLDEN, "text.txt"), "--ids"]).split()
    path = os.path.join(folder, "ids.txt")
    with open(path, "w", encoding="utf8") as out:
        out.write(" ".join(tokens[:SHORT]))
    return ["--ids", path]


def devices(options):
    """Pairs of a device's id and whether it is slow."""
    found = []
    for backend in json.loads(run([options.redline, "devices", "--json"]))["backends"]:
        for device in backend["devices"]:
            slow = device["facts"].get("type") == "Vulkan on the CPU" or "double" in device["name"].lower()
            if device["usable"] and (not options.device or device["id"] in options.device):
                found.append((device["id"], slow, device["name"]))
    return found


def measure_floats(options, expected):
    """The expected values, with perplexities measured anew: the file's weights as floats, by redline's CPU and by
    llama.cpp."""
    programs = Programs(options.redline, options.peer)
    for name, model in expected.items():
        path = os.path.join(options.models, name)
        if not os.path.exists(path):
            continue
        with tempfile.TemporaryDirectory() as folder:
            floats = os.path.join(folder, "floats.gguf")
            run([options.redline, "quantize", "--allow-requantize", path, floats, "F32"])
            for length, slow in [("whole", False)] + [("short", True)] * (os.path.getsize(path) <= SMALL):
                tried = Tried(options, {"perplexity": {length: {"floats": 1.0}}}, floats, "cpu", slow)
                tried.check_perplexity()
                model["perplexity"].setdefault(length, {})["floats"] = round(tried.perplexity, 4)
            if options.peer:
                for key, file in (("llama.cpp", path), ("llama.cpp, floats", floats)):
                    model["perplexity"]["whole"][key] = peer_perplexity(programs, file)
        print(name, json.dumps(model["perplexity"]), flush=True)
    return expected


def peer_perplexity(programs, path):
    command = programs.peer("llama-perplexity", "-m", path, "-f", os.path.join(GOLDEN, "text.txt"), "-c", "512", "-ngl", "0")
    done = subprocess.run(command, capture_output=True, text=True)
    value = re.search(r"PPL = ([\d.]+)", done.stdout + done.stderr)
    if not value:
        raise Problem(f"llama-perplexity gave no value for {path}")
    return float(value[1])


def table(rows, names):
    lines = ["| model | device | perplexity | with floats | difference | llama.cpp | greedy, chat, calls |",
             "|---|---|---:|---:|---:|---:|---|"]
    for tried in rows:
        peer = "" if tried.slow else tried.model["perplexity"]["whole"].get("llama.cpp", "")
        value = f"{tried.perplexity:.3f}" if tried.perplexity else "–"
        off = f"{tried.perplexity / tried.reference - 1.0:+.2%}" if tried.perplexity else "–"
        lines.append(f"| {os.path.basename(tried.path)} | {names[tried.device]}{' (short)' if tried.slow else ''} | {value} | "
                     f"{tried.reference:.3f} | {off} | {peer} | {'; '.join(tried.problems) or 'as expected'} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="a build folder, whose program is tried")
    parser.add_argument("--redline", default="redline", help="the program (default: redline in PATH)")
    parser.add_argument("--models", default=os.environ.get("RL_REAL_MODELS", "/opt/real"), help="the folder with the files")
    parser.add_argument("--device", action="append", help="an id of `redline devices`; may be given again (default: all)")
    parser.add_argument("--only", nargs="*", default=[], help="parts of file names: only these models are tried")
    parser.add_argument("--floats", action="store_true", help="measure what is expected of perplexities anew, and write it")
    parser.add_argument("--peer", help="llama.cpp's tools: a folder, or a program that takes a tool's name")
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one command may take")
    parser.add_argument("-o", "--output", help="write the table here, too")
    options = parser.parse_args()
    if options.build:
        options.redline = os.path.join(options.build, "redline")
    file = os.path.join(GOLDEN, "expected.json")
    with open(file, encoding="utf8") as text:
        expected = json.load(text)
    if options.floats:
        expected = measure_floats(options, expected)
        with open(file, "w", encoding="utf8") as out:
            out.write(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
        return 0
    found, rows = devices(options), []
    for name, model in expected.items():
        path = os.path.join(options.models, name)
        if options.only and not any(part in name for part in options.only):
            continue
        if not os.path.exists(path):
            print(f"real models: {name} skipped: it is not in {options.models}", flush=True)
            continue
        for device, slow, _ in found:
            if slow and os.path.getsize(path) > SMALL:
                print(f"real models: {name} skipped on {device}, which is slow", flush=True)
                continue
            start = time.monotonic()
            tried = Tried(options, model, path, device, slow)
            tried.run()
            rows.append(tried)
            print(f"{name} on {device}: {'; '.join(tried.problems) or 'passed'} ({time.monotonic() - start:.0f} s)", flush=True)
    names = {device: f"{device} ({name})" for device, _, name in found}
    text = f"{run([options.redline, '--version']).splitlines()[0]}, {datetime.date.today()}\n\n" + table(rows, names)
    if options.output:
        with open(options.output, "w", encoding="utf8") as out:
            out.write(text)
    failed = sum(bool(tried.problems) for tried in rows)
    print(f"real models: {len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        sys.exit(f"real_models.py: {problem}")
