#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frames of Debian's newer interpreters, which this release does not have: as the program itself tells them, and as CPython's own
profiler does.  Each comes with all libraries below it into a tree of its own (scripts/fetch-peers)."""
import os
import re
import signal
import subprocess
import sys
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import ROOT, Scene, wait_until
from peers import fetch, linker

MANY = ROOT / "tests/system/host/many.py"
PLACE = re.compile(r'  File "(.*)", line (\d+),? in (.*)')


def interpreter(version):
    """The command line of that interpreter, and its environment."""
    if os.uname().machine != "x86_64":
        raise SkipTest("the interpreters are fetched for x86-64 only")
    tree = fetch(f"python{version}")
    return [*linker(tree), tree / f"usr/bin/python{version}"], {"PYTHONHOME": str(tree / "usr")}


def told_by_program(process):
    """The stacks as faulthandler has them, innermost first, sorted."""
    os.kill(process.pid, signal.SIGUSR1)
    wait_until(lambda: process.err().count("Current thread"), "faulthandler answers")
    time.sleep(0.3)
    stacks = []
    for line in process.err().split("\n"):
        if re.match(r"(Current t|T)hread 0x", line):
            stacks.append([])
        place = PLACE.match(line)
        if place:
            stacks[-1].append((place[3].encode().decode("unicode_escape"), place[1], int(place[2])))
    return sorted(stacks)


def told_by_agent(doc):
    return sorted([(f["function"].split(".")[-1], f["file"], f["line"]) for f in g["frames"]]
                  for g in doc["groups"] if g["frames"] for _ in range(g["threads"]))


def told_by_profiler(text):
    """{thread: its frames, innermost first}"""
    stacks = {}
    for line in text.split("\n"):
        begin, place = re.match(r"Stack dump.*, thread (\d+)", line), PLACE.match(line)
        if begin:
            frames = stacks.setdefault(int(begin[1]), [])
        elif place:
            frames.insert(0, (place[3], place[1], int(place[2])))
    return stacks


def read(s, pid):
    def still():
        doc = s.rpc.call("host.stacks", pid=pid)
        return doc if all(g.get("proof") == "not_scheduled" for g in doc["groups"]) else None
    return wait_until(still, "all threads stand still")


@pytest.mark.parametrize("version", ["3.13", "3.14", "3.15"])
def test_frames_are_those_that_the_program_tells(version):
    argv, env = interpreter(version)
    with Scene(app=None) as s:
        for seed in range(3):
            process = s.start("python", [*argv, MANY, str(seed)], env=env)
            process.wait_line()
            doc = read(s, process.pid)
            assert doc["threads"] == 25 and doc["stopped_us"] == 0, doc
            assert doc["python"][0]["version"].startswith(version + "."), doc["python"]
            assert not any("python" in m or m.startswith("frames") for m in doc["missing"]), doc["missing"]
            assert any("mäßig" in f["function"] for g in doc["groups"] for f in g["frames"])
            assert told_by_agent(doc) == told_by_program(process)
            process.stop(signal.SIGKILL)


def test_frames_are_those_that_cpythons_profiler_tells():
    """It reads the same memory with a reader of its own, of 3.15 only, and prints the outermost frame first."""
    argv, env = interpreter("3.15")
    with Scene(app=None) as s:
        process = s.start("python", [*argv, MANY, "5"], env=env)
        process.wait_line()
        doc = read(s, process.pid)
        run = subprocess.run([*argv, "-m", "profiling.sampling", "dump", "-a", str(process.pid)], env={**os.environ, **env},
                             capture_output=True, text=True, timeout=60)
        if run.returncode or "File" not in run.stdout:
            raise SkipTest(f"profiling.sampling does not answer: {(run.stderr or run.stdout).strip()[-200:]}")
        theirs = told_by_profiler(run.stdout)
        ours = {g["representative"]["tid"]: [(f["function"], f["file"], f["line"]) for f in g["frames"]]
                for g in doc["groups"] if g["frames"] and g["threads"] == 1}
        assert theirs.keys() >= ours.keys() and len(ours) > 10, (theirs.keys(), ours.keys())
        for tid, frames in ours.items():
            assert [(name, line) for name, _, line in frames] == [(name, line) for name, _, line in theirs[tid]], tid
            # It leaves out the beginning of a path.
            assert all(mine[1].endswith(file) for mine, (_, file, _) in zip(frames, theirs[tid])), (frames, theirs[tid])
