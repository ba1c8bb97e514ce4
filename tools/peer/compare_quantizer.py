#!/usr/bin/env python3
"""Compares the errors of `redline quantize` with those of llama-quantize, tensor by tensor.

Both quantize the same F16 (or BF16, F32) file; what they wrote is decoded by the gguf package. With an importance
matrix (of redline imatrix or llama-imatrix) both take it, and squares are weighted by it. Exit code 1 when a tensor's
root-mean-square error is more than 2 % above llama.cpp's, or one has another format than there. Needs numpy and gguf.
usage: compare_quantizer.py [--imatrix FILE] REDLINE LLAMA_QUANTIZE MODEL-f16.gguf [TYPE...]
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

LIMIT = 1.02
TYPES = ("Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS MXFP4_MOE Q3_K_L Q3_K_M Q3_K_S "
         "Q2_K").split()


def decoded(reader):
    return {t.name: (t.tensor_type.name, gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64)) for t in reader.tensors}


def written(command, target):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return decoded(gguf.GGUFReader(target))


def importances(path):
    """Tensor -> weights of its columns, (matrices, 1, columns)."""
    tensors = {tensor.name: np.array(tensor.data, np.float64) for tensor in gguf.GGUFReader(path).tensors}
    weights = {}
    for name, squares in tensors.items():
        if name.endswith(".in_sum2"):
            counts = tensors[name.replace(".in_sum2", ".counts")].reshape(-1, 1, 1)
            weights[name[:-8]] = squares.reshape(len(counts), 1, -1) / np.maximum(counts, 1)
    return weights


def rmse(values, truth, weights):
    squares = (values - truth) ** 2
    if weights is None:
        return float(np.sqrt(np.mean(squares)))
    squares = squares.reshape(len(weights), -1, weights.shape[-1])
    return float(np.sqrt((squares * weights).sum() / (weights.sum() * squares.shape[1])))


def compare(truth, ours, theirs, weights):
    """Pairs of errors of the tensors that were quantized, and how many tensors have different formats."""
    pairs, apart = {}, 0
    for name, (kind, values) in truth.items():
        if ours[name][0] != theirs[name][0]:
            apart += 1
        elif ours[name][0] != kind:
            pairs[name] = tuple(rmse(made[name][1], values, weights.get(name)) for made in (ours, theirs))
    return pairs, apart


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--imatrix", metavar="FILE")
    parser.add_argument("redline")
    parser.add_argument("llama_quantize")
    parser.add_argument("model")
    parser.add_argument("types", nargs="*", metavar="TYPE")
    options = parser.parse_args()
    redline, peer, model = shlex.split(options.redline), shlex.split(options.llama_quantize), options.model
    flags = ["--imatrix", options.imatrix] if options.imatrix else []
    weights = importances(options.imatrix) if options.imatrix else {}
    truth, worst, different = decoded(gguf.GGUFReader(model)), 0.0, 0
    print("| type | tensors | RMSE redline | RMSE llama.cpp | ratio: mean | best | worst | other formats |\n| --- |" + " --- |" * 7)
    for kind in options.types or TYPES:
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = Path(folder) / "ours.gguf", Path(folder) / "theirs.gguf"
            made = written([*redline, "quantize", "-q", *flags, model, str(ours), kind], ours)
            peers = written([*peer, *flags, model, str(theirs), kind], theirs)
        pairs, apart = compare(truth, made, peers, weights)
        # A source that was in eight bits once may be met exactly.
        ratios = [a / b if b > 0 else 1.0 if a == 0 else float("inf") for a, b in pairs.values()]
        worst, different = max(worst, *ratios), different + apart
        a, b = (np.mean([p[i] for p in pairs.values()]) for i in (0, 1))
        print(f"| {kind} | {len(ratios)} | {a:.3e} | {b:.3e} | {np.mean(ratios):.4f} | {min(ratios):.4f} | {max(ratios):.4f} | {apart} |", flush=True)
    return 0 if worst <= LIMIT and different == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
