#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Variables of code that clang makes for AMD GPUs, by the product and by a second reader.

Random kernels in OpenCL C and HIP, at several levels of optimisation and for several GPUs.  With GPU_AGENT_VALUES=N, N seeds
instead of some, from GPU_AGENT_VALUES_FIRST on.
"""
from __future__ import annotations

import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from peers import clang

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import amdprobe
import dwarftext
import kernels

COUNT = int(os.environ.get("GPU_AGENT_VALUES", "12"))
FIRST = int(os.environ.get("GPU_AGENT_VALUES_FIRST", "0"))

OLD = (("gfx90a", 90010, 64, True, ()), ("gfx1030", 100300, 32, True, ()),
       ("gfx1030", 100300, 64, True, ("-mwavefrontsize64",)), ("gfx906", 90006, 64, True, ()))
NEW = (("gfx942", 90402, 64, False, ()), ("gfx1100", 110000, 32, False, ()),
       ("gfx1201", 120001, 32, False, ()), ("gfx90a", 90010, 64, True, ()))


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
    llvm, environment = clang()
    return Compiler(llvm / "bin/clang", llvm / "bin/llvm-dwarfdump", environment, NEW)


def compare_all(path, file, gpu, counts):
    probe = amdprobe.Probe(path, gpu)
    for function in file.functions:
        for low, high in file.ranges(function):
            for pc in range(low, high, 4 if high - low < 600 else 20):
                amdprobe.compare(probe, path, file, gpu, pc, counts)
    probe.close()


def check(compiler, levels, count):
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(FIRST, FIRST + count):
            gpu = compiler.gpus[seed % len(compiler.gpus)]
            for language in ("cl", "hip"):
                level = levels[seed // len(compiler.gpus) % len(levels)]
                path = compiler.build(pathlib.Path(directory), language, seed, level, gpu)
                compare_all(path, compiler.read(path), gpu, counts)
    print(amdprobe.summary(counts))
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
