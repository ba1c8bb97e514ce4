#!/usr/bin/env python3
"""Write tiny random models, one per architecture, and the logits that transformers computes for them.

The weights are made here from a seed, in the layout of the published checkpoints, then used twice: written as
GGUF (with the converter's permutations, stackings and derived tensors) and put into the model of Hugging Face
transformers. So the logits check the whole way from the file's conventions to the last matrix.

Needs numpy and gguf; for --logits also torch and transformers 5.

examples:
  make_tiny_model.py --logits -o tests/golden/models    the checked-in set: models, tokens.txt, logits as .npy
  make_tiny_model.py --kquant -o /tmp/tiny              sizes that every quantized type divides; models only
  make_tiny_model.py --kquant --only qwen3 qwen2 -o /tmp/tiny
"""

import argparse
import dataclasses
import math
import os
import sys
from dataclasses import dataclass

import gguf
import numpy as np

import synthetic_vocab
import tiny_latent
import tiny_recurrent

VOCAB = 317
TOKENS = 37
SEED = 20
EXPERT_SCALE = 1.7


@dataclass(frozen=True)
class Tiny:
    arch: str  # general.architecture
    hf: str  # prefix of the transformers classes
    dim: int = 64
    ffn: int = 96
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    rope_base: float = 10000.0
    eps: float = 1e-5
    layers: int = 2
    context: int = 256
    vocab_kind: str = "spm"
    pre: str = ""
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    fused: bool = False  # attn_qkv, and gate and up in ffn_up
    experts: int = 0
    experts_used: int = 0
    rotary: float = 1.0  # share of the head that rotates
    llama3: dict = dataclasses.field(default_factory=dict)
    original_context: int = 0  # longrope
    gemma: bool = False  # norms whose weights are stored less one, embeddings times sqrt(dim), gelu
    sandwich: bool = False  # norms behind both blocks, too
    window: int = 0
    period: int = 0  # of windows: the last layer of each has none
    local_base: float = 0.0  # of the rope of layers with a window
    score_cap: float = 0.0
    logit_cap: float = 0.0
    yarn: dict = dataclasses.field(default_factory=dict)
    oss: bool = False  # gpt-oss: sinks, and biases in attention, router and experts
    rope_factor: float = 0.0  # linear scaling
    factors: dict = dataclasses.field(default_factory=dict)  # of granite, by the configuration's names
    shared: int = 0  # width of the expert that all tokens share
    dense: int = 0  # leading layers without experts
    dense_ffn: int = 0  # their width
    unused: int = 0  # layers behind the last that predict further tokens
    kinds: str = ""  # by layer: a attends, s keeps a state
    taps: int = 0  # of the convolutions of the latter
    delta: dict = dataclasses.field(default_factory=dict)  # heads of the delta rule
    latent: dict = dataclasses.field(default_factory=dict)  # sizes of attention on latents, and how experts are chosen
    calm: bool = False  # weak branches, so that small errors (of quantized activations) stay small

    @property
    def rope_dims(self):
        return int(self.head_dim * self.rotary)


GEMMA = dict(hf="Gemma", gemma=True, dim=32, ffn=40, heads=4, head_dim=24, eps=1e-6, tied=True)
GRANITE = dict(embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.1,
               logits_scaling=2.5)
PHI = dict(arch="phi3", hf="Phi3", heads=2, kv_heads=1, head_dim=32, fused=True, rotary=0.75, tied=True,
           vocab_kind="bpe", pre="gpt-4o")
DELTA = dict(delta=dict(key_heads=2, heads=6, key_dim=12, value_dim=12), taps=4, eps=1e-6, rope_base=1e6, rotary=0.5,
             qk_norm=True, vocab_kind="bpe", pre="qwen35")
MODELS = {
    # The original context is short, so that all three ranges of the scaling matter within the test.
    "llama3": Tiny("llama", "Llama", rope_base=500000.0, vocab_kind="bpe", pre="llama-bpe",
                   llama3=dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                               original_max_position_embeddings=64)),
    "llama-tied": Tiny("llama", "Llama", heads=8, head_dim=8, tied=True),
    "mistral-nemo": Tiny("llama", "Mistral", heads=2, kv_heads=1, head_dim=24, ffn=100, rope_base=1e6,
                         vocab_kind="bpe", pre="tekken"),
    "mixtral": Tiny("llama", "Mixtral", dim=32, ffn=32, heads=2, kv_heads=1, experts=5, experts_used=2),
    "qwen2": Tiny("qwen2", "Qwen2", eps=1e-6, rope_base=1e6, vocab_kind="bpe", pre="qwen2", qkv_bias=True),
    "qwen3": Tiny("qwen3", "Qwen3", heads=3, kv_heads=1, head_dim=32, eps=1e-6, rope_base=1e6,
                  vocab_kind="bpe", pre="qwen2", qk_norm=True, tied=True),
    "qwen3moe": Tiny("qwen3moe", "Qwen3Moe", dim=32, head_dim=24, ffn=32, eps=1e-6, rope_base=1e6,
                     vocab_kind="bpe", pre="qwen2", qk_norm=True, experts=6, experts_used=3),
    "phi4-mini-short": Tiny(**PHI, context=4096, original_context=1024),
    "phi4-mini-long": Tiny(**PHI, context=256, original_context=24),
    "gemma": Tiny("gemma", **{**GEMMA, "kv_heads": 1}),
    # Caps that are felt: most scores and logits of these models are smaller.
    "gemma2": Tiny("gemma2", **{**GEMMA, "hf": "Gemma2"}, layers=4, sandwich=True, window=6, period=2,
                   score_cap=3.0, logit_cap=4.0),
    # Enough layers to include the sixth, which has no window, and one behind it.
    "gemma3": Tiny("gemma3", **{**GEMMA, "hf": "Gemma3"}, layers=7, sandwich=True, window=5, period=6,
                   qk_norm=True, rope_base=1e6, local_base=1e4, rope_factor=8.0),
    # Yarn blends within the few pairs of a head, between numbers of pairs that are not whole.
    "gpt-oss": Tiny("gpt-oss", "GptOss", dim=32, ffn=32, heads=4, kv_heads=2, head_dim=16, layers=3, oss=True,
                    experts=5, experts_used=3, window=7, period=2, rope_base=150000.0, vocab_kind="bpe",
                    pre="gpt-4o", qkv_bias=True,
                    yarn=dict(factor=32.0, beta_fast=8.0, beta_slow=1.0, original_max_position_embeddings=64)),
    "granite": Tiny("granite", "Granite", heads=4, head_dim=16, tied=True, factors=GRANITE, vocab_kind="bpe",
                    pre="refact"),
    "granitemoe": Tiny("granitemoe", "GraniteMoeShared", dim=32, ffn=32, heads=4, kv_heads=1, head_dim=8,
                       experts=5, experts_used=2, shared=24, tied=True, factors=GRANITE, vocab_kind="bpe",
                       pre="refact"),
    # So short an original context that queries grow four times within the test.
    "mistral3": Tiny("mistral3", "Ministral3", heads=3, kv_heads=1, head_dim=32, rope_base=1e6,
                     vocab_kind="bpe", pre="tekken",
                     yarn=dict(factor=16.0, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
                               original_max_position_embeddings=9, llama_4_scaling_beta=0.1)),
    "glm4": Tiny("glm4", "Glm4", heads=4, head_dim=16, ffn=56, rotary=0.5, sandwich=True, qkv_bias=True,
                 vocab_kind="bpe", pre="glm4"),
    "glm4moe": Tiny("glm4moe", "Glm4Moe", dim=32, ffn=40, heads=6, kv_heads=2, head_dim=16, layers=3,
                    rotary=0.5, qkv_bias=True, qk_norm=True, experts=6, experts_used=2, shared=80, dense=1,
                    dense_ffn=56, unused=1, vocab_kind="bpe", pre="glm4"),
    "lfm2": Tiny("lfm2", "Lfm2", dim=48, ffn=72, heads=3, kv_heads=1, layers=4, kinds="ssas", taps=3,
                 qk_norm=True, tied=True, rope_base=1e6, vocab_kind="bpe", pre="lfm2"),
    "lfm2moe": Tiny("lfm2moe", "Lfm2Moe", dim=32, ffn=24, heads=4, kv_heads=2, head_dim=8, layers=3, kinds="sas",
                    taps=3, qk_norm=True, tied=True, rope_base=1e6, experts=6, experts_used=2, dense=1,
                    dense_ffn=56, vocab_kind="bpe", pre="lfm2"),
    # Heads of keys and of values of other sizes than attention's; three heads of values share one of keys.
    "qwen35": Tiny("qwen35", "Qwen3_5", layers=4, kinds="sasa", heads=3, kv_heads=1, dim=48, ffn=72, **DELTA),
    "qwen35moe": Tiny("qwen35moe", "Qwen3_5Moe", layers=2, kinds="sa", dim=32, ffn=24, experts=6, experts_used=3,
                      shared=40, unused=1, **DELTA),
    "qwen3next": Tiny("qwen3next", "Qwen3Next", layers=3, kinds="ssa", dim=32, ffn=24, experts=5, experts_used=2,
                      shared=24, **DELTA),
    "qwen3next-fused": Tiny("qwen3next", "Qwen3Next", layers=2, kinds="sa", dim=32, ffn=24, experts=4,
                            experts_used=2, shared=24, fused=True, **DELTA),
}
MODELS.update({name: Tiny(**settings) for name, settings in tiny_latent.MODELS.items()})


def for_kquants(tiny):
    """The same architecture with rows that are whole numbers of every quantized block (256 elements)."""
    square = tiny.heads * tiny.head_dim == tiny.dim
    heads, head_dim = (tiny.heads, 256 // tiny.heads) if square else (4, 128)
    ffn = 256 if tiny.experts else 512
    # llama.cpp wants all of a layer that it does not run: there is none.
    return dataclasses.replace(tiny, dim=256, ffn=ffn, heads=heads, head_dim=head_dim, calm=True, unused=0,
                               shared=256 * bool(tiny.shared), dense_ffn=512 * bool(tiny.dense_ffn))


class Weights:
    """The checkpoint: tensors by their Hugging Face names, linear layers as (outputs, inputs)."""

    def __init__(self, tiny, seed):
        self.rng = np.random.default_rng(seed)
        self.tensors = {}
        self.matrix("model.embed_tokens", (VOCAB, tiny.dim), math.sqrt(tiny.dim) * (0.25 if tiny.tied else 1))
        self.gain("model.norm", tiny.dim)
        if not tiny.tied:
            self.matrix("lm_head", (VOCAB, tiny.dim), 2)
        for layer in range(tiny.layers):
            self.add_layer(tiny, f"model.layers.{layer}", tiny.experts if layer >= tiny.dense else 0,
                           tiny.kinds[layer:layer + 1] == "s")

    def matrix(self, name, shape, scale=1.0):
        """Gaussian, `scale` times what keeps the variance of its input."""
        values = self.rng.standard_normal(shape) * scale / math.sqrt(shape[-1])
        self.tensors[name + ".weight"] = values.astype(np.float32)

    def gain(self, name, size):
        self.tensors[name + ".weight"] = (1 + 0.25 * self.rng.standard_normal(size)).astype(np.float32)

    def vector(self, name, size, deviation):
        self.tensors[name] = (deviation * self.rng.standard_normal(size)).astype(np.float32)

    def add_layer(self, tiny, prefix, experts, keeps_state):
        attention = prefix + ".self_attn."
        rows = {"q_proj": tiny.heads * tiny.head_dim, "k_proj": tiny.kv_heads * tiny.head_dim}
        rows["v_proj"] = rows["k_proj"]
        # Queries and keys are large enough to make attention pick; values to make the choice matter.
        pick, branch = (0.7, 0.5) if tiny.calm else (1.4, 1.5)
        self.gain(prefix + ".input_layernorm", tiny.dim)
        self.gain(prefix + ".post_attention_layernorm", tiny.dim)
        if keeps_state:
            tiny_recurrent.add_mixer(tiny, self, prefix)
            rows = {}
        if tiny.latent:
            tiny_latent.add_attention(tiny, self, attention, pick)
            rows = {}
        for name, size in rows.items():
            gated = 2 if tiny.delta and name == "q_proj" else 1
            self.matrix(attention + name, (gated * size, tiny.dim), pick)
            if tiny.qkv_bias:
                bias = self.rng.standard_normal(size) * (3 if name == "k_proj" else 1)
                self.tensors[attention + name + ".bias"] = bias.astype(np.float32)
        if rows:
            self.matrix(attention + "o_proj", (tiny.dim, rows["q_proj"]), pick)
        if tiny.qk_norm and rows:
            self.gain(attention + "q_norm", tiny.head_dim)
            self.gain(attention + "k_norm", tiny.head_dim)
        if tiny.sandwich:
            self.gain(prefix + ".pre_feedforward_layernorm", tiny.dim)
            self.gain(prefix + ".post_feedforward_layernorm", tiny.dim)
        if tiny.oss:
            self.vector(attention + "sinks", tiny.heads, 2)
            self.vector(attention + "o_proj.bias", tiny.dim, 0.5)
            self.vector(prefix + ".mlp.router.bias", tiny.experts, 1)
        if experts:
            self.matrix(prefix + ".mlp.gate", (experts, tiny.dim), 2)
            if tiny.dense and tiny.latent.get("sigmoid", True):
                self.vector(prefix + ".mlp.gate.e_score_correction_bias", experts, 0.3)
            if tiny.shared:
                self.add_mlp(prefix + ".mlp.shared_experts.", tiny.dim, tiny.shared, branch)
                if tiny.delta:
                    self.matrix(prefix + ".mlp.shared_expert_gate", (1, tiny.dim), 2)
        for expert in range(experts or 1):
            mlp = f"{prefix}.mlp.experts.{expert}." if experts else prefix + ".mlp."
            self.add_mlp(mlp, tiny.dim, tiny.ffn if experts else tiny.dense_ffn or tiny.ffn, branch)
            if tiny.oss:  # so large that the limits of gate and up are met
                self.vector(mlp + "gate_proj.bias", tiny.ffn, 4)
                self.vector(mlp + "up_proj.bias", tiny.ffn, 4)
                self.vector(mlp + "down_proj.bias", tiny.dim, 0.5)

    def add_mlp(self, prefix, dim, width, branch):
        self.matrix(prefix + "gate_proj", (width, dim), 1.5)
        self.matrix(prefix + "up_proj", (width, dim), 1.5)
        self.matrix(prefix + "down_proj", (dim, width), branch)

    def __getitem__(self, name):
        return self.tensors[name]


def pair_order(matrix, heads):
    """Reorders each head's rows from halves (x_i, x_{i+d/2}) to the adjacent pairs of arch "llama"."""
    return matrix.reshape(heads, 2, -1, matrix.shape[-1]).swapaxes(1, 2).reshape(matrix.shape)


def llama3_factors(tiny):
    """Divisors of the rotary frequencies, as Llama 3.1's reference code scales them."""
    p = tiny.llama3
    original = p["original_max_position_embeddings"]
    factors = []
    for i in range(0, tiny.head_dim, 2):
        wavelength = 2 * math.pi * tiny.rope_base ** (i / tiny.head_dim)
        low, high = p["low_freq_factor"], p["high_freq_factor"]
        smooth = min(1.0, max(0.0, (original / wavelength - low) / (high - low)))
        factors.append(1 / ((1 - smooth) / p["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def longrope_factors(tiny):
    """Made-up (short, long) divisors: as in the published files, near 1 for short and growing for long."""
    i = np.arange(tiny.rope_dims // 2)
    return (1 + 0.05 * i).astype(np.float32), (1.1 * 1.35 ** i).astype(np.float32)


def attention_factor(tiny):
    scale = tiny.context / tiny.original_context
    return math.sqrt(1 + math.log(scale) / math.log(tiny.original_context))


def gguf_tensors(tiny, weights):
    """(name, values) of the GGUF file."""
    yield "token_embd.weight", weights["model.embed_tokens.weight"]
    last_norm = "token_embd_norm" if tiny.arch.startswith("lfm2") else "output_norm"
    yield last_norm + ".weight", weights["model.norm.weight"]
    if not tiny.tied:
        yield "output.weight", weights["lm_head.weight"]
    if tiny.llama3:
        yield "rope_freqs.weight", llama3_factors(tiny)
    if tiny.original_context:
        short, long = longrope_factors(tiny)
        yield "rope_factors_long.weight", long
        yield "rope_factors_short.weight", short
    for layer in range(tiny.layers):
        for name, values in layer_tensors(tiny, weights, f"model.layers.{layer}.", layer < tiny.dense):
            yield f"blk.{layer}.{name}", values
    for layer in range(tiny.layers, tiny.layers + tiny.unused):
        yield f"blk.{layer}.nextn.eh_proj.weight", weights["model.embed_tokens.weight"]


def layer_tensors(tiny, weights, prefix, dense):
    attention = prefix + "self_attn."
    yield "attn_norm.weight", weights[prefix + "input_layernorm.weight"]
    if tiny.sandwich:
        yield "post_attention_norm.weight", weights[prefix + "post_attention_layernorm.weight"]
        yield "ffn_norm.weight", weights[prefix + "pre_feedforward_layernorm.weight"]
        yield "post_ffw_norm.weight", weights[prefix + "post_feedforward_layernorm.weight"]
    else:
        pre_ffn = "post_attention_norm" if tiny.oss or tiny.arch == "glm4moe" or tiny.delta else "ffn_norm"
        yield pre_ffn + ".weight", weights[prefix + "post_attention_layernorm.weight"]
    if tiny.latent:
        yield from tiny_latent.attention_tensors(tiny, weights, attention)
    elif attention + "o_proj.weight" not in weights.tensors:
        yield from tiny_recurrent.mixer_tensors(tiny, weights, prefix)
    else:
        yield from attention_tensors(tiny, weights, prefix, attention)
    yield from ffn_tensors(tiny, weights, prefix + "mlp.", dense)


def attention_tensors(tiny, weights, prefix, attention):
    yield "attn_output.weight", weights[attention + "o_proj.weight"]
    if tiny.oss:
        yield "attn_output.bias", weights[attention + "o_proj.bias"]
        yield "attn_sinks.weight", weights[attention + "sinks"]
        yield "ffn_gate_inp.bias", weights[prefix + "mlp.router.bias"]
    parts = {name: weights[f"{attention}{name}_proj.weight"] for name in "qkv"}
    if tiny.arch in ("llama", "mistral3", "granite", "granitemoe"):
        parts["q"] = pair_order(parts["q"], tiny.heads)
        parts["k"] = pair_order(parts["k"], tiny.kv_heads)
    if tiny.fused and not tiny.delta:
        yield "attn_qkv.weight", np.concatenate(list(parts.values()))
    else:
        for name, values in parts.items():
            yield f"attn_{name}.weight", values
            if tiny.qkv_bias:
                yield f"attn_{name}.bias", weights[f"{attention}{name}_proj.bias"]
    if tiny.qk_norm:
        yield "attn_q_norm.weight", weights[attention + "q_norm.weight"]
        yield "attn_k_norm.weight", weights[attention + "k_norm.weight"]


def ffn_tensors(tiny, weights, mlp, dense):
    if tiny.experts and not dense:
        yield "ffn_gate_inp.weight", weights[mlp + "gate.weight"]
        if mlp + "gate.e_score_correction_bias" in weights.tensors:
            yield "exp_probs_b.bias", weights[mlp + "gate.e_score_correction_bias"]
        if tiny.delta:
            yield "ffn_gate_inp_shexp.weight", weights[mlp + "shared_expert_gate.weight"][0]
        if tiny.shared:
            for name in ("gate", "up", "down"):
                yield f"ffn_{name}_shexp.weight", weights[f"{mlp}shared_experts.{name}_proj.weight"]
        for name in ("gate", "up", "down"):
            experts = [weights[f"{mlp}experts.{e}.{name}_proj.weight"] for e in range(tiny.experts)]
            yield f"ffn_{name}_exps.weight", np.stack(experts)
            if tiny.oss:
                biases = [weights[f"{mlp}experts.{e}.{name}_proj.bias"] for e in range(tiny.experts)]
                yield f"ffn_{name}_exps.bias", np.stack(biases)
        return
    gate, up = weights[mlp + "gate_proj.weight"], weights[mlp + "up_proj.weight"]
    if (tiny.fused and not tiny.latent) or tiny.arch == "glm4":
        yield "ffn_up.weight", np.concatenate([gate, up])
    else:
        yield "ffn_gate.weight", gate
        yield "ffn_up.weight", up
    yield "ffn_down.weight", weights[mlp + "down_proj.weight"]


def write_gguf(path, name, tiny, weights):
    writer = gguf.GGUFWriter(path, tiny.arch)
    writer.add_name(f"tiny random {name}")
    writer.add_file_type(0)
    writer.add_block_count(tiny.layers + tiny.unused)
    writer.add_context_length(tiny.context)
    writer.add_embedding_length(tiny.dim)
    writer.add_feed_forward_length(tiny.dense_ffn or tiny.ffn)
    writer.add_head_count(tiny.heads)
    if tiny.kinds:
        tiny_recurrent.add_metadata(tiny, writer)
    elif tiny.latent:
        tiny_latent.add_metadata(tiny, writer)
    else:
        writer.add_head_count_kv(tiny.kv_heads)
    writer.add_layer_norm_rms_eps(tiny.eps)
    writer.add_rope_freq_base(tiny.rope_base)
    writer.add_rope_dimension_count(tiny.rope_dims)
    writer.add_vocab_size(VOCAB)
    if tiny.heads * tiny.head_dim != tiny.dim and not tiny.latent:
        writer.add_key_length(tiny.head_dim)
        writer.add_value_length(tiny.head_dim)
    if tiny.experts:
        writer.add_expert_count(tiny.experts)
        writer.add_expert_used_count(tiny.experts_used)
        if tiny.arch not in ("llama", "granitemoe"):
            writer.add_expert_feed_forward_length(tiny.ffn)
    if tiny.arch == "granitemoe":
        writer.add_expert_shared_feed_forward_length(tiny.shared)
    if tiny.factors:
        writer.add_embedding_scale(tiny.factors["embedding_multiplier"])
        writer.add_residual_scale(tiny.factors["residual_multiplier"])
        writer.add_attention_scale(tiny.factors["attention_multiplier"])
        writer.add_logit_scale(tiny.factors["logits_scaling"])
    if tiny.dense:
        writer.add_leading_dense_block_count(tiny.dense)
    if tiny.dense and not tiny.kinds:
        writer.add_nextn_predict_layers(tiny.unused)
        writer.add_expert_shared_count(tiny.shared // tiny.ffn)
        sigmoid = tiny.latent.get("sigmoid", True)
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID if sigmoid
                                      else gguf.ExpertGatingFuncType.SOFTMAX)
        writer.add_expert_weights_norm(sigmoid)
        writer.add_expert_weights_scale(EXPERT_SCALE)
    if tiny.original_context:
        writer.add_rope_scaling_orig_ctx_len(tiny.original_context)
        writer.add_rope_scaling_attn_factors(attention_factor(tiny))
    if tiny.window:
        writer.add_sliding_window(tiny.window)
    if tiny.score_cap:
        writer.add_attn_logit_softcapping(tiny.score_cap)
        writer.add_final_logit_softcapping(tiny.logit_cap)
    if tiny.rope_factor:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(tiny.rope_factor)
    if tiny.yarn:
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(tiny.yarn["factor"])
        writer.add_rope_scaling_orig_ctx_len(tiny.yarn["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(tiny.yarn["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(tiny.yarn["beta_slow"])
        if "mscale_all_dim" in tiny.yarn:
            writer.add_rope_scaling_yarn_log_mul(tiny.yarn["mscale_all_dim"] * (0.1 if tiny.latent else 1))
        if "llama_4_scaling_beta" in tiny.yarn:
            writer.add_attn_temperature_scale(tiny.yarn["llama_4_scaling_beta"])
    synthetic_vocab.add_to(writer, tiny.vocab_kind, VOCAB, tiny.pre)
    for tensor, values in gguf_tensors(tiny, weights):
        writer.add_tensor(tensor, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def hf_config(tiny, transformers):
    settings = dict(
        vocab_size=VOCAB, hidden_size=tiny.dim, intermediate_size=tiny.ffn, num_hidden_layers=tiny.layers,
        num_attention_heads=tiny.heads, num_key_value_heads=tiny.kv_heads, head_dim=tiny.head_dim,
        rms_norm_eps=tiny.eps, max_position_embeddings=tiny.context, rope_theta=tiny.rope_base,
        tie_word_embeddings=tiny.tied, sliding_window=None, attn_implementation="eager",
        bos_token_id=None, eos_token_id=None, pad_token_id=None)
    if tiny.kinds:
        settings.update(tiny_recurrent.hf_settings(tiny))
        config = tiny.hf + ("TextConfig" if tiny.hf.startswith("Qwen3_5") else "Config")
        return getattr(transformers, config)(**settings)
    if tiny.hf == "Mixtral":
        settings.update(num_local_experts=tiny.experts, num_experts_per_tok=tiny.experts_used)
    if tiny.hf == "Qwen3Moe":
        settings.update(num_experts=tiny.experts, num_experts_per_tok=tiny.experts_used, norm_topk_prob=True,
                        moe_intermediate_size=tiny.ffn)
    if tiny.llama3:
        settings["rope_scaling"] = dict(tiny.llama3, rope_type="llama3")
    if tiny.original_context:
        short, long = longrope_factors(tiny)
        settings.update(partial_rotary_factor=tiny.rotary,
                        original_max_position_embeddings=tiny.original_context,
                        rope_scaling=dict(rope_type="longrope", short_factor=short.tolist(),
                                          long_factor=long.tolist()))
    if tiny.gemma:
        settings.update(query_pre_attn_scalar=tiny.head_dim, attn_logit_softcapping=tiny.score_cap or None,
                        final_logit_softcapping=tiny.logit_cap or None, hidden_act="gelu_pytorch_tanh")
    if tiny.window:
        kinds = ["sliding_attention" if (i + 1) % tiny.period else "full_attention"
                 for i in range(tiny.layers)]
        settings.update(sliding_window=tiny.window, layer_types=kinds)
    if tiny.oss or tiny.arch == "granitemoe":
        settings.update(num_local_experts=tiny.experts, num_experts_per_tok=tiny.experts_used)
    if tiny.yarn:
        settings["rope_parameters"] = dict(tiny.yarn, rope_type="yarn", rope_theta=tiny.rope_base,
                                           truncate=not tiny.oss)
    settings.update(tiny.factors)
    if tiny.arch.startswith("glm4"):
        settings.update(attention_bias=True)
    if tiny.rotary != 1 and not tiny.original_context:
        settings["rope_parameters"] = dict(rope_type="default", rope_theta=tiny.rope_base,
                                           partial_rotary_factor=tiny.rotary)
    if tiny.arch == "granitemoe":
        settings.update(shared_intermediate_size=tiny.shared)
    if tiny.dense:
        settings.update(intermediate_size=tiny.dense_ffn, moe_intermediate_size=tiny.ffn, use_qk_norm=True,
                        n_routed_experts=tiny.experts, num_experts_per_tok=tiny.experts_used,
                        n_shared_experts=tiny.shared // tiny.ffn, first_k_dense_replace=tiny.dense, norm_topk_prob=True,
                        routed_scaling_factor=EXPERT_SCALE)
    if tiny.latent:
        settings.update(tiny_latent.hf_settings(tiny))
    if tiny.local_base:
        settings["rope_parameters"] = {
            "full_attention": dict(rope_type="linear", factor=tiny.rope_factor, rope_theta=tiny.rope_base),
            "sliding_attention": dict(rope_type="default", rope_theta=tiny.local_base)}
    config = {"Gemma3": "Gemma3Text"}.get(tiny.hf, tiny.hf) + "Config"
    return getattr(transformers, config)(**settings)


def hf_tensors(tiny, weights):
    """The checkpoint's tensors by the names of transformers' modules, fused where those are."""
    found = dict(weights.tensors)
    found["lm_head.weight"] = weights.tensors.get("lm_head.weight", weights["model.embed_tokens.weight"])
    if tiny.gemma:
        found = {name: values - 1 if "norm" in name else values for name, values in found.items()}
    for layer in range(tiny.layers):
        prefix = f"model.layers.{layer}."
        if tiny.arch == "glm4":
            halves = [weights[f"{prefix}mlp.{name}_proj.weight"] for name in ("gate", "up")]
            found[prefix + "mlp.gate_up_proj.weight"] = np.concatenate(halves)
            # The norm behind the attention has the name that other models use for the norm before the FFN.
            found[prefix + "post_self_attn_layernorm.weight"] = weights[prefix + "post_attention_layernorm.weight"]
            found[prefix + "post_attention_layernorm.weight"] = weights[prefix + "pre_feedforward_layernorm.weight"]
            found[prefix + "post_mlp_layernorm.weight"] = weights[prefix + "post_feedforward_layernorm.weight"]
        if tiny.fused and not tiny.delta and not tiny.latent:
            parts = [weights[f"{prefix}self_attn.{name}_proj.weight"] for name in "qkv"]
            found[prefix + "self_attn.qkv_proj.weight"] = np.concatenate(parts)
            halves = [weights[f"{prefix}mlp.{name}_proj.weight"] for name in ("gate", "up")]
            found[prefix + "mlp.gate_up_proj.weight"] = np.concatenate(halves)
        if tiny.experts and layer >= tiny.dense:
            experts = [[weights[f"{prefix}mlp.experts.{e}.{name}_proj.weight"] for e in range(tiny.experts)]
                       for name in ("gate", "up", "down")]
            gate, up, down = map(np.stack, experts)
            found[prefix + "mlp.experts.gate_up_proj"] = np.concatenate([gate, up], axis=1)
            found[prefix + "mlp.experts.down_proj"] = down
        if tiny.arch == "granitemoe":
            moe, shared = prefix + "block_sparse_moe.", prefix + "mlp.shared_experts."
            found[moe + "router.weight"] = weights[prefix + "mlp.gate.weight"]
            for name in ("gate_up_proj", "down_proj"):
                found[moe + "experts." + name] = found[prefix + "mlp.experts." + name]
            halves = [weights[f"{shared}{name}_proj.weight"] for name in ("gate", "up")]
            found[prefix + "shared_mlp.input_linear.weight"] = np.concatenate(halves)
            found[prefix + "shared_mlp.output_linear.weight"] = weights[shared + "down_proj.weight"]
        if tiny.oss:
            add_oss_tensors(tiny, weights, prefix, found)
    return tiny_recurrent.hf_tensors(tiny, found) if tiny.kinds else found


def add_oss_tensors(tiny, weights, prefix, found):
    """Experts as gpt-oss has them: transposed, with gate and up in turns."""
    experts = prefix + "mlp.experts."
    for kind in ("weight", "bias"):
        gate, up, down = (np.stack([weights[f"{experts}{e}.{name}_proj.{kind}"] for e in range(tiny.experts)])
                          for name in ("gate", "up", "down"))
        turns = np.stack([gate, up], axis=2).reshape(len(gate), -1, *gate.shape[2:])
        suffix = "" if kind == "weight" else "_bias"
        found[f"{experts}gate_up_proj{suffix}"] = turns.swapaxes(1, -1) if kind == "weight" else turns
        found[f"{experts}down_proj{suffix}"] = down.swapaxes(1, -1) if kind == "weight" else down
    found[prefix + "mlp.router.weight"] = weights[prefix + "mlp.gate.weight"]


def hf_logits(tiny, weights, tokens):
    """Logits (tokens, vocabulary) of the transformers model, computed in float32 on the CPU."""
    import torch
    import transformers

    model = getattr(transformers, tiny.hf + "ForCausalLM")(hf_config(tiny, transformers)).float().eval()
    found = hf_tensors(tiny, weights)
    state = model.state_dict()
    for name, parameter in state.items():
        if name not in found or found[name].shape != tuple(parameter.shape):
            sys.exit(f"{tiny.hf}: no tensor {name} of shape {tuple(parameter.shape)}; "
                     f"transformers {transformers.__version__} names or shapes it in a way not known here")
        parameter.copy_(torch.from_numpy(found[name]))
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].float().numpy()


def test_tokens(seed):
    """The fixed input: random tokens, control tokens included."""
    return np.random.default_rng(seed).integers(0, VOCAB, TOKENS).tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="made when it does not exist")
    parser.add_argument("--only", nargs="+", choices=MODELS, metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--logits", action="store_true", help="also write tokens.txt and MODEL.npy")
    parser.add_argument("--kquant", action="store_true", help="rows that every quantized type divides")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    tokens = test_tokens(options.seed)
    if options.logits:
        with open(os.path.join(options.output, "tokens.txt"), "w", encoding="ascii") as out:
            print(*tokens, file=out)
    for index, (name, tiny) in enumerate(MODELS.items()):
        if options.only and name not in options.only:
            continue
        tiny = for_kquants(tiny) if options.kquant else tiny
        weights = Weights(tiny, [options.seed, index])
        path = os.path.join(options.output, name + ".gguf")
        write_gguf(path, name, tiny, weights)
        line = f"{path}: {os.path.getsize(path) / 1e3:.0f} kB"
        if options.logits:
            logits = hf_logits(tiny, weights, tokens)
            np.save(os.path.join(options.output, name + ".npy"), logits)
            line += f", logits {logits.std():.2f} around {logits.mean():.2f}"
        print(line)


if __name__ == "__main__":
    main()
