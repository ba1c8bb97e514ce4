#!/usr/bin/env python3
"""Writes tests/golden/text/pretokenize.json: the pieces into which the published patterns cut a set of texts.

The patterns are those of the models' tokenizers, run by the Python module `regex`: another engine than the
one under test, and other expressions where the program has rewritten them. Rule for several patterns: each cuts
the pieces of the one before; matches and the gaps between them are the new pieces.
"""
import json
import os
import random

import regex

CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+|"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"


def cased(suffix, upper=UPPER, lower=LOWER):
    return f"{PREFIX}{upper}*{lower}+{suffix}|{PREFIX}{upper}+{lower}*{suffix}|"


NOT_HAN = {"upper": UPPER[:-1] + r"&&[^\p{Han}]]", "lower": LOWER[:-1] + r"&&[^\p{Han}]]"}
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
             r""" ?[\p{P}\p{S}]+[\r\n]*""" + SPACES)
HAN_KANA = r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

PATTERNS = {
    "LLAMA3": [CONTRACTION + LETTERS + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES],
    "QWEN2": [CONTRACTION + LETTERS + r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES],
    "QWEN35": [CONTRACTION + r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + SPACES],
    "GPT2": [GPT2],
    "STARCODER": [r"\p{N}", GPT2],
    "FALCON": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, r"[0-9][0-9][0-9]"],
    "TEKKEN": [cased("") + r"\p{N}|" + MARKS + SPACES],
    "GPT4O": [cased(SUFFIX) + r"\p{N}{1,3}|" + MARKS + SPACES],
    "KIMI_K2": [r"\p{Han}+|" + cased(SUFFIX, **NOT_HAN) + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES],
    "TINY_AYA": [r"\d{1,3}(?=(?:\d{3})*\b)", cased(SUFFIX) + r"\p{N}{1,3}|" + MARKS + SPACES],
    "DEEPSEEK_CODER": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}"],
    "DEEPSEEK3_LLM": [r"\p{N}{1,3}", HAN_KANA, DEEPSEEK3],
    "BLOOM": [BLOOM],
    "VIKING": [BLOOM, r"\p{N}"],
    "CHAMELEON": [r"<sentinel:[0-9]+>", r"(?:IMGIMG)(?:(?:A|B|C|D|E|F|G|H|I){1,4})Z", r"[\t\n]|    |  ", r"\p{N}",
                  r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "SUPERBPE": [r"\p{N}+", r"(?=(?:\d{3})+(?!\d))"],
    "BAILINGMOE": [r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|" + LETTERS +
                   r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "SEED_CODER": [CONTRACTION + LETTERS + r"\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + SPACES],
    "EXAONE_MOE": [CONTRACTION + r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|"
                   r" ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "JAIS2": [CONTRACTION + LETTERS + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|" +
              "|".join(r"\s{%d}(?!\S)" % n for n in (512, 256, 128, 64, 32, 16, 8, 4)) + r"|\s{1,2}(?!\S)|\s{1}"],
    "DEFAULT": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
}

ALPHABET = list("aAbBzZ  \t\n\r019.,!?'-/_$+<=>^~|`(){}@#*\"\\&%éÉßǅʰñΩжאع中文々漢かカ가１²Ⅷ٣४กำ。、“…—🦙₂€𝒜𐐀") + [
    "'s", "'S", "'re", "'LL", "\u0301", "\u093f", "\u200d", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\u180e",
    "\u0007", "    ", " \n", "\r\n", "12345", "1234567", "<sentinel:12>", "IMGIMGABZ", "hello", "World", "HTML"]


def pieces(patterns, text):
    parts = [text]
    for pattern in patterns:
        cut = []
        for part in parts:
            last = 0
            for match in pattern.finditer(part):
                cut.append(part[last:match.start()])
                cut.append(match.group())
                last = match.end()
            cut.append(part[last:])
        parts = [part for part in cut if part]
    return parts


def main():
    random.seed(20261121)
    texts = ["".join(random.choice(ALPHABET) for _ in range(random.randint(2, 30))) for _ in range(20)]
    texts += ["".join(random.choice(" \naA1!") * random.choice([1, 2, 3, 7, 40]) for _ in range(6)) for _ in range(8)]
    texts += ["  a", "a  ", " \n a", "it's IT'S we'll", "1234567 89", " " * 700 + "a", "x = y/**/\n\n\n  z"]
    golden = {}
    for name, expressions in PATTERNS.items():
        compiled = [regex.compile(expression, regex.V1) for expression in expressions]
        # A superscript after a number is where the program is known to differ from SUPERBPE.
        chosen = [text for text in texts if name != "SUPERBPE" or not regex.search(r"\d[\p{N}--\p{Nd}]", text, regex.V1)]
        golden[name] = [pieces(compiled, text) for text in chosen]
    path = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "golden", "text", "pretokenize.json")
    with open(path, "w", encoding="utf-8") as file:
        rows = ["%s: [\n%s\n]" % (json.dumps(name), ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
                for name, rows in golden.items()]
        file.write("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
