#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same questions to the simulator and to real kernels: every difference is a failure, or a row of docs/VM.md."""
import os
import pathlib
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from answerlist import SIDES, differences, known_differences, of_simulator, printed, recorded
from harness import BIN, SLOWNESS

PROGRAM = BIN.parent / "tests/kfd_answers"
# The simulator's names for what the two kernels do.
RULES = {"old": {"GPU_AGENT_KFD_PERMISSIONS": "thread"},
         "new": {"GPU_AGENT_KFD_PERMISSIONS": "process", "GPU_AGENT_KFD_EFAULT": "new"}}


def ask(env):
    done = subprocess.run([PROGRAM], env={**os.environ, **env}, text=True, capture_output=True, timeout=300 * SLOWNESS, check=False)
    wrong = [line for line in done.stdout.splitlines() if not line.startswith(("ANSWER ", "PASS "))]
    assert done.returncode == 0 and not wrong, (done.returncode, wrong[:20], done.stderr)
    return printed(done.stdout)


def check(got, want):
    lines = differences(got, want)
    assert not lines, "\n".join([f"{len(lines)} of {len(want)} answers:", *lines[:40]])


@pytest.mark.parametrize("side", [os.environ["VM_SIDE"]] if os.environ.get("GPU_AGENT_KFD") else SIDES)
def test_answers(side):
    if os.environ.get("GPU_AGENT_KFD"):
        check(ask({}), recorded(side))
    else:
        check(ask(RULES[side]), of_simulator(side))


def test_a_difference_is_noticed():
    """An answer that changed, one that is missing, one too many; and docs/VM.md explains some."""
    want = recorded("old")
    name = next(iter(want))
    assert differences(want, want) == []
    assert len(differences({**want, name: "EIO"}, want)) == 1
    assert len(differences({key: want[key] for key in want if key != name}, want)) == 1
    assert len(differences({**want, "device.new": "0"}, want)) == 1
    assert known_differences()
    assert pathlib.Path(PROGRAM).exists()
