"""What of the kernels of AMD targets a run of tests executed."""

import amd_emulator

WANTED = 0.95  # of a kernel's instructions
# They measure what a card can do: `redline bench` launches them, and nothing depends on what they compute.
MEASURE = ("peak_halfs", "peak_bytes")


def covered(rows, target):
    """All that was executed on a target, by kernel."""
    cover = {}
    for row in rows:
        if row.target == target:
            amd_emulator.merge(cover, row.run.cover)
    return cover


def report(rows, compiled, each):
    """The text of tables, and whether every kernel was launched. `each`: a table of kernels, too."""
    out = ["| target | kernels | launched | instructions of those | executed | kernels under 95 % |",
           "|---|---:|---:|---:|---:|---:|"]
    missing, low = {}, {}
    for target, kernels in compiled.items():
        cover = covered(rows, target)
        launched = [kernel for kernel in kernels if kernel in cover]
        of = sum(cover[kernel][0] for kernel in launched)
        executed = sum(of_kernel - len(missed) for of_kernel, missed in map(cover.get, launched))
        for kernel in kernels:
            if kernel not in cover and kernel not in MEASURE:
                missing.setdefault(kernel, []).append(target)
            elif kernel in cover and (share := 1 - len(cover[kernel][1]) / cover[kernel][0]) < WANTED:
                low.setdefault(kernel, {})[target] = share
        under = sum(target in shares for shares in low.values())
        out.append(f"| {target} | {len(kernels)} | {len(launched)} | {of} | {100 * executed / max(1, of):.1f} % | {under} |")
    if each and low:
        out += ["", "| kernel | " + " | ".join(compiled) + " |", "|---|" + "---:|" * len(compiled)]
        for kernel in sorted(low):
            shares = [f"{100 * low[kernel][t]:.0f} %" if t in low[kernel] else "" for t in compiled]
            out.append(f"| {kernel} | " + " | ".join(shares) + " |")
    for kernel in sorted(missing):
        where = "all targets" if len(missing[kernel]) == len(compiled) else ", ".join(missing[kernel])
        out.append(f"not launched: {kernel} on {where}")
    return "\n".join(out), not missing
