#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What README says about installing, word for word; its first line built and installed the files."""
import grp
import os
import pathlib
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
from units import SERVICE, SOCKET, ctl, main_pid, show, state
from harness import ROOT
from vmlib import Target

pytestmark = pytest.mark.usefixtures("open_kfd")

MEMBER = "nobody"


def test_install_lines_give_a_service_that_answers():
    lines = subprocess.run([ROOT / "tests/vm/readme-install"], text=True, capture_output=True, timeout=60, check=True).stdout.splitlines()
    assert len(lines) > 1 and lines[0].startswith("make"), lines
    for line in lines[1:]:
        done = subprocess.run(["bash", "-ec", line], env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "USER": MEMBER}, text=True,
                              capture_output=True, timeout=90, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, (line, done.returncode, done.stdout, done.stderr)
    assert MEMBER in grp.getgrnam("gpu-debug").gr_mem
    assert state() == "inactive" and pathlib.Path(SOCKET).exists(), state()
    with Target("open", "on") as target:
        done = ctl("snapshot", target.pid)
        assert done.returncode == 0 and str(target.pid) in done.stdout, (done.returncode, done.stdout, done.stderr)
    assert main_pid() and "/usr/sbin/gpu-agentd" in show("ExecStart"), show("ExecStart")
    # What the other tests start from.
    subprocess.run(["systemctl", "stop", SERVICE], timeout=90, check=True)
