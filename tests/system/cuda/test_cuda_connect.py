#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How the agent reaches the debug engine in a CUDA process: through a connect broker, by a name that nobody can guess."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from cudascene import assert_untouched, scene
from harness import BIN, agent_children, need_root, status, wait_until

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
NOBODY = 65534
# agentd/ipc/connect.h
TARGET, WORKER, CLAIM, READY, CLAIMED = range(0x601, 0x606)


def without_network():
    if LIBC.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")


class Manager:
    """As a service manager with gpu-agent-connect.socket: a process for each connection, outside of the agent."""

    def __init__(self, s, serve):
        self.serve, self.brokers = serve, []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(s.directory / "connect.sock"))
        self.listener.listen()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.brokers.append(self.serve(connection))

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


@contextlib.contextmanager
def manager(s, serve):
    m = Manager(s, serve)
    try:
        yield m
    finally:
        m.close()


def broker_as(s, *wrapper):
    """Starts the real one."""
    program = pathlib.Path(shutil.copy(BIN / "gpu-agent-connect", s.directory))

    def serve(connection):
        with connection:
            high = os.dup(connection.fileno())
            command = f"exec 3<&{high}; exec {' '.join(wrapper)} {program}"
            popen = subprocess.Popen(["bash", "-c", command], pass_fds=[high], stderr=subprocess.PIPE, text=True)
            os.close(high)
            return popen
    return serve


UNPRIVILEGED = (f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --inh-caps=-all",)


def ended(brokers):
    for broker in brokers:
        assert broker.wait(20) == 0, broker.stderr.read()
        text = broker.stderr.read()
        broker.stderr.close()
        assert not text, text


def refusal(s):
    return s.connect().error("session.attach", pid=s.app.pid)


# -- names -----------------------------------------------------------------------------------------

SQUATTER = """
import ctypes, os, resource, socket, sys
first, last, user = map(int, sys.argv[1:])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
each, n, up = hard - 50, 0, os.pipe()
for begin in range(first, last, each):
    n += 1
    if os.fork():
        continue
    held = []
    for label in range(begin, min(begin + each, last)):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].bind("\\0nv_target_process_%d_0" % label)
        held[-1].listen()
    os.write(up[1], b"x")
    sys.stdin.read()
    os._exit(0)
while n:
    n -= len(os.read(up[0], 1))
print("ready", flush=True)
sys.stdin.read()
"""


def test_names_that_can_be_guessed_are_of_no_use():
    """A stranger holds those of every process number that the agent's processes can get."""
    need_root()
    most = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())
    with scene() as s:
        first = 1 if most <= 100000 else os.getpid()
        squatter = s.start("squatter", [sys.executable, "-c", SQUATTER, first, min(first + 100000, most), 1001])
        squatter.wait_line()
        for _ in range(3):
            s.attach(rpc=s.connect())
            s.clients.pop().close()
        wait_until(lambda: not s.worker_pids(), "the workers leave")
        assert_untouched(s)


# -- an agent without network ----------------------------------------------------------------------


def test_an_agent_in_a_network_namespace_of_its_own():
    """As under its unit.  Without a broker outside nothing is changed in the target; with one, all works."""
    need_root()
    with scene(start_agent=False) as s:
        s.start_agentd(user_mode=False, preexec_fn=without_network)
        error = refusal(s)
        assert error.name == "not_debuggable" and "another network namespace" in error.message, error.message
        assert "gpu-agent-connect(8)" in error.hint, error.hint
        assert_untouched(s)
        with manager(s, broker_as(s, *UNPRIVILEGED)) as outside:
            session = s.attach()
            run = s.ctl("snapshot", s.app.pid)
            assert run.returncode == 0 and "spin" in run.stdout, run
            (worker,) = s.worker_pids()
            assert os.readlink(f"/proc/{worker}/ns/net") != os.readlink(f"/proc/{s.app.pid}/ns/net")
            (broker,) = outside.brokers
            facts = status(broker.pid)
            assert set(facts["Uid"].split()) == {str(NOBODY)} and int(facts["CapEff"], 16) == int(facts["CapPrm"], 16) == 0, facts
            assert facts["Seccomp"] == "2" and facts["NoNewPrivs"] == "1", facts
            s.rpc.call("session.detach", session=session)
            ended(outside.brokers)
            assert_untouched(s)


def test_a_target_in_a_network_namespace_of_its_own():
    """As in a container: a broker that has the capability enters it; another one says that it cannot."""
    need_root()
    with scene(app=None) as s:
        s.app = s.start("app", ["unshare", "--net", BIN / "gpu-agent-cuda-simapp", "--status-file", s.directory / "status",
                                "-e", "init; context 0; listen"], env={"LD_LIBRARY_PATH": str(s.libraries)})
        s.app.status_file = s.directory / "status"
        s.app.wait_line()
        error = refusal(s)
        assert error.name == "not_debuggable" and "another network namespace" in error.message, error.message
        (check,) = [c for c in s.rpc.call("process.doctor", pid=s.app.pid)["checks"] if c["name"] == "cuda_network"]
        assert check["verdict"] == "fail", check
        with manager(s, broker_as(s)) as outside:
            session = s.attach()
            s.rpc.call("session.detach", session=session)
            ended(outside.brokers)
        assert_untouched(s)


def test_the_agent_of_a_user_needs_nothing_else():
    with scene(user_mode=True) as s:
        session = s.attach()
        (broker,) = [p for p in agent_children(s.agentd.pid) if status(p)["Name"] == "gpu-agent-conne"]
        # The session goes on without it.
        os.kill(broker, signal.SIGKILL)
        wait_until(lambda: broker not in agent_children(s.agentd.pid), "the broker is reaped")
        assert s.ctl("snapshot", s.app.pid).returncode == 0
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


# -- brokers that fail -----------------------------------------------------------------------------


def test_a_socket_that_nobody_serves():
    need_root()
    with scene() as s:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
            dead.bind(str(s.directory / "connect.sock"))
        error = refusal(s)
        assert error.name == "not_debuggable" and error.message == "the connect broker is not running", error.message
        assert "gpu-agent-connect.socket" in error.hint, error.hint
        assert_untouched(s)


def broken(until):
    """A broker that is gone after what it says last."""
    def serve(connection):
        fds = []
        with connection:
            for wanted in (TARGET, WORKER, CLAIM):
                if wanted == until:
                    break
                data, got, _, _ = socket.recv_fds(connection, 64, 4)
                fds += got
                assert struct.unpack_from("I", data)[0] == wanted, data
                if wanted == WORKER:
                    net = os.stat("/proc/self/ns/net")
                    connection.send(struct.pack("IIQQ", READY, 0, net.st_dev, net.st_ino))
                elif wanted == CLAIM:
                    connection.send(struct.pack("IIi", CLAIMED, struct.unpack_from("II", data)[1], 0))
            for fd in fds:
                os.close(fd)
    return serve


@pytest.mark.parametrize("until", ("target", "worker", "claim", "connection"))
def test_a_broker_that_dies(until):
    """Wherever it does, the user reads of it, and the target is as it was."""
    need_root()
    when = {"target": TARGET, "worker": WORKER, "claim": CLAIM, "connection": None}[until]
    with scene() as s, manager(s, broken(when)):
        error = refusal(s)
        if until == "connection":
            # The library is at work then, and waits for its own thread, which has no sockets.
            assert error.name == "timeout", error.message
        else:
            assert error.name == "not_debuggable" and error.message == "the connect broker is not running", error.message
        assert_untouched(s)
        assert not list(pathlib.Path(s.directory).glob("core*/*")), "nothing is left"


def test_a_broker_that_never_answers():
    need_root()
    kept = []
    with scene() as s, manager(s, kept.append):
        error = refusal(s)
        assert error.message == "the connect broker is not running: it does not answer", error.message
        assert_untouched(s)
    for connection in kept:
        connection.close()


def test_waiting_for_a_broker_takes_no_longer_than_the_call():
    """The worker says so itself, before the monitor would end it."""
    need_root()
    kept = []
    with scene() as s, manager(s, kept.append):
        error = s.connect().error("session.attach", pid=s.app.pid, timeout_ms=500)
        assert error.name == "timeout" and "took longer than 500 ms" in error.message, error.message
        assert "passed its deadline" not in s.agentd.err()
        assert_untouched(s)
    for connection in kept:
        connection.close()
