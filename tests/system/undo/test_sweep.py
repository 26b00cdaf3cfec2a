#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each operation of undoing, answering and forwarding fails once and hangs once, whoever is left, whatever the target.

The judge is the simulator and the program itself, never the agent: within a second nothing is stopped, blocked or changed
any more, and every fault has reached the program.  Meanwhile and afterwards the agent says what the simulator says.
A row that fails prints one line; a test fails when one of its rows does.
"""
import contextlib
import itertools
import os
import select
import shutil
import signal
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from kfddebugger import Debugger
from harness import (BIN, EXCEPTIONS, PATIENCE, AppStatus, Rpc, RpcError, Scene, at_once, kill_agent, need_root, status,
                     wait_until)

USER = 1000
QUEUES = 4
KINDS = ("plain", "root", "nodump")
LEFT = ("nobody", "reader", "rule")
ANY = None  # kinds take turns where what is done is the same for all of them
EVER = 1000000
LEASE_S = 0.15
# From the worker by way of front to who asks; the simulator needs a moment as well to notice a dead worker.
WORD_S = 0.25
ALIKE = "gfx942,gfx942"  # for flags that both have
RULES = "[rule sweep]\nexe = */watched\nkeep = nothing\nrate_limit = none\ndeduplicate = none\n"


class Wrong(Exception):
    """What a row found."""


class Target:
    """One program; it takes script lines and answers each."""

    def __init__(self, scene, kind, watched, script):
        program = scene.directory / ("watched" if watched else "unwatched")
        if not program.exists():
            shutil.copy(BIN / "gpu-agent-simapp", program)
        scene.app_program = program
        nodump = "; nodump" if kind == "nodump" else ""
        self.scene, self.watched = scene, watched
        self.process = scene.start_app(f"{script}{nodump}; listen", user=None if kind == "root" else USER)
        self.pid = self.process.pid
        self.answers = 0
        self.status = AppStatus(self.process.status_file)
        if watched:
            wait_until(self.is_listened_to, "the rule watches")

    def is_listened_to(self):
        wanted = 1 << EXCEPTIONS["wave_trap"] - 1
        return int(self.facts()["enabled_mask"], 16) & wanted != 0

    def say(self, line):
        """A script line; said() tells when it is done."""
        self.answers += 1
        self.process.popen.stdin.write(line.encode() + b"\n")
        self.process.popen.stdin.flush()

    def said(self):
        return sum(line.startswith(("ok", "error")) for line in self.process.out().splitlines()) >= self.answers

    def facts(self, state=None):
        assert self.process.popen.poll() is None, f"the program is gone: {self.process.popen.returncode}"
        return next(p for p in (state or self.scene.state())["processes"] if p["pid"] == self.pid)

    def threads(self):
        """States of its threads on the CPU."""
        tids = os.listdir(f"/proc/{self.pid}/task")
        return [status(f"{self.pid}/task/{tid}").get("State", "gone")[0] for tid in tids]

    def packets(self):
        return sum(q["packets"] for q in self.facts()["queues"])

    def truth(self):
        """What is not as if nobody had ever been there, in words; empty when the target is free."""
        state = self.scene.state()
        process = self.facts(state)
        devices = process["devices"]
        found = {"suspended": sorted(q["id"] for q in process["queues"] if q["suspended"]),
                 "launch_mode": [d["launch_mode"] for d in devices if d["launch_mode"]],
                 "override": [d["override"] for d in devices if int(d["override"], 16)],
                 "flags": process["flags"],
                 "watch": [w["id"] for g in state["gpus"] for w in g["watch"] if w["pid"] == self.pid],
                 "handshake": [c["tid"] for c in state["pending"]
                               if c["wait"] == "runtime" and c["target"] == self.pid],
                 "stopped": [t for t in self.threads() if t in "tTZX"]}
        return {name: value for name, value in found.items() if value}


class Sweep(Scene):
    """The agent as root with a rule for some programs, one program of each kind that a row asks for."""

    def __init__(self, script=f"runtime on; queues {QUEUES}", gpus="gfx942,gfx1100"):
        super().__init__(app=None, gpus=gpus, user_mode=False, start_agent=False)
        self.script = script
        self.targets = {}

    def __enter__(self):
        super().__enter__()
        try:
            (self.directory / "agentd.conf").write_text(f"[agent]\nuser = nobody\nsocket_group =\n{RULES}")
            self.start_agentd(user_mode=False)
            return self
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def target(self, kind, watched):
        if (kind, watched) not in self.targets:
            self.targets[kind, watched] = Target(self, kind, watched, self.script)
        return self.targets[kind, watched]

    def drop(self, target):
        """It is spoilt, or its rule has to wait before it may attach again."""
        self.targets = {key: t for key, t in self.targets.items() if t is not target}
        target.process.stop(signal.SIGKILL)

    def patient_attach(self, rpc, target, **params):
        """Who went before may still be on its way out."""
        def attach():
            try:
                return self.attach(target.pid, rpc=rpc, timeout_ms=int(PATIENCE * 1000), **params)
            except RpcError as error:
                if error.name not in ("busy", "session_ended", "not_debuggable"):
                    raise
                return None

        return wait_until(attach, "attach")


def drain(rpc):
    """Take what has been sent already; notifications are kept, replies returned."""
    replies = []
    with contextlib.suppress(EOFError, ConnectionError):
        while b"\n" in rpc.buffer or select.select([rpc.sock], [], [], 0)[0]:
            message = rpc.read_message()
            if "method" in message:
                rpc.notifications.append((message["method"], message["params"]))
            else:
                replies.append(message)
    return replies


class Answers:
    """What the agent says about a target, compared with the truth around the moment of saying it."""

    def __init__(self, scene, target, reader=None):
        self.scene, self.target, self.reader = scene, target, reader
        self.rpc = scene.connect()

    def told(self):
        """How many sessions are listed, ids of queues that stand still in them, and what agent.status has."""
        sessions = [s for s in self.rpc.call("session.list")["sessions"] if s["pid"] == self.target.pid]
        totals = [t for t in self.rpc.call("agent.status")["suspended"] if t["pid"] == self.target.pid]
        return (len(sessions), sorted(q for s in sessions for q in s.get("suspension", {}).get("queues", [])),
                any(t["suspended"] for t in totals))

    def _lie(self):
        before = self.target.truth().get("suspended", [])
        if not before:
            return None
        sessions, listed, total = self.told()
        resumed = []
        if self.reader:
            drain(self.reader)
            resumed = [p for name, p in self.reader.notifications if name == "gpu.resumed"]
        if before != self.target.truth().get("suspended", []):
            return None
        if resumed and resumed[-1]["queues"] > QUEUES - len(before):
            return f"queues {before} stand still, gpu.resumed said {resumed[-1]['queues']}"
        if (sessions and not set(before) <= set(listed)) or not total:
            return f"queues {before} stand still, session.list says {listed}, agent.status {total}"
        return None

    def check(self):
        """A queue that stands still is never kept quiet, but for the moment that the word takes."""
        first = self._lie()
        if first:
            time.sleep(WORD_S)
            again = self._lie()
            if again:
                raise Wrong(again)

    def is_quiet(self):
        return self.told()[1:] == ([], False)


def ask_everything(rpc, session, target):
    """Everything that can be asked, when the target is free and the session goes on."""
    queues = rpc.call("gpu.queues", session=session)["queues"]
    truth = {q["id"]: q["suspended"] for q in target.facts()["queues"]}
    got = {
        "queues": {q["queue_id"]: q["suspended"] for q in queues} == truth,
        "resume": rpc.call("gpu.resume", session=session)["resumed"] == 0,
        "watchpoints": rpc.call("watchpoint.list", session=session)["watchpoints"] == [],
        "launch.mode": rpc.call("launch.mode", session=session, mode="normal")["previous"] == "normal",
        "launch.override": rpc.call("launch.override", session=session)["previous"] == [],
        "gpu.flags": rpc.call("gpu.flags", session=session, flags=[])["previous"] == [],
    }
    wrong = [name for name, right in got.items() if not right]
    if wrong or target.truth():
        raise Wrong(f"afterwards {', '.join(wrong)} answered what is not so; {target.truth()}")


# ---- what a writer changes, and which operations undo it -------------------------------------------------------------


def suspend(s, rpc, session, target, lease_ms=60000):
    assert rpc.call("gpu.suspend", session=session, lease_ms=lease_ms)["suspended"] == QUEUES


def raise_queue(s, target):
    s.control(f"raise {target.pid} queue {target.facts()['queues'][0]['id']} {EXCEPTIONS['wave_trap']}")


def hold_fault(s, rpc, session, target):
    rpc.call("exception.subscribe", session=session, exceptions=["wave_trap"], hold=True, look_ms=0)
    raise_queue(s, target)
    rpc.notification("exception.raised")


def call(method, **params):
    return lambda s, rpc, session, target: rpc.call(method, session=session, **params)


# change: what makes it, what takes it back by name, the operations of that
CHANGES = {
    "suspend": (suspend, ("gpu.resume", {}), ("resume",)),
    "watch": (call("watchpoint.set", address="0x7f0000001000", size=4096), ("watchpoint.clear", {}),
              ("unwatch", "override")),
    "override": (call("launch.override", enable=["memory_violation"], request=["memory_violation"]),
                 ("launch.override", {"enable": [], "request": ["memory_violation"]}), ("override",)),
    "mode": (call("launch.mode", mode="halt"), ("launch.mode", {"mode": "normal"}), ("launch-mode",)),
    "flags": (call("gpu.flags", flags=["single_mem_op"]), ("gpu.flags", {"flags": []}), ("flags",)),
    "fault": (hold_fault, ("exception.subscribe", {"exceptions": []}), ("exceptions", "queues", "devices", "send")),
}
# EPERM and EINVAL also mean "gone already": that must be looked at, not believed.
FAULTS = {
    "EIO": "errno {} EIO",
    "EPERM": "errno {} EPERM",
    "EINVAL": "errno {} EINVAL",
    "always": "errno {} EIO " + str(EVER),
    "hangs": "block {}",
    "answer hangs": "block {} after",
}
RESUME_FAULTS = {
    "one of two devices": "partial resume 1",
    "no device": "partial resume 0",
    "no verdicts": "silent resume 1",
    # Queue 1 is on the second device, whose scheduler knows single queues; the first one has all or none.
    "one queue": "fail-resume {pid} 1",
    "one queue always": "fail-resume {pid} 1 " + str(EVER),
    "one device": "fail-resume gpu #0",
}


def faults_of(op):
    return FAULTS | (RESUME_FAULTS if op == "resume" else {})


# Triggers.  What they return is called again and again while the target is not free.


def close(s, rpc, session, target):
    rpc.close()
    s.clients.remove(rpc)


def detach(s, rpc, session, target):
    rpc.send("session.detach", session=session)


def leave_it(s, rpc, session, target):
    """The lease runs out."""
    time.sleep(LEASE_S)


def sigterm(s, rpc, session, target):
    s.agentd.popen.send_signal(signal.SIGTERM)


def by_name(change):
    """The writer stays and takes it back; what he is told is so, and asking again helps."""
    method, params = CHANGES[change][1]

    def ask(s, rpc, session, target):
        rpc.send(method, session=session, **params)

        def hear():
            for reply in drain(rpc):
                truth = target.truth()
                if "error" not in reply and change != "suspend" and truth:
                    raise Wrong(f"{method} succeeded, but {truth}")
                resumed = reply.get("result", {}).get("resumed", QUEUES)
                if "error" not in reply and resumed > QUEUES - len(truth.get("suspended", [])):
                    raise Wrong(f"{method} said {reply['result']}, but {truth}")
                over = reply.get("error", {}).get("data", {}).get("name") in ("session_ended", "no_such_session")
                if not over and ("error" in reply or resumed < QUEUES):
                    rpc.send(method, session=session, **params)

        return hear

    ask.__name__ = "by name"
    return ask


def another_fault_arrives(s, target, had, maybe_twice):
    """One is enough and none is too few, but who hung while sending may have sent it."""
    raise_queue(s, target)
    try:
        at_once(lambda: target.status.faults > had, "a fault after it arrives too")
    except AssertionError as error:
        raise Wrong(str(error)) from None
    if target.status.faults != had + 1 and not maybe_twice:
        raise Wrong(f"faults {target.status.faults}, wanted {had + 1}")


def run_undo(s, kind, change, op, fault, left, trigger, extra=None):
    """One row: whoever changed something goes, and the undo does not work the first time."""
    do, _, _ = CHANGES[change]
    target = s.target(kind, left == "rule")
    reader = session = None
    if left == "reader":
        reader = s.connect()
        session = s.patient_attach(reader, target)
    writer = s.connect()
    held = s.patient_attach(writer, target, control=True)
    want = target.status.faults + (change == "fault")
    if trigger is leave_it:
        do(s, writer, held, target, lease_ms=int(LEASE_S * 1000))
    else:
        do(s, writer, held, target)
    answers = Answers(s, target, reader)
    debugger = target.facts()["debugger"]
    s.control(faults_of(op)[fault].format(op, pid=target.pid))
    again = trigger(s, writer, held, target)

    def is_free():
        if again:
            again()
        if trigger is not sigterm:
            answers.check()
        return not target.truth() and target.status.faults >= want

    try:
        at_once(is_free, "free")
    except AssertionError as error:
        raise Wrong(f"{error}: {target.truth()} faults {target.status.faults} of {want}") from None
    # What is raised before this session is over may be latched, and the kernel forgets that with it.  One whose
    # operation works again in time goes on.
    if change == "fault" and fault == "always":
        at_once(lambda: target.facts()["debugger"] != debugger, "the session is over")
    s.control("release")
    if change == "fault":
        if fault == "hangs":
            at_once(lambda: target.facts()["debugger"] != debugger, "the session is over")
        another_fault_arrives(s, target, want, op == "send" and "hangs" in fault)
    before = target.packets()
    wait_until(lambda: target.packets() > before, "queues run on")
    if trigger is sigterm:
        s.agentd.popen.wait(PATIENCE)
        return
    at_once(answers.is_quiet, "the agent says so as well")
    # Who may ask for everything: the writer if he is still there.
    asker, session = (writer, held) if writer in s.clients and trigger is not detach else (reader, session)
    if not asker:
        return
    drain(asker)
    if [p for name, p in asker.notifications if name == "session.ended"]:
        return
    try:
        ask_everything(asker, session, target)
    except RpcError as error:
        if error.name not in ("session_ended", "no_such_session"):
            raise


# ---- the handshake of the runtime ------------------------------------------------------------------------------------


def run_handshake(s, kind, direction, op, fault, left, keep=False):
    """The program switches its runtime on or off, and the answer does not work the first time."""
    target = s.target(kind, left == "rule")
    rpc = s.connect()
    if left != "rule":
        s.patient_attach(rpc, target)
    if direction == "off":
        target.say("runtime on")
        wait_until(target.said, "the runtime is on")
    s.control(FAULTS[fault].format(op))
    target.say(f"runtime {direction}")
    if left == "nobody":
        wait_until(lambda: target.said() or s.state()["pending"], "the answer fails")
        rpc.close()
        s.clients.remove(rpc)

    try:
        at_once(lambda: target.said() and not target.truth(), "free")
    except AssertionError as error:
        raise Wrong(f"{error}: {target.truth()}") from None
    s.control("release")
    # How it was freed may matter to its next handshake; that has rows of its own.
    if not keep:
        s.drop(target)


def answered_again(s, target, direction):
    """A new session, in which nothing of the one before is left over."""
    s.clients.clear()
    if target.watched:
        wait_until(target.is_listened_to, "the rule watches again")
    else:
        s.patient_attach(s.rpc, target)
    facts = target.facts()
    # A rescuer that dies between giving the answer and noting that leaves one too many, which nobody waits for.
    if facts["handshake_surplus"] > 1 or (facts["runtime_retry"] and not facts["handshake_surplus"]):
        raise Wrong(f"interrupted: {facts['runtime_retry']}, answers in store: {facts['handshake_surplus']}")
    clean = not facts["runtime_retry"]
    for word in ("off", "on") if direction == "on" else ("on", "off"):
        target.say(f"runtime {word}")
        try:
            at_once(lambda: target.said() and not target.truth(), f"runtime {word}")
        except AssertionError as error:
            raise Wrong(f"{error}: {target.truth()}") from None
        if clean and not target.watched:
            told = s.rpc.notification("runtime.changed")["runtime"]["state"]
            assert told == ("enabled" if word == "on" else "disabled"), told
        clean = True
    facts = target.facts()
    assert not facts["runtime_retry"] and facts["handshake_surplus"] <= 1, facts


def run_handshake_again(s, kind, direction, op, left):
    """Who had to be freed without an answer gets the next one like everybody else."""
    run_handshake(s, kind, direction, op, "always", left, keep=True)
    answered_again(s, s.target(kind, left == "rule"), direction)


def die_waiting(s, agent, rpc, target):
    """An agent is killed altogether while the program waits for its answer."""
    os.kill(int(target.facts()["debugger"]), signal.SIGSTOP)
    target.say("runtime on")
    wait_until(lambda: "handshake" in target.truth(), "the program waits")
    kill_agent(agent.pid)
    rpc.close()
    assert "handshake" in target.truth(), "the kernel frees nobody who waits"


def wait_for_nobody(target, worker):
    """The program waits, and that worker does not hear of it."""
    os.kill(worker, signal.SIGSTOP)
    target.say("runtime on")
    wait_until(lambda: "handshake" in target.truth(), "the program waits")


def worker_dies(s, rpc, target):
    worker = int(target.facts()["debugger"])
    wait_for_nobody(target, worker)
    os.kill(worker, signal.SIGKILL)


def daemon_dies(s, rpc, target):
    """And its heir looks after what is left."""
    wait_for_nobody(target, int(target.facts()["debugger"]))
    os.kill(s.agentd.pid, signal.SIGKILL)
    rpc.close()


def everything_dies(s, rpc, target):
    die_waiting(s, s.agentd, rpc, target)
    s.clients.clear()
    s.start_agentd(user_mode=False)


def another_debugger_dies(s, rpc, target):
    """It is none of ours, and nothing is written down anywhere."""
    rpc.close()
    wait_until(lambda: status(target.pid)["TracerPid"] == "0", "the session is over")
    with Debugger(target.pid, s.mount / "kfd") as other:
        target.say("runtime on")
        wait_until(lambda: "handshake" in target.truth(), "the program waits")
        s.agentd.stop()
        other.kill()
        wait_until(lambda: not target.facts()["debugged"], "the session is over")
        assert "handshake" in target.truth(), "the kernel frees nobody who waits"
        s.clients.clear()
        s.start_agentd(user_mode=False)


def program_comes_late(s, rpc, target):
    """The worker has seen that nobody waits; before it ends the session, the program begins to."""
    s.control("block info after")
    rpc.close()
    wait_until(lambda: [c for c in s.state()["pending"] if c["wait"] == "block"], "the worker has looked")
    target.say("runtime on")
    wait_until(lambda: [c for c in s.state()["pending"] if c["wait"] == "turn"], "the program is on its way in")
    s.control("release")


def run_freed(s, kind, way):
    """However it is freed, the next session answers it."""
    target = s.target(kind, False)
    rpc = s.connect()
    s.patient_attach(rpc, target)
    way(s, rpc, target)
    wait_until(lambda: target.said() and not target.truth(), "free")
    if s.agentd.popen.poll() is not None:
        s.clients.clear()
        s.start_agentd(user_mode=False)
    answered_again(s, target, "on")
    s.drop(target)


def run_left_waiting(s, kind, left, by):
    """What is left waiting is freed by the next start of the agent, or by the next session of one that was there."""
    target = s.target(kind, left == "rule")
    if by == "next start":
        rpc = s.connect()
        if left != "rule":
            s.patient_attach(rpc, target)
        die_waiting(s, s.agentd, rpc, target)
        s.clients.clear()
        s.start_agentd(user_mode=False)
    else:
        mine = s.socket, s.agentd, s.rpc
        s.socket = s.directory / "other.sock"
        other = s.start_agentd(user_mode=False)
        rpc = Rpc(s.socket)
        s.patient_attach(rpc, target)
        die_waiting(s, other, rpc, target)
        s.socket, s.agentd, _ = mine
    if left != "rule":
        s.patient_attach(s.rpc, target)
    try:
        at_once(lambda: target.said() and not target.truth(), "free")
    except AssertionError as error:
        raise Wrong(f"{error}: {target.truth()}") from None
    s.drop(target)


# ---- faults on their way ---------------------------------------------------------------------------------------------


def raise_device(s, target):
    s.control(f"fault {target.pid} {target.facts()['devices'][0]['gpu_id']} 0x7f0000001000 not-present")


def run_forward(s, kind, source, op, fault, left, look_ms):
    """A fault passes through the agent, and an operation on its way does not work the first time."""
    target = s.target(kind, left == "rule")
    if left == "reader":
        session = s.patient_attach(s.rpc, target)
        s.rpc.call("exception.subscribe", session=session, exceptions=["wave_trap", "device_memory_violation"],
                   look_ms=look_ms)
    want = target.status.faults + 1
    s.control(FAULTS[fault].format(op))
    source(s, target)
    try:
        at_once(lambda: target.status.faults >= want and not target.truth(), "the program has its fault and is free")
    except AssertionError as error:
        raise Wrong(f"{error}: {target.truth()} faults {target.status.faults} of {want}") from None
    s.control("release")
    another_fault_arrives(s, target, want, op == "send" and "hangs" in fault)


def run_unsubscribe(s, kind, op, fault):
    """One of two readers leaves, and ending what only he listened to does not work the first time."""
    target = s.target(kind, False)
    stays, leaves = s.connect(), s.connect()
    for rpc, exceptions in ((stays, ["wave_abort"]), (leaves, ["wave_abort", "wave_trap"])):
        session = s.patient_attach(rpc, target)
        rpc.call("exception.subscribe", session=session, exceptions=exceptions, look_ms=0)
    had = target.status.faults
    s.control(FAULTS[fault].format(op))
    close(s, leaves, session, target)
    listed = s.connect()
    wait_until(lambda: [i["readers"] for i in listed.call("session.list")["sessions"] if i["pid"] == target.pid] != [2],
               "he has left")
    if fault == "hangs":
        # What is raised while the worker hangs is latched, and the kernel forgets that at its death.
        stays.notification("session.ended")
    else:
        # The worker has done with the subscription.  A fault that is raised in the middle of it may arrive twice (narrow()).
        stays.call("watchpoint.list", session=session)
    another_fault_arrives(s, target, had, False)
    s.control("release")
    if fault != "hangs":
        s.control(f"raise {target.pid} queue {target.facts()['queues'][0]['id']} {EXCEPTIONS['wave_abort']}")
        assert "wave_abort" in stays.notification("exception.raised")["exceptions"]


# ---- rows ------------------------------------------------------------------------------------------------------------


def settle(s, target):
    """Everything as before the row, or the target goes."""
    s.control("release")
    for client in s.clients:
        client.close()
    s.clients.clear()
    if s.agentd.popen.poll() is not None:
        s.start_agentd(user_mode=False)
    if target not in s.targets.values():
        return
    if target.watched:
        sessions = s.rpc.call("session.list")["sessions"]
        if not any(i["pid"] == target.pid and i["readers"] == 0 for i in sessions) or not target.is_listened_to():
            s.drop(target)
        s.clients.pop().close()
    else:
        wait_until(lambda: not target.facts()["debugged"], "the session is over")


def run_row(s, run, row):
    """What is wrong with it, in one line; None when nothing is."""
    try:
        run(s, *row)
        settle(s, s.targets.get((row[0], "rule" in row)))
    except (Wrong, AssertionError, RpcError, EOFError, OSError) as error:
        return f"{type(error).__name__} {error}".replace("\n", " ")
    return None


def sweep(rows, run, **kwargs):
    """Each row in a scene that is made anew after one that failed.

    SWEEP_ONLY="WORD WORD" picks those with these words; SWEEP_TIMES=1 prints each, SWEEP_LOG=1 what the programs said.
    """
    need_root()
    wrong, n = 0, 0
    only = os.environ.get("SWEEP_ONLY", "").split()
    with contextlib.ExitStack() as stack:
        s = None
        for i, row in enumerate(rows):
            row = (KINDS[i % len(KINDS)] if row[0] is ANY else row[0], *row[1:])
            name = ", ".join(getattr(cell, "__name__", str(cell)) for cell in row)
            if not all(word in name for word in only):
                continue
            s = s or stack.enter_context(Sweep(**kwargs))
            n += 1
            started = time.monotonic()
            problem = run_row(s, run, row)
            if problem or os.environ.get("SWEEP_TIMES"):
                print(f"  {name}: {problem or 'well'} ({time.monotonic() - started:.2f} s)", flush=True)
            if problem:
                wrong += 1
                if os.environ.get("SWEEP_LOG"):
                    s.__exit__(Wrong, None, None)
                stack.close()
                s = None
    assert not wrong, f"{wrong} of {n} rows"


def undo_rows(change, trigger, lefts=LEFT):
    """Whoever is left, where an operation fails once; else those whose session goes on take turns."""
    stays = itertools.cycle(("reader", "rule"))
    for op in CHANGES[change][2]:
        for fault in faults_of(op):
            # A fault that can never be sent can never arrive.
            if (op, fault) == ("send", "always"):
                continue
            turn = next(stays)
            for left in {"EIO": lefts, "hangs": ("nobody", turn)}.get(fault, (turn,)):
                yield ANY, change, op, fault, left, trigger


def test_queues_run_though_resuming_fails_once():
    sweep([*undo_rows("suspend", close), *undo_rows("suspend", detach)], run_undo)


def test_queues_run_though_resuming_fails_at_the_end_of_their_lease():
    sweep(undo_rows("suspend", leave_it, lefts=("reader",)), run_undo)


def test_settings_are_taken_back_though_that_fails_once():
    sweep([row for change in ("watch", "override", "mode", "flags") for row in undo_rows(change, close)], run_undo,
          gpus=ALIKE)


def test_held_faults_arrive_though_forwarding_fails_once():
    sweep(undo_rows("fault", close), run_undo)


def by_name_rows(*changes):
    """What never works is only told: it stays until the lease or the session ends."""
    return [(ANY, change, op, fault, "reader", by_name(change)) for change in changes
            for op in CHANGES[change][2] for fault in ("EIO", "hangs", *(RESUME_FAULTS if op == "resume" else ()))
            if "always" not in fault]


def test_who_resumes_by_name_is_told_the_truth():
    sweep(by_name_rows("suspend"), run_undo)


def test_who_takes_a_setting_back_by_name_is_told_the_truth():
    sweep(by_name_rows("watch", "override", "mode", "flags", "fault"), run_undo, gpus=ALIKE)


def test_nothing_is_left_when_the_agent_ends_though_undoing_fails_once():
    sweep([(ANY, change, op, fault, "nobody", sigterm) for change in CHANGES for op in CHANGES[change][2]
           for fault in ("EIO", "hangs")], run_undo, gpus=ALIKE)


def test_no_program_waits_for_an_answer_that_fails_once():
    """The three ways out, an answer, the end of the session and a signal, differ by kind of program."""
    sweep([*itertools.product(KINDS, ("on", "off"), ("send",), ("EIO", "always"), LEFT),
           *((ANY, *row) for row in itertools.product(("on", "off"), ("info", "query"), ("EIO",), LEFT)),
           *((ANY, *row) for row in itertools.product(("on", "off"), ("info", "query", "send"), ("hangs",),
                                                      ("nobody", "rule")))], run_handshake, script="threads 1")


def test_who_was_freed_without_an_answer_gets_the_next_one():
    """The kernel takes a RUNTIME_ENABLE that a signal stop ended, and that came back when nobody debugged any more, for
    a repeated one still at the next handshake, raises no event for that, and waits (runtime_enable() in
    kfd_chardev.c: is_runtime_retry)."""
    sweep(itertools.product(KINDS, ("on", "off"), ("send",), LEFT), run_handshake_again,
          script="threads 1")


def test_who_was_freed_gets_the_next_answer_however_that_was():
    sweep(itertools.product(KINDS, (worker_dies, daemon_dies, everything_dies, another_debugger_dies,
                                    program_comes_late)), run_freed, script="threads 1")


def test_who_was_left_waiting_is_freed_by_who_comes_next():
    sweep([(kind, *row) for kind in KINDS for row in (
        ("reader", "next start"), ("rule", "next start"), ("reader", "next session"))], run_left_waiting,
        script="threads 1")


def test_faults_arrive_though_the_end_of_a_subscription_fails_once():
    sweep([(ANY, *row) for row in itertools.product(("exceptions", "queues", "devices"), ("EIO", "hangs"))],
          run_unsubscribe)


def test_faults_arrive_though_an_operation_on_their_way_fails_once():
    faults = ("EIO", "hangs")
    # A worker that hangs in the query dies with a fault that nobody has read, and the kernel forgets that: no row.
    rows = [*itertools.product((raise_queue, raise_device), ("query",), ("EIO",), ("reader", "rule"), (0,)),
            *itertools.product((raise_queue,), ("send",), faults, ("reader", "rule"), (0,)),
            *itertools.product((raise_device,), ("info", "send"), faults, ("reader", "rule"), (0,)),
            # To see what the waves do queues are stopped for a moment.
            *itertools.product((raise_queue,), ("suspend", "resume", "queues", "devices"), faults, ("reader",), (20,))]
    sweep(((ANY, *row) for row in rows), run_forward)
