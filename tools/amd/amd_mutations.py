"""Mutation tests of kernels: one instruction is made to do nothing, and the tests of ops have to notice. A mutation after
which every result of every case has the same bits cannot be noticed: either the kernel is correct without the instruction
(a register that has that value already, lanes that repeat work, upper halves of small offsets), or a case is missing. It
is listed for a reader to judge, and not counted."""

import os
import random
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import amd_emulator

# Waits and hints, which do nothing in the emulator either, and branches that only skip what would do nothing.
WITHOUT_EFFECT = re.compile(r"s_(nop|wait|delay|clause|code_end|endpgm|setprio|set_inst|inst_|sleep|sendmsg|icache|prefetch"
                            r"|barrier_signal|ttrace|cbranch_execz)|buffer_(gl|inv|wb)|global_(inv|wb)|v_nop")
# An exponential below e^-103.3 is set to 0, and one above e^88.7 to infinity, by a comparison and a choice. What they replace
# is 2^-149 at most, or infinite already, unless the exponent is infinite: kernels see to that before.
COMPARISON = re.compile(r"v_cmp_(\w+)_f32\S* ([\w\[\]:]+), (\S+),")
LIMITS = {("ngt", "0xc2ce8ed0"), ("nlt", "0x42b17218")}
CHOICE = re.compile(r"v_cndmask_b32\S* .*, ([\w\[\]:]+)\s*//")
# Cases that launch a kernel are run in groups of this size.
MOST_CASES = 16
SECONDS = 300
UNCHANGED = "no result changes"


class Kernel:
    def __init__(self, listing, name, lines):
        self.listing, self.name, self.lines = listing, name, lines  # numbers of lines, each an instruction


def kernels_in(folder, cover):
    """The disassemblies in a folder that were executed."""
    found = {}
    for listing in sorted(os.listdir(folder)):
        current, limited = None, {}
        with open(os.path.join(folder, listing)) as lines:
            for number, line in enumerate(lines):
                if head := re.match(r"[0-9a-f]+ <(\w+)>:", line):
                    current, limited = found.setdefault(head[1], Kernel(listing, head[1], [])), {}
                    continue
                text = line.strip()
                if compared := COMPARISON.match(text):
                    limited[compared[2]] = (compared[1], compared[3]) in LIMITS
                elif text.startswith("v_cmp"):
                    limited.clear()
                elif (choice := CHOICE.match(text)) and limited.get(choice[1]):
                    continue
                if current and line.startswith("\t") and "// " in line and not WITHOUT_EFFECT.match(line.strip()):
                    missed = cover[current.name][1] if current.name in cover else ()
                    if int(line.split("// ")[1].split(":")[0], 16) not in missed:
                        current.lines.append(number)
    return found


def launching_cases(log):
    """The cases of op_test that launch each kernel."""
    launched, case = {}, None
    for line in log.splitlines():
        if line.startswith("[redline] case "):
            case = line[len("[redline] case "):]
        elif case and (launch := re.match(r"\[amdemu\] (\w+)<<<", line)):
            launched.setdefault(launch[1], {})[case] = True
    return {kernel: list(cases) for kernel, cases in launched.items()}


def results_of(log):
    """Hashes of the results of each case of op_test, in the order that it computes them in."""
    results, case = {}, None
    for line in log.splitlines():
        if line.startswith("[redline] case "):
            case = line[len("[redline] case "):]
            results[case] = []
        elif line.startswith("[redline] results "):
            results[case].append(line)
    return results


class Mutation:
    def __init__(self, target, kernel, line, cases, right):
        self.target, self.kernel, self.line, self.cases = target, kernel, line, cases
        self.right = right  # results of all cases without it
        self.instruction, self.verdict = "", UNCHANGED

    def run(self, emulator, op_test, number):
        step = -(-len(self.cases) // MOST_CASES)
        for first in range(step):
            run = self.run_with("s_nop 0", self.cases[first::step], emulator, op_test, number)
            if verdict := self.verdict_of(run):
                self.verdict = verdict
                break
            if any(self.right[case] != results for case, results in results_of(run.log).items() if case in self.right):
                self.verdict = "NOT NOTICED"
        return self

    @staticmethod
    def verdict_of(run):
        if run.faults:
            return "noticed: " + re.sub(r".*: (?=\w)|0x[0-9a-f]+", "", run.faults[0])[:60]
        if run.code != 0:
            return "noticed: out of its bound" if run.code == 1 else f"noticed: {run.code}"
        return ""

    def run_with(self, text, cases, emulator, op_test, number):
        """The tests with another instruction in the disassembly that is executed."""
        whole = os.path.join(emulator.listings, self.target)
        changed = os.path.join(emulator.library, f"mutation-{number}")
        shutil.rmtree(changed, ignore_errors=True)
        os.makedirs(changed)
        for name in os.listdir(whole):
            if name != self.kernel.listing:
                os.symlink(os.path.join(whole, name), os.path.join(changed, name))
        with open(os.path.join(whole, self.kernel.listing)) as original:
            lines = original.readlines()
        self.instruction, rest = lines[self.line].strip().split("// ", 1)
        lines[self.line] = f"\t{text} // {rest}\n"
        with open(os.path.join(changed, self.kernel.listing), "w") as out:
            out.writelines(lines)
        run = emulator.run([*op_test, "-tc=every*row class*"], self.target, listings=changed, timeout=SECONDS,
                           settings={"RL_TEST_CASES": "|".join(cases), "RL_TEST_SHOW": "1", "AMDEMU_KEEP_GOING": "0",
                                     "AMDEMU_RACE": "1"})
        shutil.rmtree(changed)
        return run


def chosen(emulator, op_test, targets, count, options):
    """Mutations by turns of the targets, of as many kernels."""
    known = {}

    def learn(target):
        run = emulator.run([*op_test, "-tc=every*row class*"], target,
                           {"RL_TEST_SHOW": "1", "AMDEMU_LOG": "1", "RL_TEST_EVERY": str(options.share)})
        if not run.right:
            raise SystemExit(f"tools/amd/test-amd: op_test on {target} is not right without a mutation: {run.faults[:1]}")
        known[target] = (kernels_in(os.path.join(emulator.listings, target), run.cover), launching_cases(run.log),
                         results_of(run.log))

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(learn, targets))
    draw = random.Random(options.seed)
    for i in range(count):
        target = targets[i % len(targets)]
        kernels, cases, right = known[target]
        kernel = kernels[draw.choice(sorted(set(cases) & set(kernels)))]
        yield Mutation(target, kernel, draw.choice(kernel.lines), cases[kernel.name], right)


def check(emulator, build, targets, options):
    op_test = [os.path.join(build, "tests/emulated_tests"), "-sf=*/op_test.cpp"]
    mutations = list(chosen(emulator, op_test, targets, options.mutations, options))
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda i: mutations[i].run(emulator, op_test, i), range(len(mutations))))
    print("| target | kernel | instruction without effect | cases | tests |\n|---|---|---|---:|---|")
    for m in mutations:
        print(f"| {m.target} | {m.kernel.name} | `{m.instruction.strip()}` | {len(m.cases)} | {m.verdict} |")
    noticed = sum(m.verdict.startswith("noticed") for m in mutations)
    unchanged = sum(m.verdict == UNCHANGED for m in mutations)
    print(f"\nseed {options.seed}: {noticed} of {len(mutations) - unchanged} noticed; {unchanged} more change no result")
    return 0 if noticed + unchanged == len(mutations) else 1
