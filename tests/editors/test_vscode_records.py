#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The records of the agent in VS Code: a tree that is kept up to date, and what is done with a record."""
import os
import pathlib
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from codeserver import Editor, drive, has_row, programs, workspace
from editor import extension, script
from harness import wait_until
from rulescene import ALL, RuleScene


def test_records_are_listed_opened_saved_pinned_and_removed():
    chromium, modules = programs()
    vsix = extension("vscode")
    with RuleScene(ALL + "keep = light\n", app=None) as s:
        place = workspace(s.directory)
        s.app = s.start_app(script(s.directory))
        editor = Editor(s, modules, vsix)

        def fault():
            wait_until(lambda: s.rule()["watching"] == 1, "the rule has the process")
            s.raise_queue(0, "wave_memory_violation")
            wait_until(lambda: s.rule()["recorded"] == 1, "recorded")

        def snapshot():
            assert s.ctl("snapshot", s.app.pid, "--record").returncode == 0

        def kept():
            assert len(s.rpc.call("cores.list")["records"]) == 2, "nobody has agreed"

        seen = drive("records", s, chromium, modules, editor.start(s, place), fault=fault, snapshot=snapshot, kept=kept)
        row, = seen["records"]
        assert row.startswith("wave memory violation") and f"{s.app.pid} gpu-agent-simap" in row and "KiB" in row, row
        assert [r.split(f"{s.app.pid}")[0] for r in seen["both"]] == ["snapshot", "wave memory violation"], seen["both"]
        assert has_row(seen["stack"], "2 x scale spin.cl:8 memory_violation"), seen["stack"]
        assert "2 waves of scale" in seen["page"], seen["page"]
        assert has_row(seen["text"], "reason", "requested") and not seen["sessionsOfText"], seen["text"]
        assert has_row(seen["pinned"], "wave memory violation", "pinned"), seen["pinned"]
        assert has_row(seen["notRemoved"], "unpin it before"), seen["notRemoved"]
        assert f"of process {s.app.pid}" in seen["question"][0], seen["question"]
        assert seen["left"] and not has_row(seen["left"], "wave memory"), seen["left"]
        assert seen["notifications"] == [], seen["notifications"]
        # What was opened is a copy of one's own, and so is what was saved.
        wire, = editor.sessions()
        opened = pathlib.Path(wire.requests("attach")[0]["arguments"]["coreFile"])
        saved = place / opened.name
        assert opened.read_bytes() == saved.read_bytes() and opened.parent.stat().st_mode & 0o077 == 0, opened
        left, = s.rpc.call("cores.list")["records"]
        assert left["reason"] == "requested", left
