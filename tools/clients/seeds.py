#!/usr/bin/python3
"""Asks a running server for eight seeded answers, each alone and then all together: are their tokens the same?

usage: tools/clients/seeds.py http://127.0.0.1:8080 KEY [TOKENS]

The prompts have different lengths, the answers different lengths and temperatures. Nothing is cached between them. Prints a
line for each, with the first token that differs; the status is 1 where one does.
"""
import sys

from checks import at_once, post

longest = int(sys.argv[3]) if len(sys.argv) > 3 else 64
SUBJECTS = ["the sea", "a clock", "two brothers", "an old town", "rain", "a robot", "the moon", "bread"]


def ask(i):
    answer = post("/v1/completions", {
        "prompt": f"Here is a long and winding story about {SUBJECTS[i]}. " * (1 + 3 * i) + "It begins:", "seed": 100 + i,
        "temperature": 0.5 + 0.2 * i, "max_tokens": longest - 3 * i, "logprobs": 0, "ignore_eos": True, "cache_prompt": False})
    return answer["choices"][0]["logprobs"]["tokens"]


alone = [ask(i) for i in range(8)]
different = 0
for i, (one, among) in enumerate(zip(alone, at_once(8, ask))):
    place = next((at for at, pair in enumerate(zip(one, among)) if pair[0] != pair[1]), None)
    different += place is not None or len(one) != len(among)
    print(f"seed {100 + i}: {len(one)} tokens, " + ("the same" if place is None else f"different from token {place} on"))
print(f"{8 - different} of 8 are the same alone and among seven others")
sys.exit(1 if different else 0)
