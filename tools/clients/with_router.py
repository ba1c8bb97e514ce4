"""vllm-router with three servers behind it: its policies, a server that ends, one that is killed, and one that comes back,
under load, with each request counted.

REDLINE is the program, and MODEL its model, if not the demo model.
"""
import atexit
import os
import pathlib
import shutil
import signal
import socket
import struct
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
        # vllm-router starts no other processes, but gives itself another name.
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


def zmq_library():
    """A folder in which libzmq.so.5 is the library that pyzmq has; none where pyzmq is not there."""
    try:
        import zmq
    except ImportError:
        return None
    beside = pathlib.Path(zmq.__file__).parent.parent / "pyzmq.libs"
    there = folder / "zmq"
    there.mkdir()
    for file in beside.iterdir():
        (there / ("libzmq.so.5" if file.name.startswith("libzmq") else file.name)).symlink_to(file)
    return there


class Worker:
    """A server that can be started again at the same address. `answered` counts what it has answered in all its lives."""

    def __init__(self, *more):
        self.port, self.more = free_port(), more
        self.base, self.log = f"http://127.0.0.1:{self.port}", folder / f"{self.port}.access"
        self.start()

    def start(self):
        environment = dict(os.environ)
        if zmq_folder:
            environment["LD_LIBRARY_PATH"] = str(zmq_folder)
        out = open(folder / f"{self.port}.log", "a")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", *MODEL, "--device", "cpu", "-t", "1", "--port", str(self.port), "-c", "2048", "--api-key", KEY,
             "--log-file", self.log, "--log-json", *self.more], stdout=out, stderr=out, env=environment)
        running.append(self.process)

    def ready(self):
        until("a server is up", lambda: serves(self.base))
        return self

    def answered(self):
        lines = [json.loads(line) for line in open(self.log)]
        return sum(line["status"] == 200 and line["path"] == "/v1/chat/completions" for line in lines)


class Router:
    def __init__(self, policy, workers, *more):
        self.base = f"http://127.0.0.1:{free_port()}"
        log = open(folder / f"router-{policy}.log", "w")
        self.process = subprocess.Popen(
            [str(pathlib.Path(sys.executable).parent / "vllm-router"), "--port", self.base.rsplit(":", 1)[1], "--policy", policy,
             "--prometheus-port", str(free_port()), "--health-check-interval-secs", "1", "--cb-timeout-duration-secs", "5",
             "--worker-startup-check-interval", "1", "--worker-urls", *(worker.base for worker in workers), *more],
            stdout=log, stderr=log)
        running.append(self.process)
        until("the router is up", lambda: serves(self.base))

    def end(self):
        self.process.kill()
        self.process.wait()


def chat(text, tokens=24, base=None):
    answer = post("/v1/chat/completions", {"model": model, "max_tokens": tokens, "messages": [
        {"role": "user", "content": text}]}, base or router.base)
    assert answer["choices"][0]["finish_reason"] in ("stop", "length"), answer
    return answer["choices"][0]["message"]["content"]


def stream(text, tokens=24):
    body = {"model": model, "max_tokens": tokens, "stream": True, "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(router.base + "/v1/chat/completions", json.dumps(body).encode(), {
        "Authorization": f"Bearer {KEY}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        events = [line[6:].decode() for line in answer.read().split(b"\n") if line.startswith(b"data: ")]
    assert events and events[-1] == "[DONE]" and '"error"' not in "".join(events), events[-3:]
    return len(events)


def logged():
    """The requests that each server has answered. A client has its answer before the line is in the log: two seconds without
    a new line have to pass first."""
    counts, since = None, time.time()
    while time.time() < since + 2:
        if counts != (now := [worker.answered() for worker in workers]):
            counts, since = now, time.time()
        time.sleep(0.1)
    return counts


def all_serve():
    before = logged()
    at_once(24, lambda i: chat(f"{i} is a number. Tell me about it."))
    new = [now - old for now, old in zip(logged(), before)]
    assert all(new) and sum(new) == 24, new
    return new


class Load:
    """Requests by six users, one after another, until it is left. Half of them are streams."""

    def __enter__(self):
        self.done, self.problems, self.ends, self.lock = 0, [], False, threading.Lock()
        self.before = sum(logged())
        self.threads = [threading.Thread(target=self.user, args=(i,)) for i in range(6)]
        for thread in self.threads:
            thread.start()
        return self

    def user(self, i):
        while not self.ends:
            try:
                (stream if i % 2 else chat)(f"User {i} asks for the {self.done}th time: who are you?", 48)
                with self.lock:
                    self.done += 1
            except Exception as problem:
                said = f"{type(problem).__name__}: {problem} {getattr(problem, 'fp', None) and problem.read()}"
                self.problems.append(("stream " if i % 2 else "chat ") + said)

    def more(self, requests):
        wanted = self.done + requests
        until("requests under load", lambda: self.done >= wanted)

    def __exit__(self, *_):
        self.ends = True
        for thread in self.threads:
            thread.join()


def comes_back(worker, load):
    """Starts it again, and waits until it answers requests of this load."""
    before = worker.answered()
    worker.start()
    worker.ready()
    until("the server that is back gets requests", lambda: worker.answered() > before)


def drained():
    """SIGTERM under load ends one server after the other, and no request fails; started again, each is used again."""
    with Load() as load:
        for worker in workers:
            load.more(12)
            worker.process.send_signal(signal.SIGTERM)
            assert worker.process.wait(timeout=120) == 0, worker.process.returncode
            load.more(12)
            comes_back(worker, load)
    assert not load.problems, load.problems[:3]
    counted = sum(logged()) - load.before
    assert counted == load.done, (counted, load.done)
    return f"{load.done} requests, each answered once, none failed"


def killed():
    """kill -9 under load: no more requests fail than ran there, and it is used again when it is back."""
    with Load() as load:
        load.more(12)
        workers[1].process.kill()
        workers[1].process.wait()
        load.more(24)
        comes_back(workers[1], load)
        load.more(12)
    assert len(load.problems) <= 6, (len(load.problems), load.problems[:3])
    return f"{load.done} requests were answered, {len(load.problems)} failed: {[each[:60] for each in load.problems]}"


def is_known_to_one(policy, *more, first=None):
    """Requests that begin alike go to the server that has read the beginning; with `first` by itself, and by its events."""
    global router
    router.end()
    router = Router(policy, workers, *more)
    time.sleep(1)
    text = " ".join(f"{policy} {i}" for i in range(100))
    chat(text, base=first and first.base)
    before = logged()
    for _ in range(6):
        chat(text)
    new = [now - old for now, old in zip(logged(), before)]
    assert sorted(new) == [0, 0, 6] and (not first or new[workers.index(first)] == 6), new
    return new


def less_loaded():
    global router
    router.end()
    router = Router("power_of_two", workers)
    with get("/get_load", workers[0].base) as answer:
        assert json.load(answer)["load"] == 0
    return all_serve()


def unpacked(data):
    """A value of msgpack, and what follows it."""
    kind, rest = data[0], data[1:]
    sized = {0xcc: "B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q", 0xcb: ">d", 0xdc: ">H", 0xdd: ">I", 0xde: ">H"}
    if kind == 0xc0:
        return None, rest
    if kind < 0x80:
        return kind, rest
    if 0xa0 <= kind < 0xc0:
        return rest[:kind & 31].decode(), rest[kind & 31:]
    if kind in sized:
        count = struct.calcsize(sized[kind])
        value, rest = struct.unpack(sized[kind], rest[:count])[0], rest[count:]
        if kind < 0xdc:
            return value, rest
    else:
        value = kind & 15
    values = []
    for _ in range(value * (2 if kind < 0x90 or kind == 0xde else 1)):
        each, rest = unpacked(rest)
        values.append(each)
    return (dict(zip(values[::2], values[1::2])) if kind < 0x90 or kind == 0xde else values), rest


def told():
    """The events of one server: the blocks of a prompt, in order, with their tokens."""
    import zmq
    with zmq.Context() as context, context.socket(zmq.SUB) as events:
        events.connect(workers[0].more[1].replace("*", "127.0.0.1"))
        events.subscribe("")
        events.rcvtimeo = 20000
        time.sleep(1)
        body = {"model": model, "max_tokens": 4, "messages": [{"role": "user", "content": " ".join(str(i) for i in range(60))}]}
        tokens = post("/v1/chat/completions/render", body, workers[0].base)["token_ids"]
        chat(body["messages"][0]["content"], 4, workers[0].base)
        stored, numbers = [], []
        while len(stored) < len(tokens) // 16 * 16:
            _, number, payload = events.recv_multipart()
            numbers.append(int.from_bytes(number, "big"))
            (when, batch, rank), rest = unpacked(payload)
            assert not rest and rank == 0 and abs(when - time.time()) < 60, (rest, rank, when)
            for event in batch:
                if event["type"] == "BlockStored":
                    assert event["block_size"] == 16 and len(event["token_ids"]) == 16 * len(event["block_hashes"]), event
                    stored += event["token_ids"]
    whole = tokens[:len(tokens) // 16 * 16]
    # The beginning of the template was known before.
    assert stored[:len(whole)] == whole or whole[-len(stored):] == stored, (stored[:20], whole[:20])
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
    return f"{len(stored)} tokens in {len(numbers)} messages"


zmq_folder = zmq_library()
workers = [Worker(*(("--kv-events", f"tcp://*:{free_port()}") if zmq_folder else ())) for _ in range(3)]
for worker in workers:
    worker.ready()
router = Router("round_robin", workers)
with get("/v1/models", router.base) as answer:
    model = json.load(answer)["data"][0]["id"]

check("models", lambda: model)
check("chat", lambda: chat("What is the capital of France?"))
check("stream", lambda: stream("What is the capital of France?"))
check("all servers get requests", all_serve)
check("servers end under load, and come back", drained)
check("a server is killed under load, and comes back", killed)
check("error: too long", lambda: raised(urllib.error.HTTPError, lambda: chat("word " * 20000), "400"))
check("policy power_of_two", less_loaded)
check("policy cache_aware", lambda: is_known_to_one("cache_aware"))
if zmq_folder:
    check("events", told)
    sources = []
    for worker in workers:
        sources += ["--kv-event-source", f"{worker.base}={worker.more[1].replace('*', '127.0.0.1')}"]
    check("policy kv_aware", lambda: is_known_to_one("kv_aware", *sources, "--kv-event-block-size", "16", "--kv-event-model", model,
                                                        first=workers[2]))
