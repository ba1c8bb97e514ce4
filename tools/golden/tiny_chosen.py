"""The common frame of tiny_deepseek4.py and tiny_qwen4.py, whose models' attention chooses among blocks. Several seeds
are tried, since the choice must not depend on rounding."""

import argparse
import os

import gguf
import numpy as np

import make_tiny_by_config as by_config
import make_tiny_model as tiny
import synthetic_vocab


def write_gguf(path, arch, name, config, layers, base, pre, add_metadata, tensors):
    """`add_metadata` adds the architecture's keys; whole numbers among `tensors` (name, values) are stored as such."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name(f"tiny random {name}")
    writer.add_file_type(0)
    writer.add_block_count(layers)
    writer.add_context_length(256)
    writer.add_embedding_length(config.hidden_size)
    writer.add_vocab_size(tiny.VOCAB)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(base)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    add_metadata(writer)
    synthetic_vocab.add_to(writer, "bpe", tiny.VOCAB, pre)
    for tensor, values in tensors:
        kind = np.int32 if values.dtype.kind == "i" else np.float32
        writer.add_tensor(tensor, np.ascontiguousarray(values, dtype=kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def least_distance(torch, distances_of, run):
    """The result of run(), and the smallest distance between the last chosen score and the first of the others:
    distances_of(scores, k, topk) returns those of a choice."""
    distances, whole = [float("inf")], torch.Tensor.topk

    def topk(scores, k, dim=-1, **rest):
        distances.extend(distances_of(scores, k, whole))
        return whole(scores, k, dim=dim, **rest)

    torch.Tensor.topk = topk
    try:
        return run(), min(distances)
    finally:
        torch.Tensor.topk = whole


def draw(torch, model, config, random_values, rng):
    """Fills the model; returns its values. What random_values has none for stays as it is."""
    found = {}
    for key, parameter in model.state_dict().items():
        values = random_values(key, parameter, rng, config)
        if values is None:
            found[key] = parameter.numpy()
            continue
        found[key] = values.astype(np.float32) if parameter.dtype == torch.float32 else values
        parameter.copy_(torch.from_numpy(found[key]))
    return found


def main(description, models, classes, random_values, distances_of, write):
    """`models`: by name (seed, settings). `classes`: names of transformers' configuration and model. Calls write(path, name,
    config, values) for the best seed of each."""
    import torch
    import transformers

    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="made when it does not exist")
    parser.add_argument("--only", nargs="+", choices=models, metavar="MODEL", help=f"of {', '.join(models)}")
    parser.add_argument("--seeds", type=int, default=1, help="tried, from the model's seed on; the one of the largest "
                        "distance is written")
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    tokens = torch.tensor([tiny.test_tokens(tiny.SEED)])
    for name, (own_seed, settings) in models.items():
        if options.only and name not in options.only:
            continue
        settings = dict(by_config.COMMON, num_hidden_layers=len(settings["layer_types"])) | settings
        config = getattr(transformers, classes[0])(**settings)
        model = getattr(transformers, classes[1])(config).float().eval()
        best = None
        for seed in range(own_seed, own_seed + options.seeds):
            found = draw(torch, model, config, random_values, np.random.default_rng([seed, *name.encode()]))
            with torch.no_grad():
                logits, distance = least_distance(
                    torch, distances_of, lambda: model(tokens, use_cache=False).logits[0].float().numpy())
            if best is None or distance > best[0]:
                best = distance, seed, found, logits
        distance, seed, found, logits = best
        path = os.path.join(options.output, name + ".gguf")
        write(path, name, config, found)
        np.save(os.path.join(options.output, name + ".npy"), logits)
        print(f"{path}: {os.path.getsize(path) / 1e3:.0f} kB, logits {logits.std():.2f} around {logits.mean():.2f}, "
              f"seed {seed}, scores {distance:.2g} apart")
