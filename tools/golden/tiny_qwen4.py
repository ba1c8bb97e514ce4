#!/usr/bin/env python3
"""Write tiny random models of qwen4exp, and their logits.

As make_tiny_by_config.py, for the architecture that has hyper-connections, attention to chosen blocks, and a table of
n-grams. Blocks are chosen by scores that are told apart: of those that decide, the smallest distance is printed.

Needs numpy, gguf, torch and transformers 5.

example: tiny_qwen4.py -o tests/golden/models
"""

import re
from types import SimpleNamespace

import gguf
import numpy as np

import make_tiny_by_config as by_config
import tiny_chosen
import tiny_recurrent

EPS, BASE = 1e-5, 1e4
L, F = "linear_attention", "full_attention"
SHARED = dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=16, rms_norm_eps=EPS,
              linear_key_head_dim=8, linear_value_head_dim=12, linear_num_key_heads=2, linear_num_value_heads=4,
              moe_intermediate_size=24, shared_expert_intermediate_size=40, num_experts=6, num_experts_per_tok=2,
              indexer_kv_heads=1, indexer_head_dim=12, output_gate_type="sigmoid", tie_word_embeddings=False,
              rope_parameters=dict(rope_type="default", rope_theta=BASE, partial_rotary_factor=0.5,
                                   mrope_section=[2, 1, 1], mrope_interleaved=True))
MODELS = {
    # The best 3 of up to 9 blocks of 4, and n-grams of up to 3 tokens, which a token of the text cuts.
    "qwen4exp": (36, dict(SHARED, layer_types=[L, F, L, F], hc_count=3, hc_lowrank=10, ple_layer_ids=[3], ple_embed_dim=48,
                      ngram_size=3, heads_per_ngram=2, ngram_vocab_size_base=97,
                      make_ngram_vocab_size_divisible_by=8, indexer_n_heads=3, indexer_budget=12,
                      indexer_compress_ratio=4, eos_token_id=79)),
    # A context that is dense, and no n-grams.
    "qwen4exp-dense": (1, dict(SHARED, layer_types=[L, L, F], hc_count=2, hc_lowrank=6, indexer_n_heads=2,
                               indexer_budget=40, indexer_compress_ratio=5)),
}
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.indexer.q_layernorm": "indexer.q_norm", "self_attn.indexer.k_layernorm": "indexer.k_norm",
    "mlp.gate": "ffn_gate_inp", "mlp.experts.gate_up_proj": "ffn_gate_up_exps", "mlp.experts.down_proj": "ffn_down_exps",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "ple.key_proj": "ple_key", "ple.value_proj": "ple_value", "ple.norm_key": "ple_norm_key",
    "ple.norm_query": "ple_norm_query", "ple.norm_conv": "ple_norm_conv", "ple.conv1d": "ple_conv1d",
    "embed_tokens": "token_embd", "lm_head": "output"}
MIXERS = {"attn_hyper_connection": "hc_attn", "mlp_hyper_connection": "hc_ffn", "hyper_connection_mixer": "output_hc"}
OF_MIXERS = {"hc_norm": "norm", "input_mix_weight_down": "down", "input_mix_weight_up": "up",
             "block_inject_weight": "inject"}


def random_values(name, parameter, rng, config):
    shape = tuple(parameter.shape)
    if not parameter.is_floating_point():  # constants
        return None
    if name.endswith("linear_attn.norm.weight"):
        return 1 + 0.25 * rng.standard_normal(shape)
    if "norm" in name:  # stored less one
        return 0.25 * rng.standard_normal(shape)
    if "ngram_embedding.weight" in name:
        return rng.standard_normal(shape)
    if re.search("index_qk_proj|input_mix|block_inject|ple.*proj", name):
        return 2 * rng.standard_normal(shape) / np.sqrt(shape[-1])
    return by_config.random_values(name, shape, rng)


def gguf_tensors(config, found):
    delta = dict(key_heads=config.linear_num_key_heads, heads=config.linear_num_value_heads,
                 key_dim=config.linear_key_head_dim, value_dim=config.linear_value_head_dim)
    layout = SimpleNamespace(arch="qwen4exp", fused=False, delta=delta)
    for name, values in found.items():
        if values.dtype.kind == "i":
            continue
        if "norm" in name and "linear_attn" not in name:
            values = values + 1
        layer = re.match(r"model\.layers\.(\d+)\.(.*)", name)
        prefix, rest = (f"blk.{layer[1]}.", layer[2]) if layer else ("", name.removeprefix("model."))
        stem = rest.removesuffix(".weight")
        mixer, _, part = stem.rpartition(".")
        if "ngram_embedding" in stem:
            yield "per_layer_token_embd.weight", values
        elif mixer in MIXERS:
            yield f"{prefix}{MIXERS[mixer]}_{OF_MIXERS[part]}.weight", values
        elif stem.endswith("index_qk_proj"):
            q, k = np.split(values, [config.indexer_n_heads * config.indexer_head_dim])
            yield prefix + "indexer.q_proj.weight", q
            yield prefix + "indexer.k_proj.weight", k
        elif stem == "linear_attn.in_proj_qkv":
            for ours, part in tiny_recurrent.mixer_tensors(layout, delta_weights(found, layer[1]), ""):
                yield prefix + ours, part
        elif "linear_attn" not in stem:
            yield f"{prefix}{NAMES[stem]}.weight", values[:, 0] if "conv1d" in stem else values


def delta_weights(found, layer):
    """The tensors under the names and in the shapes of tiny_recurrent."""
    of = f"model.layers.{layer}."
    return {name.removeprefix(of): values[:, 0] if "conv1d" in name else values
            for name, values in found.items() if name.startswith(of + "linear_attn.")}


def add_metadata(writer, config, constants):
    arch = "qwen4exp."
    key = lambda name, value: writer.add_uint32(arch + name, value)
    whole = lambda name, values: writer.add_key_value(arch + name, [int(v) for v in values], gguf.GGUFValueType.ARRAY,
                                                      sub_type=gguf.GGUFValueType.UINT64)
    for name, value in (
            ("attention.key_length", 16), ("attention.value_length", 16), ("rope.dimension_count", 8),
            ("ssm.conv_kernel", config.linear_conv_kernel_dim), ("ssm.state_size", config.linear_key_head_dim),
            ("ssm.group_count", config.linear_num_key_heads), ("ssm.time_step_rank", config.linear_num_value_heads),
            ("ssm.inner_size", config.linear_num_value_heads * config.linear_value_head_dim),
            ("full_attention_interval", config.layer_types.index("indexed_attention") + 1),
            ("expert_count", config.num_experts), ("expert_used_count", config.num_experts_per_tok),
            ("expert_feed_forward_length", config.moe_intermediate_size),
            ("expert_shared_feed_forward_length", config.shared_expert_intermediate_size),
            ("hyper_connection.count", config.hc_count), ("hyper_connection.low_rank", config.hc_lowrank),
            ("attention.indexer.head_count", config.indexer_n_heads),
            ("attention.indexer.key_length", config.indexer_head_dim),
            ("attention.indexer.top_k", config.indexer_budget)):
        key(name, value)
    writer.add_rope_dimension_sections([2, 1, 1, 0])
    writer.add_array(arch + "attention.compress_ratios", [
        config.indexer_compress_ratio if kind == "indexed_attention" else 0 for kind in config.layer_types])
    if not config.ple_layer_ids:
        return
    writer.add_array(arch + "ple.layers", [i - 1 for i in config.ple_layer_ids])
    for name, value in (("ple.ngram_size", config.ngram_size), ("ple.heads_per_ngram", config.heads_per_ngram),
                        ("ple.conv_kernel", config.ple_conv_kernel_size), ("ple.eos_token_id", config.eos_token_id),
                        ("embedding_length_per_layer_input",
                         config.ple_embed_dim // ((config.ngram_size - 1) * config.heads_per_ngram))):
        key(name, value)
    for name, part in (("layer_multipliers", "layer_multipliers"), ("head_offsets", "ngram_heads_offsets"),
                       ("head_vocab_sizes", "ngram_heads_vocab_sizes")):
        whole("ple." + name, constants[part])


def distances_of(scores, k, topk):
    if scores.dim() != 1 or k >= len(scores):
        return []
    best = topk(scores, k + 1).values
    return [((best[-2] - best[-1]) / best[0]).item()]


def write(path, name, config, found):
    constants = {key.rpartition(".")[2]: values.tolist() for key, values in found.items() if values.dtype.kind == "i"}
    tiny_chosen.write_gguf(path, "qwen4exp", name, config, config.num_hidden_layers, BASE, "qwen2",
                           lambda writer: add_metadata(writer, config, constants), gguf_tensors(config, found))


if __name__ == "__main__":
    tiny_chosen.main(__doc__, MODELS, ("Qwen4ExpTextConfig", "Qwen4ExpForCausalLM"), random_values, distances_of, write)
