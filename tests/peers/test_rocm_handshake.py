#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hsa_init of AMD's own runtime, with GPUs, waits for an agent that is stuck: it goes on, whichever way the agent ends.

tests/system/session/test_handshake.py has all the ways out with programs of ours, tests/vm/test_rocm.py the real driver.
"""
import os
import signal
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import ROOT, children_named, kill_agent, need_root, status, wait_until
from peers import PEERS
from rocm import RocmScene, run_by, trees

# Promised is a second; the rest is what sanitizers and a machine with other work take.
FREE_S = 12.0 if "asan" in os.environ.get("BIN", "") else 4.0
GPUS = "gfx942,gfx90a"


def program_of(roots):
    """tests/vm/hsa.c, which calls hsa_init and hsa_shut_down when it is told to."""
    program = PEERS / "hsa"
    new = program.with_suffix(f".{os.getpid()}")
    subprocess.run(["cc", "-Wall", "-O1", "-o", new, ROOT / "tests/vm/hsa.c"], check=True, timeout=120)
    new.rename(program)
    return run_by(roots, program)


class Waiting(RocmScene):
    """A session of a program that has the GPUs open, and whose runtime is down."""

    def __init__(self):
        need_root()
        roots = trees()
        super().__init__(GPUS, user_mode=False, sim=("--mode", "666"))
        self.command = program_of(roots)

    def __enter__(self):
        super().__enter__()
        try:
            self.program = self.run("hsa", self.command)
            self.program.wait_line(words="ready")
            for word in ("init", "down"):
                assert self.step(self.program, word, word) == f"{word} 0"
            self.session = self.attach(self.program.pid)
            self.worker, = self.worker_pids()
            return self
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def init(self):
        self.program.popen.stdin.write(b"init\n")
        self.program.popen.stdin.flush()

    def waits(self):
        return self.target_state(self.program)["handshake_waiting"]

    def block(self):
        """The worker is too slow to answer, and the program waits for it."""
        os.kill(self.worker, signal.SIGSTOP)
        wait_until(lambda: status(self.worker).get("State", "T")[0] in "Tt", "stopped")
        self.init()
        wait_until(self.waits, "the program waits")
        assert self.program.out().count("init") == 1

    def assert_released(self):
        """hsa_init has come back with what it says when all is well, and so does all that follows."""
        wait_until(lambda: self.program.out().count("init 0") == 2, "hsa_init comes back", patience=FREE_S)
        for word in ("down", "init", "down"):
            assert self.step(self.program, word, word) == f"{word} 0"


def by_detach(s):
    s.block()
    s.rpc.send("session.detach", session=s.session)
    os.kill(s.worker, signal.SIGCONT)


def worker_is_killed(s):
    s.block()
    os.kill(s.worker, signal.SIGKILL)


def monitor_is_killed(s):
    s.block()
    os.kill(s.monitor_pid(), signal.SIGKILL)
    os.kill(s.worker, signal.SIGCONT)


def monitor_and_worker_are_killed(s):
    s.block()
    os.kill(s.monitor_pid(), signal.SIGKILL)
    os.kill(s.worker, signal.SIGKILL)


def daemon_gets_sigterm(s):
    s.block()
    os.kill(s.agentd.pid, signal.SIGTERM)
    os.kill(s.worker, signal.SIGCONT)


def daemon_is_killed(s):
    s.block()
    os.kill(s.agentd.pid, signal.SIGKILL)
    os.kill(s.worker, signal.SIGCONT)


def client_is_lost(s):
    s.block()
    s.clients.pop().close()
    os.kill(s.worker, signal.SIGCONT)


def deadline_of_a_call(s):
    """The worker stays stuck; what ends it is the deadline of the call that a client waits for."""
    s.block()
    error = s.rpc.error("gpu.queues", session=s.session)
    assert error.name in ("timeout", "session_ended"), error


def answer_hangs_in_the_driver(s):
    """The worker answers, and that system call does not come back."""
    s.control("block send")
    s.init()
    wait_until(lambda: any(c["wait"] == "block" for c in s.state()["pending"]), "the answer hangs")
    assert s.program.out().count("init") == 1
    s.rpc.send("gpu.queues", session=s.session)
    wait_until(lambda: not children_named(s.agentd.pid, "gpu-agent-worker"), "the worker is ended", patience=30)
    s.control("release")


def next_daemon(s):
    """Everything of ours died at once."""
    s.block()
    kill_agent(s.agentd.pid)
    s.clients.clear()
    wait_until(lambda: status(s.program.pid).get("TracerPid") == "0", "nobody traces it")
    assert s.waits()
    s.start_agentd(user_mode=False)


WAYS = (by_detach, worker_is_killed, monitor_is_killed, monitor_and_worker_are_killed, daemon_gets_sigterm, daemon_is_killed,
        client_is_lost, deadline_of_a_call, answer_hangs_in_the_driver, next_daemon)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_hsa_init_goes_on(way):
    with Waiting() as s:
        way(s)
        s.assert_released()
        wait_until(lambda: status(s.program.pid).get("TracerPid") == "0", "nobody traces it")
