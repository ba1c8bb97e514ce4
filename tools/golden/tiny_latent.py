"""The tiny models of make_tiny_model.py whose attention is on latents: DeepSeek V2 and V3, GLM-4.7-Flash."""

import numpy as np

SIZES = dict(arch="deepseek2", eps=1e-6, dim=48, ffn=24, heads=3, head_dim=8, layers=3, dense=1, dense_ffn=56, vocab_kind="bpe")


def yarn(mscale):
    return dict(factor=40.0, beta_fast=8.0, beta_slow=1.0, mscale=mscale, mscale_all_dim=mscale,
                original_max_position_embeddings=16)


MODELS = {
    # The matrices that make keys and values are in one tensor, as in files from before 2025.
    "deepseek2-lite": dict(SIZES, hf="DeepseekV2", pre="deepseek-llm", fused=True, experts=6, experts_used=3, shared=48,
                           yarn=yarn(0.707),
                           latent=dict(rank=24, query_rank=0, plain=12, values=20, groups=None, sigmoid=False)),
    "deepseek2-v2": dict(SIZES, hf="DeepseekV2", pre="deepseek-llm", experts=8, experts_used=3, shared=24,
                         latent=dict(rank=32, query_rank=20, plain=16, values=12, groups=(4, 2), sigmoid=False)),
    "deepseek2-v3": dict(SIZES, hf="DeepseekV3", pre="deepseek-v3", experts=12, experts_used=4, shared=24, unused=1,
                         yarn=yarn(1.0),
                         latent=dict(rank=32, query_rank=20, plain=16, values=12, groups=(4, 2), sigmoid=True)),
    "glm4moelite": dict(SIZES, hf="Glm4MoeLite", pre="glm4", rope_base=1e6, experts=6, experts_used=2, shared=24,
                        unused=1,
                        latent=dict(rank=28, query_rank=24, plain=20, values=28, groups=None, sigmoid=True)),
}


def add_attention(tiny, weights, prefix, pick):
    s, dim, pick = tiny.latent, tiny.dim, 0.8 * pick
    head = s["plain"] + tiny.head_dim
    if s["query_rank"]:
        weights.matrix(prefix + "q_a_proj", (s["query_rank"], dim), 1.4)
        weights.gain(prefix + "q_a_layernorm", s["query_rank"])
        weights.matrix(prefix + "q_b_proj", (tiny.heads * head, s["query_rank"]), pick)
    else:
        weights.matrix(prefix + "q_proj", (tiny.heads * head, dim), pick)
    weights.matrix(prefix + "kv_a_proj_with_mqa", (s["rank"] + tiny.head_dim, dim), pick)
    weights.gain(prefix + "kv_a_layernorm", s["rank"])
    weights.matrix(prefix + "kv_b_proj", (tiny.heads * (s["plain"] + s["values"]), s["rank"]), pick)
    weights.matrix(prefix + "o_proj", (dim, tiny.heads * s["values"]), pick)


def attention_tensors(tiny, weights, prefix):
    """(name, values) of the GGUF file for add_attention()."""
    s = tiny.latent
    names = {"q_a_proj": "attn_q_a", "q_a_layernorm": "attn_q_a_norm", "q_b_proj": "attn_q_b", "q_proj": "attn_q",
             "kv_a_proj_with_mqa": "attn_kv_a_mqa", "kv_a_layernorm": "attn_kv_a_norm", "o_proj": "attn_output"}
    for theirs, ours in names.items():
        if prefix + theirs + ".weight" in weights.tensors:
            yield ours + ".weight", weights[prefix + theirs + ".weight"]
    both = weights[prefix + "kv_b_proj.weight"]
    if tiny.fused:
        yield "attn_kv_b.weight", both
        return
    heads = both.reshape(tiny.heads, -1, s["rank"])
    yield "attn_k_b.weight", heads[:, :s["plain"]].swapaxes(1, 2)
    yield "attn_v_b.weight", heads[:, s["plain"]:]


def add_metadata(tiny, writer):
    s = tiny.latent
    head = s["plain"] + tiny.head_dim
    writer.add_head_count_kv(tiny.heads if tiny.fused else 1)
    writer.add_kv_lora_rank(s["rank"])
    if s["query_rank"]:
        writer.add_q_lora_rank(s["query_rank"])
    if tiny.fused:
        writer.add_key_length(head)
        writer.add_value_length(s["values"])
    else:
        writer.add_key_length(s["rank"] + tiny.head_dim)
        writer.add_value_length(s["rank"])
        writer.add_key_length_mla(head)
        writer.add_value_length_mla(s["values"])
    if s["groups"]:
        writer.add_expert_group_count(s["groups"][0])
        writer.add_expert_group_used_count(s["groups"][1])


def hf_settings(tiny):
    s = tiny.latent
    count, used = s["groups"] or (1, 1)
    settings = dict(num_key_value_heads=tiny.heads, kv_lora_rank=s["rank"], q_lora_rank=s["query_rank"] or None,
                    qk_nope_head_dim=s["plain"], qk_rope_head_dim=tiny.head_dim, v_head_dim=s["values"],
                    n_group=count, topk_group=used, norm_topk_prob=s["sigmoid"],
                    topk_method="group_limited_greedy" if s["groups"] else "greedy", attention_bias=False)
    if not tiny.yarn:
        settings.update(rope_parameters=dict(rope_type="default", rope_theta=tiny.rope_base))
    if tiny.hf == "Glm4MoeLite":
        settings.update(mlp_layer_types=["dense" if i < tiny.dense else "sparse" for i in range(tiny.layers)])
    return settings
