"""Texts with alternatives: "what [is|was] {thing}" is one of many sentences; brackets nest, braces are slots."""

import random
from functools import lru_cache


def _parse(text, at, closing):
    """Alternatives of `text` from `at` up to `closing`; each is a list of strings and of lists of alternatives."""
    alternatives, parts, literal = [], [], []

    def flush():
        if literal:
            parts.append("".join(literal))
            literal.clear()

    while at < len(text):
        c = text[at]
        if c == "[":
            flush()
            inner, at = _parse(text, at + 1, "]")
            parts.append(inner)
            continue
        if closing and c == closing:
            flush()
            alternatives.append(parts)
            return alternatives, at + 1
        if closing and c == "|":
            flush()
            alternatives.append(parts)
            parts = []
        else:
            literal.append(c)
        at += 1
    if closing:
        raise ValueError(f"a bracket is not closed in: {text}")
    flush()
    alternatives.append(parts)
    return alternatives, at


@lru_cache(maxsize=None)
def compiled(text):
    return _parse(text, 0, "")[0]


def favoured(choices, rng: random.Random, share):
    """The first of the choices with this probability, else one of the others."""
    return choices[0] if len(choices) == 1 or rng.random() < share else choices[1 + int(rng.random() * (len(choices) - 1))]


def _pick(alternatives, rng, out, share):
    parts = alternatives[int(rng.random() * len(alternatives))] if share is None else favoured(alternatives, rng, share)
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        else:
            _pick(part, rng, out, share)


def expand(text, rng: random.Random, share=None, **slots):
    """One sentence of `text`; white space that empty alternatives leave behind is tidied.

    All alternatives are equally likely, unless `share` says how likely the first ones are."""
    out = []
    _pick(compiled(text), rng, out, share)
    sentence = "".join(out)
    for name, value in slots.items():
        sentence = sentence.replace("{" + name + "}", value)
    return " ".join(sentence.split()).replace(" ,", ",").replace(" .", ".").replace(" ?", "?")


class Fact:
    """A thing that the model knows: ways to ask for it, and answers that all carry it."""

    def __init__(self, name):
        self.name = name
        self.lines = {kind: [] for kind in "shpqam"}


def read_facts(path):
    facts = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("= "):
            facts.append(Fact(line[2:]))
        elif line[1:3] == ": " and line[0] in "shpqam" and facts:
            kind, text = line[0], line[3:]
            # Subjects, deeds and problems are lists; the others one text a line.
            facts[-1].lines[kind] += text.split(" | ") if kind in "shp" else [text]
        else:
            raise ValueError(f"{path}:{number}: not a line of a fact: {line}")
    for fact in facts:
        if not fact.lines["a"]:
            raise ValueError(f"{path}: {fact.name} has no answer")
    return facts
