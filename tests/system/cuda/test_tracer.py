#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CUDA processes that their own user may not trace: a process of its own has the right, and NVIDIA's library none."""
import contextlib
import errno
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, children, kill_agent, need_root, status, wait_until
from cudascene import assert_untouched, scene

USER = 1000
SYS_PTRACE = f"{1 << 19:016x}"
NOTHING = "0" * 16
APP = "init; context 0; module @CUBIN@; gpu launch spin grid=8 block=128; "


def start_capable(s):
    """A program of a user, that has a capability."""
    shutil.copy(BIN / "gpu-agent-cuda-simapp", s.directory)
    program = s.directory / "capable"
    program.write_text(f"#!/bin/sh\nexec setpriv --reuid {USER} --regid {USER} --clear-groups --inh-caps +net_raw "
                       f"--ambient-caps +net_raw {s.directory}/gpu-agent-cuda-simapp \"$@\"\n")
    program.chmod(0o755)
    return s.start_app(APP + "listen", program=program)


def start_hidden(s):
    """One that is not dumpable."""
    return s.start_app(APP + "nodump; listen", user=USER)


KINDS = {"capable": start_capable, "hidden": start_hidden}


@contextlib.contextmanager
def protected(kind, release="12.4"):
    with scene(release, app=None) as s:
        s.app = KINDS[kind](s)
        yield s


def tracers(s):
    return [c for w in s.worker_pids() for c in children(w) if status(c).get("Name") == "gpu-agent-trace"]


def rights(pid):
    facts = status(pid)
    return {name: facts[name] for name in ("CapPrm", "CapEff", "NoNewPrivs", "Seccomp")}


@pytest.mark.parametrize("release", ("12.4", "13.4"))
@pytest.mark.parametrize("kind", KINDS)
def test_the_library_has_no_right_and_the_tracer_no_library(kind, release):
    need_root()
    with protected(kind, release) as s:
        session = s.attach()
        (worker,), (tracer,) = s.worker_pids(), tracers(s)
        assert rights(worker) == {"CapPrm": NOTHING, "CapEff": NOTHING, "NoNewPrivs": "1", "Seccomp": "2"}
        assert status(worker)["Uid"].split() == [str(USER)] * 4
        assert rights(tracer) == {"CapPrm": SYS_PTRACE, "CapEff": SYS_PTRACE, "NoNewPrivs": "1", "Seccomp": "2"}
        assert "libcuda" in pathlib.Path(f"/proc/{worker}/maps").read_text()
        assert "libcuda" not in pathlib.Path(f"/proc/{tracer}/maps").read_text()
        assert s.rpc.call("gpu.snapshot", session=session)["wave_count"] > 0
        assert status(s.app.pid)["TracerPid"] == "0"
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)
        wait_until(lambda: status(tracer).get("State", "Z")[0] == "Z", "the tracer leaves")


def test_one_that_its_user_may_trace_needs_no_tracer():
    need_root()
    with scene(app_user=USER) as s:
        session = s.attach()
        (worker,) = s.worker_pids()
        assert not tracers(s) and rights(worker)["CapPrm"] == NOTHING
        s.rpc.call("session.detach", session=session)
        assert_untouched(s)


@pytest.mark.parametrize("level", ("1", "2"))
@pytest.mark.parametrize("release", ("12.4", "13.4"))
def test_yama_takes_a_tracer(release, level):
    """For owners, too."""
    need_root()
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    if not scope.exists():
        raise SkipTest("this kernel has no Yama")
    before = scope.read_text()
    try:
        with scene(release, app_user=USER) as s:
            scope.write_text(level)
            session = s.attach()
            (worker,), (tracer,) = s.worker_pids(), tracers(s)
            assert rights(worker)["CapPrm"] == NOTHING and rights(tracer)["CapPrm"] == SYS_PTRACE
            assert s.rpc.call("gpu.snapshot", session=session)["wave_count"] > 0
            s.rpc.call("session.detach", session=session)
            assert_untouched(s)
    finally:
        scope.write_text(before)


@pytest.mark.parametrize("victim", ("worker", "tracer"))
@pytest.mark.parametrize("kind", KINDS)
def test_killed(kind, victim):
    """What was written is put back by a rescue, which has a tracer of its own."""
    need_root()
    with protected(kind) as s:
        session = s.attach()
        (worker,), (tracer,) = s.worker_pids(), tracers(s)
        os.kill(worker if victim == "worker" else tracer, signal.SIGKILL)
        if victim == "tracer":
            s.rpc.call_raw("session.detach", {"session": session})
        assert_untouched(s)


# -- a worker that has fallen ---------------------------------------------------------------------


REFUSED = {"get_before_seize": -errno.ESRCH, "interrupt_before_seize": -errno.ESRCH, "other_process": -errno.ESRCH, "seize": 0,
           "get_running": -errno.ESRCH, "descriptor_while_held": -errno.EBADF, "interrupt": 0, "get": 0,
           "set_signal_part": -errno.EINVAL, "kill_by_go": -errno.EPROTO, "after_that": "ended",
           "unknown_verb": -errno.EPROTO, "after_unknown_verb": "ended", "large_block": -errno.ESRCH, "odd_size": "ended",
           "short_message": "ended", "other_start_time": "ended", "other_user": "ended",
           # The program that was executed: it is let go before anything is read of it, and the tracer has ended.
           "seize_for_exec": 0, "look_after_exec": -errno.ESRCH, "stop_after_exec": 5, "get_after_exec": "ended",
           "start_after_exec": "ended"}

TARGET = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(4, int(sys.argv[2]), 0, 0, 0)
print(flush=True)
sys.stdin.readline()
os.execv(sys.argv[1], [sys.argv[1], "60"])
"""


@pytest.mark.parametrize("dumpable", (0, 1))
def test_a_tracer_obeys_its_verbs_for_its_process_and_no_others(dumpable):
    """Each attempt has its answer; after an exec of a set-user-id program there is nothing to be had."""
    need_root()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpu-agent-tracer."))
    os.chmod(directory, 0o755)
    program = pathlib.Path(shutil.copy(shutil.which("sleep"), directory / "set-user-id"))
    program.chmod(0o4755)
    target = subprocess.Popen(["/usr/bin/python3", "-c", TARGET, program, str(dumpable)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, user=USER, group=USER, extra_groups=[])
    probe = None
    try:
        assert target.stdout.readline() == b"\n"
        start = pathlib.Path(f"/proc/{target.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        probe = subprocess.Popen([BIN.parent / "tests/tracer_probe", BIN / "gpu-agent-tracer", str(target.pid), str(USER), start,
                                  str(dumpable), str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        got = {}
        for line in probe.stdout:
            name, said = line.split()
            got[name] = said if said == "ended" else int(said)
            if name == "seize_for_exec":
                target.stdin.write(b"\n")
                target.stdin.flush()
                wait_until(lambda: status(target.pid)["Uid"].split()[1] == "0", "it has its privilege: the control")
                probe.stdin.write("\n")
                probe.stdin.flush()
        assert got == REFUSED, {name: (got.get(name), REFUSED.get(name)) for name in got.keys() | REFUSED.keys()
                                if got.get(name) != REFUSED.get(name)}
        wait_until(lambda: status(target.pid)["TracerPid"] == "0" and status(target.pid)["State"][0] == "S", "it runs on, alone")
    finally:
        for process in (probe, target):
            if process:
                process.kill()
                process.wait()
                process.stdout.close()
                process.stdin.close()
        shutil.rmtree(directory)


# -- a target that executes another program --------------------------------------------------------


def set_user_id_program(s):
    program = pathlib.Path(shutil.copy(shutil.which("sleep"), s.directory / "set-user-id"))
    program.chmod(0o4755)
    return program


@pytest.mark.parametrize("kind", ("own", *KINDS))
def test_a_session_ends_with_the_program(kind):
    """Nobody traces between calls, so the program has its privilege, and the session nothing of it."""
    need_root()
    with (scene(app_user=USER) if kind == "own" else protected(kind)) as s:
        s.attach()
        s.app.popen.stdin.write(f"exec {set_user_id_program(s)} 60\n".encode())
        s.app.popen.stdin.flush()
        wait_until(lambda: status(s.app.pid)["Name"] == "set-user-id", "the target has executed it")
        assert status(s.app.pid)["Uid"].split() == [str(USER), "0", "0", "0"] and status(s.app.pid)["TracerPid"] == "0"
        assert s.rpc.notification("session.ended", patience=20)["reason"] == "exec"
        wait_until(lambda: not s.worker_pids(), "the worker leaves")


@pytest.mark.parametrize("kind", ("own", *KINDS))
def test_a_rescue_leaves_another_program_alone(kind):
    """It has the pid and the start time of the one that the record is of."""
    need_root()
    with (scene(app_user=USER) if kind == "own" else protected(kind)) as s:
        s.attach()
        kill_agent(s.agentd.pid)
        (record,) = s.directory.glob("*.undo/*")
        s.app.popen.stdin.write(f"exec {shutil.which('sleep')} 60\n".encode())
        s.app.popen.stdin.flush()
        wait_until(lambda: status(s.app.pid)["Name"] == "sleep", "the target has executed it")
        s.start_agentd(user_mode=False)
        s.clients.clear()
        wait_until(lambda: not record.exists(), "the record is dealt with")
        wait_until(lambda: f"process {s.app.pid}: it runs another program" in s.agentd.err(), s.agentd.err())
        assert status(s.app.pid)["TracerPid"] == "0"
