#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Snapshots side by side in VS Code beneath their verdict, and a process that goes on to the vendor's debugger."""
import json
import os
import shutil
import sys
import time

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from codeserver import Editor, drive, has_row, programs, run_alone, workspace
from dapclient import runs_on
from editor import extension, script
from harness import Scene

APART_S = 1.1  # two snapshots must be half a second apart to be judged, and one to be told apart


def test_texts_are_kept_as_long_as_they_are_shown():
    assert run_alone("texts.js") == "3\n"


def test_snapshots_are_compared_and_a_process_is_handed_over():
    chromium, modules = programs()
    vsix = extension("vscode")
    with Scene(app=None, gpus="gfx90a") as s:
        place = workspace(s.directory)
        s.app = s.start_app(script(s.directory).replace("memory 2", "halted 2"))
        editor = Editor(s, modules, vsix)

        def attached():
            session, = s.rpc.call("session.list")["sessions"]
            assert session["pid"] == s.app.pid, session

        def released():
            runs_on(s)
            assert not s.rpc.call("session.list")["sessions"]
            wire, = editor.sessions()
            assert wire.answers("disconnect")[0]["success"] and wire.exits, "the session is over before"

        seen = drive("compare", s, chromium, modules, editor.start(s, place), move=lambda: time.sleep(APART_S),
                     attached=attached, released=released)
        title, = seen["later"]
        assert title.startswith(f"HUNG: {s.app.pid} gpu-agent-simap, 2."), title
        assert seen["laterSides"][0].replace("\xa0", " ").startswith("HUNG"), seen["laterSides"]
        first, second = (json.loads((place / f"{name}.json").read_text()) for name in ("one", "two"))
        assert first["time_us"] < second["time_us"] and first["process"]["pid"] == s.app.pid
        assert seen["files"][0].startswith(f"HUNG: {s.app.pid}"), seen["files"]
        # Each side begins with what both say together, and goes on with its own snapshot.
        times = [row[-12:] for row in seen["filesSides"] if "UTC" in row]
        assert len(times) == 4 and times[0] == times[2] and times[1] < times[3], seen["filesSides"]
        assert has_row(seen["handedOver"], f"process {s.app.pid}", "Press Enter"), seen["handedOver"]
        # It is said where there is no such debugger, and the command is there all the same.
        assert has_row(seen["handedOver"], "rocgdb is not in the path") == (shutil.which("rocgdb") is None), seen["handedOver"]
        assert has_row(seen["terminal"], f"rocgdb -p {s.app.pid}") and not has_row(seen["terminal"], "not found"), seen["terminal"]
        assert seen["toolbar"] == 0 and seen["notifications"] == seen["problems"] == [], seen
