#!/usr/bin/env python3
"""Compare redline with llama.cpp on the same files: speed, best tokens, perplexity, greedy text.

--redline is the program (default: redline, looked up in PATH). --peer says where llama.cpp's tools are: a
folder that contains llama-bench and its siblings, or a wrapper program whose first argument is the tool's
name; without it they are looked up in PATH. speed and top1 need the Python packages numpy and gguf.

examples:
  compare_peer.py speed -m tinyllama-q4_k_m.gguf -m tinyllama-q8_0.gguf -t 2
  compare_peer.py --redline build/redline --peer ~/llama.cpp/build/bin top1
  compare_peer.py top1 --only qwen3 phi4-mini-short --types Q4_K Q6_K
  compare_peer.py perplexity -m model.gguf -f text.txt -c 512
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
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Problem(Exception):
    """Something the user can act on; printed as one line."""


class Programs:
    """Builds the commands of both sides."""

    def __init__(self, redline, peer):
        self.redline_path = shutil.which(redline)
        self.peer_path = peer
        if peer and not os.path.exists(peer):
            raise Problem(f"--peer {peer}: no such file or folder")

    def redline(self, *arguments):
        if not self.redline_path:
            raise Problem("redline is not in PATH; say where it is with --redline")
        return [self.redline_path, *map(str, arguments)]

    def peer(self, tool, *arguments):
        if self.peer_path and os.path.isdir(self.peer_path):
            command = [os.path.join(self.peer_path, tool)]
        elif self.peer_path:
            command = [self.peer_path, tool]
        else:
            command = [tool]
        if not shutil.which(command[0]):
            raise Problem(f"{command[0]}: not found; say where llama.cpp's tools are with --peer")
        return command + [str(argument) for argument in arguments]


def run(command):
    """Standard output of a command; a Problem with the end of its errors when it does not exit with 0."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        end = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise Problem(f"{' '.join(command)}\n  exit status {done.returncode}: " + "\n  ".join(end))
    return done.stdout.decode(errors="replace")


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


def measured_bandwidth(threads):
    """GB/s read by tools/bench/read_bandwidth.cpp, or None where it cannot be built."""
    compiler = shutil.which("c++") or shutil.which("clang++")
    source = os.path.join(HERE, "bench", "read_bandwidth.cpp")
    if not compiler or not os.path.exists(source):
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "read_bandwidth")
        try:
            run([compiler, "-O3", "-march=native", "-std=c++20", "-pthread", source, "-o", program])
            return float(run([program, *([str(threads)] if threads else [])]))
        except (Problem, ValueError) as problem:
            print(f"bandwidth not measured: {problem}", file=sys.stderr)
            return None


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def interleaved(programs, model, options):
    """Alternates the two sides. Returns {side: {test: [[tokens per second] of a round]}}, one entry for each
    side and test, and {side: [(seconds, bytes)]} of the one-token runs."""
    speeds, firsts, starts = {}, [], {}
    for round_number in range(options.rounds):
        for side in ("redline", "peer"):
            print(f"  round {round_number + 1} of {options.rounds}: {side}", file=sys.stderr)
            starts.setdefault(side, []).append(one_token(programs, side, model, options.threads))
            for entry in bench(programs, side, model, options):
                samples = speeds.setdefault(side, {}).setdefault(test_name(entry), [])
                if not samples:
                    firsts.append({**entry, "engine": side, "test": test_name(entry)})
                samples.append(list(entry["samples_ts"]))
    for entry in firsts:
        rounds = speeds[entry["engine"]][entry["test"]]
        flat = [sample for samples in rounds for sample in samples]
        entry.update(rounds_ts=rounds, samples_ts=flat, avg_ts=statistics.mean(flat), stddev_ts=spread(flat))
    return speeds, firsts, starts


def spread(samples):
    return statistics.stdev(samples) if len(samples) > 1 else 0.0


def speed_rows(model, speeds, starts, bandwidth):
    """The rows of the speed table and the row of the start table for one model."""
    read = bytes_per_token(model)
    name = os.path.basename(model)
    rows = []
    for test, ours in speeds["redline"].items():
        theirs = speeds["peer"].get(test)
        if not theirs:
            raise Problem(f"the peer did not report {test}")
        flat = [[sample for samples in side for sample in samples] for side in (ours, theirs)]
        medians, best = [statistics.median(side) for side in flat], [max(side) for side in flat]
        ratios = [statistics.median(a) / statistics.median(b) for a, b in zip(ours, theirs)]
        share = ""
        if test.startswith("tg") and " at " not in test and bandwidth:
            share = " / ".join(f"{100 * median * read / 1e9 / bandwidth:.0f} %" for median in medians)
        figures = [f"{median:.1f} ({top:.1f})" for median, top in zip(medians, best)]
        rows.append(f"| {name} | {test} | {figures[0]} | {figures[1]} | "
                    f"{medians[0] / medians[1]:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {share} |")
    seconds = [statistics.median(run[0] for run in starts[side]) for side in ("redline", "peer")]
    peaks = [max(run[1] for run in starts[side]) / 1e6 for side in ("redline", "peer")]
    start = (f"| {name} | {os.path.getsize(model) / 1e6:.0f} | {seconds[0]:.2f} / {seconds[1]:.2f} | "
             f"{peaks[0]:.0f} / {peaks[1]:.0f} |")
    return rows, start


def speed(programs, options):
    for model in options.model:
        if not os.path.exists(model):
            raise Problem(f"{model}: no such file")
    programs.redline(), programs.peer("llama-bench")
    threads, load = options.threads or os.cpu_count(), os.getloadavg()[0]
    bandwidth = options.bandwidth or measured_bandwidth(threads)
    record = {"date": datetime.datetime.now().isoformat(timespec="seconds"), "cpu": cpu_name(),
              "threads": threads, "load_before": load, "bandwidth_gbs": bandwidth,
              "runs": [], "starts": []}
    rows, start_rows = [], []
    for model in options.model:
        print(model, file=sys.stderr)
        speeds, firsts, starts = interleaved(programs, model, options)
        record["runs"] += firsts
        record["starts"] += [{"engine": side, "model_filename": model, "seconds": [run[0] for run in runs],
                              "peak_bytes": [run[1] for run in runs]} for side, runs in starts.items()]
        model_rows, start_row = speed_rows(model, speeds, starts, bandwidth)
        rows += model_rows
        start_rows.append(start_row)
    record["load_after"] = os.getloadavg()[0]
    save(speed_table(record, rows, start_rows, options), record, options)


def speed_table(record, rows, start_rows, options):
    shown = f"{record['bandwidth_gbs']:.1f} GB/s measured" if record["bandwidth_gbs"] else "not measured"
    # Our own runs raise the load to the number of threads by the end; before, only others can have.
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


# Our name of a type -> the file mix that, made "pure", consists of it.
PURE_MIX = {"MXFP4": "MXFP4_MOE", "IQ2_S": "IQ2_M", "Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}
TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
         "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_S", "IQ1_M",
         "TQ1_0", "TQ2_0", "MXFP4", "Q1_0", "Q2_0"]
NEED_IMPORTANCE = {"IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_S", "IQ1_M"}


def sample_text():
    """About 1000 characters, some of them not ASCII."""
    words = zip("quick old small red wet".split(), "fox hare train kite house".split(),
                "sea town bed the park Z\u00fcrich".split())
    return "\n".join(f"Line {i}: the {a} {b} of {i * 37 % 101} went to {c}, it's {i * i}." for i, (a, b, c) in
                     enumerate(list(words) * 8))


def quantized(programs, source, kind, folder, text):
    """Makes a file of one type with llama-quantize; without quality in mind."""
    target = os.path.join(folder, kind + ".gguf")
    flags = ["--pure"]
    if kind in NEED_IMPORTANCE:
        matrix = os.path.join(folder, "importance.gguf")
        if not os.path.exists(matrix):
            run(programs.peer("llama-imatrix", "-m", source, "-f", text, "-c", 64, "-o", matrix))
        # The matrix does not cover the first and last tensor.
        flags += ["--imatrix", matrix, "--output-tensor-type", "q8_0", "--token-embedding-type", "q8_0"]
    run(programs.peer("llama-quantize", *flags, source, target, PURE_MIX.get(kind, kind)))
    return target


def peer_logprobs(programs, model, text, options, folder, *flags):
    """Runs llama-perplexity. Returns the tokens (chunks, context), the first scored position of a chunk and
    the log-probabilities (chunks, positions, vocabulary) after the positions from there to context - 2."""
    import numpy as np

    path = os.path.join(folder, "peer.logits")
    run(programs.peer("llama-perplexity", "-m", model, "-f", text, "-c", options.context, "--chunks",
                      options.chunks, "--save-all-logits", path, *flags))
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    if data[:8] != b"_logits_":
        raise Problem("llama-perplexity wrote a logits file in another format than is known here")
    # u32 context, i32 vocabulary, i32 chunks, the chunks' tokens; then per position: scale f32, minimum f32
    # and 16-bit steps above the minimum, padded to an even number.
    context, vocab, chunks = struct.unpack_from("<Iii", data, 8)
    tokens = np.frombuffer(data, "<i4", context * chunks, 20).reshape(chunks, context)
    first, row = context // 2, 2 * ((vocab + 1) // 2) + 4
    positions = context - 1 - first
    packed = np.frombuffer(data, "<u2", chunks * positions * row, 20 + tokens.nbytes)
    packed = packed.reshape(chunks, positions, row)
    scale = np.ascontiguousarray(packed[..., :2]).view("<f4")
    minimum = np.ascontiguousarray(packed[..., 2:4]).view("<f4")
    return tokens, first, packed[..., 4:4 + vocab] * scale + minimum


def redline_logprobs(programs, model, tokens, first, vocab, bos, folder):
    """Log-probabilities of `redline eval` for the same tokens at the same positions."""
    import numpy as np

    ids, path = (os.path.join(folder, name) for name in ("ids.txt", "redline.npy"))
    chunks = []
    for chunk in tokens.tolist():
        # Like the peer, start every chunk with the model's first token, if it wants one.
        chunk[0] = chunk[0] if bos is None else bos
        with open(ids, "w", encoding="ascii") as out:
            print(*chunk, file=out)
        run(programs.redline("eval", "-m", model, "--ids", ids, "-c", len(chunk), "--logits", path))
        logits = np.load(path)
        if logits.shape != (len(chunk), vocab):
            raise Problem(f"redline eval wrote logits of shape {logits.shape}, not {(len(chunk), vocab)}")
        chunks.append(logits[first:-1])
    logits = np.stack(chunks).astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def first_token(model):
    """The token that the tokenizer puts before a text, or None."""
    import gguf

    fields = gguf.GGUFReader(model).fields
    adds = fields.get("tokenizer.ggml.add_bos_token")
    return fields["tokenizer.ggml.bos_token_id"].contents() if adds and adds.contents() else None


def gaps(ours, theirs):
    """How much likelier by `theirs`, in log-probability, its best token is than that of `ours`."""
    import numpy as np

    mine = np.take_along_axis(theirs, ours.argmax(-1)[..., None], -1)[..., 0]
    return theirs.max(-1) - mine


def divergence(ours, theirs):
    """Divergence of `ours` from `theirs` in nats: at the median position, and the mean."""
    import numpy as np

    # The peer writes log-probabilities down to 16 below the best only.
    ours = np.maximum(ours, theirs.min(-1, keepdims=True))
    nats = (np.exp(theirs) * (theirs - ours)).sum(-1)
    return float(np.median(nats)), float(nats.mean())


def top1(programs, options):
    sys.path.insert(0, HERE)
    import make_tiny_model as tiny

    programs.redline(), programs.peer("llama-quantize")
    names = options.only or list(tiny.MODELS)
    unknown = [name for name in names if name not in tiny.MODELS]
    if unknown:
        raise Problem(f"no tiny model {unknown[0]}; there are {', '.join(tiny.MODELS)}")
    results = {}
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        text = options.file
        if not text:
            text = os.path.join(folder, "text.txt")
            with open(text, "w", encoding="utf-8") as out:
                out.write(sample_text())
        for index, (name, model) in enumerate(tiny.MODELS.items()):
            if name not in names:
                continue
            source = os.path.join(folder, name + ".gguf")
            model = tiny.for_kquants(model)
            tiny.write_gguf(source, name, model, tiny.Weights(model, [tiny.SEED, index]))
            for kind in options.types:
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    result = compare_one(programs, source, kind, place, text, options)
                results[name, kind] = {**result, "experts": model.experts}
                print(f"{name} {kind}: {verdict(results[name, kind], options)}", file=sys.stderr)
    print(top1_table(results, names, options))
    bad = [key for key, result in results.items() if "**" in verdict(result, options)]
    if bad:
        raise Problem("too different: " + ", ".join(" ".join(key) for key in bad))


def compare_one(programs, source, kind, folder, text, options):
    """Compares redline with the peer, and both with the peer's result for the same weights as floats."""
    import numpy as np

    try:
        model = quantized(programs, source, kind, folder, text)
        tokens, first, theirs = peer_logprobs(programs, model, text, options, folder)
        ours = redline_logprobs(programs, model, tokens, first, theirs.shape[-1], first_token(source), folder)
        floats = os.path.join(folder, "floats.gguf")
        run(programs.peer("llama-quantize", "--allow-requantize", model, floats, "F32"))
        cache = ("-ctk", "f32", "-ctv", "f32", "-fa", "off")
        exact = peer_logprobs(programs, floats, text, options, folder, *cache)[2]
        # Where redline parts from the peer, the peer may be the one that is off.
        return {"positions": ours[..., 0].size, "flips": np.minimum(gaps(ours, theirs), gaps(ours, exact)),
                "agree": int((ours.argmax(-1) == theirs.argmax(-1)).sum()),
                "ours": divergence(ours, exact), "theirs": divergence(theirs, exact)}
    except Problem as problem:
        return {"refused" if "cannot decode" in str(problem) else "problem": str(problem)}


def verdict(result, options):
    """One cell of the table; bold when it is a failure."""
    if "agree" not in result:
        return "refused" if "refused" in result else "**error**"
    # A divergence of D comes from errors of about sqrt(2 D) in each logit. Allow 5 deviations.
    (ours, _), (theirs, mean) = result["ours"], result["theirs"]
    limit = max(options.gap, 10 * max(0, mean) ** 0.5)
    far = int((result["flips"] > limit).sum())
    near = result["positions"] - result["agree"] - far
    # Of experts that are nearly tied, rounding picks one or the other; what follows then differs visibly.
    excused = result["positions"] // 50 if result["experts"] else 0
    text = str(result["agree"]) + (f" +{near}" if near else "")
    if far:
        text += f" +{far} far" if far <= excused else f" **+{far} far**"
    apart = f"{ours:.0e}/{theirs:.0e}"
    # The peer's file of log-probabilities is itself good to about 1e-5 nats.
    return f"{text} ({apart})" if ours <= 2 * theirs + 2e-5 else f"{text} (**{apart}**)"


def top1_table(results, names, options):
    positions = max((result.get("positions", 0) for result in results.values()), default=0)
    lines = ["| type | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for kind in options.types:
        cells = [verdict(results[name, kind], options) for name in names]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    lines += ["", f"Of {positions} positions: those where both have the same best token; +n: n more where "
              "they differ by a small gap, by the peer or by its result with the same weights as floats: at "
              f"most {options.gap} in log-probability, or 5 deviations of the peer's own error; far: where "
              "it is wider. In brackets: median divergence of redline / of the peer from that float result, "
              "in nats. Bold: far in more positions than near ties of experts explain (2 %), or redline more "
              "than twice as far off as the peer.", ""]
    refused = sorted({kind for (_, kind), result in results.items() if "refused" in result})
    lines += [f"redline refuses {', '.join(refused)}."] if refused else []
    lines += [f"{name} {kind}: {result['problem']}" for (name, kind), result in results.items()
              if "problem" in result]
    return "\n".join(lines)


def chunk_figures(text):
    return [float(value) for value in re.findall(r"\[\d+\]([0-9.]+)", text)]


def perplexity(programs, options):
    common = ["-m", options.model, "-f", options.file, "-c", options.context]
    threads = ["-t", options.threads] if options.threads else []
    limit = ["--chunks", options.chunks] if options.chunks else []
    # llama-perplexity's logger can lose the last figure when it exits, so one missing there is no error.
    theirs = chunk_figures(run(programs.peer("llama-perplexity", *common, *threads, *limit)))
    ours = chunk_figures(run(programs.redline("eval", *common, *threads)))
    if not ours or not theirs:
        silent = "redline eval" if theirs else "llama-perplexity"
        raise Problem(f"no [chunk]value figures in the output of {silent}")
    print("| chunks | redline | peer | relative difference |\n|---:|---:|---:|---:|")
    pairs = list(zip(ours, theirs))
    for index, (a, b) in enumerate(pairs):
        if index in (0, len(pairs) - 1) or (index + 1) % max(1, len(pairs) // 8) == 0:
            print(f"| {index + 1} | {a:.4f} | {b:.4f} | {a / b - 1:+.2e} |")
    if not 0 <= len(ours) - len(theirs) <= 1 and not options.chunks:
        raise Problem(f"redline scored {len(ours)} chunks, the peer {len(theirs)}")
    last = abs(pairs[-1][0] / pairs[-1][1] - 1)
    if last > options.tolerance:
        raise Problem(f"the perplexities differ by {last:.2e}, more than --tolerance {options.tolerance}")


def token_ids(programs, model, text, folder):
    path = os.path.join(folder, "text.txt")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    found = run(programs.peer("llama-tokenize", "-m", model, "-f", path, "--ids", "--no-bos"))
    return json.loads(found[found.index("["):])


def greedy(programs, options):
    common = ["-m", options.model, "-p", options.prompt, "-n", options.generate, "--temp", 0]
    common += ["-t", options.threads] if options.threads else []
    theirs = run(programs.peer("llama-completion", *common, "-no-cnv", "--no-display-prompt", "--simple-io"))
    ours = run(programs.redline("run", *common))
    # Both may end their output with a line feed that is no token.
    ours, theirs = (text.rstrip("\n") for text in (ours, theirs))
    with tempfile.TemporaryDirectory() as folder:
        a, b = (token_ids(programs, options.model, text, folder) for text in (ours, theirs))
    same = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    print(f"| prompt | tokens redline / peer | equal from the start |\n|---|---:|---:|\n"
          f"| {options.prompt!r} | {len(a)} / {len(b)} | {same} |")
    if a != b:
        raise Problem(f"after {same} equal tokens\n  redline: {ours!r}\n  peer:    {theirs!r}")


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
    part.add_argument("--results", default=os.path.join(HERE, "bench"), metavar="FOLDER")
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
    part = commands.add_parser("greedy", help="the same prompt, always the best token")
    part.add_argument("-m", "--model", required=True)
    part.add_argument("-p", "--prompt", required=True)
    part.add_argument("-n", "--generate", type=int, default=64)
    part.add_argument("-t", "--threads", type=int)
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    commands = {"speed": speed, "top1": top1, "perplexity": perplexity, "greedy": greedy}
    try:
        commands[options.command](Programs(options.redline, options.peer), options)
    except Problem as problem:
        sys.exit(str(problem))
    except (OSError, ImportError) as problem:
        sys.exit(f"{options.command}: {problem}")


if __name__ == "__main__":
    main()
