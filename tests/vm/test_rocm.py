#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process of AMD's own runtime library on the real driver, and the installed agent; AMD's debugger library as a judge.

VM_HSA and VM_DBGAPI are command lines that tests/vm/run prepares; without one, VM_HSA_MISSING or VM_DBGAPI_MISSING
says why.
"""
import json
import os
import signal
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from units import SERVICE, SOCKET, ctl, main_pid, run, worker_pid
from vmlib import USER, Target, status, stop
from harness import PATIENCE, Rpc

pytestmark = pytest.mark.usefixtures("open_kfd", "stopped_afterwards")


@pytest.fixture(scope="module")
def stopped_afterwards():
    """The next test program wants to be the first client."""
    yield
    run("systemctl", "stop", SERVICE)


def command_line(name):
    if not os.environ.get(name):
        raise SkipTest(os.environ.get(f"{name}_MISSING") or f"{name} is not set")
    return os.environ[name].split()


def rocm(*words):
    return Target(*words, program=command_line("VM_HSA"))


class Dbgapi:
    """tests/peers/dbgapi_probe.c on one process; its steps by name."""

    def __init__(self, pid):
        self.popen = subprocess.Popen([*command_line("VM_DBGAPI"), str(pid)], stdin=subprocess.PIPE, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=1)
        self.until("ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            stream.close()

    def until(self, *last):
        lines = []
        while True:
            line = self.popen.stdout.readline().rstrip("\n")
            assert line or self.popen.poll() is None, f"the library's program ended: {self.popen.stderr.read()}"
            lines.append(line)
            if line.startswith(last):
                return lines

    def step(self, name):
        self.popen.stdin.write(name + "\n")
        *lines, verdict = self.until(f"ok {name}", f"error {name}")
        assert verdict.startswith("ok"), (lines, verdict)
        return lines


def amd_looks(target):
    """AMD's library attaches, finds what there is on such a machine, and leaves."""
    with Dbgapi(target.pid) as judge:
        lines = judge.step("attach")
        assert "runtime 1" in lines, lines
        assert int(status(target.pid)["TracerPid"]) == judge.popen.pid
        # While it is there we keep out, and say why.
        busy = ctl("snapshot", target.pid)
        assert busy.returncode == 6, (busy.returncode, busy.stderr)
        assert judge.step("devices") == [] and judge.step("queues") == []
        judge.step("detach")
        judge.popen.stdin.close()
        assert judge.popen.wait(PATIENCE) == 0
    assert target.free()


def we_look(target):
    done = ctl("snapshot", target.pid, "-j")
    assert done.returncode == 0, (done.returncode, done.stderr, run("journalctl", "-u", SERVICE, "-n", "30").stdout)
    doc = json.loads(done.stdout)
    assert doc["runtime"]["state"] == "enabled" and int(doc["runtime"]["r_debug"], 16) == target.r_debug, doc
    assert doc["runtime"]["r_version"] in (9, 10) and not doc["runtime"]["ttmp_setup"], doc
    assert doc["queues"] == [] and doc["devices"] == [] and doc["complete"], doc
    assert target.free()


def test_listed_doctored_and_snapshotted():
    with rocm("init") as target:
        row = next(p for p in json.loads(ctl("list", "-j").stdout)["processes"] if p["pid"] == target.pid)
        assert row["uid"] == USER and row["queues"] == 0 and row["debuggable"], row
        checks = json.loads(ctl("doctor", target.pid, "-j").stdout)["checks"]
        assert [c["name"] for c in checks if c["verdict"] == "fail"] == ["gpus"], checks
        we_look(target)
        assert target.ask("down") == 0


def test_runtime_goes_and_comes_under_the_agent():
    with rocm("init", "down") as target:
        rpc = Rpc(SOCKET)
        reply = rpc.call("session.attach", pid=target.pid)
        assert reply["runtime"]["state"] == "disabled", reply
        for word, state in (("init", "enabled"), ("down", "disabled"), ("init", "enabled")):
            assert target.ask(word) == 0
            assert rpc.notification("runtime.changed")["runtime"]["state"] == state
        assert rpc.call("session.detach", session=reply["session"]) == {"ended": True}
        rpc.close()
        assert target.free() and target.ask("down") == 0


def test_waiting_runtime_is_released():
    """hsa_init waits for an agent that is stuck; whoever of us dies, it goes on."""
    for victim in ("worker", "daemon"):
        with rocm("init", "down") as target:
            rpc = Rpc(SOCKET)
            rpc.call("session.attach", pid=target.pid)
            worker = worker_pid()
            stop(worker)
            target.say_and_block("init")
            os.kill(worker if victim == "worker" else main_pid(), signal.SIGKILL)
            # systemd kills what a dead daemon leaves behind; the next one looks for those who wait.
            assert target.read("init") == "0", victim
            assert target.free() and target.ask("down") == 0
            rpc.close()


def test_amds_debugger_library_before_and_after_us():
    with rocm("init") as target:
        amd_looks(target)
        we_look(target)
        amd_looks(target)
        assert target.ask("down") == 0
