#!/usr/bin/env python3
"""Trains the demo model's MTP head, which guesses tokens for speculation. The trunk stays as it is, byte for byte.

usage: head.py --out FOLDER [--minutes N]    writes FOLDER/demo.gguf and FOLDER/head.json, early and again as it gets better
Needs PyTorch, numpy and tokenizers: 4 minutes of one GPU; `--steps 50` tries it on a CPU.
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

import head_model
import head_text
from gguf_file import GgufFile

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent.parent / "models/demo/redline-demo-q8_0.gguf"
CHAIN = 4  # guesses of a round that are measured
LIMIT = 13_000_000  # bytes of the file
CORPUS_TOKENS = 40_000_000
USER_WEIGHT = 0.15
STEP_WEIGHTS = (1.0, 0.7, 0.5, 0.35)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=MODEL, help="GGUF file of the trunk")
    parser.add_argument("--minutes", type=float, default=4, help="for everything, from start to end")
    parser.add_argument("--steps", type=int, help="training steps at most")
    parser.add_argument("--rows", type=int, help="rows of a batch")
    parser.add_argument("--length", type=int, help="tokens of a row")
    parser.add_argument("--chain", type=int, default=3, help="guesses of a round that are trained")
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--texts", type=float, help="share of the time in which the trunk writes")
    parser.add_argument("--heldout", type=int, default=40, help="held-out questions and half as many stories to measure with")
    parser.add_argument("--no-compile", action="store_true")
    return parser.parse_args()


class Clock:
    def __init__(self, minutes):
        self.begin, self.seconds = time.time(), 60 * minutes

    def __call__(self):
        return time.time() - self.begin

    def left(self):
        return self.seconds - self()


def say(clock, text):
    print(f"{clock():6.1f} s  {text}", flush=True)


# --- held-out texts: what would be accepted

@torch.no_grad()
def right_guesses(weights, trunk, ids):
    """Row by row of a text, for each step of the chain: its guess is the token that follows."""
    tokens = torch.tensor([ids], device=trunk.token_embd.weight.device)
    hidden = trunk.hidden(tokens, half=False)
    following = torch.cat((tokens[0, 2:], torch.tensor([-1], device=tokens.device)))
    return [(logits[0].argmax(-1) == following).tolist() for logits in head_model.chain(weights, trunk, tokens, hidden, CHAIN)]


def rounds_of(right, begin, length, drafts):
    """Rounds and accepted guesses while a text is written whose token `begin` is known."""
    at, rounds, tried, taken = begin, 0, [0] * drafts, [0] * drafts
    while at + 1 < length:
        accepted = 0
        for step in range(min(drafts, length - at - 1)):
            tried[step] += 1
            if not right[step][at - 1 + step]:
                break
            taken[step] += 1
            accepted += 1
        at, rounds = at + accepted + 1, rounds + 1
    return rounds, tried, taken


def acceptance(weights, trunk, texts):
    """By kind of text: the share of guesses accepted, by position in the round, and tokens of a round by its drafts."""
    out = {}
    for kind, held in texts.items():
        right = [right_guesses(weights, trunk, ids) for _, ids in held]
        facts = {}
        for drafts in range(1, CHAIN + 1):
            rounds, tried, taken, tokens = 0, [0] * drafts, [0] * drafts, 0
            for (begin, ids), one in zip(held, right):
                r, t, a = rounds_of(one, begin, len(ids), drafts)
                rounds, tokens = rounds + r, tokens + len(ids) - begin - 1
                tried, taken = [x + y for x, y in zip(tried, t)], [x + y for x, y in zip(taken, a)]
            facts[f"tokens_of_a_round_with_{drafts}"] = round(tokens / max(1, rounds), 3)
        facts["accepted_by_position"] = [round(a / max(1, t), 4) for a, t in zip(taken, tried)]
        facts["tokens"] = tokens
        out[kind] = facts
    return out


# --- training

def step_loss(weights, trunk, tokens, others, steps):
    """Divergence from the trunk's distributions: of all steps, weighted, and of each. `others`: tokens that the user says."""
    with torch.no_grad():
        hidden = trunk.hidden(tokens)
        wanted = torch.log_softmax(F.linear(hidden, trunk.token_embd.weight)[:, 1:].float(), -1)
        chances = wanted.exp()
        counts = F.pad(1.0 - (1.0 - USER_WEIGHT) * others[:, 2:].float(), (0, 1), value=1.0)  # of the tokens guessed
    total, parts = 0.0, []
    for step, logits in enumerate(head_model.chain(weights, trunk, tokens, hidden, steps)):
        apart = (chances * (wanted - torch.log_softmax(logits.float(), -1))).sum(-1)
        part = (apart * counts)[:, step:].sum() / counts[:, step:].sum()
        total = total + STEP_WEIGHTS[step] * part
        parts.append(part.detach())
    return total, torch.stack(parts)


def compiled(loss, weights, trunk, batch, args, device, clock):
    """The loss, compiled where that works; the first call takes most of a minute."""
    if device != "cuda" or args.no_compile:
        return loss
    try:
        fast = torch.compile(loss)
        with torch.autocast(device, torch.bfloat16):
            fast(head_model.Rounding(1)(weights), trunk, *batch, args.chain)[0].backward()
        torch.cuda.synchronize()
        say(clock, "compiled")
        return fast
    except Exception as e:  # a machine without a compiler, say
        say(clock, f"not compiled: {str(e).splitlines()[0]}")
        return loss
    finally:
        for w in weights.values():
            w.grad = None


class Best:
    """Keeps the file and the numbers of the best head so far."""

    def __init__(self, args, trunk, texts, clock, facts):
        self.args, self.trunk, self.texts, self.clock, self.facts, self.score = args, trunk, texts, clock, facts, 0.0

    def look(self, weights, step):
        with torch.no_grad():
            numbers = acceptance(head_model.Rounding(1)(weights), self.trunk, self.texts)
        score = sum(kind[f"tokens_of_a_round_with_{CHAIN - 1}"] for kind in numbers.values())
        line = ", ".join(f"{kind} {facts['accepted_by_position']} {facts[f'tokens_of_a_round_with_{CHAIN - 1}']:.2f}/round"
                         for kind, facts in numbers.items())
        say(self.clock, f"step {step}: {line}")
        if score <= self.score:
            return
        self.score = score
        file = head_model.leave_out_head(GgufFile(self.args.model))
        head_model.add_head(file, weights, self.trunk.s.layers)
        file.save(self.args.out / "demo.part")
        os.replace(self.args.out / "demo.part", self.args.out / "demo.gguf")
        size = (self.args.out / "demo.gguf").stat().st_size
        if size > LIMIT:
            raise SystemExit(f"{self.args.out / 'demo.gguf'} has {size} bytes, more than {LIMIT}")
        self.facts |= {"step": step, "seconds": round(self.clock()), "bytes": size, "acceptance": numbers}
        (self.args.out / "head.json").write_text(json.dumps(self.facts, indent=1) + "\n")


def train(weights, trunk, loss, rows, others, args, device, best, clock):
    matrices = [w for w in weights.values() if w.dim() == 2]
    vectors = [w for w in weights.values() if w.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.rate, betas=(0.9, 0.95), fused=device == "cuda")
    rounding, begin, end = head_model.Rounding(20), clock(), clock.seconds - 12
    order, at, step, looked, smooth = torch.randperm(len(rows), device=device), 0, 0, clock(), None
    while True:
        progress = max((clock() - begin) / max(1.0, end - begin), step / args.steps if args.steps else 0.0)
        if progress >= 1.0:
            break
        rate = args.rate * min(1.0, (step + 1) / 60) * (0.02 + 0.98 * (0.5 + 0.5 * math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        if at + args.rows > len(order):
            order, at = torch.randperm(len(rows), device=device), 0
        chosen, at = order[at:at + args.rows], at + args.rows
        used = rounding(weights, progress > 0.35)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            total, parts = loss(used, trunk, rows[chosen].long(), others[chosen], args.chain)
        total.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        smooth = parts if smooth is None else 0.95 * smooth + 0.05 * parts
        step += 1
        if step % 100 == 0 or (device == "cpu" and step % 10 == 0):
            speed = step * args.rows * args.length / (clock() - begin)
            shown = " ".join(f"{x:.4f}" for x in smooth.tolist())
            say(clock, f"step {step} apart {shown} rate {rate:.1e} {speed / 1e6:.4f} M tokens/s {progress:.0%}")
        if clock() - looked > max(20, 0.08 * clock.seconds):
            best.look(weights, step)
            looked = clock()
    best.look(weights, step)
    best.facts |= {"apart_by_step": [round(x, 4) for x in smooth.tolist()]}
    return step


def training_texts(args, trunk, tokenizer, device, clock, background):
    """Documents of the corpus, and what the trunk makes of their beginnings."""
    probes, rng = (HERE / "probes.txt").read_text().splitlines(), np.random.default_rng(1)
    made = background.take(15, 4_000_000)
    share = args.texts if args.texts is not None else 0.12 if device == "cuda" else 0.25
    written = head_text.write_texts(head_text.Writer(trunk, True), head_text.prompts_of(made, tokenizer, probes, rng),
                                    share * clock.seconds, 3072 if device == "cuda" else 12, rng)
    say(clock, f"{len(written)} texts of {sum(map(len, written)) / 1e6:.2f} M tokens by the trunk itself")
    return made, written


def main():
    args = arguments()
    clock = Clock(args.minutes)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    args.rows, args.length = args.rows or (48 if device == "cuda" else 4), args.length or (1024 if device == "cuda" else 256)
    file = head_model.leave_out_head(GgufFile(args.model))
    tokenizer = head_text.tokenizer_of(file)
    processes = len(os.sched_getaffinity(0)) if device == "cuda" else 1
    background = head_text.CorpusInBackground(tokenizer, processes, processes * 40, 5 if device == "cuda" else 1)
    trunk = head_model.read_trunk(file).to(device)
    texts = head_text.heldout_texts(head_text.Writer(trunk, False), tokenizer, HERE, args.heldout)
    say(clock, f"trunk on {device}, held-out texts of {sum(len(t) for held in texts.values() for _, t in held)} tokens")
    weights = head_model.first_weights(trunk)
    facts = {"model": args.model.name, "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
             "rows": args.rows, "length": args.length, "chain": args.chain}
    best = Best(args, trunk, texts, clock, facts)
    made, written = training_texts(args, trunk, tokenizer, device, clock, background)
    empty = (torch.zeros(args.rows, args.length + 1, dtype=torch.long, device=device),
             torch.zeros(args.rows, args.length + 1, dtype=torch.bool, device=device))
    loss = compiled(step_loss, weights, trunk, empty, args, device, clock)
    made += background.take(5, CORPUS_TOKENS)
    background.pool.terminate()
    say(clock, f"{len(made)} documents of {sum(map(len, made)) / 1e6:.2f} M tokens of the corpus")
    rows = head_text.packed(written + made, args.length + 1, 1)
    others = torch.from_numpy(head_text.spoken_by(rows, tokenizer, ("user", "system"))).to(device)
    facts |= {"tokens_written": sum(map(len, written)), "tokens_of_corpus": sum(map(len, made))}
    best.look(weights, 0)
    facts["steps"] = train(weights, trunk, loss, torch.from_numpy(rows.astype(np.int32)).to(device), others, args, device, best, clock)
    (args.out / "head.json").write_text(json.dumps(facts, indent=1) + "\n")
    say(clock, f"{args.out / 'demo.gguf'}: {facts['bytes']} bytes, best at step {facts['step']} of {facts['steps']}")


if __name__ == "__main__":
    main()
