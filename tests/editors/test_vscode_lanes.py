#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of lanes in VS Code, of waves and of warps."""
import os
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from codeserver import Editor, drive, has_row, programs, run_alone, workspace
from dapclient import runs_on
from editor import extension, script
from harness import CudaScene, Scene, wait_until

LETTERS = {"hex": "x", "int": "d", "float": "f", "half": "h", "bf16": "b"}
WAVE = {"queue_id": 1, "unit": 0, "index": 2}


def column(table, name):
    """Its cells."""
    at, = (i for i, head in enumerate(table["heads"]) if head.split(" ")[0] == name)
    return [cells[at] for cells in table["rows"]]


def text(value):
    return value["value"] if value["state"] == "ok" else f"<{value['state']}> {value['value']}"


def check_page(table):
    """No script runs in it, and nothing is fetched."""
    assert table["scripts"] == 0 and table["policy"].startswith("default-src 'none'; style-src 'nonce-"), table["policy"]


def test_what_is_in_the_page():
    assert int(run_alone("table.js")) > 0


def check_wave(seen, told):
    table = seen["wave"]
    check_page(table)
    assert len(table["rows"]) == 64 and table["status"] == "", table
    assert "64 of 64 lanes active" in table["exec"] and column(table, "flag") == ["<optimised out>"] * 64, table
    assert set(column(table, "active")) == {"yes"} and [h.split(" ")[0] for h in table["heads"]][:2] == ["lane", "active"], table["heads"]
    for name, expected in told.items():
        assert column(seen["formats"][name], "$v1") == expected, (name, seen["formats"][name], expected)
    assert len({tuple(v) for v in told.values()}) > 2, "formats differ"
    # What means nothing takes nothing from the others.
    assert has_row(seen["failure"]["heads"], "nonsense + 1", "nonsense") and column(seen["failure"], "$v1") == told["bf16"], seen["failure"]
    assert len(seen["active"]["rows"]) == 64 and seen["notices"] == [], (seen["active"], seen["notices"])


def test_lanes_of_a_wave_and_of_a_frame():
    chromium, modules = programs()
    vsix = extension("vscode")
    with Scene(app=None, gpus="gfx90a") as s:
        place = workspace(s.directory)
        s.app = s.start_app(script(s.directory))
        editor = Editor(s, modules, vsix)
        seen = drive("lanes", s, chromium, modules, editor.start(s, place))
        session = s.attach()
        told = {}
        for name, letter in LETTERS.items():
            lanes = s.rpc.call("wave.lanes", session=session, wave=WAVE, columns=[f"$v1, {letter}"])["lanes"]
            told[name] = [text(lane["values"][0]) for lane in lanes]
        s.rpc.call("session.detach", session=session)
        check_wave(seen, told)
        assert seen["chosen"]["current"] == ["9 ◀"] and "lane 9 is shown" in seen["chosen"]["exec"], seen["chosen"]
        # Names are those of the function whose frame is chosen.
        assert [h.split(" ")[0] for h in seen["inner"]["heads"][-4:]] == ["x", "n", "i", "s"], seen["inner"]["heads"]
        assert [h.split(" ")[0] for h in seen["outer"]["heads"][-5:]] == ["data", "n", "shared", "lane", "id"], seen["outer"]["heads"]
        assert column(seen["inner"], "work-item")[9] == "(9, 0, 0)", seen["inner"]
        assert column(seen["inner"], "n") == ["<optimised out>"] * 64, seen["inner"]
        assert seen["running"]["status"].startswith("The GPU runs") and seen["running"]["rows"] == seen["outer"]["rows"], seen["running"]
        assert seen["notifications"] == [], seen["notifications"]
        wire, = editor.sessions()
        asked = [m["arguments"] for m in wire.requests("gpuAgent/lanes")]
        assert {"variables", "columns", "frameId"} <= {name for a in asked for name in a}, asked
        # Nobody has asked for what is read because the debugger goes somewhere.
        assert any(a.get("automatic") is True for a in asked) and asked[0]["automatic"] is False, asked
        runs_on(s)


def test_lanes_of_a_warp():
    chromium, modules = programs()
    vsix = extension("vscode")
    with CudaScene(release="12.4", sim="devices 1 sms=3 warps=8") as s:
        place = workspace(s.directory)
        for lane in range(32):
            s.control(f"register 0 0 0 {lane} 4 {lane * 3}")
        editor = Editor(s, modules, vsix)
        seen = drive("lanesOfWarp", s, chromium, modules, editor.start(s, place))
        table = seen["warp"]
        check_page(table)
        assert len(table["rows"]) == 32 and "32 of 32 lanes active" in table["exec"], table
        assert column(table, "work-item")[31] == "(31, 0, 0)", table
        # Nothing is known of its variables: there are registers.
        assert [h.split(" ")[0] for h in table["heads"][-5:]] == ["$R0", "$R1", "$R2", "$R3", "$R4"], table["heads"]
        assert column(table, "$R4") == [hex(lane * 3) for lane in range(32)] and seen["notifications"] == [], table
        wait_until(lambda: s.worker_pids() == [], "worker leaves")
