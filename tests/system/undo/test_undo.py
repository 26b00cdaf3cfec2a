#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An undo that fails or hangs: tried again, seen to, or the session ends and the kernel does it; whoever else is there."""
import contextlib
import os
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import CudaScene, Scene, at_once, status, wait_until

FOR_EVER = 100000
# Two GPUs of either kind of scheduler: an answer can be about one of them only.
BOTH = "gfx942,gfx1100"
FAULTS = {
    "errno": "errno resume EIO {n}",
    "no_rights": "errno resume EPERM {n}",
    "no_session": "errno resume EINVAL {n}",
    "one_gpu": "partial resume 1 {n}",
    "no_verdicts": "silent resume 1 {n}",
    "hws": "fail-resume gpu #0 {n}",
    "mes": "fail-resume {pid} {mes} {n}",
}


def suspends(s, rpc, **params):
    session = s.attach(rpc=rpc)
    assert rpc.call("gpu.suspend", session=session, **params)["suspended"] == 4
    return session


def break_it(s, fault, n):
    mes = [q["id"] for q in s.target_state()["queues"] if q["gpu_id"] == s.state()["gpus"][1]["gpu_id"]]
    s.control(FAULTS[fault].format(n=n, pid=s.app.pid, mes=mes[0]))


def is_changed(s):
    target = s.target_state()
    return any(target[k] for k in ("suspended_queues", "launch_mode", "override", "flags", "watchpoints"))


def is_free(s):
    target = s.target_state()
    return not target["enabled"] and not is_changed(s) and status(s.app.pid)["TracerPid"] == "0"


def free_at_once(s, begun, what, free=lambda s: not is_changed(s)):
    at_once(lambda: free(s), what, begun)


def held(rpc, session):
    return next((x for x in rpc.call("session.list")["sessions"] if x["session"] == session), {}).get("suspension")


def leave(s, writer, session):
    writer.close()
    s.clients.remove(writer)


def resume(s, writer, session):
    writer.send("gpu.resume", session=session)


def shorten(s, writer, session):
    writer.call("gpu.renew", session=session, lease_ms=1)


WAYS = {"client_lost": leave, "lease_expired": shorten, "resume": resume}


CASES = [(fault, way) for fault in FAULTS for way in (WAYS if fault in ("errno", "mes") else ("client_lost", "resume"))]


@pytest.mark.parametrize("fault,way", CASES)
def test_resume_fails_once(fault, way):
    """The reader's session goes on, and what is told is what is so."""
    with Scene(gpus=BOTH) as s:
        session = s.attach()
        writer = s.connect()
        suspends(s, writer, lease_ms=60000)
        break_it(s, fault, 1)
        begun = time.monotonic()
        WAYS[way](s, writer, session)
        free_at_once(s, begun, "queues run")
        if way == "resume":
            answer = writer.read_message()
            assert answer.get("result", {}).get("resumed") == 4, answer
        else:
            note = s.rpc.notification("gpu.resumed")
            assert note["reason"] == way and note["queues"] == 4, note
        assert held(s.rpc, session) is None
        assert s.rpc.call("agent.status")["suspended"][0]["suspended"] is False
        s.rpc.call("gpu.queues", session=session)


@pytest.mark.parametrize("fault,way", CASES)
def test_resume_fails_always(fault, way):
    """The session ends for the reader, too: nothing else lets the queues run."""
    with Scene(gpus=BOTH) as s:
        session = s.attach()
        writer = s.connect()
        suspends(s, writer, lease_ms=60000)
        break_it(s, fault, FOR_EVER)
        begun = time.monotonic()
        WAYS[way](s, writer, session)
        free_at_once(s, begun, "the target is free", is_free)
        assert s.rpc.notification("session.ended")["reason"] == "lost"
        told = [n for name, n in s.rpc.notifications if name == "gpu.resumed"]
        # Those of the GPU that did what it was told, if there was one.
        assert sum(n["queues"] for n in told) == (2 if way != "resume" and fault in ("one_gpu", "hws", "mes") else 0), told
        if way == "resume":
            error = writer.read_message()["error"]
            assert error["data"]["op"] == "KFD RESUME_QUEUES", error
        assert s.rpc.call("session.list")["sessions"] == []
        # The worker has still to be reaped.
        wait_until(lambda: s.rpc.call("agent.status")["suspended"][0]["suspended"] is False, "it is told that nothing is suspended")


# -- what else a writer leaves --------------------------------------------------------------------

SETTINGS = {
    "launch-mode": lambda rpc, session: rpc.call("launch.mode", session=session, mode="halt"),
    "override": lambda rpc, session: rpc.call("launch.override", session=session, enable=["fp_invalid"],
                                              request=["fp_invalid"]),
    "flags": lambda rpc, session: rpc.call("gpu.flags", session=session, flags=["single_mem_op"]),
    "unwatch": lambda rpc, session: rpc.call("watchpoint.set", session=session, address="0x7f0000001000", size=4096),
}


# What fails: with which error, how often, and how the simulator is told.
FAILURES = {"late": ("EIO", 1, "late"), "once_eio": ("EIO", 1, "errno"), "once_einval": ("EINVAL", 1, "errno"),
            "once_eperm": ("EPERM", 1, "errno"), "always": ("EIO", FOR_EVER, "errno")}


@pytest.mark.parametrize("error,n,how", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("op", SETTINGS)
def test_setting_fails(op, error, n, how):
    with Scene(gpus="gfx942") as s:
        session = s.attach()
        writer = s.connect()
        s.attach(rpc=writer)
        SETTINGS[op](writer, session)
        assert is_changed(s)
        s.control(f"{how} {op} {error} {n}")
        begun = time.monotonic()
        leave(s, writer, session)
        if n == FOR_EVER:
            free_at_once(s, begun, "the target is free", is_free)
            assert s.rpc.notification("session.ended")["reason"] == "lost"
        else:
            free_at_once(s, begun, "the target is as before")
            s.rpc.call("gpu.queues", session=session)


def test_a_watch_point_that_does_not_go_is_still_listed():
    with Scene(gpus="gfx942") as s:
        session = s.attach()
        SETTINGS["unwatch"](s.rpc, session)
        s.control(f"errno unwatch EIO {FOR_EVER}")
        assert s.rpc.error("watchpoint.clear", session=session).data["op"] == "KFD CLEAR_NODE_ADDRESS_WATCH"
        assert len(s.rpc.call("watchpoint.list", session=session)["watchpoints"]) == 1
        s.control("release unwatch")
        assert s.rpc.call("watchpoint.clear", session=session)["cleared"] == 1
        assert not is_changed(s)


def test_a_suspend_that_fails_leaves_nothing_suspended():
    """What it stopped before it failed, nobody would know of."""
    with Scene(gpus=BOTH) as s:
        session = s.attach()
        s.control("late suspend EIO")
        assert s.rpc.error("gpu.suspend", session=session).data["op"] == "KFD SUSPEND_QUEUES"
        assert not is_changed(s) and held(s.rpc, session) is None
        suspends(s, s.rpc, lease_ms=60000)


def test_a_look_survives_a_resume_that_fails_once():
    for fault in ("errno", "one_gpu", "no_verdicts", "mes"):
        with Scene(gpus=BOTH) as s:
            session = s.attach()
            break_it(s, fault, 1)
            s.rpc.call("gpu.snapshot", session=session, max_stop_ms=7000)
            assert not is_changed(s), fault
            s.rpc.call("gpu.queues", session=session)


# -- hanging --------------------------------------------------------------------------------------

def detach(s, writer, session):
    s.rpc.call("session.detach", session=session)
    writer.send("session.detach", session=session)


@contextlib.contextmanager
def with_reader(rule):
    with Scene(gpus=BOTH, start_agent=False) as s:
        options = ()
        if rule:
            config = s.directory / "rules.conf"
            config.write_text("[store]\n\n[rule all]\ndevice = amd\n")
            options = ("--config", config)
        s.start_agentd(*options)
        if rule:
            wait_until(lambda: s.target_state()["enabled"], "the rule watches")
            wait_until(lambda: any("rule" in x for x in s.rpc.call("session.list")["sessions"]), "front knows")
        yield s


def hangs(op, after, way, rule=False):
    with with_reader(rule) as s:
        session = s.attach()
        writer = s.connect()
        s.attach(rpc=writer)
        SETTINGS["launch-mode"](writer, session)
        suspends(s, writer, lease_ms=60000)
        s.control(f"block {op} {after}")
        begun = time.monotonic()
        if way == "lease_expired":
            writer.call("gpu.renew", session=session, lease_ms=1)
        else:
            {**WAYS, "detach": detach}[way](s, writer, session)
        # A client that stays keeps its launch mode, if the hanging call was the last of its undo.
        done = is_free if way == "detach" else lambda s: not s.target_state()["suspended_queues"]
        free_at_once(s, begun, f"{op} hangs", done)
        if way == "client_lost":
            free_at_once(s, begun, f"{op} hangs", lambda s: not is_changed(s))
        if way in ("client_lost", "lease_expired") and not rule:
            assert s.rpc.notification("session.ended")["reason"] == "stuck"


@pytest.mark.parametrize("after", ("", "after"), ids=("before", "after"))
@pytest.mark.parametrize("way", ("client_lost", "lease_expired", "resume"))
def test_resume_hangs(after, way):
    hangs("resume", after, way)


@pytest.mark.parametrize("op", ("resume", "launch-mode", "disable"))
def test_hangs_at_the_end(op):
    hangs(op, "", "detach")


def test_launch_mode_hangs_client_lost():
    hangs("launch-mode", "", "client_lost")


def test_resume_hangs_under_a_rule():
    hangs("resume", "", "client_lost", rule=True)


# -- contexts of CUDA -----------------------------------------------------------------------------

def devices_run(s):
    return not any(d["suspended"] for d in s.state()["devices"])


@pytest.mark.parametrize("count", (1, FOR_EVER), ids=("once", "always"))
@pytest.mark.parametrize("way", WAYS)
def test_cuda_resume_fails(way, count):
    with CudaScene() as s:
        session = s.attach()
        writer = s.connect()
        s.attach(rpc=writer)
        writer.call("gpu.suspend", session=session, lease_ms=60000)
        assert not devices_run(s)
        s.control(f"fail resumeDevice 10 count={count}")
        WAYS[way](s, writer, session)
        wait_until(lambda: devices_run(s), "devices run")
        if count == 1 and way == "resume":
            assert writer.read_message()["result"]["resumed"] == 1
        elif count == 1:
            assert s.rpc.notification("gpu.resumed")["queues"] == 1
        if count == 1:
            assert held(s.rpc, session) is None
            s.rpc.call("gpu.queues", session=session)
        else:
            assert s.rpc.notification("session.ended")["reason"] == "lost"
            assert not [n for name, n in s.rpc.notifications if name == "gpu.resumed"]


# -- under a rule ---------------------------------------------------------------------------------

def test_resume_fails_always_under_a_rule():
    """The rule's watch does not keep the target: it begins anew."""
    with with_reader(True) as s:
        worker = s.worker_pids()
        writer = s.connect()
        session = suspends(s, writer, lease_ms=60000)
        s.control(f"errno resume EIO {FOR_EVER}")
        begun = time.monotonic()
        leave(s, writer, session)
        free_at_once(s, begun, "the target is as before")
        wait_until(lambda: s.target_state()["enabled"] and s.worker_pids() != worker, "the rule watches again")
        assert not is_changed(s)


def test_the_last_undo_fails():
    """Nothing but the end of the worker frees the target then, and that waits for nobody."""
    with with_reader(True) as s:
        session = s.attach()
        SETTINGS["launch-mode"](s.rpc, session)
        suspends(s, s.rpc, lease_ms=60000)
        for op in ("resume", "launch-mode", "disable"):
            s.control(f"errno {op} EIO {FOR_EVER}")
        begun = time.monotonic()
        s.rpc.close()
        s.clients.remove(s.rpc)
        free_at_once(s, begun, "the target is as before")
