#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scenes in which something waits: the first line of `why` names what is wrong, and nobody is accused where it is not."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, Scene

FAULT = "wave 3 of workgroup (0,0,0) of gemm, at gemm+0x70 (train.hip:61), has stopped (memory_violation)"
# Of each scene: what the first line says, how sure that is, whether one sample is enough, and how the scene goes on.
SCENES = {
    "fault-at-barrier": (FAULT, "proven", True, "last=spin"),
    "behind-a-fault": (FAULT, "proven", True, "last=spin"),
    "late-at-barrier": ("wave 3 of workgroup (0,0,0) of gemm, at gemm+0xc4 (train.hip:72), is the same in both samples", "inferred", False,
                        "early=0x58,loop=24"),
    "own-stream": ("a circle: packet 1 of queue 0 (gemm) waits for signal 0x", "proven", True, "left=0"),
    "two-streams": ("a circle: packet 1 of queue ", "proven", True, "left=0"),
    "no-signal": ("the host, a copy engine or another process: no packet in the queues of this process gives signal 0x", "inferred", False,
                  "left=0"),
}


def why(name, *args, values=None):
    with Scene(app=None, gpus="gfx90a") as s:
        more = ["--set", values] if values else []
        s.app = s.start("app", [BIN / "gpu-agent-simapp", "--kfd", s.mount / "kfd", "--scene", name, *more])
        s.app.wait_line()
        shown = s.ctl("why", s.app.pid, *args)
        print(shown.stdout, shown.stderr)
        return shown


@pytest.mark.parametrize("name", SCENES)
def test_the_first_line_names_the_cause(name):
    text, confidence, _, _ = SCENES[name]
    shown = why(name, "--twice=1100")
    first = shown.stdout.splitlines()[0]
    assert shown.returncode == 10 and first.startswith(f"CAUSE  {text}") and first.endswith(f"[{confidence}]"), shown.stdout


@pytest.mark.parametrize("name", SCENES)
def test_one_sample_accuses_only_what_cannot_go_on(name):
    text, _, one_is_enough, _ = SCENES[name]
    shown = why(name)
    assert (shown.returncode == 10) == one_is_enough and ("CAUSE" in shown.stdout) == one_is_enough, shown.stdout


@pytest.mark.parametrize("name", SCENES)
def test_where_it_goes_on_nobody_is_accused(name):
    shown = why(name, "--twice=1100", values=SCENES[name][3])
    assert shown.returncode == 0 and "CAUSE" not in shown.stdout, shown.stdout
