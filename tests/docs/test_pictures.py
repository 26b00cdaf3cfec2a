#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pictures of the documents show what the programs print today, byte for byte as the script draws it."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from docpage import masked
from harness import ROOT

SCRIPT = ROOT / "scripts/make-pictures"


def load():
    loader = importlib.machinery.SourceFileLoader("make_pictures", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_pictures", loader))
    loader.exec_module(module)
    return module


def test_what_was_kept_is_drawn_as_it_stands():
    done = subprocess.run([SCRIPT, "--check"], capture_output=True, text=True)
    if done.stdout.startswith("SKIP"):
        raise SkipTest(done.stdout.partition(": ")[2].strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_programs_still_print_what_was_kept():
    if os.geteuid() or not os.path.exists("/dev/fuse"):
        raise SkipTest("the simulated GPU needs root and /dev/fuse")
    script = load()
    for name, text in script.typed().items():
        kept = (script.PICTURES / f"{name}.txt").read_text()
        # Colours included.
        assert masked(text.split("\n")) == masked(kept.split("\n")), f"scripts/make-pictures draws {name} anew"


def test_a_document_shows_every_picture():
    shown = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    for path in (ROOT / "docs/pictures").iterdir():
        assert path.suffix == ".txt" or f"pictures/{path.name}" in shown, path.name
