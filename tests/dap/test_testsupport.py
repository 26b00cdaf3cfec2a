#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Microsoft's @vscode/debugadapter-testsupport on gpu-agentctl dap: one line for each of its tests."""
import json
import os
import pathlib
import subprocess
import sys

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import npm
from dapclient import runs_on, scene
from dapschema import check_recorded, recorded
from harness import BIN, CudaScene

HERE = pathlib.Path(__file__).resolve().parent


def dump(s):
    core = s.directory / "core"
    run = s.ctl("dump", s.app.pid, "--max-stop", "60s", "-o", core)
    assert run.returncode == 0, run
    return str(core)


def run_mocha(env, *options):
    """How many of its tests ran, all of which must pass."""
    modules = npm.install(HERE)
    argv = ["node", modules / "mocha/bin/mocha.js", "--reporter", "json", *options, HERE / "adapter.spec.js"]
    run = subprocess.run(argv, env={**os.environ, "NODE_PATH": str(modules), **env}, text=True, capture_output=True, timeout=240,
                         stdin=subprocess.DEVNULL)
    report = json.loads(run.stdout[run.stdout.index("{\n"):])
    for failed in report["failures"]:
        print(f"  --- {failed['fullTitle']}: {failed['err'].get('message')}")
    assert run.returncode == 0 and report["stats"]["passes"] == report["stats"]["tests"], report["failures"]
    return report["stats"]["tests"]


def test_mocha():
    with scene() as s, CudaScene(release="12.4", sim="devices 2 sms=3 warps=8") as cuda:
        cuda.attach()  # an exception stays only for who is there to see it
        cuda.control("raise 0 1 2 14 errorpc=0x50")
        env = {"ADAPTER": str(recorded(BIN / "gpu-agentctl", s.directory)), "PID": str(s.app.pid), "GPU_AGENT_SOCKET": str(s.socket),
               "CORE_AMD": dump(s), "CORE_NVIDIA": dump(cuda)}
        assert run_mocha(env) >= 11
        assert check_recorded(s.directory) > 50, "no messages"
        runs_on(s)


def test_mocha_on_the_agents_socket():
    """The same but for core files; what the test client starts does no more than connect."""
    npm.need("socat")
    with scene() as s:
        connect = s.directory / "connect"
        connect.write_text(f"#!/bin/sh\nexec socat - UNIX-CONNECT:{s.socket}\n")
        connect.chmod(0o755)
        assert run_mocha({"ADAPTER": str(connect), "PID": str(s.app.pid)}, "--grep", "core of", "--invert") >= 9
        runs_on(s)
