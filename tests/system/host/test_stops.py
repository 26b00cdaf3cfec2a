#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads that are stopped for a moment because a client asks for it: their frames are those that gdb finds, their
program does not notice, and nothing keeps one stopped."""
import contextlib
import json
import os
import pathlib
import re
import signal
import sys
import threading
import time
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

from harness import BIN, RpcError, Scene, as_user, need_root, status, wait_until
from nativestacks import addresses, start, told_by_gdb

TESTS = BIN.parent / "tests"
CHAIN = ["spin_inner", "spin_middle", "spin_outer"]
NOBODY = 65534
NOT_PERMITTED = -32002


class Observed(Scene):
    """An agent of the system with a group whose members may look at everybody's processes."""

    def __init__(self):
        need_root()
        super().__init__(app=None, user_mode=False, start_agent=False)

    def __enter__(self):
        super().__enter__()
        (self.directory / "agentd.conf").write_text("[agent]\nuser = nobody\nsocket_group =\nobserver_group = daemon\n")
        self.start_agentd(user_mode=False)
        return self


def tasks(pid):
    return {int(tid): status(int(tid)) for tid in os.listdir(f"/proc/{pid}/task")}


def assert_free(pid):
    """Nobody traces a thread, and none stands still."""
    for tid, facts in tasks(pid).items():
        assert facts["TracerPid"] == "0" and facts["State"][0] not in "tT", (tid, facts["State"], facts["TracerPid"])


def ask(process):
    """The numbers that the program answers a line with."""
    answers = process.out().count("\n")
    process.popen.stdin.write(b"\n")
    process.popen.stdin.flush()
    wait_until(lambda: process.out().count("\n") > answers, "an answer")
    return [int(n) for n in process.out().split("\n")[-2].split()]


def spinners(doc):
    return [g for g in doc["groups"] if [f.get("function") for f in g["native_frames"][:3]] == CHAIN]


def test_threads_that_run_have_frames():
    with Scene(app=None) as s:
        process = start(s, [TESTS / "stops", "spin", "3"])
        plain = s.rpc.call("host.stacks", pid=process.pid)
        assert not spinners(plain) and plain["stopped_us"] == 0 and "stopped_threads" not in plain
        doc = s.rpc.call("host.stacks", pid=process.pid, stop=True, max_stop_ms=1000)
        groups = spinners(doc)
        assert sum(g["threads"] for g in groups) == doc["stopped_threads"] == 3, doc
        assert all(g["was_stopped"] and g["native_end"] == "outermost" for g in groups)
        # They stand at any instruction of the innermost function, and are one group all the same.
        assert len(groups) == 1 and doc["complete"] and doc["missing"] == [], doc
        assert doc["stopped_us"] > 0
        assert_free(process.pid)
        # Without native frames there is nothing to stop for.
        assert "stopped_threads" not in s.rpc.call("host.stacks", pid=process.pid, stop=True, native=False)
        waiting = next(g for g in doc["groups"] if g["state"] == "blocked")
        assert "was_stopped" not in waiting, waiting
        ours, theirs = addresses(doc, process.pid), told_by_gdb("-p", process.pid)
        for tid in groups[0]["tids"]:
            assert ours[tid][1:] == theirs[tid][1:], (tid, ours[tid], theirs[tid])
        shown = s.ctl("stacks", process.pid, "--stop", "--max-stop=1s").stdout
        assert re.search(r"3 running; 3 threads were stopped, \d+\.\d ms in all", shown) and "spin_middle" in shown, shown
        assert "none was stopped" in s.ctl("stacks", process.pid).stdout
        document = json.loads(s.ctl("snapshot", process.pid, "--host=stop", "--max-stop=1s", "--json").stdout)
        assert spinners(document["host"]), document
        assert "--host takes no value, or `stop`" in s.ctl("snapshot", process.pid, "--host=all").stderr


@pytest.mark.parametrize("user_mode", [True, False])
def test_signals_arrive(user_mode):
    if not user_mode:
        need_root()
    with Scene(app=None, user_mode=user_mode) as s:
        process = start(s, [TESTS / "stops", "signals", "4"])
        for _ in range(60):
            assert s.rpc.call("host.stacks", pid=process.pid, stop=True, max_stop_ms=1000)["stopped_threads"]
        sent = ask(process)[0]
        assert sent > 500, sent
        wait_until(lambda: ask(process) == [sent, sent], f"{sent} signals have arrived")
        assert_free(process.pid)


def test_calls_that_a_stop_would_end_are_left_alone():
    """Of the threads that wait, only those are stopped whose calls go on; the others do not even run."""
    with Scene(app=None) as s:
        process = start(s, [TESTS / "waits_frame_pointer"])
        calls = {t: g["waits_in"] for g in s.rpc.call("host.stacks", pid=process.pid)["groups"] for t in g["tids"]}
        ends = {t for t, call in calls.items() if call in ("read", "epoll_wait", "clock_nanosleep", "poll")}
        assert len(ends) >= 4, calls

        def switches():
            return {t: pathlib.Path(f"/proc/{t}/schedstat").read_text().split()[2] for t in ends}
        before = switches()
        for _ in range(20):
            doc = s.rpc.call("host.stacks", pid=process.pid, stop=True, max_stop_ms=1000)
        assert switches() == before
        stopped = {t for g in doc["groups"] if g.get("was_stopped") for t in g["tids"]}
        assert stopped and not stopped & ends, (stopped, calls)
        assert {t: g["waits_in"] for g in doc["groups"] for t in g["tids"]} == calls
        assert any("a stop could end the system call" in m for m in doc["missing"]), doc["missing"]
        ours, theirs = addresses(doc, process.pid), told_by_gdb("-p", process.pid)
        for g in doc["groups"]:
            assert not g.get("was_stopped") or not any(f.get("guessed") for f in g["native_frames"]), g
            for t in g["tids"]:
                assert t not in stopped or ours[t] == theirs[t], (g, theirs[t])
        assert_free(process.pid)


def test_calls_that_began_just_before_are_told():
    """A thread that runs may enter epoll_wait() before the stop reaches it: whatever the program saw is told."""
    with Scene(app=None) as s:
        process = start(s, [TESTS / "stops", "calls"])
        told = 0
        for _ in range(150):
            doc = s.rpc.call("host.stacks", pid=process.pid, stop=True, max_stop_ms=1000)
            told += sum("epoll_wait just before it was stopped" in f for f in doc.get("findings", []))
        seen = ask(process)[0]
        print(f"  {seen} of 150 looks ended a call")
        assert seen == told, (seen, told)


def test_two_chains_are_never_mixed():
    """Registers and stack are of one moment, however fast the thread goes on."""
    with Scene(app=None) as s:
        process = start(s, [TESTS / "stops", "chains"])
        seen = {}
        for _ in range(150):
            doc = s.rpc.call("host.stacks", pid=process.pid, stop=True, max_stop_ms=1000)
            for g in doc["groups"]:
                names = [f.get("function") or "" for f in g["native_frames"]]
                chain = tuple(name for name in names if re.fullmatch(r"[ab]_(inner|middle|outer)", name))
                if g.get("was_stopped"):
                    seen[chain] = seen.get(chain, 0) + 1
                    assert g["native_end"] == "outermost", names
        print("  " + "; ".join(f"{n} {' '.join(chain)}" for chain, n in seen.items()))
        whole = {(f"{c}_inner", f"{c}_middle", f"{c}_outer") for c in "ab"}
        for chain in seen:
            assert any(chain == c[i:] for c in whole for i in range(4)), (chain, seen)
        assert whole <= seen.keys(), seen


def test_a_stack_that_never_comes():
    """The copy of the stack waits for a page that nobody brings: the tracer ends, and its thread runs on."""
    need_root()
    with Scene(app=None, user_mode=False) as s:
        process = s.start("silent", [TESTS / "stops", "silent"])
        if process.wait_line() == "none":
            raise SkipTest("no userfaultfd here")
        longest, begun, over = [0.0], [None], threading.Event()

        def sample():
            while not over.is_set():
                now = time.monotonic()
                if any(f.get("State", "")[:1] == "t" for f in tasks(process.pid).values()):
                    begun[0] = begun[0] or now
                    longest[0] = max(longest[0], now - begun[0])
                else:
                    begun[0] = None
        sampler = threading.Thread(target=sample)
        sampler.start()
        doc = s.rpc.call("host.stacks", pid=process.pid, stop=True)
        over.set()
        sampler.join()
        print(f"  stopped for {longest[0] * 1000:.0f} ms")
        assert any("the tracer has ended" in m for m in doc["missing"]), doc["missing"]
        assert longest[0] < 0.6, longest
        wait_until(lambda: not s.worker_pids(), "the worker is gone")
        assert_free(process.pid)


def test_a_wait_that_nothing_interrupts():
    with Scene(app=None) as s:
        process = start(s, [TESTS / "stops", "fork"])
        child = wait_until(lambda: [p for t in tasks(process.pid)
                                    for p in pathlib.Path(f"/proc/{process.pid}/task/{t}/children").read_text().split()], "a child")
        doc = s.rpc.call("host.stacks", pid=process.pid, stop=True)
        assert doc["stopped_threads"] == 0, doc
        assert_free(process.pid)
        os.kill(int(child[0]), signal.SIGKILL)


def test_stops_have_a_budget():
    with Scene(app=None) as s:
        process = start(s, [TESTS / "stops", "wait", "200"])
        doc = s.rpc.call("host.stacks", pid=process.pid, stop=True, max_stop_ms=1)
        assert 0 < doc["stopped_threads"] < 200 and any("time for stops was used up" in m for m in doc["missing"]), doc["missing"]
        assert s.rpc.error("host.stacks", pid=process.pid, stop=True, max_stop_ms=1001).code == -32602
        assert_free(process.pid)


def test_who_may_stop_threads():
    with Observed() as s:
        roots = start(s, [TESTS / "stops", "spin", "1"])
        mine = s.start("mine", [TESTS / "stops", "spin", "1"], user=NOBODY, group=NOBODY, extra_groups=[])
        mine.wait_line()

        def observer():
            assert s.connect().call("host.stacks", pid=roots.pid)["threads"] == 2
            refused = s.connect().error("host.stacks", pid=roots.pid, stop=True)
            assert refused.code == NOT_PERMITTED and "not stop its threads" in refused.message, refused
        as_user(2, observer, groups=[1])

        def owner():
            assert s.connect().call("host.stacks", pid=mine.pid, stop=True, max_stop_ms=1000)["stopped_threads"] == 1
            assert s.connect().error("host.stacks", pid=roots.pid, stop=True).code == NOT_PERMITTED
        as_user(NOBODY, owner)
        assert s.rpc.call("host.stacks", pid=mine.pid, stop=True, max_stop_ms=1000)["stopped_threads"] == 1
        assert_free(mine.pid)
        assert_free(roots.pid)


def look(rpc, pid):
    with contextlib.suppress(RpcError):
        rpc.call("host.stacks", pid=pid, stop=True, max_stop_ms=1000)


def test_a_worker_that_is_killed_leaves_nothing():
    with Scene(app=None) as s:
        process = start(s, [TESTS / "stops", "wait", "200"])
        killed = 0
        for i in range(20):
            rpc = s.connect()
            asking = threading.Thread(target=look, args=(rpc, process.pid))
            asking.start()
            time.sleep(0.002 * i)
            for worker in s.worker_pids():
                os.kill(worker, signal.SIGKILL)
                killed += 1
            asking.join()
            wait_until(lambda: all(f.get("TracerPid") == "0" for f in tasks(process.pid).values()), "nobody traces it")
            assert_free(process.pid)
        assert killed, "no worker was met"
