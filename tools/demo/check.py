#!/usr/bin/env python3
"""Asks a model the held-out questions, greedily, and has it tell stories. Needs no package beyond Python.

usage: check.py REDLINE [MODEL.gguf] [-o RESULT.md] [--device NAME]    (no model: the demo model)
Exit code 0 when at least 32 of the 40 answers carry the expected fact and all stories hold for 200 tokens.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import corpus
import stories

HERE = Path(__file__).resolve().parent
NEEDED = 32
OPENINGS = ["Once upon a time", "Once upon a time there was a little dragon", "Long ago, by the sea, there was", "Once there was a robot called",
            "One rainy morning", "There once lived an old baker in a busy city. Her name was", "Lily was a", "Once upon a time, near a dark forest,"]


def run(args, prompt, *options):
    command = [args.redline, "run", "-q", "--json", "--temp", "0", "-p", prompt, *options]
    command += ["-m", args.model] if args.model else []
    command += ["--device", args.device] if args.device else []
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["text"].strip()


def questions():
    for line in (HERE / "heldout.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


def known_words():
    """All words that the corpus's stories use."""
    made = corpus.Corpus(77)
    return {w for _ in range(4000) for w in re.findall(r"[A-Za-z']+", stories.Teller(made.rng).tell(3).lower())}


def faults_of(story, words):
    """The faults of a story whose last sentence may be cut."""
    faults = [f"unknown word {w}" for w in re.findall(r"[A-Za-z']+", story.lower())[:-1] if w not in words]
    sentences = [s.strip() for s in re.split(r"(?<=[.!?])[\"]?\s+", story)]
    for sentence in sentences[1:-1]:
        if not re.match(r"[\"A-Z]", sentence) and not re.match(r"(asked|said|answered|he|she|they|[a-z]+ said)\b", sentence):
            faults.append(f"begins oddly: {sentence[:40]}")
    for sentence in set(sentences):
        if len(sentence.split()) > 5 and sentences.count(sentence) > 1:
            faults.append(f"repeated: {sentence[:40]}")
    doubled = re.search(r"\b(\w+) \1\b", story)
    return faults + ([f"doubled word {doubled.group(1)}"] if doubled else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("redline")
    parser.add_argument("model", nargs="?")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--device")
    args = parser.parse_args()
    lines, right = ["| | question | answer |", "| --- | --- | --- |"], 0
    asked = list(questions())
    for question, wanted in asked:
        said = run(args, question, "--chat", "-n", "150")
        good = bool(re.search(wanted, said, re.IGNORECASE))
        right += good
        shown = " ".join(said.split()).replace("|", "\\|")
        lines.append(f"| {'right' if good else 'WRONG'} | {question} | {shown} |")
    words, clean, tales = known_words(), 0, []
    for opening in OPENINGS:
        said = run(args, opening, "-n", "200", "--ignore-eos").split("<|")[0]
        story = opening + said if said[:1] in ",.;:" else f"{opening} {said}"
        faults = faults_of(story, words)
        clean += not faults
        tales.append(f"{' '.join(story.split())}\n\nFaults: {'; '.join(faults) or 'none'}\n")
    summary = f"{right} of {len(asked)} held-out questions right ({NEEDED} needed); {clean} of {len(OPENINGS)} stories without fault"
    print("\n".join(l for l in lines if "WRONG" in l))
    print(summary)
    if args.output:
        args.output.write_text(f"# Check of the demo model\n\n{summary}. Greedy, on the CPU.\n\n" + "\n".join(lines) + "\n\n## Stories of 200 tokens\n\n" + "\n".join(tales))
    return 0 if right >= NEEDED and clean == len(OPENINGS) else 1


if __name__ == "__main__":
    sys.exit(main())
