#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What lib/waits reads of a communicator of NCCL is what NCCL's own headers say that it is."""
import os
import re
import shutil
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import ROOT
from peers import fetch

HERE = ROOT / "tests/peers/nccl"
READER = ROOT / "lib/waits/collective"
# All that the headers want of CUDA.
CUDA = """#pragma once
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) ulong2 { unsigned long x, y; };
"""


def build(tree, release, directory):
    """Compile the program with the headers of a release, after what its makefile fills in."""
    major, minor, patch = map(int, release.split("."))
    numbers = {"Major": major, "Minor": minor, "Patch": patch, "Suffix": "", "Version": 10000 * major + 100 * minor + patch}
    header = re.sub(r"\$\{nccl:(\w+)\}", lambda name: str(numbers[name[1]]), (tree / "src/nccl.h.in").read_text())
    (directory / "nccl.h").write_text(header)
    for name, text in {"cuda_runtime.h": CUDA, "cuda_fp16.h": "", "cuda_bf16.h": ""}.items():
        (directory / name).write_text(text)
    include = tree / "src/include"
    for source in ("nccl", "rccl", "collective"):
        subprocess.run(["cc", "-D_GNU_SOURCE", f"-I{ROOT}/lib", "-c", "-o", directory / f"{source}.o", READER / f"{source}.c"], check=True,
                       timeout=60)
    program = directory / "nccl_layout"
    subprocess.run(["c++", "-std=c++17", "-w", f"-I{directory}", "-isystem", include, "-isystem", include / "plugin", f"-I{ROOT}/lib",
                    "-o", program, HERE / "nccl_layout.cc", *(directory / f"{name}.o" for name in ("nccl", "rccl", "collective"))],
                   check=True, timeout=120)
    return program


@pytest.mark.parametrize("what", ["nccl-2.22", "nccl-2.29"])
def test_the_headers_say_the_same(what, tmp_path):
    if not shutil.which("c++"):
        raise SkipTest("there is no C++ compiler")
    tree = fetch(what)
    numbers = dict(re.findall(r"NCCL_(MAJOR|MINOR|PATCH) *:= *(\d+)", (tree / "makefiles/version.mk").read_text()))
    release = f"{numbers['MAJOR']}.{numbers['MINOR']}.{numbers['PATCH']}"
    assert release.startswith(what.rpartition("-")[2])
    run = subprocess.run([build(tree, release, tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    rows = [row.split() for row in run.stdout.splitlines()]
    print(f"  {release}: {len(rows)} values")
    assert run.returncode == 0 and len(rows) >= 104 and all(nccl == ours for _, nccl, ours in rows), run.stdout
