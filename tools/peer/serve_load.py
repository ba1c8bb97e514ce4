#!/usr/bin/env python3
"""Measure servers under load: redline serve, llama-server, and whatever else answers POST /completion as they do, or with
--v1 MODEL POST /v1/completions, as routers in front of servers do. Prompts are made-up words then, a token or more each.

Prompts are random tokens, the same ones for each server, and each answer has exactly --gen tokens. All servers are started
here, one after the other, or lie at an address already. What is measured:

  closed loop   --users N: so many users, each of whom sends the next request when the last one was answered
  open loop     --rate R: R requests a second arrive, whether or not earlier ones were answered
  --turns T     conversations: each user's prompt is all that was said before and --prompt tokens more
  --long P      a prompt of P tokens arrives while the users generate

"tok/s" counts generated tokens over the whole time, "prompt/s" those of prompts. "first" is the time to the first token,
"between" that from one to the next, in milliseconds at p50, p95 and p99. A server's answers that fail or that have another
number of tokens are counted as failed, and no ratio is given.

examples:
  serve_load.py --server redline=http://127.0.0.1:8080 --users 1 4 16 --prompt 128 --gen 64
  serve_load.py --start 'redline=redline serve -m model.gguf --port {port} --parallel 16 -c 512' \\
                --start 'llama-server=llama-server -m model.gguf --port {port} -np 16 -c 8192' --users 1 4 16
  serve_load.py --server a=http://127.0.0.1:8080 --users 4 --turns 12 --prompt 200
"""

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.parse

START_SECONDS = 300
ANSWER_SECONDS = 600


class Problem(Exception):
    pass


class Answer:
    """One request: when it was sent, when text arrived, and what the server counted."""

    def __init__(self, prompt, gen):
        self.prompt, self.gen = prompt, gen
        self.sent, self.arrived, self.ended, self.problem = 0.0, [], 0.0, None

    @property
    def first(self):
        return self.arrived[0] - self.sent


async def read_events(reader):
    """The JSON of each server-sent event, as soon as it is there; chunks are taken apart on the way."""
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if b"chunked" not in head.lower():
        raise Problem(f"status {status}: {(await reader.read(500)).decode(errors='replace')}")
    held = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        held += (await reader.readexactly(size + 2))[:-2]
        while b"\n" in held:
            line, held = held.split(b"\n", 1)
            if line.startswith(b"data: ") and b"[DONE]" not in line:
                yield json.loads(line[6:])


def request_of(server, tokens, gen, cache):
    """The path and the body of a request."""
    if not server.model:
        return "/completion", {"prompt": tokens, "n_predict": gen, "ignore_eos": True, "stream": True, "temperature": 0.8,
                               "cache_prompt": cache}
    text = " ".join(f"{token:x}" for token in tokens)
    return "/v1/completions", {"model": server.model, "prompt": text, "max_tokens": gen, "ignore_eos": True, "stream": True,
                               "stream_options": {"include_usage": True}, "temperature": 0.8}


async def ask(server, tokens, gen, cache=True):
    """Sends a request and reads its answer to the end; a failure is in the answer."""
    answer = Answer(len(tokens), gen)
    path, request = request_of(server, tokens, gen, cache)
    body = json.dumps(request).encode()
    answer.sent = time.perf_counter()
    writer = None
    try:
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1 << 20)
        writer.write(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(body)) + body)
        async with asyncio.timeout(ANSWER_SECONDS):
            async for event in read_events(reader):
                (take_v1 if server.model else await_end)(answer, event)
        if not answer.ended:
            raise Problem("the stream ended before the answer did")
    except (Problem, OSError, ValueError, asyncio.IncompleteReadError, TimeoutError) as problem:
        answer.problem = f"{type(problem).__name__}: {problem}"
    finally:
        if writer:
            writer.close()
    return answer


def await_end(answer, event):
    now = time.perf_counter()
    if "error" in event:
        raise Problem(f"an error event: {event['error']}")
    if event.get("content"):
        answer.arrived.append(now)
    if event.get("stop"):
        answer.ended = now
        if event.get("tokens_predicted") != answer.gen:
            raise Problem(f"{event.get('tokens_predicted')} tokens instead of {answer.gen}")
        if not answer.arrived:
            raise Problem("no text at all")


def take_v1(answer, event):
    now = time.perf_counter()
    if "error" in event:
        raise Problem(f"an error event: {event['error']}")
    if any(choice.get("text") for choice in event.get("choices", [])):
        answer.arrived.append(now)
    if usage := event.get("usage"):
        answer.ended, answer.prompt = now, usage["prompt_tokens"]
        if usage["completion_tokens"] != answer.gen:
            raise Problem(f"{usage['completion_tokens']} tokens instead of {answer.gen}")
        if not answer.arrived:
            raise Problem("no text at all")


class Server:
    """One that lies at an address, or that is started by a command and ended again. `model`: for POST /v1/completions."""

    def __init__(self, name, address=None, command=None, model=None):
        self.name, self.command, self.process, self.model = name, command, None, model
        parts = urllib.parse.urlsplit(address or "http://127.0.0.1:0")
        self.host, self.port = parts.hostname, parts.port

    async def healthy(self):
        try:
            reader, writer = await asyncio.open_connection(self.host, self.port)
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            status = await reader.readline()
            writer.close()
            return b" 200" in status
        except OSError:
            return False

    async def start(self, log):
        if not self.command:
            if not await self.healthy():
                raise Problem(f"{self.name}: nothing healthy at {self.host}:{self.port}")
            return
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = shlex.split(self.command.replace("{port}", str(self.port)))
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        except OSError as problem:
            raise Problem(f"{self.name}: cannot start: {problem}") from problem
        begin = time.monotonic()
        while not await self.healthy():
            if self.process.poll() is not None:
                raise Problem(f"{self.name}: exit status {self.process.returncode}; see its log")
            if time.monotonic() - begin > START_SECONDS:
                raise Problem(f"{self.name}: not healthy after {START_SECONDS} s; see its log")
            await asyncio.sleep(0.2)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            self.process.kill()
            self.process.wait()


def made_up(seed, count, vocab):
    """Random tokens, the same for each server. The first hundreds of a vocabulary are bytes and control tokens."""
    chance = random.Random(seed)
    return [chance.randrange(min(1000, vocab // 2), vocab) for _ in range(count)]


async def closed_loop(server, options, users):
    async def user(number):
        answers = []
        for turn in range(options.requests):
            tokens = made_up(f"{options.seed} {users} {number} {turn}", options.prompt, options.vocab)
            answers.append(await ask(server, tokens, options.gen))
        return answers
    return [answer for each in await asyncio.gather(*map(user, range(users))) for answer in each]


async def open_loop(server, options, rate):
    chance = random.Random(options.seed)
    asked = []
    for number in range(options.arrivals):
        tokens = made_up(f"{options.seed} open {rate} {number}", options.prompt, options.vocab)
        asked.append(asyncio.create_task(ask(server, tokens, options.gen)))
        await asyncio.sleep(chance.expovariate(rate))
    return await asyncio.gather(*asked)


async def conversations(server, options, users):
    """Each turn's prompt is the last one, made-up tokens for its answer, and a new question."""
    async def user(number):
        answers, said = [], made_up(f"{options.seed} system", options.prompt, options.vocab)
        for turn in range(options.turns):
            said = said + made_up(f"{options.seed} {users} {number} {turn}", options.prompt, options.vocab)
            answers.append(await ask(server, said, options.gen))
            said = said + made_up(f"{options.seed} {number} answer {turn}", options.gen, options.vocab)
        return answers
    return [list(turn) for turn in zip(*await asyncio.gather(*map(user, range(users))))]


async def long_prompt(server, options, users):
    """The answers of users before and while a long prompt is read, and the long prompt's alone and beside them."""
    tokens = made_up(f"{options.seed} long alone", options.long, options.vocab)
    alone = await ask(server, tokens, 8, cache=False)
    generating = [asyncio.create_task(ask(server, made_up(f"{options.seed} g {number}", options.prompt, options.vocab),
                                          options.gen)) for number in range(users)]
    await asyncio.sleep(options.before)
    beside = await ask(server, made_up(f"{options.seed} long", options.long, options.vocab), 8, cache=False)
    return alone, beside, await asyncio.gather(*generating)


def percentiles(values):
    values = sorted(values)
    return [1000 * values[min(len(values) - 1, int(part * len(values)))] for part in (0.5, 0.95, 0.99)] if values else []


def gaps(answer):
    return [later - sooner for sooner, later in zip(answer.arrived, answer.arrived[1:])]


def summary(answers):
    good = [answer for answer in answers if not answer.problem]
    seconds = max(a.ended for a in good) - min(a.sent for a in good) if good else 0
    return {
        "requests": len(answers), "failed": len(answers) - len(good),
        "problem": next((answer.problem for answer in answers if answer.problem), None),
        "seconds": seconds,
        "generated_per_second": sum(a.gen for a in good) / seconds if good else 0,
        "prompt_per_second": sum(a.prompt for a in good) / seconds if good else 0,
        "first_ms": percentiles([a.first for a in good]),
        "between_ms": percentiles([gap for a in good for gap in gaps(a)]),
    }


def long_summary(alone, beside, generating):
    if problem := next((a.problem for a in (alone, beside, *generating) if a.problem), None):
        return {"problem": problem, "failed": 1}
    times = [(later, later - sooner) for a in generating for sooner, later in zip(a.arrived, a.arrived[1:])]
    # Their first tokens are left out: the users' prompts are read then.
    begin = max(a.arrived[0] for a in generating)
    until = beside.arrived[0]
    return {"failed": 0, "long_first_alone_ms": 1000 * alone.first, "long_first_beside_ms": 1000 * beside.first,
            "between_before_ms": percentiles([gap for at, gap in times if begin < at <= beside.sent]),
            "between_beside_ms": percentiles([gap for at, gap in times if beside.sent < at <= until + gap])}


async def measure(server, options):
    """All rows of one server: name of the row -> summary."""
    rows = {}

    def add(name, row):
        rows[name] = row
        print(f"{server.name:14} {name:24} {line_of(row)}", file=sys.stderr, flush=True)
    await ask(server, made_up("warm", options.prompt, options.vocab), options.gen)
    for users in options.users:
        if options.turns:
            turns = await conversations(server, options, users)
            for number in sorted({0, 1, len(turns) - 1}):
                add(f"{users} users, turn {number + 1}", summary(turns[number]))
        elif options.long:
            add(f"{users} users and {options.long}", long_summary(*await long_prompt(server, options, users)))
        else:
            add(f"{users} users", summary(await closed_loop(server, options, users)))
    for rate in options.rate:
        add(f"{rate:g} a second", summary(await open_loop(server, options, rate)))
    return rows


def shown(values):
    return " / ".join(f"{value:.1f}" for value in values)


def line_of(row):
    if row.get("problem"):
        return f"{row['failed']} failed: {row['problem'][:150]}"
    if "long_first_alone_ms" in row:
        return (f"long prompt {row['long_first_alone_ms']:.0f} alone, {row['long_first_beside_ms']:.0f} beside; "
                f"between {shown(row['between_before_ms'])} before, {shown(row['between_beside_ms'])} beside")
    return (f"{row['generated_per_second']:8.1f} tok/s {row['prompt_per_second']:8.1f} prompt/s  first "
            f"{shown(row['first_ms'])}  between {shown(row['between_ms'])}")


def table(measured):
    names = list(measured)
    rows = [row for row in measured[names[0]]]
    lines = ["| load | server | tok/s | ratio | first, ms | between, ms |", "|---|---|---:|---:|---|---|"]
    for row in rows:
        last = measured[names[-1]].get(row, {})
        for name in names:
            one = measured[name].get(row, {"problem": "not measured", "failed": 1})
            if one.get("problem") or "generated_per_second" not in one:
                lines.append(f"| {row} | {name} | {line_of(one)} | | | |")
                continue
            compared = name != names[-1] and not last.get("problem") and last.get("generated_per_second")
            ratio = f"{one['generated_per_second'] / last['generated_per_second']:.2f}" if compared else ""
            lines.append(f"| {row} | {name} | {one['generated_per_second']:.1f} | {ratio} | "
                         f"{shown(one['first_ms'])} | {shown(one['between_ms'])} |")
    return "\n".join(lines)


async def measure_all(servers, options):
    measured = {}
    for server in servers:
        with open(options.log, "ab") if options.log else open(os.devnull, "wb") as log:
            try:
                await server.start(log)
                measured[server.name] = await measure(server, options)
            except Problem as problem:
                print(f"serve_load.py: {problem}", file=sys.stderr)
                measured[server.name] = {}
            finally:
                server.stop()
    return measured


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", default=[], metavar="NAME=URL", help="a server that runs")
    parser.add_argument("--start", action="append", default=[], metavar="NAME=COMMAND",
                        help="a server to start; {port} stands for its port")
    parser.add_argument("--users", type=int, nargs="*", default=[], metavar="N", help="users of a closed loop")
    parser.add_argument("--requests", type=int, default=3, help="requests of each user (default: %(default)s)")
    parser.add_argument("--rate", type=float, nargs="*", default=[], metavar="R", help="requests a second, an open loop")
    parser.add_argument("--arrivals", type=int, default=50, help="requests of an open loop (default: %(default)s)")
    parser.add_argument("--prompt", type=int, default=128, help="tokens of a prompt (default: %(default)s)")
    parser.add_argument("--gen", type=int, default=64, help="tokens of an answer (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=0, help="turns of conversations")
    parser.add_argument("--long", type=int, default=0, metavar="TOKENS", help="a prompt that arrives beside the users")
    parser.add_argument("--before", type=float, default=2.0, metavar="SECONDS", help="when it arrives")
    parser.add_argument("--v1", metavar="MODEL", help="ask POST /v1/completions for this model, in words")
    parser.add_argument("--vocab", type=int, default=30000, help="tokens are drawn below this (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", help="the file for what started servers print")
    parser.add_argument("--json", metavar="FILE", help="writes all figures there")
    options = parser.parse_args()
    if not options.users and not options.rate:
        options.users = [1, 4, 16]
    servers = [Server(*pair.split("=", 1), model=options.v1) for pair in options.server if "=" in pair]
    servers += [Server(name, command=command, model=options.v1) for name, _, command in (pair.partition("=") for pair in options.start)]
    if not servers or len(servers) < len(options.server) + len(options.start):
        parser.error("name at least one server: --server NAME=URL, or --start 'NAME=COMMAND with {port}'")
    return options, servers


def main():
    options, servers = parsed()
    measured = asyncio.run(measure_all(servers, options))
    print(table(measured))
    if options.json:
        facts = {"date": datetime.date.today().isoformat(), "prompt": options.prompt, "gen": options.gen,
                 "servers": {server.name: server.command or f"{server.host}:{server.port}" for server in servers},
                 "measured": measured}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=1)
    failed = any(not rows or any(row.get("problem") for row in rows.values()) for rows in measured.values())
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
