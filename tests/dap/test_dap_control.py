#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl dap where somebody else controls the process, or takes control of it."""
import os
import signal
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import Adapter, runs_on, scene


def test_control_is_taken_and_lost():
    with scene() as s, Adapter(s.socket) as a:
        session = s.attach(control=True)
        assert s.rpc.call("gpu.suspend", session=session, lease_ms=60000)["suspended"] == 2
        a.start(pid=s.app.pid)
        assert a.event("stopped")["description"]
        assert f"resume --force {s.app.pid}" not in a.error("pause", threadId=1)
        assert a.call("gpuAgent/takeControl") == {"control": True}
        a.event("continued")
        assert s.target_state()["suspended_queues"] == 0
        assert s.rpc.notification("control.lost")["by_pid"] == a.popen.pid
        a.pause()
        # And the other way round.
        assert s.ctl("resume", "--force", s.app.pid).returncode == 0
        a.event("continued")
        a.wait(lambda m: m.get("event") == "output" and "has taken control" in m["body"]["output"], "a console line")
        assert s.target_state()["suspended_queues"] == 0
        a.finish()


def test_what_another_client_keeps_stopped_is_shown_stopped():
    with scene() as s, Adapter(s.socket) as a:
        holder = s.connect()
        session = s.attach(rpc=holder, control=True)
        assert holder.call("gpu.suspend", session=session, lease_ms=60000)["suspended"] == 2
        a.start(pid=s.app.pid)
        who = f"process {os.getpid()} (user {os.getuid()}) keeps 2 queues suspended"
        stopped = a.event("stopped")
        assert stopped["allThreadsStopped"] and stopped["description"] == who, stopped
        assert not any("GPU runs" in m["body"]["output"] for m in a.messages if m.get("event") == "output"), a.messages
        for _ in range(2):
            assert who in a.error("continue", threadId=1)
        assert who in a.error("evaluate", expression="resume", context="repl")
        assert s.target_state()["suspended_queues"] == 2 and not a.has_event("continued")
        # However it comes to an end, and begins again.
        holder.call("gpu.resume", session=session)
        a.event("continued")
        a.call("continue", threadId=1)
        holder.call("gpu.suspend", session=session, lease_ms=60000)
        assert a.event("stopped")["description"] == who
        assert a.call("gpuAgent/takeControl") == {"control": True}
        a.event("continued")
        assert s.target_state()["suspended_queues"] == 0
        a.pause()
        a.call("continue", threadId=1)
        a.finish()


def test_control_is_taken_from_a_stuck_session():
    with scene() as s, Adapter(s.socket) as a:
        session = s.attach(control=True)
        s.rpc.call("gpu.suspend", session=session, lease_ms=60000)
        a.start(pid=s.app.pid)
        a.event("stopped")
        a.call("setExceptionBreakpoints", filters=["memory"])
        os.kill(s.worker_pids()[0], signal.SIGSTOP)
        assert a.call("gpuAgent/takeControl") == {"control": True}
        a.event("continued")
        assert s.target_state()["suspended_queues"] == 0
        a.pause()
        assert not a.has_event("terminated")
        assert s.target_state()["suspended_queues"] == 2
        # The agent has begun another session: what is to stop the GPU is as it was.
        a.call("continue", threadId=1)
        s.raise_queue(0, "wave_memory_violation")
        assert a.event("stopped")["reason"] == "exception"
        a.finish()
        runs_on(s)


def test_who_may_only_look():
    with scene() as s, Adapter(s.socket) as a:
        session = s.attach(control=True)
        a.start(pid=s.app.pid)
        said = a.wait(lambda m: m.get("event") == "output" and "Looking only" in m["body"]["output"], "it says so")
        assert "uid" in said["body"]["output"] or "lease" in said["body"]["output"], said
        assert a.frame()["name"] == "spin" and a.values("Wave")["pc"]
        assert "only look" in a.error("pause", threadId=1)
        # What it may not stop it is told all the same.
        a.call("setExceptionBreakpoints", filters=["memory"])
        s.raise_queue(0, "wave_memory_violation")
        stopped = a.event("stopped")
        assert stopped["reason"] == "exception" and not stopped["allThreadsStopped"], stopped
        assert s.target_state()["suspended_queues"] == 0
        assert a.call("dataBreakpointInfo", name="0x7f0000001000", bytes=64)["dataId"] is None
        # Until the other one leaves.
        s.rpc.call("session.detach", session=session)
        a.pause()
        assert a.finish() == 0
        runs_on(s)
