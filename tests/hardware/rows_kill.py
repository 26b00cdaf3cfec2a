# SPDX-License-Identifier: MIT
"""kill -9 of each of our processes at each moment: the program must run on."""
import os
import signal
import threading
import time

from harness import RpcError

import rows_look
from engine import Skipped

# Steps of libcudbgshim, as the worker's log names them, at which the victim is killed.
ATTACHING = ("write the flags", "call cudbgApiAttach", "run", "initialize", "replay")
# The step of those drivers that are asked without a call in the program.
DESCRIPTOR = b": ask through the descriptor\n"
DETACHING = ("call cudbgApiDetach", "requestCleanupOnDetach", "finalize")


# Some moments are shorter than it takes to see them, on a machine with other work.
TRIES = 5


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Killer(threading.Thread):
    """Kills as soon as the daemon's log has a line that was not there before."""

    def __init__(self, agent, line, who):
        super().__init__(daemon=True)
        self.agent, self.line, self.who = agent, line.encode(), who
        self.pid = agent.victim(who)  # finding it takes longer than some moments last
        self.log = open(agent.err_path, "rb")
        self.log.seek(0, os.SEEK_END)
        self.killed = self.by_descriptor = False
        self.is_over = False

    def run(self):
        seen = b""
        while not self.is_over:
            seen += self.log.read()
            self.by_descriptor = DESCRIPTOR in seen
            if self.line in seen:
                pid = self.pid or self.agent.victim(self.who)
                if pid:
                    self.killed = kill(pid)
                break
            time.sleep(0.0002)
        self.log.close()


def finish_row(b, p, who, began):
    """The program runs on; another session can be had."""
    took = rows_look.check_runs(p)
    b.engine.fact(f"GPU runs again after kill -9 of {who}, {began[0]}", f"{(time.monotonic() - began[1]) * 1000:.0f} ms")
    if who != "worker":
        b.stop_agent()
    b.start_agent()
    doc, session = rows_look.snapshot_soon(b, p)
    rows_look.of_gpu(doc, p)
    rows_look.check_runs(p)
    return f"kernel counts {took * 1000:.0f} ms after, {session}"


def attempt(b, p, who, moment, method, **params):
    """Kill while a call is under way, when the log tells of a step."""
    b.start_agent()
    rpc = b.agent.rpc(30)
    killer = None
    try:
        if method == "session.detach":
            params["session"] = rpc.call("session.attach", pid=p.pid)["session"]
        killer = Killer(b.agent, f": {moment}\n", who)
        killer.start()
        try:
            rpc.call(method, **params)
            rpc.call("agent.status")
        except (RpcError, EOFError, OSError):
            pass
        killer.join(2)
    finally:
        if killer:
            killer.is_over = True
        rpc.close()
    return killer


def during(b, p, who, moment, method, **params):
    for _ in range(TRIES):
        killer = attempt(b, p, who, moment, method, **params)
        detail = finish_row(b, p, who, (moment, time.monotonic()))
        if killer.killed or killer.by_descriptor:
            break
    if not killer.killed and killer.by_descriptor:
        raise Skipped("this driver is asked through a descriptor, without a call in the program")
    assert killer.killed, f"the {who} was not killed: the moment never came, or was over {TRIES} times"
    return detail


def holding(b, p, who, is_suspended):
    """Kill a session at rest, with the GPU running or suspended."""
    b.start_agent()
    rpc = b.agent.rpc(30)
    try:
        session = rpc.call("session.attach", pid=p.pid, control=True)["session"]
        if is_suspended:
            rpc.call("gpu.suspend", session=session, lease_ms=60000)
            assert p.gpu_stands(), "the GPU is not suspended"
        os.kill(b.agent.victim(who), signal.SIGKILL)
        return finish_row(b, p, who, ("suspended" if is_suspended else "attached", time.monotonic()))
    finally:
        rpc.close()


def in_snapshots(b, p, who):
    """Kill at some moment of many snapshots."""
    b.start_agent()
    rpc = b.agent.rpc(30)
    try:
        session = rpc.call("session.attach", pid=p.pid)["session"]
        victim = b.agent.victim(who)
        timer = threading.Timer(0.2, os.kill, (victim, signal.SIGKILL))
        timer.start()
        try:
            for _ in range(100000):
                rpc.call("gpu.snapshot", session=session)
        except (RpcError, EOFError, OSError):
            pass
        timer.join()
        return finish_row(b, p, who, ("in snapshots", time.monotonic()))
    finally:
        rpc.close()


def kills(b):
    box = {}

    def fresh():
        """A program that earlier rows have not harmed."""
        p = box.get("p")
        if p:
            try:
                rows_look.check_runs(p)
                return p
            except AssertionError:
                p.stop()
        box["p"] = b.lab.start("spin")
        return box["p"]

    def row(title, function, *args, **kwargs):
        def run():
            b.need_session()
            return function(b, fresh(), *args, **kwargs)

        b.step(title, "spin", run, seconds=30, needs=4)

    # The question that matters most first, should the time not do.
    for who in ("worker", "front", "monitor", "manager"):
        row(f"kill {who}: suspended", holding, who, True)
    for who in ("worker", "front", "monitor"):
        for moment in ATTACHING if who == "worker" else ("run", "replay"):
            row(f"kill {who}: {moment}", lambda b, p, w=who, m=moment: during(b, p, w, m, "session.attach", pid=p.pid))
        row(f"kill {who}: attached", holding, who, False)
        row(f"kill {who}: in snapshots", in_snapshots, who)
        for moment in DETACHING if who == "worker" else DETACHING[:1]:
            row(f"kill {who}: {moment}", lambda b, p, w=who, m=moment: during(b, p, w, m, "session.detach"))
    if box.get("p"):
        box["p"].stop()
