# SPDX-License-Identifier: MIT
"""Packages of npm for tests: installed once for each content of the files that pin them."""
import contextlib
import fcntl
import hashlib
import shutil
import subprocess

from harness import ROOT, Skip

SECONDS = 180


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")


@contextlib.contextmanager
def locked(path):
    """One process at a time; the lock ends with the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_npm(argv, directory, seconds=SECONDS):
    """Raises Skip when it cannot be done here."""
    try:
        run = subprocess.run(["npm", *argv, "--prefer-offline", "--no-audit", "--no-fund"], cwd=directory, text=True,
                             capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Skip(f"npm {argv[0]}: not done in {seconds} s") from None
    if run.returncode:
        # npm 9 says "npm ERR!", later ones "npm error".
        lines = [line for line in run.stderr.splitlines() if line.lower().startswith("npm err")]
        raise Skip(f"npm {argv[0]}: " + (" / ".join(lines[:3]) or f"exit status {run.returncode}"))


def install(directory):
    """What directory/package-lock.json pins.  @return the node_modules directory, below build/npm"""
    need("node", "npm")
    files = [directory / "package.json", directory / "package-lock.json"]
    place = ROOT / "build/npm" / str(directory.relative_to(ROOT)).replace("/", "-")
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()
    stamp = place / "installed"
    with locked(place.with_suffix(".lock")):
        if not stamp.exists() or stamp.read_text() != digest:
            place.mkdir(parents=True, exist_ok=True)
            for file in files:
                shutil.copy(file, place)
            run_npm(["ci", "--ignore-scripts"], place)
            stamp.write_text(digest)
    return place / "node_modules"
