#!/usr/bin/env python3
"""Makes the demo model: corpus, tokenizer, training on one GPU, and a folder with the weights as F16.

usage: train.py OUT [--seconds N]     then: export.py OUT demo-f16.gguf, and redline quantize (README.md)
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import data
from model import Model, Shape


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=420, help="time for the training steps")
    parser.add_argument("--corpus-seconds", type=float, default=60, help="time for the corpus at most")
    parser.add_argument("--tokens", type=int, default=160_000_000, help="tokens of corpus at most")
    parser.add_argument("--rows", type=int, default=48, help="rows of a batch")
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--tokenizer-documents", type=int, default=20000)
    parser.add_argument("--tiny", action="store_true", help="a minuscule model, to try the script on a CPU")
    return parser.parse_args()


def save(model, out, facts):
    """Two files, so that each stays small."""
    weights = {name: w.detach().to(torch.float16).cpu().numpy() if w.dim() == 2
               else w.detach().float().cpu().numpy() for name, w in model.named_parameters()}
    half = len(model.blk) // 2
    first = {n: w for n, w in weights.items() if not n.startswith("blk.") or int(n.split(".")[1]) < half}
    np.savez(out / "weights-0.npz", **first)
    np.savez(out / "weights-1.npz", **{n: w for n, w in weights.items() if n not in first})
    (out / "facts.json").write_text(json.dumps(facts, indent=1))


@torch.no_grad()
def heldout_loss(model, rows, device, batch):
    model.eval()
    total = 0.0
    for at in range(0, len(rows), batch):
        part = torch.from_numpy(rows[at:at + batch].astype(np.int64)).to(device)
        with torch.autocast(device, torch.bfloat16):
            total += next_token_loss(model, part).item() * len(part)
    model.train()
    return total / len(rows)


def next_token_loss(model, batch):
    return F.cross_entropy(model(batch[:, :-1]).float().flatten(0, 1), batch[:, 1:].flatten())


def optimizer_of(model, rate):
    matrices = [w for w in model.parameters() if w.dim() == 2]
    vectors = [w for w in model.parameters() if w.dim() != 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), fused=torch.cuda.is_available())


def rate_at(step, progress, highest, warmup=150):
    """Warm-up by steps, then a cosine over the time that is left."""
    return highest * min(1.0, (step + 1) / warmup) * (0.5 + 0.5 * math.cos(math.pi * min(1.0, progress)))


def train(model, rows, heldout, args, device, facts):
    data_on_device = torch.from_numpy(rows.view(np.int16)).to(device)
    loss_of = torch.compile(next_token_loss) if device == "cuda" else next_token_loss
    optimizer = optimizer_of(model, args.rate)
    order = torch.randperm(len(rows), device=device)
    at, step, tokens, sum_loss, last_save = 0, 0, 0, None, time.time()
    begin = None
    model.train()
    while True:
        if at + args.rows > len(order):
            order, at = torch.randperm(len(rows), device=device), 0
        batch = data_on_device[order[at:at + args.rows]].long() & 0xFFFF
        at += args.rows
        progress = 0.0 if begin is None else (time.time() - begin) / args.seconds
        if progress >= 1.0:
            break
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, progress, args.rate)
        with torch.autocast(device, torch.bfloat16):
            loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        sum_loss = loss.detach() if sum_loss is None else 0.98 * sum_loss + 0.02 * loss.detach()
        step += 1
        tokens += batch[:, 1:].numel()
        if step == 5:  # compiled by now
            if device == "cuda":
                torch.cuda.synchronize()
            begin, tokens = time.time(), 0
        if step % 250 == 0:
            speed = tokens / (time.time() - begin)
            print(f"step {step} loss {sum_loss.item():.4f} {progress:.0%} {speed / 1e6:.2f} M tokens/s", flush=True)
            if time.time() - last_save > 90:
                save(model, args.out, facts)
                last_save = time.time()
    facts.update(steps=step, tokens_seen=tokens, corpus_tokens=int(rows.size), training_loss=round(sum_loss.item(), 4))
    facts["heldout_loss"] = round(heldout_loss(model, heldout, device, args.rows), 4)
    save(model, args.out, facts)


@torch.no_grad()
def show_answers(model, tokenizer, prompts, device, length=90):
    """Greedy answers, to see at once what came out."""
    model.eval()
    heads = [tokenizer.encode(f"<|im_start|>user\n{p}<|im_end|>\n<|im_start|>assistant\n").ids for p in prompts]
    ids = torch.zeros(len(heads), max(map(len, heads)) + length, dtype=torch.long, device=device)
    for row, head in enumerate(heads):
        ids[row, :len(head)] = torch.tensor(head)
    ends = torch.tensor([len(h) for h in heads], device=device)
    rows = torch.arange(len(heads), device=device)
    for _ in range(length):
        with torch.autocast(device, torch.bfloat16):
            ids[rows, ends] = model(ids[:, :int(ends.max())])[rows, ends - 1].argmax(-1)
        ends += 1
    for prompt, head, row in zip(prompts, heads, ids.tolist()):
        said = row[len(head):len(head) + length]
        said = said[:said.index(2)] if 2 in said else said
        print(f"> {prompt}\n{tokenizer.decode(said)}", flush=True)


def main():
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = Shape(vocab=512, dim=64, layers=2, heads=4, kv_heads=2, ffn=128, context=256) if args.tiny else Shape()
    start = time.time()
    tokenizer = data.train_tokenizer(shape.vocab, args.tokenizer_documents)
    path = args.out / "tokenizer.json"
    tokenizer.save(str(path))
    print(f"tokenizer {time.time() - start:.0f} s, {tokenizer.get_vocab_size()} tokens", flush=True)
    rows = data.training_rows(path, shape.context + 1, args.tokens, args.corpus_seconds, len(os.sched_getaffinity(0)))
    heldout = data.heldout_rows(path, shape.context + 1, 200 if args.tiny else 3000)
    print(f"corpus {rows.shape[0]} rows, {rows.size / 1e6:.1f} M tokens, {time.time() - start:.0f} s", flush=True)
    model = Model(shape).to(device)
    facts = {"shape": shape.facts(), "parameters": sum(w.numel() for w in model.parameters())}
    print(f"{facts['parameters'] / 1e6:.2f} M parameters on {device}", flush=True)
    train(model, rows, heldout, args, device, facts)
    print(json.dumps(facts), flush=True)
    show_answers(model, tokenizer, (Path(__file__).parent / "probes.txt").read_text().splitlines(), device)


if __name__ == "__main__":
    main()
