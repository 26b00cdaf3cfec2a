# SPDX-License-Identifier: MIT
"""Packages of npm for tests: installed once for each content of the files that pin them.

They are kept below build/npm, or in the directory that GPU_AGENT_TEST_CACHE names.
"""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import time
from typing import Callable, Dict, Iterator, List, Optional
from unittest import SkipTest

from harness import ROOT

SECONDS = 180  # of one step
# Of all that a test program fetches: it has ten minutes (scripts/run-tests), and has to run its tests in them.
DEADLINE = time.monotonic() + 220
CACHE = pathlib.Path(os.environ.get("GPU_AGENT_TEST_CACHE") or ROOT / "build/npm")


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise SkipTest(f"{program} is not installed")


@contextlib.contextmanager
def locked(path: pathlib.Path) -> Iterator[None]:
    """One process at a time; the lock ends with the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_npm(argv: List[str], directory: pathlib.Path, seconds: float = SECONDS, env: Optional[Dict[str, str]] = None) -> None:
    """Raises SkipTest when it cannot be done here."""
    seconds = max(0, min(seconds, DEADLINE - time.monotonic()))
    try:
        run = subprocess.run(["npm", *argv, "--prefer-offline", "--no-audit", "--no-fund"], cwd=directory, text=True,
                             capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, env=env)
    except subprocess.TimeoutExpired:
        raise SkipTest(f"npm {argv[0]}: not done in {seconds:.0f} s") from None
    if run.returncode:
        # npm 9 says "npm ERR!", later ones "npm error".
        lines = [line for line in run.stderr.splitlines() if line.lower().startswith("npm err")]
        raise SkipTest(f"npm {argv[0]}: " + (" / ".join(lines[:3]) or f"exit status {run.returncode}"))


def ci(place: pathlib.Path) -> None:
    run_npm(["ci", "--ignore-scripts"], place)


def install(directory: pathlib.Path, steps: Callable[[pathlib.Path], None] = ci) -> pathlib.Path:
    """What directory/package.json pins, alone or with package-lock.json.  @return the node_modules directory

    steps  is called with the place in which to install
    """
    need("node", "npm")
    files = [f for f in (directory / "package.json", directory / "package-lock.json") if f.exists()]
    place = CACHE / str(directory.relative_to(ROOT)).replace("/", "-")
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()
    stamp = place / "installed"
    with locked(place.with_suffix(".lock")):
        if not stamp.exists() or stamp.read_text() != digest:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            for file in files:
                shutil.copy(file, place)
            steps(place)
            stamp.write_text(digest)
    return place / "node_modules"
