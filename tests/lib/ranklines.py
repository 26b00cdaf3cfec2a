# SPDX-License-Identifier: MIT
"""What `job` says of ranks in its first line."""
from __future__ import annotations

from typing import Any


def first_line(shown: str) -> str:
    """Without the breaks that make it fit the page."""
    words = []
    for i, line in enumerate(shown.splitlines()):
        if i and not line.startswith("       "):
            break
        words.append(line.strip())
    return " ".join(words).replace("  [", " [")


def job_says(s: Any, line: str) -> str:
    """What it shows, when its first line is that."""
    shown: str = s.job()
    assert first_line(shown) == line, shown
    return shown


def without_missing(shown: str) -> str:
    """What is said of ranks: not what is missing, which a busy machine makes more."""
    lines = shown.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith("missing"))
