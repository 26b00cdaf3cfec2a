#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks of host threads as gdb, elfutils' eu-stack and austin tell them.  These stop the threads, so they look last."""
import itertools
import os
import re
import shutil
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, ROOT, Scene
from nativestacks import addresses, read, start, told_by_eu_stack, told_by_gdb
from peers import fetch, linker
from pystacks import read_at_rest

TESTS = BIN.parent / "tests"
MANY = ROOT / "tests/system/host/many.py"
PYTHON = "/usr/bin/python3.11"
NODE = ("const { Worker } = require('worker_threads'); new Worker('setInterval(() => {}, 1e9)', { eval: true }).on('online', () => "
        "require('dns').lookup('localhost', () => setTimeout(() => console.log('ready'), 500))); setInterval(() => {}, 1e9)")
PROGRAMS = {
    "waits": [TESTS / "waits"],
    "waits_frame_pointer": [TESTS / "waits_frame_pointer"],
    "frames": [TESTS / "frames"],
    "ends": [TESTS / "frames", "ends"],
    "python": [PYTHON, MANY, "1"],
    "node": ["node", "-e", NODE],
}
COLOURS = re.compile(r"\x1b\[([0-9;]*)m")


def compare(doc, ours, theirs):
    """Frames that are no guess are theirs, and a stack without a guess that is told to its end ends where theirs does.
    @return how many stacks are whole, how many frames were compared, and how many guesses there were, right and wrong."""
    whole = compared = right = wrong = 0
    assert ours.keys() == theirs.keys()
    for g in doc["groups"]:
        whole += g["threads"] * (g["native_end"] == "outermost")
        for tid in g["tids"]:
            sure = sum(1 for _ in itertools.takewhile(lambda f: not f.get("guessed"), g["native_frames"]))
            assert ours[tid][:sure] == theirs[tid][:sure], (g, [hex(pc) for pc in theirs[tid]])
            if g["native_end"] == "outermost" and sure == len(ours[tid]):
                assert sure == len(theirs[tid]), (g, [hex(pc) for pc in theirs[tid]])
            compared += sure
            same = sum(a == b for a, b in zip(ours[tid][sure:], theirs[tid][sure:]))
            right += same
            wrong += len(ours[tid]) - sure - same
    return whole, compared, right, wrong


@pytest.mark.parametrize("judge", ["gdb", "eu-stack"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_native_frames(program, judge):
    argv = PROGRAMS[program]
    if not shutil.which(str(argv[0])):
        raise SkipTest(f"no {argv[0]} here")
    with Scene(app=None) as s:
        process = start(s, argv)
        doc = read(s, process.pid)
        ours = addresses(doc, process.pid)
        theirs = told_by_gdb("-p", process.pid) if judge == "gdb" else told_by_eu_stack(process.pid)
        whole, compared, right, wrong = compare(doc, ours, theirs)
        print(f"  {program}: {whole} of {doc['threads']} stacks whole, {compared} frames as {judge} finds them, "
              f"{right} of {right + wrong} guesses right")
        assert whole >= (1 if program == "ends" else doc["threads"] - 1), doc


def austin(name, pid):
    """{thread: its frames, outermost first: (None, module) of native ones, (function, file:line) of Python's}"""
    tree = fetch("austin")
    run = subprocess.run([*linker(tree), tree / "usr/bin" / name, "-w", str(pid)], capture_output=True, text=True, timeout=60)
    stacks = {}
    for line in run.stdout.split("\n"):
        thread = re.search(r"Thread [0-9]+:([0-9]+)", COLOURS.sub("", line))
        frame = re.match(r"    (.*) \((.*):(\d+)\)$", COLOURS.sub("", line))
        if thread:
            frames = stacks.setdefault(int(thread[1]), [])
        elif frame:
            is_python = "[33;1m" in line
            frames.append((frame[1], f"{frame[2]}:{frame[3]}") if is_python else (None, None))
    if not stacks:
        raise SkipTest(f"{name} does not answer: {(run.stderr or run.stdout).strip()[-200:]}")
    return stacks


def joined(g):
    """One list of both kinds of frames, as gpu-agentctl shows them; outermost first."""
    lines, python = [], iter(g["frames"])
    for f in g["native_frames"]:
        n = f.get("python_frames")
        lines += [(None, None)] if n is None else [(p["function"], f"{p['file']}:{p['line']}") for p in itertools.islice(python, n)]
    assert not list(python), g
    return lines[::-1]


def without_names_that_are_not_ascii(frames):
    """austin has no names for these."""
    return [(name if name is None or name.isascii() else "", place) for name, place in frames]


def test_python_frames_are_those_of_austin():
    if not os.access(PYTHON, os.X_OK):
        raise SkipTest(f"no {PYTHON} here")
    with Scene(app=None) as s:
        process = start(s, [PYTHON, MANY, "2"])
        doc = read_at_rest(s, process.pid)
        theirs = austin("austin", process.pid)
        ours = {tid: [(f["function"], f"{f['file']}:{f['line']}") for f in g["frames"]][::-1]
                for g in doc["groups"] for tid in g["tids"]}
        assert ours.keys() == theirs.keys() and len(ours) == 25
        for tid, frames in ours.items():
            assert without_names_that_are_not_ascii(frames) == theirs[tid], tid


def test_joined_frames_are_those_of_austinp():
    """It stops the threads, and puts Python's frames in the place of the calls that run them as well."""
    if not os.access(PYTHON, os.X_OK):
        raise SkipTest(f"no {PYTHON} here")
    with Scene(app=None) as s:
        process = start(s, [PYTHON, MANY, "2"])
        doc = read(s, process.pid)
        ours = {tid: without_names_that_are_not_ascii(joined(g)) for g in doc["groups"] for tid in g["tids"]}
        theirs = austin("austinp", process.pid)
        assert ours.keys() == theirs.keys() and len(ours) == 25
        for tid, frames in ours.items():
            assert frames == theirs[tid], (tid, frames, theirs[tid])
