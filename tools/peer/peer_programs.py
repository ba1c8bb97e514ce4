"""Runs redline and llama.cpp for other tools. Shared by compare_peer.py and peer_top1.py."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request


class Problem(Exception):
    """Something the user can act on; printed as one line."""


class Programs:
    """Builds the commands of both sides."""

    def __init__(self, redline, peer):
        self.redline_path = shutil.which(redline)
        self.peer_path = peer
        if peer and not os.path.exists(peer):
            raise Problem(f"--peer {peer}: no such file or folder")

    def redline(self, *arguments):
        if not self.redline_path:
            raise Problem("redline is not in PATH; say where it is with --redline")
        return [self.redline_path, *map(str, arguments)]

    def peer(self, tool, *arguments):
        if self.peer_path and os.path.isdir(self.peer_path):
            command = [os.path.join(self.peer_path, tool)]
        elif self.peer_path:
            command = [self.peer_path, tool]
        else:
            command = [tool]
        if not shutil.which(command[0]):
            raise Problem(f"{command[0]}: not found; say where llama.cpp's tools are with --peer")
        return command + [str(argument) for argument in arguments]


def run(command):
    """Standard output of a command; a Problem with the end of its errors when it does not exit with 0."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        end = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise Problem(f"{' '.join(command)}\n  exit status {done.returncode}: " + "\n  ".join(end))
    return done.stdout.decode(errors="replace")


def version_line(programs):
    """The versions that are compared: "redline VERSION, llama.cpp VERSION"."""
    ours = run(programs.redline("--version")).split("\n")[0]
    done = subprocess.run(programs.peer("llama-perplexity", "--version"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL)
    theirs = next((line for line in done.stdout.decode(errors="replace").splitlines() if "version" in line), "unknown version")
    return f"{ours}, llama.cpp {theirs.removeprefix('version: ')}"


class LocalServer:
    """A server of either program on a free local port, while its block runs."""

    def __init__(self, command):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.command = [*command, "--port", str(port)]
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        for _ in range(1200):
            if self.process.poll() is not None:
                raise Problem(f"{' '.join(self.command)}: ended with status {self.process.returncode}")
            try:
                urllib.request.urlopen(self.address + "/health", timeout=5).close()
                return self
            except OSError:  # not yet listening, or still loading
                time.sleep(0.1)
        self.__exit__()
        raise Problem(f"{self.command[0]}: not ready after two minutes")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ask(self, path, wish):
        """The JSON that the server answers with."""
        request = urllib.request.Request(self.address + path, json.dumps(wish).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=3600) as answer:
            return json.load(answer)


class PeerServer(LocalServer):
    """llama-server: unlike the other tools it reports token ids and probabilities."""

    def __init__(self, programs, model, threads, *further):
        flags = [*(["-t", threads] if threads else []), *further]
        super().__init__(programs.peer("llama-server", "-m", model, *flags))

    def complete(self, prompt, count):
        """[(id, lead over the next token in log-probability)] of the likeliest continuation."""
        wish = {"prompt": prompt, "n_predict": count, "temperature": 0, "n_probs": 2, "cache_prompt": False}
        steps = self.ask("/completion", wish)["completion_probabilities"]
        return [(step["id"], step["top_logprobs"][0]["logprob"] - step["top_logprobs"][1]["logprob"])
                for step in steps]
