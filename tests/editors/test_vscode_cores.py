#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Core files in VS Code: opened in the explorer and by links, which anybody may write."""
import os
import shutil
import socket
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from codeserver import Editor, drive, has_row, programs, run_alone, workspace
from dapclient import runs_on
from editor import extension, script
from harness import Scene, need_root

OTHER = 1001


def test_what_of_a_link_is_believed():
    assert int(run_alone("links.js")) > 0


def test_core_files_are_opened():
    need_root()  # a socket of another user
    chromium, modules = programs()
    vsix = extension("vscode")
    with Scene(app=None, gpus="gfx90a") as s:
        place = workspace(s.directory)
        s.app = s.start_app(script(s.directory))
        one, two = place / "one.gpucore", place / "core.two.4242"
        dump = s.ctl("dump", s.app.pid, "--max-stop", "60s", "-o", one)
        assert dump.returncode == 0, dump.stderr
        shutil.copy(one, two)
        others = socket.socket(socket.AF_UNIX)
        others.bind(str(place / "other.sock"))
        os.chown(place / "other.sock", OTHER, OTHER)
        editor = Editor(s, modules, vsix)
        seen = drive("cores", s, chromium, modules, editor.start(s, place))
        # A double click is one session, and so is each of the others; what is refused is none.
        attached = [wire.requests("attach")[0]["arguments"] for wire in editor.sessions()]
        assert [a.get("coreFile") for a in attached] == [str(one), str(one), str(two), str(one), None], attached
        assert attached[4]["pid"] == str(s.app.pid), attached
        for name in ("doubleClick", "fromPage", "menu", "link", "attached"):
            assert has_row(seen[name], "2 x scale spin.cl:8 memory_violation"), seen[name]
        assert "2 waves of scale" in seen["page"] and not seen["afterStart"], seen["page"]
        assert "Open a GPU Core File" not in seen["menuOfSource"], seen["menuOfSource"]
        assert has_row(seen["socketOfOther"], "other.sock") and len(seen["badLinks"]) == 3 and not seen["afterBadLinks"], seen["badLinks"]
        assert str(one) in seen["coreLink"][0], seen["coreLink"]
        assert f"Process {s.app.pid}: gpu-agent-simap" in seen["attachLink"][0], seen["attachLink"]
        assert seen["notifications"] == [], seen["notifications"]
        runs_on(s)
