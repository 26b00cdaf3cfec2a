#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Microsoft's @vscode/debugadapter-testsupport on gpu-agentctl dap: one line for each of its tests."""
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
from dapclient import runs_on, scene  # noqa: E402
from harness import BIN, ROOT, Skip, main, test  # noqa: E402

MODULES = ROOT / "build/dap-clients"
NPM_SECONDS = 180


def npm_install():
    """What package-lock.json pins, once per content of that file."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")
    MODULES.mkdir(parents=True, exist_ok=True)
    files = [HERE / "package.json", HERE / "package-lock.json"]
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()
    stamp = MODULES / "installed"
    if stamp.exists() and stamp.read_text() == digest:
        return
    for file in files:
        shutil.copy(file, MODULES)
    argv = ["npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"]
    try:
        run = subprocess.run(argv, cwd=MODULES, text=True, capture_output=True, timeout=NPM_SECONDS,
                             stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Skip(f"npm could not install the test client in {NPM_SECONDS} s") from None
    if run.returncode:
        lines = [line for line in run.stderr.splitlines() if line.lower().startswith("npm err")]
        raise Skip("npm cannot install the test client: " + " / ".join(lines[:3]))
    stamp.write_text(digest)


@test
def mocha():
    MODULES.parent.mkdir(exist_ok=True)
    with open(MODULES.parent / ".dap-clients.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        npm_install()
    with scene() as s:
        env = {**os.environ, "NODE_PATH": str(MODULES / "node_modules"), "ADAPTER": str(BIN / "gpu-agentctl"),
               "PID": str(s.app.pid), "GPU_AGENT_SOCKET": str(s.socket)}
        argv = ["node", MODULES / "node_modules/mocha/bin/mocha.js", "--reporter", "json", HERE / "adapter.spec.js"]
        run = subprocess.run(argv, env=env, text=True, capture_output=True, timeout=240, stdin=subprocess.DEVNULL)
        report = json.loads(run.stdout[run.stdout.index("{\n"):])
        for failed in report["failures"]:
            print(f"  --- {failed['fullTitle']}: {failed['err'].get('message')}")
        assert run.returncode == 0 and report["stats"]["passes"] == report["stats"]["tests"] >= 8, report["failures"]
        runs_on(s)


if __name__ == "__main__":
    main(__file__)
