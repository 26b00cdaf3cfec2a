#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Variables of code that clang makes for AMD GPUs, by the product and by a second reader.

Random kernels in OpenCL C and HIP, at several levels of optimisation and for several GPUs.  Registers and memory hold numbers
that are made up from where they are (values_probe.c), so a value shows where it was read.  With GPU_AGENT_VALUES=N, N kernels
instead of some.
"""
from __future__ import annotations

import collections
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import BIN
from peers import fetch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import dwarftext
import kernels

MASK = (1 << 64) - 1
FILES = {"s": 0, "v": 1, "a": 2}                       # enum values_file
SPACES = {"global": 0, "private": 1, "shared": 2}      # enum values_space
COUNT = int(os.environ.get("GPU_AGENT_VALUES", "12"))

# GPU, its version as the driver tells it, lanes, whether s33 counts bytes of the wave, options.
OLD = (("gfx90a", 90010, 64, True, ()), ("gfx1030", 100300, 32, True, ()),
       ("gfx1030", 100300, 64, True, ("-mwavefrontsize64",)), ("gfx906", 90006, 64, True, ()))
NEW = (("gfx942", 90402, 64, False, ()), ("gfx1100", 110000, 32, False, ()),
       ("gfx1201", 120001, 32, False, ()), ("gfx90a", 90010, 64, True, ()))


def mix(x):
    x = x + 0x9e3779b97f4a7c15 & MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def register(letter, number, lane):
    by_lane = 0 if letter == "s" else lane + 1
    return mix(FILES[letter] << 48 | by_lane << 32 | number) & 0xffffffff


@functools.lru_cache(maxsize=65536)
def memory(space, address, size, lane):
    salt = mix(SPACES[space] << 8 | (lane + 1 if space == "private" else 0))
    return bytes(mix(salt ^ (address + i & MASK)) & 0xff for i in range(size))


class Compiler:
    def __init__(self, clang, dwarfdump, environment, gpus):
        self.clang, self.dwarfdump, self.environment, self.gpus = clang, dwarfdump, environment, gpus

    def build(self, directory, language, seed, level, gpu):
        source = directory / f"{language}{seed}.{language}"
        source.write_text(kernels.write(language, seed))
        out = source.with_suffix(f".{gpu[0]}.{level}.co")
        common = ["-w", "-g", f"-O{level}", "-nogpulib", "-mcode-object-version=4", *gpu[4]]
        if language == "cl":
            argv = ["-x", "cl", "-target", "amdgcn-amd-amdhsa", f"-mcpu={gpu[0]}"]
        else:
            argv = ["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", f"--offload-arch={gpu[0]}"]
        run = subprocess.run([str(self.clang), *argv, *common, str(source), "-o", str(out)], text=True, capture_output=True,
                             env=self.environment, timeout=120)
        assert run.returncode == 0, (source.read_text(), run.stderr)
        return out

    def read(self, path):
        return dwarftext.File(path, self.dwarfdump, self.environment)


def host_compiler():
    if not shutil.which("clang") or not shutil.which("llvm-dwarfdump") or not shutil.which("ld.lld"):
        raise SkipTest("clang, lld and llvm-dwarfdump are needed")
    return Compiler("clang", "llvm-dwarfdump", None, OLD)


def newer_compiler():
    tree = fetch("clang")
    llvm = tree / "usr/lib/llvm-19"
    libraries = f"{tree}/usr/lib/x86_64-linux-gnu:{llvm}/lib"
    return Compiler(llvm / "bin/clang", llvm / "bin/llvm-dwarfdump",
                    {"PATH": f"{llvm}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": libraries}, NEW)


class Probe:
    def __init__(self, path, gpu):
        self.process = subprocess.Popen([BIN.parent / "tests/values_probe", path, str(gpu[2]), str(gpu[1])], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, pc, lane, inlined):
        self.process.stdin.write(f"{pc:x} {lane} {inlined}\n")
        self.process.stdin.flush()
        rows = []
        while (line := self.process.stdout.readline()) != ".\n":
            assert line, "values_probe has ended"
            rows.append(line.rstrip("\n").split("\t"))
        return rows

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


def states_agree(row, wanted):
    known = sum(b is not None for b in wanted)
    if not wanted:
        return True
    if known == len(wanted):
        return row[3] == "ok"
    if known:
        return row[3] == "partial" and row[6]
    return row[3] in ("optimised_out", "unavailable", "prologue")


def compare(path, file, gpu, counts):
    probe = Probe(path, gpu)
    for function in file.functions():
        for low, high in file.ranges(function):
            for pc in range(low, high, 4 if high - low < 600 else 20):
                lane = pc // 4 % gpu[2]
                wave = dwarftext.Wave(gpu[2], lane, gpu[3], register, memory)
                for inlined, level in enumerate(file.levels(pc)):
                    rows = probe.ask(pc, lane, inlined)
                    wanted = list(dwarftext.variables(file, level, file.chain(pc), pc, wave))
                    assert [r[0] for r in rows] == [w[0] for w in wanted], (path, hex(pc), inlined, rows, wanted)
                    for row, (name, tag, data) in zip(rows, wanted):
                        text = "".join("--" if b is None else f"{b:02x}" for b in data)
                        assert row[4] == text and states_agree(row, data), (str(path), hex(pc), lane, row, text)
                        assert (row[1] == "argument") == (tag == "DW_TAG_formal_parameter")
                        counts[row[3]] += 1
    probe.close()


def check(compiler, levels, count):
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(count):
            gpu = compiler.gpus[seed % len(compiler.gpus)]
            for language in ("cl", "hip"):
                level = levels[seed // len(compiler.gpus) % len(levels)]
                path = compiler.build(pathlib.Path(directory), language, seed, level, gpu)
                compare(path, compiler.read(path), gpu, counts)
    print(f"    {sum(counts.values())} values agree: {dict(counts)}")
    assert counts["ok"] > 100
    return counts


def test_code_without_optimisation():
    counts = check(host_compiler(), (0,), COUNT)
    assert counts["prologue"]


def test_optimised_code():
    counts = check(host_compiler(), (2, 1, 3), COUNT)
    assert counts["partial"] and counts["unavailable"] and counts["optimised_out"]


def test_newer_gpus_without_optimisation():
    check(newer_compiler(), (0,), COUNT)


def test_newer_gpus_with_optimisation():
    check(newer_compiler(), (2, 1, 3), COUNT)
