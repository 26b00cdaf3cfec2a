#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Variables of Debian's ROCm libraries, whose code for AMD GPUs has full debug information, by the product and by a second reader.

Some addresses of each code object of librocrand; with GPU_AGENT_VALUES=N, N of each, and N of some objects of librocsparse.
"""
from __future__ import annotations

import collections
import os
import pathlib
import random
import shutil
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from peers import code_objects, fetch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import amdprobe
import dwarftext

COUNT = int(os.environ.get("GPU_AGENT_VALUES", "0"))
PLACES = COUNT or 60
GPUS = {"gfx803": (80003, 64), "gfx900": (90000, 64), "gfx906": (90006, 64), "gfx908": (90008, 64), "gfx90a": (90010, 64),
        "gfx1030": (100300, 32)}


def places(file, rng, count):
    """Addresses all over the code, so that large functions do not take them all."""
    ranges = [r for f in file.functions for r in file.ranges(f) if r[1] - r[0] >= 4]
    for _ in range(count if ranges else 0):
        low, high = rng.choice(ranges)
        yield rng.randrange(low, high - 3, 4)


def check(library, chosen):
    if not shutil.which("llvm-dwarfdump"):
        raise SkipTest("llvm-dwarfdump is needed")
    rng = random.Random(library.name)
    counts = collections.Counter()
    objects = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, data in code_objects(library):
            if not chosen(rng):
                continue
            path = pathlib.Path(directory, "code.co")
            path.write_bytes(data)
            gpu = (name, *GPUS[name], True, ())
            file = dwarftext.File(path, "llvm-dwarfdump")
            probe = amdprobe.Probe(path, gpu)
            for pc in places(file, rng, PLACES):
                amdprobe.compare(probe, f"{library.name} {name}", file, gpu, pc, counts)
            probe.close()
            objects += 1
    print(f"    {objects} code objects")
    print(amdprobe.summary(counts))
    return counts


def library(what):
    found = sorted((fetch(what) / "usr/lib").rglob(f"lib{what}.so.*.*"))
    assert found, f"no library in the package of {what}"
    return found[0]


def test_rocrand():
    counts = check(library("rocrand"), lambda rng: True)
    assert counts["ok"] > 1000


def test_rocsparse():
    if not COUNT:
        raise SkipTest("the library has 1.3 GB: GPU_AGENT_VALUES=N asks for N places of some of its objects")
    counts = check(library("rocsparse"), lambda rng: rng.randrange(20) == 0)
    assert counts["ok"] > 1000
