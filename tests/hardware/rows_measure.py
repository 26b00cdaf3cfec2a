# SPDX-License-Identifier: MIT
"""What nobody knows of the real driver, measured; and times beside cuda-gdb's."""
import json
import os
import re
import select
import statistics
import subprocess
import time

from harness import BIN, RpcError, wait_until

import rows_look
from agent import Agent
from engine import Skipped, end_group
from facts import find_nvcc

ROUNDS = 10
# What agentd/connect/broker.c logs.
UNLISTED = re.compile(r"not on its list: (\S+) \(\d+\) with (.*)")


def command(b, p, words):
    return [BIN / "gpu_check_measure", p.pid, *([f"libcuda={b.lab.libcuda}"] if b.lab.libcuda else []), *words]


class Measured:
    """The lines that gpu_check_measure printed."""

    def __init__(self, b, title, p, *words, seconds=60, codes=(0,)):
        done = b.engine.run(*command(b, p, words), seconds=seconds, codes=None, env=b.lab.environment)
        b.engine.trace(title, done.out)
        self.take(done.out)
        if codes is not None and done.code not in codes:
            raise AssertionError(f"exit {done.code}: {self.all('error') or done.err[-300:]}")

    def take(self, out):
        self.lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def all(self, key):
        return [line[key] for line in self.lines if key in line]

    def with_key(self, key):
        return [line for line in self.lines if key in line]

    def values(self, variable):
        return [line["value"] for line in self.with_key("variable") if line["variable"] == variable]

    def steps(self):
        return ", ".join(f"{line['ended']} {line['took_us']}" for line in self.with_key("ended"))


def short(names):
    """CUDBG_EVENT_CTX_CREATE x 3, ..."""
    out = []
    for name in (n.replace("CUDBG_EVENT_", "") for n in names):
        if out and out[-1][0] == name:
            out[-1][1] += 1
        else:
            out.append([name, 1])
    return ", ".join(f"{n} x {k}" if k > 1 else n for n, k in out)


def whole_session(b, p, path=None):
    """One session from end to end; everything that section 15 of the reference asks."""
    words = ([f"path={path}"] if path else []) + ["attach", "facts", "suspend", "state", "resume", "detach"]
    m = Measured(b, f"session path={path or 'auto'}", p, *words)
    e, mark = b.engine, f" ({path})" if path else ""
    assert m.all("outcome")[:2] == ["attached", "detached"], m.all("outcome")
    events = m.all("event")
    e.fact(f"events of a session{mark}", f"{len(events)}: {short(events)}")
    e.fact(f"cudbgResumeForAttachDetach, one value after the other{mark}", m.values("cudbgResumeForAttachDetach"))
    e.fact(f"cudbgIpcFlag{mark}", m.values("cudbgIpcFlag"))
    e.fact(f"cudbgDebuggerInitialized{mark}", m.values("cudbgDebuggerInitialized"))
    e.fact(f"cudbgReportedDriverInternalErrorCode{mark}", [hex(v) for v in m.values("cudbgReportedDriverInternalErrorCode")])
    e.fact(f"steps with their us{mark}", m.steps())
    slow = sorted(m.with_key("call"), key=lambda c: -c["took_us"])[:8]
    e.fact(f"slowest calls{mark}", ", ".join(f"{c['call']} {c['took_us']} us" for c in slow))
    e.fact(f"results other than success{mark}",
           sorted({f"{c['call']}: {c['result']}" for c in m.with_key("call") if c["result"] != "CUDBG_SUCCESS"}))
    e.fact(f"path taken{mark}", m.all("path")[0])
    for line in m.with_key("version") + m.with_key("layout") + m.with_key("attribute") + m.with_key("state"):
        e.fact(f"session{mark} {e_key(line)}", {k: v for k, v in line.items() if k != "us"})
    check = rows_look.check_runs(p)
    return f"{len(events)} events, attach {m.with_key('outcome')[0]['us'] / 1000:.1f} ms, GPU counts after {check * 1000:.0f} ms"


def e_key(line):
    return next(f"{k} {line[k]}" for k in ("version", "layout", "attribute", "state") if k in line)


def again(b, p):
    """A second session by another process, after the first."""
    first = Measured(b, "first of two", p, "attach", "detach")
    second = Measured(b, "second of two", p, "attach", "detach")
    assert first.all("outcome") == second.all("outcome") == ["attached", "detached"], (first.all("outcome"), second.all("outcome"))
    b.engine.fact("events of the second session", short(second.all("event")))
    rows_look.check_runs(p)
    return "attached twice"


def two_at_once(b, p):
    """A second debugger while the first is there: the error's text."""
    b.start_agent()
    rpc = b.agent.rpc()
    try:
        rpc.call("session.attach", pid=p.pid)
        m = Measured(b, "second debugger", p, "attach", "detach", codes=None)
        b.engine.fact("a second debugger hears", m.all("error"))
        assert "attached" not in m.all("outcome"), "it attached as well"
    finally:
        rpc.close()
    rows_look.check_runs(p)
    return (m.all("error") or ["no text"])[0][:120]


class Held(Measured):
    """A session that has done all that was asked and waits, until it is killed."""

    def __init__(self, b, title, p, *words, seconds=60):
        self.b, self.title = b, title
        self.popen = b.engine.start(command(b, p, [*words, "hold"]), b.lab.environment, stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.out, end = "", time.monotonic() + seconds
        try:
            while '"holding"' not in self.out and self._read(end - time.monotonic()):
                pass
        finally:
            self.take(self.out[:self.out.rfind("\n") + 1])
            if not self.all("holding"):
                self.kill()

    def _read(self, seconds):
        if seconds <= 0 or not select.select([self.popen.stdout], [], [], seconds)[0]:
            return False
        data = os.read(self.popen.stdout.fileno(), 1 << 16)
        self.out += data.decode(errors="replace")
        return bool(data)

    def kill(self):
        end_group(self.popen)
        self.b.engine.trace(self.title, self.out)


def left_suspended(b, p):
    """Does a GPU stay suspended when its debugger dies?  Nothing rescues it here, until we do."""
    undo = b.engine.directory / "undo"
    m = Held(b, "dies suspended", p, f"undo={undo}", "attach", "suspend")
    try:
        assert m.all("outcome") == ["attached"], m.all("error") or m.lines[-3:]
        assert m.all("holding"), f"it did not come to wait: {m.lines[-3:]}"
        refused = [line for line in m.with_key("failed") if line["failed"] == "suspend"]
        assert not refused, f"suspend failed: {refused}"
        # Whoever did not stop it cannot tell what becomes of one that was stopped.
        assert all(p.gpu_stands(0.1) for _ in range(5)), "the GPU does not stand still before the kill"
    finally:
        m.kill()
    stays = True
    for _ in range(30):
        if not p.gpu_stands(0.1):
            stays = False
            break
    b.engine.fact("GPU of a debugger killed while it was suspended", "stays suspended" if stays else "goes on by itself")
    r = Measured(b, "rescue", p, f"undo={undo}", "rescue", "variables", codes=None)
    b.engine.fact("rescue after that", r.with_key("rescue"))
    if stays:
        # Only a new session resumes it, and only by suspending it first.
        again = Measured(b, "repair", p, "left=1", "attach", "detach")
        assert again.all("outcome") == ["attached", "detached"], again.all("error") or again.lines[-3:]
    took = rows_look.check_runs(p)
    return f"{'stays suspended' if stays else 'goes on by itself'}; after the rescue it counts within {took * 1000:.0f} ms"


def cu_init_waits(b):
    """Launch path: does cuInit block until the debugger has initialised?"""
    p = b.lab.start("spin", stop_at="loaded")
    try:
        undo = b.engine.directory / "undo-launch"
        m = Measured(b, "launch flags alone", p, f"undo={undo}", "path=launch", "attach", "die", codes=None)
        assert "armed" in m.all("outcome"), m.all("outcome") + m.all("error")
        began = time.monotonic()
        p.go()
        waits = False
        try:
            p.wait_kernel(10)
        except AssertionError:
            waits = True
        took = time.monotonic() - began
    finally:
        p.stop()
    b.engine.fact("cuInit with the launch flags and no debugger", "blocks (10 s and more)" if waits else f"goes on, {took:.2f} s")
    return "blocks" if waits else f"kernel {took * 1000:.0f} ms after"


def system_calls(b, p):
    """Which system calls the vendor's library makes in our process: what the worker's filter has to let through."""
    path = b.engine.directory / "calls"
    m = Measured(b, "session whose system calls are told", p, f"calls={path}", "attach", "facts", "suspend", "state", "resume", "detach")
    if m.all("watching") != [True]:
        raise Skipped("system calls cannot be watched here")
    wait_until(lambda: path.exists() and '"end"' in path.read_text(), "the list of calls", 10)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    calls = {line["calls"]: line["times"] for line in lines if "calls" in line}
    b.engine.section("system calls of a session", " ".join(f"{name}:{n}" for name, n in sorted(calls.items())) + "\n" +
                     "\n".join(line["argument"] for line in lines if "argument" in line))
    rows_look.check_runs(p)
    assert {"ptrace", "openat"} <= set(calls), f"{sorted(calls)}: that is no session"
    assert m.all("outcome")[:2] == ["attached", "detached"], m.all("outcome")
    return f"{len(calls)} system calls, {sum(calls.values())} times; see the section of the log"


def whole_look(agent, p):
    """Attach, a snapshot, detach, by a daemon.  Why that failed; "": it did not."""
    rpc = agent.rpc()
    try:
        session = rpc.call("session.attach", pid=p.pid)["session"]
        rpc.call("gpu.snapshot", session=session)
        rpc.call("session.detach", session=session)
    except RpcError as error:
        return str(error)
    finally:
        rpc.close()
    return ""


def unlisted_calls(b, p):
    """One session of a daemon that makes and logs what its worker's filter would refuse to the vendor's library."""
    agent = Agent(b.engine, b.lab, ["--permissive"])
    try:
        failure = whole_look(agent, p)
    finally:
        agent.stop()
        b.engine.trace("log of the permissive daemon", agent.log())
    calls = UNLISTED.findall(agent.log())
    b.engine.fact("system calls that are not on the worker's list", "; ".join(f"{name} with {values}" for name, values in calls) or "none")
    if calls and not failure:
        failure = whole_look(b.start_agent(), p)
        if failure:
            b.be_permissive()
            failure = f"a session fails for it ({failure}): the rows below are of a daemon that is --permissive"
    assert not calls, f"not on the worker's list: {', '.join(dict(calls))}{'; ' * bool(failure)}{failure}"
    assert not failure, failure
    rows_look.check_runs(p)
    return "a session makes no others than those on the worker's list"


def first(b):
    """One whole session, before anything of ours but the library has a part in it; and with the sandbox, as a warning."""
    with_program(b, [("measure: a whole session", whole_session), ("measure: its system calls", system_calls),
                     ("system calls that are not listed", unlisted_calls)])


def with_program(b, rows):
    rows_look.rows_of_program(b, "spin", rows, seconds=45, needs=5)


def convergence(b, p):
    """Of a warp that has diverged, what the hardware says of its lanes: 3 masks, 16 barriers, 32 states; nothing is judged."""
    m = Measured(b, "convergence barriers", p, "attach", "suspend", "state", "resume", "detach")
    lines = m.with_key("convergence")
    rows_look.check_runs(p)
    if not lines:
        raise Skipped("this release does not tell them (12.9 and later), or no warp was seen to have diverged")
    for line in lines:
        b.engine.fact(f"convergence barriers of a warp of device {line['device']}", {k: v for k, v in line.items() if k != "us"})
    return f"of {len(lines)} GPU, {lines[0]['took_us']} us; see the facts"


def sequences(b):
    b.stop_agent()
    rows_look.rows_of_program(b, "diverge", [("measure: convergence barriers", convergence)], seconds=30, needs=5)
    with_program(b, [(f"measure: path {path}", lambda b, p, path=path: forced_path(b, p, path)) for path in ("call", "fd")] +
                 [("measure: a second session", again), ("measure: two debuggers", two_at_once),
                  ("measure: killed while suspended", left_suspended)])
    b.step("measure: cuInit without its debugger", "spin", cu_init_waits, b, seconds=45, needs=5)


def forced_path(b, p, path):
    if path == "fd":
        m = Measured(b, "variables", p, "variables", codes=None)
        if not m.values("cudbgInitiateDebuggerAttachProcedureFd"):
            raise Skipped("this driver has no descriptor to attach through (13.1 and later)")
    return whole_session(b, p, path)


# -- times ------------------------------------------------------------------------------------------


def rounds(b, p):
    """What a client has who names no budget."""
    b.need_session()
    times = {"attach": [], "snapshot": [], "detach": []}
    rpc = b.agent.rpc(30, is_hurried=True)
    try:
        for _ in range(ROUNDS):
            t0 = time.monotonic()
            session = rpc.call("session.attach", pid=p.pid)["session"]
            t1 = time.monotonic()
            doc = rpc.call("gpu.snapshot", session=session)
            t2 = time.monotonic()
            rpc.call("session.detach", session=session)
            assert doc["wave_count"] and (b.simulated or doc["complete"]), f"{doc['wave_count']} warps, {doc['missing']}"
            for name, t in zip(times, (t1 - t0, t2 - t1, time.monotonic() - t2)):
                times[name].append(t * 1000)
    finally:
        rpc.close()
    rows_look.check_runs(p)
    p50 = {name: statistics.median(t) for name, t in times.items()}
    b.engine.fact(f"p50 of {ROUNDS} rounds, ms", {k: round(v, 1) for k, v in p50.items()})
    return ", ".join(f"{k} {v:.1f} ms" for k, v in p50.items())


def of_the_runtime(b):
    """A program as people have them: compiled and linked by nvcc, its kernel loaded by the CUDA runtime."""
    b.need_session()
    if b.simulated:
        raise Skipped("the simulator has no CUDA runtime")
    nvcc = find_nvcc()
    refusal = b.lab.compile_programs(nvcc, ["spin"]) if nvcc else "no nvcc"
    if refusal:
        raise Skipped(refusal)
    b.start_agent()
    p = b.lab.start("spin", runtime=True)
    try:
        at = rows_look.check_snapshot(rows_look.snapshot(b, p, "--waves"), p)
        rows_look.check_runs(p)
    finally:
        p.stop()
    return f"{p.kind.warps} warps, {p.kind.source}:{sorted(at)}"


def times(b):
    rows_look.rows_of_program(b, "spin", [(f"times, p50 of {ROUNDS}", rounds)], attaches=True, seconds=60, needs=10)
    b.step("program of the CUDA runtime", "spin", of_the_runtime, b, seconds=60, needs=15)
