#!/usr/bin/env python3
"""Writes what train.py made as one GGUF file, matrices in F16. Needs the packages numpy and gguf.

usage: export.py FOLDER OUT.gguf
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np

# ChatML without a system prompt: only the text before the first turn and the form of turns.
TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def add_tokenizer(writer, path):
    data = json.loads(path.read_text())
    vocabulary = data["model"]["vocab"]
    special = {t["content"]: t["id"] for t in data["added_tokens"]}
    tokens = sorted(vocabulary, key=vocabulary.get)
    assert [vocabulary[t] for t in tokens] == list(range(len(tokens)))
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([int(gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL) for t in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(special["<|endoftext|>"])
    writer.add_eos_token_id(special["<|im_end|>"])
    writer.add_pad_token_id(special["<|endoftext|>"])
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def add_shape(writer, shape):
    writer.add_context_length(shape["context"])
    writer.add_embedding_length(shape["dim"])
    writer.add_block_count(shape["layers"])
    writer.add_feed_forward_length(shape["ffn"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_rope_dimension_count(shape["dim"] // shape["heads"])
    writer.add_rope_freq_base(shape["rope_base"])
    writer.add_layer_norm_rms_eps(shape["eps"])
    writer.add_vocab_size(shape["vocab"])


def file_order(name):
    """Embedding, layers by number, final norm."""
    parts = name.split(".")
    return (2, 0, name) if parts[0] == "output_norm" else (1, int(parts[1]), name) if parts[0] == "blk" else (0, 0, name)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    folder = Path(sys.argv[1])
    facts = json.loads((folder / "facts.json").read_text())
    writer = gguf.GGUFWriter(sys.argv[2], "llama")
    writer.add_name("redline demo")
    writer.add_description("A tiny chat model that knows a little about running local models; made by tools/demo.")
    writer.add_size_label(f"{facts['parameters'] / 1e6:.0f}M")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    add_shape(writer, facts["shape"])
    add_tokenizer(writer, folder / "tokenizer.json")
    weights = {}
    for part in ("weights-0.npz", "weights-1.npz"):
        weights.update(np.load(folder / part))
    for name in sorted(weights, key=file_order):
        writer.add_tensor(name, weights[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
