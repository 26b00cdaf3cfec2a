# SPDX-License-Identifier: MIT
"""Native frames of a process's threads, as gdb and eu-stack find them, and as host.stacks tells them."""
from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Any, Dict, List
from unittest import SkipTest

from harness import Json, Scene, wait_until

GDB = """
import gdb
gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame = gdb.newest_frame()
    pcs = []
    while frame:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            pcs.append(frame.pc())
        frame = frame.older()
    print("thread", thread.ptid[1], *(hex(pc) for pc in pcs))
"""
ET_EXEC = b"\x02\x00"

Frames = Dict[int, List[int]]


def start(s: Scene, argv: List[Any], **options: Any) -> Any:
    process = s.start("waits", argv, **options)
    process.wait_line()
    return process


def read(s: Scene, pid: int) -> Json:
    """All threads wait, and each is told."""
    def rests() -> Json:
        doc: Json = s.rpc.call("host.stacks", pid=pid)
        return doc if not any(g["native_end"] in ("running", "unproven") for g in doc["groups"]) else {}
    return wait_until(rests, "all threads wait")


def is_fixed(path: str) -> bool:
    """A program that lies where its file says."""
    try:
        with open(path, "rb") as f:
            return f.read(18)[16:] == ET_EXEC
    except OSError:
        return False


def bases(pid: int) -> Dict[str, int]:
    """Where the files of a process begin."""
    found: Dict[str, int] = {}
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().split("\n"):
        m = re.match(r"([0-9a-f]+)-\S+ \S+ 00000000 \S+ \S+\s+(/.*|\[vdso\])", line)
        if m and m[2] not in found:
            found[m[2]] = 0 if is_fixed(m[2]) else int(m[1], 16)
    return found


def addresses(doc: Json, pid: int) -> Frames:
    """{thread: its frames' addresses in the process}; libraries, and programs that may lie anywhere, begin at their address 0."""
    base = bases(pid)
    return {tid: [int(f["address"], 16) + base.get(f.get("module", ""), 0) for f in g["native_frames"]]
            for g in doc["groups"] for tid in g["tids"]}


def told_by_gdb(*target: Any) -> Frames:
    """Of a process, "-p" and its number; or of a program and its core."""
    if not shutil.which("gdb"):
        raise SkipTest("no gdb here")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(GDB)
        script.flush()
        told = subprocess.run(["gdb", "-nx", "-batch", *map(str, target), "-x", script.name], capture_output=True, text=True, check=True,
                              timeout=120)
    frames = [line.split()[1:] for line in told.stdout.split("\n") if line.startswith("thread ")]
    assert frames, told.stderr
    return {int(tid): [int(pc, 16) for pc in pcs] for tid, *pcs in frames}


def told_by_eu_stack(pid: int) -> Frames:
    """It ends with 1 where a stack ends early."""
    if not shutil.which("eu-stack"):
        raise SkipTest("no eu-stack here")
    run = subprocess.run(["eu-stack", "-q", "-n", "0", "-p", str(pid)], capture_output=True, text=True, timeout=60)
    assert run.returncode in (0, 1), run.stderr
    found: Frames = {}
    frames: List[int] = []
    for line in run.stdout.split("\n"):
        if line.startswith("TID "):
            frames = found.setdefault(int(line[4:].rstrip(":")), [])
        elif line.startswith("#"):
            frames.append(int(line.split()[1], 16))
    return found
