#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whose records those are that act on a target after a death: of one agent, and of nobody else."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import Scene, children_named, need_root, status, wait_until

USER = 1000


def heir_of(agentd):
    """A child of the agent that takes that name soon after it was forked."""
    return wait_until(lambda: children_named(agentd.pid, "gpu-agent-heir"), "heir")[0]


def ended(pid):
    return status(pid).get("State", "Z")[0] in "ZX"


def test_an_old_heir_leaves_the_records_of_a_new_agent_alone():
    """It may be late by any time: another agent has the socket, and its records lie in the same directory."""
    for user_mode in (True, False):
        if not user_mode:
            need_root()
        with Scene(user_mode=user_mode) as s:
            old = heir_of(s.agentd)
            s.attach()
            os.kill(old, signal.SIGSTOP)
            wait_until(lambda: status(old)["State"][0] == "T", "the heir stands still")
            others = [s.front_pid(), *s.worker_pids()]
            s.agentd.stop(signal.SIGKILL)
            wait_until(lambda: all(ended(p) for p in others), "the rest of that agent leaves")
            s.clients.clear()
            s.start_agentd(user_mode=user_mode)
            session = s.attach()
            (worker,) = s.worker_pids()
            records = pathlib.Path(f"{s.socket}.undo")
            (record,) = records.glob(f"{s.monitor_pid()}.*")
            os.kill(old, signal.SIGCONT)
            wait_until(lambda: ended(old), "the old heir has done its work")
            assert not ended(worker) and record.exists() and [record] == list(records.iterdir())
            assert len(s.rpc.call("gpu.queues", session=session)["queues"]) == 4


def plant(directory, target):
    """As a dead agent's worker would have left it: something to undo in the target."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    record = directory / f"{gone.pid}.{target}.1"
    record.write_bytes(b"\1".ljust(4096, b"\0"))
    return record


def test_records_where_others_may_write_are_not_acted_upon():
    """They would be the orders of whoever wrote them, carried out as root."""
    need_root()

    def everybody(path):
        path.mkdir()
        path.chmod(0o777)

    def group(path):
        path.mkdir()
        path.chmod(0o770)

    def another_user(path):
        path.mkdir(mode=0o700)
        shutil.chown(path, USER)

    def elsewhere(path):
        real = path.with_name("elsewhere")
        real.mkdir(mode=0o700)
        path.symlink_to(real)

    for make in (everybody, group, another_user, elsewhere):
        with Scene(user_mode=False, start_agent=False) as s:
            path = pathlib.Path(f"{s.socket}.undo")
            make(path)
            record = plant(path.resolve(), s.app.pid)
            s.start_agentd(user_mode=False)
            session = s.attach()
            assert len(s.rpc.call("gpu.queues", session=session)["queues"]) == 4
            # Nor is it where this agent's own are kept.
            assert list(path.resolve().iterdir()) == [record], (make.__name__, list(path.resolve().iterdir()))
            s.rpc.call("session.detach", session=session)


def test_records_of_the_agent_itself_are_acted_upon():
    """The control: the same record, where only the agent may write."""
    need_root()
    with Scene(user_mode=False, start_agent=False) as s:
        path = pathlib.Path(f"{s.socket}.undo")
        path.mkdir(mode=0o700)
        record = plant(path, s.app.pid)
        s.start_agentd(user_mode=False)
        assert not record.exists()
        s.attach()


def test_an_agent_that_leaves_nothing_ends_its_heir():
    """Else the service manager kills it, and its journal reports a process killed at every stop."""
    with Scene() as s:
        heir = heir_of(s.agentd)
        s.rpc.call("session.detach", session=s.attach())
        s.agentd.stop(signal.SIGTERM)
        assert ended(heir) and not pathlib.Path(f"{s.socket}.undo").exists()
