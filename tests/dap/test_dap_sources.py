#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sources that are not where the compiler saw them."""
import contextlib
import os
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import npm
import pytest
from dapclient import DATA, Adapter, runs_on, scene
from harness import Scene


def opened(s, **arguments):
    """What is opened of the first frame: the path, or None."""
    with Adapter(s.socket) as a:
        a.start(pid=s.app.pid, **arguments)
        source = a.frame()["source"]
        address = a.frame()["instructionPointerReference"]
        line = a.call("disassemble", memoryReference=address, instructionCount=1)["instructions"][0]
        a.finish()
    assert ("path" in source) != ("sourceReference" in source) and source.get("origin", "/src/spin.cl:").startswith("/src/spin.cl:"), source
    assert "path" not in source or source["name"] == "spin.cl", source
    assert line.get("location", {}).get("path") == source.get("path"), line
    return source.get("path")


def test_sources_are_elsewhere():
    """The program was compiled in /src, which is not here."""
    with scene() as s:
        work = s.directory / "work"
        for file in ("src/spin.cl", "spin.cl", "sc/spin.cl"):
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            (work / file).write_text("\n")
        assert opened(s) is None
        assert opened(s, sourceMap=[["/sr", f"{work}/s"], ["/src", f"{work}/none"], ["/src/", f"{work}//"]]) == str(work / "spin.cl")
        assert opened(s, sourceFolders=["/nonexistent", str(work)]) == str(work / "src/spin.cl"), "the longest end"
        (work / "src/spin.cl").unlink()
        assert opened(s, sourceFolders=[str(work)]) == str(work / "spin.cl")
        assert opened(s, sourceFolders=[str(work / "none")], sourceMap=[["/src", f"{work}/none/.."]]) is None, "no such folder"
        assert opened(s, sourceMap=[["/other", str(work)]]) is None
        (work / "spin.cl").unlink()
        assert opened(s, sourceFolders=[str(work)], sourceMap=[["/src", str(work)]]) is None
        runs_on(s)


@pytest.mark.parametrize("arguments", [
    {"sourceMap": {"/src": "/work"}}, {"sourceMap": "/src"}, {"sourceMap": [["/src"]]}, {"sourceMap": [["/src", "/a", "/b"]]},
    {"sourceMap": [["src", "/a"]]}, {"sourceMap": [["/src", 7]]}, {"sourceMap": [["/a", "/b"]] * 17}, {"sourceFolders": "/work"},
    {"sourceFolders": ["work"]}, {"sourceFolders": [7]}, {"sourceFolders": ["/a"] * 17},
], ids=lambda a: f"{a}"[:40])
def test_where_sources_are_is_a_mistake(arguments):
    name, = arguments
    with Adapter("/nonexistent/socket") as a:
        a.call("initialize", adapterID="x")
        assert a.error("attach", pid=1, **arguments).startswith(f"{name}: must be")


def content(a, frame):
    """The lines of a frame's source, and the one that the frame is at."""
    answer = a.call("source", source=frame["source"], sourceReference=frame["source"]["sourceReference"])
    assert answer["mimeType"] == "text/x-asm", answer
    lines = answer["content"].splitlines()
    assert answer["content"].endswith("\n") and 1 <= frame["line"] <= len(lines), (frame, len(lines))
    return lines, lines[frame["line"] - 1]


def test_code_in_place_of_a_source():
    """/src is not here: a frame shows the code of its function, at its instruction, with the source's lines between."""
    with scene("waves 0 memory 4 spin+16; waves 1 halted 2 spin+12") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        frames = [a.frame(1), a.frame(2)]
        lines, here = content(a, frames[0])
        first = a.call("disassemble", memoryReference=frames[0]["instructionPointerReference"], instructionCount=1)["instructions"][0]
        pc = int(frames[0]["instructionPointerReference"], 16)
        assert here == f"0x{pc:012x}  {first['instruction']}", (here, first)
        assert lines[0].startswith("; spin@0x") and "gfx90a" in lines[0], lines
        code = [line for line in lines if not line.startswith("; ")]
        assert [int(line.split()[0], 16) for line in code][:1] == [pc - 16] and len(code) > 5, lines
        above = [line for line in lines[:frames[0]["line"]] if line.startswith("; /src/spin.cl:")]
        assert above[-1] == f"; /src/spin.cl:{first['line']}" if "line" in first else above, lines

        assert frames[0]["source"] == frames[1]["source"] and frames[0]["line"] != frames[1]["line"], "one source of a function"
        assert content(a, frames[1])[1].startswith(f"0x{int(frames[1]['instructionPointerReference'], 16):012x}  ")
        refused, = a.call("setBreakpoints", source=frames[0]["source"], breakpoints=[{"line": 3}])["breakpoints"]
        assert not refused["verified"] and "not supported" in refused["message"], refused
        assert a.call("exceptionInfo", threadId=1)["exceptionId"], "the box has something to say, and a line to be at"
        a.call("continue", threadId=1)
        a.pause()
        assert a.frame(1)["source"] == frames[0]["source"], "the same as long as the session lasts"
        for wrong in (2, -1, 1 << 40):
            assert a.error("source", sourceReference=wrong).startswith("sourceReference: "), wrong
        assert "files of this machine" in a.error("source", sourceReference=0)
        a.finish()
        runs_on(s)


@pytest.mark.parametrize("place", ["spin+16", "spin+80"], ids=["named", "unnamed"])
def test_other_code_at_the_same_address(place):
    """What an editor keeps of a sourceReference stays true: other code has another one, also where no symbol names it."""
    with scene(f"waves 0 halted 4 {place}") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        frame = a.frame(1)
        lines, here = content(a, frame)
        assert ("spin@" in lines[0]) == (place == "spin+16"), lines[0]
        pc = int(frame["instructionPointerReference"], 16)
        a.call("continue", threadId=1)
        with open(f"/proc/{s.app.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(pc)
            memory.write(bytes.fromhex("230080bf"))  # s_nop 35
        a.pause()
        other = a.frame(1)
        assert other["source"]["sourceReference"] != frame["source"]["sourceReference"], "it stands for another text"
        now, new = content(a, other)
        assert new.endswith("s_nop 35") and not here.endswith("s_nop 35") and len(now) >= 2, (new, here)
        assert content(a, frame) == (lines, here), "the first one still stands for the first text"
        a.pause()
        assert a.frame(1)["source"] == other["source"]
        a.finish()
        runs_on(s)


def test_lines_and_columns_from_0():
    with scene() as s, Adapter(s.socket) as a:
        a.call("initialize", adapterID="x", linesStartAt1=False, columnsStartAt1=False)
        a.call("attach", pid=s.app.pid)
        a.event("initialized")
        a.call("configurationDone")
        frame = a.frame()
        assert frame["column"] == 0 and content(a, {**frame, "line": frame["line"] + 1})[1].startswith(
            f"0x{int(frame['instructionPointerReference'], 16):012x}  "), frame
        a.finish()


def test_there_is_no_code():
    """A wave that jumped to nowhere: an editor has a line to show the exception at, which says so."""
    with scene("waves 0 memory 4 pc=0x10") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        stopped = a.event("stopped")
        assert stopped["reason"] == "exception" and "memory_violation" in stopped["text"], stopped
        frame = a.frame(stopped["threadId"])
        lines, here = content(a, frame)
        assert lines == [here] and here.startswith("; no code can be read at 0x10: "), lines
        assert a.call("exceptionInfo", threadId=stopped["threadId"])["description"]
        a.finish()


# -- sources in the debug information --------------------------------------------------------------

def compile_embedded(directory, text, name="kernel.cl", folder="/nowhere/src"):
    """A code object that has its source in itself; the file is gone."""
    work = directory / "compiled"
    work.mkdir(exist_ok=True)
    (work / name).write_text(text)
    npm.need("clang", "ld.lld")
    subprocess.run(["clang", "-x", "cl", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-mcode-object-version=4", "-nogpulib", "-O1",
                    "-gdwarf-5", "-gembed-source", f"-fdebug-compilation-dir={folder}", name, "-o", directory / "kernel.co"],
                   cwd=work, check=True, timeout=60)
    (work / name).unlink()
    return directory / "kernel.co"


SPIN = (DATA / "spin.cl").read_text()
EMBEDDED = "runtime ttmp; load {}; queues 1; waves 0 memory 4 scale+104; spin"


@contextlib.contextmanager
def embedded(text, app=EMBEDDED, **kwargs):
    with Scene(app=None, gpus="gfx90a") as s:
        s.app = s.start_app(app.format(compile_embedded(s.directory, text, **kwargs)))
        yield s


def told(a, frame):
    return a.call("source", source=frame["source"], sourceReference=frame["source"]["sourceReference"])


def test_a_source_in_the_debug_information():
    """/nowhere is not here: the frames are in the text that the code object has, all of them in the same."""
    hostile = "// \U0001f600 \x01\x7f\"\\ é\n"
    with embedded(SPIN + hostile) as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        frames = a.call("stackTrace", threadId=a.event("stopped")["threadId"])["stackFrames"]
        assert [(f["name"].partition("(")[0], f["line"]) for f in frames] == [("inner", 8), ("middle", 14), ("scale", 30)], frames
        assert all(f["source"] == frames[0]["source"] and f["column"] > 1 for f in frames), frames
        source = frames[0]["source"]
        assert source["name"] == "kernel.cl" and source["origin"] == "/nowhere/src/kernel.cl, in the debug information", source
        answer = told(a, frames[0])
        assert answer == {"content": SPIN + hostile}, answer
        line = a.call("disassemble", memoryReference=frames[0]["instructionPointerReference"], instructionCount=1)["instructions"][0]
        assert line["location"] == {"name": "kernel.cl", "sourceReference": source["sourceReference"]} and line["line"] == 8, line
        refused, = a.call("setBreakpoints", source=source, breakpoints=[{"line": 8}])["breakpoints"]
        assert not refused["verified"], refused
        a.pause()
        a.call("continue", threadId=1)
        a.pause()
        assert a.frame(1)["source"] == source, "the same as long as the session lasts"
        a.finish()
        runs_on(s)


def test_a_file_counts_before_the_debug_information():
    with embedded(SPIN) as s:
        work = s.directory / "work"
        work.mkdir()
        (work / "kernel.cl").write_text("other\n")
        with Adapter(s.socket) as a:
            a.start(pid=s.app.pid, sourceFolders=[str(work)])
            assert a.frame()["source"] == {"name": "kernel.cl", "path": str(work / "kernel.cl")}
            a.finish()


def test_a_long_source_is_cut_at_a_line():
    with embedded(SPIN + "/*\n" + "all work and no play\n" * 60000 + "*/\n") as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        content = told(a, a.frame(a.event("stopped")["threadId"]))["content"]
        assert content.startswith(SPIN) and content.endswith("play\n") and 1 << 20 >= len(content) > (1 << 20) - 30
        said = a.wait(lambda m: m.get("event") == "output" and "all but the first" in m["body"]["output"], "what is missing")
        assert "/nowhere/src/kernel.cl" in said["body"]["output"], said
        a.finish()


def test_a_source_of_a_core_file():
    with embedded(SPIN) as s:
        core = s.directory / "core"
        assert s.ctl("dump", s.app.pid, "--max-stop", "60s", "-o", core).returncode == 0
        with Adapter("/nonexistent/socket") as a:
            a.start(coreFile=str(core))
            assert told(a, a.frame(a.event("stopped")["threadId"]))["content"] == SPIN
            a.finish()


def test_the_agent_tells_a_source():
    with embedded(SPIN) as s:
        session = s.attach()
        object_, = s.rpc.call("code.list", session=session)["objects"]
        pc = s.rpc.call("gpu.snapshot", session=session)["groups"][0]["pc"]
        asked = {"session": session, "address": pc, "file": "/nowhere/src/kernel.cl"}
        answer = s.rpc.call("code.source", **asked)
        assert answer["text"] == SPIN and answer["bytes"] == len(SPIN) and answer["complete"], answer
        short = s.rpc.call("code.source", **asked, text=False)
        assert short == {k: v for k, v in answer.items() if k != "text"}, short
        for other in ("kernel.cl", "/nowhere/src/kernel.c", "/nowhere/src//kernel.cl", "", "/nowhere/src"):
            assert s.rpc.call("code.source", **{**asked, "file": other}) == {"complete": True, "missing": []}, other
        nowhere = s.rpc.call("code.source", **{**asked, "address": "0x10"})
        assert "text" not in nowhere and nowhere["complete"], nowhere
        assert object_["uri"]
