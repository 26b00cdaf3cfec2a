#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl dap on CUDA processes: warps as groups, exceptions, registers, instructions."""
import base64
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import Adapter, SocketSession
from harness import LONG_STOP, STOP_MS, CudaScene, wait_until

SMALL = "devices 2 sms=3 warps=8"


def scene(**kwargs):
    return CudaScene(release="12.4", sim=SMALL, **kwargs)


def function(s, name):
    """Where a function was loaded."""
    return next(f for m in s.state()["modules"] for f in m["functions"] if f["name"] == name)


def suspended(s):
    state = s.state()
    return [d["suspended"] for d in state["devices"]]


def runs_on(s):
    wait_until(lambda: s.worker_pids() == [], "worker leaves")
    assert not any(suspended(s)), s.state()
    assert s.app.popen.poll() is None


def test_warps_as_groups():
    with scene() as s, Adapter(s.socket) as a:
        s.control("warp 0 1 2 pc=0xc0")
        s.control("warp 0 2 0 pc=0x10 active=0xff")
        a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        threads = a.call("threads")["threads"]
        # One warp is there with the lanes that wait, and at line 19 with the others.
        assert len(threads) == 3 and threads[0]["name"].startswith("GPU 0: 23 x spin spin.cu:15"), threads
        inlined = next(t["id"] for t in threads if a.call("stackTrace", threadId=t["id"])["totalFrames"] == 2)
        frames = a.call("stackTrace", threadId=inlined)["stackFrames"]
        assert [f["name"] for f in frames] == ["weigh(float)", "spin(arg0=0x0, arg1=0x0)"], frames
        assert [f["source"]["origin"].rpartition(":")[2] for f in frames] == ["12", "20"], frames
        assert frames[0]["instructionPointerReference"] == frames[1]["instructionPointerReference"]
        assert not any(suspended(s))
        stopped = a.pause()
        assert stopped["reason"] == "pause" and stopped["allThreadsStopped"] and any(suspended(s)), stopped
        assert a.call("continue", threadId=1) == {"allThreadsContinued": True}
        assert not any(suspended(s))
        assert a.finish() == 0
        runs_on(s)


def test_callers_are_frames():
    with scene() as s, Adapter(s.socket) as a:
        s.control("warp 0 1 2 pc=0x10")
        s.control("stack 0 1 2 0xffffffff 0xd0 0x70000000")
        spin = function(s, "spin")["address"]
        spin = int(spin, 16) if isinstance(spin, str) else spin
        a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        stacks = [a.call("stackTrace", threadId=t["id"]) for t in a.call("threads")["threads"]]
        (stack,) = [t for t in stacks if t["totalFrames"] > 1]
        frames = stack["stackFrames"]
        assert [f["name"] for f in frames] == ["spin", "weigh(float)", "spin", hex(spin + 0x70000000)], frames
        assert [f["source"]["origin"].rpartition(":")[2] for f in frames[1:]] == ["12", "20", "disassembly"], frames
        assert [int(f["instructionPointerReference"], 16) for f in frames] == [spin + 0x10, *2 * [spin + 0xd0], spin + 0x70000000]
        thread = next(i + 1 for i, t in enumerate(stacks) if t is stack)
        part = a.call("stackTrace", threadId=thread, startFrame=2, levels=1)
        assert part == {"stackFrames": frames[2:3], "totalFrames": 4}, part
        assert a.call("scopes", frameId=frames[3]["id"])["scopes"]
        assert a.finish() == 0
        runs_on(s)


def test_exceptions_have_names():
    with scene() as s, Adapter(s.socket) as a:
        s.control("raise 0 1 2 14 errorpc=0x50")
        capabilities = a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        stopped = a.event("stopped")
        assert stopped["reason"] == "exception" and stopped["threadId"] == 1, stopped
        assert stopped["text"] == "CUDA_EXCEPTION_14: warp illegal address", stopped
        info = a.call("exceptionInfo", threadId=1)
        assert "CUDA_EXCEPTION_14" in info["exceptionId"] and "1 wave stopped at" in info["description"], info
        assert int(a.frame()["instructionPointerReference"], 16) == int(function(s, "spin")["address"], 16) + 0x50
        a.call("setExceptionBreakpoints", filters=[f["filter"] for f in capabilities["exceptionBreakpointFilters"]])
        s.control("raise 0 2 1 12")
        stopped = a.event("stopped")
        assert stopped["reason"] == "exception" and stopped["allThreadsStopped"], stopped
        names = [t["name"] for t in a.call("threads")["threads"]]
        assert any("warp assert" in n for n in names[:2]) and any("illegal address" in n for n in names[:2]), names
        a.finish()


def test_a_fault_that_stops_nothing_is_told():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        a.call("setExceptionBreakpoints", filters=[])
        s.control("raise 0 1 2 14 errorpc=0x50")
        a.wait(lambda m: m.get("event") == "output" and "Exception: " in m["body"]["output"], "the console says it")
        assert not a.has_event("stopped")
        assert a.finish() == 0
        runs_on(s)


def test_exceptions_of_warps_that_have_exited_stop_an_editor():
    """Live and from a core; a pause says so, too, as long as the device has it."""
    with CudaScene(release="12.9", sim=SMALL) as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        a.call("setExceptionBreakpoints", filters=["memory"])
        where = int(function(s, "spin")["address"], 16) + 0xc0
        s.control(f"raise-sm 0 1 14 errorpc={where:#x}")
        stopped = a.event("stopped")
        text = "CUDA_EXCEPTION_14: warp illegal address"
        assert (stopped["reason"], stopped["text"]) == ("exception", text), stopped
        info = a.call("exceptionInfo", threadId=1)
        whole = f"{text} on multiprocessor 1 of device 0, in waves that have exited, at spin.cu:12"
        assert (info["exceptionId"], info["description"]) == (text, whole), info
        a.wait(lambda m: m.get("event") == "output" and whole in m["body"]["output"], "the console says it")
        assert a.finish() == 0
        runs_on(s)
        run = s.ctl("dump", s.app.pid, "-o", s.directory / "core", LONG_STOP)
        assert run.returncode == 0, run
        with Adapter("/nonexistent/socket") as b:
            b.start(coreFile=str(s.directory / "core"))
            stopped = b.event("stopped")
            assert (stopped["reason"], stopped["text"]) == ("exception", text), stopped
            assert b.call("exceptionInfo", threadId=1)["description"] == whole
            assert b.finish() == 0


def test_registers_by_their_names():
    with scene() as s, Adapter(s.socket) as a:
        s.control("warp 0 1 2 pc=0xc0")
        s.control("register 0 1 2 7 40 0xcafe")
        s.control("uniform 0 1 2 3 0xbeef")
        s.control("predicate 0 1 2 7 1 1")
        s.control("memory shared 0 1 2 0x10 hex=a1a2a3a4")
        a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        a.pause()
        thread = next(t["id"] for t in a.call("threads")["threads"] if t["name"].startswith("GPU 0: 1 x"))
        assert int(a.values("Scalar registers", thread)["UR3"], 16) == 0xbeef
        chunks = a.variables(a.scope("Vector registers", thread))
        assert [c["name"] for c in chunks[:2]] == ["R0\u2013R31", "R32\u2013R63"], chunks
        assert chunks[-1]["name"] == "predicates"
        first = a.variables(chunks[0]["variablesReference"])
        assert [r["name"] for r in first] == [f"R{i}" for i in range(32)]
        second = a.variables(chunks[1]["variablesReference"])
        lanes = a.variables(second[8]["variablesReference"])
        assert len(lanes) == 32 and int(lanes[7]["value"], 16) == 0xcafe, lanes[7]
        masks = {p["name"]: int(p["value"], 16) for p in a.variables(chunks[-1]["variablesReference"])}
        assert masks["P1"] & 1 << 7, masks
        frame = a.frame(thread)["id"]
        for text, value in (("R40[7]", 0xcafe), ("UR3", 0xbeef), ("P1[7]", 1)):
            assert int(a.call("evaluate", expression=text, context="watch", frameId=frame)["result"], 16) == value, text
        assert "no register" in a.error("evaluate", expression="R300", context="watch", frameId=frame)
        assert len(a.variables(a.scope("Lanes", thread))) == 32
        assert a.values("Wave", thread)["wave"] == "0:1:2"


def test_instructions_are_words():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        pc, start = int(a.frame()["instructionPointerReference"], 16), int(function(s, "spin")["address"], 16)
        for offset, count in ((-200, 400), (0, 50), (-3, 7), (0, 0)):
            lines = a.call("disassemble", memoryReference=hex(pc), instructionOffset=offset, instructionCount=count,
                           resolveSymbols=True)["instructions"]
            assert len(lines) == count, (offset, count, len(lines))
            addresses = [int(line["address"], 16) for line in lines]
            assert addresses == [pc + 16 * (offset + i) for i in range(count)], (hex(pc), lines[:3])
        lines = a.call("disassemble", memoryReference=hex(start), instructionOffset=-1, instructionCount=2)["instructions"]
        assert lines[0]["presentationHint"] == "invalid" and lines[1]["symbol"] == "spin", lines
        assert lines[1]["instruction"].startswith(".quad 0x"), lines
        read = a.call("readMemory", memoryReference=hex(start), count=1 << 16)
        code = base64.b64decode(read["data"])
        assert bytes.fromhex(lines[1]["instructionBytes"]) == code[:16] and code in s.CUBIN.read_bytes()
        assert read["unreadableBytes"] == (1 << 16) - len(code)
        said = a.wait(lambda m: m.get("event") == "output" and "sm_90" in m["body"]["output"], "why words")
        assert "words" in said["body"]["output"]


def test_instructions_are_nvdisasms():
    """What it knows, beside words; an editor on the agent's own socket gets words, for the agent starts no programs."""
    with scene() as s:
        program = s.directory / "nvdisasm"
        program.write_text('#!/bin/sh\necho "/*${4#0x}*/ MOV R1, R2 ;"\n')
        program.chmod(0o755)
        start = function(s, "spin")["address"]
        for i, a in enumerate((Adapter(s.socket, env={"PATH": f"{s.directory}:{os.environ['PATH']}"}), SocketSession(s.socket))):
            with a:
                a.start(pid=s.app.pid, maxStopMs=STOP_MS)
                lines = a.call("disassemble", memoryReference=start, instructionCount=2)["instructions"]
                texts = [line["instruction"] for line in lines]
                assert (texts[0] == "MOV R1, R2") == (i == 0) and texts[1].startswith(".quad 0x"), (i, texts)
                said = [m["body"]["output"] for m in a.messages if m.get("event") == "output"]
                assert any("nvdisasm" in text for text in said) == (i == 1), said


def test_no_watch_points():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        info = a.call("dataBreakpointInfo", name="0x7f1000000000", bytes=64)
        assert info["dataId"] is None and "no watch points" in info["description"], info
        assert a.error("setDataBreakpoints", breakpoints=[{"dataId": "0x7f1000000000/64"}])
        assert a.call("setDataBreakpoints", breakpoints=[]) == {"breakpoints": []}


def threads_of(a):
    return {t["id"]: t["name"] for t in a.call("threads")["threads"]}


def apart():
    return CudaScene(release="12.4", sim="devices 1 sms=3 warps=8")


def plant_apart(s):
    """Eight warps at two lines of a kernel, and two at as many as 32 addresses; the others are whole."""
    for warp in range(8):
        s.control(f"warp 0 1 {warp} pc=0x10 idle=0xc0 active=0xff")
    for warp in range(2):
        s.control(f"warp 0 2 {warp} pc=0x10 apart=16")


def test_parts_of_warps_are_threads():
    """A group is one thread, with the lane that is there; any of its waves is found by its part."""
    with apart() as s, Adapter(s.socket) as a:
        plant_apart(s)
        base = int(function(s, "spin")["address"], 16)
        a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        a.pause()
        groups = {x["threadId"]: x["group"] for x in a.call("gpuAgent/groups")["groups"]}
        waiting = next(t for t, g in groups.items() if g.get("parts") == g["waves"] and g["waves"] >= 8)
        got = a.call("gpuAgent/lanes", threadId=waiting)
        assert got["lane"] == groups[waiting]["lane"] == next(x["lane"] for x in got["lanes"] if x["shown"]), got
        for thread, g in groups.items():
            frame = a.frame(thread)
            assert frame["instructionPointerReference"] == g["pc"], (frame, g)
            shown = a.values("Wave", thread)
            if "lane" in g:
                assert shown["lane"] == str(g["lane"]), (shown, g)
            waves = a.call("gpuAgent/waves", threadId=thread)
            assert waves["total"] == len(waves["waves"]) == g["waves"], (waves, g)
            for wave in waves["waves"]:
                a.call("gpuAgent/focus", threadId=thread, wave=wave["ref"])
                here = int(a.frame(thread)["instructionPointerReference"], 16)
                lane = a.call("gpuAgent/lanes", threadId=thread)
                at = next(int(x["pc"], 16) for x in lane["lanes"] if x["shown"])
                assert here == at and a.frame(thread)["line"] == frame["line"], (hex(here - base), hex(at - base), g)
        assert a.finish() == 0
        runs_on(s)


def test_a_kernel_counts_a_warp_once():
    """groupBy kernel: not once for each place where it has lanes, nor its lanes for each of these."""
    with apart() as s, Adapter(s.socket) as a:
        plant_apart(s)
        a.start(pid=s.app.pid, maxStopMs=STOP_MS, groupBy="kernel")
        for paused in (False, True):
            if paused:
                a.pause()
            names = threads_of(a)
            assert len(names) == 1 and names[1].startswith("24 x spin"), names
            statistics = a.values("Group statistics")
            assert statistics["waves"] == "24" and statistics["lanes active"].startswith("32 min") and \
                statistics["lanes active"].endswith("32 max"), statistics
            page = a.call("gpuAgent/waves", threadId=1, start=20, count=2)
            assert page["total"] == 24 and len(page["waves"]) == 2, page
            whole = a.call("gpuAgent/waves", threadId=1)
            assert whole["total"] == len(whole["waves"]) == 24
        assert a.finish() == 0
        runs_on(s)


def test_columns_of_lanes_and_the_part_of_a_thread():
    """Values of each lane on request; a thread that is a part of its waves stands for the lanes of that."""
    with apart() as s, Adapter(s.socket) as a:
        s.control("warp 0 1 2 pc=0x10 idle=0xc0 active=0xf0")
        for lane in range(32):
            s.control(f"register 0 1 2 {lane} 4 {lane % 3}")
        a.start(pid=s.app.pid, maxStopMs=STOP_MS)
        a.pause()
        groups = {x["threadId"]: x["group"] for x in a.call("gpuAgent/groups")["groups"]}
        of = {g["lanes_max"]: thread for thread, g in groups.items() if g.get("parts")}
        assert sorted(of) == [4, 28], groups
        for count, lanes in ((4, set(range(4, 8))), (28, set(range(32)) - set(range(4, 8)))):
            got = a.call("gpuAgent/lanes", threadId=of[count], columns=["$R4", "$R4 + threadIdx.x, x"])
            assert [c["expression"] for c in got["columns"]] == ["$R4", "$R4 + threadIdx.x, x"], got["columns"]
            for row in got["lanes"]:
                lane, active = row["lane"], 4 <= row["lane"] < 8
                assert (row["inPart"], row["part"]) == (lane in lanes, 0 if active else 1), row
                wanted = [str(lane % 3), hex(lane % 3 + row["workItem"][0])]
                assert row["values"] == (wanted if active else [f"<inactive> {w}" for w in wanted]), (row, wanted)
            texts = a.values("Lanes", of[count])
            assert {lane for lane in range(32) if "of this part" in texts[f"lane {lane}"]} == lanes, texts
            rows = a.variables(next(v["variablesReference"] for v in a.variables(a.scope("Wave", of[count]))
                                    if v["name"] == "variables of all lanes"))
            threads = a.variables(next(v["variablesReference"] for v in rows if v["name"] == "threadIdx"))
            assert {int(v["name"].split()[1]) for v in threads} == lanes, threads
        assert "values" not in a.call("gpuAgent/lanes", threadId=of[4])["lanes"][0]
        assert "position 2" in a.error("gpuAgent/lanes", threadId=of[4], columns=["1", "1 +"])
        assert "texts" in a.error("gpuAgent/lanes", threadId=of[4], columns=[7])
        assert "at most 16" in a.error("gpuAgent/lanes", threadId=of[4], columns=["1"] * 17)
        # This program has no variables: there are registers instead.
        got = a.call("gpuAgent/lanes", threadId=of[4], variables=True)
        assert [c["expression"] for c in got["columns"]] == ["$R0", "$R1", "$R2", "$R3"] and "more" not in got, got
        assert a.finish() == 0
        runs_on(s)
