#!/usr/bin/env python3
"""Write a GGUF file with the real shapes of a known model and random weights.

Speed, memory use and loading do not depend on the values, so such a file stands in for a model that is not
at hand. Quantized tensors are random blocks whose scale fields are set so that weights have zero mean and a
standard deviation of 1/sqrt(inputs): activations neither explode nor vanish, logits are finite. Tensors are
written one piece at a time, so memory use is small whatever the file's size.

examples:
  make_random_model.py tinyllama-1.1b Q4_K_M -o tinyllama-q4_k_m.gguf
  make_random_model.py llama-3.1-70b Q4_K_M -o 70b.gguf
  make_random_model.py llama-3.1-8b F16 --layers 4 -o short.gguf
  make_random_model.py qwen3-0.6b IQ4_XS --pure -o pure.gguf
  make_random_model.py llama-3.2-1b Q8_0 --vocab-from real.gguf -o with-real-tokenizer.gguf
"""

import argparse
import collections
import concurrent.futures
import functools
import itertools
import math
import os
import sys
import time
from dataclasses import dataclass, replace
from types import SimpleNamespace

import gguf
import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden"))
import keyed_shapes
import synthetic_vocab
from keyed_shapes import KEYED

Type = gguf.GGMLQuantizationType
PIECE_BYTES = 16 << 20
HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True)
class Shape:
    arch: str
    layers: int
    dim: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    rope_base: float
    context: int
    eps: float = 1e-5
    vocab_kind: str = "bpe"
    pre: str = "llama-bpe"
    tied: bool = False
    rope_factor: float = 0.0  # llama3 rope scaling, written as the tensor rope_freqs
    experts: int = 0
    experts_used: int = 0
    qkv_bias: bool = False
    qk_norm: bool = False
    sandwich: bool = False  # norms behind both blocks, too
    window: int = 0
    factor: float = 0.0  # linear scaling of the rope, or with oss that of yarn
    oss: bool = False  # gpt-oss: sinks, and biases in attention, router and experts
    attends: tuple = ()  # the layers that do, where the others keep states
    taps: int = 0  # of the convolutions of those
    delta: tuple = ()  # heads of keys, of values, and their size, where those follow the delta rule
    shared: int = 0  # width of the expert that all tokens share
    dense: int = 0  # leading layers without experts
    dense_ffn: int = 0  # their width
    mtp: int = 0  # layers behind the others that guess further tokens

    def keeps_state(self, layer):
        return bool(self.attends) and layer not in self.attends

    def has_experts(self, layer):
        return self.experts > 0 and layer >= self.dense


QWEN35 = dict(head_dim=256, vocab=248320, rope_base=1e7, context=262144, eps=1e-6, pre="qwen35", qk_norm=True, taps=4)
GEMMA3 = dict(arch="gemma3", vocab=262144, rope_base=1e6, context=131072, eps=1e-6, vocab_kind="spm", tied=True,
              qk_norm=True, sandwich=True, window=1024, factor=8)
GPT_OSS = dict(arch="gpt-oss", dim=2880, ffn=2880, heads=64, kv_heads=8, head_dim=64, vocab=201088,
               rope_base=150000.0, context=131072, pre="gpt-4o", experts_used=4, qkv_bias=True, window=128,
               factor=32, oss=True)

# Sizes as published in the models' configurations.
SHAPES = {
    "tinyllama-1.1b": Shape("llama", 22, 2048, 5632, 32, 4, 64, 32000, 1e4, 2048, vocab_kind="spm"),
    "llama-2-7b": Shape("llama", 32, 4096, 11008, 32, 32, 128, 32000, 1e4, 4096, vocab_kind="spm"),
    "llama-3.2-1b": Shape("llama", 16, 2048, 8192, 32, 8, 64, 128256, 5e5, 131072, tied=True, rope_factor=32),
    "llama-3.1-8b": Shape("llama", 32, 4096, 14336, 32, 8, 128, 128256, 5e5, 131072, rope_factor=8),
    "llama-3.1-70b": Shape("llama", 80, 8192, 28672, 64, 8, 128, 128256, 5e5, 131072, rope_factor=8),
    "mistral-nemo-12b": Shape("llama", 40, 5120, 14336, 32, 8, 128, 131072, 1e6, 131072),
    "mixtral-8x7b": Shape("llama", 32, 4096, 14336, 32, 8, 128, 32000, 1e6, 32768, vocab_kind="spm",
                          experts=8, experts_used=2),
    "qwen2.5-7b": Shape("qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 1e6, 32768, 1e-6, pre="qwen2",
                        qkv_bias=True),
    "qwen3-0.6b": Shape("qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 1e6, 40960, 1e-6, pre="qwen2", tied=True,
                        qk_norm=True),
    "qwen3-8b": Shape("qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 1e6, 40960, 1e-6, pre="qwen2",
                      qk_norm=True),
    "qwen3-30b-a3b": Shape("qwen3moe", 48, 2048, 768, 32, 4, 128, 151936, 1e6, 40960, 1e-6, pre="qwen2",
                           experts=128, experts_used=8, qk_norm=True),
    "llm-jp-4-8b": Shape("llama", 32, 4096, 16384, 32, 8, 128, 196608, 1e6, 65536, vocab_kind="spm"),
    "llm-jp-4-32b-a3b": Shape("qwen3moe", 32, 2560, 960, 40, 4, 128, 196608, 1e6, 65536, 1e-6, vocab_kind="spm",
                              experts=128, experts_used=8, qk_norm=True),
    "qwen3.5-9b": Shape("qwen35", 32, 4096, 12288, 16, 4, attends=tuple(range(3, 32, 4)), delta=(16, 32, 128), **QWEN35),
    "qwen3.5-27b": Shape("qwen35", 64, 5120, 17408, 24, 4, attends=tuple(range(3, 64, 4)), delta=(16, 48, 128), **QWEN35),
    "qwen3.5-35b-a3b": Shape("qwen35moe", 40, 2048, 512, 16, 2, attends=tuple(range(3, 40, 4)), experts=256,
                             experts_used=8, shared=512, delta=(16, 32, 128), **QWEN35),
    "lfm2-8b-a1b": Shape("lfm2moe", 24, 2048, 1792, 32, 8, 64, 65536, 1e6, 128000, pre="lfm2", tied=True,
                         qk_norm=True, attends=(2, 6, 10, 14, 18, 21), taps=3, experts=32, experts_used=4, dense=2,
                         dense_ffn=7168),
    "gemma-3-4b": Shape(layers=34, dim=2560, ffn=10240, heads=8, kv_heads=4, head_dim=256, **GEMMA3),
    "gemma-3-12b": Shape(layers=48, dim=3840, ffn=15360, heads=16, kv_heads=8, head_dim=256, **GEMMA3),
    "gemma-3-27b": Shape(layers=62, dim=5376, ffn=21504, heads=32, kv_heads=16, head_dim=128, **GEMMA3),
    "gpt-oss-20b": Shape(layers=24, experts=32, **GPT_OSS),
    "gpt-oss-120b": Shape(layers=36, experts=128, **GPT_OSS),
}

# mix -> (file type id, base type). Types without a rule below are used for every matrix.
MIXES = {
    "F32": (0, Type.F32), "F16": (1, Type.F16), "BF16": (32, Type.BF16), "Q8_0": (7, Type.Q8_0),
    "Q4_0": (2, Type.Q4_0), "Q4_1": (3, Type.Q4_1), "Q5_0": (8, Type.Q5_0), "Q5_1": (9, Type.Q5_1),
    "Q2_K": (10, Type.Q2_K), "Q3_K_M": (12, Type.Q3_K), "Q3_K_L": (13, Type.Q3_K), "Q4_K_S": (14, Type.Q4_K),
    "Q4_K_M": (15, Type.Q4_K), "Q5_K_S": (16, Type.Q5_K), "Q5_K_M": (17, Type.Q5_K), "Q6_K": (18, Type.Q6_K),
    "IQ4_NL": (25, Type.IQ4_NL), "IQ4_XS": (30, Type.IQ4_XS), "IQ3_S": (26, Type.IQ3_S),
    "IQ3_XXS": (23, Type.IQ3_XXS), "IQ2_S": (28, Type.IQ2_S), "IQ2_XS": (20, Type.IQ2_XS),
    "IQ2_XXS": (19, Type.IQ2_XXS), "IQ1_S": (24, Type.IQ1_S), "IQ1_M": (31, Type.IQ1_M),
    "TQ1_0": (36, Type.TQ1_0), "TQ2_0": (37, Type.TQ2_0), "MXFP4_MOE": (38, Type.MXFP4),
}
FALLBACK = {Type.Q4_K: Type.Q5_0, Type.Q5_K: Type.Q5_1, Type.Q6_K: Type.Q8_0, Type.TQ1_0: Type.Q4_0,
            Type.TQ2_0: Type.Q4_0}
FLOATS = (Type.F32, Type.F16, Type.BF16)
PLAIN = (*FLOATS, Type.Q8_0)  # mixes whose output matrix has the base type too


def more(index, count):
    """The layers to which the M mixes give more bits."""
    return index < count // 8 or index >= 7 * count // 8 or (index - count // 8) % 3 == 2


def rule_type(mix, base, kind, layer, shape):
    """The type that a named mix gives to a matrix of one kind, before looking at its size."""
    layers, wide = shape.layers, more(layer, shape.layers)
    gqa4 = shape.heads // shape.kv_heads >= 4
    if kind == "output":
        return base if base in PLAIN else Type.Q6_K
    if mix == "MXFP4_MOE":
        return Type.MXFP4 if kind.endswith("_exps") else Type.Q8_0
    if base in PLAIN or mix in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q6_K") or kind == "token_embd":
        return base
    if shape.experts == 8 and kind in ("attn_v", "attn_k"):
        return Type.Q8_0
    low = base in (Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.IQ4_XS)
    if shape.experts == 8 and kind == "attn_output" and low:
        return Type.Q5_K
    if kind in ("attn_v", "attn_qkv"):
        picked = {"Q4_K_M": Type.Q6_K if wide else Type.Q4_K, "Q5_K_M": Type.Q6_K if wide else Type.Q5_K,
                  "Q4_K_S": Type.Q5_K if layer < 4 else Type.Q4_K, "Q3_K_L": Type.Q5_K,
                  "Q3_K_M": Type.Q5_K if layer < 2 else Type.Q4_K, "Q2_K": Type.Q4_K if gqa4 else Type.Q3_K,
                  "IQ4_XS": Type.Q5_K if gqa4 else base, "IQ4_NL": Type.Q5_K if gqa4 else base}.get(mix, base)
        return Type.Q5_K if layers == 80 and picked in (Type.Q3_K, Type.Q4_K) else picked
    if kind in ("ffn_down", "ffn_down_exps", "ffn_down_shexp"):
        early = layer < layers // 8
        return {"Q4_K_M": Type.Q6_K if wide else Type.Q4_K, "Q5_K_M": Type.Q6_K if wide else Type.Q5_K,
                "Q4_K_S": Type.Q5_K if early else Type.Q4_K, "Q3_K_L": Type.Q5_K,
                "Q3_K_M": Type.Q5_K if layer < layers // 16 else Type.Q4_K, "Q2_K": Type.Q3_K,
                "IQ4_XS": Type.Q5_K if early else base, "IQ4_NL": Type.Q5_K if early else base}.get(mix, base)
    if kind == "attn_output":
        return {"Q3_K_M": Type.Q4_K, "Q3_K_L": Type.Q5_K, "Q2_K": Type.Q3_K}.get(mix, base)
    return base


def fitting_type(wanted, inputs):
    """The wanted type, or the usual substitute when a row is not a whole number of its blocks."""
    if inputs % gguf.GGML_QUANT_SIZES[wanted][0] == 0:
        return wanted
    substitute = FALLBACK.get(wanted, Type.IQ4_NL)
    return substitute if inputs % 32 == 0 else Type.F16


def scale_fields(kind):
    """(byte offset of the f16 scale, of the f16 minimum or None, mean of the stored integers)."""
    return {Type.Q4_1: (0, 2, 7.5), Type.Q5_1: (0, 2, 15.5), Type.Q4_K: (0, 2, 7.5), Type.Q5_K: (0, 2, 15.5),
            Type.Q2_K: (80, 82, 1.5), Type.Q3_K: (108, None, 0), Type.Q6_K: (208, None, 0),
            Type.TQ1_0: (52, None, 0), Type.TQ2_0: (64, None, 0)}.get(kind, (0, None, 0))


def put_half(blocks, offset, value):
    blocks[:, offset:offset + 2] = np.asarray(value, dtype="<f2").reshape(-1, 1).view(np.uint8)


def random_bytes(rng, count):
    return rng.integers(0, 2**64, (count + 7) // 8, dtype=np.uint64).view(np.uint8)[:count]


def shape_blocks(blocks, kind, rng):
    """Makes the sub-block scales of random blocks look like those of real weights: positive and alike."""
    count = len(blocks)
    if kind == Type.Q8_0:  # -128 is never written by an encoder
        values = blocks[:, 2:].view(np.int8)
        np.maximum(values, -127, out=values)
    elif kind in (Type.Q4_K, Type.Q5_K):
        # Scales 8..15 + 16 or 32; minimum close to the scale, so that sub-blocks are nearly centred.
        scales = rng.integers(24, 56, (count, 8), dtype=np.uint8)
        mins = scales + rng.integers(0, 7, (count, 8), dtype=np.uint8) - 3
        packed = blocks[:, 4:16]
        packed[:, 0:4] = scales[:, :4] | (scales[:, 4:] >> 4) << 6
        packed[:, 4:8] = mins[:, :4] | (mins[:, 4:] >> 4) << 6
        packed[:, 8:12] = scales[:, 4:] & 15 | (mins[:, 4:] & 15) << 4
    elif kind == Type.Q2_K:
        scales = rng.integers(4, 16, (count, 16), dtype=np.uint8)
        blocks[:, :16] = scales | scales << 4
    elif kind == Type.Q6_K:
        blocks[:, 192:208] = rng.integers(64, 128, (count, 16), dtype=np.uint8)
    return blocks


def set_scales(blocks, kind, scale, rng):
    """Writes the block scales: within 3/4..5/4 of `scale`, different in each block."""
    values = scale * rng.uniform(0.75, 1.25, len(blocks))
    if kind == Type.MXFP4:
        exponent = 127 + round(math.log2(scale))
        blocks[:, 0] = rng.integers(exponent - 1, exponent + 1, len(blocks), dtype=np.uint8)
    elif kind == Type.IQ1_M:  # the half's nibbles are the top nibbles of four words
        bits = values.astype("<f2").view(np.uint16)
        words = blocks[:, 48:56].view("<u2")
        for i in range(4):
            words[:, i] = words[:, i] & 0x0FFF | (bits >> 4 * i & 15) << 12
    else:
        offset, minimum, mean = scale_fields(kind)
        put_half(blocks, offset, values)
        if minimum is not None:
            sign = -1 if kind in (Type.Q4_1, Type.Q5_1) else 1  # these add their minimum
            put_half(blocks, minimum, sign * mean * values.astype(np.float16).astype(np.float64))
    return blocks


def random_floats(rng, kind, count, deviation):
    """Bytes of random floats without arithmetic: sign, mantissa and lowest exponent bit are random bits.

    Magnitudes lie in [4^k / 2, 4^k * 2), so the deviation, 1.2076 * 4^k, is the wanted one within a
    factor of 2.
    """
    width, exponent_bit, bias = {Type.F32: (4, 23, 127), Type.F16: (2, 10, 15), Type.BF16: (2, 7, 127)}[kind]
    words = random_bytes(rng, count * width).view(f"<u{width}")
    exponent = bias - 1 + 2 * round(math.log(deviation / 1.2076, 4))  # even: the biases are odd
    sign = 1 << (8 * width - 1)
    words &= sign | (2 << exponent_bit) - 1
    words |= exponent << exponent_bit
    return words.view(np.uint8)


def blocks(rng, kind, count, scale):
    size = gguf.GGML_QUANT_SIZES[kind][1]
    random = random_bytes(rng, count * size).reshape(count, size)
    return set_scales(shape_blocks(random, kind, rng), kind, scale, rng)


@functools.cache
def unit_rms(kind):
    """Root mean square of decoded blocks whose scale is near 1."""
    decoded = gguf.quants.dequantize(blocks(np.random.Generator(np.random.SFC64(0)), kind, 2000, 1.0), kind)
    return float(np.sqrt(np.mean(np.square(decoded, dtype=np.float64))))


def make_piece(seed, kind, count, deviation):
    """Bytes of `count` blocks (or floats) whose values have the given standard deviation."""
    rng = np.random.Generator(np.random.SFC64(seed))
    if kind in FLOATS:
        return random_floats(rng, kind, count, deviation)
    return blocks(rng, kind, count, deviation / unit_rms(kind)).reshape(-1)


def in_order(pool, jobs, ahead):
    """Results of the jobs (function, arguments...) in their order, at most `ahead` of them under way."""
    waiting = collections.deque()
    for job in jobs:
        waiting.append(pool.submit(*job))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@dataclass
class Item:
    name: str
    shape: tuple  # slowest dimension first, as numpy counts
    kind: Type
    deviation: float = 0.0
    mean: float = 0.0
    values: np.ndarray | None = None

    def nbytes(self):
        length, size = gguf.GGML_QUANT_SIZES[self.kind]
        return math.prod(self.shape) // length * size


def mixer_matrices(shape, layer):
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    if not shape.keeps_state(layer):
        yield "attn_q", (2 * q if shape.delta else q, shape.dim)
        yield "attn_k", (kv, shape.dim)
        yield "attn_v", (kv, shape.dim)
        yield "attn_output", (shape.dim, q)
    elif not shape.delta:
        yield "shortconv.in_proj", (3 * shape.dim, shape.dim)
        yield "shortconv.out_proj", (shape.dim, shape.dim)
    else:
        keys, heads, size = shape.delta
        yield "attn_qkv", ((2 * keys + heads) * size, shape.dim)
        yield "attn_gate", (heads * size, shape.dim)
        yield "ssm_beta", (heads, shape.dim)
        yield "ssm_alpha", (heads, shape.dim)
        yield "ssm_out", (shape.dim, heads * size)


def matrices(shape, layer):
    """(name, shape) of the matrices of one layer."""
    yield from mixer_matrices(shape, layer)
    blocks = [("_exps", (shape.experts,), shape.ffn)] if shape.has_experts(layer) else [
        ("", (), shape.dense_ffn or shape.ffn)]
    if shape.shared:
        blocks.append(("_shexp", (), shape.shared))
    for suffix, lead, ffn in blocks:
        yield "ffn_gate" + suffix, (*lead, ffn, shape.dim)
        yield "ffn_up" + suffix, (*lead, ffn, shape.dim)
        yield "ffn_down" + suffix, (*lead, shape.dim, ffn)


def state_tensors(shape, prefix, vector):
    """The tensors of a layer with a state, besides its matrices."""
    if not shape.delta:
        yield Item(prefix + "shortconv.conv.weight", (shape.dim, shape.taps), Type.F32, 0.5)
        return
    keys, heads, size = shape.delta
    yield Item(prefix + "ssm_conv1d.weight", ((2 * keys + heads) * size, shape.taps), Type.F32, 0.5)
    yield Item(prefix + "ssm_a", (heads,), Type.F32, values=-np.exp(np.linspace(-3, 1, heads)))
    yield vector(prefix + "ssm_dt.bias", heads, 0, 1)
    yield vector(prefix + "ssm_norm.weight", size, 1, 0.1)


def llama3_factors(shape):
    """Frequency divisors of the llama3 rope scaling: original context 8192, low 1, high 4."""
    wavelength = 2 * math.pi * shape.rope_base ** (np.arange(0, shape.head_dim, 2) / shape.head_dim)
    smooth = np.clip((8192 / wavelength - 1) / 3, 0, 1)
    return (1 / ((1 - smooth) / shape.rope_factor + smooth)).astype(np.float32)


def tensors(shape, mix, pure):
    """Every tensor of the model in file order."""
    base = MIXES[mix][1]

    def matrix(name, kind, layer, dims, gain=1.0):
        wanted = base if pure else rule_type(mix, base, kind, layer, shape)
        return Item(name, dims, fitting_type(wanted, dims[-1]), gain / math.sqrt(dims[-1]))

    def vector(name, size, mean, deviation):
        return Item(name, (size,), Type.F32, deviation, mean)

    embed_kind = "output" if shape.tied else "token_embd"
    yield matrix("token_embd.weight", embed_kind, 0, (shape.vocab, shape.dim), 2.0)
    yield vector(("token_embd_norm" if shape.arch == "lfm2moe" else "output_norm") + ".weight", shape.dim, 1, 0.1)
    if not shape.tied:
        yield matrix("output.weight", "output", 0, (shape.vocab, shape.dim), 2.0)
    if shape.rope_factor:
        yield Item("rope_freqs.weight", (shape.head_dim // 2,), Type.F32, values=llama3_factors(shape))
    for layer in range(shape.layers + shape.mtp):
        prefix = f"blk.{layer}."
        if layer >= shape.layers:
            yield matrix(prefix + "nextn.eh_proj.weight", "nextn", layer, (shape.dim, 2 * shape.dim))
            for norm in ("enorm", "hnorm", "shared_head_norm"):
                yield vector(f"{prefix}nextn.{norm}.weight", shape.dim, 1, 0.1)
        yield vector(prefix + "attn_norm.weight", shape.dim, 1, 0.1)
        yield vector(prefix + ("post_attention_norm" if shape.oss or shape.delta else "ffn_norm") + ".weight", shape.dim, 1, 0.1)
        if shape.sandwich:
            yield vector(prefix + "post_attention_norm.weight", shape.dim, 1, 0.1)
            yield vector(prefix + "post_ffw_norm.weight", shape.dim, 1, 0.1)
        if shape.oss:
            yield vector(prefix + "attn_sinks.weight", shape.heads, 0, 1)
            yield vector(prefix + "attn_output.bias", shape.dim, 0, 0.5)
            yield vector(prefix + "ffn_gate_inp.bias", shape.experts, 0, 0.5)
        if shape.keeps_state(layer):
            yield from state_tensors(shape, prefix, vector)
        elif shape.qk_norm:
            yield vector(prefix + "attn_q_norm.weight", shape.head_dim, 1, 0.1)
            yield vector(prefix + "attn_k_norm.weight", shape.head_dim, 1, 0.1)
        if shape.shared:
            yield vector(prefix + "ffn_gate_inp_shexp.weight", shape.dim, 0, 1 / math.sqrt(shape.dim))
        if shape.dense and shape.has_experts(layer):
            yield vector(prefix + "exp_probs_b.bias", shape.experts, 0, 0.1)
        if shape.has_experts(layer):
            router = (shape.experts, shape.dim)
            yield Item(prefix + "ffn_gate_inp.weight", router, Type.F32, 1 / math.sqrt(shape.dim))
        for kind, dims in matrices(shape, layer):
            yield matrix(f"{prefix}{kind}.weight", kind, layer, dims)
            if shape.qkv_bias and kind in ("attn_q", "attn_k", "attn_v"):
                yield vector(f"{prefix}{kind}.bias", dims[0], 0, 0.5)
            if shape.oss and kind.endswith("_exps"):
                yield Item(f"{prefix}{kind}.bias", dims[:2], Type.F32, 0.5)


def keyed_tensors(model, layers, mix, pure, program):
    """Like tensors(), for a model that is described by its metadata."""
    base, keys = MIXES[mix][1], keyed_shapes.resolved(model, layers)
    sizes = SimpleNamespace(layers=layers, experts=keys.get("expert_count", 0), heads=8, kv_heads=1)
    for name, dims in keyed_shapes.list_tensors(model, layers, program):
        vector = keyed_shapes.vector_values(name, dims, keys)
        if vector:
            kind = Type.I32 if vector[2] is not None and vector[2].dtype.kind == "i" else Type.F32
            yield Item(name, dims, kind, vector[1], vector[0], vector[2])
            continue
        layer = int(name.split(".")[1]) if name.startswith("blk.") else 0
        kind = name.split(".")[2 if name.startswith("blk.") else 0]
        if model.tied and kind == "token_embd":
            kind = "output"
        wanted = base if pure else rule_type(mix, base, kind, layer, sizes)
        gain = 2.0 if kind in ("output", "token_embd") else 1.0
        yield Item(name, dims, fitting_type(wanted, dims[-1]), gain / math.sqrt(dims[-1]))


def make_vector(seed, item):
    if item.values is not None:
        return item.values.astype("<i4" if item.kind == Type.I32 else "<f4").reshape(-1).view(np.uint8)
    values = np.random.default_rng(seed).standard_normal(item.shape) * item.deviation + item.mean
    return values.astype("<f4").view(np.uint8)


def tensor_jobs(item, seed, alignment):
    """The jobs that together make a tensor's bytes and its padding. Each has a separate seed."""
    if len(item.shape) == 1 or item.values is not None or item.mean:
        yield make_vector, seed, item
    else:
        length, size = gguf.GGML_QUANT_SIZES[item.kind]
        total, step = math.prod(item.shape) // length, PIECE_BYTES // size
        for first in range(0, total, step):
            yield make_piece, (*seed, first), item.kind, min(step, total - first), item.deviation
    yield np.zeros, -item.nbytes() % alignment, np.uint8


def add_metadata(writer, shape, name, mix):
    writer.add_name(f"random {name}")
    writer.add_file_type(MIXES[mix][0])
    writer.add_quantization_version(2)
    writer.add_block_count(shape.layers + shape.mtp)
    if shape.mtp:
        writer.add_uint32(f"{shape.arch}.nextn_predict_layers", shape.mtp)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.dim)
    writer.add_feed_forward_length(shape.dense_ffn or shape.ffn)
    writer.add_head_count(shape.heads)
    by_layer = shape.attends and not shape.delta
    writer.add_head_count_kv([shape.kv_heads if layer in shape.attends else 0 for layer in range(shape.layers)]
                             if by_layer else shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(shape.eps)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_rope_dimension_count(shape.head_dim // 4 if shape.delta else shape.head_dim)
    writer.add_vocab_size(shape.vocab)
    if shape.experts:
        writer.add_expert_count(shape.experts)
        writer.add_expert_used_count(shape.experts_used)
        if shape.arch != "llama":
            writer.add_expert_feed_forward_length(shape.ffn)
    if shape.dense:
        writer.add_leading_dense_block_count(shape.dense)
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    if shape.delta:
        keys, heads, size = shape.delta
        writer.add_ssm_conv_kernel(shape.taps)
        writer.add_ssm_state_size(size)
        writer.add_ssm_group_count(keys)
        writer.add_ssm_time_step_rank(heads)
        writer.add_ssm_inner_size(heads * size)
        writer.add_uint32(f"{shape.arch}.full_attention_interval", 4)
        writer.add_rope_dimension_sections([11, 11, 10, 0])
        if shape.shared:
            writer.add_expert_shared_feed_forward_length(shape.shared)
    elif shape.taps:
        writer.add_shortconv_l_cache(shape.taps)
    if shape.window:
        writer.add_sliding_window(shape.window)
    if shape.factor:
        kinds = gguf.RopeScalingType
        writer.add_rope_scaling_type(kinds.YARN if shape.oss else kinds.LINEAR)
        writer.add_rope_scaling_factor(shape.factor)
    if shape.oss:
        writer.add_rope_scaling_orig_ctx_len(4096)


def copy_vocabulary(writer, path):
    """Copies the tokenizer of another file; returns its number of tokens."""
    reader = gguf.GGUFReader(path)
    size = 0
    for field in reader.fields.values():
        if not field.name.startswith("tokenizer."):
            continue
        sub = field.types[1] if len(field.types) > 1 else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=sub)
        if field.name == "tokenizer.ggml.tokens":
            size = len(field.data)
    return size


def write_hollow(out, items, alignment):
    """Vectors, and in place of matrices holes, which read as zeros."""
    for item in items:
        end = out.tell() + -(-item.nbytes() // alignment) * alignment
        if len(item.shape) == 1 or item.values is not None:
            out.write(make_vector(0, item).data)
        out.seek(end)
    out.truncate()


def write_model(options, shape, layers):
    writer = gguf.GGUFWriter(options.output, shape.arch)
    mix, pure, seed, threads = options.mix, options.pure, options.seed, options.threads
    if options.vocab_from:
        shape = replace(shape, vocab=copy_vocabulary(writer, options.vocab_from))
    else:
        synthetic_vocab.add_to(writer, shape.vocab_kind, shape.vocab, shape.pre)
    if options.model in KEYED:
        keyed_shapes.add_metadata(writer, shape, options.model, MIXES[mix][0], layers)
        items = list(keyed_tensors(shape, layers, mix, pure, options.list_weights))
    else:
        add_metadata(writer, shape, options.model, mix)
        items = list(tensors(shape, mix, pure))
    for item in items:
        writer.add_tensor_info(item.name, item.shape, np.dtype("f4"), item.nbytes(), raw_dtype=item.kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    out = writer.fout[0]
    out.write(bytes(-out.tell() % writer.data_alignment))
    if options.hollow:
        write_hollow(out, items, writer.data_alignment)
        writer.close()
        return items
    jobs = itertools.chain.from_iterable(
        tensor_jobs(item, (seed, index), writer.data_alignment) for index, item in enumerate(items))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for piece in in_order(pool, jobs, 2 * threads):
            out.write(piece.data)
    writer.close()
    return items


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {**SHAPES, **KEYED}
    parser.add_argument("model", choices=known, help="whose shapes: " + ", ".join(known), metavar="MODEL")
    parser.add_argument("mix", type=str.upper, choices=MIXES, metavar="MIX",
                        help="file mix: " + ", ".join(MIXES))
    parser.add_argument("-o", "--output", required=True, help="file to write")
    parser.add_argument("--layers", type=int, help="write this many layers instead of the model's number")
    parser.add_argument("--mtp", action="store_true", help="with an MTP head behind the layers, for Qwen 3.5")
    parser.add_argument("--pure", action="store_true", help="the mix's base type for every matrix")
    parser.add_argument("--hollow", action="store_true", help="all matrices are zeros, which take no room on the disk: for "
                                                              "tools that look at what would be launched")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="default: one per processor")
    parser.add_argument("--vocab-from", metavar="GGUF", help="copy this file's tokenizer")
    parser.add_argument("--list-weights", default=os.path.join(HERE, "../../build/ci/tools/list_weights"), metavar="PROGRAM",
                        help="of the build with tools; for " + ", ".join(KEYED))
    options = parser.parse_args()
    shape = known[options.model]
    layers = shape.layers if options.layers is None else options.layers
    if layers < 1:
        parser.error(f"--layers must be at least 1, not {layers}")
    shape = replace(shape, layers=layers)
    if options.mtp:
        if options.model in KEYED or not shape.delta:
            parser.error(f"--mtp: this program knows no MTP head of {options.model}")
        shape = replace(shape, mtp=1, attends=(*shape.attends, layers))
    start = time.monotonic()
    try:
        items = write_model(options, shape, layers)
    except OSError as problem:
        sys.exit(f"{options.output}: {problem.strerror or problem}")
    by_type = collections.Counter()
    for item in items:
        by_type[item.kind.name] += item.nbytes()
    parts = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in by_type.most_common())
    print(f"{options.output}: {by_type.total() / 1e9:.3f} GB in {time.monotonic() - start:.1f} s ({parts})")


if __name__ == "__main__":
    main()
