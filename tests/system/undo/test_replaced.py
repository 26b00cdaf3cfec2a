#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a dead agent left to be done for a program is not done to the one that has been executed in its place."""
import os
import shutil
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import Scene, kill_agent, need_root, status, unsanitized, wait_until

USER = 1000
SCRIPT = "runtime on; queues 4; spin"


def successor(s, mode):
    """A program that uses the GPU like the one before it; what starts it, and its status file."""
    program = s.directory / "successor"
    shutil.copy(unsanitized("gpu-agent-simapp"), program)
    program.chmod(mode)
    status_file = s.directory / "status-successor"
    status_file.touch()
    status_file.chmod(0o666)
    start = s.directory / "start-successor"
    start.write_text(f"#!/bin/sh\nexec {program} --kfd {s.mount}/kfd --status-file {status_file} -e '{SCRIPT}'\n")
    start.chmod(0o755)
    return start, status_file


def owed_fault(s):
    """The agent dies altogether and owes the program a fault; what it wrote down."""
    session = s.attach(control=True)
    queue = s.rpc.call("gpu.queues", session=session)["queues"][0]["queue_id"]
    s.rpc.call("exception.subscribe", session=session, exceptions=["wave_trap"], hold=True, look_ms=0)
    s.raise_queue(queue, "wave_trap")
    s.rpc.notification("exception.raised")
    kill_agent(s.agentd.pid)
    (record,) = s.directory.glob("*.undo/*")
    return record


def become_successor(s, mode):
    start, status_file = s.successor
    s.app.popen.stdin.write(b"\n")
    s.app.popen.stdin.flush()
    want = "0" if mode & 0o4000 else str(USER)
    wait_until(lambda: status(s.app.pid).get("Name") == "successor" and status(s.app.pid)["Uid"].split()[1] == want, "the exec")
    s.app.status_file = status_file
    wait_until(lambda: [p for p in s.state()["processes"] if p["pid"] == s.app.pid and len(p["queues"]) == 4], "its queues")


@pytest.mark.parametrize("mode", (None, 0o755, 0o4755), ids=("the_same", "another", "privileged"))
def test_what_is_owed_is_for_the_program_that_it_is_owed_to(mode):
    need_root()
    with Scene(app=None, user_mode=False) as s:
        s.successor = successor(s, mode or 0o755)
        s.app = s.start_app(f"runtime on; queues 4; wait-line; exec {s.successor[0]}", user=USER)
        before = s.app_status().faults
        record = owed_fault(s)
        if mode:
            become_successor(s, mode)
            before = s.app_status().faults
        dead = s.agentd
        s.start_agentd(user_mode=False)
        s.clients.clear()
        wait_until(lambda: not record.exists(), "the record is dealt with")
        if mode is None:
            wait_until(lambda: s.app_status().faults == before + 1, "the control: the program is told of its fault")
            return
        time.sleep(0.2)
        assert s.app_status().faults == before, "it was told of a fault that it never had"
        assert status(s.app.pid)["TracerPid"] == "0"
        # A process of the dead agent that had begun to look after the program may be the one that comes to its end.
        told = dead.err() + s.agentd.err()
        assert "the program was replaced" in told and "sent on what the dead worker held" not in told, told
