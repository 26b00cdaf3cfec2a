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


SOURCES = ("nccl", "nccl_work", "rccl", "collective")


def device_code(tree):
    """What is taken of the code for devices: declarations, and the lines that deal warps."""
    shared = (tree / "src/device/common.h").read_text()
    pairs = (tree / "src/device/sendrecv.h").read_text()
    # A warp that has ended the last work of its block leaves the kernel, and waits for no other one.
    assert re.search(r"ncclDevFuncTable\[ncclShmem\.funcId\]\(\);\s*\}\s*if \(ncclShmem\.nextBatchIx == -1\) break;", shared)
    kept = "".join(re.search(rf"^struct {name} \{{.*?^\}};", shared, re.S | re.M)[0] + "\n" for name in ("ncclShmemGroup", "ncclShmemData"))
    spaces = [f"#undef NCCL_MAX_ARITY\n#define NCCL_MAX_ARITY {arity}\nnamespace {name} {{\n{kept}}}\n"
              for name, arity in (("narrow", "NCCL_MAX_DIRECT_ARITY"), ("wide", "NCCL_MAX_NVLS_ARITY"))]
    receive, send = (re.search(rf"^ *int n{what}WarpPerWork = .*;$", pairs, re.M)[0] for what in ("Recv", "Send"))
    tree_split = re.search(r"^  __device__.*?void runTreeSplit\(.*?\n *int nthreadsSplit;(.*?\} else \{.*?\})|"
                           r"^__device__.*?void runTreeSplit\(.*?\n *int nthreadsSplit;(.*?\} else \{.*?\})",
                           (tree / "src/device/all_reduce.h").read_text(), re.S | re.M)
    return "".join(spaces) + f"""
static int receivers(int nWarpPerWork) {{ {receive} return nRecvWarpPerWork; }}
static int senders(int nWarpPerWork) {{ {receive} {send} return nSendWarpPerWork; }}
template <class Proto> static int split(int nthreads) {{ int nthreadsSplit; {tree_split[1] or tree_split[2]} return nthreadsSplit; }}
"""


def build(tree, release, directory, what):
    """Compile a program with the headers of a release, after what its makefile fills in."""
    major, minor, patch = map(int, release.split("."))
    numbers = {"Major": major, "Minor": minor, "Patch": patch, "Suffix": "", "Version": 10000 * major + 100 * minor + patch}
    header = re.sub(r"\$\{nccl:(\w+)\}", lambda name: str(numbers[name[1]]), (tree / "src/nccl.h.in").read_text())
    (directory / "nccl.h").write_text(header)
    for name, text in {"cuda_runtime.h": CUDA, "cuda_fp16.h": "", "cuda_bf16.h": ""}.items():
        (directory / name).write_text(text)
    include = tree / "src/include"
    for source in SOURCES:
        subprocess.run(["cc", "-D_GNU_SOURCE", f"-I{ROOT}/lib", "-c", "-o", directory / f"{source}.o", READER / f"{source}.c"], check=True,
                       timeout=60)
    if what == "nccl_work":
        (directory / "work.h").write_text(device_code(tree))
    program = directory / what
    subprocess.run(["c++", "-std=c++17", "-w", f"-I{directory}", "-isystem", include, "-isystem", include / "plugin",
                    "-isystem", tree / "src/device", f"-I{ROOT}/lib", "-o", program, HERE / f"{what}.cc",
                    *(directory / f"{source}.o" for source in SOURCES)], check=True, timeout=120)
    return program


@pytest.mark.parametrize("name, values", [("nccl_layout", 104), ("nccl_work", 499)])
@pytest.mark.parametrize("what", ["nccl-2.22", "nccl-2.29"])
def test_the_headers_say_the_same(what, name, values, tmp_path):
    if not shutil.which("c++"):
        raise SkipTest("there is no C++ compiler")
    tree = fetch(what)
    numbers = dict(re.findall(r"NCCL_(MAJOR|MINOR|PATCH) *:= *(\d+)", (tree / "makefiles/version.mk").read_text()))
    release = f"{numbers['MAJOR']}.{numbers['MINOR']}.{numbers['PATCH']}"
    assert release.startswith(what.rpartition("-")[2])
    run = subprocess.run([build(tree, release, tmp_path, name)], capture_output=True, text=True, timeout=60, check=False)
    rows = [row.split() for row in run.stdout.splitlines()]
    print(f"  {release}: {len(rows)} values")
    assert run.returncode == 0 and len(rows) >= values and all(nccl == ours for _, nccl, ours in rows), run.stdout
