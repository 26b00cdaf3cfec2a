#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sources that are not where the compiler saw them."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from dapclient import Adapter, runs_on, scene


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
