"""Models for make_random_model.py that are described by their metadata: which tensors they have, and of what shapes, says
redline's list (list_weights, of the build with tools). Sizes are those of the published configurations, as far as they
are known; experts' widths of Qwen3.8-Flash-Next and Laguna and the FFN of Muse Glimmer are derived from their parameters.
"""

import os
import sys
import subprocess
import tempfile
from dataclasses import dataclass

import gguf
import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden"))
import synthetic_vocab

Type = gguf.GGMLQuantizationType


@dataclass(frozen=True)
class Keyed:
    arch: str
    layers: int
    vocab: int
    pre: str
    keys: dict  # without the architecture's name; a function of the number of layers is called with it
    stated: tuple = ()  # (name, function of (layer, keys) or of keys: shape or None): tensors that the list goes by
    vocab_kind: str = "bpe"
    tied: bool = False
    lacks: tuple = ()  # of the optional tensors that published files have


def every(period, last, others):
    """By layer: `last` in the last of each period, `others` elsewhere."""
    return lambda layers: [last if i % period == period - 1 else others for i in range(layers)]


def first(period, one, others):
    return lambda layers: [one if i % period == 0 else others for i in range(layers)]


NEMOTRON = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
COMMON = {"context_length": 131072, "attention.layer_norm_rms_epsilon": 1e-6}
GATED = {"attention.key_length": 128, "attention.value_length": 128, "rope.dimension_count": 128}


def gated(**keys):
    return {**COMMON, **GATED, **{name.replace("__", "."): value for name, value in keys.items()}}


KEYED = {
    "gemma-4-26b-a4b": Keyed("gemma4", 30, 262144, "gemma4", {
        **COMMON, "embedding_length": 2816, "feed_forward_length": 2112, "attention.head_count": 16,
        "attention.head_count_kv": every(6, 2, 8), "attention.key_length": 512, "attention.value_length": 512,
        "attention.key_length_swa": 256, "attention.value_length_swa": 256, "attention.sliding_window": 1024,
        "attention.sliding_window_pattern": every(6, False, True), "attention.shared_kv_layers": 0,
        "rope.dimension_count": 512, "rope.dimension_count_swa": 256, "rope.freq_base": 1e6, "rope.freq_base_swa": 1e4,
        "embedding_length_per_layer_input": 0, "final_logit_softcapping": 30.0, "expert_count": 128,
        "expert_used_count": 8, "expert_feed_forward_length": 704},
        (("blk.{}.attn_v.weight", lambda i, k: (2048, 2816) if k["attention.sliding_window_pattern"][i] else None),
         ("rope_freqs.weight", lambda k: (256,))), vocab_kind="spm", tied=True),
    "glm-4.7-flash": Keyed("deepseek2", 47, 154880, "glm4", {
        **COMMON, "embedding_length": 2048, "feed_forward_length": 10240, "attention.head_count": 20,
        "attention.head_count_kv": 1, "attention.q_lora_rank": 768, "attention.kv_lora_rank": 512,
        "attention.key_length": 576, "attention.value_length": 512, "attention.key_length_mla": 256,
        "attention.value_length_mla": 256, "rope.dimension_count": 64, "rope.freq_base": 1e6, "expert_count": 64,
        "expert_used_count": 4, "expert_shared_count": 1, "expert_feed_forward_length": 1536,
        "expert_weights_scale": 1.8, "expert_weights_norm": True, "expert_gating_func": 2,
        "leading_dense_block_count": 1},
        (("blk.{}.attn_k_b.weight", lambda i, k: (20, 512, 192)), ("blk.{}.attn_v_b.weight", lambda i, k: (20, 256, 512)),
         ("blk.{}.exp_probs_b.bias", lambda i, k: (64,) if i > 0 else None))),
    "nemotron-3-nano-30b-a3b": Keyed("nemotron_h_moe", 52, 131072, "pixtral", {
        **COMMON, "embedding_length": 2688, "attention.layer_norm_epsilon": 1e-5, "attention.head_count": 32,
        "feed_forward_length": lambda n: [1856 if kind == "E" else 0 for kind in NEMOTRON[:n]],
        "attention.head_count_kv": lambda n: [2 if kind == "*" else 0 for kind in NEMOTRON[:n]],
        "attention.key_length": 128, "attention.value_length": 128, "rope.dimension_count": 84,
        "ssm.conv_kernel": 4, "ssm.state_size": 128, "ssm.group_count": 8, "ssm.time_step_rank": 64,
        "ssm.inner_size": 4096, "expert_count": 128, "expert_used_count": 6, "expert_feed_forward_length": 1856,
        "expert_shared_count": 1, "expert_shared_feed_forward_length": 3712, "expert_weights_norm": True,
        "expert_weights_scale": 2.5, "expert_group_count": 1, "expert_group_used_count": 1}),
    "qwen3.8-flash-next": Keyed("qwen4exp", 48, 248320, "qwen35", {
        **COMMON, "embedding_length": 2560, "feed_forward_length": 640, "attention.head_count": 24,
        "attention.head_count_kv": 2, "attention.key_length": 256, "attention.value_length": 256,
        "rope.dimension_count": 64, "rope.dimension_sections": [11, 11, 10, 0], "rope.freq_base": 1e7,
        "ssm.conv_kernel": 4, "ssm.state_size": 128, "ssm.group_count": 16, "ssm.time_step_rank": 48,
        "ssm.inner_size": 6144, "full_attention_interval": 4, "expert_count": 512, "expert_used_count": 10,
        "expert_feed_forward_length": 640, "expert_shared_feed_forward_length": 640, "hyper_connection.count": 4,
        "hyper_connection.low_rank": 320, "attention.indexer.head_count": 8, "attention.indexer.key_length": 128,
        "attention.indexer.top_k": 2048, "attention.compress_ratios": every(4, 16, 0)}),
    # The first layers see the last tokens alone, the others blocks of 4 and of 128 in turn: four layers have all kinds.
    "deepseek-v4-flash": Keyed("deepseek4", 43, 129280, "deepseek-v3", {
        **COMMON, "context_length": 1048576, "embedding_length": 4096, "feed_forward_length": 2048,
        "attention.head_count": 64, "attention.head_count_kv": 1, "attention.key_length": 512,
        "attention.value_length": 512, "attention.q_lora_rank": 1024, "attention.sliding_window": 128,
        "attention.output_group_count": 8, "attention.output_lora_rank": 1024,
        "attention.compress_ratios": lambda n: ([0, 0] + [4, 128] * n)[:n],
        "attention.compress_rope_freq_base": 160000.0, "attention.indexer.head_count": 64,
        "attention.indexer.key_length": 128, "attention.indexer.top_k": 512, "rope.dimension_count": 64,
        "rope.freq_base": 1e4, "rope.scaling.type": "yarn", "rope.scaling.factor": 16.0,
        "rope.scaling.original_context_length": 65536, "rope.scaling.yarn_beta_fast": 32.0,
        "rope.scaling.yarn_beta_slow": 1.0, "hyper_connection.count": 4, "hyper_connection.sinkhorn_iterations": 20,
        "hyper_connection.epsilon": 1e-6, "hash_layer_count": lambda n: min(3, n), "expert_count": 256,
        "expert_used_count": 6, "expert_shared_count": 1, "expert_feed_forward_length": 2048,
        "expert_gating_func": 4, "expert_weights_norm": True, "expert_weights_scale": 1.5,
        "swiglu_clamp_exp": lambda n: [10.0] * n, "swiglu_clamp_shexp": lambda n: [10.0] * n}),
    "muse-glimmer-30b": Keyed("muse-glimmer", 52, 202048, "gpt-4o", gated(
        embedding_length=6656, feed_forward_length=22016, attention__head_count=32, attention__head_count_kv=2,
        attention__sliding_window=2048, attention__sliding_window_pattern=4, rope__freq_base=5e5, logit_scale=1.0,
        final_logit_softcapping=30.0), (("blk.{}.attn_gate.weight", lambda i, k: (4096, 6656)),)),
    "minimax-m2.7": Keyed("minimax-m2", 62, 200064, "minimax-m2", gated(
        embedding_length=3072, feed_forward_length=1536, attention__head_count=48, attention__head_count_kv=8,
        rope__dimension_count=64, rope__freq_base=5e6, expert_count=256, expert_used_count=8,
        expert_feed_forward_length=1536, expert_gating_func=2)),
    "laguna-xs-2.1": Keyed("laguna", 40, 100352, "qwen2", gated(
        embedding_length=2048, feed_forward_length=8192, attention__head_count=first(4, 48, 64),
        attention__head_count_kv=8, attention__sliding_window=512, rope__dimension_count=64,
        rope__dimension_count_swa=128, rope__freq_base=5e5, rope__freq_base_swa=1e4, rope__scaling__type="yarn",
        rope__scaling__factor=32.0, rope__scaling__original_context_length=4096, expert_count=256, expert_used_count=8,
        expert_feed_forward_length=512, expert_shared_feed_forward_length=512, expert_weights_norm=True,
        expert_weights_scale=2.5, expert_gating_func=2, leading_dense_block_count=1),
        (("blk.{}.attn_gate.weight", lambda i, k: (k["attention.head_count"][i], 2048)),)),
    "step-3.5-flash": Keyed("step35", 45, 128896, "deepseek-v3", gated(
        embedding_length=4096, feed_forward_length=11264, attention__head_count=first(4, 64, 96),
        attention__head_count_kv=lambda n: [8] * n, attention__sliding_window=512,
        attention__sliding_window_pattern=first(4, False, True), rope__freq_base=5e6, rope__freq_base_swa=1e4,
        expert_count=288, expert_used_count=8, expert_feed_forward_length=1280, expert_shared_feed_forward_length=1280,
        expert_weights_norm=True, expert_weights_scale=3.0, expert_gating_func=2, leading_dense_block_count=3),
        (("blk.{}.attn_gate.weight", lambda i, k: (k["attention.head_count"][i], 4096)),)),
    "llama-4-scout": Keyed("llama4", 48, 202048, "llama4", gated(
        embedding_length=5120, feed_forward_length=16384, attention__head_count=40, attention__head_count_kv=8,
        rope__freq_base=5e5, expert_count=16, expert_used_count=1, expert_feed_forward_length=8192,
        interleave_moe_layer_step=1, attention__chunk_size=8192)),
    "hunyuan-a13b": Keyed("hunyuan-moe", 32, 128167, "hunyuan", gated(
        embedding_length=4096, feed_forward_length=3072, attention__head_count=32, attention__head_count_kv=8,
        rope__freq_base=1.1158840e7, expert_count=64, expert_used_count=8, expert_feed_forward_length=3072,
        expert_shared_count=1, expert_shared_feed_forward_length=3072), lacks=("exp_probs_b.bias",)),
}


def resolved(model, layers):
    return {name: value(layers) if callable(value) else value for name, value in model.keys.items()}


def add_metadata(writer, model, name, file_type, layers):
    writer.add_name(f"random {name}")
    writer.add_file_type(file_type)
    writer.add_quantization_version(2)
    writer.add_uint32(f"{model.arch}.block_count", layers)
    writer.add_uint32(f"{model.arch}.vocab_size", model.vocab)
    for key, value in resolved(model, layers).items():
        key = f"{model.arch}.{key}"
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)


def stated_tensors(model, layers):
    """(name, shape), slowest dimension first, of the tensors by which the configuration is read."""
    keys = resolved(model, layers)
    found = [("token_embd.weight", (model.vocab, keys["embedding_length"]))]
    for name, shape in model.stated:
        if "{}" not in name:
            found.append((name, shape(keys)))
            continue
        by_layer = ((name.format(i), shape(i, keys)) for i in range(layers))
        found += [one for one in by_layer if one[1]]
    return found


def list_tensors(model, layers, program):
    """(name, shape), slowest dimension first, of every tensor, in the order of redline's list."""
    stated = dict(stated_tensors(model, layers))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "metadata.gguf")
        writer = gguf.GGUFWriter(path, model.arch)
        synthetic_vocab.add_to(writer, "bpe", 300)
        add_metadata(writer, model, "shapes", 0, layers)
        for name, shape in stated.items():
            writer.add_tensor_info(name, shape, np.dtype("f4"), 4 * int(np.prod(shape)), raw_dtype=Type.F32)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        out = writer.fout[0]
        for shape in stated.values():
            out.write(bytes(-out.tell() % writer.data_alignment))
            size = int(np.prod(shape))
            if len(shape) == 1:  # rope's factors are read
                out.write(np.ones(size, "<f4").data)
            else:
                out.truncate(out.tell() + 4 * size)  # sparse
                out.seek(0, os.SEEK_END)
        writer.close()
        done = subprocess.run([program, path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(0, done.stderr.strip() or f"{program}: exit status {done.returncode}")
    keys, found = resolved(model, layers), []
    for line in done.stdout.splitlines():
        role, wanted, name, *shape = line.split()
        if name.endswith((".ssm_a.weight", ".ssm_d.weight")):
            name = name.removesuffix(".weight")
        count, rows, cols = map(int, shape)
        dims = (cols,) if role == "vector" else (rows, cols) if count == 1 else (count, rows, cols)
        dims = stated.pop(name, dims)
        there = wanted == "required" or (name.endswith(OPTIONAL) and not name.endswith(model.lacks))
        if there and not (model.tied and name == "output.weight"):
            found.append((name, in_file(model, name, dims, keys)))
    return found + list(stated.items())


# Optional tensors that the published files have.
OPTIONAL = ("exp_probs_b.bias", "ssm_conv1d.bias", "ssm_norm.weight")


def in_file(model, name, dims, keys):
    """A vector's shape in files, which have some of two dimensions."""
    if name.endswith(("ssm_conv1d.weight", "shortconv.conv.weight")):
        return dims[0] // keys["ssm.conv_kernel"], keys["ssm.conv_kernel"]
    if name.endswith("ffn_gate_inp_shexp.weight"):
        return dims[-1:]
    if name.endswith("ffn_gate_tid2eid.weight"):
        return model.vocab, keys["expert_used_count"]
    if name.endswith("_compressor_ape.weight"):
        ratio = keys["attention.compress_ratios"][int(name.split(".")[1])]
        return ratio, dims[0] // ratio
    if not model.arch.startswith("nemotron"):
        return dims
    if name.endswith("ssm_norm.weight"):
        return keys["ssm.group_count"], dims[0] // keys["ssm.group_count"]
    return (dims[0], 1) if name.endswith((".ssm_a", ".ssm_d")) else dims


def experts_by_token(tokens, used, experts):
    """Whole numbers: to each token a run of experts that are next to each other."""
    first = np.random.default_rng(1).integers(0, experts, (tokens, 1))
    return ((first + np.arange(used)) % experts).astype("<i4")


def vector_values(name, dims, keys):
    """(mean, deviation, values or None) of what is not a matrix; None for matrices."""
    if name.endswith("ffn_gate_tid2eid.weight"):
        return 0, 0, experts_by_token(*dims, keys["expert_count"])
    if name.endswith(".ssm_a"):
        return 0, 0, -np.exp(np.linspace(-3, 1, dims[0])).reshape(dims)
    if name == "rope_freqs.weight":  # a quarter of the pairs has rope
        return 0, 0, np.where(np.arange(dims[0]) < dims[0] // 4, 1.0, 1e30)
    if "norm" in name or name.endswith((".scale", ".ssm_d", "_scale.weight")):
        return 1, 0.1, None
    if name.endswith(("attn_sinks.weight", "_base.weight", "_compressor_ape.weight")):
        return 0, 1, None
    if name.endswith(".bias"):
        return 0, 1 if "ssm_dt" in name else 0.1, None
    if "conv" in name:
        return 0, 0.5, None
    if "ffn_gate_inp" in name:
        return 0, dims[-1] ** -0.5, None
    if len(dims) == 1:
        raise OSError(0, f"nothing is known about the values of {name}")
    return None
