"""The texts that the demo model's MTP head learns from: rows of the corpus, and what the trunk writes itself."""

import multiprocessing
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

import corpus
import data
import stories
from model import rotate

END, START, STOP = 0, 1, 2  # <|endoftext|>, <|im_start|>, <|im_end|>
CORPUS_SEED, STORY_SEED = 500_000, 700_000


def tokenizer_of(file):
    """The tokenizer that a GGUF file of the demo model holds."""
    tokens = file["tokenizer.ggml.tokens"]
    merges = [tuple(m.split(" ")) for m in file["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(data.PATTERN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in data.SPECIAL])
    return tokenizer


def _documents(job):
    text, seed, rounds = job
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are parallel already
    tokenizer, made = Tokenizer.from_str(text), corpus.Corpus(seed)
    all_ids = [e.ids for _ in range(rounds) for e in tokenizer.encode_batch(made.documents(data.BATCH))]
    return np.array([i for ids in all_ids for i in ids], np.uint16), np.cumsum([len(ids) for ids in all_ids])


class CorpusInBackground:
    """Documents of the corpus as tokens, made by other processes while this one does other things."""

    def __init__(self, tokenizer, processes, jobs, rounds):
        text = tokenizer.to_str()
        self.pool = multiprocessing.get_context("spawn").Pool(processes)
        self.parts = self.pool.imap_unordered(_documents, [(text, CORPUS_SEED + i, rounds) for i in range(jobs)])

    def take(self, seconds, tokens):
        """Those that are there within the time, so many tokens at most, and the first ones however long they take."""
        out, end = [], time.time() + seconds
        while not out or (time.time() < end and tokens > 0):
            try:
                some, ends = self.parts.next(None if not out else max(0.01, end - time.time()))
            except (StopIteration, multiprocessing.TimeoutError):
                break
            out += np.split(some, ends[:-1])
            tokens -= len(some)
        return out


def asked(question):
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def prompts_of(documents, tokenizer, probes, rng):
    """Prompts for the trunk, by kind: questions, conversations up to an answer, beginnings of plain texts."""
    opening = tokenizer.encode("<|im_start|>assistant\n").ids
    kinds = {"questions": [e.ids for e in tokenizer.encode_batch([asked(p) for p in probes])], "conversations": [], "beginnings": []}
    for ids in documents:
        places = np.flatnonzero(ids == START)
        places = places[ids[np.minimum(places + 1, len(ids) - 1)] == opening[1]]
        if len(places):
            prompt = ids[:rng.choice(places)].tolist() + opening
            if len(prompt) <= 400:
                kinds["questions" if len(prompt) <= 80 else "conversations"].append(prompt)
        elif len(ids) > 8 and ids[0] != START:
            kinds["beginnings"].append(ids[:rng.integers(4, min(80, len(ids)))].tolist())
    return kinds


class Writer:
    """Has the trunk go on with many prompts at once."""

    def __init__(self, trunk, half):
        self.trunk, self.device = trunk, trunk.token_embd.weight.device
        self.half = half and self.device.type == "cuda"

    def layer(self, layer, x, cos, sin, attend):
        s, (rows, length, _) = self.trunk.s, x.shape
        heads = lambda y, n: y.view(rows, length, n, s.head_dim).transpose(1, 2)
        h = layer.attn_norm(x)
        q, k = rotate(heads(layer.attn_q(h), s.heads), cos, sin), rotate(heads(layer.attn_k(h), s.kv_heads), cos, sin)
        y = attend(q, k, heads(layer.attn_v(h), s.kv_heads))
        x = x + layer.attn_output(y.transpose(1, 2).reshape(rows, length, -1))
        h = layer.ffn_norm(x)
        return x + layer.ffn_down(F.silu(layer.ffn_gate(h)) * layer.ffn_up(h))

    def read_prompts(self, ids, caches):
        """The residual of all rows; keys and values go to the caches."""
        length, share = ids.shape[1], self.trunk.s.heads // self.trunk.s.kv_heads
        x = self.trunk.token_embd(ids).to(caches[0].dtype)
        for layer, cache in zip(self.trunk.blk, caches):
            def attend(q, k, v):
                cache[0][:, :, :length], cache[1][:, :, :length] = k, v
                return F.scaled_dot_product_attention(q, k.repeat_interleave(share, 1), v.repeat_interleave(share, 1), is_causal=True)
            x = self.layer(layer, x, self.trunk.cos[:length], self.trunk.sin[:length], attend)
        return x

    def read_token(self, ids, at, caches):
        """The residual of one token of each row, at a place that may differ from row to row."""
        s, rows = self.trunk.s, len(ids)
        number = torch.arange(rows, device=self.device)
        unseen = (torch.arange(caches[0].shape[3], device=self.device) > at[:, None])[:, None, None]
        cos, sin = (t[at][:, None, None] for t in (self.trunk.cos, self.trunk.sin))
        x = self.trunk.token_embd(ids)[:, None].to(caches[0].dtype)
        for layer, cache in zip(self.trunk.blk, caches):
            def attend(q, k, v):
                cache[0][number, :, at], cache[1][number, :, at] = k[:, :, 0], v[:, :, 0]
                grouped = q.view(rows, s.kv_heads, -1, s.head_dim)
                scores = (grouped @ cache[0].transpose(-1, -2)).float() / s.head_dim ** 0.5
                shares = scores.masked_fill(unseen, -1e30).softmax(-1).to(q.dtype)
                return (shares @ cache[1]).view(rows, s.heads, 1, s.head_dim)
            x = self.layer(layer, x, cos, sin, attend)
        return x[:, 0]

    @torch.no_grad()
    def go_on(self, prompts, count, temperatures):
        """Prompts with at most `count` tokens behind them, up to the end of an answer; temperature 0 is greedy."""
        s, rows, longest = self.trunk.s, len(prompts), max(map(len, prompts))
        ids = torch.zeros(rows, longest + count, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, :len(prompt)] = torch.as_tensor(prompt)
        ids, ends = ids.to(self.device), torch.tensor([len(p) for p in prompts], device=self.device)
        heat, number = torch.tensor(temperatures, device=self.device)[:, None], torch.arange(rows, device=self.device)
        kind = torch.bfloat16 if self.half else torch.float32
        caches = [torch.zeros(2, rows, s.kv_heads, longest + count, s.head_dim, dtype=kind, device=self.device) for _ in self.trunk.blk]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            x = self.read_prompts(ids[:, :longest], caches)[number, ends - 1]
            for _ in range(count):
                logits = F.linear(self.trunk.output_norm(x), self.trunk.token_embd.weight).float()
                noise = -torch.empty_like(logits).exponential_().log()
                drawn = (logits / heat.clamp(min=1e-4) + (heat > 0) * noise).argmax(-1)
                ids[number, ends] = drawn
                x = self.read_token(drawn, ends, caches)
                ends = ends + 1
        return [cut(row[:len(prompt) + count], len(prompt)) for row, prompt in zip(ids.tolist(), prompts)]


def cut(ids, begin):
    """Up to the end of the answer, with it."""
    stop = next((i for i in range(begin, len(ids)) if ids[i] in (END, STOP)), len(ids) - 1)
    return ids[:stop + 1]


LONGEST = {"questions": 130, "conversations": 110, "beginnings": 320}


def write_texts(writer, prompts, seconds, rows, rng):
    """Documents that the trunk writes, a third of them greedily."""
    out, end, turn = [], time.time() + seconds, 0
    turns = [kind for kind in ("questions", "conversations", "questions", "beginnings") if prompts[kind]]
    while not out or time.time() < end:
        kind = turns[turn % len(turns)]
        chosen = [prompts[kind][i] for i in rng.integers(0, len(prompts[kind]), rows)]
        heat = [(0.0, 0.7, 1.0)[i % 3] for i in range(rows)]
        out += [np.array(ids + [END], np.uint16) for ids in writer.go_on(chosen, LONGEST[kind], heat)]
        turn += 1
    return out


def spoken_by(rows, tokenizer, roles):
    """True for tokens in turns of these roles: nobody guesses those while the model speaks."""
    names, other = [tokenizer.encode(role).ids[0] for role in roles], -1
    out, now = np.zeros(rows.shape, bool), np.full(len(rows), other)
    for i in range(rows.shape[1]):
        token = rows[:, i].astype(np.int64)
        if i:
            now = np.where(rows[:, i - 1] == START, token, now)
        for name in names:
            out[:, i] |= now == name
        now = np.where((token == STOP) | (token == END), other, now)
    return out


def packed(documents, length, seed):
    """Rows that begin with a document; one that does not fit is cut."""
    rows, row, size = [], [], 0
    for i in np.random.default_rng(seed).permutation(len(documents)):
        row.append(documents[i])
        size += len(documents[i])
        if size >= length:
            rows.append(np.concatenate(row)[:length])
            row, size = [], 0
    return np.stack(rows)


def heldout_texts(writer, tokenizer, here, most):
    """Greedy answers to the held-out questions and greedy stories from beginnings of another seed: (prompt length, ids)."""
    lines = [line for line in (here / "heldout.tsv").read_text().splitlines() if line and not line.startswith("#")]
    questions = [asked(line.split("\t")[0]) for line in lines[:most]]
    rng = corpus.Corpus(STORY_SEED).rng
    begun = [" ".join(stories.Teller(rng).tell(1).split(" ")[:8]) for _ in range(most // 2)]
    out = {}
    for name, texts, count in (("answers", questions, 150), ("stories", begun, 250)):
        prompts = [e.ids for e in tokenizer.encode_batch(texts)]
        out[name] = [(len(p), ids) for p, ids in zip(prompts, writer.go_on(prompts, count, [0.0] * len(prompts)))]
    return out
