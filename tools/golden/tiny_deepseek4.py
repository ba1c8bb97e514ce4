#!/usr/bin/env python3
"""Write tiny random models of deepseek4, and their logits.

As make_tiny_by_config.py, for the architecture that has hyper-connections made doubly stochastic, attention to the last
tokens and to entries of blocks, and experts by token. Entries are chosen by scores that are told apart: of those that
decide, the smallest distance is printed.

Needs numpy, gguf, torch and transformers 5.

example: tiny_deepseek4.py -o tests/golden/models
"""

import re

import numpy as np

import make_tiny_by_config as by_config
import tiny_chosen

EPS = 1e-5
W, I, H = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
SHARED = dict(hidden_size=32, num_attention_heads=6, num_key_value_heads=1, head_dim=16, q_lora_rank=24, o_groups=2,
              o_lora_rank=10, sliding_window=6, rms_norm_eps=EPS, index_n_heads=8, index_head_dim=12,
              moe_intermediate_size=24, n_routed_experts=6, num_experts_per_tok=2, partial_rotary_factor=0.5,
              rope_theta=100.0, compress_rope_theta=1000.0, tie_word_embeddings=False)
MODELS = {
    # The best 3 of up to 9 entries of 4 tokens, and all of 8; yarn; limits that are met; two layers' experts by token; a
    # further layer, which predicts the token after the next.
    "deepseek4": (31, dict(SHARED, layer_types=[W, I, H, I], index_topk=3, hc_mult=3, hc_sinkhorn_iters=6, hc_eps=1e-3,
                          compress_rates={I: 4, H: 8}, mlp_layer_types=["hash_moe"] * 2 + ["moe"] * 2,
                          swiglu_limit=0.8, routed_scaling_factor=1.5,
                          rope_parameters=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=24,
                                               beta_fast=4.0, beta_slow=0.5))),
    # All entries, no limits, no yarn, no experts by token.
    "deepseek4-dense": (1, dict(SHARED, layer_types=[I, H, W], index_topk=40, hc_mult=4, hc_sinkhorn_iters=20,
                                hc_eps=1e-6, compress_rates={I: 4, H: 16}, mlp_layer_types=["moe"] * 3,
                                swiglu_limit=1e4, routed_scaling_factor=1.0)),
}
FURTHER = {"deepseek4": 1, "deepseek4-dense": 0}  # layers that predict further tokens
NAMES = {
    "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_norm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_proj": "attn_kv", "self_attn.kv_norm": "attn_kv_a_norm", "self_attn.sinks": "attn_sinks",
    "self_attn.o_a_proj": "attn_output_a", "self_attn.o_b_proj": "attn_output_b", "mlp.gate": "ffn_gate_inp",
    "mlp.gate.tid2eid": "ffn_gate_tid2eid", "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
    "mlp.experts.down_proj": "ffn_down_exps", "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
    "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "norm": "output_norm",
    "embed_tokens": "token_embd", "lm_head": "output", "hc_head.hc_fn": "output_hc_fn",
    "hc_head.hc_base": "output_hc_base", "hc_head.hc_scale": "output_hc_scale",
    "compressor.indexer.q_b_proj": "indexer.attn_q_b", "compressor.indexer.scorer.weights_proj": "indexer.proj"}
PARTS = {"kv_proj": "kv", "gate_proj": "gate", "position_bias": "ape", "kv_norm": "norm"}


def random_values(name, parameter, rng, config):
    shape = tuple(parameter.shape)
    if name.endswith("tid2eid"):
        return np.stack([rng.permutation(config.n_routed_experts)[:shape[1]] for _ in range(shape[0])])
    if "position_bias" in name:
        return rng.standard_normal(shape)
    if name.endswith(("hc.fn", "hc_fn")):
        return 1.5 * rng.standard_normal(shape) / np.sqrt(shape[-1])
    return by_config.random_values(name, shape, rng)


def gguf_tensors(found):
    for name, values in found.items():
        layer = re.match(r"model\.layers\.(\d+)\.(.*)", name)
        prefix, rest = (f"blk.{layer[1]}.", layer[2]) if layer else ("", name.removeprefix("model."))
        stem = rest.removesuffix(".weight").removeprefix("self_attn.c") if "compressor" in rest else \
            rest.removesuffix(".weight")
        stem = "c" + stem if stem.startswith("ompressor") else stem
        mixer = re.fullmatch(r"(attn|ffn)_hc\.(fn|base|scale)", stem)
        entry = re.fullmatch(r"compressor\.(indexer\.)?(kv_proj|gate_proj|position_bias|kv_norm)", stem)
        if mixer:
            yield f"{prefix}hc_{mixer[1]}_{mixer[2]}.weight", values
        elif entry:
            yield f"{prefix}{'indexer' if entry[1] else 'attn'}_compressor_{PARTS[entry[2]]}.weight", values
        elif stem == "mlp.experts.gate_up_proj":
            gates, ups = np.split(values, 2, axis=1)
            yield prefix + "ffn_gate_exps.weight", gates
            yield prefix + "ffn_up_exps.weight", ups
        else:
            ours = NAMES[stem]
            yield prefix + (ours if ours.endswith(".bias") else ours + ".weight"), values


def further_tensors(config, found, layer):
    """The tensors of a layer that predicts further tokens; their values do not matter."""
    wide = np.tile(found["model.embed_tokens.weight"][:config.hidden_size], (1, 2))
    yield f"blk.{layer}.nextn.eh_proj.weight", wide
    for name in ("enorm", "hnorm", "shared_head_norm"):
        yield f"blk.{layer}.nextn.{name}.weight", found["model.norm.weight"]
    first = {name: values for name, values in found.items() if name.startswith("model.layers.0.")}
    for name, values in gguf_tensors(first):
        yield name.replace("blk.0.", f"blk.{layer}."), values


def add_metadata(writer, config, further):
    arch = "deepseek4."
    key = lambda name, value: writer.add_uint32(arch + name, value)
    layers = config.num_hidden_layers + further
    if further:
        writer.add_nextn_predict_layers(further)
    for name, value in (
            ("attention.key_length", config.head_dim), ("attention.value_length", config.head_dim),
            ("rope.dimension_count", config.qk_rope_head_dim), ("attention.q_lora_rank", config.q_lora_rank),
            ("attention.sliding_window", config.sliding_window),
            ("attention.output_group_count", config.o_groups), ("attention.output_lora_rank", config.o_lora_rank),
            ("attention.indexer.head_count", config.index_n_heads),
            ("attention.indexer.key_length", config.index_head_dim), ("attention.indexer.top_k", config.index_topk),
            ("hyper_connection.count", config.hc_mult),
            ("hyper_connection.sinkhorn_iterations", config.hc_sinkhorn_iters),
            ("hash_layer_count", config.mlp_layer_types.count("hash_moe")), ("expert_gating_func", 4),
            ("expert_count", config.n_routed_experts), ("expert_used_count", config.num_experts_per_tok),
            ("expert_shared_count", 1), ("expert_feed_forward_length", config.moe_intermediate_size)):
        key(name, value)
    writer.add_bool(arch + "expert_weights_norm", True)
    writer.add_float32(arch + "expert_weights_scale", config.routed_scaling_factor)
    writer.add_float32(arch + "hyper_connection.epsilon", config.hc_eps)
    writer.add_float32(arch + "attention.compress_rope_freq_base", config.compress_rope_theta)
    rates = {W: 0} | config.compress_rates
    writer.add_array(arch + "attention.compress_ratios", [rates[kind] for kind in config.layer_types] + [0] * further)
    if config.swiglu_limit < 100:
        for name in ("swiglu_clamp_exp", "swiglu_clamp_shexp"):
            writer.add_array(arch + name, [float(config.swiglu_limit)] * layers)
    rope = config.rope_parameters["compress"]
    if rope["rope_type"] == "yarn":
        writer.add_string(arch + "rope.scaling.type", "yarn")
        writer.add_float32(arch + "rope.scaling.factor", rope["factor"])
        writer.add_uint32(arch + "rope.scaling.original_context_length", rope["original_max_position_embeddings"])
        writer.add_float32(arch + "rope.scaling.yarn_beta_fast", rope["beta_fast"])
        writer.add_float32(arch + "rope.scaling.yarn_beta_slow", rope["beta_slow"])


def distances_of(scores, k, topk):
    best = scores.flatten(0, -2).sort(descending=True).values
    if scores.dim() != 3 or k >= best.shape[1]:
        return []
    best = best[best[:, k] > float("-inf")]
    return ((best[:, k - 1] - best[:, k]) / best[:, 0].abs()).tolist()


def write(path, name, config, found):
    further = FURTHER[name]
    layers = config.num_hidden_layers + further
    tensors = list(gguf_tensors(found))
    for layer in range(config.num_hidden_layers, layers):
        tensors += further_tensors(config, found, layer)
    tiny_chosen.write_gguf(path, "deepseek4", name, config, layers, config.rope_theta, "deepseek-v3",
                           lambda writer: add_metadata(writer, config, further), tensors)


if __name__ == "__main__":
    tiny_chosen.main(__doc__, MODELS, ("DeepseekV4Config", "DeepseekV4ForCausalLM"), random_values, distances_of, write)
