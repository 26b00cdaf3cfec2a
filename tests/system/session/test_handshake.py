#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that waits in RUNTIME_ENABLE goes on, whoever leaves and however, seen waiting or not.

A worker has no rights of its own: of a program that has capabilities, or is not dumpable, it cannot tell what a thread
waits for.  So each way out is tried with an ordinary program, one of root, and one that is not dumpable.
"""
import contextlib
import errno
import os
import signal
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from kfddebugger import Debugger
from harness import Scene, kill_agent, need_root, status, wait_until

USER = 12345
WAITING = "wait-line; runtime on; queues 4; spin"
# Of the program: its user (None: root) and its script.
TARGETS = {"plain": (USER, WAITING), "root": (None, WAITING), "not_dumpable": (USER, "nodump; " + WAITING)}
# Promised is a second; the rest is what sanitizers and a machine with other work take.
FREE_S = 6.0 if "asan" in os.environ.get("BIN", "") else 3.0


@contextlib.contextmanager
def scene(kind, **kwargs):
    need_root()
    user, script = TARGETS[kind]
    with Scene(app=script, app_user=user, gpus="gfx942", user_mode=False, sim=("--mode", "666"), **kwargs) as s:
        yield s


def go_on(s):
    s.app.popen.stdin.write(b"\n")
    s.app.popen.stdin.flush()


def waits(s):
    return s.target_state()["handshake_waiting"]


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: status(pid).get("State", "T")[0] in "Tt", "stopped")


def blocked(s):
    """A session whose worker is too slow to answer, of a program that waits."""
    s.session = s.attach()
    worker, = s.worker_pids()
    stop(worker)
    go_on(s)
    wait_until(lambda: waits(s), "the program waits")
    return worker


def assert_released(s):
    wait_until(lambda: len(s.target_state()["queues"]) == 4, "the program has left RUNTIME_ENABLE", patience=FREE_S)
    wait_until(lambda: status(s.app.pid).get("TracerPid") == "0", "nobody traces it")


def pending(s, wait):
    return [c for c in s.state()["pending"] if c["wait"] == wait]


def held_at(s, op):
    """The worker is in that operation, and does not come back before it is released."""
    return wait_until(lambda: pending(s, "block"), f"the worker is in {op}")


def by_detach(kind):
    with scene(kind) as s:
        worker = blocked(s)
        s.rpc.send("session.detach", session=s.session)
        os.kill(worker, signal.SIGCONT)
        assert_released(s)


def by_lost_client(kind):
    with scene(kind) as s:
        worker = blocked(s)
        s.clients.pop().close()
        os.kill(worker, signal.SIGCONT)
        assert_released(s)


def when_worker_is_killed(kind):
    with scene(kind) as s:
        worker = blocked(s)
        os.kill(worker, signal.SIGKILL)
        assert_released(s)
        assert s.rpc.notification("session.ended")["reason"] == "worker_died"


def when_front_is_killed(kind):
    with scene(kind) as s:
        worker = blocked(s)
        os.kill(s.front_pid(), signal.SIGKILL)
        os.kill(worker, signal.SIGCONT)
        assert_released(s)


def when_daemon_is_killed(kind):
    with scene(kind) as s:
        worker = blocked(s)
        os.kill(s.agentd.pid, signal.SIGKILL)
        os.kill(worker, signal.SIGCONT)
        assert_released(s)


def by_sigterm(kind):
    with scene(kind) as s:
        worker = blocked(s)
        os.kill(s.agentd.pid, signal.SIGTERM)
        os.kill(worker, signal.SIGCONT)
        assert_released(s)


def left_behind(s):
    """Everything of ours died at once, and the kernel leaves the program waiting."""
    blocked(s)
    kill_agent(s.agentd.pid)
    wait_until(lambda: status(s.app.pid).get("TracerPid") == "0" and not s.target_state()["enabled"],
               "the session is over")
    assert waits(s)
    s.clients.clear()


def by_the_next_daemon(kind):
    with scene(kind) as s:
        left_behind(s)
        s.start_agentd(user_mode=False)
        assert_released(s)


def by_a_daemon_elsewhere(kind):
    """It has no records of the one that died, and looks through all programs on the GPUs."""
    with scene(kind) as s:
        left_behind(s)
        s.socket = s.directory / "other.sock"
        s.start_agentd(user_mode=False)
        assert_released(s)


def by_the_next_session(kind):
    """Of a daemon that was there all the time, and so has not looked for such programs at its start."""
    with scene(kind) as s, contextlib.ExitStack() as stack:
        first = s.agentd
        s.socket = s.directory / "other.sock"
        other = s.start_agentd(user_mode=False)
        s.socket, s.agentd = s.directory / "agentd.sock", first
        left_behind(s)
        s.socket, s.agentd = s.directory / "other.sock", other
        assert waits(s), "and the other daemon leaves it alone, too"
        session = s.attach()
        wait_until(lambda: len(s.target_state()["queues"]) == 4, "the program has left RUNTIME_ENABLE", patience=FREE_S)
        assert s.rpc.call("session.list")["sessions"][0]["session"] == session
        stack.callback(s.clients.clear)


def while_the_session_ends(kind):
    """No event is read any more, and the answer before DISABLE is the last one: nobody has to be woken up."""
    with scene(kind) as s:
        s.session = s.attach()
        s.rpc.call("exception.subscribe", session=s.session, exceptions=["wave_trap"])
        s.control("block exceptions after")
        s.rpc.send("session.detach", session=s.session)
        held_at(s, "exceptions")
        go_on(s)
        wait_until(lambda: pending(s, "turn"), "the program is on its way in")
        s.control("release")
        assert_released(s)
        assert s.app_status().interrupted_waits == 0


def between_the_last_look_and_disable(kind):
    """The worker has seen that nobody waits; before it ends the session, the program begins to."""
    with scene(kind) as s:
        s.session = s.attach()
        s.control("block info after")
        s.rpc.send("session.detach", session=s.session)
        held_at(s, "info")
        go_on(s)
        wait_until(lambda: pending(s, "turn"), "the program is on its way in")
        s.control("release")
        assert_released(s)


def between_the_last_look_and_the_end_of_a_failed_attach(kind):
    """The same where nothing but an error came of the session."""
    with scene(kind) as s:
        s.control("errno queues EIO 100")
        s.control("block info after")
        s.rpc.send("session.attach", pid=s.app.pid)
        held_at(s, "info")
        go_on(s)
        wait_until(lambda: pending(s, "turn"), "the program is on its way in")
        s.control("release")
        assert_released(s)


def when_the_answer_never_succeeds(kind):
    """The session ends, and a stop of the thread does what the answer could not."""
    with scene(kind) as s:
        s.session = s.attach()
        s.control("errno send EIO 1000")
        go_on(s)
        assert_released(s)
        assert s.rpc.notification("session.ended")["reason"] == "lost"
        assert not s.target_state()["enabled"]
        s.control("release")


def when_the_event_is_never_read(kind):
    with scene(kind) as s:
        s.session = s.attach()
        s.control("errno info EIO 1000")
        go_on(s)
        assert_released(s)
        assert s.rpc.notification("session.ended")["reason"] == "lost"


def when_the_answer_never_succeeds_at_the_end(kind):
    with scene(kind) as s:
        worker = blocked(s)
        s.control("errno send EIO 1000")
        s.rpc.send("session.detach", session=s.session)
        os.kill(worker, signal.SIGCONT)
        assert_released(s)
        s.control("release")


WAYS = (by_detach, by_lost_client, when_worker_is_killed, when_front_is_killed, when_daemon_is_killed, by_sigterm,
        by_the_next_daemon, by_a_daemon_elsewhere, by_the_next_session, while_the_session_ends,
        between_the_last_look_and_disable, between_the_last_look_and_the_end_of_a_failed_attach,
        when_the_answer_never_succeeds, when_the_answer_never_succeeds_at_the_end, when_the_event_is_never_read)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("kind", TARGETS)
def test_released(way, kind):
    way(kind)


def was_stopped(kind):
    with scene(kind) as s:
        worker = blocked(s)
        os.kill(worker, signal.SIGKILL)
        assert_released(s)
        return s.app_status().interrupted_waits != 0


def test_who_is_left_waiting_is_answered_rather_than_stopped():
    """A stop leaves a mark in the kernel, which takes the next call for the interrupted one."""
    for kind in TARGETS:
        # On a machine with other work a rescuer may be too late; with sanitizers, each.
        if all(was_stopped(kind) for _ in range(4)):
            if "asan" in os.environ.get("BIN", ""):
                raise SkipTest("a rescue worker with sanitizers does not start in time here")
            raise AssertionError(kind)


def test_an_answer_that_fails_once_is_given_again():
    for failures in (1, 2):
        with Scene(app=WAITING, gpus="gfx942") as s:
            s.session = s.attach()
            s.control(f"errno send EIO {failures}")
            go_on(s)
            wait_until(lambda: len(s.target_state()["queues"]) == 4, "the program has left RUNTIME_ENABLE")
            assert s.rpc.notification("runtime.changed")["runtime"]["state"] == "enabled"
            # Answered once: the program turns its runtime off, and is answered for that again.
            assert len(s.rpc.call("gpu.queues", session=s.session)["queues"]) == 4


def test_an_event_that_cannot_be_read_at_once_is_read_again():
    """One byte announces it, and nothing does so again."""
    for op in ("query", "info"):
        with Scene(app=WAITING, gpus="gfx942") as s:
            s.session = s.attach()
            s.control(f"errno {op} EIO 2")
            go_on(s)
            assert s.rpc.notification("runtime.changed")["runtime"]["state"] == "enabled"
            wait_until(lambda: len(s.target_state()["queues"]) == 4, "the program has left RUNTIME_ENABLE")
            assert s.app_status().interrupted_waits == 0


def test_a_session_is_begun_by_a_thread_that_nobody_traces():
    """For a main thread that is being killed the driver would make a context, of no memory, and crash (docs/VM.md)."""
    with Scene(app="queues 1; sleepers 1; spin", gpus="gfx942") as s:
        threads = {int(tid) for tid in os.listdir(f"/proc/{s.app.pid}/task")} - {s.app.pid}
        s.attach()
        (process,) = (p for p in s.state()["processes"] if p["pid"] == s.app.pid)
        assert process["enabled_as"] in threads, process
        assert all(status(f"{s.app.pid}/task/{tid}")["TracerPid"] == "0" for tid in threads)


def test_a_session_that_another_debugger_has_stays_its_own():
    """It has left ptrace, so that nothing but a question tells that there is a session."""
    with Scene(gpus="gfx942", sim=("--permissions", "process")) as s, Debugger(s.app.pid, s.mount / "kfd") as other:
        other.leave_ptrace()
        assert other.query() == errno.EAGAIN
        error = s.rpc.error("session.attach", pid=s.app.pid)
        assert error.name == "busy", error
        assert other.query() == errno.EAGAIN, "its session is its own"
        other.kill()
        wait_until(lambda: not s.target_state()["enabled"], "its end ends the session")
        s.attach()
