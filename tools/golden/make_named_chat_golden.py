#!/usr/bin/env python3
"""Writes tests/golden/text/named_chats.json: conversations as llama.cpp's built-in chat templates render them.

usage: tools/golden/make_named_chat_golden.py --peer PATH MODEL

PATH is the folder of llama.cpp's tools, or a program that runs one by its name; MODEL is any small model, of which only
the vocabulary counts.
"""
import argparse
import json
import os
import re
import sys
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peer"))
from peer_programs import PeerServer, Problem, Programs, run

USER = [["user", "What is 2 + 2?"]]
TURNS = [["user", "Hello!"], ["assistant", "Hi, what can I do?"], ["user", "Name a colour\nand a number."]]
SYSTEM = ["system", "You are terse."]
CONVERSATIONS = [USER, [SYSTEM, *USER], TURNS, [SYSTEM, *TURNS, ["assistant", "Blue, 7."], ["user", "Thanks"]]]


def names(programs):
    """The built-in templates that llama-server's help lists."""
    text = run(programs.peer("llama-server", "--help"))
    listed = re.search(r"--chat-template JINJA_TEMPLATE.*?list of built-in templates:(.*?)\(env", text, re.S)
    if not listed:
        raise Problem("llama-server --help lists no built-in templates")
    return re.findall(r"[^\s,]+", listed.group(1))


def apply(server, messages):
    wish = {"messages": [{"role": role, "content": text} for role, text in messages]}
    request = urllib.request.Request(server.address + "/apply-template", json.dumps(wish).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["prompt"]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--peer", required=True)
    arguments.add_argument("model")
    given = arguments.parse_args()
    programs = Programs("redline", given.peer)
    version = re.search(r"version: (.*)", run(["sh", "-c", '"$@" 2>&1', "-", *programs.peer("llama-server", "--version")]))
    golden = {"llama.cpp": version.group(1) if version else "unknown", "conversations": CONVERSATIONS, "templates": {}}
    for name in names(programs):
        with PeerServer(programs, given.model, 1, "--no-jinja", "--chat-template", name, "-c", 256) as server:
            golden["templates"][name] = [apply(server, messages) for messages in CONVERSATIONS]
    path = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "golden", "text", "named_chats.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(str(problem))
