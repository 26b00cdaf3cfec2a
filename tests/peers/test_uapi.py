#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our declaration of the KFD ABI against the newest kernel headers that this release has."""
import os
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

from harness import ROOT
from peers import PEERS, fetch


def test_headers_of_a_newer_kernel():
    """The unit test of the ABI, built once more with those headers in front."""
    tree = fetch("uapi")
    header = tree / "usr/include/linux/kfd_ioctl.h"
    assert "AMDKFD_IOC_DBG_TRAP" in header.read_text(), f"{header} has no debug interface"
    out = PEERS / "abi"
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "SANITIZE", "O")}
    subprocess.run(["make", "-s", f"O={out}", f"KFD_UAPI_INCLUDE={tree}/usr/include", f"{out}/tests/test_kfdtrap_abi"],
                   cwd=ROOT, env=env, check=True, timeout=200, stdout=subprocess.DEVNULL)
    run = subprocess.run([out / "tests/test_kfdtrap_abi"], text=True, capture_output=True, timeout=60)
    lines = run.stdout.splitlines()
    assert run.returncode == 0 and len(lines) >= 5, run.stdout + run.stderr
    assert all(line.startswith("PASS ") for line in lines), run.stdout
