"""vllm-router with two servers behind it, one of which ends and comes back under load.

REDLINE is the program, and MODEL its model, if not the demo model.
"""
import atexit
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from checks import *

PROGRAM = os.environ["REDLINE"]
MODEL = [os.environ["MODEL"]] if os.environ.get("MODEL") else []
folder = pathlib.Path(tempfile.mkdtemp(prefix="redline_router_"))
running = []


@atexit.register
def end_all():
    for process in running:
        process.kill()
        process.wait()
    shutil.rmtree(folder)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what, done, seconds=120):
    for _ in range(seconds * 10):
        try:
            if done():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"{what}: not after {seconds} s")


def serves(base):
    return get("/health", base).status == 200


def start(port):
    log = open(folder / f"{port}.log", "a")
    process = subprocess.Popen([PROGRAM, "serve", *MODEL, "--device", "cpu", "--port", str(port), "-c", "2048",
                                "--api-key", KEY], stdout=log, stderr=log)
    running.append(process)
    until("a server is up", lambda: serves(f"http://127.0.0.1:{port}"))
    return process


def count(port):
    """Requests that this server has answered to the end."""
    with get("/metrics", f"http://127.0.0.1:{port}") as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:request_success_total"))


def chat(text, tokens=24):
    answer = post("/v1/chat/completions", {"model": model, "max_tokens": tokens, "messages": [
        {"role": "user", "content": text}]}, router)
    assert answer["choices"][0]["finish_reason"] in ("stop", "length"), answer
    return answer["choices"][0]["message"]["content"]


def stream(text, tokens=24):
    body = {"model": model, "max_tokens": tokens, "stream": True, "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(router + "/v1/chat/completions", json.dumps(body).encode(), {
        "Authorization": f"Bearer {KEY}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        events = [line[6:].decode() for line in answer.read().split(b"\n") if line.startswith(b"data: ")]
    assert events[-1] == "[DONE]" and '"error"' not in "".join(events), events[-3:]
    return len(events)


def both_serve():
    before = [count(port) for port in ports]
    at_once(16, lambda i: chat(f"{i} is a number. Tell me about it."))
    after = [count(port) for port in ports]
    assert all(new > old for old, new in zip(before, after)), (before, after)
    return [new - old for old, new in zip(before, after)]


class Load:
    """Requests by six users, one after another, until it is left; none may fail."""

    def __enter__(self):
        self.done, self.problems, self.ends = 0, [], False
        self.threads = [threading.Thread(target=self.user, args=(i,)) for i in range(6)]
        for thread in self.threads:
            thread.start()
        return self

    def user(self, i):
        while not self.ends:
            try:
                (stream if i % 2 else chat)(f"User {i} asks for the {self.done}th time: who are you?", 48)
                self.done += 1
            except Exception as problem:
                self.problems.append(f"{type(problem).__name__}: {problem} {getattr(problem, 'fp', None) and problem.read()}")

    def more(self, requests):
        wanted = self.done + requests
        until("requests under load", lambda: self.done >= wanted)

    def __exit__(self, *_):
        self.ends = True
        for thread in self.threads:
            thread.join()


def drained():
    """SIGTERM under load ends one server, and no request fails; started again, it is used again."""
    with Load() as load:
        load.more(12)
        servers[1].send_signal(signal.SIGTERM)
        assert servers[1].wait(timeout=120) == 0, servers[1].returncode
        load.more(24)
        servers[1] = start(ports[1])
        until("the server that is back gets requests", lambda: count(ports[1]) > 0)
    assert not load.problems, load.problems[:3]
    return f"{load.done} requests, none failed"


ports = [free_port(), free_port()]
servers = [start(port) for port in ports]
router_port = free_port()
router = f"http://127.0.0.1:{router_port}"
router_log = open(folder / "router.log", "w")
running.append(subprocess.Popen(
    [str(pathlib.Path(sys.executable).parent / "vllm-router"), "--port", str(router_port), "--policy", "round_robin",
     "--prometheus-port", str(free_port()), "--health-check-interval-secs", "1", "--cb-timeout-duration-secs", "5",
     "--worker-urls", *(f"http://127.0.0.1:{port}" for port in ports)], stdout=router_log, stderr=router_log))
until("the router is up", lambda: serves(router))
with get("/v1/models", router) as answer:
    model = json.load(answer)["data"][0]["id"]

check("models", lambda: model)
check("chat", lambda: chat("What is the capital of France?"))
check("stream", lambda: stream("What is the capital of France?"))
check("both servers get requests", both_serve)
check("a server ends under load, and comes back", drained)
check("error: too long", lambda: raised(urllib.error.HTTPError, lambda: chat("word " * 20000), "400"))
