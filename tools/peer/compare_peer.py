#!/usr/bin/env python3
"""Compare redline with llama.cpp on the same files: speed, best tokens, perplexity, greedy text.

--redline is the program (default: redline, looked up in PATH). --peer says where llama.cpp's tools are: a
folder that contains llama-bench and its siblings, or a wrapper program whose first argument is the tool's
name; without it they are looked up in PATH. speed and top1 need the Python packages numpy and gguf.

examples:
  compare_peer.py speed -m tinyllama-q4_k_m.gguf -m tinyllama-q8_0.gguf -t 2
  compare_peer.py --redline build/release/redline --peer ~/llama.cpp/build/bin top1
  compare_peer.py top1 --only qwen3 phi4-mini-short --types Q4_K Q6_K
  compare_peer.py perplexity -m model.gguf -f text.txt -c 512
  compare_peer.py architectures > tools/bench/DATE-architectures.md
  compare_peer.py greedy -m model.gguf -p "Once upon a time" -n 64
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from peer_architectures import MIXES, architectures
from peer_programs import PeerServer, Problem, Programs, run
from peer_top1 import TYPES, top1

TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def bench(programs, side, model, options):
    """The entries, one per test, that one run of a side's bench command writes as JSON."""
    common = ["-m", model, "-p", options.prompt, "-n", options.generate, "-r", options.repetitions]
    for flag, value in (("-t", options.threads), ("-d", options.depth)):
        common += [flag, value] if value else []
    name = {"redline": "bench", "peer": "llama-bench"}[side]
    command = getattr(programs, side)(name, *common, "-o", "json")
    text = run(command)
    try:
        entries = json.loads(text)
        for entry in entries:
            entry["samples_ts"], entry["n_prompt"], entry["n_gen"]
        return entries
    except (ValueError, KeyError, TypeError) as problem:
        raise Problem(f"{' '.join(command)}: its JSON is not that of a bench run: {problem}") from problem


def test_name(entry):
    parts = [f"pp{entry['n_prompt']}"] if entry["n_prompt"] else []
    parts += [f"tg{entry['n_gen']}"] if entry["n_gen"] else []
    return "+".join(parts) + (f" at {entry['n_depth']}" if entry.get("n_depth") else "")


def one_token(programs, side, model, threads):
    """(seconds, peak bytes) of a whole process that loads the model and generates one token."""
    common = ["-m", model, "-p", "Hello", "-n", 1, "--temp", 0] + (["-t", threads] if threads else [])
    if side == "redline":
        command = programs.redline("run", *common)
    else:
        command = programs.peer("llama-completion", *common, "-no-cnv", "--no-warmup")
    start = time.monotonic()
    with open(os.devnull, "r+b") as null, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=null, stdout=null, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            end = errors.read().decode(errors="replace").strip().splitlines()[-3:]
            raise Problem(f"{' '.join(command)}\n  exit status {process.returncode}: " + "\n  ".join(end))
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, usage.ru_maxrss * unit


def bytes_per_token(model):
    """Bytes of weights read per generated token: all but unused experts and other tokens' embeddings."""
    import gguf

    reader = gguf.GGUFReader(model)
    arch = reader.fields["general.architecture"].contents()
    counts = [reader.fields.get(f"{arch}.{key}") for key in ("expert_count", "expert_used_count")]
    share = counts[1].contents() / counts[0].contents() if all(counts) and counts[0].contents() else 1
    names = {tensor.name for tensor in reader.tensors}
    total = 0
    for tensor in reader.tensors:
        if tensor.name == "token_embd.weight" and "output.weight" in names:
            continue
        total += int(tensor.n_bytes) * (share if "_exps." in tensor.name else 1)
    return total


class Bandwidth:
    """The read bandwidth by tools/micro/read_bandwidth.cpp, measured before and after each side's turn: on a shared
    machine it changes from second to second."""

    def __init__(self, options):
        self.fixed, self.threads, self.seen, self.program = options.bandwidth, options.threads, [], None
        compiler = shutil.which("c++") or shutil.which("clang++")
        source = os.path.join(TOOLS, "micro", "read_bandwidth.cpp")
        if self.fixed or not compiler or not os.path.exists(source):
            return
        self.folder = tempfile.TemporaryDirectory()
        program = os.path.join(self.folder.name, "read_bandwidth")
        try:
            run([compiler, "-O3", "-march=native", "-std=c++20", "-pthread", source, "-o", program])
            self.program = program
        except Problem as problem:
            print(f"bandwidth not measured: {problem}", file=sys.stderr)

    def now(self):
        """GB/s, or None where it cannot be measured."""
        if not self.program:
            return self.fixed
        self.seen.append(float(run([self.program, *([str(self.threads)] if self.threads else [])])))
        return self.seen[-1]

    def median(self):
        return statistics.median(self.seen) if self.seen else self.fixed


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def interleaved(programs, model, options, bandwidth):
    """Alternates the two sides. Returns {side: {test: [[tokens per second] of a round]}}, one entry for each
    side and test, {side: [(seconds, bytes)]} of the one-token runs and {side: [GB/s around a round's turn]}."""
    speeds, firsts, starts, around = {}, [], {}, {}
    for round_number in range(options.rounds):
        for side in ("redline", "peer"):
            print(f"  round {round_number + 1} of {options.rounds}: {side}", file=sys.stderr)
            starts.setdefault(side, []).append(one_token(programs, side, model, options.threads))
            before = bandwidth.now()
            for entry in bench(programs, side, model, options):
                samples = speeds.setdefault(side, {}).setdefault(test_name(entry), [])
                if not samples:
                    firsts.append({**entry, "engine": side, "test": test_name(entry)})
                samples.append(list(entry["samples_ts"]))
            around.setdefault(side, []).append(before and (before + bandwidth.now()) / 2)
    for entry in firsts:
        rounds = speeds[entry["engine"]][entry["test"]]
        flat = [sample for samples in rounds for sample in samples]
        entry.update(rounds_ts=rounds, samples_ts=flat, avg_ts=statistics.mean(flat), stddev_ts=spread(flat))
    return speeds, firsts, starts, around


def spread(samples):
    return statistics.stdev(samples) if len(samples) > 1 else 0.0


def speed_rows(model, speeds, starts, around):
    """The rows of the speed table and the row of the start table for one model."""
    read = bytes_per_token(model)
    file = os.path.basename(model)
    rows = []
    for test, ours in speeds["redline"].items():
        theirs = speeds["peer"].get(test)
        if not theirs:
            raise Problem(f"the peer did not report {test}")
        flat = [[sample for samples in side for sample in samples] for side in (ours, theirs)]
        medians, best = [statistics.median(side) for side in flat], [max(side) for side in flat]
        ratios = [statistics.median(a) / statistics.median(b) for a, b in zip(ours, theirs)]
        share = ""
        if test.startswith("tg") and " at " not in test and all(around["redline"] + around["peer"]):
            shares = [statistics.median(statistics.median(samples) * read / 1e9 / gbs
                                        for samples, gbs in zip(side, around[name]))
                      for side, name in ((ours, "redline"), (theirs, "peer"))]
            share = " / ".join(f"{100 * each:.0f} %" for each in shares)
        figures = [f"{median:.1f} ({top:.1f})" for median, top in zip(medians, best)]
        rows.append(f"| {file} | {test} | {figures[0]} | {figures[1]} | "
                    f"{medians[0] / medians[1]:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {share} |")
    seconds = [statistics.median(run[0] for run in starts[side]) for side in ("redline", "peer")]
    peaks = [max(run[1] for run in starts[side]) / 1e6 for side in ("redline", "peer")]
    start = (f"| {file} | {os.path.getsize(model) / 1e6:.0f} | {seconds[0]:.2f} / {seconds[1]:.2f} | "
             f"{peaks[0]:.0f} / {peaks[1]:.0f} |")
    return rows, start


def speed(programs, options):
    for model in options.model:
        if not os.path.exists(model):
            raise Problem(f"{model}: no such file")
    programs.redline(), programs.peer("llama-bench")
    threads, load = options.threads or os.cpu_count(), os.getloadavg()[0]
    bandwidth = Bandwidth(options)
    record = {"date": datetime.datetime.now().isoformat(timespec="seconds"), "cpu": cpu_name(),
              "threads": threads, "load_before": load, "runs": [], "starts": []}
    rows, start_rows = [], []
    for model in options.model:
        print(model, file=sys.stderr)
        speeds, firsts, starts, around = interleaved(programs, model, options, bandwidth)
        record["runs"] += firsts
        record["starts"] += [{"engine": side, "model_filename": model, "seconds": [run[0] for run in runs],
                              "peak_bytes": [run[1] for run in runs], "bandwidth_gbs": around[side]}
                             for side, runs in starts.items()]
        model_rows, start_row = speed_rows(model, speeds, starts, around)
        rows += model_rows
        start_rows.append(start_row)
    record["bandwidth_gbs"] = bandwidth.median()
    record["load_after"] = os.getloadavg()[0]
    save(speed_table(record, rows, start_rows, options), record, options)


def speed_table(record, rows, start_rows, options):
    shown = f"{record['bandwidth_gbs']:.1f} GB/s (median; shares are of what was measured around each round)" if record["bandwidth_gbs"] else "not measured"
    # These runs raise the load to the number of threads by the end; before, only others can have.
    busy = record["load_before"] > 0.5 * record["threads"]
    peer = next((f"{run['build_commit']} {run['build_number']}" for run in record["runs"]
                 if run["engine"] == "peer" and "build_number" in run), "unknown build")
    return "\n".join([
        f"{record['cpu']}, {record['threads']} threads, {record['date'][:10]}; llama.cpp {peer}; "
        f"read bandwidth {shown}; load average {record['load_before']:.1f} before, "
        f"{record['load_after']:.1f} after. "
        f"{options.rounds} rounds, redline and peer in turn, {options.repetitions} samples each."
        + (" **Other work was running: not to be quoted.**" if busy else ""), "",
        "| model | test | redline tok/s: median (best) | peer | ratio of medians (range of rounds) | "
        "share of bandwidth, redline / peer |",
        "|---|---|---:|---:|---:|---:|", *rows, "",
        "| model | file MB | load and one token, s: redline / peer | peak memory, MB: redline / peer |",
        "|---|---:|---:|---:|", *start_rows, ""])


def save(table, record, options):
    print(table)
    if options.no_save:
        return
    machine = options.machine or f"{record['cpu']} {os.cpu_count()}"
    folder = os.path.join(options.results, re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-"))
    os.makedirs(folder, exist_ok=True)
    stem = os.path.join(folder, f"{record['date'][:10]}-{options.label}")
    with open(stem + ".json", "w", encoding="utf-8") as out:
        json.dump(record, out, indent=1)
        out.write("\n")
    with open(stem + ".md", "w", encoding="utf-8") as out:
        out.write(table)
    print(f"wrote {stem}.json and .md", file=sys.stderr)


def chunk_figures(text):
    return [float(value) for value in re.findall(r"\[\d+\]([0-9.]+)", text)]


def perplexity(programs, options):
    common = ["-m", options.model, "-f", options.file, "-c", options.context]
    threads = ["-t", options.threads] if options.threads else []
    limit = ["--chunks", options.chunks] if options.chunks else []
    # llama-perplexity's logger can lose its last lines when it exits: take the longest of three outputs.
    command = programs.peer("llama-perplexity", *common, *threads, *limit)
    theirs = max((chunk_figures(run(command)) for _ in range(3)), key=len)
    ours = chunk_figures(run(programs.redline("eval", *common, *threads)))
    if not ours or not theirs:
        silent = "redline eval" if theirs else "llama-perplexity"
        raise Problem(f"no [chunk]value figures in the output of {silent}")
    print("| chunks | redline | peer | relative difference |\n|---:|---:|---:|---:|")
    pairs = list(zip(ours, theirs))
    for index, (a, b) in enumerate(pairs):
        if index in (0, len(pairs) - 1) or (index + 1) % max(1, len(pairs) // 8) == 0:
            print(f"| {index + 1} | {a:.4f} | {b:.4f} | {a / b - 1:+.2e} |")
    if len(ours) < len(theirs) and not options.chunks:
        raise Problem(f"redline scored {len(ours)} chunks, the peer {len(theirs)}")
    last = abs(pairs[-1][0] / pairs[-1][1] - 1)
    if last > options.tolerance:
        raise Problem(f"the perplexities differ by {last:.2e}, more than --tolerance {options.tolerance}")


def greedy(programs, options):
    threads = ["-t", options.threads] if options.threads else []
    command = programs.redline("run", "-m", options.model, "-p", options.prompt, "-n", options.generate,
                               "--temp", 0, "--json", *threads)
    ours = json.loads(run(command))["token_ids"]
    with PeerServer(programs, options.model, options.threads) as server:
        theirs = server.complete(options.prompt, options.generate)
    same = 0
    while same < min(len(ours), len(theirs)) and ours[same] == theirs[same][0]:
        same += 1
    if same == len(theirs):
        end = "" if same == len(ours) else "end"
    else:
        end = f"{theirs[same][1]:.3f}"
    print(f"| prompt | tokens redline / peer | equal from the start | peer's lead where they part |\n"
          f"|---|---:|---:|---:|\n| {options.prompt!r} | {len(ours)} / {len(theirs)} | {same} | {end} |")
    if end == "end" or end and theirs[same][1] > options.gap:
        raise Problem(f"different after {same} tokens: redline {ours[same:same + 4]}, "
                      f"peer {[token for token, _ in theirs[same:same + 4]]}")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redline", default="redline", metavar="PROGRAM")
    parser.add_argument("--peer", metavar="FOLDER_OR_WRAPPER")
    commands = parser.add_subparsers(dest="command", required=True)
    part = commands.add_parser("speed", help="both bench commands in turn, start time, peak memory")
    part.add_argument("-m", "--model", action="append", required=True, help="may be repeated")
    part.add_argument("-p", "--prompt", type=int, default=512)
    part.add_argument("-n", "--generate", type=int, default=64)
    part.add_argument("-d", "--depth", type=int, default=0)
    part.add_argument("-r", "--repetitions", type=int, default=2, help="samples in each round")
    part.add_argument("-t", "--threads", type=int)
    part.add_argument("--rounds", type=int, default=4)
    part.add_argument("--bandwidth", type=float, metavar="GB/S", help="instead of measuring it")
    part.add_argument("--results", default=os.path.join(TOOLS, "bench"), metavar="FOLDER")
    part.add_argument("--machine", help="name of the folder for results; default: from the processor's name")
    part.add_argument("--label", default="speed", help="end of the results' file name")
    part.add_argument("--no-save", action="store_true", help="only print the table")
    part = commands.add_parser("top1", help="best token at every position, tiny models of every type")
    part.add_argument("--only", nargs="+", metavar="MODEL", help="tiny models; default all")
    part.add_argument("--types", nargs="+", choices=TYPES, default=TYPES, metavar="TYPE",
                      help=" ".join(TYPES))
    part.add_argument("-f", "--file", help="text; default: one made up here")
    part.add_argument("-c", "--context", type=int, default=128, help="tokens in a chunk; half are scored")
    part.add_argument("--chunks", type=int, default=3)
    part.add_argument("--gap", type=float, default=0.1,
                      help="allowed where they differ, in log-probability")
    part.add_argument("--work", metavar="FOLDER", help="for temporary files, about 100 MB")
    part = commands.add_parser("perplexity", help="same text in the same chunks")
    part.add_argument("-m", "--model", required=True)
    part.add_argument("-f", "--file", required=True)
    part.add_argument("-c", "--context", type=int, default=512)
    part.add_argument("-t", "--threads", type=int)
    part.add_argument("--chunks", type=int, help="let the peer stop after so many")
    part.add_argument("--tolerance", type=float, default=0.01, help="allowed relative difference")
    part = commands.add_parser("architectures", help="perplexity and best tokens of every tiny golden model")
    part.add_argument("--only", nargs="+", metavar="MODEL", help="golden models; default all")
    part.add_argument("--mixes", nargs="+", default=MIXES, metavar="MIX", help=" ".join(MIXES))
    part.add_argument("--models", default=os.path.join(TOOLS, "..", "tests", "golden", "models"), metavar="FOLDER")
    part.add_argument("-f", "--file", help="text; default: one made up here")
    part.add_argument("-c", "--context", type=int, default=64, help="tokens in a chunk; half are scored")
    part.add_argument("-t", "--threads", type=int, default=1)
    part.add_argument("--chunks", type=int, default=2)
    part.add_argument("--work", metavar="FOLDER", help="for temporary files")
    part = commands.add_parser("greedy", help="the same prompt, always the best token")
    part.add_argument("-m", "--model", required=True)
    part.add_argument("-p", "--prompt", required=True)
    part.add_argument("-n", "--generate", type=int, default=64)
    part.add_argument("-t", "--threads", type=int)
    part.add_argument("--gap", type=float, default=0.1, 
                      help="allowed lead of the peer's token where they part")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    commands = {"speed": speed, "top1": top1, "perplexity": perplexity, "greedy": greedy,
                "architectures": architectures}
    try:
        commands[options.command](Programs(options.redline, options.peer), options)
    except Problem as problem:
        sys.exit(str(problem))
    except (OSError, ImportError) as problem:
        sys.exit(f"{options.command}: {problem}")


if __name__ == "__main__":
    main()
