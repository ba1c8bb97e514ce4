#!/usr/bin/env python3
"""Measures what PyTorch reaches on the GPU with plain products of square matrices and a plain copy: yardsticks for the shares
that `redline bench --ops` prints.

  matrix_yardstick.py           a table
  matrix_yardstick.py --json    the same for programs

Exits with 1, and says so, where there is no PyTorch with a GPU.
"""

import argparse
import json
import sys

SIZES = (4096, 8192)
REPETITIONS = 10


def best_seconds(torch, work):
    """The seconds of the fastest of several runs, each timed by the GPU."""
    for _ in range(3):
        work()
    times = []
    for _ in range(REPETITIONS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return min(times)


def measure(torch):
    """[(name, unit, value)]"""
    found = []

    def add(name, unit, scale, amount, work):
        try:
            found.append((name, unit, amount / best_seconds(torch, work) * scale))
        except RuntimeError as problem:  # what a card cannot do, or has no room for
            print(f"{name}: {str(problem).splitlines()[0]}", file=sys.stderr)

    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    add("copy of 1 GiB, read and written", "GB/s", 1e-9, 2 * source.numel(), lambda: target.copy_(source))
    del source, target
    for size in SIZES:
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        add(f"bf16 {size}^3", "TFLOP/s", 1e-12, 2.0 * size**3, lambda a=a, b=b: torch.mm(a, b))
        a, b = (torch.randint(-127, 128, (size, size), device="cuda", dtype=torch.int8) for _ in range(2))
        # The second factor lies by columns, as the units want it.
        add(f"int8 {size}^3", "TOP/s", 1e-12, 2.0 * size**3, lambda a=a, b=b: torch._int_mm(a, b.t()))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is not installed: no yardsticks")
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU: no yardsticks")
    found = measure(torch)
    if options.json:
        print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__,
                          "yardsticks": [dict(zip(("name", "unit", "value"), one)) for one in found]}, indent=1))
        return
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for name, unit, value in found:
        print(f"{name:<32} {value:9.1f} {unit}")


if __name__ == "__main__":
    main()
