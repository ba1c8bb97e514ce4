#!/usr/bin/env python3
"""Compares the errors of `redline quantize` with those of llama-quantize, tensor by tensor.

Both quantize the same F16 (or BF16, F32) file; what they wrote is decoded by the gguf package. Exit code 1 when a
tensor's root-mean-square error is more than 2 % above llama.cpp's. Needs numpy and gguf.
usage: compare_quantizer.py REDLINE LLAMA_QUANTIZE MODEL-f16.gguf [TYPE...]
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

LIMIT = 1.02


def decoded(reader):
    return {t.name: (t.tensor_type.name, gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64)) for t in reader.tensors}


def written(command, target):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return decoded(gguf.GGUFReader(target))


def rmse(values, truth):
    return float(np.sqrt(np.mean((values - truth) ** 2)))


def compare(truth, ours, theirs):
    """Ratios of the errors where both chose the same format, and how many tensors they put in different ones."""
    ratios, apart = {}, 0
    for name, (kind, values) in truth.items():
        if ours[name][0] != theirs[name][0]:
            apart += 1
        elif ours[name][0] != kind:
            ratios[name] = (rmse(ours[name][1], values), rmse(theirs[name][1], values))
    return ratios, apart


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__.strip())
    redline, peer, model = shlex.split(sys.argv[1]), shlex.split(sys.argv[2]), sys.argv[3]
    truth, worst = decoded(gguf.GGUFReader(model)), 0.0
    print("| type | tensors | RMSE redline | RMSE llama.cpp | ratio: mean | best | worst | other formats |\n| --- |" + " --- |" * 7)
    for kind in sys.argv[4:] or ["Q8_0", "Q6_K", "Q4_0", "Q4_K", "Q4_K_M"]:
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = Path(folder) / "ours.gguf", Path(folder) / "theirs.gguf"
            made = written([*redline, "quantize", "-q", model, str(ours), kind], ours)
            # llama.cpp's Q4_K_S differs from Q4_K in some tensors, which are then not compared.
            peers = written([*peer, model, str(theirs), {"Q4_K": "Q4_K_S"}.get(kind, kind)], theirs)
        pairs, apart = compare(truth, made, peers)
        ratios = [a / b for a, b in pairs.values()]
        worst = max(worst, max(ratios))
        a, b = (np.mean([p[i] for p in pairs.values()]) for i in (0, 1))
        print(f"| {kind} | {len(ratios)} | {a:.3e} | {b:.3e} | {np.mean(ratios):.4f} | {min(ratios):.4f} | {max(ratios):.4f} | {apart} |")
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
