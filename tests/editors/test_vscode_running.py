#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""VS Code on a GPU that runs: faults after attaching, hovers and watches meanwhile, sources that are not there."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from codeserver import Editor, drive, has_row, programs, workspace
from dapclient import runs_on
from editor import extension, script
from harness import Scene, wait_until


def test_nothing_is_told_in_red_that_nobody_has_caused():
    chromium, modules = programs()
    vsix = extension("vscode")
    with Scene(app=None, gpus="gfx90a") as s:
        place = workspace(s.directory)
        s.app = s.start_app(script(s.directory).replace("memory 2", "halted 2"))
        editor = Editor(s, modules, vsix)

        def moved():
            wait_until(lambda: not s.target_state()["suspended_queues"], "the queues run")

        def hovered():
            wait_until(lambda: '"context":"hover"' in editor.trace_file.read_text(), "the adapter is asked")

        seen = drive("running", s, chromium, modules, editor.start(s, place), moved=moved, hovered=hovered,
                     fault=lambda: s.raise_queue(0, "wave_memory_violation"),
                     hide=lambda: (place / "spin.cl").rename(s.directory / "away"))
        assert has_row(seen["running"], "6 x spin", "Running"), seen["running"]
        assert "A wave touched memory it must not, queue 0" in seen["exception"], seen["exception"]
        assert has_row(seen["watch"], "flag =<optimised out>"), seen["watch"]
        assert has_row(seen["hidden"], "6 x spin spin.cl:37"), seen["hidden"]
        # In place of the source there is the code, with the lines that it is of.
        listing = [line.replace("\xa0", " ") for line in seen["listing"]]
        assert has_row(listing, "s_sleep") and has_row(listing, "; ", "spin.cl:37"), listing
        assert seen["afterRunning"] == [] and seen["afterHidden"] == [], (seen["afterRunning"], seen["afterHidden"])
        wire, = editor.sessions()
        assert [e["reason"] for e in wire.events("stopped")][0] == "exception", wire.events("stopped")
        asked = [m["arguments"].get("context") for m in wire.requests("evaluate")]
        assert {"watch", "hover"} <= set(asked), asked
        # What has no value is no hover: the answer says why, to nobody.
        failed = [m for m in wire.answers("evaluate") if not m["success"]]
        assert failed and all(m["body"]["error"]["showUser"] is False for m in failed), failed
        runs_on(s)
