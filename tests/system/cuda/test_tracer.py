#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CUDA processes that their own user may not trace: a process of its own has the right, and NVIDIA's library none."""
import contextlib
import os
import pathlib
import shutil
import signal
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import BIN, children, need_root, status, wait_until
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
