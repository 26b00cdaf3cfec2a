#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A fault that the agent withholds reaches the application: when sending fails, and wherever the worker dies.

At least once, and once wherever the worker does not die between sending and noting that it was sent.
"""
import contextlib
import os
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from harness import RpcError, Scene, status, wait_until


def faults_settle(s, want):
    wait_until(lambda: s.app_status().faults == want, f"the application saw {want} fault(s)")
    time.sleep(0.1)
    assert s.app_status().faults == want


def released(s):
    target = s.target_state()
    return status(s.app.pid).get("TracerPid") == "0" and not target["enabled"] and not target["suspended_queues"]


def subscribed(s, **params):
    """@return the queue that is going to raise."""
    s.session = s.attach(control=bool(params))
    queue = s.rpc.call("gpu.queues", session=s.session)["queues"][1]["queue_id"]
    s.rpc.call("exception.subscribe", session=s.session, exceptions=["wave_trap"], look_ms=0, **params)
    return queue


def test_a_send_that_fails_once_is_made_again():
    for failures in (1, 2):
        with Scene(gpus="gfx942") as s:
            queue = subscribed(s)
            s.control(f"errno send EIO {failures}")
            s.raise_queue(queue, "wave_trap")
            s.rpc.notification("exception.raised")
            faults_settle(s, 1)
            s.rpc.call("gpu.queues", session=s.session)
            s.raise_queue(queue, "wave_trap")
            faults_settle(s, 2)


def test_a_send_that_keeps_failing_ends_the_session_and_is_made_by_the_rescue():
    """What fails as often as the worker tries it: in the session, and again at its end."""
    for failures in range(3, 8):
        with Scene(gpus="gfx942") as s:
            queue = subscribed(s)
            s.control(f"errno send EIO {failures}")
            s.raise_queue(queue, "wave_trap")
            assert s.rpc.notification("session.ended")["reason"] == "lost"
            faults_settle(s, 1)
            wait_until(lambda: released(s), "the target is released")


def test_a_fault_that_can_never_be_sent_is_counted():
    """Nobody can give it to the application: whoever asks for the state of the agent is told so."""
    with Scene(gpus="gfx942") as s:
        queue = subscribed(s)
        s.control("errno send EIO 1000000")
        s.raise_queue(queue, "wave_trap")
        assert s.rpc.notification("session.ended")["reason"] == "lost"
        assert s.rpc.call("agent.status")["owed"] == 0, "it is still tried"
        assert s.rpc.error("session.attach", pid=s.app.pid).name == "busy"
        wait_until(lambda: s.rpc.call("agent.status")["owed"] == 1, "it is counted")
        assert "owed        1 time a process" in s.ctl("status").stdout
        assert s.app_status().faults == 0
        s.control("release")
        s.attach()


def test_held_faults_whose_send_fails_reach_the_application():
    """At the end of the session, each once: what was sent is not sent again with what was not."""
    for failures in (1, 4, 7):
        with Scene(gpus="gfx942") as s:
            session = s.attach(control=True)
            ids = [q["queue_id"] for q in s.rpc.call("gpu.queues", session=session)["queues"]]
            s.rpc.call("exception.subscribe", session=session, exceptions=["wave_trap"], hold=True, look_ms=0)
            for queue in ids[:3]:
                s.raise_queue(queue, "wave_trap")
                s.rpc.notification("exception.raised")
            s.control(f"errno send EIO {failures}")
            with contextlib.suppress(RpcError):
                s.rpc.call("session.detach", session=session)
            faults_settle(s, 3)
            wait_until(lambda: released(s), "the target is released")


def test_a_forward_that_fails_is_held_on():
    """The client is told, the session goes on, and the end of it sends the fault."""
    with Scene(gpus="gfx942") as s:
        queue = subscribed(s, hold=True)
        s.raise_queue(queue, "wave_trap")
        s.rpc.notification("exception.raised")
        s.control("errno send EIO 3")
        error = s.rpc.error("exception.forward", session=s.session, exceptions=["wave_trap"], queue_id=queue)
        assert error.name == "failed", error
        assert s.app_status().faults == 0
        s.rpc.call("session.detach", session=s.session)
        faults_settle(s, 1)


def test_a_subscription_that_cannot_be_narrowed_loses_nothing():
    for op in ("exceptions", "queues", "devices"):
        with Scene(gpus="gfx942") as s:
            queue = subscribed(s, hold=True)
            s.raise_queue(queue, "wave_trap")
            s.rpc.notification("exception.raised")
            s.control(f"errno {op} EIO 2")
            with contextlib.suppress(RpcError):
                s.rpc.call("session.detach", session=s.session)
            faults_settle(s, 1)
            wait_until(lambda: released(s), "the target is released")


def test_a_subscription_that_fails_leaves_the_earlier_one():
    """Also when another client's is added to it afterwards, which asks the kernel for all of them again."""
    both = ["wave_trap", "wave_abort"]
    for more, errno in ((both, "exceptions"), (["wave_abort"], "exceptions"), (both, "queues")):
        with Scene(gpus="gfx942") as s:
            queue, other = subscribed(s), s.connect()
            s.control(f"errno {errno} EIO 1")
            error = s.rpc.error("exception.subscribe", session=s.session, exceptions=more, look_ms=0)
            assert error.name == "failed", error
            session = other.call("session.attach", pid=s.app.pid)["session"]
            other.call("exception.subscribe", session=session, exceptions=["wave_math_error"], look_ms=0)
            s.raise_queue(queue, "wave_trap")
            assert s.rpc.notification("exception.raised")["exceptions"] == ["wave_trap"]
            faults_settle(s, 1)
            s.raise_queue(queue, "wave_abort")
            faults_settle(s, 2)


# In the kernel already: what becomes of the caller changes nothing any more, and the note is still there.
TWICE_IN = "send", "send after"


def dies_in(s, block, trigger):
    """The worker hangs where @p block says, and is killed there."""
    worker, = s.worker_pids()
    s.control(f"block {block}")
    trigger()
    wait_until(lambda: any(c["wait"] == "block" for c in s.state()["pending"]) or
               status(worker).get("State", "Z")[0] == "Z", f"the worker hangs in {block}")
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
    s.control("release")
    wait_until(lambda: s.app_status().faults, "the application saw the fault")
    wait_until(lambda: released(s), f"the target is released after a death in {block}")
    time.sleep(0.1)
    assert s.app_status().faults in ((1, 2) if block in TWICE_IN else (1,)), s.app_status().faults


# A fault passes through these.  The first query is what a worker learns of it by; the kernel forgets with the worker
# what nobody has learned of.
PATH = ["query skip=1", "send"]


@pytest.mark.parametrize("after", ("", " after"), ids=("before", "after"))
@pytest.mark.parametrize("step", PATH, ids=lambda step: step.split()[0])
def test_a_fault_under_way_outlives_a_death(step, after):
    with Scene(gpus="gfx942") as s:
        queue = subscribed(s)
        dies_in(s, step + after, lambda: s.raise_queue(queue, "wave_trap"))


def test_a_fault_that_cannot_be_read_is_sent_at_the_end():
    """Nor is it lost when the worker dies right after the snapshot that clears it: it was noted before."""
    for dies in (False, True):
        with Scene(gpus="gfx942") as s:
            queue = subscribed(s)
            s.control("errno query EIO 3")
            if dies:
                s.control("block queues after skip=1")
            worker, = s.worker_pids()
            s.raise_queue(queue, "wave_trap")
            if dies:
                wait_until(lambda: any(c["wait"] == "block" for c in s.state()["pending"]), "the worker narrows")
                os.kill(worker, signal.SIGKILL)
                s.control("release")
            faults_settle(s, 1)
            wait_until(lambda: released(s), "the target is released")


# A fault that is held outlives a death in any other operation, and these calls make the worker do each.
CALLS = {
    "suspend": ("gpu.suspend", {"lease_ms": 60000}),
    "resume": ("gpu.resume", {}),
    "queues": ("gpu.queues", {}),
    "devices": ("gpu.devices", {}),
    "watch": ("watchpoint.set", {"address": "0x7f0000001000", "size": 4096}),
    "unwatch": ("watchpoint.clear", {}),
    "launch-mode": ("launch.mode", {"mode": "halt"}),
    "override": ("launch.override", {"mode": "or", "enable": ["address_watch"], "request": ["address_watch"]}),
    "flags": ("gpu.flags", {"flags": ["single_mem_op"]}),
    "query": ("exception.query", {}),
    "info": ("exception.info", {"exception": "wave_trap"}),
    "exceptions": ("exception.subscribe", {"exceptions": []}),
    "send": ("exception.forward", {"exceptions": ["wave_trap"]}),
    "disable": ("session.detach", {}),
}
BEFORE = {"resume": "suspend", "unwatch": "watch"}


@pytest.mark.parametrize("after", ("", " after"), ids=("before", "after"))
@pytest.mark.parametrize("op", CALLS)
def test_a_held_fault_outlives_a_death(op, after):
    with Scene(gpus="gfx942") as s:
        queue = subscribed(s, hold=True)
        s.raise_queue(queue, "wave_trap")
        s.rpc.notification("exception.raised")
        for name in [BEFORE[op]] if op in BEFORE else []:
            method, params = CALLS[name]
            s.rpc.call(method, session=s.session, **params)
        method, params = CALLS[op]
        extra = {"info": {"source_id": queue}, "send": {"queue_id": queue}}.get(op, {})
        dies_in(s, op + after, lambda: s.rpc.send(method, session=s.session, **params, **extra))
