#!/usr/bin/env python3
"""Write tiny random models whose shapes follow from a configuration of transformers, and their logits.

As make_tiny_model.py, for architectures whose layers differ much among each other: every tensor of the model
that transformers makes of a configuration is filled at random, and written as GGUF under the converter's names.

Needs numpy, gguf, torch and transformers 5.

example: make_tiny_by_config.py -o tests/golden/models
"""

import argparse
import os
import re

import gguf
import numpy as np

import make_tiny_model as tiny
import synthetic_vocab

COMMON = dict(vocab_size=tiny.VOCAB, max_position_embeddings=256, attn_implementation="eager", bos_token_id=None,
              eos_token_id=None, pad_token_id=None)
EPS = 1e-5
GEMMA = dict(hidden_size=32, num_attention_heads=4, head_dim=8, global_head_dim=16, final_logit_softcapping=4.0,
             sliding_window=6, rms_norm_eps=EPS, intermediate_size=40)
NEMOTRON = dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8, ssm_state_size=12,
                mamba_num_heads=6, mamba_head_dim=8, n_groups=2, layer_norm_epsilon=EPS, intermediate_size=40,
                # transformers keeps steps above the least in prompts, not behind them; files do not have it.
                time_step_min=1e-20)
EXPERTS = dict(n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, routed_scaling_factor=1.7,
               moe_shared_expert_intermediate_size=40)
S, F, M = "sliding_attention", "full_attention", "linear_attention"
# (architecture, prefix of the transformers classes, suffix of the configuration's, its settings)
MODELS = {
    # Layers 3 and 4 see the keys and values of 1 and 2, and have a wider FFN.
    "gemma4": ("gemma4", "Gemma4", "Text", dict(
        GEMMA, num_key_value_heads=2, layer_types=[S, S, F, S, F], num_kv_shared_layers=2, use_double_wide_mlp=True,
        hidden_size_per_layer_input=16, vocab_size_per_layer_input=tiny.VOCAB)),
    # Layers that see everything have other heads, and values made of keys.
    "gemma4-moe": ("gemma4", "Gemma4", "Text", dict(
        GEMMA, num_key_value_heads=2, num_global_key_value_heads=1, layer_types=[S, F], attention_k_eq_v=True,
        enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=24,
        hidden_size_per_layer_input=0)),
    "mamba2": ("mamba2", "Mamba2", "", dict(hidden_size=32, num_heads=8, head_dim=8, state_size=12, n_groups=1,
                                             num_hidden_layers=2, layer_norm_epsilon=EPS)),
    "nemotron-h": ("nemotron_h", "NemotronH", "", dict(NEMOTRON, layers_block_type=[M, F, "mlp", M])),
    "nemotron-h-moe": ("nemotron_h_moe", "NemotronH", "", dict(NEMOTRON, **EXPERTS,
                                                               layers_block_type=[M, "moe", F, "moe"])),
    "nemotron-h-latent": ("nemotron_h_moe", "NemotronH", "", dict(NEMOTRON, **EXPERTS, moe_latent_size=16,
                                                                  layers_block_type=[M, "moe", F])),
    "granitehybrid": ("granitehybrid", "GraniteMoeHybrid", "", dict(
        hidden_size=32, layer_types=["mamba", "attention", "mamba"], num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=24, shared_intermediate_size=40, num_local_experts=5,
        num_experts_per_tok=2, mamba_n_heads=8, mamba_d_head=8, mamba_d_state=12, mamba_n_groups=1,
        position_embedding_type="nope", rms_norm_eps=EPS, embedding_multiplier=12.0, residual_multiplier=0.5,
        attention_multiplier=0.3, logits_scaling=2.5, tie_word_embeddings=False)),
    # Layers 3 and 4 see the keys and values of 1 and 2, and have a wider FFN; those of 0 and 1 are sparse.
    "gemma3n": ("gemma3n", "Gemma3n", "Text", dict(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8, final_logit_softcapping=4.0,
        sliding_window=6, rms_norm_eps=EPS, intermediate_size=[40, 40, 40, 56, 56], layer_types=[S, S, F, S, F],
        num_kv_shared_layers=2, hidden_size_per_layer_input=16, vocab_size_per_layer_input=tiny.VOCAB,
        altup_num_inputs=4, laurel_rank=8, activation_sparsity_pattern=[0.9, 0.6, 0.0, 0.0, 0.0])),
}
# The names of tensors in transformers, without "model.layers.N.", and in the file.
NAMES = {
    "input_layernorm": "attn_norm", "norm": "attn_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm", "post_feedforward_layernorm_1": "post_ffw_norm_1",
    "post_feedforward_layernorm_2": "post_ffw_norm_2", "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm",
    "layer_scalar": "layer_output_scale.weight", "router.proj": "ffn_gate_inp", "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale", "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight", "conv1d": "ssm_conv1d", "conv1d.bias": "ssm_conv1d.bias",
    "dt_bias": "ssm_dt.bias", "A_log": "ssm_a", "D": "ssm_d", "in_proj": "ssm_in", "out_proj": "ssm_out",
    "mixer.norm": "ssm_norm", "mamba.norm": "ssm_norm", "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v",
    "o_proj": "attn_output", "up_proj": "ffn_up", "down_proj": "ffn_down", "gate": "ffn_gate_inp",
    "gate.e_score_correction_bias": "exp_probs_b.bias", "experts.up_proj": "ffn_up_exps.weight",
    "shared_experts.up_proj": "ffn_up_shexp", "shared_experts.down_proj": "ffn_down_shexp",
    "fc1_latent_proj": "ffn_latent_down", "fc2_latent_proj": "ffn_latent_up",
    "block_sparse_moe.router": "ffn_gate_inp", "block_sparse_moe.experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "block_sparse_moe.experts.down_proj": "ffn_down_exps.weight", "shared_mlp.output_linear": "ffn_down_shexp",
    "embed_tokens": "token_embd", "embeddings": "token_embd", "norm_f": "output_norm", "lm_head": "output",
    "embed_tokens_per_layer": "per_layer_token_embd", "per_layer_model_projection": "per_layer_model_proj",
    "per_layer_projection_norm": "per_layer_proj_norm", "altup.correct_output_scale": "altup_correct_scale",
    "altup.correction_coefs": "altup_correct_coef", "altup.prediction_coefs": "altup_predict_coef",
    "altup.modality_router": "altup_router", "altup.router_norm": "altup_router_norm",
    "laurel.linear_left": "laurel_l", "laurel.linear_right": "laurel_r",
    "laurel.post_laurel_norm": "laurel_post_norm"}
# Stacked in the file.
STACKED = {"altup_projections": "altup_proj", "altup_unembed_projections": "altup_unembd_proj"}


def random_values(name, shape, rng):
    if name.endswith("A_log"):
        return np.linspace(-3, 1, shape[0])
    if name.endswith(("e_score_correction_bias",)):
        return 0.3 * rng.standard_normal(shape)
    if name.endswith("layer_scalar"):
        return rng.uniform(0.5, 1.5, shape)
    if "norm" in name or name.endswith((".scale", "per_expert_scale", ".D")):
        # Scores of normed queries and keys are not divided by anything.
        return (0.6 if re.search("[qk]_norm", name) else 1) * (1 + 0.25 * rng.standard_normal(shape))
    if "modality_router" in name:  # of what is divided by the width
        return rng.standard_normal(shape) * np.sqrt(shape[-1])
    if name.endswith("_coefs.weight"):
        return 0.4 * rng.standard_normal(shape)
    if name.endswith("correct_output_scale"):
        return rng.uniform(0.5, 1.5, shape)
    if len(shape) == 1:
        return rng.standard_normal(shape)
    if "conv1d" in name:
        return rng.standard_normal(shape) * 1.5 / 2
    if name.endswith(("embed_tokens.weight", "embeddings.weight")):
        return 0.25 * rng.standard_normal(shape)
    scale = 2 if re.search("router|gate.weight|lm_head", name) else 1.4
    return rng.standard_normal(shape) * scale / np.sqrt(shape[-1])


def stacked(found):
    for ours, theirs in ((STACKED[name], name) for name in STACKED):
        parts = [found[key] for key in sorted(found) if key.startswith(f"model.{theirs}.")]
        if parts:
            yield ours + ".weight", np.stack(parts)


def gguf_tensors(arch, config, found):
    yield from stacked(found)
    for name, values in found.items():
        if name.split(".")[1] in STACKED:
            continue
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if name.endswith("A_log"):
            values = -np.exp(values)
        if "conv1d.weight" in name:
            values = values[:, 0]
        layer = re.match(r"(?:model|backbone)\.layers\.(\d+)\.(.*)", name)
        rest = layer[2] if layer else re.sub(r"^(model|backbone)\.", "", name)
        stem = rest.removesuffix(".weight")
        prefix = f"blk.{layer[1]}." if layer else ""
        if arch == "granitehybrid" and stem == "post_attention_layernorm":
            ours = "ffn_norm"
        elif stem == "post_attention_layernorm":
            ours = "post_attention_norm"
        elif stem == "shared_mlp.input_linear":
            gate, up = np.split(values, 2)
            yield prefix + "ffn_gate_shexp.weight", gate
            yield prefix + "ffn_up_shexp.weight", up
            continue
        elif not layer and stem == "norm":
            ours = "output_norm"
        else:
            ours = NAMES.get(stem) or NAMES[re.sub(r"^(mixer|mamba)\.", "", stem)]
        if arch == "granitehybrid" and ours in ("attn_q", "attn_k"):
            heads = config.num_attention_heads if ours == "attn_q" else config.num_key_value_heads
            values = tiny.pair_order(values, heads)
        yield prefix + (ours if "." in ours or ours in ("ssm_a", "ssm_d") else ours + ".weight"), values
    if arch == "gemma4":
        dims = config.per_layer_config["full_attention"].head_dim
        pairs = np.full(dims // 2, 1e30, dtype=np.float32)
        pairs[:dims // 8] = 1
        yield "rope_freqs.weight", pairs


def add_gemma_metadata(writer, config):
    kinds = config.layer_types
    layer_configs = [config.per_layer_config[i] for i in range(len(kinds))]
    writer.add_head_count_kv([c.num_key_value_heads for c in layer_configs])
    first = len(kinds) - config.num_kv_shared_layers
    wide = 2 if config.use_double_wide_mlp else 1
    writer.add_feed_forward_length([config.intermediate_size * (wide if i >= first else 1)
                                    for i in range(len(kinds))])
    for add, size in ((writer.add_key_length, 16), (writer.add_value_length, 16), (writer.add_key_length_swa, 8),
                      (writer.add_value_length_swa, 8), (writer.add_rope_dimension_count, 16),
                      (writer.add_rope_dimension_count_swa, 8)):
        add(size)
    writer.add_rope_freq_base(1e6)
    writer.add_rope_freq_base_swa(1e4)
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern([kind == S for kind in kinds])
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if config.enable_moe_block:
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.top_k_experts)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)


def add_gemma3n_metadata(writer, config):
    import torch

    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_freq_base(1e6)
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern([kind == S for kind in config.layer_types])
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    writer.add_final_logit_softcapping(config.final_logit_softcapping)
    writer.add_altup_active_idx(config.altup_active_idx)
    writer.add_altup_num_inputs(config.altup_num_inputs)
    chances = torch.tensor(config.activation_sparsity_pattern)
    writer.add_activation_sparsity_scale(torch.distributions.normal.Normal(0, 1).icdf(chances).tolist())


def add_ssm_metadata(writer, heads, head_dim, state, groups):
    writer.add_ssm_conv_kernel(4)
    writer.add_ssm_state_size(state)
    writer.add_ssm_group_count(groups)
    writer.add_ssm_time_step_rank(heads)
    writer.add_ssm_inner_size(heads * head_dim)


def add_nemotron_metadata(writer, config):
    kinds, moe = config.layers_block_type, config.moe_intermediate_size
    add_ssm_metadata(writer, config.mamba_num_heads, config.mamba_head_dim, config.ssm_state_size, config.n_groups)
    writer.add_head_count_kv([config.num_key_value_heads if kind == F else 0 for kind in kinds])
    writer.add_feed_forward_length([{"mlp": config.intermediate_size, "moe": moe}.get(kind, 0) for kind in kinds])
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_eps(EPS)
    if "moe" not in kinds:
        return
    writer.add_expert_count(config.n_routed_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_feed_forward_length(moe)
    writer.add_expert_shared_count(1)
    writer.add_expert_shared_feed_forward_length(config.moe_shared_expert_intermediate_size)
    writer.add_expert_weights_norm(True)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    if config.moe_latent_size:
        writer.add_moe_latent_size(config.moe_latent_size)


def add_granite_metadata(writer, config):
    add_ssm_metadata(writer, config.mamba_n_heads, config.mamba_d_head, config.mamba_d_state, config.mamba_n_groups)
    writer.add_head_count_kv([config.num_key_value_heads if kind == "attention" else 0 for kind in
                              ["mamba", "attention", "mamba"]])
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_expert_count(config.num_local_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)
    writer.add_embedding_scale(config.embedding_multiplier)
    writer.add_residual_scale(config.residual_multiplier)
    writer.add_attention_scale(config.attention_multiplier)
    writer.add_logit_scale(config.logits_scaling)
    writer.add_rope_scaling_finetuned(False)


def write_gguf(path, name, arch, config, found):
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name(f"tiny random {name}")
    writer.add_file_type(0)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(256)
    writer.add_embedding_length(config.hidden_size)
    writer.add_vocab_size(tiny.VOCAB)
    if arch != "mamba2":
        writer.add_head_count(config.num_attention_heads)
    if not arch.startswith("nemotron"):
        writer.add_layer_norm_rms_eps(EPS)
    if arch == "gemma4":
        add_gemma_metadata(writer, config)
    elif arch == "gemma3n":
        add_gemma3n_metadata(writer, config)
    elif arch == "mamba2":
        writer.add_head_count(0)
        writer.add_feed_forward_length(0)
        add_ssm_metadata(writer, config.num_heads, config.head_dim, config.state_size, config.n_groups)
    elif arch == "granitehybrid":
        add_granite_metadata(writer, config)
    else:
        add_nemotron_metadata(writer, config)
    synthetic_vocab.add_to(writer, "spm", tiny.VOCAB, "")
    for tensor, values in gguf_tensors(arch, config, found):
        writer.add_tensor(tensor, np.ascontiguousarray(values, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    import torch
    import transformers

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="made when it does not exist")
    parser.add_argument("--only", nargs="+", choices=MODELS, metavar="MODEL", help=f"of {', '.join(MODELS)}")
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    tokens = torch.tensor([tiny.test_tokens(tiny.SEED)])
    for index, (name, (arch, prefix, suffix, settings)) in enumerate(MODELS.items()):
        if options.only and name not in options.only:
            continue
        if arch.startswith("gemma"):
            settings = dict(settings, num_hidden_layers=len(settings["layer_types"]))
        config = getattr(transformers, prefix + suffix + "Config")(**COMMON, **settings)
        model = getattr(transformers, prefix + "ForCausalLM")(config).float().eval()
        rng = np.random.default_rng([tiny.SEED, 100 + index])
        found = {}
        for key, parameter in model.state_dict().items():
            if key == "lm_head.weight" and config.tie_word_embeddings:
                continue
            found[key] = random_values(key, tuple(parameter.shape), rng).astype(np.float32)
            parameter.copy_(torch.from_numpy(found[key]))
        path = os.path.join(options.output, name + ".gguf")
        write_gguf(path, name, arch, config, found)
        with torch.no_grad():
            logits = model(tokens).logits[0].float().numpy()
        np.save(os.path.join(options.output, name + ".npy"), logits)
        print(f"{path}: {os.path.getsize(path) / 1e3:.0f} kB, logits {logits.std():.2f} around {logits.mean():.2f}")


if __name__ == "__main__":
    main()
