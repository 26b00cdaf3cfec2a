#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl dap with a client that does what no editor does, and what all of them do."""
import base64
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
import urllib.parse

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import Adapter, Between, runs_on, scene
from editor import script, source
from harness import BIN, EXCEPTIONS, Scene, at_once, wait_until

# Sanitizer builds report leaks and unmap shadow memory at exit; the promise is about the product.  Less than the
# seven seconds after which front has a worker killed that does not leave.
SLACK_S = 5.0 if "asan" in str(BIN) else 0.0


def test_a_session():
    with scene() as s, Adapter(s.socket) as a:
        capabilities = a.start(pid=str(s.app.pid), unknownKey={"a": [1]})
        assert capabilities["supportsReadMemoryRequest"] and capabilities["supportsDisassembleRequest"]
        thread, = a.call("threads")["threads"]
        assert thread["id"] == 1 and "4 x" in thread["name"] and "spin.cl" in thread["name"], thread
        assert s.target_state()["suspended_queues"] == 0
        stopped = a.pause()
        assert stopped["reason"] == "pause" and stopped["threadId"] == 1 and stopped["allThreadsStopped"], stopped
        assert s.target_state()["suspended_queues"] == 2
        frames = a.call("stackTrace", threadId=1)
        frame, = frames["stackFrames"]
        assert frames["totalFrames"] == 1 and frame["name"] == "spin" and frame["line"], frame
        assert "path" not in frame["source"] and frame["source"]["origin"].startswith("/src/spin.cl:"), frame
        names = [x["name"] for x in a.call("scopes", frameId=frame["id"])["scopes"]]
        assert names == ["Wave", "Arguments", "Built-ins", "Scalar registers", "Vector registers", "Lanes", "LDS",
                         "Group statistics", "Why"], names
        pc = frame["instructionPointerReference"]
        assert int(a.values("Wave")["pc"], 16) == int(pc, 16)
        assert a.values("Group statistics")["waves"] == "4"
        assert a.call("continue", threadId=1) == {"allThreadsContinued": True}
        assert s.target_state()["suspended_queues"] == 0
        assert a.finish() == 0
        runs_on(s)


def test_registers_are_those_of_the_agent():
    with scene() as s, Adapter(s.socket) as a:
        a.start(processId=s.app.pid)
        a.pause()
        session = s.attach()
        regs = s.rpc.call("wave.registers", session=session, wave={"queue_id": 0, "unit": 0, "index": 0})["registers"]
        scalars = a.values("Scalar registers")
        for r in regs["scalar"]:
            assert int(scalars[r["name"]], 16) == int(r["value"], 16), r
        chunks = a.variables(a.scope("Vector registers"))
        assert chunks[0]["name"] == "v0\u2013v7", chunks
        rows = a.variables(chunks[0]["variablesReference"])
        assert [r["name"] for r in rows] == [r["name"] for r in regs["vector"]]
        lanes = a.variables(rows[5]["variablesReference"])
        assert [int(x["value"], 16) for x in lanes] == [int(v, 16) for v in regs["vector"][5]["lanes"]]
        part = a.variables(rows[5]["variablesReference"], start=60, count=10)
        assert part == lanes[60:], part
        assert [x["name"] for x in a.variables(a.scope("Lanes"), start=1, count=2)] == ["lane 1", "lane 2"]
        lds = a.variables(a.variables(a.scope("LDS"))[0]["variablesReference"])
        got = s.rpc.call("memory.read", session=session, space="lds", address="0x0", size=16,
                         wave={"queue_id": 0, "unit": 0, "index": 0})
        assert bytes.fromhex(lds[0]["value"]) == base64.b64decode(got["data"]), lds[0]
        value = a.call("evaluate", expression="v5[7]", context="watch")["result"]
        assert int(value, 16) == int(regs["vector"][5]["lanes"][7], 16)
        assert "v5000" in a.error("evaluate", expression="v5000", context="watch")


def test_memory_and_instructions():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        session = s.attach()
        pc = int(a.frame()["instructionPointerReference"], 16)
        want = base64.b64decode(s.rpc.call("memory.read", session=session, address=hex(pc - 16), size=64)["data"])
        got = a.call("readMemory", memoryReference=hex(pc), offset=-16, count=64)
        assert got["address"] == hex(pc - 16) and base64.b64decode(got["data"]) == want, got
        # The returned address is a reference as well.
        assert a.call("readMemory", memoryReference=got["address"], count=64)["data"] == got["data"]
        assert a.call("readMemory", memoryReference="0x10", count=8) == {"address": "0x10", "unreadableBytes": 8}
        assert a.call("readMemory", memoryReference=hex(pc), count=0) == {"address": hex(pc)}
        for bad in ({"memoryReference": "nonsense", "count": 1}, {"memoryReference": hex(pc)},
                    {"memoryReference": hex(pc), "count": -1}, {"count": 4}):
            assert a.error("readMemory", **bad), bad
        listing = {}
        for offset, count in ((-200, 400), (0, 50), (-3, 7), (5, 4), (-9, 3), (0, 0), (300, 20)):
            lines = a.call("disassemble", memoryReference=hex(pc), offset=0, instructionOffset=offset,
                           instructionCount=count, resolveSymbols=True)["instructions"]
            assert len(lines) == count, (offset, count, len(lines))
            for i, line in enumerate(lines):
                if "instructionBytes" in line:
                    assert listing.setdefault(offset + i, line["address"]) == line["address"], (offset, i, line)
        assert listing[0] == hex(pc), listing
        symbols = [x for x in a.call("disassemble", memoryReference=hex(pc), instructionOffset=-20,
                                     instructionCount=20)["instructions"] if x.get("symbol")]
        assert symbols and symbols[0]["symbol"] == "spin", symbols
        assert "instructionCount" in a.error("disassemble", memoryReference=hex(pc))


def test_each_listing_names_its_source():
    """Editors ask for what comes below with an offset, and know nothing of what lies between."""
    with Scene(app=None, gpus="gfx90a") as s:
        path = str(source(s.directory) / "spin.cl")
        s.app = s.start_app(script(s.directory))
        with Adapter(s.socket) as a:
            a.start(pid=s.app.pid)
            pc = a.frame()["instructionPointerReference"]
            for offset, count in ((0, 4), (5, 4), (9, 30), (-3, 7), (-200, 400)):
                lines = a.call("disassemble", memoryReference=pc, instructionOffset=offset, instructionCount=count)["instructions"]
                first = next(line for line in lines if "line" in line)
                assert first["location"]["path"] == path, (offset, lines)
            a.finish()


def test_paths_may_be_uris():
    with Scene(app=None, gpus="gfx90a") as s:
        directory = s.directory / "my code+\u00e9#"
        directory.mkdir()
        path = str(source(directory) / "spin.cl")
        shutil.copy(directory / "spin.co", s.directory)
        s.app = s.start_app(script(s.directory))
        for form in ("path", "uri"):
            want = path if form == "path" else "file://" + urllib.parse.quote(path)
            with Adapter(s.socket) as a:
                assert "pathFormat" in a.error("initialize", pathFormat="url") and "pathFormat" in a.error("initialize", pathFormat=1)
                a.call("initialize", adapterID="x", pathFormat=form)
                a.call("attach", pid=s.app.pid)
                a.event("initialized")
                a.call("configurationDone")
                frame = a.frame()
                assert frame["source"]["path"] == want and frame["source"]["name"] == "spin.cl", frame
                lines = a.call("disassemble", memoryReference=frame["instructionPointerReference"], instructionCount=8)
                assert [x["location"]["path"] for x in lines["instructions"] if "location" in x][:1] == [want], lines
                a.finish()


def test_references_are_out_of_date_for_long():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        old = a.frame()["id"]
        for _ in range(256):
            a.call("evaluate", expression="snapshot", context="repl")
        assert "out of date" in a.error("scopes", frameId=old)
        a.finish()


def test_references_outlive_one_look():
    """With `invalidated` in the mail, an editor asks once more for all that it shows, with what it has in its hands."""
    with scene("waves 0 halted 4 spin+16; waves 1 halted 2 scale+28") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        frame, wave, statistics = a.frame(2)["id"], a.scope("Wave", 2), a.scope("Group statistics", 2)
        chunk = a.variables(a.scope("Vector registers", 2))[0]["variablesReference"]
        values = lambda reference: {v["name"]: v["value"] for v in a.variables(reference)}  # noqa: E731
        shown = values(wave)
        assert shown["wave"] == "1:0:0" and values(statistics)["waves"] == "2", shown
        # The group that was the second one is the first.
        s.control(f"waves {s.app.pid} 1 halted 9 {shown['pc']}")
        a.call("evaluate", expression="snapshot", context="repl")
        a.event("invalidated")
        scopes = a.call("scopes", frameId=frame)["scopes"]
        assert values(scopes[0]["variablesReference"])["wave"] == "1:0:0"
        assert values(wave) == shown and values(statistics)["waves"] == "2"
        assert a.variables(a.variables(chunk)[0]["variablesReference"])
        for expression, context in (("pc", "watch"), ("v0", "hover")):
            assert a.call("evaluate", expression=expression, context=context, frameId=frame)["result"], expression
        assert "9 x" in a.call("threads")["threads"][0]["name"]
        a.call("evaluate", expression="snapshot", context="repl")
        assert "out of date" in a.error("scopes", frameId=frame) and "out of date" in a.error("variables", variablesReference=wave)
        a.finish()


def test_errors_are_shown_to_who_waits_for_an_answer():
    """Not what an editor asks for by itself, and not what its console shows."""
    with scene() as s, Adapter(s.socket) as a:
        def shown(command, **arguments):
            response = a.response(a.send(command, arguments))
            assert not response["success"] and response["message"], response
            return response["body"]["error"]["showUser"]

        a.start(pid=s.app.pid)
        for command in ("next", "stepIn", "stepOut", "stepBack", "reverseContinue", "setVariable", "writeMemory", "launch", "attach"):
            assert shown(command, threadId=1), command
        for context in ("watch", "hover", "repl", "variables"):
            assert not shown("evaluate", expression="nonsense", context=context), context
        for command in ("scopes", "variables", "source", "readMemory", "disassemble", "exceptionInfo", "gpuAgent/focus", "moduleSpell"):
            assert not shown(command, frameId=7), command
        assert not shown("stackTrace", threadId=99)
        # What comes in vain after the end says so, and bothers nobody.
        a.call("terminate")
        for command in ("pause", "threads", "setExceptionBreakpoints", "continue"):
            assert not shown(command, threadId=1, filters=[]), command
        a.finish()


def test_listings_at_both_ends_of_memory():
    """A wave may be at 0, where somebody called nothing: rows are in the order of their addresses."""
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        last = (1 << 64) - 1
        for at, offset, wanted in ((0, -2, [0, 0, 0, 4]), (6, -2, [0, 2, 6, 10]), (last - 3, 0, [last - 3, last, last, last]),
                                   (last, -1, [last - 4, last, last, last])):
            lines = a.call("disassemble", memoryReference=hex(at), instructionOffset=offset, instructionCount=4)["instructions"]
            assert [int(line["address"], 16) for line in lines] == wanted, (hex(at), lines)
        for at, offset in ((0, -1), (16, -32), (last, 0), (last - 8, 32)):
            read = a.call("readMemory", memoryReference=hex(at), offset=offset, count=16)
            assert read == {"address": hex((at + offset) & last), "unreadableBytes": 16}, read


def test_a_failure_to_read_is_no_lack_of_code():
    """Where there is no memory, rows say so; that memory could not be read for another reason is an error."""
    with scene() as s, Between(s) as between, Adapter(between.path) as a:
        a.start(pid=s.app.pid)
        pc = a.frame()["instructionPointerReference"]
        between.refused.add("memory.read")
        between.error = {"code": -32000, "data": {"name": "failed", "errno": "EIO"}}
        assert "memory.read refused" in a.error("disassemble", memoryReference=pc, instructionCount=4)
        assert "memory.read refused" in a.error("readMemory", memoryReference=pc, count=4)
        between.error["data"]["errno"] = "EFAULT"
        lines = a.call("disassemble", memoryReference=pc, instructionCount=4)["instructions"]
        assert [line["instruction"] for line in lines] == ["(no code)"] * 4, lines
        assert a.call("readMemory", memoryReference=pc, count=4)["unreadableBytes"] == 4
        a.finish()


def test_short_read_at_the_end_of_memory():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        with open(f"/proc/{s.app.pid}/maps", encoding="ascii") as f:
            maps = [(*(int(x, 16) for x in line.split()[0].split("-")), line.split()[1]) for line in f]
        starts = {m[0] for m in maps}
        end = next(m[1] for m in maps if m[1] not in starts and m[2].startswith("r") and m[1] < 1 << 47)
        got = a.call("readMemory", memoryReference=hex(end), offset=-16, count=64)
        assert len(base64.b64decode(got["data"])) == 16 and got["unreadableBytes"] == 48, got


def test_faults_come_first():
    with scene("waves 0 spin 8 scale+8; waves 1 memory 2 spin+16") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        stopped = a.event("stopped")
        assert stopped["reason"] == "exception" and stopped["threadId"] == 1 and not stopped["allThreadsStopped"], stopped
        assert s.target_state()["suspended_queues"] == 0, "looking at a fault stops nothing"
        threads = a.call("threads")["threads"]
        assert threads[0]["name"].startswith("2 x") and "memory_violation" in threads[0]["name"], threads
        info = a.call("exceptionInfo", threadId=1)
        assert "memory_violation" in info["exceptionId"] and info["breakMode"] == "always", info
        assert "no exception" in a.error("exceptionInfo", threadId=2)
        assert a.pause()["reason"] == "exception"


def test_exceptions_stop_when_asked_for():
    with scene() as s, Adapter(s.socket) as a:
        capabilities = a.start(pid=s.app.pid)
        filters = [f["filter"] for f in capabilities["exceptionBreakpointFilters"]]
        assert "no \"nonsense\"" in a.error("setExceptionBreakpoints", filters=["nonsense"])
        a.call("setExceptionBreakpoints", filters=filters)
        process, = [p for p in s.state()["processes"] if p["pid"] == s.app.pid]
        # Together they are all faults that there are, and the runtime, which the agent itself listens to.
        left_out = {"queue_new", "device_queue_delete", "device_new"}
        asked = {n for n, code in EXCEPTIONS.items() if int(process["enabled_mask"], 16) >> (code - 1) & 1}
        assert set(EXCEPTIONS) - asked == left_out, set(EXCEPTIONS) - asked
        s.raise_queue(0, "wave_memory_violation")
        stopped = a.event("stopped")
        assert stopped["reason"] == "exception", stopped
        assert s.target_state()["suspended_queues"] == 2
        a.call("setExceptionBreakpoints", filters=[])
        a.finish()
        runs_on(s)


def test_data_breakpoints():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        info = a.call("dataBreakpointInfo", name="0x7f0000001000", asAddress=True, bytes=64)
        assert "write" in info["accessTypes"], info
        # The protocol has addresses in decimal as well, where it says that it is one.
        assert a.call("dataBreakpointInfo", name=str(0x7f0000001000), asAddress=True, bytes=64)["dataId"] == info["dataId"]
        for name in ("gid", str(0x7f0000001000), "x" * 100):
            assert a.call("dataBreakpointInfo", name=name, bytes=64)["dataId"] is None, name
        got = a.call("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"},
                                                        {"dataId": "nonsense"}])["breakpoints"]
        assert [b["verified"] for b in got] == [True, False] and "dataId" in got[1]["message"], got
        assert s.target_state()["watchpoints"] == 1
        many = [{"dataId": a.call("dataBreakpointInfo", name=hex(0x7f0000002000 + 64 * i), bytes=64)["dataId"]}
                for i in range(5)]
        got = a.call("setDataBreakpoints", breakpoints=many)["breakpoints"]
        assert [b["verified"] for b in got] == [True] * 4 + [False], got
        assert s.target_state()["watchpoints"] == 4
        s.raise_queue(0, "wave_trap")
        a.event("stopped")
        assert a.call("setDataBreakpoints", breakpoints=[]) == {"breakpoints": []}
        assert s.target_state()["watchpoints"] == 0
        a.finish()
        runs_on(s)


def test_console_speaks_the_words_of_the_cli():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        say = lambda text: a.call("evaluate", expression=text, context="repl")["result"]  # noqa: E731
        for word in ("groups", "waves", "registers", "memory", "help"):
            assert word in say("help")
        assert "4 waves in 1 groups" in say("groups")
        assert "0:0:3" in say("waves") and "exec" in say("registers")
        pc = a.frame()["instructionPointerReference"]
        assert len(say(f"memory {pc} 32").splitlines()) == 2 and say("pc").lstrip("0x") in pc
        lines = say("disassemble").splitlines()
        assert f"=> 0x{int(pc, 16):012x}" in "\n".join(lines) and len(lines) > 16, lines
        assert len(say(f"disassemble {pc} 3").splitlines()) <= 11
        assert "gfx90a" in say("devices") and len(say("queues").splitlines()) == 2 and "runs" in say("queues")
        assert say("watchpoint") == "no watch points"
        assert "4096 bytes at 0x7f0000001000, nonread" in say("watchpoint set 0x7f0000001000 4096 nonread")
        assert s.target_state()["watchpoints"] == 1
        assert say("watchpoint clear") == say("watchpoint list")
        old = a.frame()["id"]
        s.control(f"waves {s.app.pid} 0 halted 6 {pc}")
        assert "6 waves in 1 groups" in say("snapshot")
        a.event("invalidated")
        # The frame that an editor has selected may be of before; words do not need it.
        assert "6 waves" in a.call("evaluate", expression="groups", context="repl", frameId=old)["result"]
        assert a.call("evaluate", expression="pc", context="watch", frameId=old)["result"]
        say("snapshot")
        assert "out of date" in a.error("evaluate", expression="pc", context="watch", frameId=old)
        say("pause")
        a.event("stopped")
        assert "suspended" in say("queues")
        say("resume")
        a.event("continued")
        assert s.target_state()["suspended_queues"] == 0
        for bad in ("", "nonsense", "memory", "memory zero", "v2[64]", "a b c d e f g", "x" * 500, "disassemble here",
                    "disassemble 0x10 4", "watchpoint move", "watchpoint set 1", "watchpoint set 0x1000 64 sometimes"):
            assert a.error("evaluate", expression=bad, context="repl"), bad


def test_requests_of_our_own():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        groups = a.call("gpuAgent/groups")
        assert groups["total"] == 1 and groups["paused"] and groups["groups"][0]["group"]["waves"] == 4, groups
        waves = a.call("gpuAgent/waves", threadId=1, start=1, count=2)
        assert waves["total"] == 4 and [w["ref"]["index"] for w in waves["waves"]] == [1, 2], waves
        a.call("gpuAgent/focus", threadId=1, wave=waves["waves"][1]["ref"])
        assert a.event("invalidated") == {"areas": ["all"]}
        assert a.values("Wave")["wave"] == "0:0:2"
        assert "no such wave" in a.error("gpuAgent/focus", threadId=1, wave={"queue_id": 0, "index": 99})


def test_order_and_arguments():
    with scene() as s, Adapter(s.socket) as a:
        for command in ("attach", "threads", "variables", "pause", "gpuAgent/groups", "configurationDone"):
            assert "send " in a.error(command), command
        a.call("initialize", adapterID="x")
        assert "before" in a.error("initialize")
        assert "attach first" in a.error("threads", x=1)
        for bad in ({}, {"pid": 0}, {"pid": "12x"}, {"pid": s.app.pid, "maxStopMs": "soon"},
                    {"pid": s.app.pid, "groupBy": "colour"}, {"pid": s.app.pid, "maxThreads": 513}, {"pid": [1]}):
            assert a.error("attach", **bad), bad
        assert "coreFile" in a.error("attach", coreFile=[1]) and "coreFile" in a.error("attach", coreFile="")
        assert "only one" in a.error("attach", coreFile="/tmp/core", pid=s.app.pid)
        assert "attach" in a.error("launch", program="x")
        assert "unknown request" in a.error("moduleSpell")
        a.call("attach", pid=s.app.pid)
        assert "before" in a.error("attach", pid=s.app.pid)
        a.call("configurationDone")
        for command in ("next", "stepIn", "stepOut", "stepBack", "reverseContinue", "goto"):
            assert "stepped" in a.error(command, threadId=1), command
        for command in ("writeMemory", "setVariable", "setExpression"):
            assert "written" in a.error(command), command
        assert "no thread" in a.error("stackTrace", threadId=99)
        for bad in (0, -1, 7, 1 << 40, "x", None):
            assert a.error("variables", variablesReference=bad), bad
            assert a.error("scopes", frameId=bad), bad
        assert a.call("setBreakpoints", source={"path": "/x"}, breakpoints=[{"line": 3}])["breakpoints"][0]["verified"] is False
        old = a.scope("Wave")
        a.pause()
        assert "out of date" in a.error("variables", variablesReference=old)
        a.call("terminate")
        a.event("terminated")
        runs_on(s)
        assert "over" in a.error("threads")
        assert a.finish() == 0


def test_attach_that_fails_says_why():
    with scene() as s, Adapter(s.socket) as a:
        a.call("initialize", adapterID="x")
        a.send("threads")
        answer = a.response(a.send("attach", {"pid": 4194304}))
        assert not answer["success"] and "4194304" in answer["message"] and answer["body"]["error"]["showUser"], answer
        a.event("terminated")
        # Once: nothing else says it, and nobody is asked to go on.
        assert a.finish() == 0
        assert not a.has_event("output") and not a.has_event("initialized"), a.messages
    with Adapter("/nonexistent/socket") as a:
        a.call("initialize", adapterID="x")
        assert "/nonexistent/socket" in a.error("attach", pid=1)
        a.event("terminated")
        assert a.finish() == 0


def test_leaving_at_odd_times():
    with scene() as s, Adapter(s.socket) as a:
        assert "initialize first" in a.error("terminate")
        a.start(pid=s.app.pid)
        a.call("terminate")
        a.event("terminated")
        a.call("terminate")
        assert a.finish() == 0 and a.read() is None and not a.has_event("terminated"), a.messages
        runs_on(s)


def test_null_is_nothing():
    """Editors in Lisp have one word for both."""
    with scene() as s, Adapter(s.socket) as a:
        a.call("initialize", adapterID="x", linesStartAt1=None, columnsStartAt1=None, supportsProgressReporting=None)
        a.call("attach", pid=None, processId=s.app.pid, coreFile=None, groupBy=None, maxStopMs=None, maxThreads=None)
        a.call("configurationDone")
        assert a.response(a.send("threads", None))["success"]
        a.conversation.is_deaf = True  # the protocol wants a thread
        frame = a.frame(None)
        assert frame["source"]["origin"].endswith(":37"), frame
        pc = frame["instructionPointerReference"]
        assert len(a.call("readMemory", memoryReference=pc, offset=None, count=3)["data"]) == 4
        lines = a.call("disassemble", memoryReference=pc, offset=None, instructionOffset=None, instructionCount=3)["instructions"]
        assert [line["address"] for line in lines][0] == pc and len(lines) == 3, lines
        assert int(a.call("evaluate", expression="pc", context="watch", frameId=None)["result"], 16) == int(pc, 16)
        assert a.variables(a.scope("Wave"), start=None, count=None, filter=None)
        assert a.call("dataBreakpointInfo", name="0x7f0000001000", bytes=None)["dataId"]
        a.call("cancel", requestId=None, progressId=None)
        assert "a number" in a.error("variables", variablesReference=None)
        a.finish()
        runs_on(s)


def test_broken_messages():
    for data, answered in ((b"Content-Length: 20\r\n\r\n{\"seq\":1", False), (b"Content-Length: x\r\n\r\n", False),
                           (b"\0" * 100, False), (b"Content-Length: 4\r\n\r\n[1]\n", True),
                           (b"Content-Length: 27\r\n\r\n{\"seq\":1,\"type\":\"request\"}\n", True),
                           (b"Content-Length: 2000000\r\n\r\n" + b" " * 2000000, True)):
        with Adapter("/nonexistent/socket") as a:
            a.conversation.is_deaf = True
            a.write(data)
            if answered:
                message = a.read()
                # What has no number cannot be answered.
                assert message["type"] == "response" and not message["success"] if b"seq" in data else \
                    message["event"] == "output" and message["body"]["category"] == "important", message
                a.call("initialize", adapterID="still there")
            a.popen.stdin.close()
            status = a.popen.wait(20)
            assert status == (0 if answered else 2), (data[:40], status, a.popen.stderr.read())


def slow_agent(path, delay_s):
    """An agent that answers nothing for a while, then closes."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)

    def serve():
        connection, _ = listener.accept()
        connection.settimeout(delay_s)
        try:
            while connection.recv(4096):
                pass
        except OSError:
            pass
        connection.close()
        listener.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_answers_while_the_agent_does_not():
    """attach is answered before an editor gives up; other requests wait, can be cancelled, and leaving works."""
    with Scene(app=None, start_agent=False) as s:
        thread = slow_agent(s.socket, 60)
        with Adapter(s.socket) as a:
            started = time.monotonic()
            a.start(pid=1)
            waiting = a.send("threads")
            other = a.send("evaluate", {"expression": "pc"})
            assert "stepped" in a.error("next", threadId=1)
            a.call("cancel", requestId=waiting)
            response = a.response(waiting)
            assert not response["success"] and response["message"] == "cancelled", response
            assert a.event("progressStart")["cancellable"]
            a.call("disconnect")
            assert a.response(other)["message"] == "cancelled"
            assert time.monotonic() - started < 15
        thread.join(20)
    with Scene(app=None, start_agent=False) as s:
        slow_agent(s.socket, 60)
        with Adapter(s.socket) as a:
            a.start(pid=1)
            a.call("cancel", progressId=a.event("progressStart")["progressId"])
            said = a.wait(lambda m: m.get("event") == "output" and m["body"]["category"] == "important", "reason")
            assert "attach" in said["body"]["output"], "it was answered before"
            a.event("terminated")
            a.finish()
    for leave in ("cancel", "disconnect"):
        with Scene(app=None, start_agent=False) as s:
            slow_agent(s.socket, 60)
            with Adapter(s.socket) as a:
                a.call("initialize", adapterID="x")
                attach = a.send("attach", {"pid": 1})
                a.call(leave, **({"requestId": attach} if leave == "cancel" else {}))
                assert a.response(attach)["message"] == "cancelled"


def test_an_editor_knows_what_runs_when_a_call_fails():
    with scene() as s, Between(s) as between, Adapter(between.path) as a:
        a.start(pid=s.app.pid)
        a.pause()
        # Stopped again, for whatever reason, but nothing can be shown: the queues run.
        between.refused = {"gpu.snapshot"}
        a.call("pause", threadId=1)
        a.event("continued")
        assert s.target_state()["suspended_queues"] == 0
        between.refused = set()
        a.pause()
        # What cannot be resumed stays stopped in the editor, until the lease has run out.
        between.refused = {"gpu.resume"}
        assert "refused" in a.error("continue", threadId=1)
        between.refused = set()
        a.event("continued")
        assert s.target_state()["suspended_queues"] == 0
        a.pause()
        between.refused = {"gpu.resume"}
        assert "refused" in a.error("continue", threadId=1)
        between.refused = set()
        a.call("continue", threadId=1)
        assert s.target_state()["suspended_queues"] == 0
        between.refused = {"exception.subscribe"}
        assert "refused" in a.error("setDataBreakpoints", breakpoints=[{"dataId": "0x7f0000001000/64"}])
        assert s.target_state()["watchpoints"] == 0
        assert a.finish() == 0
        runs_on(s)


def test_killed_adapter_releases_the_process():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        assert s.target_state()["suspended_queues"] == 2
        a.popen.send_signal(signal.SIGKILL)
        at_once(lambda: not s.target_state()["enabled"], "released", slack=SLACK_S)
        runs_on(s)


def test_pause_lasts_and_ends():
    """Longer than one lease; with a budget, no longer than that."""
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        time.sleep(6)
        assert s.target_state()["suspended_queues"] == 2
        a.finish()
        runs_on(s)
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid, maxStopMs=300)
        a.pause()
        a.event("continued")
        assert s.target_state()["suspended_queues"] == 0


def react(a):
    """What an editor asks for by itself when something has stopped."""
    a.call("threads")
    frame = a.frame()
    for scope in a.call("scopes", frameId=frame["id"])["scopes"][:1]:
        a.variables(scope["variablesReference"])


def test_an_abandoned_editor_lets_the_gpu_run():
    """Its process lives, reads and reacts; nobody asks for anything."""
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid, stopIdleMs=3000)
        for _ in range(2):
            a.pause()
            react(a)
            time.sleep(1)
            reacted = time.monotonic()
            react(a)
            assert s.target_state()["suspended_queues"] == 2
            a.event("continued")
            # Had this been a sign of somebody, the time would count from it (tests/unit/dap/test_dap_alive.c).
            assert time.monotonic() < reacted + 3
            assert s.target_state()["suspended_queues"] == 0
            said = a.wait(lambda m: m.get("event") == "output" and "stopIdleMs" in m["body"]["output"], "a console line")
            assert "no control" in said["body"]["output"], said
            # Control is free, and comes back with the next pause.
            other = s.connect()
            session = s.attach(rpc=other, control=True)
            other.call("session.detach", session=session)
        a.finish()
        runs_on(s)


def test_who_uses_the_editor_keeps_it_paused():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid, stopIdleMs=2500)
        a.pause()
        react(a)
        begun = time.monotonic()
        while time.monotonic() < begun + 6:
            time.sleep(1)
            # As long after the event as this only a click asks for it.
            a.call("evaluate", expression="help", context="repl") if time.monotonic() < begun + 2.5 else react(a)
            assert s.target_state()["suspended_queues"] == 2
        assert not a.has_event("continued")
        a.event("continued")
        a.finish()


def test_without_a_limit_it_waits_for_the_editor():
    with scene() as s, Adapter(s.socket) as a:
        a.call("initialize", adapterID="gpu-agent")
        for wrong in (-1, 600001, "soon"):
            assert "stopIdleMs: must be" in a.error("attach", pid=s.app.pid, stopIdleMs=wrong)
        a.call("attach", pid=s.app.pid, stopIdleMs=0)
        a.event("initialized")
        a.call("configurationDone")
        a.event("thread")
        a.pause()
        time.sleep(3)
        assert s.target_state()["suspended_queues"] == 2 and not a.has_event("continued")
        a.finish()


def test_a_client_that_never_reads_stops_nothing():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        body = json.dumps({"seq": 9, "type": "request", "command": "evaluate",
                           "arguments": {"expression": "registers", "context": "repl"}}).encode()
        os.set_blocking(a.popen.stdin.fileno(), False)
        for _ in range(100):
            try:
                a.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            except BlockingIOError:
                break
        wait_until(lambda: not s.target_state()["suspended_queues"], "queues run again")


def test_requests_sent_together():
    """An editor that waits for nothing: what needs the session waits for it."""
    with scene() as s, Adapter(s.socket) as a:
        sent = [a.send("initialize", {"adapterID": "x"}), a.send("attach", {"pid": s.app.pid}), a.send("threads"),
                a.send("setExceptionBreakpoints", {"filters": ["memory"]}), a.send("configurationDone"),
                a.send("stackTrace", {"threadId": 1})]
        answers = [a.response(seq) for seq in sent]
        assert all(r["success"] for r in answers), answers
        assert len(answers[2]["body"]["threads"]) == 1 and answers[5]["body"]["totalFrames"] == 1, answers
        assert not a.has_event("progressStart") and not a.has_event("invalidated"), "not asked for"
        a.finish()
        runs_on(s)


def test_requests_behind_disconnect():
    """They find no session any more; the adapter answers them and ends."""
    words = ("pc", "groups", "waves", "pause", "registers", "disassemble", "watchpoint", "snapshot")
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        pc = a.frame()["instructionPointerReference"]
        requests = [("pause", {"threadId": 1}), ("continue", {"threadId": 1}), ("setExceptionBreakpoints", {"filters": ["memory"]}),
                    ("readMemory", {"memoryReference": pc, "count": 4}), ("setDataBreakpoints", {"breakpoints": []}),
                    ("disassemble", {"memoryReference": pc, "instructionCount": 4}), ("gpuAgent/waves", {}),
                    *(("evaluate", {"expression": word, "context": "repl"}) for word in words)]
        messages = [{"seq": i, "type": "request", "command": c, "arguments": x}
                    for i, (c, x) in enumerate([("disconnect", {}), *requests], 100)]
        a.conversation.is_deaf = True
        a.write(b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(m), m) for m in (json.dumps(m).encode() for m in messages)))
        assert a.response(100)["success"]
        for message in messages[1:]:
            answer = a.response(message["seq"])
            assert not answer["success"] and "over" in answer["message"], answer
        a.popen.stdin.close()
        assert a.popen.wait(20) == 0
        runs_on(s)


def test_a_process_without_waves():
    """There is a thread all the same, or editors offer no pause."""
    with Scene(app="runtime ttmp; queues 1; spin", gpus="gfx90a") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        assert a.event("progressUpdate")["message"]
        thread, = a.call("threads")["threads"]
        assert thread["id"] == 1 and "no waves" in thread["name"], thread
        assert a.call("stackTrace", threadId=1) == {"stackFrames": [], "totalFrames": 0}
        assert a.pause()["threadId"] == 1
        assert "no wave" in a.error("evaluate", expression="pc")
        assert "no thread" in a.error("exceptionInfo", threadId=1)
        s.control(f"waves {s.app.pid} 0 halted 6 0x7f0000001000")
        a.call("continue", threadId=1)
        a.pause()
        assert "6 x" in a.call("threads")["threads"][0]["name"]


def test_one_thread_for_a_kernel():
    """groupBy: its waves are at several lines; the frames are those of the wave that is looked at."""
    with scene("waves 0 halted 4 scale+28; waves 1 halted 2 scale+80") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        assert len(a.call("threads")["threads"]) == 2
        lines = {a.frame(1)["line"], a.frame(2)["line"]}
        assert len(lines) == 2, lines
        a.finish()
        with Adapter(s.socket) as b:
            b.start(pid=s.app.pid, groupBy="kernel")
            b.pause()
            thread, = b.call("threads")["threads"]
            assert thread["name"].startswith("6 x scale"), thread
            first = b.frame()["line"]
            waves = b.call("gpuAgent/waves", threadId=1)["waves"]
            assert len(waves) == 6
            for wave in waves:
                b.call("gpuAgent/focus", threadId=1, wave=wave["ref"])
                assert b.frame()["instructionPointerReference"] == wave["pc"], wave
            b.call("gpuAgent/focus", threadId=1, wave=waves[0]["ref"])
            seen = {b.frame()["line"]}
            b.call("gpuAgent/focus", threadId=1, wave=waves[5]["ref"])
            seen.add(b.frame()["line"])
            assert first in seen and seen == lines, (first, seen, lines)


def test_groups_name_their_gpu():
    """Where there are several, the same kernel on each of them gives rows that differ."""
    with Scene(app="runtime ttmp; queues 8; spin", gpus=",".join(["gfx942"] * 8)) as s, Adapter(s.socket) as a:
        gpus = [g["gpu_id"] for g in s.state()["gpus"]]
        for queue in s.target_state()["queues"]:
            s.control(f"waves {s.app.pid} {queue['id']} halted 4 0x7f0000001000")
        a.start(pid=s.app.pid)
        names = [t["name"] for t in a.call("threads")["threads"]]
        assert sorted(n.split(":")[0] for n in names) == [f"GPU {i}" for i in range(8)], names
        assert all(": 4 x" in n for n in names), names
        devices = a.call("evaluate", expression="devices", context="repl")["result"].splitlines()
        assert [(line.split()[1], int(line.split()[2])) for line in devices] == [(str(i), g) for i, g in enumerate(gpus)], devices
        for group in a.call("gpuAgent/groups")["groups"]:
            index = gpus.index(group["group"]["gpu_id"])
            assert group["name"].startswith(f"GPU {index}: "), group
            assert a.values("Group statistics", group["threadId"])["device"].startswith(f"GPU {index} ")
        a.finish()
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        assert a.call("threads")["threads"][0]["name"].startswith("4 x"), "one GPU needs no name"
        a.finish()


def test_it_stops_on_attach_where_asked_to():
    for waves, reason in (("waves 0 halted 4 spin+16", "pause"), ("waves 0 memory 4 spin+16", "exception")):
        with scene(waves) as s, Adapter(s.socket) as a:
            a.call("initialize", adapterID="x")
            assert "stopOnAttach" in a.error("attach", pid=s.app.pid, stopOnAttach="yes")
            a.call("attach", pid=s.app.pid, stopOnAttach=True)
            a.event("initialized")
            assert s.target_state()["suspended_queues"] == 0, "not before the editor has told what it wants"
            a.call("configurationDone")
            stopped = a.event("stopped")
            assert stopped["reason"] == reason and stopped["allThreadsStopped"], stopped
            assert s.target_state()["suspended_queues"] == 2 and not a.has_event("stopped")
            a.call("continue", threadId=1)
            assert s.target_state()["suspended_queues"] == 0
            a.finish()
    with scene() as s, Adapter(s.socket) as a:
        s.attach(control=True)
        a.start(pid=s.app.pid, stopOnAttach=True)
        a.wait(lambda m: m.get("event") == "output" and "stopOnAttach: this session may only look" in m["body"]["output"], "why not")
        a.finish()


def test_at_a_fault_the_queues_can_be_paused():
    """The first stop shows waves that stand still while the queues run: pause is for these."""
    with scene("waves 0 spin 8 scale+8; waves 1 memory 2 spin+16") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        assert not a.event("stopped")["allThreadsStopped"]
        a.call("pause", threadId=1)
        assert a.event("stopped")["allThreadsStopped"] and s.target_state()["suspended_queues"] == 2
        a.finish()


def test_watch_points_name_their_waves():
    with scene("waves 0 spin 8 scale+8; waves 1 watch 2 spin+16") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        info = a.call("dataBreakpointInfo", name="0x7f0000001000", bytes=64)
        a.call("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"}])
        s.raise_queue(1, "wave_trap")
        stopped = a.event("stopped")
        assert stopped["reason"] == "data breakpoint" and "watchpoint" in stopped["text"], stopped
        assert "watchpoint" in a.call("threads")["threads"][stopped["threadId"] - 1]["name"]
        a.finish()
        runs_on(s)


def test_a_hundred_thousand_waves():
    """As many threads as asked for, at once, whatever the GPUs hold."""
    gpus = 11
    with Scene(app=f"runtime ttmp; queues {gpus}; spin", gpus=",".join(["gfx942"] * gpus)) as s, Adapter(s.socket) as a:
        for k, queue in enumerate(s.target_state()["queues"]):
            script = s.directory / f"waves{k}"
            script.write_text("".join(f"halted n=64 group=4 vgprs=8 pc={0x7F0000001000 + 4 * (i + k * 150):#x}\n"
                                      for i in range(150)))
            s.control(f"waves {s.app.pid} {queue['id']} script {script}")
        a.start(pid=s.app.pid, maxThreads=512, maxStopMs=60000)
        a.response(a.send("threads"))
        assert a.call("gpuAgent/groups")["waves"] == gpus * 150 * 64 >= 100000
        took = []
        for _ in range(5):
            started = time.monotonic()
            threads = a.call("threads")["threads"]
            took.append(time.monotonic() - started)
        print(f"  {len(threads)} threads for {gpus * 150 * 64} waves: {min(took) * 1000:.1f} to {max(took) * 1000:.1f} ms")
        assert len(threads) == 512 and threads[511]["name"] == f"{gpus * 150 - 511} more groups", threads[511]
        assert min(took) < 0.05
        a.finish()


def test_many_groups():
    """One thread each, the rest in one line; 512 at most, with that."""
    places = "".join(f"halted n=1 group=1 pc={0x7F0000001000 + 4 * i:#x}\n" for i in range(700))
    for wanted, shown in ((None, 64), (3, 3), (511, 511), (512, 511)):
        with Scene(app="runtime ttmp; queues 1; spin", gpus="gfx90a") as s, Adapter(s.socket) as a:
            script = s.directory / "waves"
            script.write_text(places)
            s.control(f"waves {s.app.pid} {s.target_state()['queues'][0]['id']} script {script}")
            a.start(pid=s.app.pid, **({"maxThreads": wanted} if wanted else {}))
            threads = a.call("threads")["threads"]
            assert len(threads) == shown + 1 and threads[-1]["name"] == f"{700 - shown} more groups", threads[-1]
            assert "maxThreads" in a.error("stackTrace", threadId=shown + 1)
            a.call("stackTrace", threadId=shown)
            a.finish()


def test_process_that_dies():
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        s.app.popen.send_signal(signal.SIGKILL)
        s.app.popen.wait()
        a.event("terminated")
        assert "over" in a.error("threads")
        assert a.finish() == 0


def test_words_are_offered():
    with scene() as s, Adapter(s.socket) as a:
        assert a.start(pid=s.app.pid)["supportsCompletionsRequest"]

        def offered(text, column):
            return [(t["label"], t["start"], t["length"]) for t in a.call("completions", text=text, column=column)["targets"]]

        assert offered("wa", 3) == [("waves", 0, 2), ("watchpoint", 0, 2)]
        assert offered("wave", 2)[0] == ("waves", 0, 1), "up to the cursor"
        assert ("help", 0, 0) in offered("", 1) and offered("memory 0", 9) == [] and offered("zz", 3) == []
        assert a.error("completions", text="w", column=0).startswith("column: ")
        a.finish()
