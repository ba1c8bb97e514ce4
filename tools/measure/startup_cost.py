#!/usr/bin/env python3
"""Measures the time of starting with and without the pipeline cache: whole runs of `redline run -n 1`, each with an empty cache
folder and then with what that run left there. The driver's cache of compiled shaders is turned off (Mesa's and
NVIDIA's), so that the figures are of redline's.

examples:
  startup_cost.py --device vulkan
  startup_cost.py --redline build/release/redline --device vulkan:1 -m model.gguf --rounds 5
  startup_cost.py --redline "tools/vulkan/vulkan-lab run navi31 build/ci/redline"    # AMD's compiler, without a card
"""

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time


def start(options, cache_home):
    """Seconds of one run that loads the model and makes one token."""
    environment = {**os.environ, "XDG_CACHE_HOME": cache_home, "MESA_SHADER_CACHE_DISABLE": "true",
                   "__GL_SHADER_DISK_CACHE": "0"}
    command = [*shlex.split(options.redline), "run", "-p", "Hello", "-n", "1", "--temp", "0", "--device", options.device]
    command += ["-m", options.model] if options.model else []
    begin = time.monotonic()
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")
    return time.monotonic() - begin


def bytes_in(folder):
    return sum(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(folder) for name in names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redline", default="redline", metavar="COMMAND")
    parser.add_argument("--device", default="vulkan", help="default: vulkan")
    parser.add_argument("-m", "--model", help="default: the demo model")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    without, with_cache, size = [], [], 0
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as home:
            without.append(start(options, home))
            size = bytes_in(home)
            with_cache.append(start(options, home))
    print("| device | model | without the cache, s | with it, s | cache, KB |\n|---|---|---:|---:|---:|")
    model = os.path.basename(options.model) if options.model else "demo"
    print(f"| {options.device} | {model} | {statistics.median(without):.2f} | {statistics.median(with_cache):.2f} | "
          f"{size / 1e3:.0f} |")


if __name__ == "__main__":
    main()
