#!/usr/bin/env python3
"""Write tiny random models of dense architectures, and the logits that transformers computes for them.

As make_tiny_by_config.py, but the names of tensors are those of the gguf package's table, and the keys
beside those that all have stand in MODELS. What transformers does not have is made of a class that computes
the same: MiniCPM is Granite, whose factors are written out. Falcon's gelu is that by tanh, as runners of GGUF
have it, where checkpoints ask for the exact one.

Needs numpy, gguf, torch and transformers 5.

example: tiny_dense.py -o tests/golden/models
"""

import argparse
import math
import os
import re
from dataclasses import dataclass, field

import gguf
import numpy as np

import make_tiny_by_config as by_config
import make_tiny_model as tiny
import synthetic_vocab

CONTEXT = 256
EPS = 1e-5
S, F = "sliding_attention", "full_attention"


def rope(base=10000.0, **scaling):
    return dict(dict(rope_type="default", rope_theta=base), **scaling)


def sizes(layers=2, heads=3, kv_heads=1, head_dim=16, dim=48, ffn=68, tied=False, **more):
    return dict(num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim,
                hidden_size=dim, intermediate_size=ffn, tie_word_embeddings=tied, rms_norm_eps=EPS,
                **dict(dict(rope_parameters=rope()), **more))


def yarn(factor, base):
    return rope(base, rope_type="yarn", factor=factor, beta_fast=8.0, beta_slow=1.0,
                original_max_position_embeddings=16)


def yarn_keys(factor):
    return {"rope.scaling.type": "yarn", "rope.scaling.factor": factor, "rope.scaling.yarn_beta_fast": 8.0,
            "rope.scaling.yarn_beta_slow": 1.0, "rope.scaling.original_context_length": 16}


@dataclass(frozen=True)
class Model:
    arch: str  # general.architecture
    hf: str  # prefix of the transformers classes
    settings: dict  # of the configuration
    keys: dict = field(default_factory=dict)  # of the file, without "<arch>."
    names: str = ""  # the architecture whose table of names is taken; empty: arch
    pre: str = "llama-bpe"
    base: float = 10000.0  # of the rope, in the file
    pairs: bool = False  # the converter makes pairs of halves of q and k
    tensors: dict = field(default_factory=dict)  # of the file, made in another way
    layer_norms: bool = False  # not those of root mean squares
    fused: str = ""  # how falcon has q, k and v in one


LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
GRANITE = dict(embedding_multiplier=12.0, residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=2.5)
GRANITE_KEYS = {"embedding_scale": 12.0, "residual_scale": 0.4, "attention.scale": 0.2, "logit_scale": 2.5}
# Windows on the middle layers; the first layer has no rope.
GRANITE_SWA = dict(GRANITE, layer_types=[F, S, S, F], sliding_window=6, layer_rope_theta=[0, 1e4, 1e4, 1e4])
GRANITE_SWA_KEYS = {**GRANITE_KEYS, "attention.sliding_window": 6,
                    "attention.sliding_window_pattern": [False, True, True, False],
                    "attention.rope_pattern": [False, True, True, True]}
LONG, SHORT = (1.1 * 1.35 ** np.arange(8)).tolist(), (1 + 0.05 * np.arange(8)).tolist()
HUNYUAN_ALPHA = 50.0

MODELS = {
    "smollm3": Model("smollm3", "SmolLM3", sizes(5, tied=True), pairs=True),
    "ernie4_5": Model("ernie4_5", "Ernie4_5", sizes(head_dim=24, tied=True)),
    "arcee": Model("arcee", "Arcee", sizes(rope_parameters=yarn(20.0, 1e4)), yarn_keys(20.0), pairs=True),
    "qwen2vl": Model("qwen2vl", "Qwen2VLText", sizes(rope_parameters=rope(1e6, mrope_section=[2, 3, 3])),
                     {"rope.dimension_sections": [2, 3, 3, 0]}, pre="qwen2", base=1e6),
    "qwen3vl": Model("qwen3vl", "Qwen3VLText",
                     sizes(head_dim=24, rope_parameters=rope(1e6, mrope_section=[4, 4, 4], mrope_interleaved=True)),
                     {"rope.dimension_sections": [4, 4, 4, 0]}, pre="qwen2", base=1e6),
    "seed-oss": Model("seed_oss", "SeedOss", sizes(head_dim=24, attention_bias=True, attention_out_bias=False),
                      pre="seed-coder"),
    "olmo2": Model("olmo2", "Olmo2", sizes(heads=4, kv_heads=2, dim=64, rope_parameters=rope(5e5)), pre="dbrx",
                   base=5e5),
    "olmo3": Model("olmo2", "Olmo3", sizes(5, layer_types=[S, S, S, F, S], sliding_window=6, rope_parameters={
        F: yarn(8.0, 5e5), S: rope(5e5)}), {"attention.sliding_window": 6, **yarn_keys(8.0)}, pre="dbrx", base=5e5),
    "hunyuan-dense": Model("hunyuan-dense", "HunYuanDenseV1",
                           sizes(head_dim=24, tied=True, rope_parameters=rope(
                               rope_type="dynamic", alpha=HUNYUAN_ALPHA, factor=1.0)),
                           pre="hunyuan-dense", base=1e4 * HUNYUAN_ALPHA ** (24 / 22)),
    "exaone4": Model("exaone4", "Exaone4", sizes(5, layer_types=[S, S, S, F, S], sliding_window=6,
                                                 rope_parameters=rope(1e6)),
                     {"attention.sliding_window": 6,
                      "attention.sliding_window_pattern": [True, True, True, False, True]}, pre="exaone4", base=1e6),
    # The pattern is that of 64 layers, as the file has none.
    "exaone4-64": Model("exaone4", "Exaone4", sizes(64, 2, 1, 8, 16, 16, layer_types=[S, S, S, F] * 16, sliding_window=6,
                                                    rope_parameters=rope(1e6)),
                        {"attention.sliding_window": 6}, pre="exaone4", base=1e6),
    # A window that is not used, as there is no pattern.
    "exaone4-small": Model("exaone4", "Exaone4", sizes(tied=True, layer_types=[F, F], sliding_window=None,
                                                       rope_parameters=rope(1e6, **LLAMA3)),
                           {"attention.sliding_window": 6}, pre="exaone4", base=1e6,
                           tensors={"rope_freqs.weight": lambda: tiny.llama3_factors(
                               tiny.Tiny("exaone4", "", rope_base=1e6, llama3=LLAMA3))}),
    # The factors of a file without their keys.
    "minicpm": Model("minicpm", "Granite",
                     sizes(3, embedding_multiplier=12.0, residual_multiplier=1.4 / math.sqrt(3),
                           attention_multiplier=0.25, logits_scaling=48 / 256,
                           rope_parameters=rope(rope_type="longrope", long_factor=LONG, short_factor=SHORT,
                                                attention_factor=1.0, original_max_position_embeddings=24)),
                     {"rope.scaling.type": "longrope", "rope.scaling.original_context_length": 24}, pairs=True,
                     tensors={"rope_factors_long.weight": lambda: np.array(LONG),
                              "rope_factors_short.weight": lambda: np.array(SHORT)}),
    "granite-swa": Model("granite_swa", "GraniteSWA", sizes(4, **GRANITE_SWA), GRANITE_SWA_KEYS, names="granite",
                         pre="refact", pairs=True),
    "granite-swa-moe": Model("granite_swa", "GraniteMoeSWA",
                             sizes(4, dim=32, heads=2, ffn=24, num_local_experts=5, num_experts_per_tok=2,
                                   shared_intermediate_size=40, **GRANITE_SWA),
                             {**GRANITE_SWA_KEYS, "expert_count": 5, "expert_used_count": 2,
                              "expert_shared_feed_forward_length": 40}, names="granite_moe", pre="refact", pairs=True),
}
COHERE = dict(layer_norm_eps=EPS, logit_scale=1.5, use_qk_norm=False)
COHERE_KEYS = {"logit_scale": 1.5}
FALCON = dict(num_hidden_layers=2, hidden_size=48, ffn_hidden_size=68, tie_word_embeddings=False, alibi=False,
              parallel_attn=True, layer_norm_epsilon=EPS, activation="gelu_pytorch_tanh", rope_parameters=rope())
MODELS.update({
    "command-r": Model("command-r", "Cohere", sizes(heads=3, head_dim=16, tied=True, **COHERE), COHERE_KEYS,
                       pre="command-r", layer_norms=True),
    "command-r-plus": Model("command-r", "Cohere", sizes(heads=6, kv_heads=2, head_dim=8, tied=True, **{
        **COHERE, "use_qk_norm": True}), COHERE_KEYS, pre="command-r", layer_norms=True),
    "cohere2": Model("cohere2", "Cohere2", sizes(5, tied=True, layer_types=[S, S, S, F, S], sliding_window=6, **COHERE),
                     {**COHERE_KEYS, "attention.sliding_window": 6}, pre="command-r", layer_norms=True),
    "starcoder2": Model("starcoder2", "Starcoder2", sizes(tied=True, norm_epsilon=EPS, use_bias=True, sliding_window=None,
                                                          residual_dropout=0, embedding_dropout=0),
                        pre="starcoder", layer_norms=True),
    "falcon": Model("falcon", "Falcon", dict(FALCON, num_attention_heads=3, multi_query=True), pre="falcon",
                    layer_norms=True, fused="one"),
    "falcon-40b": Model("falcon", "Falcon", dict(FALCON, num_attention_heads=6, num_kv_heads=2,
                                                 new_decoder_architecture=True), pre="falcon", layer_norms=True,
                        fused="groups"),
    "gpt2": Model("gpt2", "GPT2", dict(n_layer=2, n_head=3, n_embd=48, n_inner=68, layer_norm_epsilon=EPS,
                                       n_positions=CONTEXT), pre="gpt-2", layer_norms=True),
    "apertus": Model("apertus", "Apertus", sizes(3, head_dim=24, rope_parameters=rope(1e6, **LLAMA3)), pre="tekken",
                     base=1e6, tensors={"rope_freqs.weight": lambda: tiny.llama3_factors(
                         tiny.Tiny("apertus", "", head_dim=24, rope_base=1e6, llama3=LLAMA3))}),
})
# Names that the table of names lacks.
OTHER_NAMES = {
    "self_attn.sinks": "attn_sinks", "block_sparse_moe.router": "ffn_gate_inp",
    "block_sparse_moe.experts.gate_up_proj": "ffn_gate_up_exps", "block_sparse_moe.experts.down_proj": "ffn_down_exps",
    "shared_mlp.input_linear": "ffn_up_shexp", "shared_mlp.output_linear": "ffn_down_shexp"}


def random_values(name, shape, rng):
    """Like make_tiny_by_config.py, for names of layer norms and matrices that are different there."""
    if re.search(r"norm\.bias|ln_\w+\.bias", name):
        return 0.5 * rng.standard_normal(shape)
    if re.search(r"ln_\w+\.weight", name):
        return 1 + 0.25 * rng.standard_normal(shape)
    if name.startswith("transformer.h.") and name.endswith("c_proj.weight"):  # (inputs, outputs), as all of GPT-2
        return rng.standard_normal(shape) * 1.4 / np.sqrt(shape[0])
    return by_config.random_values(name, shape, rng)


def split_heads(config, fused, values):
    """Falcon's heads of q, k and v in the order of the file."""
    heads = config.num_attention_heads
    kv_heads = config.num_kv_heads if fused == "groups" else 1
    groups = values.reshape(kv_heads, heads // kv_heads + 2, heads_dim(config), -1)
    return np.concatenate([part.reshape(-1, values.shape[-1]) for part in
                           (groups[:, :-2], groups[:, -2:-1], groups[:, -1:])])


def heads_dim(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def file_name(table, name):
    """The file's name for a tensor of transformers."""
    layer, _, rest = name.removeprefix("model.layers.").partition(".")
    ours = OTHER_NAMES.get(rest.removesuffix(".weight"))
    if ours:
        return f"blk.{layer}.{ours}.weight"
    found = table.get_name(name, try_suffixes=(".weight", ".bias"))
    if not found:
        raise ValueError(f"the gguf package has no name for {name}")
    return found if found.endswith((".weight", ".bias")) else found + ".weight"


def gguf_tensors(model, config, found):
    names = gguf.MODEL_ARCH[(model.names or model.arch).replace("-", "_").upper()]
    table = gguf.get_tensor_name_map(names, config.num_hidden_layers)
    for name, values in found.items():
        if "act_fn" in name:
            continue
        if model.pairs and "q_proj" in name:
            values = tiny.pair_order(values, config.num_attention_heads)
        if model.pairs and "k_proj" in name:
            values = tiny.pair_order(values, config.num_key_value_heads)
        if "query_key_value" in name:
            values = split_heads(config, model.fused, values)
        if model.arch == "gpt2" and re.search(r"(c_attn|c_proj|c_fc)\.weight", name):
            values = values.T
        yield file_name(table, name), values
    for name, values in model.tensors.items():
        yield name, values()


def add_key(writer, key, value):
    if isinstance(value, list):
        writer.add_array(key, value)
        return
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    add[type(value)](key, value)


def write_gguf(path, name, model, config, found):
    writer = gguf.GGUFWriter(path, model.arch)
    heads, head_dim = config.num_attention_heads, heads_dim(config)
    kv_heads = {"one": 1, "groups": getattr(config, "num_kv_heads", 0), "": getattr(config, "num_key_value_heads", heads)}
    width = [getattr(config, key, None) for key in ("intermediate_size", "ffn_hidden_size", "n_inner")]
    writer.add_name(f"tiny random {name}")
    writer.add_file_type(0)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(next(filter(None, width)))
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads[model.fused])
    (writer.add_layer_norm_eps if model.layer_norms else writer.add_layer_norm_rms_eps)(EPS)
    if model.arch != "gpt2":
        writer.add_rope_freq_base(model.base)
        writer.add_rope_dimension_count(head_dim)
    writer.add_vocab_size(tiny.VOCAB)
    if heads * head_dim != config.hidden_size:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    for part in ("alpha_p", "alpha_n", "beta", "eps") if model.arch == "apertus" else ():
        by_layer = [found[key].item() for key in found if key.endswith("act_fn." + part)]
        writer.add_array("xielu." + part, by_layer)
    for key, value in model.keys.items():
        add_key(writer, f"{model.arch}.{key}", value)
    synthetic_vocab.add_to(writer, "bpe", tiny.VOCAB, model.pre)
    for tensor, values in gguf_tensors(model, config, found):
        writer.add_tensor(tensor, np.ascontiguousarray(values, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_hf(model, torch, transformers):
    """The configuration and the model; of those for text and images the part for text, with a head."""
    config = getattr(transformers, model.hf + "Config")(
        **{**by_config.COMMON, "max_position_embeddings": CONTEXT, **model.settings})
    if not model.hf.endswith("Text"):
        kind = "LMHeadModel" if model.hf == "GPT2" else "ForCausalLM"
        return config, getattr(transformers, model.hf + kind)(config).float().eval()

    class WithHead(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = getattr(transformers, model.hf + "Model")(config)
            self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)

        def forward(self, tokens):
            logits = self.lm_head(self.model(tokens).last_hidden_state)
            return transformers.modeling_outputs.CausalLMOutput(logits=logits)

    return config, WithHead().float().eval()


def main():
    import torch
    import transformers

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="made when it does not exist")
    parser.add_argument("--only", nargs="+", choices=MODELS, metavar="MODEL", help=f"of {', '.join(MODELS)}")
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    tokens = torch.tensor([tiny.test_tokens(tiny.SEED)])
    for name, model in MODELS.items():
        if options.only and name not in options.only:
            continue
        config, network = make_hf(model, torch, transformers)
        rng = np.random.default_rng([tiny.SEED, *name.encode()])
        found = {}
        for key, parameter in network.state_dict().items():
            if key == "lm_head.weight" and config.tie_word_embeddings or key.endswith((".attn.bias", "masked_bias")):
                continue
            if key.endswith(("act_fn.beta", "act_fn.eps")):  # constants
                found[key] = parameter.numpy()
                continue
            found[key] = random_values(key, tuple(parameter.shape), rng).astype(np.float32)
            # When many layers add as much as they get, a rounding in the first grows to a tenth of the
            # logits.
            if config.num_hidden_layers > 8 and re.search("post_.*layernorm", key):
                found[key] *= np.float32(0.25)
            parameter.copy_(torch.from_numpy(found[key]))
        path = os.path.join(options.output, name + ".gguf")
        write_gguf(path, name, model, config, found)
        with torch.no_grad():
            logits = network(tokens).logits[0].float().numpy()
        np.save(os.path.join(options.output, name + ".npy"), logits)
        print(f"{path}: {os.path.getsize(path) / 1e3:.0f} kB, logits {logits.std():.2f} around {logits.mean():.2f}")


if __name__ == "__main__":
    main()
