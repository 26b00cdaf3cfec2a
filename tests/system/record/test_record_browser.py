#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings as people open them: speedscope's own viewer shows its file, and a browser shows the flame graph, of which axe finds nothing.

The browser is Debian's (scripts/install-deps editors); speedscope, playwright-core and axe-core come from npm.
Pictures are left in build/record; docs/pictures/flame-graph.png is train.png of them.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest

import npm
from harness import ROOT, Scene
from test_record import STILL, record

HERE = pathlib.Path(__file__).resolve().parent / "browser"
PICTURES = ROOT / "build/record"
SECONDS = 240
NASTY = "a<b>&\"'</title>"


def test_viewers_show_the_shares():
    """A quarter of the waves is in embedding(), the others are in dot() of gemm(); the program's name would break a page."""
    chromium = shutil.which("chromium")
    if not chromium:
        raise SkipTest("chromium is not installed: scripts/install-deps editors")
    script = npm.install(HERE).parent / "view.mjs"
    shutil.copy(HERE / "view.mjs", script)
    PICTURES.mkdir(parents=True, exist_ok=True)
    with Scene(app=f"name train; {STILL}", gpus="gfx90a") as s:
        files = [s.directory / "train.speedscope.json", s.directory / "train.svg", s.directory / "nasty.svg"]
        n = record(s, "-d", "2s", "--overhead", "20%", "--host", f"--speedscope={files[0]}", f"--svg={files[1]}")["captures"]
        process = f"train {s.app.pid}"
        with Scene(app=f"name {NASTY}; {STILL}", gpus="gfx90a") as other:
            record(other, "-d", "1s", "--overhead", "20%", f"--svg={files[2]}")
        run = subprocess.run(["node", script, PICTURES, *files], env={**os.environ, "CHROMIUM": chromium}, text=True, capture_output=True,
                             timeout=SECONDS, stdin=subprocess.DEVNULL)
        assert run.returncode == 0, run.stderr[-2000:]
    scope, *graphs = map(json.loads, run.stdout.splitlines())
    assert not scope["said"] and "captures of waves (1/2)" in scope["text"], scope
    rows = [row.split("\n") for row in scope["rows"] if "%" in row]
    # What it weighs with all that it calls, what it weighs itself, and its name.
    shown = {row[-1].strip(): [float(w) for w in re.findall(r"([\d.]+) \(", " ".join(row[:-1]))] for row in rows}
    want = {process: [n, 0], "embedding": [n / 4, 0], "gemm": [3 * n / 4, 0], "train.hip:29": [n / 4] * 2, "train.hip:61": [3 * n / 4] * 2}
    for name, weights in want.items():
        assert shown[name] == pytest.approx(weights, abs=0.01), shown
    for graph, file, name in zip(graphs, files[1:], (process, NASTY)):
        assert not graph["said"] and not graph["axe"] and graph["requests"] == [f"file://{file}"], graph
        widths = {box["title"].split(":")[0]: box["width"] for box in graph["boxes"]}
        assert widths["gemm"] == pytest.approx(3 * widths["embedding"], rel=0.01), widths
        assert any(title.startswith(name) for title in widths), widths
        # No name is wider than its box.
        assert all(box["text"] <= box["width"] for box in graph["boxes"]), graph["boxes"]
