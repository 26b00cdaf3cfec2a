#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The TypeScript client: compiled strictly, with a program that uses it, and run on a real daemon."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import npm
from harness import BIN, ROOT, Scene, wait_until

HERE = pathlib.Path(__file__).resolve().parent


def compiled(directory, modules):
    """The client as it was built, and the test beside it."""
    package = pathlib.Path(directory, "client")
    shutil.copytree(BIN.parent / "clients/typescript", package)
    shutil.copy(HERE / "typed_client.ts", package / "src")
    os.symlink(modules, package / "node_modules")
    run = subprocess.run(["node", modules / "typescript/bin/tsc", "--strict", "-p", package], text=True,
                         capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stdout + run.stderr
    return package / "out"


def test_compiles_strictly_and_runs():
    modules = npm.install(ROOT / "clients/typescript")
    with tempfile.TemporaryDirectory() as directory, Scene() as s:
        program = compiled(directory, modules) / "typed_client.js"
        run = subprocess.run(["node", program, s.socket, str(s.app.pid), str(s.agentd.pid)], text=True,
                             capture_output=True, timeout=90, stdin=subprocess.DEVNULL)
        assert run.returncode == 0 and run.stdout == "done\n", f"exit {run.returncode}\n{run.stdout}{run.stderr}"
        wait_until(lambda: not s.target_state()["enabled"], "process released")
