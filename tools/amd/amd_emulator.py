"""An emulator of AMD GPUs that tests run on: where it is, building it, programs with it as their HIP device, and what a
code object holds. It is a folder outside of the repository, with a build.sh that makes a libamdhip64.so.6."""

import os
import re
import shutil
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Compute units of a card of each target: grids and the choice of kernels go by them.
UNITS = {"gfx90a": 104, "gfx942": 304, "gfx1030": 80, "gfx1100": 96, "gfx1151": 40, "gfx1201": 64}
TARGETS = tuple(UNITS)
# A memory fault, a race, an instruction that the emulator lacks: all but its statistics and its list of launches.
COMPLAINT = re.compile(r"^\[amdemu\] (?!\S+<<<|\S+ +\d+ launches|gfx\w+: \d+ kernels)(.*)$", re.MULTILINE)


# Functions that redline's kernels need and the emulator may lack: the place in its sources, and the text
# there to insert before.
ADDED = [
    ("amdemu.cpp", "    return t;\n}\ntemplate <int W> const Table<W>& table()", 't["ds_add_rtn_u32"]',
     '    t["ds_add_rtn_u32"] = [](Wave<W>& w, const Ins& i) {\n'
     "        Ins returning;\n"
     "        for (int k = 0; k < 3; ++k) returning.o[k] = i.o[k];\n"
     "        returning.offset = i.offset;\n"
     "        returning.returns = true;\n"
     "        ds_atomic<W, u32, decltype([](u32 a, u32 b) { return a + b; })>(w, returning);\n"
     "    };\n"),
    ("amdemu.cpp", "    return t;\n}\ntemplate <int W> const Table<W>& table()", 't["s_getpc_b64"]',
     '    t["s_getpc_b64"] = [](Wave<W>& w, const Ins& i) {\n'
     "        w.s[i.o[0].idx] = u32(i.address + 4);\n"
     "        w.s[i.o[0].idx + 1] = u32((i.address + 4) >> 32);\n"
     "    };\n"),
    # Caches are not emulated.
    ("amdemu.cpp", "    return t;\n}\ntemplate <int W> const Table<W>& table()", 't["buffer_invl2"]',
     '    t["buffer_invl2"] = t.at("buffer_wbl2");\n'),
    ("amdemu.cpp", "    return t;\n}\ntemplate <int W> const Table<W>& table()", 't["v_dot4_u32_u8"]',
     '    t["v_dot4_u32_u8"] = lanes3<W, u32, u32, u32, u32, decltype([](u32 a, u32 b, u32 c) {\n'
     "        return c + u32(dot_bytes<4>(a, b, false, false));\n"
     "    })>;\n"),
    # Addresses of instructions are those in memory, by which constants are found.
    ("mockhip.cpp", "            f.listing.clear();\n", "i.address += u64(f.module->image)",
     "            for (Ins& i : f.program->code) i.address += u64(f.module->image);\n"),
    # Two programs may disassemble one code object at a time.
    ("mockhip.cpp", "        { std::ofstream out(object", 'std::to_string(getpid()) + ".co"',
     '        const std::string object = std::string(base) + "." + std::to_string(getpid()) + ".co";\n'),
    # Records the instructions that no launch executed, by their addresses in the disassembly.
    ("mockhip.cpp", "void count(const Function& f) {\n", "cover_missed;",
     "std::map<std::string, std::map<u64, bool>> cover_missed;\n"),
    ("mockhip.cpp", "        ++all; hit += i.hits > 0;\n", "cover_missed[f.name].try_emplace",
     "        auto& missed = cover_missed[f.name].try_emplace(i.address - u64(f.module->image), true).first->second;\n"
     "        missed = missed && !i.hits;\n"),
    ("mockhip.cpp", "    for (const auto& [name, n] : cover_names) out <<", 'out << "missed "',
     "    for (const auto& [name, all] : cover_missed) {\n"
     '        out << "missed " << name << " " << all.size() << std::hex;\n'
     "        for (const auto& [address, missed] : all)\n"
     '            if (missed) out << " " << address;\n'
     '        out << std::dec << "\\n";\n'
     "    }\n"),
]


# Differences of the emulator from a card that have to be removed. Quotients below the smallest normal number,
# or near the largest: v_div_scale moves the denominator by as much as v_div_fmas moves the quotient back.
# Some of AMD's manuals print another sign and 2^32, by which 1 / 2^127 would not be a number.
CHANGED = [
    ("amdemu.cpp", "denormal(f64(c) / f64(b))) { v = true; if (a == b) r = std::ldexp(a, 64); }",
     "denormal(f64(c) / f64(b))) { v = true; if (a == b) r = std::ldexp(a, -64); }"),
    ("amdemu.cpp", "out[l] = m >> l & 1 ? x * 0x1p32f : x;",
     "out[l] = m >> l & 1 ? std::ldexp(x, (cast<u32>(c[l]) >> 23 & 255) > 127 ? 64 : -64) : x;"),
]


class Absent(Exception):
    """Says in one line why nothing can be emulated here."""


def find(given):
    """The folder of the emulator, or Absent."""
    folder = given or os.environ.get("RL_AMD_EMULATOR") or os.path.join(ROOT, "../shared/tools/amdemu")
    if not os.access(os.path.join(folder, "build.sh"), os.X_OK):
        raise Absent(f"there is no emulator of AMD GPUs in {os.path.normpath(folder)}; --emulator or RL_AMD_EMULATOR "
                     "names another folder")
    for tool in ("clang++-22", "llvm-objdump-22", "llvm-readelf-22", "lld-22"):
        if not shutil.which(tool):
            raise Absent(f"{tool} is not installed")
    return os.path.abspath(folder)


def newest(folder, end=""):
    return max((os.path.getmtime(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names
                if name.endswith(end)), default=0.0)


def build_library(folder, into):
    """Builds a copy of the emulator, with what is added."""
    copy = os.path.join(into, "source")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    changes = [(name, before, known_by, text + before) for name, before, known_by, text in ADDED]
    for name, before, known_by, after in changes + [(name, old, new, new) for name, old, new in CHANGED]:
        path = os.path.join(copy, name)
        os.chmod(path, 0o644)
        with open(path) as source:
            code = source.read()
        if known_by in code:
            continue
        if before not in code:
            raise SystemExit(f"tools/amd/test-amd: {path} has no {before.strip()!r} for {known_by!r} to go by")
        with open(path, "w") as source:
            source.write(code.replace(before, after, 1))
    subprocess.run([os.path.join(copy, "build.sh"), into], check=True)


class Emulator:
    def __init__(self, folder, build):
        self.library = os.path.join(build, "emulator")
        self.listings = os.path.join(build, "listings")
        made = os.path.join(self.library, "libamdhip64.so.6")
        if not os.path.exists(made) or os.path.getmtime(made) < max(newest(folder), os.path.getmtime(__file__)):
            build_library(folder, self.library)
        # Disassemblies of code objects that are no more.
        if os.path.exists(self.listings) and os.path.getmtime(self.listings) < newest(os.path.join(build, "hip"), ".co"):
            shutil.rmtree(self.listings)
        os.makedirs(self.listings, exist_ok=True)

    def run(self, command, target, settings=None, listings=None, timeout=None):
        """Runs a program with an emulated GPU of `target`; a fault ends a kernel, not the program."""
        cover = os.path.join(self.library, f"cover-{os.getpid()}-{time.monotonic_ns()}")
        environment = dict(os.environ, LD_LIBRARY_PATH=self.library, AMDEMU_ARCH=target, AMDEMU_KEEP_GOING="1",
                           AMDEMU_CUS=str(UNITS.get(target, 40)), AMDEMU_CACHE=listings or os.path.join(self.listings, target),
                           AMDEMU_COVER=cover, RL_TEST_BACKENDS="hip", RL_SOURCE_DIR=ROOT)
        environment.update(settings or {})
        begin = time.monotonic()
        try:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=timeout)
            code, out, log = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            code, out, log = f"stopped after {timeout} s", late.stdout or b"", late.stderr or b""
        return Run(code, out.decode(errors="replace"), log.decode(errors="replace"), time.monotonic() - begin,
                   take_cover(cover))


class Run:
    def __init__(self, code, out, log, seconds, cover):
        self.code, self.out, self.log, self.seconds, self.cover = code, out, log, seconds, cover
        self.faults = COMPLAINT.findall(log)

    @property
    def right(self):
        return self.code == 0 and not self.faults


def take_cover(path):
    """For each kernel that was launched the number of its instructions, and the addresses of those not executed."""
    kernels = {}
    if os.path.exists(path):
        with open(path) as lines:
            for words in map(str.split, lines):
                if words[0] == "missed":
                    kernels[words[1]] = (int(words[2]), {int(at, 16) for at in words[3:]})
        os.remove(path)
    return kernels


def merge(cover, more):
    """Adds what another program launched."""
    for kernel, (of, missed) in more.items():
        cover[kernel] = (of, missed & cover[kernel][1] if kernel in cover else missed)


def kernels_of(build, target):
    """The kernels of a target's code objects, each with the name of its object."""
    found = {}
    folder = os.path.join(build, "hip", target)
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".co"):
            continue
        text = subprocess.run(["llvm-readelf-22", "--dyn-syms", "--wide", os.path.join(folder, name)],
                              capture_output=True, text=True, check=True).stdout
        for kernel in re.findall(r"\b(\w+)\.kd\b", text):
            found[kernel] = name[:-len(".co")]
    return found
