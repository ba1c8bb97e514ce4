#!/usr/bin/env python3
"""Writes tests/golden/text/unigram.json: Unigram vocabularies, and texts with the ids that others give them.

needs: pip install sentencepiece protobuf tokenizers

The vocabularies are trained by SentencePiece on sentences made below, and it gives the ids. Of the one that is built
as LLM-jp's are (byte tokens, no normalization), the Python module `tokenizers` with the normalizer of LLM-jp 4 has to
give the same. The others have special rules, so that the trie of the rules is small. Texts in which a byte token
or the unknown token is written out are not among them: there the two differ, and the program takes it for text.
"""
import json
import os
import random
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, models, normalizers

WORDS = ["the", "model", "reads", "a", "prompt", "and", "writes", "an", "answer", "of", "tokens", "memory", "is", "in",
         "bandwidth", "that", "matters", "most", "when", "one", "token", "follows", "another", "Schöne", "Grüße", "größer",
         "naïve", "café", "Ωmega", "модель", "читает", "текст", "память", "x1", "y22", "3.14", "100", "2026", "int",
         "main()", "{", "}", "return", "0;", "\"quoted\"", "it's", "don't"]
KANA = ["私は", "本を", "読みます", "これは", "ペンです", "東京", "大阪", "から", "まで", "電車で", "行きました", "モデル", "メモリ",
        "は", "が", "を", "に", "日本語", "の", "文章", "です", "ます", "。", "、", "トークン", "言語"]
RULES = {"Ａ": "A", "Ｂ": "B", "ａ": "a", "ｂ": "b", "０": "0", "１": "1", "①": "1", "ﬁ": "fi", "™": "TM", "　": " ", "\t": " ",
         "\n": " ", "\u00a0": " ", "\u200b": "", "\u0007": "", "か\u3099": "が", "ｶ": "カ", "ｶﾞ": "ガ", "e\u0301": "é", "\u212b": "\u00c5", "㍿": "株式会社",
         "…": "...", "Ǆ": "DŽ", "ab": "<a b>", "abc": "c"}
# Alone, of unknown characters, of white space, of rules that overlap.
TEXTS = ["a", " ", "  ", " a", "a ", "  a  b  ", "\n", "a\n", "\na", "a\n\nb", "\t", "Hello world", "the model reads a prompt",
         "私は東京から大阪まで電車で行きました。", "日本語のモデル", "🦙", "a🦙🦙b ☃", "\u200b", "\u200b \u200b", "\u3000\u3000私", "ｶﾞｶ①Ａａ",
         "ab abc abcd abababab", "xyz" * 20, "が か\u3099 é e\u0301", "…™ﬁ㍿", "<|start|>", "0" * 40, "\r\n x",
         "int main() { return 0; }", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\u0007a", "a\u0007", "naïve café Ωmega модель"]
KINDS = {
    "bytes": dict(byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                  split_by_whitespace=False, allow_whitespace_only_pieces=True, vocab_size=640),
    "rules": dict(vocab_size=330),
    "rules and bytes": dict(byte_fallback=True, add_dummy_prefix=False, vocab_size=600),
}


def corpus():
    lines = []
    for _ in range(3000):
        words = [random.choice(WORDS) for _ in range(random.randint(3, 12))]
        lines.append(" ".join(words) + random.choice([".", "!", " ", "\t", ""]))
        lines.append("".join(random.choice(KANA) for _ in range(random.randint(2, 9))))
        lines.append(" " * random.randint(1, 4) + random.choice(WORDS) + "(" + random.choice(WORDS) + ")")
    return lines


def train(kind, folder, lines):
    options = dict(KINDS[kind], sentence_iterator=iter(lines), model_prefix=os.path.join(folder, "model"),
                   model_type="unigram", num_threads=1, minloglevel=2, hard_vocab_limit=False)
    if "normalization_rule_name" not in options:
        rules = os.path.join(folder, "rules.tsv")
        with open(rules, "w", encoding="utf-8") as file:
            for source, target in RULES.items():
                file.write("%s\t%s\n" % tuple(" ".join("%X" % ord(c) for c in text) for text in (source, target)))
        options["normalization_rule_tsv"] = rules
    sentencepiece.SentencePieceTrainer.train(**options)
    with open(os.path.join(folder, "model.model"), "rb") as file:
        return file.read()


def texts():
    parts = WORDS + KANA + list(RULES) + list("  \n\tabcdefgABC019.,!?🦙漢字é")
    made = ["".join(random.choice(parts) for _ in range(random.randint(1, 25))) for _ in range(60)]
    return TEXTS + made + [" ".join(random.choice(WORDS) for _ in range(300))]


def published(proto):
    """The tokenizer as the publisher of LLM-jp 4 sets it up."""
    tokenizer = Tokenizer(models.Unigram([(piece.piece, piece.score) for piece in proto.pieces], 0, True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"(?<!\n)^"), "\u2581"), normalizers.Replace(Regex(" "), "\u2581")])
    return tokenizer


def vocabulary(kind, lines, samples):
    with tempfile.TemporaryDirectory() as folder:
        model = train(kind, folder, lines)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    rules = proto.normalizer_spec
    ids = [processor.encode(text) for text in samples]
    if kind == "bytes":
        other = published(proto)
        for text, want in zip(samples, ids):
            got = other.encode(text, add_special_tokens=False).ids
            assert got == want, (text, got, want)
    return {"kind": kind, "space_prefix": rules.add_dummy_prefix, "remove_extra": rules.remove_extra_whitespaces,
            "charsmap": rules.precompiled_charsmap.hex(),
            "tokens": [piece.piece for piece in proto.pieces], "scores": [piece.score for piece in proto.pieces],
            "types": [piece.type for piece in proto.pieces], "texts": samples, "ids": ids}


def main():
    random.seed(20261127)
    lines, samples = corpus(), texts()
    path = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "golden", "text", "unigram.json")
    with open(path, "w", encoding="utf-8") as file:
        rows = []
        for kind in KINDS:
            made = vocabulary(kind, lines, samples)
            print(kind, len(made["tokens"]), "tokens", len(made["texts"]), "texts", len(made["charsmap"]), "of rules")
            rows.append("{\n" + ",\n".join("%s: %s" % (json.dumps(key), json.dumps(value, ensure_ascii=False))
                                           for key, value in made.items()) + "\n}")
        file.write("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
