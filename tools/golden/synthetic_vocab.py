"""Made-up vocabularies of any size that every GGUF runner accepts. Shared by the make_*_model.py tools.

Both kinds are complete in bytes, so any text can be tokenized, and deterministic, so a model made twice is
the same. SPM: <unk> <s> </s>, 256 byte tokens, then pieces. BPE: 256 byte tokens, merges, 3 control tokens.
"""

import itertools

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
SPACE = "\u2581"  # stands for a space in SPM pieces
LETTERS = "etaoinshrdlucmfwypvbgkqjxzETAOINSHRDLUCMFWYPVBGKQJXZ0123456789.,-'"


def byte_characters():
    """The printable character that stands for each byte in byte-level BPE (the GPT-2 mapping)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {byte: chr(byte) for byte in printable}
    for index, byte in enumerate(b for b in range(256) if b not in table):
        table[byte] = chr(256 + index)
    return [table[byte] for byte in range(256)]


def words(space):
    """Endless distinct (left, right) pairs whose joined text is new and whose halves came before."""
    shorter = [space, *LETTERS]
    for _ in itertools.count():
        longer = []
        for left in shorter:
            for right in LETTERS:
                longer.append(left + right)
                yield left, right
        shorter = longer


def spm(size):
    """Returns tokens, scores, types of an SPM vocabulary. Needs size >= 259."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256
    singles = [SPACE, *LETTERS]
    pieces = itertools.chain(singles, (left + right for left, right in words(SPACE)))
    tokens += itertools.islice(pieces, size - len(tokens))
    types += [NORMAL] * (size - len(types))
    scores = [0.0] * 259 + [-float(rank) for rank in range(size - 259)]
    return tokens, scores, types


def bpe(size):
    """Returns tokens, merges, types of a byte-level BPE vocabulary."""
    tokens = byte_characters()
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    space = tokens[ord(" ")]
    merges = list(itertools.islice(words(space), size - len(tokens) - len(control)))
    tokens = tokens + [left + right for left, right in merges] + control
    return tokens, [f"{left} {right}" for left, right in merges], [NORMAL] * (size - 3) + [CONTROL] * 3


def add_to(writer, kind, size, pre="llama-bpe"):
    """Adds a vocabulary of `size` tokens to a gguf.GGUFWriter; `kind` is "spm" or "bpe"."""
    if size < 260:
        raise ValueError(f"a byte-complete vocabulary needs at least 260 tokens, not {size}")
    if kind == "spm":
        tokens, scores, types = spm(size)
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_scores(scores)
        writer.add_token_types(types)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)
        writer.add_add_bos_token(True)
        return
    tokens, merges, types = bpe(size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(size - 3)
    writer.add_eos_token_id(size - 1)
    writer.add_add_bos_token(pre == "llama-bpe")
