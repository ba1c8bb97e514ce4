#!/usr/bin/env python3
"""Run a command and print the peak of its memory by kind, as Linux counts it: anonymous (heap, and what a CPU
device's buffers are), file (programs, and mapped files), shared (on Mesa's drivers: buffers that the host can
write, so staging on a card, and all device memory on an APU), and pinned. Sampled every few milliseconds.

A big model must not need much of it while it loads, beside what its device keeps. Without a GPU, on a stand-in
for a card:
  tools/measure/make_random_model.py qwen2.5-7b Q4_0 --layers 20 -o big.gguf
  tools/measure/load_memory.py tools/vulkan/vulkan-lab run navi31 build/ci/redline run --device vulkan -m big.gguf -p hi -n 1
"""

import subprocess
import sys
import time

KINDS = {"RssAnon": "anonymous", "RssFile": "file", "RssShmem": "shared", "VmPin": "pinned", "VmLck": "locked",
         "VmRSS": "all"}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    peak = dict.fromkeys(KINDS, 0)
    process = subprocess.Popen(sys.argv[1:])
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                for line in status:
                    key, _, rest = line.partition(":")
                    if key in peak:
                        peak[key] = max(peak[key], int(rest.split()[0]))
        except (FileNotFoundError, ProcessLookupError):
            break
        time.sleep(0.003)
    print("peak, MiB:", ", ".join(f"{name} {peak[key] / 1024:.1f}" for key, name in KINDS.items()), file=sys.stderr)
    sys.exit(process.wait())


if __name__ == "__main__":
    main()
