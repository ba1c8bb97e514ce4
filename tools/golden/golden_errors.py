#!/usr/bin/env python3
"""How far the logits of the tiny models are from those of transformers, a table of models and devices: from what
model_test -s wrote on each.

    RL_TEST_BACKENDS=cpu build/ci/tests/models_tests -s -tc='each tiny model gives*' > cpu.log
    tools/golden/golden_errors.py CPU=cpu.log "Vulkan, lavapipe=lavapipe-0.log,lavapipe-1.log" > table.md
"""

import re
import sys

CHECKED = re.compile(r"CHECK\( off < bound \)[^\n]*\n\s*values: CHECK\( (\S+) < +\S+ \)\n\s*logged: (\S+) on ")


def read(paths):
    """The largest relative error of each model, of tests without a failure."""
    worst = {}
    for path in paths.split(","):
        try:
            with open(path, encoding="utf-8", errors="replace") as log:
                text = log.read()
        except OSError as problem:
            sys.exit(f"tools/golden/golden_errors.py: {path}: {problem.strerror}")
        if ": ERROR: " in text:
            sys.exit(f"tools/golden/golden_errors.py: {path} has checks that failed")
        for off, name in CHECKED.findall(text):
            worst[name] = max(worst.get(name, 0.0), float(off))
    if not worst:
        sys.exit(f"tools/golden/golden_errors.py: {paths} has no errors; model_test writes them with -s")
    return worst


def main():
    devices = [given.partition("=")[::2] for given in sys.argv[1:]]
    if not devices or not all(path for _, path in devices):
        sys.exit(__doc__)
    errors = [read(path) for _, path in devices]
    print("| model | " + " | ".join(name for name, _ in devices) + " |\n|---" + "|---:" * len(devices) + "|")
    for model in sorted(set().union(*errors)):
        cells = [f"{found[model]:.1e}" if model in found else "–" for found in errors]
        print(f"| {model} | " + " | ".join(cells) + " |")
    print("| worst | " + " | ".join(f"{max(found.values()):.1e}" for found in errors) + " |")


if __name__ == "__main__":
    main()
