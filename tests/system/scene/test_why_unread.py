#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `why` says of NVIDIA's devices where nothing of their memory can be read, and of both vendors without disassemblers."""
import json
import os
import shutil
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, CudaScene, Scene

# Every call of the debugger that reads memory, of whatever kind, and CUDBG_ERROR_INVALID_MEMORY_ACCESS.
READS = ["readCodeMemory", "readConstMemory129", "readGenericMemory", "readGlobalMemory", "readLocalMemory", "readParamMemory",
         "readPinnedMemory", "readSharedMemory"]
INVALID_MEMORY_ACCESS = 8
# Of each scene: the kinds that are told all the same, and words of `missing`; None: nothing that is told is in memory.
SCENES = {
    "unset-flag": ({"barrier", "spin"}, "words that are polled: memory does not give all of their values"),
    "exited-before-grid": ({"barrier", "grid"}, "words that are polled: memory does not give all of their values"),
    "retired-consumers": (set(), "the mbarrier that they wait for could not be read"),
    "late-rank": (set(), "collective operations: what their kernels were given is not readable"),
    "exited-at-barrier": ({"named_barrier"}, None), "two-places": ({"warp_sync"}, None), "fault-before-cluster": ({"cluster"}, None),
}


def start(s, name):
    vendor = "amd" if not isinstance(s, CudaScene) else "cuda"
    device = ["--kfd", s.mount / "kfd"] if vendor == "amd" else []
    env = {} if vendor == "amd" else {"LD_LIBRARY_PATH": str(s.libraries)}
    program = "gpu-agent-simapp" if vendor == "amd" else "gpu-agent-cuda-simapp"
    s.app = s.start("app", [BIN / program, *device, "--scene", name], env=env)
    s.app.wait_line()


@pytest.mark.parametrize("name", SCENES)
def test_with_every_read_failing_the_kinds_are_told(name):
    """What they lack is named, and nobody is accused by what was not read."""
    kinds, lacks = SCENES[name]
    with CudaScene(app=None) as s:
        start(s, name)
        for call in READS:
            s.control(f"fail {call} {INVALID_MEMORY_ACCESS} count=1000000")
        shown = s.ctl("why", s.app.pid)
        doc = json.loads(s.ctl("why", s.app.pid, "-j").stdout)
    print(shown.stdout, shown.stderr, json.dumps(doc))
    assert {w["kind"] for w in doc["waits"]} == kinds and "proven" not in [w["confidence"] for w in doc["waits"]], doc["waits"]
    if not lacks:
        assert doc["complete"], doc["missing"]
        return
    assert [m for m in doc["missing"] if lacks in m] and lacks in " ".join(shown.stderr.split()), (doc["missing"], shown.stderr)
    assert shown.returncode == 8 and "CAUSE" not in shown.stdout and not doc.get("collectives"), shown
    # What was not read is told as not known, and not left out.
    assert all(w["confidence"] == "unknown" for w in doc["waits"] if w["kind"] in ("spin", "grid")), doc["waits"]


def first_line(vendor, name, nvdisasm):
    """What the first line says, in two samples."""
    with Scene(app=None, gpus="gfx90a") if vendor == "amd" else CudaScene(app=None) as s:
        # Whoever would ask it gets an answer that is wrong.
        if nvdisasm:
            (s.directory / "nvdisasm").write_text('#!/bin/sh\necho "/*0000*/ EXIT ;"\n')
            (s.directory / "nvdisasm").chmod(0o755)
            os.environ["PATH"] = f"{s.directory}:{os.environ['PATH']}"
        start(s, name)
        shown = s.ctl("why", s.app.pid, "--twice=1100")
        print(shown.stdout, shown.stderr)
        assert shown.returncode == 10 and shown.stdout.startswith("CAUSE  "), shown
        return shown.stdout.splitlines()[0]


@pytest.mark.parametrize(("vendor", "name"), [("amd", "late-at-barrier"), ("cuda", "exited-at-barrier")])
def test_the_first_line_needs_no_disassembler(vendor, name, monkeypatch):
    """The daemon and the client find LLVM and nvdisasm, and then neither."""
    monkeypatch.setenv("PATH", os.environ["PATH"])
    found = first_line(vendor, name, nvdisasm=True)
    monkeypatch.setenv("GPU_AGENT_LLVM", "/nonexistent/libLLVM.so")
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    for home in "CUDA_HOME", "CUDA_PATH":
        monkeypatch.setenv(home, "/nonexistent")
    if shutil.which("nvdisasm"):
        pytest.skip("nvdisasm is in the system's own directories")
    assert first_line(vendor, name, nvdisasm=False) == found
