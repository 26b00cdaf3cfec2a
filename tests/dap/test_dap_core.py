#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu-agentctl dap on core files: what the process showed, and nothing that would need one."""
import os
import signal
import sys
import urllib.parse

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from dapclient import Adapter, scene
from harness import CudaScene, children, children_named, status, wait_until

NO_AGENT = "/nonexistent/socket"


def amd():
    return scene("waves 0 halted 8 scale+8; waves 1 memory 2 spin+16")


def cuda():
    return CudaScene(release="12.4", sim="devices 2 sms=3 warps=8")


def dump(s):
    core = s.directory / "core"
    run = s.ctl("dump", s.app.pid, "--max-stop", "60s", "-o", core)
    assert run.returncode == 0, run
    return core


def screen(a):
    """
    Everything that an editor would have on its screen; references differ from session to session. Cores have a mask
    of lanes in system calls, the debugger API of this driver has not.
    """
    shown = []
    for thread in a.call("threads")["threads"]:
        frames = a.call("stackTrace", threadId=thread["id"])["stackFrames"]
        scopes = a.call("scopes", frameId=frames[0]["id"])["scopes"]
        rows = [(s["name"], v["name"], v["value"]) for s in scopes for v in a.variables(s["variablesReference"])
                if v["name"] not in ("syscall_lanes", "samples")]
        shown += [thread["name"], *({k: v for k, v in f.items() if k != "id"} for f in frames), *rows]
    pc = a.frame()["instructionPointerReference"]
    lines = a.call("disassemble", memoryReference=pc, instructionOffset=-4, instructionCount=12)["instructions"]
    return [*shown, *lines, a.call("readMemory", memoryReference=pc, offset=-8, count=64)]


def ended(pid):
    return status(pid).get("State", "Z")[0] == "Z"


def as_the_process(s, faulting):
    """A core shows what the process did when it was made."""
    with Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        if faulting:
            a.event("stopped")
        a.pause()
        live = screen(a)
        a.finish()
    core = dump(s)
    s.app.popen.send_signal(signal.SIGKILL)
    s.app.popen.wait()
    with Adapter(NO_AGENT) as a:
        a.start(coreFile=str(core))
        stopped = a.event("stopped")
        assert stopped["threadId"] == 1 and stopped["allThreadsStopped"], stopped
        got = screen(a)
        assert len(got) == len(live) > 100 and all(was == now for was, now in zip(live, got)), \
            [(was, now) for was, now in zip(live, got) if was != now][:3]
        for command in ("pause", "continue"):
            assert "nothing runs" in a.error(command, threadId=1), command
        for word in ("resume", "watchpoint", "watchpoint clear"):
            assert "nothing runs" in a.error("evaluate", expression=word, context="repl"), word
        assert a.call("dataBreakpointInfo", name="0x7f0000001000", bytes=64)["dataId"] is None
        a.call("setExceptionBreakpoints", filters=["memory"])
        frame = a.frame()["id"]
        waves = a.call("gpuAgent/waves", threadId=1)
        assert waves["total"] == a.call("gpuAgent/groups")["groups"][0]["group"]["waves"], waves
        a.call("gpuAgent/focus", threadId=1, wave=waves["waves"][-1]["ref"])
        assert a.call("scopes", frameId=frame)["scopes"], "references stay true, nothing moves"
        for word in ("groups", "snapshot", "waves", "registers", "devices", "queues", "disassemble"):
            assert a.call("evaluate", expression=word, context="repl")["result"], word
        reader, = children(a.pid)[:1]
        assert a.finish() == 0
        wait_until(lambda: ended(reader), "what reads the core ends")
    return stopped


def test_why_says_that_a_core_is_one_sample():
    with amd() as s:
        core = dump(s)
        with Adapter(NO_AGENT) as a:
            a.start(coreFile=str(core))
            a.event("stopped")
            assert a.values("Why", 1)["samples"] == "one, as of every core: it does not tell for how long anything waits"
            a.finish()


def test_amd_core():
    with amd() as s:
        stopped = as_the_process(s, True)
        assert stopped["reason"] == "exception" and "memory_violation" in stopped["text"], stopped


def test_cuda_core():
    with cuda() as s:
        stopped = as_the_process(s, False)
        assert stopped["reason"] == "pause", stopped


def test_cuda_core_with_an_exception():
    with cuda() as s:
        session = s.attach()
        s.control("raise 0 1 2 14 errorpc=0x50")
        core = dump(s)
        s.rpc.call("session.detach", session=session)
        with Adapter(NO_AGENT) as a:
            a.start(coreFile=str(core))
            stopped = a.event("stopped")
            assert stopped["reason"] == "exception" and "CUDA_EXCEPTION_14" in stopped["text"], stopped
            assert "CUDA_EXCEPTION_14" in a.call("exceptionInfo", threadId=1)["exceptionId"]
            lines = a.call("disassemble", memoryReference=a.frame()["instructionPointerReference"], instructionOffset=-200,
                           instructionCount=400)["instructions"]
            assert len(lines) == 400 and lines[200]["instruction"].startswith(".quad"), lines[200]
            a.finish()


def test_a_core_that_has_lost_its_names():
    """They are at its end, the architecture among them."""
    with cuda() as s:
        core = dump(s)
        os.truncate(core, core.stat().st_size - 1)
        with Adapter(NO_AGENT) as a:
            a.start(coreFile=str(core))
            a.event("stopped")
            pc = a.frame()["instructionPointerReference"]
            assert "no known architecture" in a.error("disassemble", memoryReference=pc, instructionCount=4)
            assert a.call("readMemory", memoryReference=pc, count=16)["data"] and a.values("Wave")["pc"]
            a.finish()


def test_cores_may_be_named_by_uri():
    with amd() as s:
        core = dump(s).rename(s.directory / "a core#1")
        uri = "file://" + urllib.parse.quote(str(core))
        with Adapter(NO_AGENT) as a:
            a.call("initialize", adapterID="x", pathFormat="uri")
            for bad in ("file://elsewhere/core", "file:///core#1", "file:///core?", "file:///%2", "file:///%0g", "file:///a%00b",
                        "file://"):
                assert "not the URI" in a.error("attach", coreFile=bad), bad
            a.call("attach", coreFile=uri.replace("///", "//localhost/"))
            a.call("configurationDone")
            a.event("stopped")
            a.finish()
        for form, name in (("uri", str(core)), ("uri", uri), ("path", str(core))):
            with Adapter(NO_AGENT) as a:
                a.call("initialize", adapterID="x", pathFormat=form)
                a.call("attach", coreFile=name)
                a.call("configurationDone")
                a.event("stopped")
                a.finish()


def test_files_that_are_no_cores():
    with amd() as s:
        files = {"missing": None, "folder": None, "text": b"hello\n" * 100, "empty": b""}
        (s.directory / "folder").mkdir()
        for name, data in files.items():
            path = s.directory / name
            if data is not None:
                path.write_bytes(data)
            with Adapter(NO_AGENT) as a:
                a.call("initialize", adapterID="x")
                assert len(a.error("attach", coreFile=str(path))) > 20, name
                a.event("terminated")
                assert "over" in a.error("threads")
                assert a.finish() == 0, name


def test_reader_that_dies():
    with amd() as s:
        core = dump(s)
        with Adapter(NO_AGENT) as a:
            a.start(coreFile=str(core))
            a.event("stopped")
            reader = children_named(a.pid, "gpu-agent-worker")[0]
            os.kill(reader, signal.SIGKILL)
            said = a.wait(lambda m: m.get("event") == "output" and m["body"]["category"] == "important", "reason")
            assert "signal 9" in said["body"]["output"], said
            a.event("terminated")
            assert "over" in a.error("readMemory", memoryReference="0x1000", count=4)
            assert a.finish() == 0
