# SPDX-License-Identifier: MIT
"""Output as people see it, compared with a page that is in the tree; GOLDEN=write writes the pages anew."""
from __future__ import annotations

import difflib
import os
import pathlib
import re
import subprocess
from typing import Iterable, List, Tuple

PAGES = pathlib.Path(__file__).resolve().parent.parent / "data/pages"
WIDTHS = (80, 120)

# What differs from run to run, and what a page has in its place: of the same length, so that columns stay.
MASKS: Tuple[Tuple[str, str], ...] = (
    (r"/tmp/gpu-agent-test\.\w{8}", "/tmp/gpu-agent-test.XXXXXXXX"),
    (r"\b00007[0-9a-f]{11}\b", "00007XXXXXXXXXXX"),
    (r"\b0x7[ef][0-9a-f]{10}\b", "0x7fXXXXXXXXXX"),
)


def masked(text: str, more: Iterable[Tuple[str, str]] = ()) -> str:
    for pattern, replacement in (*MASKS, *more):
        text = re.sub(pattern, replacement, text)
    return text


def environment(width: int) -> "dict[str, str]":
    """What decides how text looks."""
    return {"COLUMNS": str(width), "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def show(argv: Iterable[str], run: "subprocess.CompletedProcess[str]", width: int) -> str:
    """A run as a part of a page; no line is wider than the terminal, nor ends with blanks."""
    lines: List[str] = [f"$ gpu-agentctl {' '.join(argv)}"]
    lines += run.stdout.splitlines()
    lines += [f"2> {line}" for line in run.stderr.splitlines()]
    if run.returncode:
        lines.append(f"exit status {run.returncode}")
    wide = [line for line in run.stdout.splitlines() if len(line) > width]
    assert not wide, f"wider than {width} columns: {wide}"
    assert not [line for line in lines if line != line.rstrip()], f"blanks at the end of a line: {lines}"
    return "\n".join(lines) + "\n"


def compare(name: str, text: str) -> None:
    path = PAGES / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text)
    expected = path.read_text()
    difference = "".join(difflib.unified_diff(expected.splitlines(True), text.splitlines(True), str(path), "now"))
    assert not difference, f"another page than tests/data/pages/{name}.txt (GOLDEN=write makes it anew):\n{difference}"
