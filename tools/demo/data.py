"""From the corpus to rows of tokens: trains the tokenizer and packs documents."""

import multiprocessing
import os
import time

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from corpus import END, Corpus

SPECIAL = [END, "<|im_start|>", "<|im_end|>"]
# The pre-tokenizer that GGUF calls "qwen2".
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
           r"|\s+(?!\S)|\s+")
# Seeds: the tokenizer's text, the held-out text, and from here on the training text.
TOKENIZER_SEED, HELDOUT_SEED, TRAINING_SEED = 1, 2, 1000
BATCH = 400


def train_tokenizer(vocab, documents):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(Corpus(TOKENIZER_SEED).documents(documents), trainer)
    return tokenizer


def pack(documents, length):
    """Rows that begin with a document; one that does not fit is cut."""
    rows, row = [], []
    for ids in documents:
        row += ids
        if len(row) >= length:
            rows.append(row[:length])
            row = []
    return np.array(rows, dtype=np.uint16).reshape(-1, length)


def _shard(job):
    path, seed, length, deadline = job
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are parallel already
    tokenizer, corpus, rows = Tokenizer.from_file(path), Corpus(seed), []
    target, tokens = deadline["tokens"], 0
    while tokens < target and time.time() < deadline["time"]:
        batch = [e.ids for e in tokenizer.encode_batch(corpus.documents(BATCH))]
        packed = pack(batch, length)
        rows.append(packed)
        tokens += packed.size
    return np.concatenate(rows)


def training_rows(tokenizer_path, length, tokens, seconds, processes):
    """About `tokens` tokens, or what is made in the time."""
    stop = {"tokens": tokens // processes, "time": time.time() + seconds}
    jobs = [(str(tokenizer_path), TRAINING_SEED + i, length, stop) for i in range(processes)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return np.concatenate(pool.map(_shard, jobs, chunksize=1))


def heldout_rows(tokenizer_path, length, documents):
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    return pack([e.ids for e in tokenizer.encode_batch(Corpus(HELDOUT_SEED).documents(documents))], length)
