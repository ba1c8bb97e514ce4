#!/usr/bin/env python3
"""Write tiny random models with experts or gated attention, through llama.cpp's converter, and their logits.

As make_tiny_by_config.py: every tensor of the model that transformers makes of a configuration is filled at
random. Here it is saved as a checkpoint and converted by the converter of llama.cpp itself, so that keys and
tensors are what published files have; only the vocabulary is made up. MODELS says for each what its checkpoint
is called where transformers saves it in another way than it was published.

Needs numpy, torch, safetensors, transformers 5, and the folder of llama.cpp that has the package `conversion`,
whose gguf package has to come first.

example: PYTHONPATH=llama.cpp/gguf-py tiny_mixtures.py --converter llama.cpp -o tests/golden/models
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import sys
import tempfile

import numpy as np

import make_tiny_model as tiny
import synthetic_vocab

EPS = 1e-5
S, F = "sliding_attention", "full_attention"
COMMON = dict(vocab_size=tiny.VOCAB, hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
              max_position_embeddings=256, rms_norm_eps=EPS, tie_word_embeddings=False, bos_token_id=None,
              eos_token_id=None, pad_token_id=None)
SMALL_VISION = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
SEES = re.compile("vision|visual|vit_large|projector")


@dataclasses.dataclass(frozen=True)
class Tiny:
    hf: str  # prefix of the transformers classes
    settings: dict  # of its configuration
    text: str = ""  # suffix of the configuration's class
    vision: dict = None  # it is part of a model that sees: that part's
    centred: str = "$^"  # norms whose weights are stored less one
    # Differences of the published config.json; with `architectures`, it is that of the text alone. None: no
    # differences.
    published: dict = dataclasses.field(default_factory=dict)
    names: tuple = ()  # (pattern, replacement) of tensors
    fused: bool = False  # q, k and v in one tensor
    transposed: bool = False  # experts are published the other way round
    keys: dict = dataclasses.field(default_factory=dict)  # of attention, that this form's converter leaves out
    further: str = ""  # a tensor of a layer that predicts further tokens


YARN = dict(rope_type="yarn", rope_theta=5e5, factor=4.0, original_max_position_embeddings=64, beta_fast=8.0,
            beta_slow=1.0, partial_rotary_factor=0.5)
LLAMA3 = dict(rope_type="llama3", factor=2.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
LONG, SHORT = (1.1 * 1.35 ** np.arange(6)).tolist(), (1 + 0.05 * np.arange(6)).tolist()
# The magnitude that the converter computes from the two lengths of context.
LONG_MAGNITUDE = math.sqrt(1 + math.log(256 / 24) / math.log(24))
LONGROPE = dict(rope_type="longrope", rope_theta=1e4, long_factor=LONG, short_factor=SHORT, long_mscale=LONG_MAGNITUDE,
                short_mscale=LONG_MAGNITUDE, original_max_position_embeddings=24)
MOE = dict(intermediate_size=56, num_experts_per_tok=2, moe_intermediate_size=24)
MODELS = {
    # Windows of 6, and the fourth layer, which sees everything without rope.
    "muse-glimmer": Tiny("MuseGlimmer", dict(
        num_hidden_layers=4, intermediate_size=40, sliding_window=6, final_logit_softcapping=4.0,
        output_multiplier=0.7, qk_scale_factor=2.5, post_norm_eps=1e-8),
        vision=SMALL_VISION, centred=r"layers.*layernorm.weight$"),
    # More heads in layers with windows, which have another rope, and gates for whole heads.
    "laguna": Tiny("Laguna", dict(
        MOE, num_hidden_layers=5, num_attention_heads_per_layer=[4, 6, 6, 6, 4], layer_types=[F, S, S, S, F],
        sliding_window=6, num_experts=4, shared_expert_intermediate_size=40, moe_routed_scaling_factor=1.7,
        rope_parameters={F: YARN, S: dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=1.0)})),
    # Gates for elements, no windows.
    "laguna-m": Tiny("Laguna", dict(
        MOE, num_hidden_layers=2, gating="per-element", sliding_window=0, num_experts=5,
        shared_expert_intermediate_size=24, rope_parameters={F: dict(YARN, partial_rotary_factor=1.0)})),
    # More heads in layers with windows, half a head turned in the others, limits of gate and up that are met.
    "step35": Tiny("Step3p7", dict(
        MOE, pad_token_id=1, num_hidden_layers=4, layer_types=[F, S, S, F], sliding_window=6,
        num_sliding_attention_heads=6, n_routed_experts=4, share_expert_dim=40, moe_router_scaling_factor=1.7, moe_layers_enum="1,2,3",
        swiglu_limits=[0, 0, 0.5, 0.7], swiglu_limits_shared=[0, 0.6, 0, 0.4], rope_theta=[1e6, 1e4, 1e4, 1e6],
        partial_rotary_factors=[0.5, 1.0, 1.0, 0.5], rope_scaling=LLAMA3),
        vision=SMALL_VISION, centred=r"norm.weight$", published=dict(
            architectures=["Step3p5ForCausalLM"], model_type="published", num_attention_groups=2,
            moe_num_experts=4, moe_top_k=2,
            attention_other_setting=dict(num_attention_heads=6), moe_layers_enum="1,2,3", norm_expert_weight=True,
            rope_theta=[1e6, 1e4, 1e4, 1e6], partial_rotary_factors=[0.5, 1.0, 1.0, 0.5], rope_scaling=LLAMA3,
            rope_parameters=None, num_nextn_predict_layers=1), further="model.layers.4.eh_proj.weight"),
    "afmoe": Tiny("Afmoe", dict(
        MOE, num_hidden_layers=4, layer_types=[S, S, S, F], sliding_window=6, num_experts=5, num_shared_experts=2,
        num_dense_layers=1, route_scale=1.7, mup_enabled=True), published=dict(
            score_func="sigmoid", route_norm=True)),
    "minimax-m2": Tiny("MiniMaxM2", dict(
        num_hidden_layers=2, intermediate_size=24, num_experts_per_tok=3, num_local_experts=6,
        rope_parameters=dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.5)),
        published=dict(rotary_dim=6, scoring_func="sigmoid")),
    "qwen2moe": Tiny("Qwen2Moe", dict(
        MOE, hidden_size=48, num_hidden_layers=2, num_experts=5, shared_expert_intermediate_size=40)),
    "qwen3vlmoe": Tiny("Qwen3VLMoe", dict(
        MOE, num_hidden_layers=2, num_experts=5, rope_parameters=dict(
            rope_type="default", rope_theta=1e6, mrope_section=[2, 2, 2], mrope_interleaved=True)),
        vision=dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=32,
                    deepstack_visual_indexes=[0]), transposed=True),
    "olmoe": Tiny("Olmoe", dict(num_hidden_layers=2, hidden_size=48, num_key_value_heads=4, intermediate_size=24,
                                num_experts=6, num_experts_per_tok=3)),
    "dots1": Tiny("Dots1", dict(
        MOE, num_hidden_layers=3, num_key_value_heads=4, n_routed_experts=5, n_shared_experts=2,
        first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.7, sliding_window=None),
        published=dict(scoring_func="sigmoid")),
    # transformers has the same decoder under another name.
    "bailingmoe2": Tiny("Glm4Moe", dict(
        MOE, hidden_size=48, num_hidden_layers=3, n_routed_experts=8, n_shared_experts=1, first_k_dense_replace=1,
        n_group=4, topk_group=2, num_experts_per_tok=3, norm_topk_prob=True, routed_scaling_factor=1.7,
        use_qk_norm=True, rope_parameters=dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.5)),
        published=dict(architectures=["BailingMoeV2ForCausalLM"], model_type="published", num_experts=8,
                       num_shared_experts=1, score_function="sigmoid", partial_rotary_factor=0.5,
                       num_nextn_predict_layers=0),
        names=(("embed_tokens", "word_embeddings"), ("self_attn.o_proj", "attention.dense"),
               ("self_attn.(q|k)_norm", r"attention.\1_layernorm"), ("q_layernorm", "query_layernorm"),
               ("k_layernorm", "key_layernorm"), ("e_score_correction_bias", "expert_bias"),
               ("self_attn", "attention")), fused=True),
    "hunyuan-moe": Tiny("HunYuanMoEV1", dict(
        num_hidden_layers=2, intermediate_size=24, num_experts=5, moe_topk=2, pad_token_id=0),
        published=dict(moe_intermediate_size=[24, 24], moe_topk=[2, 2], num_shared_expert=[1, 1])),
    # Experts in every other layer behind the first.
    "ernie4_5-moe": Tiny("Ernie4_5_Moe", dict(
        num_hidden_layers=4, intermediate_size=96, hidden_size=48, moe_intermediate_size=24,
        moe_k=2, moe_num_experts=5, moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_interval=2,
        pad_token_id=0, tie_word_embeddings=True)),
    # Queries grow every 9 tokens.
    "mistral4": Tiny("Mistral4", dict(
        MOE, num_hidden_layers=2, num_key_value_heads=4, head_dim=20, n_routed_experts=5, n_shared_experts=1,
        q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=20, pad_token_id=11,
        rms_norm_eps=1e-6, rope_parameters=dict(
            rope_type="yarn", rope_theta=1e4, factor=16.0, beta_fast=8.0, beta_slow=1.0, mscale=1.0,
            mscale_all_dim=1.0, original_max_position_embeddings=9, llama_4_scaling_beta=0.1)),
        published=dict(architectures=["Mistral3ForConditionalGeneration"]),
        keys=dict(temperature_scale=0.1, temperature_length=9)),
    # The fourth layer has no rope, and every other has experts.
    "llama4": Tiny("Llama4", dict(
        intermediate_size=24, intermediate_size_mlp=56, num_hidden_layers=4, num_local_experts=5,
        interleave_moe_layer_step=2, rope_parameters=dict(LLAMA3, rope_theta=5e5)), text="Text"),
    # Chunks of 9, of which 37 tokens have four and a part.
    "llama4-chunks": Tiny("Llama4", dict(
        intermediate_size=24, intermediate_size_mlp=40, num_hidden_layers=4, num_local_experts=3,
        interleave_moe_layer_step=4, attention_chunk_size=9, rope_parameters=dict(LLAMA3, rope_theta=5e5)),
        text="Text", keys=dict(sliding_window=9)),
    # transformers takes the short factors whatever the length, so that here they are the long ones, too.
    "phimoe": Tiny("Phimoe", dict(
        hidden_size=36, num_attention_heads=3, num_key_value_heads=1, num_hidden_layers=2, intermediate_size=24,
        num_local_experts=6, num_experts_per_tok=2, attention_bias=True, lm_head_bias=True, sliding_window=None,
        rope_parameters=dict(LONGROPE, short_factor=LONG)),
        published=dict(architectures=["PhiMoEForCausalLM"], rope_parameters=LONGROPE)),
    # A dense layer with rope and no window, experts behind it, of which the last sees everything without rope.
    "cohere2moe": Tiny("Cohere2Moe", dict(
        num_attention_heads=3, num_key_value_heads=1, num_hidden_layers=5, intermediate_size=16,
        prefix_dense_intermediate_size=40, num_experts=4, num_experts_per_tok=2, num_shared_experts=2,
        expert_selection_fn="sigmoid", first_k_dense_replace=1, sliding_window=6, logit_scale=1.5,
        rms_norm_eps=None, tie_word_embeddings=True)),
    # State spaces in two groups beside attention, and each of the factors.
    "falcon-h1": Tiny("FalconH1", dict(
        num_hidden_layers=2, intermediate_size=40, mamba_d_ssm=48, mamba_n_heads=6, mamba_d_head=8,
        mamba_n_groups=2, mamba_d_state=12, mamba_rms_norm=True, mamba_norm_before_gate=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), lm_head_multiplier=0.7,
        embedding_multiplier=1.6, mlp_multipliers=[0.8, 1.3], key_multiplier=0.6, attention_out_multiplier=0.9,
        attention_in_multiplier=1.2, ssm_multipliers=[0.5, 1.2, 0.9, 1.1, 0.7], ssm_in_multiplier=1.25,
        ssm_out_multiplier=0.4)),
}


def random_values(name, shape, one, rng):
    """`one`: what a gain is stored as when it is one."""
    if name.endswith(("e_score_correction_bias", "expert_bias", "router_bias")):
        return 0.3 * rng.standard_normal(shape)
    if "norm" in name:
        return one + 0.25 * rng.standard_normal(shape)
    if len(shape) == 1:
        return rng.standard_normal(shape)
    if name.endswith(("embed_tokens.weight", "word_embeddings.weight")):
        return rng.standard_normal(shape)
    scale = 2 if re.search(r"router|gate\.w|shared_expert_gate|lm_head", name) else 1.4
    return rng.standard_normal(shape) * scale / np.sqrt(shape[-1])


def make_model(one, transformers):
    """The transformers model with its values, and its configuration."""
    if one.vision is None:
        config = getattr(transformers, one.hf + one.text + "Config")(**{**COMMON, **one.settings})
        kind = "ForCausalLM"
    else:
        text = getattr(transformers, one.hf + "TextConfig")(**{**COMMON, **one.settings})
        config = getattr(transformers, one.hf + "Config")(text_config=text.to_dict(), vision_config=one.vision,
                                                          tie_word_embeddings=False)
        kind = "ForConditionalGeneration"
    config._attn_implementation = "eager"
    return getattr(transformers, one.hf + kind)(config).float().eval()


def fill(model, one, rng):
    import torch

    for name, parameter in model.state_dict().items():
        if parameter.is_floating_point() and not SEES.search(name):
            centre = 0.0 if re.search(one.centred, name) else 1.0
            values = random_values(name, tuple(parameter.shape), centre, rng)
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))


def published_tensors(one, tensors):
    found = {}
    for name, values in tensors.items():
        if SEES.search(name):
            continue
        for pattern, replacement in one.names:
            name = re.sub(pattern, replacement, name)
        found[name] = values.mT.contiguous() if one.transposed and ".experts." in name else values
    if one.further:
        found[one.further] = found["model.embed_tokens.weight"].clone()
    if one.fused:
        import torch

        for name in [n for n in found if n.endswith("q_proj.weight")]:
            parts = [found.pop(name.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj")]
            found[name.replace("q_proj", "query_key_value")] = torch.cat(parts)
    return found


def convert(folder, path, name, one):
    import gguf
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class

    hparams = ModelBase.load_hparams(folder, False)
    kind = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    made = kind(folder, gguf.LlamaFileType.ALL_F32, pathlib.Path(path), model_name=f"tiny random {name}")
    made = getattr(made, "impl", made)

    def set_vocab():
        synthetic_vocab.add_to(made.gguf_writer, "spm", tiny.VOCAB)
        for key, value in one.keys.items():
            add = made.gguf_writer.add_uint32 if isinstance(value, int) else made.gguf_writer.add_float32
            add(f"{made.gguf_writer.arch}.attention.{key}", value)

    made.set_vocab = set_vocab
    made.write()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="made when it does not exist")
    parser.add_argument("--converter", required=True, metavar="FOLDER", help="where llama.cpp's `conversion` is")
    parser.add_argument("--only", nargs="+", choices=MODELS, metavar="MODEL", help=f"of {', '.join(MODELS)}")
    options = parser.parse_args()
    sys.path.insert(1, options.converter)
    import safetensors.torch
    import torch
    import transformers

    os.makedirs(options.output, exist_ok=True)
    tokens = torch.tensor([tiny.test_tokens(tiny.SEED)])
    for index, (name, one) in enumerate(MODELS.items()):
        if options.only and name not in options.only:
            continue
        model = make_model(one, transformers)
        fill(model, one, np.random.default_rng([tiny.SEED, 200 + index]))
        with torch.no_grad():
            logits = model(tokens).logits[0].float().numpy()
        path = os.path.join(options.output, name + ".gguf")
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            stored = os.path.join(folder, "model.safetensors")
            safetensors.torch.save_file(published_tensors(one, safetensors.torch.load_file(stored)), stored)
            with open(os.path.join(folder, "config.json"), "r+", encoding="utf-8") as file:
                config = json.load(file)
                if "architectures" in one.published:
                    config.update(config.pop("text_config", {}))
                config = {k: v for k, v in {**config, **one.published}.items() if v is not None}
                file.seek(0)
                json.dump(config, file)
                file.truncate()
            convert(pathlib.Path(folder), path, name, one)
        np.save(os.path.join(options.output, name + ".npy"), logits)
        print(f"{path}: {os.path.getsize(path) / 1e3:.0f} kB, logits {logits.std():.2f} around {logits.mean():.2f}")


if __name__ == "__main__":
    main()
