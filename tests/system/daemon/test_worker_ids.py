#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Whose ids a worker has, and why: what else it could have, and what that would cost (docs/reference/fallen-processes.md).
"""
import errno
import os
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, PATIENCE, Scene, need_root, status

USER = 1000
ROOT = 0
# A user who has nothing but the workers of all sessions.
COMMON = 2000

BY_USER = {"user_stops", "user_limits", "user_binds", "user_renices"}
BY_IDS = {"process_vm_readv", "seize_thread"}
OF_SESSION = {"maps", "memory", "interrupt"} | BY_IDS
ROOTS = {"limit_root", "kill_root"}
WORKERS = {"limit_worker", "kill_worker"}


def refused(real):
    """The program has tried everything; what it was refused, each with EPERM."""
    need_root()
    run = subprocess.run([BIN.parent / "tests/ids_probe", str(real)], text=True, capture_output=True, timeout=PATIENCE)
    assert run.returncode == 0, run
    got = {name: int(error) for name, error in (line.split() for line in run.stdout.splitlines())}
    assert got.keys() == BY_USER | OF_SESSION | ROOTS | WORKERS and set(got.values()) <= {0, errno.EPERM}, got
    return {name for name, error in got.items() if error}


def test_a_fallen_worker_ends_and_limits_nobody_elses_process():
    """With the ids of its target the kernel refuses that; its filter does not. The target's user may do both to it."""
    assert refused(USER) == ROOTS | WORKERS


@pytest.mark.parametrize("real,reaches", ((ROOT, ROOTS | WORKERS), (COMMON, WORKERS)))
def test_with_other_ids_it_would(real, reaches):
    """The control. It would be out of reach of the target's user, and could attach to no further thread of the target."""
    assert refused(real) == (BY_USER | BY_IDS | ROOTS | WORKERS) - reaches


def test_a_worker_has_all_ids_of_its_target():
    need_root()
    with Scene(user_mode=False, app_user=USER) as s:
        s.attach()
        (worker,) = s.worker_pids()
        now = status(worker)
        assert now["Uid"].split() == now["Gid"].split() == [str(USER)] * 4 and not now["Groups"].strip(), now
        assert int(now["CapPrm"], 16) == 0, now
