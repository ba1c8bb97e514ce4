"""The tiny models of make_tiny_model.py whose layers keep states: LFM2's short convolutions, and the gated delta rule
of Qwen3.5 and Qwen3-Next. Tensors are made with the names and the order of the published checkpoints."""

import numpy as np

LFM2_NAMES = {"self_attn.o_proj": "self_attn.out_proj", "self_attn.q_norm": "self_attn.q_layernorm",
              "self_attn.k_norm": "self_attn.k_layernorm", "input_layernorm": "operator_norm",
              "post_attention_layernorm": "ffn_norm", "model.norm.": "model.embedding_norm.",
              "mlp.gate.e_score_correction_bias": "feed_forward.expert_bias", "mlp.gate_proj": "feed_forward.w1",
              "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2", "mlp.": "feed_forward."}


def sizes(tiny):
    """(heads of keys, heads of values, all of keys, all of values)."""
    keys, values = tiny.delta["key_heads"], tiny.delta["heads"]
    return keys, values, keys * tiny.delta["key_dim"], values * tiny.delta["value_dim"]


def add_mixer(tiny, weights, prefix):
    """The tensors that a layer with a state has in place of attention."""
    if not tiny.delta:
        weights.matrix(prefix + ".conv.in_proj", (3 * tiny.dim, tiny.dim), 1.4)
        weights.matrix(prefix + ".conv.conv", (tiny.dim, tiny.taps), 1.5)
        weights.matrix(prefix + ".conv.out_proj", (tiny.dim, tiny.dim), 1.4)
        return
    mixer, (_, heads, keys, values) = prefix + ".linear_attn.", sizes(tiny)
    weights.matrix(mixer + "in_proj_qkv", (2 * keys + values, tiny.dim), 1.4)
    weights.matrix(mixer + "in_proj_z", (values, tiny.dim), 1.4)
    weights.matrix(mixer + "in_proj_b", (heads, tiny.dim), 2)
    weights.matrix(mixer + "in_proj_a", (heads, tiny.dim), 2)
    weights.matrix(mixer + "conv1d", (2 * keys + values, tiny.taps), 1.5)
    weights.vector(mixer + "dt_bias", heads, 1)
    # Half of the states of a head lasts from less than a token to some dozens.
    weights.tensors[mixer + "A_log"] = np.linspace(-3, 1, heads).astype(np.float32)
    weights.gain(mixer + "norm", tiny.delta["value_dim"])
    weights.matrix(mixer + "out_proj", (tiny.dim, values), 1.4)


def by_key_head(tiny, parts):
    """Rows of several matrices grouped by the head of keys that they belong to."""
    keys = sizes(tiny)[0]
    return np.concatenate([part.reshape(keys, -1, part.shape[-1]) for part in parts], axis=1).reshape(
        -1, parts[0].shape[-1])


def in_turns(tiny, values, width=1):
    """Rows of the heads of values, `width` each, reordered so that those of one head of keys stand apart."""
    keys, heads, _, _ = sizes(tiny)
    return values.reshape(keys, heads // keys, width, -1).swapaxes(0, 1).reshape(values.shape)


def mixer_tensors(tiny, weights, prefix):
    """(name, values) of the GGUF file for add_mixer()."""
    if not tiny.delta:
        for name in ("in_proj", "conv", "out_proj"):
            yield f"shortconv.{name}.weight", weights[f"{prefix}conv.{name}.weight"]
        return
    mixer, (_, _, keys, _), dim = prefix + "linear_attn.", sizes(tiny), tiny.delta["value_dim"]
    names = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "conv1d", "out_proj")
    qkv, z, beta, alpha, taps, out = (weights[f"{mixer}{name}.weight"] for name in names)
    a, dt = -np.exp(weights[mixer + "A_log"]), weights[mixer + "dt_bias"]
    if tiny.arch != "qwen3next":
        qkv, taps = (np.concatenate([x[:2 * keys], in_turns(tiny, x[2 * keys:], dim)]) for x in (qkv, taps))
        z, beta, alpha = in_turns(tiny, z, dim), in_turns(tiny, beta), in_turns(tiny, alpha)
        a, dt = in_turns(tiny, a), in_turns(tiny, dt)
        out = in_turns(tiny, np.ascontiguousarray(out.T), dim).T
        yield "ssm_beta.weight", beta
        yield "ssm_alpha.weight", alpha
    else:
        yield "ssm_ba.weight", by_key_head(tiny, [beta, alpha])
    if tiny.fused:
        yield "ssm_in.weight", by_key_head(tiny, [qkv[:keys], qkv[keys:2 * keys], qkv[2 * keys:], z])
    else:
        yield "attn_qkv.weight", qkv
        yield "attn_gate.weight", z
    yield "ssm_conv1d.weight", taps
    yield "ssm_dt.bias", dt
    yield "ssm_a", a
    yield "ssm_norm.weight", weights[mixer + "norm.weight"]
    yield "ssm_out.weight", out


def add_metadata(tiny, writer):
    if not tiny.delta:
        writer.add_shortconv_l_cache(tiny.taps)
        writer.add_head_count_kv([tiny.kv_heads if kind == "a" else 0 for kind in tiny.kinds])
        return
    keys, heads, _, values = sizes(tiny)
    writer.add_head_count_kv(tiny.kv_heads)
    writer.add_ssm_conv_kernel(tiny.taps)
    writer.add_ssm_state_size(tiny.delta["key_dim"])
    writer.add_ssm_group_count(keys)
    writer.add_ssm_time_step_rank(heads)
    writer.add_ssm_inner_size(values)
    writer.add_uint32(f"{tiny.arch}.full_attention_interval", tiny.kinds.index("a") + 1)
    if tiny.unused:
        writer.add_nextn_predict_layers(tiny.unused)
    if tiny.shared:
        writer.add_expert_shared_feed_forward_length(tiny.shared)


def hf_settings(tiny):
    """The configuration for transformers, besides the settings that other models have."""
    attends = ["full_attention" if kind == "a" else "linear_attention" if tiny.delta else "conv"
               for kind in tiny.kinds]
    settings = dict(layer_types=attends)
    if not tiny.delta:
        settings.update(norm_eps=tiny.eps, conv_L_cache=tiny.taps, block_auto_adjust_ff_dim=False,
                        rope_parameters=dict(rope_type="default", rope_theta=tiny.rope_base))
    else:
        rope = dict(rope_type="default", rope_theta=tiny.rope_base, partial_rotary_factor=tiny.rotary)
        if tiny.arch != "qwen3next":
            rope.update(mrope_section=[2, 1, 1], mrope_interleaved=True)
        settings.update(rope_parameters=rope, linear_conv_kernel_dim=tiny.taps,
                        linear_key_head_dim=tiny.delta["key_dim"], linear_value_head_dim=tiny.delta["value_dim"],
                        linear_num_key_heads=tiny.delta["key_heads"], linear_num_value_heads=tiny.delta["heads"])
    if tiny.experts:
        settings.update(num_experts=tiny.experts, num_experts_per_tok=tiny.experts_used, norm_topk_prob=True,
                        moe_intermediate_size=tiny.ffn, intermediate_size=tiny.dense_ffn or tiny.ffn,
                        num_dense_layers=tiny.dense, shared_expert_intermediate_size=tiny.shared)
    return settings


def hf_tensors(tiny, found):
    """The checkpoint's tensors by the names and in the shapes of transformers' modules."""
    out = {}
    for name, values in found.items():
        if name.endswith(("conv.conv.weight", "conv1d.weight")):
            values = values[:, None, :]
        if tiny.delta and "norm" in name and "linear_attn" not in name:
            values = values - 1
        for ours, theirs in ({} if tiny.delta else LFM2_NAMES).items():
            name = name.replace(ours, theirs)
        out[name.replace("mlp.shared_experts.", "mlp.shared_expert.")] = values
    for name in [name for name in out if name.endswith("in_proj_qkv.weight")]:
        mixer = name.removesuffix("in_proj_qkv.weight")
        qkv, z, b, a = (out[f"{mixer}in_proj_{part}.weight"] for part in ("qkv", "z", "b", "a"))
        keys = sizes(tiny)[2]
        out[mixer + "in_proj_qkvz.weight"] = by_key_head(tiny, [qkv[:keys], qkv[keys:2 * keys], qkv[2 * keys:], z])
        out[mixer + "in_proj_ba.weight"] = by_key_head(tiny, [b, a])
    return out
