#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports as a browser shows them: axe and html-validate find nothing, nothing is loaded, and it reads without scripts, on a telephone
and on paper.

The browser is Debian's (scripts/install-deps editors); playwright-core, axe-core and html-validate come from npm.
Pictures of the pages are left in build/report; docs/pictures/report.png is job-light.png of them.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import npm
from harness import ROOT
from test_report import PAGES, PARTIAL, ctl, hostile, load, ranks, saved

HERE = pathlib.Path(__file__).resolve().parent / "browser"
PICTURES = ROOT / "build/report"
SECONDS = 400


def judged(files):
    """What check.mjs says of each file, by its name."""
    chromium = shutil.which("chromium")
    if not chromium:
        raise SkipTest("chromium is not installed: scripts/install-deps editors")
    modules = npm.install(HERE, lambda place: npm.run_npm(["install", "--ignore-scripts"], place))
    script = modules.parent / "check.mjs"
    shutil.copy(HERE / "check.mjs", script)
    PICTURES.mkdir(parents=True, exist_ok=True)
    run = subprocess.run(["node", script, PICTURES, *files], env={**os.environ, "CHROMIUM": chromium}, text=True, capture_output=True,
                         timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stderr[-2000:]
    return {pathlib.Path(d["file"]).stem: d for d in map(json.loads, run.stdout.splitlines())}


def test_pages():
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        bad = saved(place, "bad.json", hostile(load("amd-2.json")))
        (place / "ranks").mkdir()
        ranks(place / "ranks", 1024)
        compared = ctl("diff", PAGES / "amd-1.json", PAGES / "amd-2.json", "-j").stdout
        made = {"snapshot": (PAGES / "cuda-2.json",), "hostile": (PAGES / "hostile.json",), "names": (bad,), "comparison": ("-",),
                "job": (place / "ranks",)}
        for name, arguments in made.items():
            run = ctl("report", *arguments, "-o", place / f"{name}.html", given=compared)
            assert run.returncode in (0, PARTIAL), run.stderr
        found = judged([place / f"{name}.html" for name in made])
        assert found.keys() == made.keys()
        for name, d in found.items():
            assert not d["html"] and not d["axe"], (name, d["html"], d["axe"])
            assert d["requests"] == [f"file://{place / name}.html"], (name, d["requests"])
            assert not d["said"] and not d["handlers"], (name, d["said"], d["handlers"])
            assert d["elements"]["script"] == 1 and json.loads(d["document"]), name
            # No sideways scrolling on a telephone; tables and pictures scroll in their own boxes.
            assert d["width"] <= 360 and d["pdf"] > 10000, (name, d["width"], d["pdf"])
        assert "rank17" in found["job"]["h1"] and found["job"]["h1"].startswith("ODD")
        assert "img" not in found["names"]["elements"]
