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
    assert source["name"] == "spin.cl" and ("path" in source) != ("origin" in source), source
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
