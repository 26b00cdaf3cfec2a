#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The view of GPUs in VS Code: from a process down to a lane, by clicks."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from codeserver import Editor, drive, has_row, programs, run_alone, workspace, write_launch
from dapclient import runs_on
from editor import GPUS, WAVES_EACH, adapter_of, extension, many_waves, script
from harness import Scene, status


def check_tree(seen, s):
    assert has_row(seen["processes"], str(s.app.pid), "AMD, 1 device, 2 queues"), seen["processes"]
    tree = seen["tree"]
    assert has_row(tree, "GPU 0 AMD Instinct MI210", "gfx90a, 8 waves in 2 groups"), tree
    assert has_row(tree, "queue 0", "2 waves, 2 faulted"), tree
    assert has_row(tree, "2 x scale spin.cl:8 memory_violation"), tree
    assert has_row(tree, "6 x spin spin.cl:37"), tree
    assert [row for row in seen["waves"] if row.startswith("wave 1:0:")], seen["waves"]
    assert has_row(seen["lanes"], "lane 12", "active, pc 0x"), seen["lanes"]


def check_requests(wire):
    """A click is one request, what is opened has been asked for by somebody, and only an event has the view look again."""
    groups = [m["arguments"] for m in wire.requests("gpuAgent/groups")]
    events = [m for m in wire.messages if m["type"] == "event" and m["event"] in ("stopped", "continued", "invalidated")]
    assert groups and len(groups) <= len(events) + 1 and all(g == {"automatic": True} for g in groups), (groups, events)
    opened = wire.requests("gpuAgent/waves")[0]["arguments"]
    assert (opened["threadId"], opened["automatic"]) == (2, False), opened
    assert wire.requests("gpuAgent/lanes")[0]["arguments"]["automatic"] is False
    focus = [m["arguments"] for m in wire.requests("gpuAgent/focus")]
    assert focus[0] == {"threadId": 2, "reveal": True}, focus
    last = focus[-1]
    assert (last["threadId"], last["wave"]["index"], last["lane"], last["reveal"]) == (2, 2, 7, True), focus
    bad = [m for m in wire.messages if m["type"] == "response" and not m["success"] and m["message"] != "cancelled"
           and "out of date" not in m["message"]]
    assert not bad, bad


def test_only_what_has_changed_is_drawn_anew():
    """A click on a row that is drawn anew is lost."""
    assert int(run_alone("rows.js")) > 0


def test_rows_tell_rank_and_arguments_and_hide_nothing():
    """A process has chosen its name and arguments: neither looks like another one, or like more than one line."""
    assert int(run_alone("processes.js")) > 0


def test_from_a_process_to_a_lane():
    chromium, modules = programs()
    vsix = extension("vscode")
    with Scene(app=None, gpus="gfx90a") as s:
        place = workspace(s.directory)
        s.app = s.start_app(script(s.directory))
        editor = Editor(s, modules, vsix)
        seen = drive("view", s, chromium, modules, editor.start(s, place))
        check_tree(seen, s)
        wire, = editor.sessions()
        check_requests(wire)
        assert seen["notifications"] == [], seen["notifications"]
        runs_on(s)


def test_eight_gpus_and_a_hundred_thousand_waves():
    """Each GPU has its rows, a group opens a page at a time, and the adapter stays small."""
    chromium, modules = programs()
    vsix = extension("vscode")
    with many_waves() as s:
        place = workspace(s.directory)
        # A simulator on a busy machine takes long to write so many waves.
        write_launch(place, [{"type": "gpu-agent", "request": "attach", "name": "all", "pid": s.app.pid, "maxStopMs": 60000}])
        editor = Editor(s, modules, vsix)
        peak = []

        def paged():
            assert s.target_state()["suspended_queues"] == GPUS, "a look lets nothing run"
            peak.append(int(status(adapter_of(s))["VmHWM"].split()[0]))

        seen = drive("many", s, chromium, modules, editor.start(s, place), paged=paged)
        print(f"  {GPUS * WAVES_EACH} waves on {GPUS} GPUs: the adapter has {peak[0] / 1024:.1f} MiB at most")
        assert peak[0] < 32 * 1024, peak
        for gpu in range(GPUS):
            assert has_row(seen["gpus"], f"GPU {gpu} ", f"{WAVES_EACH} waves in 1 group"), seen["gpus"]
        assert has_row(seen["ranges"], "waves 0\u2013127") and has_row(seen["page"], "lanes active"), (seen["ranges"], seen["page"])
        wire, = editor.sessions()
        pages = [m["arguments"] for m in wire.requests("gpuAgent/waves")]
        assert pages and all(p["count"] <= 128 for p in pages) and {p["start"] for p in pages} == {1280}, pages
        assert max(len(m["body"]["waves"]) for m in wire.answers("gpuAgent/waves")) == 128
        assert seen["notifications"] == [], seen["notifications"]
        runs_on(s)
