#!/usr/bin/env python3
"""Writes tests/golden/quantize/mixes.txt: the format that llama-quantize gives each tensor of made-up models.

The models stand for the cases that its rules tell apart: grouped attention, 80 layers, fused matrices, experts,
layers of several kinds, rows that no block divides. Needs numpy and gguf, and llama.cpp's tools; --peer as in
compare_peer.py.
usage: make_mix_golden.py [--peer PEER] -o tests/golden/quantize/mixes.txt
"""

import argparse
import os
import sys
import tempfile

import gguf
import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peer"))
from peer_programs import Problem, Programs, run

MIXES = ("Q2_K Q3_K_S Q3_K_M Q3_K_L IQ4_XS IQ4_NL Q4_0 Q4_K_S Q4_K_M Q4_1 MXFP4_MOE Q5_0 Q5_K_S Q5_K_M Q5_1 Q6_K Q8_0 F16 "
         "BF16").split()
MEASURED = "IQ4_XS IQ4_NL Q4_0 Q4_K_M Q5_0".split()  # again with an importance matrix
MATRIX = (256, 2)
DENSE = "attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down".split()
FUSED = "attn_qkv attn_output ffn_up ffn_down".split()
MIXTURE = "attn_q attn_k attn_v attn_output ffn_gate_inp ffn_gate_exps ffn_down_exps ffn_down_shexp".split()
LATENT = "attn_q_a attn_q_b attn_kv_a_mqa attn_kv_b attn_k_b attn_v_b attn_output ffn_down ffn_down_exps".split()
STATES = "attn_qkv attn_gate ssm_beta ssm_out ssm_conv1d ffn_down".split()
ODD_NAMES = """per_layer_token_embd per_layer_model_proj altup_proj altup_unembd_proj position_embd token_types token_embd_norm
blk.0.laurel_l blk.0.inp_gate blk.0.shortconv.in_proj blk.0.shortconv.conv blk.0.ssm_x blk.0.ssm_in blk.0.ffn_gate_inp
blk.0.ffn_gate_inp_shexp blk.0.attn_norm blk.0.attn_q_norm blk.0.attn_rel_b blk.0.ffn_gate_tid2eid blk.0.ffn_latent_down
blk.0.nextn.eh_proj blk.0.indexer.attn_k blk.0.attn_gate blk.0.time_mix_first blk.0.time_mix_w1 blk.0.time_mix_key
blk.0.time_mix_v2 blk.0.time_mix_a0 blk.0.time_mix_g1 blk.0.time_mix_lerp_fused blk.0.time_mix_decay_w1 blk.1.attn_v
blk.2.attn_qkv""".split()


def matrix(name):
    return (256, 2, 4) if name.endswith("_exps") else MATRIX


def odd_rows(name):
    return {"attn_q": (288, 2), "attn_k": (96, 2), "attn_v": (64, 2), "attn_output": (40, 2), "ffn_down": (2880, 2),
            "ffn_up": (128, 2)}.get(name, MATRIX)


def layered(layers, names, shape=matrix, tied=False):
    """Tensors of a model; `names` may depend on the layer."""
    tensors = [("token_embd", MATRIX), *([] if tied else [("output", MATRIX)])]
    for layer in range(layers):
        present = names(layer) if callable(names) else names
        tensors += [(f"blk.{layer}.{name}", shape(name)) for name in present]
    return tensors


def hybrid(layer):
    return DENSE if layer % 4 == 3 else STATES


# name -> (architecture, layers, heads of keys, experts, tensors); eight heads of queries each.
MODELS = {
    "single": ("llama", 16, 8, 0, layered(16, DENSE)),
    "grouped": ("llama", 16, 2, 0, layered(16, DENSE)),
    "tied": ("llama", 6, 8, 0, layered(6, DENSE, tied=True)),
    "70b": ("llama", 80, 1, 0, layered(80, ["attn_v"])),
    "65b": ("llama", 80, 8, 0, layered(80, ["attn_v"])),
    "72b": ("qwen2", 80, 1, 0, layered(80, ["attn_v"])),
    "deep": ("qwen3", 80, 1, 0, layered(80, ["attn_v"])),
    "falcon": ("falcon", 20, 8, 0, layered(20, FUSED)),
    "falcon-tied": ("falcon", 16, 1, 0, layered(16, FUSED, tied=True)),
    "fused": ("phi3", 16, 2, 0, layered(16, FUSED)),
    "mixtral": ("llama", 16, 2, 8, layered(16, MIXTURE)),
    "mixture": ("qwen3moe", 16, 1, 128, layered(16, MIXTURE)),
    "odd-rows": ("llama", 8, 8, 0, layered(8, DENSE, odd_rows)),
    "odd-output": ("llama", 4, 8, 0, [("token_embd", (96, 2)), ("output", (96, 2))]),
    "odd-tied": ("llama", 4, 8, 0, [("token_embd", (96, 2)), ("blk.0.attn_q", (96, 2))]),
    "latent": ("qwen3", 12, 8, 0, layered(12, LATENT)),
    "hybrid": ("qwen3", 16, 2, 0, layered(16, hybrid)),
    "names": ("qwen3", 8, 8, 0, [("token_embd", MATRIX), ("output", MATRIX), *((name, MATRIX) for name in ODD_NAMES)]),
}


def write_model(path, model):
    arch, layers, kv_heads, experts, tensors = model
    writer = gguf.GGUFWriter(path, arch)
    for add, value in ((writer.add_block_count, layers), (writer.add_context_length, 128), (writer.add_embedding_length, 256),
                       (writer.add_feed_forward_length, 256), (writer.add_head_count, 8), (writer.add_head_count_kv, kv_heads),
                       (writer.add_layer_norm_rms_eps, 1e-5), (writer.add_layer_norm_eps, 1e-5), (writer.add_vocab_size, 32),
                       (writer.add_expert_count, experts), (writer.add_expert_used_count, min(experts, 2)),
                       (writer.add_expert_feed_forward_length, 64)):
        add(value)
    rng = np.random.default_rng(1)
    for name, dims in tensors:
        writer.add_tensor(name + ".weight", rng.standard_normal(dims[::-1]).astype("f4"))
    write(writer)


def write_importance(path):
    """A file with a tensor that no model has, since the rules only ask for a file."""
    writer = gguf.GGUFWriter(path, "")
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["none"])
    writer.add_uint32("imatrix.chunk_count", 1)
    writer.add_uint32("imatrix.chunk_size", 512)
    writer.add_tensor("blk.999.attn_q.weight.in_sum2", np.ones((1, 256), "f4"))
    writer.add_tensor("blk.999.attn_q.weight.counts", np.ones((1, 1), "f4"))
    write(writer)


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def formats(programs, folder, model, mix, flags):
    made = os.path.join(folder, "made.gguf")
    run(programs.peer("llama-quantize", *flags, model, made, mix))
    return {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(made).tensors}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="where llama.cpp's tools are")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    programs = Programs("redline", options.peer)
    lines = ["# By tools/golden/make_mix_golden.py: model NAME ARCHITECTURE LAYERS KV_HEADS EXPERTS; then each tensor with its dimensions",
             "# and the format that llama-quantize gives it in each of these mixes (+: with an importance matrix).",
             "mixes " + " ".join([*MIXES, *(mix + "+" for mix in MEASURED)])]
    try:
        with tempfile.TemporaryDirectory() as folder:
            importance = os.path.join(folder, "importance.gguf")
            write_importance(importance)
            for name, model in MODELS.items():
                print(name, file=sys.stderr)
                path = os.path.join(folder, "model.gguf")
                write_model(path, model)
                columns = [formats(programs, folder, path, mix, []) for mix in MIXES]
                columns += [formats(programs, folder, path, mix, ["--imatrix", importance]) for mix in MEASURED]
                lines.append(f"model {name} {' '.join(map(str, model[:4]))}")
                lines += [f"{tensor} {'x'.join(map(str, dims))} " + " ".join(column[tensor + ".weight"] for column in columns)
                          for tensor, dims in model[4]]
    except Problem as problem:
        sys.exit(str(problem))
    with open(options.output, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
